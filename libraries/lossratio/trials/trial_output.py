"""What a measurer answers: a trial's output, its counters, and what was observed around it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lossratio.errors import SearchError
from lossratio.trials.losses import Losses
from lossratio.trials.record import Frames, Observed, Seconds
from lossratio.trials.timeline import Timeline
from lossratio.values import checked


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
    """A field that had another value when a frame came back."""

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
    """Load times duration, even if the trial ended early. If a slow generator took longer, load times this longer
    time."""
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
    """Frames that came back, but were dropped by the generator itself; they are no evidence about the SUT."""
    late_frames: Frames = 0
    """Frames of the previous traffic (the previous trial, or an earlier attempt at this one) that came back after the
    wait for frames in flight. They do not belong to this trial. Its own late frames are in the trial, not in its
    directions."""
    earlier_late_frames: tuple[Frames, ...] = ()
    """The same for each earlier trial or attempt, newest first, as far back as the generator counts."""
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
    """How much longer than the duration the traffic may have taken. No frames count as unsent for this time, because
    the generator does not report when traffic begins and ends. None: the generator reports this."""
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
    """Frames that came back with other addresses, and frames of other directions that arrived here; they do not count
    as received."""
    changed_fields: tuple[ChangedField, ...] = ()
    """The first few fields of a frame that did not come back as they should; empty: not known."""
    flows_with_loss: Frames | None = None
    """Flows that lost a frame, or had a faulty one, in results of earlier versions; None: not known. See `losses`."""
    displacement_frames: Frames | None = None
    """The largest number of sequence numbers by which a frame was behind an earlier frame; None: not known for every
    frame."""
    extent_frames: Frames | None = None
    """The largest reordering extent (RFC 4737): how many arrivals before a reordered frame the first frame with a
    higher number came; None: not known for every frame."""
    late_offset_us: float | None = None
    """The longest time between the arrivals of these two frames (RFC 4737, late-time offset)."""
    latency_median_us: float | None = None
    """Median latency of all received frames; None: not known for every frame."""
    latency_99_us: float | None = None
    """99th percentile of these latencies."""
    latency_most_us: float | None = None
    """The largest of these latencies."""
    jitter_us: float | None = None
    """Mean absolute difference between the latencies of successive frames (RFC 3393; IPDV of RFC 5481)."""
    clock_error_us: float | None = None
    """The largest error of the latencies if cards stamp frames; None: they do not."""
    unanswered_frames: Frames | None = None
    """Lost frames that arrived but whose answer did not come back; None: frames are not answered."""
    left_frames: tuple[Frames, ...] = ()
    """Number of connections without a missing frame: after the first frames of all connections, after the answers, and
    so on. Empty: frames open no connections, or the generator does not report this."""
    rejection_frames: Frames | None = None
    """Frames with which a device rejected connections: TCP resets (RST), and ICMP "destination unreachable", at the
    port that opens the connections. Devices often limit their rate. None: the generator does not count them."""
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


BlamedSide = Literal["TG", "wire", "DUT", "controller"]
"""A part of the testbed where a change is seen, and which is to blame for it."""
Reaction = Literal["repaired", "repeated", "stands"]
"""What was done about a change. ``repaired`` or ``repeated``: the attempt was thrown away; ``stands``: it counts."""


@dataclass(frozen=True)
class Incident(Observed):
    """A change of the testbed that was observed around a trial."""

    guilty: BlamedSide
    """The part of the testbed that is to blame."""
    node: str
    """The node, or both nodes of a link."""
    interface: str | None
    """The interface, or both ends of a link; None: the whole node."""
    change: str
    """The change, in words."""
    done: Reaction
    """The consequence. ``repaired`` or ``repeated``: the attempt was thrown away; ``stands``: the attempt counts."""
    explained_frames: Frames = 0
    """Lost frames of the trial that the change may explain, because as many came while a DUT's program had no CPU."""
    way_out: str = ""
    """What helps against a cause that a counter named; empty: the cause is not so well known."""


@dataclass(frozen=True)
class QueueCounters(Observed):
    """The counters of a DUT's receive queue in one trial, if the device counts by queue the frames that it drops."""

    node: str
    """The DUT."""
    interface: str
    """The interface."""
    queue: int
    """Number of the queue."""
    frames: Frames
    """Frames that came in through it, with those that it dropped."""
    dropped_frames: Frames = 0
    """Frames that it dropped."""


@checked(SearchError)
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
    sent_frames: Frames | None = None
    """Frames sent, over all directions."""
    lost_frames: int | None = None
    """Frames sent minus frames received, summed per direction, so that one direction's surplus never hides another's
    loss."""
    unsent_frames: Frames | None = None
    """Frames that the generator could not send, over all directions."""
    late_frames: Frames | None = None
    """Lost frames that came back after the wait for frames in flight, over all directions: the SUT held them, and lost
    none of them. This is only known after the trial, so the journal and the result have it. None: not known."""
    repeats: Frames = 0
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
    queues: tuple[QueueCounters, ...] = ()
    """The counters of the DUTs' receive queues. Empty: no frame was lost, or the devices do not count the frames that
    each queue drops."""
    decided_after: float | None = None
    """Seconds of traffic until an early verdict ended it, see `TrialInput.certain_above`; None: there was none."""
    forgotten: float | None = None
    """Seconds that the device's own command to delete all connections then took; None: no such command was given."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.loss_ratio <= 1.0:
            raise SearchError(
                f"A trial loss ratio must be between 0 and 1, not {self.loss_ratio!r}."
            )

        for name in ("effective_duration", "elapsed", "decided_after"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise SearchError(
                    f"A trial's {name} must be a finite number of seconds, at least 0, not {value!r}."
                )

        if self.sent_frames == 0 and self.loss_ratio == 0.0:
            raise SearchError(
                "A trial that sent no frame has no loss ratio, not even 0. Raise the minimum load or the trial "
                "duration so that each trial sends at least one frame."
            )
