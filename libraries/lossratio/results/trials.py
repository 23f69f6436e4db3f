"""Trials in result files: input, output, and the controller's purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Literal

from pydantic import Field

from lossratio.records import FrameCount, Ratio, Record, Seconds
from lossratio.trials import (
    DirectionCounters,
    Incident,
    JournalEntry,
    StreamCounters,
    TrialInput,
    TrialOutput,
    TrialResult,
)
from lossratio.units import format_frame_rate, format_ratio

STALL = 1e-3
"""Usual delay of a sender on a shared machine, in seconds; a longer delay is a stall."""

_RULE_WIDTH = 9


class Stream(Record):
    """The counters of one stream of a direction in a trial."""

    frame_size_bytes: int
    """Size of its frames, with FCS."""
    sent_frames: FrameCount
    """Frames that left the generator."""
    received_frames: FrameCount
    """Frames that came back, with further copies."""
    duplicated_frames: FrameCount | None = None
    """Further copies; None: frames of this stream have no numbers."""
    out_of_order_frames: FrameCount | None = None
    """Frames with a lower number than one before them."""
    too_high_frames: FrameCount | None = None
    """Frames with a higher number than the one expected, i.e. behind a gap."""
    too_low_frames: FrameCount | None = None
    """Frames with a lower number than the one expected, copies and late ones among them."""


class Direction(Record):
    """The counters of one direction in a trial."""

    name: str
    """The direction, e.g. ``port0>port1``."""
    intended_frames: FrameCount
    """Intended frames: the direction's load × duration."""
    sent_frames: FrameCount
    """Frames that left the generator."""
    received_frames: FrameCount
    """Frames that came back in time and unchanged, without further copies."""
    unsent_frames: FrameCount
    """Intended frames that the generator could not send in time; they are no evidence about the SUT."""
    generator_drop_frames: FrameCount
    """Frames that came back and that the generator itself dropped; they are no evidence about the SUT."""
    late_frames: FrameCount
    """Frames of the trial before, or of an earlier attempt at this trial, that came back after the wait for frames in
    flight; they count as lost in that trial or attempt."""
    elapsed_s: Seconds | None
    """Time from the direction's start to its stop; None: not measured."""
    lateness_s: Seconds | None = None
    """The longest delay of the sender because its machine stalled; None: the generator does not report it."""
    stretch_s: Seconds | None = None
    """Time by which the traffic may have been longer than the duration without unsent frames, as the generator does not
    report begin and end of the traffic; None: the generator reports them."""
    examined_frames: FrameCount | None = None
    """Frames that came back and were examined byte by byte. If only a part was examined, the counts below are estimates
    for all frames that came back. None: no frames were examined."""
    duplicated_frames: FrameCount = 0
    """Further copies of received frames; they do not count as received."""
    reordered_frames: FrameCount = 0
    """Received frames with a lower sequence number than an earlier received frame (RFC 4737, type-P-reordered)."""
    corrupted_frames: FrameCount = 0
    """Frames that came back with other contents; they do not count as received."""
    wrong_length_frames: FrameCount = 0
    """Frames that came back truncated or padded; they do not count as received."""
    misdelivered_frames: FrameCount = 0
    """Frames that came back with other addresses, and frames of other directions that arrived here; both do not count
    as received."""
    flows_with_loss: FrameCount | None = None
    """Flows of which a frame was lost or came back with a fault; None: the generator does not count flows."""
    displacement_frames: FrameCount | None = None
    """The most sequence numbers by which a frame was behind one before it; None: not known for every frame."""
    extent_frames: FrameCount | None = None
    """The most frames that had come from the first one with a higher number than a reordered frame on to that frame
    (RFC 4737, reordering extent); None: not known for every frame."""
    late_offset_us: float | None = None
    """The longest time between these two arrivals (RFC 4737, late-time offset)."""
    latency_median_us: float | None = None
    """Median latency of all received frames; None: not known for every frame."""
    latency_99_us: float | None = None
    """99th percentile of these latencies."""
    latency_most_us: float | None = None
    """The largest of these latencies."""
    jitter_us: float | None = None
    """Mean difference (absolute) between the latencies of successive frames (RFC 3393; IPDV of RFC 5481)."""
    streams: tuple[Stream, ...] = ()
    """Counters of its streams; empty: the generator does not count them."""


