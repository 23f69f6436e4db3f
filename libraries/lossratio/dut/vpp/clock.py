"""The clock of VPP's policers, and the CPU's own clock, which it must agree with.

A policer counts the CPU's time stamps. VPP measures only once how many time stamps make a second: for a millisecond,
when VPP starts. If another program gets the CPU in that millisecond, the policers' rate is wrong as long as this VPP
runs. In 3 of 18 starts beside programs on the same CPU, the rate was wrong by up to 9 %. VPP corrects its other clocks,
not this one.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lossratio.errors import DutError
from lossratio.values import format_ratio

_STAMPS_PER_PERIOD = 2**17
"""Time stamps in a period of a policer (POLICER_TICKS_PER_PERIOD in VPP's source)."""
_BYTES_PER_KILOBIT = 125
_SECONDS = 0.3
"""Seconds over which the CPU's time stamps are counted; each end is known to some 10 µs."""
_READINGS = 3
TOLERANCE = 1e-3
"""How far a policer's clock may be off, as a share: a fifth of the width of FD.io CSIT's goals."""
_READING = re.compile(
    r"cpu time \S+ now (?P<stamp>\d+) .*?\n\s*reftime \S+ now (?P<seconds>\d+\.\d+)"
)
_TOKENS = re.compile(r"cir (?P<tokens>\d+) tok/period,.* scale (?P<scale>\d+)")


@dataclass(frozen=True)
class ClockReading:
    """The CPU's time stamp and the system's time at the same moment, or the stamp a little later."""

    stamp: int
    """The time stamp."""
    seconds: float
    """The system's time, in seconds."""


def parse_clock(text: str) -> list[ClockReading]:
    """The readings in the output of ``show clock verbose``: two or more, or none if VPP prints something else."""
    return [
        ClockReading(int(found["stamp"]), float(found["seconds"]))
        for found in _READING.finditer(text)
    ]


def stamps_per_second(before: Sequence[ClockReading], after: Sequence[ClockReading]) -> float:
    """The CPU's time stamps per second, from the least delayed reading of each of two groups."""
    rough = (after[-1].stamp - before[0].stamp) / (after[-1].seconds - before[0].seconds)
    first, last = (
        min(readings, key=lambda one: one.stamp - rough * one.seconds)
        for readings in (before, after)
    )
    return (last.stamp - first.stamp) / (last.seconds - first.seconds)


def policers_stamps_per_second(text: str, kilobits: int) -> float | None:
    """A policer's value for time stamps per second, from the output of ``show policer name``; None: not printed."""
    found = _TOKENS.search(text)
    if found is None or not int(found["tokens"]):
        return None
    scaled: int = kilobits * _BYTES_PER_KILOBIT << int(found["scale"])
    return scaled * _STAMPS_PER_PERIOD / int(found["tokens"])


@dataclass(frozen=True)
class PolicerClock:
    """The clock of VPP's policers, compared with the CPU's own."""

    policers_hz: float
    """Time stamps per second that the policers assume."""
    measured_hz: float
    """Time stamps per second, as measured."""

    @property
    def excess(self) -> float:
        """How much more the policers pass than they should, as a share."""
        return self.measured_hz / self.policers_hz - 1.0

    def check(self, where: str, cpu: int) -> None:
        """Checks that policers pass what they should.

        Args:
            where: Name of the node, for the error.
            cpu: Number of the CPU of VPP's main thread, for the error.

        Raises:
            DutError: If VPP measured the frequency of its clock wrongly at its start.
        """
        if abs(self.excess) > TOLERANCE:
            share = format_ratio(round(abs(self.excess), 4))
            direction = "more" if self.excess > 0 else "less"
            raise DutError(
                f"{where}: VPP's policers would pass {share} {direction} than their rate because VPP has misjudged "
                f"the CPU's clock: it assumes {self.policers_hz:,.0f} time stamps per second instead of "
                f"{self.measured_hz:,.0f}. VPP measures this once, in a millisecond at its start, and another "
                f"program had the CPU at that moment. End other programs on CPU {cpu} there, and set up VPP again."
            )


def read_clock(ask: Callable[[str], str], policer: str, kilobits: int) -> PolicerClock | None:
    """Measures the clock of a policer, which takes a third of a second; None: this VPP does not print it."""

    def readings() -> list[ClockReading]:
        return [
            reading for _ in range(_READINGS) for reading in parse_clock(ask("show clock verbose"))
        ]

    before = readings()
    policers = policers_stamps_per_second(ask(f"show policer name {policer}"), kilobits)
    if policers is None or not before:
        return None
    time.sleep(_SECONDS)
    return PolicerClock(policers, stamps_per_second(before, readings()))
