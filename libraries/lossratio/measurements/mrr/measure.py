"""Maximum receive rate: trials at maximum load on a testbed, from the request to the result file."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.measurements import OnProgress, PlannedTrials, Progress, TestPlace, perform
from lossratio.mlrsearch import Forecast
from lossratio.results import MRR_TRIAL_DURATION, MRR_TRIALS, MrrResult, mrr_result
from lossratio.testbed import Testbed, load_limits, load_range
from lossratio.traffic import TrafficProfile
from lossratio.trials import Integrity, TrialInput, TrialResult


@dataclass(frozen=True)
class MrrRequest:
    """What to measure.

    Attributes:
        profile: What the traffic is.
        max_load: The load of all trials, frames per second per interface; None: see `lossratio.testbed.loads`.
        trials: How many trials.
        trial_duration: Seconds of each.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    max_load: float | None = None
    trials: int = MRR_TRIALS
    trial_duration: float = MRR_TRIAL_DURATION
    ramp: float = 0.0
    integrity: Integrity = Integrity.DOUBT


def measure_mrr(
    testbed: Testbed, request: MrrRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> MrrResult:
    """Measures the maximum receive rate, and writes the result file.

    Returns:
        The result, as it was written.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. In the latter case the result file
            says so, and holds the trials there were.
    """
    if request.trials < 1:
        raise SearchError(f"A measurement needs at least one trial, not {request.trials}.")
    loads = load_range(load_limits(testbed, request.profile), min_load=None, max_load=request.max_load)
    controller = PlannedTrials([TrialInput(request.trial_duration, loads.max_load)] * request.trials)

    def tell(trial: TrialResult) -> None:
        if on_progress is not None:
            time_left = controller.remaining * controller.elapsed / controller.trials
            on_progress(Progress(controller.trials, trial, (), Forecast(time_left, time_left, time_left)))

    measured = perform(
        controller,
        testbed,
        request.profile,
        place,
        inputs={
            "algorithm": "MRR",
            "max_load_fps": loads.max_load,
            "trials": request.trials,
            "trial_duration_s": request.trial_duration,
        },
        remarks=loads.remarks,
        on_trial=tell,
        ramp=request.ramp,
        integrity=request.integrity,
    )
    result = mrr_result(measured.run, loads.describe(measured.run.conditions), measured.entries)
    place.directory.write(result)
    measured.raise_failure()
    return result
