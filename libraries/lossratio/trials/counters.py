"""A trial's counters, for every generator: its loss ratio, the integrity of its frames, and their latency.

Integrity: each frame comes back once, and as it was sent (RFC 2544, section 10). A receiver counts all frames, and
examines some or all of them; both become counters here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, get_args

from lossratio.errors import DutError, TrafficError
from lossratio.trials.changed_fields import LOOK_AT_DUT, LOOK_FOR_COPIES, changes_in_words
from lossratio.trials.record import Frames, Microseconds, Observed
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import ChangedField, DirectionCounters, TrialOutput


@dataclass(frozen=True)
class OneWayLatency(Observed):
    """The one-way latency of one direction in one trial.

    A direction whose latency was not measured has an error, and None for every latency; any other combination is a
    `ValueError`.
    """

    direction: str
    """The direction, e.g. ``port0>port1``."""
    sent_frames: Frames
    """Latency frames sent."""
    received_frames: Frames
    """Latency frames received, each counted once."""
    out_of_order_frames: Frames
    """Latency frames that arrived after one that was sent later."""
    duplicate_frames: Frames
    """Further copies of latency frames that arrived."""
    least_us: Microseconds | None
    """Smallest latency."""
    mean_us: Microseconds | None
    """Mean latency."""
    most_us: Microseconds | None
    """Largest latency."""
    jitter_us: Microseconds | None
    """Mean difference (absolute) between the latencies of successive frames, the mean of RFC 5481's IPDV: smoothed as
    in RFC 3550, or over the whole trial, as the generator reports it."""
    resolution_us: float
    """Smallest difference of latencies that the generator can measure; the minimum width of the histogram's
    intervals."""
    error: str | None
    """Why the latency was not measured; None if it was."""
    middle_us: Microseconds | None = None
    """Latency of the first frame that was sent after the middle of the trial and came back: the single tagged frame of
    RFC 2544, section 26.2; None: the generator does not report it."""
    clock_error_us: Microseconds = 0.0
    """By how much each latency may be wrong because the ends are machines with separate clocks, in microseconds, as
    chrony on these machines states; 0: both times come from one clock."""

    def __post_init__(self) -> None:
        if (self.error is None) != (None not in (self.least_us, self.mean_us, self.most_us)):
            raise ValueError("a direction has either all latencies (least, mean, most) or an error")


@dataclass(frozen=True, kw_only=True)
class LatencyCounters(OneWayLatency):
    """The one-way latency of one direction, as a generator measured it."""

    hdr: str | None
    """All latencies in microseconds as an HdrHistogram, compressed and in base64; None if the generator gives a
    `histogram`."""
    histogram: tuple[tuple[float, int], ...]
    """All latencies: a value of each interval in microseconds, with the number of its frames; empty if the generator
    gives an `hdr`, or the latencies could not be measured."""
    interval_ratio: float = 0.0
    """Width of the histogram's intervals as a share of the latency, if this width is larger."""
    by_stream: tuple["StreamLatencyCounters", ...] = ()
    """The latency of each stream of the traffic profile; empty: it has no streams, or the generator does not report
    them."""


@dataclass(frozen=True, kw_only=True)
class StreamLatencyCounters(LatencyCounters):
    """The one-way latency of a stream in one direction."""

    stream: str
    """The stream's name."""


@dataclass(frozen=True)
class LatencyOutput:
    """The output of one latency trial."""

    directions: tuple[DirectionCounters, ...]
    """The counters of all frames, both of the load and for latency."""
    latency: tuple[LatencyCounters, ...]
    """The latency of each direction."""


IN_FLIGHT = 20e-6
"""Seconds of traffic that may initially be in flight in a running trial, and do not count as lost yet. If an early
verdict proves wrong because more frames were in flight, more are allowed for: see `TrafficMeasurer`."""
START_TOLERANCE = 10e-6
"""Seconds by which a generator's workers may start late without their frames counting as unsent."""
MOST_EXCESS = 0.05
"""Share of the intended frames by which a generator may exceed them. With more frames, the load was not the requested
load."""
_FEW_FRAMES = 10
_ROUNDING = 1e-15
"""Largest rounding error of a loss ratio that was computed as 1 minus the share of received frames."""
NegativeLoss = Literal["retry", "csit"]
"""The policy for a direction that received more than it sent. ``retry`` refuses the trial, so that it is measured
again. ``csit`` counts the surplus as loss, as FD.io CSIT does, and refuses only a trial with a loss ratio above 1."""


