"""The look for memory: whether a device that nobody can log in to passes less right after a trial than after a rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from lossratio.measurements.request import Request
from lossratio.results import Note, NoteKind, Weight, noted
from lossratio.trials import Measurer, TrialInput, TrialOutput, known_missing
from lossratio.values import format_frame_rate

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_EVIDENCE = (
    "Before the measurement, trials at one load forward more after a rest than right after another trial: the "
    "difference is beyond the spread of both."
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
_SENDABLE, _LEAST_SENT = 0.9, 0.1
"""The load that a generator certainly sends, as a share of what it has just sent, and the smallest share of the load
that is looked at."""


def remarks_on_memory(testbed: Testbed, request: Request, load: float) -> tuple[Note, ...]:
    """Checks whether a black box remembers trials: at one load after a rest, and right after another trial.

    "Right after" means after the rest that trials of this measurement have anyway. The first and the last trial follow
    a rest, so that a device that merely changes over time does not seem to remember. A difference counts if it is
    greater than the spread of both sides, and greater than the number of missing frames that the device did not lose.
    If the generator cannot send the load, somewhat less than what it sent is offered.
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
    after_rest: tuple[int, int],
    right_after: Sequence[int],
) -> Note:
    """A remark on what a look for memory shows. If the device remembers, further trials find a rest that helps.

    Args:
        look: The look.
        counts_connections: Whether its trials open connections.
        usual: Seconds of rest that the trials of the measurement have anyway.
        after_rest: What the first and the last trial of the look forwarded, both after a rest.
        right_after: What the trials forwarded that followed another trial.
    """
    if counts_connections:
        did, what, rate = "established", "connections", f"{look.load:,.0f} connections/s"
    else:
        did, what = "forwarded", "frames"
        rate = f"{format_frame_rate(look.load)} per interface"

    trials = f"in trials of {_DURATION:g} s at {rate}"
    first, last = after_rest
    least_change = max(_SHARE * first, 1.0)
    has_changed = first - last > least_change + look.unknown
    rested = first if has_changed else min(after_rest)
    unrested = max(right_after)
    seen = (
        f"{trials} it {did} {rested:,} {what} after {MEMORY_REST:g} s of rest, and {unrested:,} "
        f"after {usual:g} s"
    )
    not_known = "it is not known whether the device remembers trials"
    if has_changed:
        return noted(
            f"{not_known}: {seen}, but {last:,} after another {MEMORY_REST:g} s of rest: it has changed since, or it "
            f"remembers for more than {MEMORY_REST:g} s"
        )

    if rested - unrested > least_change + look.unknown:
        rest = _rest_that_helps(look, max(usual, 0.5), (1.0 - _SHARE) * rested)
        return noted(
            f"the device remembers trials: {seen}. Results depend on the order of trials; rest={rest:.3g} s helps",
            NoteKind.MEMORY,
            Weight.DOUBT,
            _EVIDENCE,
        )

    if look.unknown > least_change:
        return noted(
            f"{not_known}: {trials} up to {look.unknown:,} {what} were unsent, late or dropped by the generator"
        )
    if min(right_after) - first > least_change:
        return noted(f"{not_known}: {seen}; it may be slow to start")
    return noted(
        f"the device does not seem to remember trials: {seen}. But it may remember for more "
        f"than {MEMORY_REST:g} s, or have a memory that so few {what} cannot fill"
    )


def _rest_that_helps(look: _Look, rest: float, enough: float) -> float:
    """Seconds of rest after which trials forward enough frames, found by doubling; at most `MEMORY_REST`."""
    while rest < MEMORY_REST:
        trials = [look.forwarded(rest) for _ in range(1 + _REPEATS)]
        if max(trials[1:]) >= enough:
            break
        rest *= 2.0
    return rest


class _Look:
    """Trials that look for a memory of a device.

    Attributes:
        load: Their load, in frames per second per interface.
        unknown: The most frames of a trial that are missing and that the device may have forwarded.
    """

    def __init__(self, measurer: Measurer, load: float) -> None:
        self.load = load
        self.unknown = 0
        self._measurer = measurer
        self._outputs: list[TrialOutput] = []

    def forwarded(self, rest: float = 0.0) -> int:
        """The frames forwarded in a trial after a rest.

        The trial is repeated if the generator left too many frames unsent.
        """
        output = self._measured(rest)
        for _ in range(_REPEATS):
            if _was_sent(output):
                break
            output = self._measured(rest)
        return self._counted(output)

    def forwarded_what_can_be_sent(self) -> int:
        """The frames forwarded in a trial after a rest, at the load, or at what the generator can send of it."""
        output = self._measured(MEMORY_REST)
        if _was_sent(output):
            return self._counted(output)
        sent = 1.0 - known_missing(output).by_tester / _intended_in(output)
        self.load *= max(_LEAST_SENT, _SENDABLE * sent)
        return self.forwarded(MEMORY_REST)

    def _measured(self, rest: float = 0.0) -> TrialOutput:
        # A few unsent frames make no difference here, and repeating the trial because of them would need another rest.
        trial = TrialInput(_DURATION, self.load, rest=rest, keeps_unsent=True)
        self._outputs.append(self._measurer.measure(trial))
        return self._outputs[-1]

    def _counted(self, output: TrialOutput) -> int:
        missing = known_missing(output)
        self.unknown = max(self.unknown, missing.by_tester + missing.late)
        return _received_in(output)

    def remarks_on_passed(self) -> Iterator[Note]:
        """What the device passed before it lost a frame: trials that lose later have another cause than their load.

        If it passes trials again after it has lost frames, nothing has been used up, and there is no remark.
        """
        lossless = list(takewhile(_lost_none, self._outputs))
        later = self._outputs[len(lossless) :]
        passed = sum(map(_received_in, lossless))
        if passed and not any(map(_lost_none, later)):
            load = f"{format_frame_rate(self.load)} per interface"
            seen = f"the device passed {passed:,} frames at up to {load}"
            and_then = "lost none"
            if later:
                and_then = "only then lost some"
            yield noted(f"before the first trial, {seen}, and {and_then}", NoteKind.PASSED)


def _lost_none(output: TrialOutput) -> bool:
    """Whether the device lost none of the frames of a trial."""
    return not known_missing(output).without_tester


def _was_sent(output: TrialOutput) -> bool:
    """Whether the generator sent a trial's load, apart from so few frames that they make no difference."""
    missing = known_missing(output)
    return missing.by_tester <= _SHARE * _intended_in(output)


def _intended_in(output: TrialOutput) -> int:
    return sum(direction.intended_frames for direction in output.directions)


def _received_in(output: TrialOutput) -> int:
    return sum(direction.received_frames for direction in output.directions)
