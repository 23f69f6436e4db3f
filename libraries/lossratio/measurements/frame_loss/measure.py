"""Frame loss rate over load (RFC 2544, section 26.3) on a testbed, from the request to the result file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lossratio.errors import SearchError
from lossratio.measurements import (
    MeasuredKind,
    Measurement,
    OnProgress,
    PlannedTrials,
    Progress,
    Request,
    TestPlace,
    measure,
)
from lossratio.measurements.frame_loss.result import (
    FrameLossResult,
    ends_without_loss,
    frame_loss_contradictions,
    frame_loss_result,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import MaxLoad, View
from lossratio.trials import Integrity, TrialInput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

LARGEST_STEP = 0.1
"""The largest distance of successive loads that RFC 2544 allows, as a share of the maximum load."""

TRIAL_DURATION = 60.0
"""Seconds: the least duration of a trial by RFC 2544, section 24."""


@dataclass(frozen=True)
class FrameLossRequest(Request):
    """The settings of a measurement of the frame loss rate.

    Attributes:
        profile: The test traffic.
        max_load: The largest load, frames per second per interface; None: the most that the generator can send.
        step: Distance of successive loads, as a share of the maximum load.
        trial_duration: Seconds of each trial.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    max_load: float | None = None
    step: float = LARGEST_STEP
    trial_duration: float = TRIAL_DURATION
    integrity: Integrity = Integrity.DOUBT
    rest: float = 0.0


def falling_loads(max_load: float, step: float, trial_duration: float) -> PlannedTrials:
    """Trials at ever smaller loads, until two in a row lose nothing.

    Args:
        max_load: The largest load, frames per second per interface.
        step: Distance of successive loads, as a share of the maximum load.
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


class FrameLossRate(MeasuredKind[FrameLossRequest, PlannedTrials, Progress, FrameLossResult]):
    """The kind: frame loss rate over load."""

    name = "frame_loss"
    algorithm = "frame loss rate"
    result = FrameLossResult

    def controller(self, request: FrameLossRequest, loads: LoadRange) -> PlannedTrials:
        """Trials from the maximum load downwards."""
        return falling_loads(loads.max_load, request.step, request.trial_duration)

    def inputs(self, request: FrameLossRequest, loads: LoadRange, controller: PlannedTrials) -> Mapping[str, Any]:
        """The loads, and the duration."""
        return {
            "max_load_fps": loads.max_load,
            "step_ratio": request.step,
            "trial_duration_s": request.trial_duration,
        }

    def progress(self, request: FrameLossRequest, controller: PlannedTrials, trial: TrialResult) -> Progress:
        """The time left is that of all trials that may follow; it is less if two loads in a row lose nothing before."""
        most = controller.remaining * trial.elapsed
        return Progress(
            controller.trials,
            trial,
            (),
            Forecast(most, 0.0, most),
            elapsed=controller.elapsed,
            following=controller.next_trial(),
        )

    def build(
        self,
        measured: Measurement[Any],
        request: FrameLossRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> FrameLossResult:
        """The loss at each load."""
        return frame_loss_result(measured.run, max_load, measured.entries)

    def contradictions(self, result: FrameLossResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Differences of the frame loss rate from that of the trials."""
        return frame_loss_contradictions(result, trials)

    def follows_from_trials(self, result: FrameLossResult) -> bool:
        """True: the trials are all that the result needs."""
        return True

    def view(self) -> View[FrameLossResult]:
        """How the frame loss rate is shown."""
        from lossratio.measurements.frame_loss.view import FrameLossView

        return FrameLossView()


def measure_frame_loss_rate(
    testbed: Testbed, request: FrameLossRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> FrameLossResult:
    """Measures the frame loss rate, and writes the result file; see `lossratio.measurements.measure`."""
    return measure(FrameLossRate(), testbed, request, place, on_progress)
