"""Frame loss rate over load (RFC 2544, section 26.3) on a testbed, from the request to the result file."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.measurements import OnProgress, PlannedTrials, Progress, TestPlace, perform
from lossratio.measurements.frame_loss.build import frame_loss_result
from lossratio.mlrsearch import Forecast
from lossratio.results import FrameLossResult, ends_without_loss
from lossratio.testbed import Testbed, load_limits, load_range
from lossratio.traffic import TrafficProfile
from lossratio.trials import Integrity, TrialInput, TrialResult

LARGEST_STEP = 0.1
"""Share of the maximum load that loads may be apart at most, by RFC 2544."""

TRIAL_DURATION = 60.0
"""Seconds: the least duration of a trial by RFC 2544, section 24."""


@dataclass(frozen=True)
class FrameLossRequest:
    """What to measure.

    Attributes:
        profile: What the traffic is.
        max_load: The largest load, frames per second per interface; None: what the generator can send.
        step: How far loads are apart, as a share of the maximum load.
        trial_duration: Seconds of each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    max_load: float | None = None
    step: float = LARGEST_STEP
    trial_duration: float = TRIAL_DURATION
    integrity: Integrity = Integrity.DOUBT


def falling_loads(max_load: float, step: float, trial_duration: float) -> PlannedTrials:
    """Trials at ever smaller loads, until two in a row lose nothing.

    Args:
        max_load: The largest load, frames per second per interface.
        step: How far loads are apart, as a share of it.
        trial_duration: Seconds of each trial.

    Raises:
        SearchError: If the step is not above 0 and at most `LARGEST_STEP`.
    """
    if not 0.0 < step <= LARGEST_STEP:
        raise SearchError(
            f"The step must be above 0 % and at most {LARGEST_STEP:.0%} of the maximum load (RFC 2544, section "
            f"26.3), not {step:.4g}."
        )
    steps = round(1.0 / step)
    trials = [TrialInput(trial_duration, max_load * (steps - done) / steps) for done in range(steps)]
    return PlannedTrials(trials, ends_without_loss)


def measure_frame_loss_rate(
    testbed: Testbed, request: FrameLossRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> FrameLossResult:
    """Measures the frame loss rate from the maximum load downwards, and writes the result file.

    Returns:
        The result, as it was written.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. In the latter case the result file
            says so, and holds the trials there were.
    """
    loads = load_range(load_limits(testbed, request.profile), min_load=None, max_load=request.max_load)
    controller = falling_loads(loads.max_load, request.step, request.trial_duration)

    def tell(trial: TrialResult) -> None:
        if on_progress is not None:
            # Fewer if two loads in a row lose nothing before the last one.
            most = controller.remaining * trial.elapsed
            on_progress(Progress(controller.trials, trial, (), Forecast(most, 0.0, most)))

    measured = perform(
        controller,
        testbed,
        request.profile,
        place,
        inputs={
            "algorithm": "frame loss rate",
            "max_load_fps": loads.max_load,
            "step_ratio": request.step,
            "trial_duration_s": request.trial_duration,
        },
        remarks=loads.remarks,
        on_trial=tell,
        integrity=request.integrity,
    )
    result = frame_loss_result(measured.run, loads.describe(measured.run.conditions), measured.entries)
    place.directory.write(result)
    measured.raise_failure()
    return result
