"""The look for memory: whether a device that nobody can log in to passes less right after a trial than after a rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from lossratio.measurements.request import Request
from lossratio.results import Note, NoteKind, Weight, noted
from lossratio.trials import Measurer, MissingFrames, TrialInput, TrialOutput, missing_frames
from lossratio.units import format_frame_rate

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_EVIDENCE = (
    "Trials before the measurement at one load, after a rest and right after another trial: a difference beyond the "
    "spread of both."
)
_DURATION = 0.5
"""Seconds of a trial that looks for a memory of the device."""
MEMORY_REST = 4.0
"""Seconds after which a device counts as rested. A memory that lasts longer is not seen."""
MEMORY_SECONDS = 12.0
"""Rough number of seconds of a look that finds no memory; a look that finds a memory takes up to three times as
long."""
_SHARE = 0.01
"""A smaller relative difference between forwarded frames does not count as memory."""
_REPEATS = 2
"""How many trials show each state of the device, and how often a trial is repeated."""
_HALVINGS = 3
"""How often the load may be halved."""
_STILL_OVERLOADED = 0.45
"""A device that forwards a smaller share of a load than this loses frames at half of the load, too."""


def remarks_on_memory(testbed: Testbed, request: Request, load: float) -> tuple[Note, ...]:
    """Checks whether a black box remembers trials: at one load after a rest, and right after another trial.

    "Right after" means after the rest that trials of this measurement have anyway. The first and the last trial follow
    a rest, so that a device that merely changes over time does not seem to remember. A difference counts if it is
    greater than the spread of both sides, and greater than the number of missing frames that the device did not lose.
    If the generator cannot send the load, half of the load is offered, as long as this still overloads the device.
    """
    from lossratio.dut import BLACK_BOX

    dut = testbed.request.dut
    if dut is None or dut.kind != BLACK_BOX:
        return ()
    usual = max(dut.options.recovery_time, request.rest)
    if request.connects:
        # No trial opens more connections than the traffic has.
        load = min(load, request.profile.flows // _DURATION)

    with request.ready(testbed) as ready:
        look = _Look(ready.measurer, load)
        first = (
            look.forwarded(MEMORY_REST) if request.connects else look.forwarded_what_can_be_sent()
        )
        # After a long rest, this trial is what the device may remember.
        look.forwarded()
        right_after = [look.forwarded() for _ in range(_REPEATS)]
        last = look.forwarded(MEMORY_REST)
        remark = _remark_on_memory(look, request.connects, usual, (first, last), right_after)
        return (remark, *look.remarks_on_passed())


def _remark_on_memory(
    look: _Look,
    counts_connections: bool,
    usual: float,
    after_rest: tuple[_Forwarded, _Forwarded],
    right_after: Sequence[_Forwarded],
) -> Note:
    """A remark on what a look for memory shows. If the device remembers, further trials find a rest that helps.

    Args:
        look: The look.
        counts_connections: Whether its trials open connections.
        usual: Seconds of rest that the trials of the measurement have anyway.
        after_rest: The first and the last trial of the look, both after a rest.
        right_after: The trials that followed another trial.
    """
    if counts_connections:
        did, what, rate = "established", "connections", f"{look.load:,.0f} connections/s"
    else:
        did, what = "forwarded", "frames"
        rate = f"{format_frame_rate(look.load)} per interface"

    trials = f"in trials of {_DURATION:g} s at {rate}"
    first, last = after_rest
    least_change = max(_SHARE * first.least, 1.0)
    has_changed = first.least - last.most > least_change
    rested = first.least if has_changed else _slowest(after_rest)
    unrested = _fastest(right_after)
    seen = (
        f"{trials} it {did} {rested:,} {what} after {MEMORY_REST:g} s of rest, and {unrested:,} "
        f"after {usual:g} s"
    )
    if has_changed:
        return noted(
            f"it is not known whether the device remembers trials: {seen}, but {last.most:,} "
            f"after another {MEMORY_REST:g} s of rest: it has changed since, or it remembers for "
            f"more than {MEMORY_REST:g} s"
        )

    if rested - unrested <= least_change:
        most_gain = min(trial.most for trial in after_rest) - max(
            trial.least for trial in right_after
        )
        if most_gain > least_change:
            missing = max(trial.most - trial.least for trial in (*after_rest, *right_after))
            return noted(
                f"it is not known whether the device remembers trials: {trials} up to {missing:,} {what} were "
                "unsent, late or dropped by the generator"
            )

        if _slowest(right_after) - first.most > least_change:
            return noted(
                f"it is not known whether the device remembers trials: {seen}; it may be slow to start"
            )
        return noted(
            f"the device does not seem to remember trials: {seen}. But it may remember for more "
            f"than {MEMORY_REST:g} s, or have a memory that so few {what} cannot fill"
        )

    rest = max(usual, 0.5)
    while (
        rest < MEMORY_REST
        and _fastest([look.forwarded(rest) for _ in range(1 + _REPEATS)][1:])
        < (1.0 - _SHARE) * rested
    ):
        rest *= 2.0
    return noted(
        f"the device remembers trials: {seen}. Results depend on the order of trials; rest={rest:.3g} s "
        "helps",
        NoteKind.MEMORY,
        Weight.DOUBT,
        _EVIDENCE,
    )


class _Look:
    """Trials that look for a memory of a device.

    Attributes:
        load: Their load, in frames per second per interface.
    """

    def __init__(self, measurer: Measurer, load: float) -> None:
        self.load = load
        self._measurer = measurer
        self._outputs: list[TrialOutput] = []

    def forwarded(self, rest: float = 0.0) -> _Forwarded:
        """The frames forwarded in a trial after a rest.

        The trial is repeated if the generator left too many frames unsent.
        """
        output = self._measured(rest)
        for _ in range(_REPEATS):
            if _was_sent(output):
                break
            output = self._measured(rest)
        return _forwarded_in(output)

    def forwarded_what_can_be_sent(self) -> _Forwarded:
        """The frames forwarded in a trial after a rest, at the load, or at a half, a quarter or an eighth of the load.

        The load is halved if the generator cannot send it, as long as half of it still overloads the device.
        """
        output = self._measured(MEMORY_REST)
        if _was_sent(output):
            return _forwarded_in(output)

        for _ in range(_HALVINGS):
            if _was_sent(output) or not _overloads_at_half(output):
                break
            self.load /= 2.0
            output = self._measured()
        return self.forwarded(MEMORY_REST)

    def _measured(self, rest: float = 0.0) -> TrialOutput:
        # A few unsent frames make no difference here, and repeating the trial because of them would need another rest.
        trial = TrialInput(_DURATION, self.load, rest=rest, keeps_unsent=True)
        self._outputs.append(self._measurer.measure(trial))
        return self._outputs[-1]

    def remarks_on_passed(self) -> Iterator[Note]:
        """What the device passed before it lost a frame: trials that lose later have another cause than their load."""
        lossless = list(takewhile(_lost_none, self._outputs))
        passed = sum(way.received_frames for output in lossless for way in output.directions)
        if passed:
            load = f"{format_frame_rate(self.load)} per interface"
            seen = f"the device passed {passed:,} frames at up to {load}, and lost none"
            yield noted(f"before the first trial, {seen}", NoteKind.PASSED)


def _lost_none(output: TrialOutput) -> bool:
    """Whether the device lost none of the frames of a trial."""
    return not (missing_frames(output) or MissingFrames()).without_tester


def _was_sent(output: TrialOutput) -> bool:
    """Whether the generator sent a trial's load, apart from so few frames that they make no difference."""
    missing = missing_frames(output) or MissingFrames()
    return missing.by_tester <= _SHARE * _intended_in(output)


