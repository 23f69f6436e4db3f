"""Trials, the two sides of a search, and the loop between them.

A search has two sides (RFC 9971): a *controller* that chooses trials and draws conclusions, and a *measurer* that
performs them. Neither knows the other; `run_search` carries trials and results between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lossratio.errors import SearchError
from lossratio.trials.timeline import Step, Timeline


@dataclass(frozen=True)
class TrialInput:
    """One trial that a controller asks for (RFC 9971, RFC 2544 section 23).

    A trial is one load for a duration, unless it is a `burst` or a `schedule`. These two have timelines in their
    output.

    Attributes:
        duration: Intended duration of the traffic, in seconds.
        load: Intended constant load per transmitting interface, in frames per second. In a schedule the mean load.
        frames: Frames of a burst per transmitting interface; none of them is left out. None: the trial is no burst.
        steps: The steps of a schedule, which follow each other without a gap. Empty: the trial is no schedule.
        certain_above: The trial may end as soon as its loss ratio is certain to be above this one, because then all
            that the controller asks is answered (an early verdict); None: it takes its whole duration. A measurer may
            ignore it.

    Raises:
        SearchError: If a value is not a positive, finite number, `certain_above` is not a ratio below 1, or they
            contradict each other.
    """

    duration: float
    load: float
    frames: int | None = None
    steps: tuple[Step, ...] = ()
    certain_above: float | None = None

    def __post_init__(self) -> None:
        for name in ("duration", "load"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SearchError(f"A trial's {name} must be a positive, finite number, not {value!r}.")
        if self.certain_above is not None and not (0.0 <= self.certain_above < 1.0 and not self.has_timelines):
            raise SearchError(
                f"A trial's certain_above must be at least 0 and below 1, not {self.certain_above!r}; a burst or a "
                "schedule has none."
            )
        sums = [] if self.frames is None else [float(self.frames)]
        if self.steps:
            sums.append(sum(step.duration * step.load for step in self.steps))
        if len(sums) == 2 or any(not math.isclose(total, self.duration * self.load, rel_tol=1e-9) for total in sums):
            raise SearchError(
                f"A trial of {self.duration:.10g} s at {self.load:.10g} frames/s does not have {self.frames} frames or "
                f"these steps: {self.steps}. Make it with TrialInput.burst or TrialInput.schedule."
            )

    @classmethod
    def burst(cls, frames: int, load: float) -> TrialInput:
        """A number of frames at a load (RFC 9004).

        Args:
            frames: Frames per transmitting interface.
            load: Frames per second per transmitting interface.

        Raises:
            SearchError: If a value is not a positive, finite number.
        """
        if frames < 1:
            raise SearchError(f"A burst has one frame or more, not {frames}.")
        return cls(frames / load if load > 0 else math.nan, load, frames=frames)

    @classmethod
    def schedule(cls, *steps: Step) -> TrialInput:
        """Steps of load that follow each other without a gap.

        Raises:
            SearchError: If there are no steps.
        """
        if not steps:
            raise SearchError("A schedule has one step or more.")
        duration = sum(step.duration for step in steps)
        return cls(duration, sum(step.duration * step.load for step in steps) / duration, steps=steps)

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps of a schedule; any other trial is a single step."""
        return self.steps or (Step(self.duration, self.load),)

    @property
    def has_timelines(self) -> bool:
        """Whether the trial is a burst or a schedule, whose losses are located in time."""
        return self.frames is not None or bool(self.steps)


@dataclass(frozen=True)
class StreamCounters:
    """The counters of one stream of a direction in one trial, where the generator counts its streams; frames.

    Attributes:
        frame_size: Bytes of each of its frames, with FCS.
        sent: Frames that left the generator.
        received: Frames that came back, with further copies.
        duplicated: Further copies. None: frames of this stream have no numbers.
        out_of_order: Frames with a lower number than one before them.
        too_high: Frames with a higher number than the one expected, i.e. behind a gap.
        too_low: Frames with a lower number than the one expected, copies and late ones among them.
    """

    frame_size: int
    sent: int
    received: int
    duplicated: int | None = None
    out_of_order: int | None = None
    too_high: int | None = None
    too_low: int | None = None


