"""System recovery (RFC 2544, section 26.5) on a testbed, from the request to the result file."""

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
    known_throughput,
    measure,
)
from lossratio.measurements.recovery.result import (
    RecoveryResult,
    RecoverySettings,
    recovery_result,
    recovery_values,
)
from lossratio.results import MaxLoad, View, differences
from lossratio.trials import Integrity, Step, TrialInput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

OVERLOAD_RATIO = 1.1
"""The overload over the throughput."""

OVERLOAD_DURATION = 60.0
"""Seconds of the overload, at least."""

RECOVERY_LIMIT = 10.0
"""Seconds after the change in which the DUT is watched. RFC 2544 has no limit."""

RECOVERY_REPEATS = 5
"""Number of repetitions. RFC 2544 wants a number of them, and names none."""

_SAME = 1e-9


@dataclass(frozen=True)
class RecoveryRequest(Request):
    """What to measure.

    Attributes:
        profile: The test traffic.
        throughput: The throughput without loss of the same traffic, frames per second per interface; None: not known.
        max_load: The largest load, frames per second per interface; None: the most that generator, links and NICs can
            do. The overload is not larger.
        repeats: Number of repetitions.
        overload_duration: Seconds of the overload.
        overload_ratio: The overload over the throughput.
        limit: Seconds after the change in which the DUT is watched.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    throughput: float | None = None
    max_load: float | None = None
    repeats: int = RECOVERY_REPEATS
    overload_duration: float = OVERLOAD_DURATION
    overload_ratio: float = OVERLOAD_RATIO
    limit: float = RECOVERY_LIMIT
    integrity: Integrity = Integrity.DOUBT
    rest: float = 0.0

    def overload(self, max_load: float) -> float:
        """The load of the overload, frames per second per interface; 0: there is none below the maximum load."""
        throughput = known_throughput(self.throughput)
        return 0.0 if throughput >= max_load * (1.0 - _SAME) else min(self.overload_ratio * throughput, max_load)


class Recovery(PlannedKind[RecoveryRequest, RecoveryResult]):
    """The kind: system recovery."""

    name = "recovery"
    algorithm = "system recovery"
    result = RecoveryResult

    def controller(self, request: RecoveryRequest, loads: LoadRange) -> PlannedTrials:
        """Trials of two steps without a gap; no trials where there is no overload."""
        _check(request)
        overload = request.overload(loads.max_load)
        if not overload:
            return PlannedTrials([])
        steps = Step(request.overload_duration, overload), Step(request.limit, overload / 2.0)
        return PlannedTrials([TrialInput.schedule(*steps)] * request.repeats)

    def inputs(self, request: RecoveryRequest, loads: LoadRange, controller: PlannedTrials) -> Mapping[str, Any]:
        """Loads and parameters."""
        return {
            "max_load_fps": loads.max_load,
            "throughput_fps": request.throughput,
            "settings": _settings(request).model_dump(mode="json"),
        }

    def build(
        self,
        measured: Measurement[Any],
        request: RecoveryRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> RecoveryResult:
        """The recovery times."""
        throughput = known_throughput(request.throughput)
        overload = request.overload(max_load.rate.per_interface_fps) or throughput
        return recovery_result(measured.run, max_load, throughput, overload, _settings(request), measured.entries)

    def contradictions(self, result: RecoveryResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Where the average does not follow from the repetitions."""
        if result.recovery is None:
            return
        if len(trials) != len(result.recovery.times):
            yield f"recovery: there are {len(result.recovery.times)} times and {len(trials)} trials"
        yield from differences(result.recovery, recovery_values(result.recovery.times), "recovery")

    def view(self) -> View[RecoveryResult]:
        """How the recovery time is shown."""
        from lossratio.measurements.recovery.view import RecoveryView

        return RecoveryView()


def measure_recovery(
    testbed: Testbed, request: RecoveryRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> RecoveryResult:
    """Measures system recovery, and writes the result file; see `lossratio.measurements.measure`."""
    return measure(Recovery(), testbed, request, place, on_progress)


def _check(request: RecoveryRequest) -> None:
    if request.repeats < 1:
        raise SearchError(f"System recovery needs a repetition at least, not {request.repeats}.")
    if request.overload_ratio <= 1.0:
        raise SearchError(f"An overload is above the throughput, and {request.overload_ratio:.4g} times it is not.")
    for name, seconds in (("overload_duration", request.overload_duration), ("limit", request.limit)):
        if seconds <= 0.0:
            raise SearchError(f"System recovery needs some seconds for {name}, not {seconds:g}.")


def _settings(request: RecoveryRequest) -> RecoverySettings:
    return RecoverySettings(
        overload_s=request.overload_duration,
        overload_ratio=request.overload_ratio,
        limit_s=request.limit,
        repeats=request.repeats,
    )