class CountersError(TrafficError):
    """A trial's counters contradict each other, or give no loss ratio. Measuring the trial again is no remedy."""


class NegativeLossError(CountersError):
    """More frames were received than sent: foreign or duplicated frames. The trial may be measured again."""


def output_from_counters(
    trial: TrialInput,
    directions: Sequence[DirectionCounters],
    *,
    tolerance: float = START_TOLERANCE,
    negative_loss: NegativeLoss = "retry",
    effective_duration: float | None = None,
    elapsed: float | None = None,
    decided_after: float | None = None,
) -> TrialOutput:
    """Computes a trial's output from the counters of its directions.

    Per direction, ``expected = max(sent, ceil((duration - tolerance) * load * share))``, where `share` is the
    direction's share of the load, ``unsent = expected - sent`` and ``lost = sent - received``. Only then are the sums
    taken: ``loss ratio = (|lost| + unsent) / expected``. So unsent frames count against the load, and one direction's
    surplus never hides another's loss.

    A slow generator may transmit for longer than the duration. Then more frames were intended than the load and the
    duration require, and all of them are expected, because late frames were not sent at the load. Frames that the
    generator received and dropped itself did not come back: they are in ``lost``, and have a separate counter. The same
    holds for frames that came back damaged. Copies of frames do not make up for lost ones: see `with_examination`.

    If an early verdict ended the trial, the loss ratio is a lower limit: ``|lost| / intended``. The generator knows
    which frames were due until then, so its ``unsent`` stands. The forwarding rate is the rate of the frames sent.

    Args:
        trial: The requested trial.
        directions: The counters of each direction.
        tolerance: Seconds of traffic that may be missing without counting as unsent.
        negative_loss: The policy for a direction that received more than it sent.
        effective_duration: Seconds that count towards a goal's duration sum; None: the trial's
            duration.
        elapsed: Total seconds that the trial took; None: the trial's duration.
        decided_after: Seconds of traffic until an early verdict ended the trial; None: no verdict did.

    Raises:
        NegativeLossError: If the policy refuses the trial because a direction received more than it sent.
        CountersError: If no frames were expected, a count is negative, or the generator sent more than it should.
        ValueError: If the policy is unknown.
    """
    if negative_loss not in get_args(NegativeLoss):
        raise ValueError(
            f"negative_loss must be one of {', '.join(get_args(NegativeLoss))}, not {negative_loss!r}."
        )
    if not directions:
        raise CountersError(
            "The trial has no loss ratio because it has no counters. Transmit on at least one port."
        )

    is_early = decided_after is not None
    due = (each.sent_frames + each.unsent_frames for each in directions)
    if is_early:
        least = due
    else:
        least = (_least_expected(trial, each, tolerance) for each in directions)

    counted = tuple(map(_checked, directions, least))
    total = _Total.of(counted, is_early=is_early)
    surplus = any(direction.received_frames > direction.sent_frames for direction in counted)
    if surplus and (negative_loss == "retry" or total.loss_ratio > 1.0):
        in_words = "; ".join(
            f"{one.name}: sent {one.sent_frames}, received {one.received_frames}" for one in counted
        )
        raise NegativeLossError(
            f"More frames were received than sent at {trial.load:.10g} frames/s for {trial.duration:.6g} s "
            f"({in_words}). Look for foreign or duplicated frames on these links, and for a device that holds "
            "frames until the next trial."
        )

    forwarding_rate = None
    if is_early:
        forwarding_rate = trial.load * (1.0 - min(1.0, total.lost / total.sent))

    return TrialOutput(
        loss_ratio=total.loss_ratio,
        effective_duration=effective_duration,
        elapsed=elapsed,
        forwarding_rate=forwarding_rate,
        sent_frames=total.sent,
        lost_frames=total.lost,
        unsent_frames=total.unsent,
        directions=counted,
        decided_after=decided_after,
    )


