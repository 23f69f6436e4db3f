"""Trials in result files: input, output, and why the controller asked for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from lossratio.records import FrameCount, Ratio, Record, Seconds
from lossratio.trials import DirectionCounters, Incident, JournalEntry, TrialInput, TrialOutput, TrialResult
from lossratio.units import format_frame_rate, format_ratio

STALL = 1e-3
"""Seconds by which senders on a shared machine are behind all the time."""

_RULE_WIDTH = 9


class Direction(Record):
    """What one direction counted in a trial."""

    name: str
    """The direction, e.g. ``port0>port1``."""
    intended_frames: FrameCount
    """Frames that load and duration ask for."""
    sent_frames: FrameCount
    """Frames that left the generator."""
    received_frames: FrameCount
    """Frames that came back in time and intact, each counted once."""
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
    stretch_s: Seconds | None = None
    """By how much longer than the duration the traffic may have taken although nothing counts as unsent for it, because
    the generator does not say when it began and ended; None: it does."""
    examined_frames: FrameCount | None = None
    """Frames that came back and were looked at byte by byte. With fewer than came back, the counts below are estimates
    for all of them. None: nobody looked at frames."""
    duplicated_frames: FrameCount = 0
    """Further copies of received frames; they are not received ones."""
    reordered_frames: FrameCount = 0
    """Received frames with a lower sequence number than one before them (RFC 4737, type-P-reordered)."""
    corrupted_frames: FrameCount = 0
    """Frames that came back with other contents; they are not received ones."""
    wrong_length_frames: FrameCount = 0
    """Frames that came back truncated or padded; they are not received ones."""
    misdelivered_frames: FrameCount = 0
    """Frames that came back with other addresses, and frames of other directions that arrived here; neither are
    received ones."""


class TestbedChange(Record):
    """A change of the testbed that was seen around a trial."""

    guilty: Literal["TG", "wire", "DUT", "controller"]
    """Whose fault it is."""
    node: str
    """The node, or both nodes of a link."""
    interface: str | None
    """The interface, or both ends of a link; None: the node as a whole."""
    change: str
    """What changed, in words."""
    done: Literal["repaired", "repeated", "stands"]
    """What was done: ``repaired`` or ``repeated``: the attempt that saw it was thrown away; ``stands``: it was not."""


class Trial(Record):
    """One trial."""

    number: int = Field(ge=1)
    """The trial's place in the order of measuring."""
    purpose: str | None
    """Why the controller asked for it; None: it did not say."""
    rule: str | None = None
    """Name of the controller's rule that chose it; None: the controller has none, or is of an earlier version."""
    is_evidence: bool
    """Whether its result counts; that of a warm-up does not, nor that of a trial that was set aside."""
    set_aside: str | None = None
    """Why the generator is to blame for what the trial says, so that it is no evidence; None: it is not."""
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
    incidents: tuple[TestbedChange, ...] = ()
    """What changed on the testbed around this trial and earlier attempts at it."""
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
            incidents=tuple(Incident(**each.model_dump()) for each in self.incidents),
            directions=tuple(counters_of(each) for each in self.directions),
        )
        return TrialResult(TrialInput(self.duration_s, self.load_per_interface_fps), output)


def describe_trials(
    entries: Iterable[JournalEntry],
    *,
    warm_ups: int = 0,
    why_set_aside: Callable[[TrialResult], str | None] = lambda _: None,
) -> tuple[Trial, ...]:
    """The trials of a result file.

    Args:
        entries: The trials, in the order in which they were measured.
        warm_ups: How many of the first ones are a warm-up, whose results are no evidence.
        why_set_aside: Says of a trial why it is none either.
    """
    return tuple(
        _trial(number, entry, number <= warm_ups, why_set_aside(entry.result))
        for number, entry in enumerate(entries, start=1)
    )


def _trial(number: int, entry: JournalEntry, is_warm_up: bool, set_aside: str | None) -> Trial:
    result = entry.result
    return Trial(
        number=number,
        is_evidence=not is_warm_up and set_aside is None,
        set_aside=set_aside,
        purpose=entry.purpose,
        rule=entry.rule,
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
        incidents=tuple(TestbedChange.model_validate(asdict(each)) for each in result.output.incidents),
        directions=tuple(describe_direction(each) for each in result.output.directions),
    )


def describe_direction(counters: DirectionCounters) -> Direction:
    """The counters of a direction as result files have them."""
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
        stretch_s=counters.stretch,
        examined_frames=counters.examined,
        duplicated_frames=counters.duplicated,
        reordered_frames=counters.reordered,
        corrupted_frames=counters.corrupted,
        wrong_length_frames=counters.wrong_length,
        misdelivered_frames=counters.misdelivered,
    )


def counters_of(direction: Direction) -> DirectionCounters:
    """The counters of a direction as the search algorithms know them."""
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
        stretch=direction.stretch_s,
        examined=direction.examined_frames,
        duplicated=direction.duplicated_frames,
        reordered=direction.reordered_frames,
        corrupted=direction.corrupted_frames,
        wrong_length=direction.wrong_length_frames,
        misdelivered=direction.misdelivered_frames,
    )


def dropped_by_generator(output: TrialOutput) -> int:
    """Frames among those lost that came back and were dropped inside the generator: no more than a direction lost."""
    return sum(max(0, min(each.generator_drops, each.sent - each.received)) for each in output.directions)


def trials_in_words(trials: Iterable[Trial]) -> str:
    """A line for each trial: when it ended in seconds, its load per interface, the rule that chose it, and why."""
    lines, passed = ["Why each trial was measured:"], 0.0
    for trial in trials:
        passed += trial.elapsed_s
        reason = "  ".join(filter(None, (trial.rule and f"{trial.rule:<{_RULE_WIDTH}}", trial.purpose)))
        lines.append(
            f"{trial.number:>4}  at {passed:>6.1f} s  {format_frame_rate(trial.load_per_interface_fps):>11} "
            f"for {trial.duration_s:.4g} s  loss {format_ratio(trial.loss_ratio):<9}  {reason}".rstrip()
        )
    return "\n".join(lines)
