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
    """What every measurement is asked for; dataclasses of the kinds have more, and may leave out what has a default.

    Attributes:
        profile: What the traffic is.
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
        """What the console shows."""
        ...


RequestT = TypeVar("RequestT", bound=Request)
ResultT = TypeVar("ResultT", bound=TestResult)
ControllerT = TypeVar("ControllerT", bound=Controller[Any])
ProgressT = TypeVar("ProgressT", bound=InWords)


class MeasuredKind(Kind[ResultT], Generic[RequestT, ControllerT, ProgressT, ResultT]):
    """A kind whose trials one controller chooses; `measure` does the rest."""

    algorithm: ClassVar[str | None]

    @abstractmethod
    def controller(self, request: RequestT, loads: LoadRange) -> ControllerT:
        """Makes the controller.

        Args:
            request: What to measure.
            loads: Between which loads, frames per second per interface.

        Raises:
            SearchError: If the request makes no sense.
        """

    @abstractmethod
    def inputs(self, request: RequestT, loads: LoadRange, controller: ControllerT) -> Mapping[str, Any]:
        """What a journal may be continued with: all that the trials depend on, as JSON data, besides the traffic."""

    @abstractmethod
    def progress(self, request: RequestT, controller: ControllerT, trial: TrialResult) -> ProgressT:
        """Where the measurement is after a trial, in the controller's own words: no work that grows with the trials."""

    @abstractmethod
    def build(
        self, measured: Measurement[Any], request: RequestT, inputs: Mapping[str, Any], max_load: MaxLoad
    ) -> ResultT:
        """Makes the result, also where the measurement failed: ``measured.run.error`` says why then.

        Args:
            measured: The test, its trials, and what the controller concludes from them.
            request: What was to be measured.
            inputs: What `inputs` made of it.
            max_load: The largest load.
        """

    def remarks(self, request: RequestT, controller: ControllerT) -> Iterator[str]:
        """What a reader of the numbers should know besides."""
        yield from ()

    def watch(self) -> Callable[[TrialResult], None]:
        """A function that gets each trial of one measurement, and raises an error where going on makes no sense."""
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
        testbed: What to measure on.
        request: What to measure.
        place: Which test it is, and where its files go.
        on_progress: Called after each trial.

    Returns:
        The result, as it was written.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. In the latter case the result file
            says so, and holds the trials there were.
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