@dataclass(frozen=True)
class DirectionCounters:
    """The counters of one direction of the traffic in one trial; frames, unless stated otherwise.

    Attributes:
        name: The direction, e.g. ``port0>port1``.
        intended: Frames that the load and the duration ask for, also where the trial ended early. Where the generator
            was slow and took longer, the frames that the load asks for in that time.
        sent: Frames that left the generator.
        received: Frames of this trial that came back to the generator in time and intact, each counted once (RFC 2544,
            section 10): none of the duplicated, corrupted, wrong_length and misdelivered ones is among them.
        unsent: Intended frames that the generator could not send in time. No evidence about the SUT. Those that were
            due only after an early end are not among them.
        generator_drops: Frames that arrived at the generator and were dropped inside it. No evidence about the SUT.
        late: Frames of the trial before that arrived only after its wait for frames in flight; there they count as
            lost.
        elapsed: Seconds from the direction's own start to its own stop.
        load_share: The direction's share of the load, at most 1.
        lateness: Seconds by which the sender was behind at most; None: the generator does not report it.
        stretch: Seconds by which the traffic may have taken longer than the duration without unsent frames, because the
            generator does not report when it began and ended; None: it reports that.
        examined: Frames that came back and were examined byte by byte. If these are fewer than came back, the counts
            below are estimates for all frames. None: the generator examines none, or was not asked to.
        duplicated: Further copies of frames that were received.
        reordered: Received frames with a lower sequence number than one before them (RFC 4737, type-P-reordered).
        corrupted: Frames that came back with other contents.
        wrong_length: Frames that came back truncated or padded.
        misdelivered: Frames that came back with other addresses, and frames of other directions that arrived here.
        flows_with_loss: Flows of which a frame was lost or came back with a fault; None: the generator does not count
            flows.
        displacement: The most sequence numbers by which a frame was behind one before it; None: not known for every
            frame.
        extent: The most frames that had come from the first one with a higher number than a reordered frame on to that
            frame (RFC 4737, reordering extent); None: not known for every frame.
        late_offset: The longest time between these two arrivals (RFC 4737, late-time offset), in microseconds.
        latency_median: Median latency of all received frames, in microseconds; None: not known for every frame.
        latency_99: 99th percentile of these latencies, in microseconds.
        latency_most: The largest of them, in microseconds.
        jitter: Mean difference (absolute) between the latencies of successive frames (RFC 3393; RFC 5481 calls these
            differences IPDV), in microseconds.
        streams: Counters of its streams; empty: the generator does not count them.
    """

    name: str
    intended: int
    sent: int
    received: int
    unsent: int = 0
    generator_drops: int = 0
    late: int = 0
    elapsed: float | None = None
    load_share: float = 1.0
    lateness: float | None = None
    stretch: float | None = None
    examined: int | None = None
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0
    wrong_length: int = 0
    misdelivered: int = 0
    flows_with_loss: int | None = None
    displacement: int | None = None
    extent: int | None = None
    late_offset: float | None = None
    latency_median: float | None = None
    latency_99: float | None = None
    latency_most: float | None = None
    jitter: float | None = None
    streams: tuple[StreamCounters, ...] = ()

    @property
    def faulty(self) -> int:
        """Frames that came back with a fault. Reordered frames are not among them."""
        return self.duplicated + self.corrupted + self.wrong_length + self.misdelivered


@dataclass(frozen=True)
class Incident:
    """A change of the testbed that was seen around a trial.

    Attributes:
        guilty: The cause: ``TG``, ``wire``, ``DUT`` or ``controller``.
        node: The node, or both nodes of a link.
        interface: The interface, or both ends of a link; None: the node as a whole.
        change: What changed, in words.
        done: ``repaired`` or ``repeated``: the attempt was discarded; ``stands``: the trial counts.
    """

    guilty: str
    node: str
    interface: str | None
    change: str
    done: str


