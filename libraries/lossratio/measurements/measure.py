"""How every measurement proceeds: from the request through a warm-up and a controller's trials to the result file."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import model_validator

from lossratio.errors import SearchError
from lossratio.measurements.look_for_memory import remarks_on_memory
from lossratio.measurements.measurement import Course, Measurement, Span, TestPlace, perform
from lossratio.measurements.progress import Progress
from lossratio.measurements.request import Request, RequestT, WarmUp
from lossratio.mlrsearch import Forecast, SearchGoalWarning
from lossratio.results import (
    Kind,
    MaxLoad,
    Outcome,
    TestResult,
    differences,
    loss_places_in,
    noted,
    queue_drops_in,
)
from lossratio.trials import Controller, Measurer, TrialInput, TrialResult
from lossratio.values import Record, format_frame_rate, format_ratio, require_types, shown_value

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed
    from lossratio.traffic import TrafficProfile


def warm_up_like(
    traffic: TrafficProfile, duration: float | None, profile: str | Path | None = None
) -> WarmUp | None:
    """A warm-up with the frame size and the directions of the traffic; None: there is none.

    Args:
        traffic: What is measured.
        duration: Seconds; None: there is no warm-up.
        profile: The profile of the warm-up; None: the traffic's own.

    Raises:
        SearchError: If there is a profile without a duration, or it is not positive, or longer than any trial.
        TrafficError: If there is no such profile, or it does not allow frames of that size.
    """
    from lossratio.traffic import load_profile

    if duration is None:
        if profile is not None:
            raise SearchError(
                f"The warm-up with {profile} has no duration. Set it, for example warm_up=5 s."
            )
        return None
    if profile is not None:
        traffic = load_profile(
            profile, frame_size=traffic.frame_size, bidirectional=traffic.bidirectional
        )
    return WarmUp(duration=duration, profile=traffic)


def check_arguments(
    testbed: Testbed,
    request: Request,
    kind: type[Request],
    place: TestPlace,
    on_progress: Callable[[Any], None] | None,
) -> None:
    """Checks what a script gives a function that measures.

    Args:
        testbed: The testbed.
        request: The request.
        kind: The class that the request must have.
        place: The place of the result.
        on_progress: Called after each trial.

    Raises:
        SearchError: If an argument has another type.
    """
    # Anything that can be made ready for traffic is a testbed.
    if not callable(getattr(testbed, "ready_for", None)):
        raise SearchError(
            f"testbed must be a testbed, as open_testbed('local') returns it, not {shown_value(testbed)}."
        )
    # Table: an argument, its value, its types, and the name of these types.
    require_types(
        SearchError,
        ("request", request, (kind,), f"a {kind.__name__}"),
        ("place", place, (TestPlace,), "a TestPlace"),
    )
    check_callback(on_progress)


def check_callback(on_progress: object) -> None:
    """Checks the function that is called after each trial; None: there is none.

    Raises:
        SearchError: If it is not a function.
    """
    if on_progress is not None and not callable(on_progress):
        raise SearchError(f"on_progress must be a function, not {shown_value(on_progress)}.")


def run_warm_up(testbed: Testbed, request: Request, warm_up: WarmUp, load: float) -> str:
    """Performs a request's warm-up at a load per interface, and returns a remark on it for the result's readers."""
    with request.ready(testbed, profile=warm_up.profile) as ready:
        output = ready.measurer.measure(TrialInput(warm_up.duration, load))
    missing = format_ratio(output.loss_ratio)
    return (
        f"a warm-up of {warm_up.duration:g} s came before the first trial, at {format_frame_rate(load)} per "
        f"interface with the traffic profile {warm_up.profile.name}; {missing} of its frames did not come back, "
        "and they do not count"
    )


class InWords(Protocol):
    """The progress of a measurement after a trial."""

    def line(self) -> str:
        """The line that the console shows."""
        ...


class FoundResult(TestResult):
    """A result with all its numbers in one record. A failed measurement has no such record."""

    found: ClassVar[str]

    kind: str
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load that was allowed."""

    @model_validator(mode="after")
    def _an_outcome_for_each_case(self) -> FoundResult:
        found = getattr(self, self.found)
        reason = getattr(self, "reason", None)
        if (self.outcome is Outcome.IRREGULAR) != (reason is not None):
            raise ValueError("a result has a reason if and only if it is irregular")
        if self.outcome is Outcome.FAILED and found is not None:
            raise ValueError(f"a failed measurement has no {self.found}")
        if self.outcome is Outcome.MEASURED and (
            found is None or getattr(found, "average_s", 0.0) is None
        ):
            raise ValueError(f"a measured result has {self.found}")
        return self