def contradictions(output: TrialOutput) -> Iterator[str]:
    """Checks the numbers of a trial's output against each other.

    Yields:
        A message for each number that contradicts another one.
    """
    given = {
        name: getattr(output, name) for name in ("sent_frames", "lost_frames", "unsent_frames")
    }
    places = [("", {**given, "repeats": output.repeats})]
    places += [(f"{direction.name}.", vars(direction)) for direction in output.directions]
    for place, counts in places:
        yield from (f"{place}{name} is negative: {count}" for name, count in _negative(counts))
    lost = output.lost_frames
    if output.late_frames and lost is not None and output.late_frames > lost:
        yield f"late_frames is {output.late_frames}, and {lost} frames were lost"
    is_early = output.decided_after is not None

    if output.directions:
        total = _Total.of(output.directions, is_early=is_early)
        for name, summed in zip(given, (total.sent, total.lost, total.unsent), strict=True):
            if given[name] not in (None, summed):
                yield f"{name} is {given[name]}, but the directions' counters add up to {summed}"
    elif not is_early and output.sent_frames is not None and output.lost_frames is not None:
        unsent = output.unsent_frames or 0
        total = _Total(output.sent_frames, output.lost_frames, unsent, output.sent_frames + unsent)
    else:
        return

    if total.whole > 0 and not math.isclose(
        output.loss_ratio, total.loss_ratio, rel_tol=1e-9, abs_tol=_ROUNDING
    ):
        yield f"loss_ratio is {output.loss_ratio}, but the counted frames give {total.loss_ratio}"