@dataclass(frozen=True)
class TrialOutput:
    """A measurer's answer. None means the RFC's default, or that only the loss ratio is known.

    Attributes:
        loss_ratio: Trial loss ratio, 0 to 1. If an early verdict ended the trial, it is a lower limit: the frames lost
            until then, as a share of those that the load and the whole duration ask for.
        effective_duration: Seconds that count towards a goal's duration sum; None: the trial's duration.
        elapsed: Seconds that the trial took in all, on the measurer's clock; None: the trial's duration.
            Controllers have no clock: they add this up.
        forwarding_rate: Trial forwarding rate per transmitting interface, frames per second (RFC 9971: load times
            forwarding ratio); None: exactly that.
        sent_frames: Frames sent, over all directions.
        lost_frames: Frames sent less frames received, summed per direction, so that one direction's surplus never
            hides another's loss.
        unsent_frames: Frames that the generator could not send, over all directions.
        repeats: Number of earlier attempts at this trial that were discarded, because their counters could not be
            trusted or the generator failed. Their time is part of `elapsed`.
        repairs: Failures of earlier attempts that say nothing about the SUT, such as a lost connection, and that were
            repaired before this attempt.
        incidents: Changes of the testbed around this trial and earlier attempts at it.
        directions: The counters of each direction.
        timelines: The course of each direction's traffic in time, for bursts and schedules; otherwise empty.
        decided_after: Seconds of traffic until an early verdict ended it, see `TrialInput.certain_above`; None: the
            trial took its whole duration.

    Raises:
        SearchError: If the loss ratio is not within 0 and 1, a time is negative, or the loss ratio is 0 although no
            frame was sent.
    """

    loss_ratio: float
    effective_duration: float | None = None
    elapsed: float | None = None
    forwarding_rate: float | None = None
    sent_frames: int | None = None
    lost_frames: int | None = None
    unsent_frames: int | None = None
    repeats: int = 0
    repairs: tuple[str, ...] = ()
    incidents: tuple[Incident, ...] = ()
    directions: tuple[DirectionCounters, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    decided_after: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.loss_ratio <= 1.0:
            raise SearchError(f"A trial loss ratio must be within 0 and 1, not {self.loss_ratio!r}.")
        for name in ("effective_duration", "elapsed", "decided_after"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise SearchError(f"A trial's {name} must not be negative or infinite, as {value!r} is.")
        if self.sent_frames == 0 and self.loss_ratio == 0.0:
            raise SearchError(
                "A trial that sent no frame has no loss ratio, so 0 is wrong. "
                "Raise the minimum load or the trial duration, so that each trial sends at least one frame."
            )


@dataclass(frozen=True)
class TrialResult:
    """A trial's input and output, with the RFC's defaults filled in by its properties."""

    input: TrialInput
    output: TrialOutput

    @property
    def duration(self) -> float:
        """Intended duration, in seconds."""
        return self.input.duration

    @property
    def load(self) -> float:
        """Intended load per transmitting interface, in frames per second."""
        return self.input.load

    @property
    def loss_ratio(self) -> float:
        """Trial loss ratio, 0 to 1."""
        return self.output.loss_ratio

    @property
    def is_early(self) -> bool:
        """Whether an early verdict ended the trial, so that its loss ratio is a lower limit."""
        return self.output.decided_after is not None

    @property
    def traffic_duration(self) -> float:
        """Seconds of traffic: the duration, or fewer where an early verdict ended it."""
        given = self.output.decided_after
        return self.input.duration if given is None else given

    @property
    def effective_duration(self) -> float:
        """Seconds that count towards a goal's duration sum."""
        given = self.output.effective_duration
        return self.input.duration if given is None else given

    @property
    def elapsed(self) -> float:
        """Seconds that the trial took in all."""
        given = self.output.elapsed
        return self.input.duration if given is None else given

    @property
    def forwarding_rate(self) -> float:
        """Trial forwarding rate per transmitting interface, in frames per second."""
        given = self.output.forwarding_rate
        return self.input.load * (1.0 - self.output.loss_ratio) if given is None else given


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Controller(Protocol[ResultT_co]):
    """A search algorithm: it chooses trials, and takes in their results.

    A controller is deterministic and has neither clock nor I/O, so the same results always lead to the same trials.
    It may have an attribute `purpose`: why it chose the last trial of `next_trial`. If `purpose` has an attribute
    `rule`, this is the name of the rule that chose the trial.
    """

    def next_trial(self) -> TrialInput | None:
        """The trial to measure next; None when the search is over. Asking again changes nothing."""

    def record(self, result: TrialResult) -> None:
        """Takes in a trial's result. The controller need not have asked for that trial."""

    def result(self) -> ResultT_co:
        """The conclusion so far, at any time; before the end it is marked as not finished."""


class Measurer(Protocol):
    """Performs trials."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            LossRatioError: If the trial could not be performed, or cannot be trusted.
        """


class TrialLog(Protocol):
    """Where `run_search` keeps results; `lossratio.trials.journal.Journal` is one."""

    @property
    def results(self) -> Iterable[TrialResult]:
        """Results of an earlier, interrupted run of the same search, in the order of their trials."""

    def append(self, result: TrialResult, purpose: str | None = None, rule: str | None = None) -> None:
        """Stores a result safely before it returns, with its trial's purpose in words, and the rule that chose it."""


def run_search(
    controller: Controller[ResultT_co],
    measurer: Measurer,
    *,
    journal: TrialLog | None = None,
    timeout: float | None = None,
    on_trial: Callable[[TrialResult], None] | None = None,
) -> ResultT_co:
    """Runs a search to its end, and returns the controller's result.

    The controller takes in the results of the journal first. Their trials are not measured again.

    Args:
        controller: Chooses the trials.
        measurer: Performs them.
        journal: Keeps each result before the next trial starts.
        timeout: No trial starts after this many seconds of trials on the measurer's clock, those of the journal
            included. The result is then marked as not finished.
        on_trial: Called with each newly measured result, after the controller has taken it in.

    Raises:
        LossRatioError: If the measurer raised it. All finished trials are in the journal then.
    """
    spent = 0.0
    for result in () if journal is None else journal.results:
        controller.next_trial()
        controller.record(result)
        spent += result.elapsed
    while timeout is None or spent < timeout:
        trial = controller.next_trial()
        if trial is None:
            break
        purpose = getattr(controller, "purpose", None)
        result = TrialResult(trial, measurer.measure(trial))
        if journal is not None:
            text = None if purpose is None else str(purpose)
            journal.append(result, purpose=text, rule=getattr(purpose, "rule", None))
        controller.record(result)
        spent += result.elapsed
        if on_trial is not None:
            on_trial(result)
    return controller.result()


@dataclass(frozen=True)
class LatencyCounters:
    """The one-way latency of one direction in one trial; microseconds, unless stated otherwise.

    A direction whose latency could not be measured has an `error`, and None for every latency.

    Attributes:
        name: The direction, e.g. ``port0>port1``.
        sent: Latency frames sent.
        received: Latency frames received, each counted once.
        out_of_order: Latency frames that arrived after one that was sent later.
        duplicates: Latency frames that arrived although they had arrived before.
        minimum: Smallest latency.
        average: Mean latency.
        maximum: Largest latency.
        jitter: Mean difference (absolute) between the latencies of successive frames: smoothed as in RFC 3550, or over
            the whole trial, as the generator reports it.
        hdr: All latencies in microseconds as an HdrHistogram, compressed and in base64; None where the generator gives
            a `histogram`.
        histogram: All latencies: the lower edge of each interval with the number of frames in it; empty where the
            generator gives an `hdr`, or the latencies could not be measured.
        resolution: Smallest difference of latencies that the generator distinguishes; the width of the histogram's
            intervals.
        error: Why the latency could not be measured; None if it could.
        middle: Latency of the first frame that was sent after the middle of the trial and came back; None: not known.
    """

    name: str
    sent: int
    received: int
    out_of_order: int
    duplicates: int
    minimum: float | None
    average: float | None
    maximum: float | None
    jitter: float | None
    resolution: float
    hdr: str | None = None
    histogram: tuple[tuple[float, int], ...] = ()
    error: str | None = None
    middle: float | None = None


@dataclass(frozen=True)
class LatencyOutput:
    """The output of one latency trial.

    Attributes:
        directions: The counters of all frames, those of the load and those for latency together.
        latency: The latency of each direction.
    """

    directions: tuple[DirectionCounters, ...]
    latency: tuple[LatencyCounters, ...]