class TestbedChange(Record):
    """A change of the testbed that was observed around a trial."""

    guilty: Literal["TG", "wire", "DUT", "controller"]
    """The part of the testbed that is to blame."""
    node: str
    """The node, or both nodes of a link."""
    interface: str | None
    """The interface, or both ends of a link; None: the whole node."""
    change: str
    """The change, in words."""
    done: Literal["repaired", "repeated", "stands"]
    """The consequence. ``repaired`` or ``repeated``: the attempt was thrown away; ``stands``: the attempt counts."""


class Trial(Record):
    """One trial."""

    number: int = Field(ge=1)
    """The trial's place in the order of measuring."""
    purpose: str | None
    """Why the controller chose the trial; None: no reason was recorded."""
    rule: str | None = None
    """Name of the rule that chose the trial; None: the controller has no rules, or is of an earlier version."""
    is_evidence: bool
    """Whether the trial counts; a warm-up does not, nor does a trial that was set aside."""
    set_aside: str | None = None
    """Why the generator is to blame for the loss, so that the trial is no evidence; None: it is not to blame."""
    duration_s: Seconds
    """Trial input: intended duration."""
    load_per_interface_fps: float = Field(gt=0.0)
    """Trial input: intended load of each transmitting interface."""
    loss_ratio: Ratio
    """Trial loss ratio; unsent frames are in it. Where ``decided_after_s`` is given, it is a lower limit."""
    decided_after_s: Seconds | None = None
    """Time of traffic after which an early verdict ended the trial; None: the trial took its whole duration."""
    effective_duration_s: Seconds
    """Effective duration: the part of a goal's duration sum."""
    elapsed_s: Seconds
    """Time of the whole trial, with preparations and waits."""
    forwarding_rate_per_interface_fps: float = Field(ge=0.0)
    """Trial forwarding rate; where ``decided_after_s`` is given, that of the frames sent until then."""
    sent_frames: FrameCount | None
    """Frames sent, over all directions; None: not counted."""
    lost_frames: FrameCount | None
    """Lost frames, summed per direction; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send, over all directions; None: not counted."""
    repeats: int = Field(default=0, ge=0)
    """Earlier attempts at this trial that were thrown away as untrustworthy; ``elapsed_s`` includes their time."""
    repairs: tuple[str, ...] = ()
    """Repaired causes of failure of earlier attempts at this trial; they are no evidence about the SUT."""
    incidents: tuple[TestbedChange, ...] = ()
    """Changes of the testbed around this trial and earlier attempts at it."""
    directions: tuple[Direction, ...]
    """The counters of each direction."""

    @property
    def lateness_s(self) -> float:
        """The longest delay of a sender in seconds; 0: no sender reports a delay."""
        return max((direction.lateness_s or 0.0 for direction in self.directions), default=0.0)

    @property
    def dropped_by_generator(self) -> int:
        """Lost frames that the generator itself dropped."""
        if not any(direction.generator_drop_frames for direction in self.directions):
            return 0
        return dropped_by_generator(self.as_result().output)

    def as_result(self, *, with_directions: bool = True) -> TrialResult:
        """Converts the trial for the search algorithms.

        Args:
            with_directions: Whether the counters of the directions are needed; to convert them takes most of the time.
        """
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
            incidents=tuple(Incident(**incident.model_dump()) for incident in self.incidents),
            directions=tuple(counters_of(direction) for direction in self.directions) if with_directions else (),
            decided_after=self.decided_after_s,
        )
        return TrialResult(TrialInput(self.duration_s, self.load_per_interface_fps), output)


