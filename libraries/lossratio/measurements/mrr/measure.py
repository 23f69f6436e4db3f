"""Maximum receive rate: trials at maximum load on a testbed, from the request to the result file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lossratio.errors import SearchError
from lossratio.measurements import (
    Measurement,
    OnProgress,
    PlannedKind,
    PlannedTrials,
    Request,
    TestPlace,
    measure,
)
from lossratio.measurements.mrr.result import (
    MRR_TRIAL_DURATION,
    MRR_TRIALS,
    MrrResult,
    mrr_contradictions,
    mrr_result,
)
from lossratio.results import MaxLoad, View
from lossratio.trials import Integrity, TrialInput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile


@dataclass(frozen=True)
class MrrRequest(Request):
    """The settings of a measurement of the maximum receive rate.

    Attributes:
        profile: The test traffic.
        max_load: The load of all trials, frames per second per interface; None: see `lossratio.testbed.loads`.
        trials: Number of trials.
        trial_duration: Seconds of each trial.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    max_load: float | None = None
    trials: int = MRR_TRIALS
    trial_duration: float = MRR_TRIAL_DURATION
    ramp: float = 0.0
    integrity: Integrity = Integrity.DOUBT
    rest: float = 0.0


class MaximumReceiveRate(PlannedKind[MrrRequest, MrrResult]):
    """The kind: maximum receive rate."""

    name = "mrr"
    algorithm = "MRR"
    result = MrrResult

    def controller(self, request: MrrRequest, loads: LoadRange) -> PlannedTrials:
        """Trials at the same load, as many as requested."""
        if request.trials < 1:
            raise SearchError(f"A measurement needs at least one trial, not {request.trials}.")
        return PlannedTrials([TrialInput(request.trial_duration, loads.max_load)] * request.trials)

    def inputs(self, request: MrrRequest, loads: LoadRange, controller: PlannedTrials) -> Mapping[str, Any]:
        """The load, and the trials."""
        return {
            "max_load_fps": loads.max_load,
            "trials": request.trials,
            "trial_duration_s": request.trial_duration,
        }

    def build(
        self,
        measured: Measurement[Any],
        request: MrrRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> MrrResult:
        """The maximum receive rate over all trials."""
        return mrr_result(measured.run, max_load, measured.entries)

    def contradictions(self, result: MrrResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Differences of the rate from that of the trials."""
        return mrr_contradictions(result, trials)

    def follows_from_trials(self, result: MrrResult) -> bool:
        """True: the trials are all that the result needs."""
        return True

    def view(self) -> View[MrrResult]:
        """How the maximum receive rate is shown."""
        from lossratio.measurements.mrr.view import MrrView

        return MrrView()


def measure_mrr(
    testbed: Testbed, request: MrrRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> MrrResult:
    """Measures the maximum receive rate, and writes the result file; see `lossratio.measurements.measure`."""
    return measure(MaximumReceiveRate(), testbed, request, place, on_progress)
