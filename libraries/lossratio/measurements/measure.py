"""The one way through a measurement: from the request, by a controller's trials, to the result file."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from lossratio.measurements.measurement import Measurement, TestPlace, perform
from lossratio.measurements.warm_up import WarmUp, run_warm_up
from lossratio.mlrsearch import SearchGoalWarning
from lossratio.results import Kind, MaxLoad, TestResult
from lossratio.trials import Controller, Integrity, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile


class Request:
    """The settings of every measurement; a kind's own dataclass adds more, and may give defaults.

    Attributes:
        profile: The test traffic.
        max_load: Largest load per interface, frames per second; None: the smallest limit of the testbed.
        min_load: Smallest load per interface; None: see `lossratio.testbed.loads.load_range`.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        warm_up: A warm-up at maximum load with traffic of its own, before the first trial; None: there is none.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    max_load: float | None = None
    min_load: float | None = None
    ramp: float = 0.0
    warm_up: WarmUp | None = None
    integrity: Integrity = Integrity.DOUBT


class InWords(Protocol):
    """Where a measurement is after a trial."""

    def line(self) -> str:
        """The line that the console shows."""
        ...


RequestT = TypeVar("RequestT", bound=Request)
ResultT = TypeVar("ResultT", bound=TestResult)
ControllerT = TypeVar("ControllerT", bound=Controller[Any])
ProgressT = TypeVar("ProgressT", bound=InWords)


class MeasuredKind(Kind[ResultT], Generic[RequestT, ControllerT, ProgressT, ResultT]):
    """A kind whose trials are chosen by one controller; `measure` does the rest."""

    algorithm: ClassVar[str | None]

    @abstractmethod
    def controller(self, request: RequestT, loads: LoadRange) -> ControllerT:
        """Makes the controller.

        Args:
            request: What to measure.
            loads: The smallest and the largest load, frames per second per interface.

        Raises:
            SearchError: If the request makes no sense.
        """

    @abstractmethod
    def inputs(self, request: RequestT, loads: LoadRange, controller: ControllerT) -> Mapping[str, Any]:
        """The settings that trials depend on, besides the traffic, as JSON data: a continued journal has the same."""

    @abstractmethod
    def progress(self, request: RequestT, controller: ControllerT, trial: TrialResult) -> ProgressT:
        """The progress after a trial, as the controller sees it. This work must not grow with the number of trials."""

    @abstractmethod
    def build(
        self, measured: Measurement[Any], request: RequestT, inputs: Mapping[str, Any], max_load: MaxLoad
    ) -> ResultT:
        """Makes the result, also of a measurement that failed: ``measured.run.error`` has the reason then.

        Args:
            measured: The test, its trials, and the controller's conclusion from them.
            request: The settings of the measurement.
            inputs: The answer of `inputs` for this request.
            max_load: The largest load.
        """

    def remarks(self, request: RequestT, controller: ControllerT) -> Iterator[str]:
        """Further remarks for the reader of the numbers."""
        yield from ()

    def watch(self) -> Callable[[TrialResult], None]:
        """A function that gets each trial of one measurement, and raises an error when more trials make no sense."""
        return lambda _: None


def measure(
    kind: MeasuredKind[RequestT, ControllerT, ProgressT, ResultT],
    testbed: Testbed,
    request: RequestT,
    place: TestPlace,
    on_progress: Callable[[ProgressT], None] | None = None,
) -> ResultT:
    """Measures, and writes the result file.

    Args:
        kind: The kind of measurement.
        testbed: The testbed.
        request: What to measure.
        place: The test, and the directory of its files.
        on_progress: Called after each trial.

    Returns:
        The result, as it was written.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. After a failure, the result file
            has the error and the trials that were measured.
    """
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.testbed import load_limits, load_range

    limits = load_limits(testbed, request.profile)
    loads = load_range(limits, min_load=request.min_load, max_load=request.max_load)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SearchGoalWarning)
        controller = kind.controller(request, loads)
    inputs = {"algorithm": kind.algorithm, **kind.inputs(request, loads, controller)}
    advice = (*(str(warning.message) for warning in caught), *kind.remarks(request, controller))
    if request.warm_up is not None:
        advice = (*advice, run_warm_up(testbed, request.warm_up, loads.max_load))
    watch = kind.watch()

    def after(trial: TrialResult) -> None:
        if on_progress is not None:
            on_progress(kind.progress(request, controller, trial))
        watch(trial)

    measured: Measurement[Any] = perform(
        controller,
        testbed,
        request.profile,
        place,
        inputs=inputs,
        remarks=(*loads.remarks, *advice),
        on_trial=after,
        ramp=request.ramp,
        integrity=request.integrity,
    )
    result = kind.build(measured, request, inputs, loads.describe(measured.run.conditions))
    place.directory.write(result)
    measured.raise_failure()
    return result
