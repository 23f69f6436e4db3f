"""Maximum receive rate, as FD.io CSIT defines it: the forwarding rate while the generator sends at maximum load."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, JsonValue

from lossratio import measurements
from lossratio.errors import SearchError
from lossratio.results import (
    USUAL,
    Conditions,
    Finding,
    MaxLoad,
    NoteKind,
    TestResult,
    View,
    are_lost_in_words,
    caveat,
    doubt,
    erratic,
    frames_in_words,
    headline,
    in_full,
    in_trials_of,
    kind_of,
    load_in_words,
    not_lost_in_words,
    numbers,
    offered_in,
    rate_in_words,
    size_in_words,
    unsent_share,
    value_line,
)
from lossratio.trials import TrialInput, TrialResult
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    FrameCount,
    Rate,
    Ratio,
    Record,
    Repeats,
    Seconds,
    counted,
    format_frame_rate,
    format_ratio,
    trials_counted,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange


MRR_TRIAL_DURATION = 1.0
"""Seconds of each trial of FD.io CSIT."""
NOTHING_LOST = "no frame was lost at maximum load: the SUT may forward more"
"""The caveat of a maximum receive rate that may not be the limit of the SUT."""


class MrrRequest(measurements.Request):
    """Measures the maximum receive rate, which is the rate that comes back at maximum load, and returns the result.

    Each trial gives one value: the number of forwarded frames divided by the actual time. The result contains all
    values, their mean and their standard deviation. Frames that the generator could not send are reported, and do not
    count as lost.

    | `Measure MRR`    frame_size=64B    profile=ethip4-udp
    """

    unused = frozenset({"min_load", "warm_up"})

    trials: Repeats = 10
    """Number of trials."""
    trial_duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = MRR_TRIAL_DURATION
    """Seconds of each trial."""


class MrrValue(Record):
    """The rate of one trial."""

    forwarding_rate: Rate
    """Frames forwarded in all directions, divided by the actual time; the rate per interface is the mean over the
    interfaces."""
    directions_fps: dict[str, float]
    """Frames forwarded in each direction, divided by the actual time of this direction; empty if not counted."""
    measured_time_s: Seconds
    """The actual time of the direction that took longest; the intended duration if it was not measured."""


class Mrr(Record):
    """The maximum receive rate."""

    values: tuple[MrrValue, ...] = Field(min_length=1)
    """One value for each trial."""
    mean: Rate
    """Mean of the values."""
    stdev: Rate
    """Population standard deviation of the values."""
    sent_frames: FrameCount | None
    """Frames sent in all trials; None: not counted."""
    lost_frames: FrameCount | None
    """Frames sent and not received in all trials; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send in all trials; they are no loss. None: not counted."""
    loss_ratio_of_sent: Ratio | None
    """Lost frames divided by sent frames."""


class MrrResult(measurements.FoundResult):
    """The result of a measurement of the maximum receive rate."""

    found = "mrr"
    kind: Literal["mrr"] = "mrr"
    max_load: MaxLoad
    """The load of all trials."""
    mrr: Mrr | None
    """The maximum receive rate; null if the measurement failed."""


def maximum_receive_rate(trials: Sequence[TrialResult], conditions: Conditions) -> Mrr:
    """Computes the maximum receive rate from trials.

    Raises:
        SearchError: If there are none, or their loads differ.
    """
    loads = sorted({trial.load for trial in trials})
    if len(loads) != 1:
        raise SearchError(
            f"A maximum receive rate needs trials at one load; these have the loads {loads}."
        )

    values = []
    factor = conditions.load.aggregate_factor
    for trial in trials:
        output = trial.output
        directions = trial.output.directions
        times = {direction.name: direction.elapsed_s or trial.duration for direction in directions}
        measured_time = max(times.values(), default=trial.duration)
        # Frames forwarded in all directions, counted as exactly as the measurer can.
        forwarded = trial.forwarding_rate * trial.duration * factor

        if directions:
            forwarded = sum(direction.received_frames for direction in directions)
        elif output.sent_frames is not None and output.lost_frames is not None:
            forwarded = max(0, output.sent_frames - output.lost_frames)

        values.append(
            MrrValue(
                forwarding_rate=conditions.rate(forwarded / measured_time / factor),
                directions_fps={
                    way.name: way.received_frames / times[way.name] for way in directions
                },
                measured_time_s=measured_time,
            )
        )

    rates = [value.forwarding_rate.per_interface_fps for value in values]
    counts = [
        (one.sent_frames, one.lost_frames, one.unsent_frames)
        for one in (trial.output for trial in trials)
    ]
    sent, lost, unsent = (
        None if None in count else sum(map(int, count)) for count in zip(*counts, strict=True)
    )
    loss_ratio = min(1.0, lost / sent) if sent and lost is not None else None
    return Mrr(
        values=tuple(values),
        mean=conditions.rate(statistics.fmean(rates)),
        stdev=conditions.rate(statistics.pstdev(rates)),
        sent_frames=sent,
        lost_frames=lost,
        unsent_frames=unsent,
        loss_ratio_of_sent=loss_ratio,
    )


class MaximumReceiveRate(measurements.PlannedKind[MrrRequest, MrrResult]):
    """The kind: maximum receive rate."""

    keyword = "Measure MRR"
    method = "mrr"
    noun = "MRR"

    def controller(self, request: MrrRequest, loads: LoadRange) -> measurements.PlannedTrials:
        """Trials at the same load, as many as requested.

        Raises:
            SearchError: If a trial would send too few frames for a rate.
        """
        if loads.max_load * request.trial_duration < FEWEST_FRAMES:
            raise SearchError(
                f"A trial of {request.trial_duration:g} s at the maximum load ({format_frame_rate(loads.max_load)} per "
                f"interface) sends fewer than {FEWEST_FRAMES} frames, too few for a rate. Give a longer "
                "trial_duration."
            )
        return measurements.PlannedTrials(
            [TrialInput(request.trial_duration, loads.max_load)] * request.trials
        )

    def found_in(self, result: MrrResult, trials: Sequence[TrialResult]) -> Mrr:
        """The maximum receive rate of the trials."""
        return maximum_receive_rate(trials, result.conditions)


FEWEST_FRAMES = 10
"""Frames that each trial must send at least. With fewer, one frame more or less changes the rate by more than 10 %."""
measure_mrr = partial(measurements.measure, MaximumReceiveRate())
MRR_LEAST_DEFICIT_RATIO = 0.03
"""An MRR that is below a throughput by at most this share of the throughput causes no doubt. Bursts in short trials
account for about 1 %."""

EVEN_DIRECTIONS_RATIO = 0.01
"""Directions whose rates differ by at most this share of their mean forward about the same."""


@headline
def _found(result: MrrResult) -> Iterator[str]:
    """What is forwarded at the maximum load."""
    mrr, offered = result.mrr, result.max_load.rate.per_interface_fps
    if mrr is None:
        return

    forwarded = _forwarded_in_words(mrr, result.conditions)
    load = load_in_words(offered, offered_in(result.trials))
    found = f"MRR: forwards {forwarded} at the maximum load of {load}"
    found += in_trials_of(result.trials)
    if mrr.loss_ratio_of_sent is None:
        yield f"{found}."
        return

    lost = f"{format_ratio(mrr.loss_ratio_of_sent)} of the frames sent {are_lost_in_words(result.trials)}"
    if mrr.lost_frames == 0:
        yield f"{found}: no frame is lost; the SUT may forward more."
    else:
        yield f"{found}: {lost}."


@numbers
def _numbers(result: MrrResult) -> Iterator[str]:
    """Mean, standard deviation, all values, and the loss."""
    if result.mrr is None:
        return

    offered = result.max_load.rate.per_interface_fps
    trials = f"{trials_counted(len(result.mrr.values))} at maximum load, {in_full(offered)}"
    yield f"MRR ({trials}): frames forwarded over the actual time"
    yield value_line("mean", result.mrr.mean)
    if len(result.mrr.values) > 1:
        yield value_line("standard deviation", result.mrr.stdev)
    values = " ".join(
        rate_in_words(value.forwarding_rate.per_interface_fps) for value in result.mrr.values
    )
    yield value_line("values", f"{values} fps per interface")
    loss = "not counted"
    unsent = result.mrr.unsent_frames

    if result.mrr.loss_ratio_of_sent is not None:
        loss = f"{format_ratio(result.mrr.loss_ratio_of_sent)} of the frames sent"
        apart = not_lost_in_words(result.trials, of_sent=True)
        loss += f"; {apart}" if apart else ""
        if unsent is not None:
            loss += f"; {counted(unsent, 'frame')} unsent, which does not count as loss"

    yield value_line("loss", loss)


@caveat
def _caveat(result: MrrResult) -> Iterator[str]:
    """The caveat that the SUT may be able to forward more."""
    if result.mrr is not None and result.mrr.lost_frames == 0:
        yield NOTHING_LOST


@doubt(
    NoteKind.MRR_BELOW_PDR,
    f"The MRR is more than {format_ratio(MRR_LEAST_DEFICIT_RATIO)}, and more than its standard "
    "deviation, below a throughput that another test of the run measured at a smaller "
    "load.",
    is_of_run=True,
)
def _below_throughput(result: MrrResult, results: Sequence[TestResult]) -> Iterator[str]:
    """Less is forwarded at maximum load than at a smaller load."""
    mrr = result.mrr
    offered = result.max_load.rate.per_interface_fps
    if mrr is None:
        return

    # Frames that the generator did not send say nothing against the SUT.
    sent_share = 1.0 - unsent_share(offered_in(result.trials))
    most = mrr.mean.per_interface_fps + mrr.stdev.per_interface_fps
    others = [other for other in results if _setup(other) == _setup(result)]
    below = [rate for other in others for rate in kind_of(other.kind).rates_below(other)]

    for name, throughput in below:
        # At a load below the throughput, the forwarding rate cannot reach the throughput.
        least = (1.0 - MRR_LEAST_DEFICIT_RATIO) * throughput * sent_share
        if throughput <= offered and most < least:
            yield (
                f"{format_frame_rate(mrr.mean.per_interface_fps)} per interface are forwarded at maximum load, "
                f"which is less than the {name} of {format_frame_rate(throughput)}: the SUT degrades under "
                "overload. Do not compare this MRR with others"
            )
            return


@doubt(
    NoteKind.MEMORY,
    "Every trial lost frames, although the device passed shorter trials at this load before, and lost none.",
)
def _used_up(result: MrrResult) -> Iterator[str]:
    """The device loses frames at a load that it passed before the first trial."""
    lost = [trial.missing.lost_by_sut for trial in result.evidence]
    if result.passed_before is not None and lost and all(lost):
        yield (
            f"each trial lost frames. But {result.passed_before}: look for what is used up, such as credits, a table "
            "or a license, or for a buffer that shorter trials do not fill"
        )


ResultT = TypeVar("ResultT", bound=measurements.FoundResult)


class MaximumRateView(View[ResultT], ABC):
    """The view of a rate at the maximum load: the mean of the trials, and their standard deviation."""

    has_value = True
    csit_type = "mrr"

    def values(self, result: ResultT) -> Mapping[str, Any]:
        """The mean, and its standard deviation, which a single trial does not show."""
        values = dict(super().values(result))
        if len(result.evidence) == 1:
            values.pop("deviation", None)
        return values

    def aspects(self, result: ResultT, finding: Finding) -> Mapping[str, JsonValue]:
        """The load, and the trials' durations, because bursts change the forwarding rate of short trials."""
        durations = {trial.duration_s for trial in result.evidence}
        return {
            "goal": {"load_per_interface_fps": result.max_load.rate.per_interface_fps},
            "trial duration": [*sorted(durations)],
        }

    def csit(self, result: ResultT) -> dict[str, Any]:
        """The rates of all trials, with mean and standard deviation.

        Raises:
            CsitExportError: If there are no rates, or trials last longer or shorter than CSIT's.
        """
        found: Any = getattr(result, result.found)
        if found is None or any(trial.duration_s != MRR_TRIAL_DURATION for trial in result.trials):
            raise measurements.CsitExportError(
                f"{result.test.full_name} cannot be exported as CSIT's MRR: its trials must last "
                f"{MRR_TRIAL_DURATION:g} s (trial_duration)."
            )
        return {"type": "mrr", "receive_rate": self.received(found)}

    @abstractmethod
    def received(self, found: Any) -> dict[str, Any]:
        """The rates in CSIT's form.

        Args:
            found: The record with all numbers.
        """