def describe_trials(
    entries: Iterable[JournalEntry],
    *,
    warm_ups: int = 0,
    why_set_aside: Callable[[TrialResult], str | None] = lambda _: None,
) -> tuple[Trial, ...]:
    """Describes trials for a result file.

    Args:
        entries: The trials, in the order in which they were measured.
        warm_ups: Number of warm-up trials at the beginning, which are no evidence.
        why_set_aside: Returns why a trial was set aside; None: it was not.
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
        decided_after_s=result.output.decided_after,
        effective_duration_s=result.effective_duration,
        elapsed_s=result.elapsed,
        forwarding_rate_per_interface_fps=result.forwarding_rate,
        sent_frames=result.output.sent_frames,
        lost_frames=result.output.lost_frames,
        unsent_frames=result.output.unsent_frames,
        repeats=result.output.repeats,
        repairs=result.output.repairs,
        incidents=tuple(TestbedChange.model_validate(asdict(incident)) for incident in result.output.incidents),
        directions=tuple(describe_direction(direction) for direction in result.output.directions),
    )


def describe_direction(counters: DirectionCounters) -> Direction:
    """Converts the counters of a direction for result files."""
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
        flows_with_loss=counters.flows_with_loss,
        displacement_frames=counters.displacement,
        extent_frames=counters.extent,
        late_offset_us=counters.late_offset,
        latency_median_us=counters.latency_median,
        latency_99_us=counters.latency_99,
        latency_most_us=counters.latency_most,
        jitter_us=counters.jitter,
        streams=tuple(
            Stream(
                frame_size_bytes=stream.frame_size,
                sent_frames=stream.sent,
                received_frames=stream.received,
                duplicated_frames=stream.duplicated,
                out_of_order_frames=stream.out_of_order,
                too_high_frames=stream.too_high,
                too_low_frames=stream.too_low,
            )
            for stream in counters.streams
        ),
    )


def counters_of(direction: Direction) -> DirectionCounters:
    """Converts the counters of a direction for the search algorithms."""
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
        flows_with_loss=direction.flows_with_loss,
        displacement=direction.displacement_frames,
        extent=direction.extent_frames,
        late_offset=direction.late_offset_us,
        latency_median=direction.latency_median_us,
        latency_99=direction.latency_99_us,
        latency_most=direction.latency_most_us,
        jitter=direction.jitter_us,
        streams=tuple(
            StreamCounters(
                stream.frame_size_bytes,
                stream.sent_frames,
                stream.received_frames,
                stream.duplicated_frames,
                stream.out_of_order_frames,
                stream.too_high_frames,
                stream.too_low_frames,
            )
            for stream in direction.streams
        ),
    )


def dropped_by_generator(output: TrialOutput) -> int:
    """Lost frames that the generator itself dropped; at most the lost frames of each direction."""
    return sum(
        max(0, min(direction.generator_drops, direction.sent - direction.received)) for direction in output.directions
    )


def foreign_frames_of(direction: Direction) -> int:
    """Frames that the port counted and no stream did, where the generator counts its streams; else 0."""
    if not direction.streams:
        return 0
    arrived = direction.received_frames + counters_of(direction).faulty
    return max(0, arrived - sum(stream.received_frames for stream in direction.streams))


def format_loss(loss_ratio: float, decided_after: float | None) -> str:
    """A trial's loss ratio, e.g. ``0.3 %``, or ``at least 0.3 % (ended after 1.2 s)`` after an early verdict."""
    loss = format_ratio(loss_ratio)
    return loss if decided_after is None else f"at least {loss} (ended after {decided_after:.3g} s)"


def trials_in_words(trials: Iterable[Trial]) -> str:
    """Formats a line for each trial: its end in seconds, its load per interface, its rule and its reason."""
    lines, passed = ["Why each trial was measured:"], 0.0
    for trial in trials:
        passed += trial.elapsed_s
        reason = "  ".join(filter(None, (trial.rule and f"{trial.rule:<{_RULE_WIDTH}}", trial.purpose)))
        loss = format_loss(trial.loss_ratio, trial.decided_after_s)
        lines.append(
            f"{trial.number:>4}  at {passed:>6.1f} s  {format_frame_rate(trial.load_per_interface_fps):>11} "
            f"for {trial.duration_s:.4g} s  loss {loss:<9}  {reason}".rstrip()
        )
    return "\n".join(lines)
