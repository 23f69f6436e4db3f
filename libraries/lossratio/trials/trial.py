"""Trials, and the two sides of a search.

A search has two sides (RFC 9971): a *controller* that chooses trials and draws conclusions, and a *measurer* that
performs them. Neither knows the other; `lossratio.trials.search` carries trials and results between them.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from lossratio.errors import SearchError
from lossratio.trials.losses import Losses
from lossratio.trials.record import Frames, Observed, Seconds
from lossratio.trials.timeline import Step, Timeline, check_traffic


def sendable(load: float, step: float) -> float:
    """The nearest load that a generator can send.

    Args:
        load: Frames per second.
        step: The generator sends multiples of this load, in frames per second; 0: any load.
    """
    if step:
        return max(1, round(load / step)) * step
    return load


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_ANSWERS = ("opened", "again", "unasked")


@dataclass(frozen=True)
class Exchange:
    """The traffic over each connection that a frame has opened: answers, data, and an end.

    Raises:
        SearchError: If a value makes no sense.
    """

    answer_ratio: float = 1.0
    """Rate of all frames but the first ones, as a multiple of the load (RFC 9693, alpha)."""
    data_frames: int = 0
    """Number of further frames in each direction, one after the other."""
    closing: str | None = None
    """How TCP connections end: ``fin`` or ``rst``; None: they stay open."""
    established: bool = False
    """Whether devices already have all of these connections and keep them, so that their throughput is measured."""
    is_complete: bool = False
    """Whether all are opened and answered, however late, because their number matters, and not their rate."""
    answers: str = "opened"
    """What is answered: connections that are opened first; or none are opened, and the first answer is sent ``again``
    over the connections of the previous exchange, or comes ``unasked``, from ports to which no connection was
    opened."""

    def __post_init__(self) -> None:
        if not _is_number(self.answer_ratio) or not 0.0 < self.answer_ratio < math.inf:
            raise SearchError(
                f"The answer_ratio must be a positive, finite number, not {self.answer_ratio!r}."
            )
        if type(self.data_frames) is not int or self.data_frames < 0:
            raise SearchError(
                f"data_frames must be a whole number, at least 0, not {self.data_frames!r}."
            )
        if self.closing not in (None, "fin", "rst"):
            raise SearchError(f"closing must be 'fin', 'rst' or None, not {self.closing!r}.")

        if type(self.established) is not bool or type(self.is_complete) is not bool:
            raise SearchError(
                "established and is_complete must be True or False, not "
                f"{self.established!r} or {self.is_complete!r}."
            )
        if self.answers not in _ANSWERS:
            raise SearchError(
                f"answers must be 'opened', 'again' or 'unasked', not {self.answers!r}."
            )

    @property
    def end_of_tcp(self) -> Literal["established", "time_wait", "close"]:
        """The state of TCP connections afterwards, as the kernel names it."""
        if self.closing is None:
            return "established"
        if self.closing == "fin":
            return "time_wait"
        return "close"

    def passes(self, *, is_tcp: bool) -> int:
        """How often a frame goes over each connection."""
        ending = {None: 0, "rst": 1, "fin": 3}[self.closing] if is_tcp else 0
        return 2 + is_tcp + 2 * self.data_frames + ending

    def rounds(self, *, is_tcp: bool) -> float:
        """How many times as long as the first frames all frames together take."""
        return 1.0 + (self.passes(is_tcp=is_tcp) - 1) / self.answer_ratio


@dataclass(frozen=True)
class TrialInput(Observed):
    """One trial that a controller requests (RFC 9971, RFC 2544 section 23).

    A trial is one load for a duration, unless it is a `burst` or a `schedule`. These two have timelines in their
    output.

    Raises:
        SearchError: If a value is not a positive, finite number, `certain_above` is not a ratio below 1, or they
            contradict each other.
    """

    duration: float
    """Intended duration of the traffic, in seconds."""
    load: float
    """Intended constant load per transmitting interface, in frames per second. In a schedule, the mean load."""
    frames: int | None = None
    """Frames of a burst per transmitting interface; all of them are sent. None: the trial is not a burst."""
    steps: tuple[Step, ...] = ()
    """The steps of a schedule, which follow each other without a gap. Empty: the trial is not a schedule."""
    certain_above: float | None = None
    """The trial may end as soon as its loss ratio is certain to be above this one (an early verdict); None: it takes
    its whole duration. A measurer may ignore it."""
    rest: float = 0.0
    """Minimum seconds without traffic before the trial, in addition to the testbed's; they are part of the trial's
    time."""
    exchange: Exchange | None = None
    """If given, each frame opens a connection, over which this exchange follows; None: frames are not answered."""
    keeps_unsent: bool = False
    """Whether frames that the generator leaves unsent are no reason to repeat the trial, as what it asks does not
    depend on a few of them. They are counted in any case."""

    def __post_init__(self) -> None:
        check_traffic("A trial", self.duration, self.load)
        if self.certain_above is not None and not (
            0.0 <= self.certain_above < 1.0 and not self.has_timelines
        ):
            raise SearchError(
                f"A trial's certain_above must be at least 0 and below 1, not {self.certain_above!r}; a burst or a "
                "schedule has none."
            )

        sums = [] if self.frames is None else [float(self.frames)]
        if self.steps:
            sums.append(sum(step.duration * step.load for step in self.steps))
        if len(sums) == 2 or any(
            not math.isclose(total, self.duration * self.load, rel_tol=1e-9) for total in sums
        ):
            raise SearchError(
                f"A trial of {self.duration:.10g} s at {self.load:.10g} frames/s does not have {self.frames} frames or "
                f"these steps: {self.steps}. Make it with TrialInput.burst or TrialInput.schedule."
            )

    @classmethod
    def burst(cls, frames: int, load: float) -> "TrialInput":
        """Frames of a burst at a load (RFC 9004), each per transmitting interface.

        Args:
            frames: Number of frames.
            load: Frames per second.

        Raises:
            SearchError: If one of them is not positive.
        """
        if frames < 1:
            raise SearchError(f"A burst needs at least one frame, not {frames}.")
        return cls(frames / load if load > 0 else math.nan, load, frames=frames)

    @classmethod
    def schedule(cls, *steps: Step) -> "TrialInput":
        """Steps of load that follow each other without a gap.

        Raises:
            SearchError: If there are none.
        """
        if not steps:
            raise SearchError("A schedule needs at least one step.")
        duration = sum(step.duration for step in steps)
        return cls(
            duration, sum(step.duration * step.load for step in steps) / duration, steps=steps
        )

    def sendable(self, step: float) -> "TrialInput":
        """The same trial with the nearest loads that a generator can send; see the function `sendable`.

        Args:
            step: The generator sends multiples of this load, in frames per second; 0: any load.
        """
        if not step:
            return self
        if self.steps:
            return TrialInput.schedule(
                *(replace(each, load=sendable(each.load, step)) for each in self.steps)
            )
        load = sendable(self.load, step)
        return replace(
            self, load=load, duration=self.duration if self.frames is None else self.frames / load
        )

    @property
    def parts(self) -> tuple[Step, ...]:
        """The steps of a schedule; any other trial is a single step."""
        return self.steps or (Step(self.duration, self.load),)

    @property
    def has_timelines(self) -> bool:
        """Whether the trial is a burst or a schedule, whose losses are located in time."""
        return self.frames is not None or bool(self.steps)


@dataclass(frozen=True)
class StreamCounters(Observed):
    """The counters of one stream of a direction in one trial, if the generator counts its streams."""

    frame_size_bytes: int
    """Size of its frames, with FCS."""
    sent_frames: Frames
    """Frames that left the generator."""
    received_frames: Frames
    """Frames that came back, including further copies."""
    duplicated_frames: Frames | None = None
    """Further copies; None: frames of this stream have no numbers."""
    out_of_order_frames: Frames | None = None
    """Frames with a lower number than an earlier frame."""
    too_high_frames: Frames | None = None
    """Frames with a higher number than the one expected, i.e. after a gap."""
    too_low_frames: Frames | None = None
    """Frames with a lower number than the one expected, including copies and late frames."""


@dataclass(frozen=True)
class StreamFrames(Observed):
    """The frames of one of the profile's streams in a direction, in one trial."""

    name: str
    """Name of the stream."""
    sent_frames: Frames
    """Its frames that left the generator."""
    received_frames: Frames
    """Its frames that came back in time."""


