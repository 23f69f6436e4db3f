"""Maximum receive rate: the forwarding rate while the generator sends at maximum load.

FD.io CSIT's definition: ten trials of 1 s at maximum load; each value is the number of frames forwarded over the time
really spent; mean and population standard deviation. Frames that the generator could not send do not change the rate;
they are reported, and are no loss.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from lossratio.errors import SearchError
from lossratio.measurements import Measurement, PlannedKind, PlannedTrials, Request, measure
from lossratio.quantities import Duration, Repeats
from lossratio.records import FrameCount, Rate, Ratio, Record, Seconds
from lossratio.results import Conditions, MaxLoad, Outcome, TestResult, differences
from lossratio.trials import TrialInput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange

MRR_TRIAL_DURATION = 1.0
"""Seconds of each trial of FD.io CSIT."""

NOTHING_LOST = "no frame was lost at maximum load: the SUT may forward more than this"
"""The remark on a maximum receive rate that the SUT did not limit."""


class MrrRequest(Request):
    """Measures the maximum receive rate: what comes back at maximum load, and returns the result.

    Each trial gives a value, the frames forwarded over the time really spent; the result has all of them, their mean
    and their standard deviation. Frames that the generator could not send are reported, and are no loss.

    | `Measure MRR`    frame_size=64B    profile=ethip4-udp
    """

    unused = frozenset({"min_load", "warm_up"})

    trials: Repeats = 10
    """Number of trials."""
    trial_duration: Annotated[Duration, Field(gt=0.0)] = MRR_TRIAL_DURATION
    """Seconds of each trial."""


class MrrValue(Record):
    """The rate of one trial."""

    forwarding_rate: Rate
    """Frames forwarded in all directions over the time really spent; per interface is the mean over the interfaces."""
    directions_fps: dict[str, float]
    """Frames forwarded in each direction over the time that this direction really spent; empty if not counted."""
    measured_time_s: Seconds
    """The time really spent: that of the direction that took longest; the intended duration if it was not measured."""


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
    """Lost frames over sent frames."""


class MrrResult(TestResult):
    """The result of a measurement of the maximum receive rate."""

    kind: Literal["mrr"] = "mrr"
    """The kind of the result."""
    max_load: MaxLoad
    """The load of all trials."""
    mrr: Mrr | None
    """The maximum receive rate; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_rate(self) -> MrrResult:
        if (self.outcome is Outcome.FAILED) != (self.mrr is None):
            raise ValueError("a maximum receive rate is missing if and only if the measurement failed")
        return self


def maximum_receive_rate(trials: Sequence[TrialResult], conditions: Conditions) -> Mrr:
    """Computes the maximum receive rate from trials at maximum load.

    Args:
        trials: The trials.
        conditions: The conditions of the trials.

    Raises:
        SearchError: If there are no trials, or their loads differ.
    """
    loads = sorted({trial.load for trial in trials})
    if len(loads) != 1:
        raise SearchError(f"A maximum receive rate needs trials, all at one load; these have the loads {loads}.")
    values = tuple(_value(trial, conditions) for trial in trials)
    rates = [value.forwarding_rate.per_interface_fps for value in values]
    sent = _total([trial.output.sent_frames for trial in trials])
    lost = _total([trial.output.lost_frames for trial in trials])
    return Mrr(
        values=values,
        mean=conditions.rate(statistics.fmean(rates)),
        stdev=conditions.rate(statistics.pstdev(rates)),
        sent_frames=sent,
        lost_frames=lost,
        unsent_frames=_total([trial.output.unsent_frames for trial in trials]),
        loss_ratio_of_sent=min(1.0, lost / sent) if sent and lost is not None else None,
    )


def _value(trial: TrialResult, conditions: Conditions) -> MrrValue:
    times = {direction.name: direction.elapsed_s or trial.duration for direction in trial.output.directions}
    measured_time = max(times.values(), default=trial.duration)
    forwarded = _forwarded(trial, conditions.load.aggregate_factor)
    return MrrValue(
        forwarding_rate=conditions.rate(forwarded / measured_time / conditions.load.aggregate_factor),
        directions_fps={
            direction.name: direction.received_frames / times[direction.name] for direction in trial.output.directions
        },
        measured_time_s=measured_time,
    )


def _forwarded(trial: TrialResult, factor: float) -> float:
    """Frames forwarded in all directions, as exactly as the measurer counts them."""
    output = trial.output
    if output.directions:
        return sum(direction.received_frames for direction in output.directions)
    if output.sent_frames is not None and output.lost_frames is not None:
        return max(0, output.sent_frames - output.lost_frames)
    return trial.forwarding_rate * trial.duration * factor


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


class MaximumReceiveRate(PlannedKind[MrrRequest, MrrResult]):
    """The kind: maximum receive rate."""

    name = "mrr"
    title = "Measuring MRR"
    algorithm = "MRR"
    request = MrrRequest
    result = MrrResult

    def controller(self, request: MrrRequest, loads: LoadRange) -> PlannedTrials:
        """Trials at the same load, as many as requested."""
        return PlannedTrials([TrialInput(request.trial_duration, loads.max_load)] * request.trials)

    def build(
        self, measured: Measurement[Any], request: MrrRequest, inputs: Mapping[str, Any], max_load: MaxLoad
    ) -> MrrResult:
        """The maximum receive rate over all trials.

        Raises:
            SearchError: If there is no trial although the run has no error.
        """
        mrr, run = None, measured.run
        if run.error is None:
            mrr = maximum_receive_rate([entry.result for entry in measured.entries], run.conditions)
        remarks = (NOTHING_LOST,) if mrr is not None and mrr.lost_frames == 0 else ()
        return MrrResult(**measured.stated(max_load, None, *remarks), mrr=mrr)

    def contradictions(self, result: MrrResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Where the rate does not follow from the trials."""
        if result.mrr is not None:
            yield from differences(result.mrr, maximum_receive_rate(trials, result.conditions), "mrr")

    def follows_from_trials(self, result: MrrResult) -> bool:
        """True: the trials are all that the result needs."""
        return True


measure_mrr = partial(measure, MaximumReceiveRate())