class MrrView(MaximumRateView[MrrResult]):
    """The view of a maximum receive rate."""

    quantity = "MRR"
    value_fields = MappingProxyType({"value": "mean", "deviation": "stdev"})
    value_name = "mean of an MRR with its standard deviation"
    rules = (_found, _numbers, _below_throughput, _used_up, erratic, _caveat, *USUAL)

    def received(self, found: Mrr) -> dict[str, Any]:
        """Frames and bits per second."""

        def samples(name: str, unit: str) -> dict[str, Any]:
            values = [getattr(value.forwarding_rate, name) for value in found.values]
            return {
                "values": values,
                "avg": getattr(found.mean, name),
                "stdev": getattr(found.stdev, name),
                "unit": unit,
            }

        return {
            "rate": samples("aggregate_fps", "pps"),
            "bandwidth": samples("aggregate_l1_bps", "bps"),
        }


def _forwarded_in_words(mrr: Mrr, conditions: Conditions) -> str:
    """The mean rate, with the rate of each direction if they differ: then it is not what is forwarded each way."""
    mean = mrr.mean.per_interface_fps
    ways = {
        name: statistics.fmean(value.directions_fps.get(name, 0.0) for value in mrr.values)
        for name in dict.fromkeys(name for value in mrr.values for name in value.directions_fps)
    }
    is_even = set(conditions.load.shares_ratio) != {1.0} or (
        max(ways.values(), default=mean) - min(ways.values(), default=mean)
        <= EVEN_DIRECTIONS_RATIO * mean
    )
    if is_even:
        return rate_in_words(mean, frames_in_words(conditions))
    each = ", ".join(f"{name}: {rate_in_words(rate)}" for name, rate in ways.items())
    frames = f"frames/s of {size_in_words(conditions)}"
    return f"{rate_in_words(mean, frames)} per interface on average ({each})"


def _setup(result: TestResult) -> tuple[Any, ...]:
    conditions = result.conditions
    return conditions.testbed.name, conditions.traffic, conditions.duts
