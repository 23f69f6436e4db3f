"""Trials in result files: input, output, and why the controller asked for them."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from lossratio.journal import JournalEntry
from lossratio.report.record import FrameCount, Ratio, Record, Seconds
from lossratio.trial import DirectionCounters, TrialInput, TrialOutput, TrialResult

STALL = 1e-3
"""Seconds by which senders on a shared machine are behind all the time."""


class Direction(Record):
    """What one direction counted in a trial."""

    name: str
    """The direction, e.g. ``port0>port1``."""
    intended_frames: FrameCount
    """Frames that load and duration ask for."""
    sent_frames: FrameCount
    """Frames that left the generator."""
    received_frames: FrameCount
    """Frames that came back in time."""
    unsent_frames: FrameCount
    """Intended frames that the generator could not send in time: no evidence about the SUT."""
    generator_drop_frames: FrameCount
    """Frames that came back and were dropped inside the generator: no evidence about the SUT."""
    late_frames: FrameCount
    """Frames of what was sent before (the trial before, or an attempt at this one) that came back after its wait for
    frames in flight; there they count as lost."""
    elapsed_s: Seconds | None
    """Time from the direction's start to its stop; None: not measured."""
    lateness_s: Seconds | None = None
    """By how much the sender was behind at most, stalled by its machine; None: the generator does not say."""


class Trial(Record):
    """One trial."""

    number: int = Field(ge=1)
    """The trial's place in the order of measuring."""
    purpose: str | None
    """Why the controller asked for it; None: it did not say."""
    is_evidence: bool
    """Whether its result counts; that of a warm-up does not."""
    duration_s: Seconds
    """Trial input: intended duration."""
    load_per_interface_fps: float = Field(gt=0.0)
    """Trial input: intended load of each transmitting interface."""
    loss_ratio: Ratio
    """Trial loss ratio; unsent frames are in it."""
    effective_duration_s: Seconds
    """What counts towards a goal's duration sum."""
    elapsed_s: Seconds
    """What the trial took in all, with everything around its traffic."""
    forwarding_rate_per_interface_fps: float = Field(ge=0.0)
    """Trial forwarding rate."""
    sent_frames: FrameCount | None
    """Frames sent, over all directions; None: not counted."""
    lost_frames: FrameCount | None
    """Frames sent and not received, summed per direction; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send, over all directions; None: not counted."""
    repeats: int = Field(default=0, ge=0)
    """Attempts at this trial that were thrown away before, as untrustworthy; their time is in ``elapsed_s``."""
    repairs: tuple[str, ...] = ()
    """What attempts at this trial failed of before and was repaired: nothing that tells about the SUT."""
    directions: tuple[Direction, ...]
    """What each direction counted."""

    @property
    def lateness_s(self) -> float:
        """By how much a sender was behind at most; 0 where none says so."""
        return max((each.lateness_s or 0.0 for each in self.directions), default=0.0)

    def as_result(self) -> TrialResult:
        """The trial as the search algorithms know it."""
        output = TrialOutput(
            loss_ratio=self.loss_ratio,
            effective_duration=self.effective_duration_s,
            elapsed=self.elapsed_s,
            forwarding_rate=self.forwarding_rate_per_interface_fps,
            sent_frames=self.sent_frames,
            lost_frames=self.lost_frames,
            unsent_frames=self.unsent_frames,
            repeats=self.repeats,
            repairs=self.repairs,
            directions=tuple(_counters(each) for each in self.directions),
        )
        return TrialResult(TrialInput(self.duration_s, self.load_per_interface_fps), output)


def describe_trials(entries: Iterable[JournalEntry], *, warm_ups: int = 0) -> tuple[Trial, ...]:
    """The trials of a result file.

    Args:
        entries: The trials, in the order in which they were measured.
        warm_ups: How many of the first ones are a warm-up, whose results are no evidence.
    """
    return tuple(_trial(number, entry, number > warm_ups) for number, entry in enumerate(entries, start=1))


def _trial(number: int, entry: JournalEntry, is_evidence: bool) -> Trial:
    result = entry.result
    return Trial(
        number=number,
        is_evidence=is_evidence,
        purpose=entry.purpose,
        duration_s=result.duration,
        load_per_interface_fps=result.load,
        loss_ratio=result.loss_ratio,
        effective_duration_s=result.effective_duration,
        elapsed_s=result.elapsed,
        forwarding_rate_per_interface_fps=result.forwarding_rate,
        sent_frames=result.output.sent_frames,
        lost_frames=result.output.lost_frames,
        unsent_frames=result.output.unsent_frames,
        repeats=result.output.repeats,
        repairs=result.output.repairs,
        directions=tuple(_direction(each) for each in result.output.directions),
    )


def _direction(counters: DirectionCounters) -> Direction:
    return Direction(
        name=counters.name,
        intended_frames=counters.intended,
        sent_frames=counters.sent,
        received_frames=counters.received,
        unsent_frames=counters.unsent,
        generator_drop_frames=counters.generator_drops,
        late_frames=counters.late,
        elapsed_s=counters.elapsed,
        lateness_s=counters.lateness,
    )


def _counters(direction: Direction) -> DirectionCounters:
    return DirectionCounters(
        name=direction.name,
        intended=direction.intended_frames,
        sent=direction.sent_frames,
        received=direction.received_frames,
        unsent=direction.unsent_frames,
        generator_drops=direction.generator_drop_frames,
        late=direction.late_frames,
        elapsed=direction.elapsed_s,
        lateness=direction.lateness_s,
    )