def _overloads_at_half(output: TrialOutput) -> bool:
    """Whether the device also loses frames at half of a trial's load."""
    missing = missing_frames(output) or MissingFrames()
    forwarded = sum(direction.received_frames for direction in output.directions)
    intended = _intended_in(output)
    return missing.lost_by_sut > _SHARE * intended and forwarded <= _STILL_OVERLOADED * intended


def _intended_in(output: TrialOutput) -> int:
    return sum(direction.intended_frames for direction in output.directions)


class _Forwarded(NamedTuple):
    """How many frames a device forwarded in a trial."""

    least: int
    """Frames that came back."""
    most: int
    """Frames that came back, plus missing frames that the device did not lose, because it may have forwarded them."""


def _forwarded_in(output: TrialOutput) -> _Forwarded:
    received = sum(direction.received_frames for direction in output.directions)
    missing = missing_frames(output) or MissingFrames()
    return _Forwarded(received, received + missing.by_tester + missing.late)


def _slowest(trials: Sequence[_Forwarded]) -> int:
    """The minimum number of frames that any of these trials forwarded."""
    return min(trial.least for trial in trials)


def _fastest(trials: Sequence[_Forwarded]) -> int:
    """The maximum number of frames that any of these trials may have forwarded."""
    return max(trial.most for trial in trials)