def _negative(counts: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    return (
        (name, count)
        for name, count in counts.items()
        if isinstance(count, int | float) and count < 0
    )


@dataclass(frozen=True)
class _Total:
    """Frames of all directions of a trial."""

    sent: int
    lost: int
    unsent: int
    whole: int
    """The denominator of the loss ratio: the frames of the whole duration, even if the trial ended early."""
    is_early: bool = False

    @classmethod
    def of(cls, directions: Sequence[DirectionCounters], *, is_early: bool) -> "_Total":
        sent = sum(direction.sent_frames for direction in directions)
        lost = sum(abs(direction.lost) for direction in directions)
        unsent = sum(direction.unsent_frames for direction in directions)
        whole = sent + unsent
        if is_early:
            whole = sum(direction.intended_frames for direction in directions)
        return cls(sent, lost, unsent, whole, is_early)

    @property
    def loss_ratio(self) -> float:
        if self.is_early:
            # Frames that were not sent might still have been sent if the trial had gone on.
            return self.lost / self.whole
        return (self.lost + self.unsent) / self.whole


def _least_expected(trial: TrialInput, direction: DirectionCounters, tolerance: float) -> int:
    load = trial.load * direction.load_ratio
    # A generator that takes longer intends more frames. The last of them may be a fraction.
    duration = max(trial.duration, (direction.intended_frames - 1) / load)
    # The product's rounding error must not make ceil() expect one more frame.
    return math.ceil(max(0.0, duration - tolerance) * load * (1.0 - 1e-12))


def _checked(direction: DirectionCounters, least_expected: int) -> DirectionCounters:
    negative = [f"{name} is {count}" for name, count in _negative(vars(direction))]
    if negative:
        raise CountersError(
            f"Counts of {direction.name} are negative: {', '.join(negative)}. "
            "Its generator cannot be trusted: restart it, and measure again."
        )
    if direction.sent_frames - direction.intended_frames > max(
        _FEW_FRAMES, MOST_EXCESS * direction.intended_frames
    ):
        raise CountersError(
            f"The generator was to send {direction.intended_frames} frames in direction {direction.name} but sent "
            f"{direction.sent_frames}: the load was higher than intended. Look for other traffic on this port."
        )

    expected = max(direction.sent_frames, least_expected)
    if expected == 0:
        raise CountersError(
            f"Direction {direction.name} has no loss ratio because no frames were expected. Make the trial longer "
            "or the load higher."
        )
    checked = replace(direction, unsent_frames=expected - direction.sent_frames)
    if checked.faulty or checked.generator_drop_frames:
        return replace(checked, by_stream=())
    return checked


class Integrity(str, Enum):
    """The policy for a DUT that duplicates, corrupts, truncates, pads or misdelivers frames.

    Such frames never count as received, unless the policy is ``off``.
    """

    DOUBT = "doubt"
    """The result stands, and carries the doubt with its size."""
    FAIL = "fail"
    """The measurement fails, because this is a fault of the DUT."""
    OFF = "off"
    """Frames are not examined: for a DUT that changes them on purpose, such as one that translates addresses."""


class IntegrityError(DutError):
    """A DUT duplicates, corrupts, truncates, pads or misdelivers frames, and the policy is ``fail``.

    Args:
        message: What happened, and the way out.
        is_explained: Whether the message says what to look for, so that examining single frames would add nothing.
    """

    def __init__(self, message: str, *, is_explained: bool = False) -> None:
        super().__init__(message)
        self.is_explained = is_explained


@dataclass(frozen=True)
class Examination(Observed):
    """The frames that the receiver of a direction examined in one trial, and the faults among them."""

    examined: Frames
    """Frames that were examined byte by byte: all that arrived, or a sample of sequence numbers."""
    duplicated: Frames = 0
    """Further copies, among the examined ones."""
    latency_copies: Frames = 0
    """Further copies of latency frames, among all that arrived: these frames are counted by number, but not
    examined."""
    reordered: Frames = 0
    """Frames with a lower sequence number than an earlier frame, among the examined ones."""
    corrupted: Frames = 0
    """Frames with other contents, among the examined ones."""
    readdressed: Frames = 0
    """Frames with other IP addresses, among the examined ones."""
    wrong_length: Frames = 0
    """Frames of another length, among all that arrived."""
    wrong_mac: Frames = 0
    """Frames with another destination MAC address, among all that arrived."""
    strayed: Frames = 0
    """Frames of other directions that arrived here. They are not part of the frames that arrived."""
    changed: tuple[ChangedField, ...] = ()
    """The first few fields of one of the faulty frames that came back with other values."""
    has_foreign: bool = False
    """Whether foreign frames may be among those that arrived, so that surplus ones are not copies."""


def with_examination(counters: DirectionCounters, examination: Examination) -> DirectionCounters:
    """The counters of a direction without the frames that must not count as received.

    If only a sample was examined, its faults are scaled up to all frames, and rounded up. If all frames carry the
    trial's tag, frames beyond the number sent are always copies.
    """
    arrived, examined = counters.received_frames, examination.examined

    def of_all(faults: int) -> int:
        if examined:
            return -(-faults * max(arrived - examination.latency_copies, examined) // examined)
        return faults

    counted = replace(
        counters,
        examined_frames=examined,
        duplicated_frames=of_all(examination.duplicated) + examination.latency_copies,
        reordered_frames=of_all(examination.reordered),
        corrupted_frames=of_all(examination.corrupted),
        wrong_length_frames=examination.wrong_length,
        misdelivered_frames=of_all(examination.readdressed) + examination.wrong_mac,
        changed_fields=examination.changed,
    )
    intact = max(0, arrived - counted.faulty)
    surplus = 0 if examination.has_foreign else max(0, intact - counters.sent_frames)
    # Frames that strayed are all known. If nothing else was examined, that stays visible.
    return replace(
        counted,
        examined_frames=examined and examined + examination.strayed,
        received_frames=intact - surplus,
        duplicated_frames=counted.duplicated_frames + surplus,
        misdelivered_frames=counted.misdelivered_frames + examination.strayed,
    )


def check_integrity(directions: Sequence[DirectionCounters], where: str) -> None:
    """Checks that each frame came back once, and as it was sent.

    Raises:
        IntegrityError: If a frame did not.
    """
    faulty = [
        f"{direction.name}: {faults_in_words(direction)}"
        for direction in directions
        if direction.faulty
    ]
    if faulty:
        changes = changes_in_words(
            {direction.name: direction.changed_fields for direction in directions}
        )
        seen = "; ".join(faulty)
        if all(direction.faulty == direction.duplicated_frames for direction in directions):
            text = f"Frames came back more than once, {where}: {seen}. {LOOK_FOR_COPIES}"
            raise IntegrityError(text, is_explained=True)

        text = f"Frames came back changed, {where}: {seen}. {changes or LOOK_AT_DUT}"
        raise IntegrityError(text, is_explained=bool(changes))


def faults_in_words(counters: DirectionCounters) -> str:
    """The faults of a direction's frames in words, e.g. ``31 duplicated, 4 corrupted``.

    If only a sample was examined: ``about 31 duplicated, about 4 corrupted (estimated from 16,384 frames examined)``.
    """
    is_sample = 0 < (counters.examined_frames or 0) < counters.received_frames + counters.faulty
    faults = {
        fault: getattr(counters, f"{fault}_frames")
        for fault in ("duplicated", "corrupted", "misdelivered")
    }
    examined = ", ".join(
        f"{'about ' * is_sample}{count:,} {fault}" for fault, count in faults.items() if count
    )
    if is_sample and examined:
        estimate = f" (estimated from {counters.examined_frames:,} frames examined)"
    else:
        estimate = ""

    if counters.wrong_length_frames:
        known = f"{counters.wrong_length_frames:,} truncated or padded"
    else:
        known = ""

    return ", ".join(part for part in (known, examined + estimate) if part)