ResultT = TypeVar("ResultT", bound=TestResult)
ControllerT = TypeVar("ControllerT", bound=Controller[Any])
ProgressT = TypeVar("ProgressT", bound=InWords)


class Suite(Protocol):
    """What a kind may need from the Robot Framework suite whose keyword requests a measurement."""

    @property
    def last_result(self) -> TestResult:
        """The last result of the suite.

        Raises:
            SearchError: If nothing was measured yet.
        """
        ...

    def request(self, fields: Mapping[str, Any]) -> Any:
        """The request with these fields, and with the traffic that was given to the keyword."""
        ...

    def run(self, keyword: str, *arguments: object) -> object:
        """Runs a keyword of the suite."""
        ...

    def show(self, text: str) -> None:
        """Shows a text on the console and in the log."""
        ...


class RequestedKind(Kind[ResultT], Generic[RequestT, ResultT]):
    """A kind that is measured on request: by its keyword, by its method of an open testbed, or by a script."""

    work: ClassVar[str] = "Measuring"
    """The beginning of the title."""
    title: ClassVar[str]
    """The work in words, for consoles. Left out: ``Measuring``, and what is measured."""
    request: type[RequestT]
    """The class of the requests; like the class of the results, it comes from the brackets after the base class."""
    without: ClassVar[frozenset[str]] = frozenset()
    """Fields of the request that are not arguments of its keyword."""
    usual_frame_size: ClassVar[str | None] = None
    """The frame size if the keyword is given none; None: it must be given."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._take("request", Request)
        if "title" not in vars(cls):
            cls.title = f"{cls.work} {cls.noun}"

    @abstractmethod
    def perform(
        self,
        testbed: Testbed,
        request: RequestT,
        place: TestPlace,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ResultT:
        """Measures, writes the result file, and returns the result.

        Raises:
            LossRatioError: If the request makes no sense or the measurement failed.
        """

    def called(self, request: RequestT) -> str:
        """What is measured, in a few words: the name of a test that has no other name."""
        return self.noun

    def asked(
        self, suite: Suite, fields: Mapping[str, Any], *positional: Any, **named: Any
    ) -> RequestT:
        """The request of a keyword, from the fields of the request that were given to it.

        A kind whose keyword has other arguments states them here, after `fields`, with their types and defaults.
        Positional arguments come before the frame size, and named ones after the profile.
        """
        request: RequestT = suite.request(fields)
        return request

    def demand(self, result: ResultT, *positional: Any, **named: Any) -> None:
        """Fails if the keyword's result does not meet the test's demands. Further named arguments are as in `asked`.

        Raises:
            AssertionError: If the demand is not met.
        """


class MeasuredKind(
    RequestedKind[RequestT, ResultT], Generic[RequestT, ControllerT, ProgressT, ResultT]
):
    """A kind whose trials are chosen by one controller; `measure` does the rest."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        # In journals, an algorithm without a name of its own has the name of what is measured.
        cls.algorithm = cls.algorithm or cls.noun

    def perform(
        self,
        testbed: Testbed,
        request: RequestT,
        place: TestPlace,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ResultT:
        """Measures as `measure` does.

        Raises:
            LossRatioError: As `measure`.
        """
        return measure(self, testbed, request, place, on_progress)

    @classmethod
    def lacks(cls) -> list[str]:
        """The methods that the kind lacks. A kind whose result is not a `FoundResult` must have `build`."""
        builds = (
            cls.build is not MeasuredKind.build or getattr(cls.result, "found", None) is not None
        )
        return sorted([*super().lacks(), *([] if builds else ["build"])])

    @abstractmethod
    def controller(self, request: RequestT, loads: LoadRange) -> ControllerT:
        """Makes the controller.

        Raises:
            SearchError: If the request makes no sense.
        """

    def inputs(
        self, request: RequestT, loads: LoadRange, controller: ControllerT
    ) -> Mapping[str, Any]:
        """The settings that trials depend on, besides the traffic, as JSON data.

        They must be the same if a journal is continued.
        """
        return {"max_load_fps": loads.max_load, **request.inputs()}

    def progress(self, request: RequestT, controller: ControllerT, trial: TrialResult) -> ProgressT:
        """The progress after a trial, as the controller sees it. The work must not grow with the number of trials."""
        progress: Any = Progress.of(controller, trial)
        return progress  # type: ignore[no-any-return]

    def build(
        self,
        measured: Measurement[Any],
        request: RequestT,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> ResultT:
        """Makes the result, also of a measurement that failed: ``measured.run.error`` has the reason then.

        A `FoundResult` has the numbers of `found_in`, the reason of `irregular`, and the further fields of `fields`.
        """
        run = measured.run
        declared = self.result.model_fields
        name = str(self.result.found)
        fields: dict[str, Any] = {
            "max_load": max_load,
            **self.fields(measured, request, max_load),
            name: None,
        }
        fields |= {"settings": request.settings} if "settings" in declared else {}
        reason = None

        if run.error is None:
            draft: Any = self.result.model_construct(
                test=run.test, conditions=run.conditions, **fields
            )
            fields[name] = self.found_in(draft, [entry.result for entry in measured.entries])
            reason = self.irregular(draft, fields[name])

        fields |= {"reason": reason} if "reason" in declared else {}
        return self.result(**{**measured.stated(max_load, reason, self.why_set_aside), **fields})

    def fields(
        self, measured: Measurement[Any], request: RequestT, max_load: MaxLoad
    ) -> Mapping[str, Any]:
        """The fields of a `FoundResult` besides settings, reason, numbers, and the fields that all results have."""
        return {}

    def irregular(self, result: ResultT, found: Any) -> str | None:
        """Why a `FoundResult` with these numbers is irregular; None: it is not."""
        return None

    def prepare(self, testbed: Testbed, request: RequestT, place: TestPlace) -> None:
        """Checks or reads what this measurement needs before its controller is made. By default, it does nothing.

        Raises:
            LossRatioError: If the request cannot be met.
        """
        return

    def measurer(self, request: RequestT, testbed: Testbed, ready: Ready) -> Measurer:
        """Performs the trials: by default, as the request says."""
        return ready.measurer

    def remarks(self, request: RequestT, controller: ControllerT) -> Iterator[str]:
        """Further remarks for the readers of the result."""
        yield from ()

    def watch(self, request: RequestT, loads: LoadRange) -> Callable[[TrialResult], None]:
        """A function that receives each trial of a measurement, and raises an error when more trials make no sense."""
        return lambda _: None

    def found_in(self, result: ResultT, trials: Sequence[TrialResult]) -> Record | None:
        """The numbers of a `FoundResult`, from its trials and other fields, both when it is made and when it is read.

        None: there are none.
        """
        return None

    def contradictions(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Numbers that do not follow from the trials, and a number of times that differs from the number of trials."""
        said: Any = None if result.found is None else getattr(result, result.found)
        made = None if said is None else self.found_in(result, trials)
        if made is not None:
            times = getattr(said, "times", trials)
            if len(times) != len(trials):
                yield f"{result.found}: there are {len(times)} times and {len(trials)} trials"
            yield from differences(said, made, str(result.found))


class PlannedTrials:
    """Asks for given trials one after the other; a `lossratio.trials.trial.Controller`.

    A trial that is no evidence is replaced by another one. The attribute `trials` is the number of recorded trials, and
    `elapsed` is the seconds that they took.
    """

    def __init__(
        self,
        trials: Sequence[TrialInput],
        are_enough: Callable[[Sequence[TrialResult]], bool] | None = None,
        why_set_aside: Callable[[TrialResult], str | None] = lambda _: None,
    ) -> None:
        self._trials = trials
        self._are_enough = are_enough
        self._why_set_aside = why_set_aside
        self._counting = 0
        self._results: list[TrialResult] = []
        self.trials, self.elapsed = 0, 0.0

    @property
    def remaining(self) -> int:
        """The maximum number of remaining trials."""
        is_enough = self._are_enough is not None and self._are_enough(self._results)
        if is_enough:
            return 0
        return len(self._trials) - self._counting

    def next_trial(self) -> TrialInput | None:
        """The next trial; None when there are enough trials."""
        if self.remaining > 0:
            return self._trials[self._counting]
        return None

    def record(self, result: TrialResult) -> None:
        """Records a trial's result."""
        self._results.append(result)
        self._counting += self._why_set_aside(result) is None
        self.trials += 1
        self.elapsed += result.elapsed

    def result(self) -> tuple[TrialResult, ...]:
        """All results so far."""
        return tuple(self._results)

    def forecast(self) -> Forecast:
        """The time left, if all remaining trials are needed and take as long as the average so far."""
        left = self.remaining * self.elapsed / self.trials
        return Forecast(left, left if self._are_enough is None else 0.0, left)


class PlannedKind(MeasuredKind[RequestT, PlannedTrials, Progress, ResultT]):
    """A kind whose trials are all planned before the first one."""


def measure(
    kind: MeasuredKind[RequestT, ControllerT, ProgressT, ResultT],
    testbed: Testbed,
    request: RequestT,
    place: TestPlace,
    on_progress: Callable[[ProgressT], None] | None = None,
) -> ResultT:
    """Measures, writes the result file, and returns the result as it was written.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. After a failure, the result file
            has the error and the trials that were measured.
    """
    from lossratio.testbed import load_limits, load_range

    check_arguments(testbed, request, kind.request, place, on_progress)
    span = Span()
    request.check(testbed)
    kind.prepare(testbed, request, place)
    limits = load_limits(testbed, request.profile)
    most = request.max_load
    if most is None and limits and request.most_load < limits[0].load:
        most = request.most_load
    loads = load_range(
        limits, min_load=request.min_load, max_load=most, step=testbed.load_step(request.profile)
    )
    request.check_loads(testbed, loads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SearchGoalWarning)
        controller = kind.controller(request, loads)
    inputs = {"algorithm": kind.algorithm, **kind.inputs(request, loads, controller)}
    advice = (*(str(warning.message) for warning in caught), *kind.remarks(request, controller))
    if request.warm_up is not None:
        advice = (*advice, run_warm_up(testbed, request, request.warm_up, loads.max_load))
    advice = (*advice, *request.look(testbed, loads))
    looked = remarks_on_memory(testbed, request, loads.max_load)
    remarks = (*loads.remarks, *map(noted, advice), *looked)
    watch = kind.watch(request, loads)

    def seen(trial: TrialResult) -> None:
        if on_progress is not None:
            on_progress(kind.progress(request, controller, trial))
        watch(trial)

    course = Course(
        inputs, remarks, lambda ready: kind.measurer(request, testbed, ready), seen, loads, span
    )
    measured: Measurement[Any] = perform(controller, testbed, request, place, course)
    result = kind.build(measured, request, inputs, loads.describe(measured.run.conditions))
    places = loss_places_in(result.trials, kind.bounds(result) or ())
    drops = queue_drops_in(result.trials)
    result = result.model_copy(update={"loss_places": places, "queue_drops": drops})
    place.directory.write(result)
    if measured.failure is not None:
        raise measured.failure
    return result