@dataclass(frozen=True)
class ChangedField(Observed):
    """A field that a frame came back with another value of."""

    name: str
    """The field's name, with its header's: ``IPv4 DSCP``."""
    before: str
    """The value that it should have had."""
    after: str
    """The value that it had when the frame came back."""

    @property
    def in_words(self) -> str:
        """Its values."""
        return f"{self.before} before, {self.after} after"


@dataclass(frozen=True)
class DirectionCounters(Observed):
    """The counters of one direction of the traffic in one trial."""

    name: str
    """The direction, e.g. ``port0>port1``."""
    intended_frames: Frames
    """The frames that belong to the load and the duration, even if the trial ended early. If a slow generator took
    longer, the frames that belong to the load in that time."""
    sent_frames: Frames
    """Frames that left the generator."""
    received_frames: Frames
    """Frames of this trial that came back to the generator in time and intact, each counted once (RFC 2544, section
    10). Duplicated, corrupted, wrong_length and misdelivered frames are not included."""
    unsent_frames: Frames = 0
    """Intended frames that the generator could not send in time; they are no evidence about the SUT. Frames that were
    due only after an early end do not count."""
    refused_frames: Frames = 0
    """Unsent frames for which the generator's port, or the ring of a virtual link, had no room."""
    generator_drop_frames: Frames = 0
    """Frames that came back and that the generator itself dropped; they are no evidence about the SUT."""
    late_frames: Frames = 0
    """Frames of the previous traffic (the previous trial, or an earlier attempt at this one) that came back after the
    wait for frames in flight. They do not belong to this trial, whose own late frames are in the trial, not in its
    directions."""
    earlier_late_frames: tuple[Frames, ...] = ()
    """The same for each earlier traffic, newest first, as far back as the generator counts."""
    foreign_frames: Frames | None = None
    """Frames that came out of the testbed and belong to no trial: they come from other senders, have a foreign
    payload, or are further copies of earlier frames. None: the generator cannot distinguish them."""
    load_ratio: float = 1.0
    """The direction's share of the load, at most 1."""
    elapsed_s: Seconds | None = None
    """Time from the direction's start to its stop; None: not measured."""
    lateness_s: Seconds | None = None
    """The longest delay of the sender because its machine stalled; None: the generator does not report it."""
    stretch_s: Seconds | None = None
    """Time by which the traffic may have been longer than the duration without unsent frames, because the generator
    does not report its beginning and end. None: the generator reports them."""
    examined_frames: Frames | None = None
    """Frames that came back and were examined byte by byte. If only a part was examined, the counts below are estimates
    for all frames that came back. None: no frames were examined."""
    duplicated_frames: Frames = 0
    """Further copies of received frames; they do not count as received."""
    reordered_frames: Frames = 0
    """Received frames with a lower sequence number than an earlier received frame (RFC 4737, type-P-reordered)."""
    corrupted_frames: Frames = 0
    """Frames that came back with other contents; they do not count as received."""
    wrong_length_frames: Frames = 0
    """Frames that came back truncated or padded; they do not count as received."""
    misdelivered_frames: Frames = 0
    """Frames that came back with other addresses, and frames of other directions that arrived here; both do not count
    as received."""
    changed_fields: tuple[ChangedField, ...] = ()
    """The first few fields of a frame that did not come back as they should; empty: not known."""
    flows_with_loss: Frames | None = None
    """Flows that lost a frame, or had a faulty one; None: the generator does not count flows."""
    displacement_frames: Frames | None = None
    """The largest number of sequence numbers by which a frame was behind an earlier frame; None: not known for every
    frame."""
    extent_frames: Frames | None = None
    """The largest reordering extent (RFC 4737): for a reordered frame, the frames that had arrived since the first one
    with a higher number; None: not known for every frame."""
    late_offset_us: float | None = None
    """The longest time between the arrivals of these two frames (RFC 4737, late-time offset)."""
    latency_median_us: float | None = None
    """Median latency of all received frames; None: not known for every frame."""
    latency_99_us: float | None = None
    """99th percentile of these latencies."""
    latency_most_us: float | None = None
    """The largest of these latencies."""
    jitter_us: float | None = None
    """Mean difference (absolute) between the latencies of successive frames (RFC 3393; IPDV of RFC 5481)."""
    clock_error_us: float | None = None
    """The largest error of these times if cards stamp frames; None: they do not."""
    unanswered_frames: Frames | None = None
    """Lost frames that arrived but whose answer did not come back; None: frames are not answered."""
    left_frames: tuple[Frames, ...] = ()
    """Connections without a missing frame, after each pass over all of them: the first frames, their answers, and so
    on. Empty: frames open no connections, or the generator does not report this."""
    rejection_frames: Frames | None = None
    """Frames with which a device rejected connections: TCP resets (RST), and ICMP "destination unreachable", that came
    to the port that opens them. Devices often limit their rate. None: the generator does not count them."""
    streams: tuple[StreamCounters, ...] = ()
    """Counters of its streams; empty: the generator does not count them."""
    by_stream: tuple[StreamFrames, ...] = ()
    """The frames of each stream of the traffic profile. Empty: there is only one, or it is not known to which streams
    the missing frames belong, because frames came back faulty or the generator dropped some."""
    losses: Losses | None = None
    """What its lost frames have in common. None: no frame was lost, or it is not known which ones."""

    @property
    def lost(self) -> int:
        """Frames sent minus frames received: a surplus is negative."""
        return self.sent_frames - self.received_frames

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The names without a unit, which users' suites and scripts have: ``received`` is ``received_frames``."""
            for unit in ("_frames", "_s", "_us"):
                if (full := name + unit) in self.__dataclass_fields__:
                    return getattr(self, full)
            raise AttributeError(f"a {type(self).__name__} has no {name!r}")

    @property
    def faulty(self) -> int:
        """Frames that came back with a fault. Reordered frames are not among them."""
        return (
            self.duplicated_frames
            + self.corrupted_frames
            + self.wrong_length_frames
            + self.misdelivered_frames
        )


@dataclass(frozen=True)
class Incident(Observed):
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


@dataclass(frozen=True)
class TrialOutput(Observed):
    """A measurer's answer. None means the RFC's default, or that only the loss ratio is known.

    Raises:
        SearchError: If the loss ratio is not within 0 and 1, a time is negative, or the loss ratio is 0 although no
            frame was sent.
    """

    loss_ratio: float
    """Trial loss ratio, 0 to 1. If an early verdict ended the trial, it is a lower limit: the frames lost until then,
    as a share of those that the load and the whole duration ask for."""
    effective_duration: float | None = None
    """Seconds that count towards a goal's duration sum; None: the trial's duration."""
    elapsed: float | None = None
    """Seconds that the trial took in total, on the measurer's clock; None: the trial's duration. Controllers have no
    clock: they add this up."""
    forwarding_rate: float | None = None
    """Trial forwarding rate per transmitting interface, frames per second (RFC 9971: load times forwarding ratio);
    None: exactly that."""
    sent_frames: int | None = None
    """Frames sent, over all directions."""
    lost_frames: int | None = None
    """Frames sent minus frames received, summed per direction, so that one direction's surplus never hides another's
    loss."""
    unsent_frames: int | None = None
    """Frames that the generator could not send, over all directions."""
    late_frames: Frames | None = None
    """Lost frames that came back after the wait for frames in flight, over all directions: the SUT held them, and lost
    none of them. This is only known after the trial, so the journal and the result have it. None: not known."""
    repeats: int = 0
    """Number of earlier attempts at this trial that were discarded, because their counters could not be trusted or the
    generator failed. Their time is part of `elapsed`."""
    repairs: tuple[str, ...] = ()
    """Failures of earlier attempts that say nothing about the SUT and were repaired, such as a lost connection."""
    incidents: tuple[Incident, ...] = ()
    """Changes of the testbed around this trial and earlier attempts at it."""
    directions: tuple[DirectionCounters, ...] = ()
    """The counters of each direction."""
    timelines: tuple[Timeline, ...] = ()
    """The course of each direction's traffic in time, for bursts and schedules; otherwise empty."""
    decided_after: float | None = None
    """Seconds of traffic until an early verdict ended it, see `TrialInput.certain_above`; None: there was none."""
    forgotten: float | None = None
    """Seconds that the device's own command to delete all connections then took; None: no such command was given."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.loss_ratio <= 1.0:
            raise SearchError(
                f"A trial loss ratio must be within 0 and 1, not {self.loss_ratio!r}."
            )

        for name in ("effective_duration", "elapsed", "decided_after"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise SearchError(
                    f"A trial's {name} must not be negative or infinite, as {value!r} is."
                )

        if self.sent_frames == 0 and self.loss_ratio == 0.0:
            raise SearchError(
                "A trial that sent no frame has no loss ratio, not even 0. Raise the minimum load or the trial "
                "duration so that each trial sends at least one frame."
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
        """Seconds of traffic: the duration, or less if an early verdict ended it."""
        if self.output.decided_after is None:
            return self.input.duration
        return self.output.decided_after

    @property
    def effective_duration(self) -> float:
        """Seconds that count towards a goal's duration sum."""
        if self.output.effective_duration is None:
            return self.input.duration
        return self.output.effective_duration

    @property
    def elapsed(self) -> float:
        """Seconds that the trial took in total."""
        if self.output.elapsed is None:
            return self.input.duration
        return self.output.elapsed

    def of_stream(self, name: str) -> "TrialResult":
        """The same trial for one of the profile's streams, with the loss ratio of that stream's frames alone.

        Unsent frames are divided among the streams in the same proportion as sent frames, and rounded up.

        Raises:
            SearchError: If it is not known how many frames of the stream came back.
        """
        if self.is_early:
            raise SearchError("A trial that an early verdict ended does not say what streams lost.")
        sent = lost = unsent = 0
        counted = [direction for direction in self.output.directions if direction.by_stream]
        for direction in counted:
            total = max(1, sum(stream.sent_frames for stream in direction.by_stream))
            for stream in direction.by_stream:
                if stream.name == name:
                    sent += stream.sent_frames
                    lost += abs(stream.sent_frames - stream.received_frames)
                    not_offered = direction.unsent_frames - direction.refused_frames
                    unsent += -(-max(0, not_offered) * stream.sent_frames // total)

        if not sent:
            raise SearchError(
                f"The trial at {self.load:.10g} frames/s does not say how many frames of the stream {name!r} came "
                "back. Look at its counters: the profile must have such a stream, and frames that came back changed or "
                "twice make it unknown (with integrity=off they do not)."
            )

        output = TrialOutput(
            min(1.0, (lost + unsent) / (sent + unsent)),
            effective_duration=self.output.effective_duration,
            elapsed=self.output.elapsed,
            sent_frames=sent,
            lost_frames=lost,
            unsent_frames=unsent,
            repeats=self.output.repeats,
        )
        return TrialResult(self.input, output)

    @property
    def forwarding_rate(self) -> float:
        """Trial forwarding rate per transmitting interface, in frames per second."""
        rate = self.output.forwarding_rate
        if rate is None:
            return self.input.load * (1.0 - self.output.loss_ratio)
        return rate


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Controller(Protocol[ResultT_co]):
    """A search algorithm: it chooses trials, and takes in their results.

    A controller is deterministic and has neither clock nor I/O, so the same results always lead to the same trials.
    It may have a method `meanwhile`, which `run_search` calls in a thread while a trial runs: it computes what the next
    choice needs, and changes nothing. It may have an attribute `purpose`: why it chose the last trial of `next_trial`.
    If `purpose` has an attribute `rule`, this is the name of the rule that chose the trial.
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
            LossRatioError: If it could not be performed, or cannot be trusted.
        """
