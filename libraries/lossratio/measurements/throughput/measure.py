"""Conditional throughput: a search with MLRsearch on a testbed, from the request to the result file."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from lossratio.errors import DutError, SearchError
from lossratio.measurements import (
    NOT_IN_FILES,
    Additions,
    MeasuredKind,
    Measurement,
    OnProgress,
    Progress,
    Request,
    Span,
    TestPlace,
    measure,
)
from lossratio.measurements.telemetry import TelemetryRequest, TelemetryTrial, measure_telemetry
from lossratio.measurements.throughput.evidence import SearchKind, search_fields
from lossratio.measurements.throughput.failed_search import refuse_generators_limit, tried_after
from lossratio.measurements.throughput.goals import NdrPdrGoals, goals_from
from lossratio.measurements.throughput.limits import check_generator
from lossratio.measurements.throughput.nightly import SEARCH_EVERY, Nightly, Tonight, ask
from lossratio.measurements.throughput.result import (
    GoalReport,
    GoalSpread,
    GoalsResult,
    OfEarlierSearch,
    QuestionAsked,
    ThroughputResult,
    describe_goal,
    format_regularity,
)
from lossratio.measurements.throughput.settings import (
    ALGORITHM,
    END_AT_COIN,
    MEMORY_REST,
    MEMORY_SHARE,
    NIGHTLY,
    warm_ups_in,
)
from lossratio.mlrsearch import (
    LARGEST_SHARE,
    LONG_REST,
    MOVED,
    Answer,
    Forecast,
    MLRsearch,
    Question,
    SearchGoal,
)
from lossratio.quantities import Choice, Duration
from lossratio.results import (
    Device,
    MaxLoad,
    Outcome,
    RunDirectory,
    TestIdentity,
    TestResult,
    Traffic,
    format_frames_per_second,
    read_result,
)
from lossratio.trials import TrialResult, read_journal
from lossratio.units import FRAMES_PER_SECOND, format_frame_rate

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed

DEFAULT_TIMEOUT = 1200.0
"""Seconds that a search may take: FD.io CSIT's limit."""


class SearchRequest(Request):
    """Searches for the non-drop rate and the partial drop rate at once, or for any goals."""

    goals: Annotated[tuple[SearchGoal, ...], BeforeValidator(goals_from), NOT_IN_FILES] = (
        NdrPdrGoals.csit.value
    )
    """The search goals: goals, the name of a set (``csit``), presets by name, or a file of goals."""
    timeout: Duration | None = DEFAULT_TIMEOUT
    """Seconds of trials after which the search ends with the results so far; None: no limit."""
    warm_up_duration: Duration | None = None
    """Seconds of a first trial at maximum load with the same traffic. This trial does not count. None: there is
    none."""
    fail_fast: bool = True
    """Whether the search ends for all goals when one goal fails at the minimum load."""
    hints: Annotated[Path | None, NOT_IN_FILES] = None
    """Earlier searches of the same test, which show where this search should start: the directory of a run, a folder of
    such directories, or a journal. None: there are no hints."""
    early_verdict: bool = False
    """Whether a trial ends as soon as it is certain to be a high-loss trial for every goal."""
    memory_rest: Annotated[Duration | None, Field(ge=0.0, exclude=True)] = None
    """Time without traffic before one more short trial at the end, above the bounds (0: there is none). None: 15 s, if
    that is no more than a quarter of the search's time, and once in a run for each device. With hints, this trial is
    the first one. For a black box, every search has this trial."""

    end_at_coin: Annotated[bool, Field(exclude=True)] = False
    """Whether the search gives up a goal if trials pass and fail by chance over a range of loads. The result is then
    this zone instead of bounds.
    """
    nightly: Annotated[Choice[Nightly], Field(exclude=True)] = Nightly.SEARCH
    """What happens if `hints` has earlier searches: ``search`` always searches, and ``as_before`` only searches if the
    SUT is not as before."""
    search_every: Annotated[int, Field(ge=1, exclude=True)] = SEARCH_EVERY
    """With ``as_before``: the number of nights after which there is a search in any case."""

    @model_validator(mode="after")
    def _has_streams_of_goals(self) -> SearchRequest:
        for goal in self.goals:
            if goal.stream is not None and goal.stream not in self.profile.stream_names:
                has = ", ".join(self.profile.stream_names) or "none"
                raise ValueError(
                    f"the goal {goal} is for the stream {goal.stream!r}, but the profile {self.profile.name} has "
                    f"no such stream; its streams: {has}"
                )
        return self

    @property
    def rest_before_question(self) -> float:
        """Seconds of rest before the trial that asks whether the SUT then passes more; 0: there is no such trial."""
        return LONG_REST if self.memory_rest is None else self.memory_rest

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time that the search is expected to take.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each full-length trial takes besides its traffic.
        """
        search = MLRsearch(
            [replace(goal) for goal in self.goals], loads.min_load, loads.max_load, timeout=None
        )
        longer = 1.0 + waits / self.goals[0].final_trial_duration
        expected = search.forecast()
        return Forecast(expected.seconds * longer, expected.low * longer, expected.high * longer)


HOW_TO_SEARCH = frozenset(SearchRequest.model_fields) - {*Request.model_fields, "goals", "timeout"}
"""The fields that control the search for throughput; searches for something else only have goals and a time limit."""

ResultT = TypeVar("ResultT", bound=GoalsResult)
RequestT = TypeVar("RequestT", bound=SearchRequest)


class GoalSearch(
    SearchKind[ResultT],
    MeasuredKind[RequestT, MLRsearch, Progress, ResultT],
    Generic[RequestT, ResultT],
):
    """Searches with MLRsearch; each search has an object of its own, with its hints."""

    def __init__(self) -> None:
        self._earlier: Sequence[EarlierSearch] = ()
        self._memory_share = math.inf
        self._has_rested = False
        self._topology: dict[str, Any] = {}
        self._question: Question | None = None
        self._asked: QuestionAsked | None = None

    def prepare(self, testbed: Testbed, request: RequestT, place: TestPlace) -> None:
        """Notes the kind of the device, reads the hints, and checks that the generator can end trials early.

        Raises:
            SearchError: If the search is to ask whether the SUT is as before, and no earlier searches are named.
        """
        from lossratio.dut import BLACK_BOX
        from lossratio.traffic import check_early_verdicts

        dut = testbed.request.dut
        is_black_box = dut is not None and dut.kind == BLACK_BOX
        device = testbed.request.device
        if request.memory_rest is None and not is_black_box:
            self._memory_share = memory_share(place, device)
        self._has_rested = testbed.rested_for() >= request.rest_before_question and not is_black_box
        if request.hints is not None:
            own = [
                directory.path
                for directory in (place.directory, place.resume)
                if directory is not None
            ]
            traffic = request.profile.described()
            self._earlier = earlier_searches(
                request.hints, place.test, traffic, device, besides=own
            )

        if request.early_verdict:
            check_early_verdicts(testbed.request.topology.generator)
        if request.nightly is Nightly.AS_BEFORE:
            if request.hints is None:
                raise SearchError(
                    "nightly=as_before asks whether the SUT is as in earlier searches. Say where they are, e.g. "
                    "hints=/srv/nightly."
                )
            self._topology = testbed.request.topology.model_dump(mode="json")

    def controller(self, request: RequestT, loads: LoadRange) -> MLRsearch:
        """MLRsearch.

        Raises:
            SearchError: If two different goals have the same name, or the request makes no sense.
        """
        self._ask(request, loads)
        # Record: the search as the request asks for it.
        controller = MLRsearch(
            # Goals warn when they are made, which may have been long before anybody could see the warning.
            [replace(goal) for goal in request.goals],
            loads.min_load,
            loads.max_load,
            timeout=request.timeout,
            warm_up_duration=request.warm_up_duration,
            fail_fast=request.fail_fast,
            hints=[search.trials for search in self._earlier if not search.is_as_before],
            early_verdict=request.early_verdict,
            memory_rest=request.rest_before_question,
            memory_share=self._memory_share,
            has_rested=self._has_rested,
            end_at_coin=request.end_at_coin,
            load_step=loads.step,
            question=self._question,
        )
        (name, times), *_ = Counter(map(str, controller.goals)).most_common(1)
        if times > 1:
            # Reports and trends identify goals by name.
            raise SearchError(
                f"Two different search goals are called {name!r}. Give each its own name, for example "
                '{"name": "patient", "loss_ratio": "0.1 %", "duration_sum": "1 min"}.'
            )

        return controller

    def _ask(self, request: RequestT, loads: LoadRange) -> None:
        """Prepares the question before the search, if the test asks it."""
        if request.nightly is Nightly.SEARCH:
            return
        results = [search.result for search in self._earlier if search.result is not None]
        # Record: what must be the same as in the earlier searches.
        tonight = Tonight(
            request.goals, loads, self._topology, request.early_verdict, request.search_every
        )
        self._question, self._asked = ask(results, tonight)

    def inputs(
        self, request: RequestT, loads: LoadRange, controller: MLRsearch
    ) -> Mapping[str, Any]:
        """Goals, loads and settings."""
        stated = request.inputs()
        stated["settings"][MEMORY_REST] = request.rest_before_question
        if self._memory_share < math.inf:
            stated["settings"][MEMORY_SHARE] = self._memory_share
        if request.end_at_coin:
            stated["settings"][END_AT_COIN] = True
        if request.nightly is not Nightly.SEARCH:
            stated["settings"][NIGHTLY] = request.nightly.value
            stated["settings"]["search_every"] = request.search_every
        if request.hints is not None:
            stated["settings"]["hints"] = {
                "searches": [
                    {"file": str(search.file), "began": search.began} for search in self._earlier
                ],
                "start_fps": {str(goal): load for goal, load in controller.hinted_loads.items()},
            }

        return {
            "goals": [describe_goal(goal).model_dump(mode="json") for goal in controller.goals],
            "min_load_fps": loads.min_load,
            "max_load_fps": loads.max_load,
            **stated,
        }

    def remarks(self, request: RequestT, controller: MLRsearch) -> Iterator[str]:
        """The loads where the search started because of hints."""
        if self._question is not None:
            return
        starts = ", ".join(
            f"{goal} at {format_frame_rate(load)}" for goal, load in controller.hinted_loads.items()
        )
        if starts:
            yield (
                f"hints from earlier searches ({len(self._earlier)} in {request.hints}) chose where this search "
                f"started: {starts}, per interface; their trials are no evidence here"
            )
        elif request.hints is not None:
            yield f"hints were requested, but there is no earlier search of this test in {request.hints}"

    def progress(self, request: RequestT, controller: MLRsearch, trial: TrialResult) -> Progress:
        """The progress of the search, as the controller sees it."""
        purpose = controller.last_purpose
        return Progress.of(controller, trial, purpose, None if purpose is None else purpose.rule)

    def watch(self, request: RequestT, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a search whose generator cannot send the smallest load: nothing would be known about the SUT."""

        def check(trial: TrialResult) -> None:
            if trial.load <= loads.min_load:
                check_generator(trial, request.goals, is_one_enough=request.fail_fast)

        return check

    def build(
        self,
        measured: Measurement[Any],
        request: RequestT,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> ResultT:
        """The result of each goal."""
        fields = search_fields(measured.run, max_load, inputs, measured.result, measured.entries)
        if self._asked is not None:
            fields["question"] = self._asked
        if self._asked is not None and self._question is not None:
            answer = self._question.answer or Answer.UNSURE
            answered = {"answer": str(answer), "trials": self._question.trials}
            fields["question"] = self._asked.model_copy(update=answered)
        return self.result(**fields)


class Throughput(GoalSearch[SearchRequest, ThroughputResult]):
    """The kind: searches for conditional throughput."""

    keyword = "Find NDR And PDR"
    method = "ndr_pdr"
    noun = "conditional throughput"
    title = "Searching for the conditional throughput"
    algorithm = ALGORITHM

    def perform(
        self,
        testbed: Testbed,
        request: SearchRequest,
        place: TestPlace,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ThroughputResult:
        """Measures; if no load passes, it also tries what makes the smallest one pass."""
        result = measure(self, testbed, request, place, on_progress)
        span = Span()
        tried = tried_after(result, testbed, request, request.goals)
        if not tried:
            return result
        whole = result.model_copy(update={**tried, "ended": span.later_than(result.ended)})
        place.directory.write(whole)
        return whole

    def called(self, request: SearchRequest) -> str:
        """The goals."""
        return ", ".join(map(str, request.goals))

    def bounds(self, result: ThroughputResult) -> tuple[float, ...]:
        """The relevant bounds of all goals, from the lowest."""
        outcomes = [report.result for report in result.goals if report.result is not None]
        lower = [outcome.relevant_lower_bound for outcome in outcomes]
        upper = [outcome.relevant_upper_bound for outcome in outcomes]
        return tuple(
            sorted({bound.per_interface_fps for bound in (*lower, *upper) if bound is not None})
        )

    def rates_below(self, result: ThroughputResult) -> Iterator[tuple[str, float]]:
        """The conditional throughput of each goal that has one."""
        for report in result.goals:
            if report.throughput is not None:
                yield report.goal.name, report.throughput.per_interface_fps


def find_conditional_throughput(
    testbed: Testbed,
    request: SearchRequest,
    place: TestPlace,
    on_progress: OnProgress | None = None,
) -> ThroughputResult:
    """Searches for the conditional throughput of all goals at once; see `lossratio.measurements.measure`.

    An irregular goal result is not an error.
    """
    return Throughput().perform(testbed, request, place, on_progress)


def repeat_search(
    testbed: Testbed,
    request: SearchRequest,
    next_place: Callable[[], TestPlace],
    times: int,
    *,
    on_progress: OnProgress | None = None,
    on_result: Callable[[ThroughputResult, TestPlace], None] | None = None,
) -> ThroughputResult:
    """Repeats a search and returns the last result. Each search has its own files, from the second on with the spread.

    Raises:
        SearchError: If the number of searches is 0.
        LossRatioError: If one of the searches fails.
    """
    if times < 1:
        raise SearchError(f"A search can be repeated once or more often, not {times} times.")

    results: list[ThroughputResult] = []
    for _ in range(times):
        place = next_place()
        result = find_conditional_throughput(testbed, request, place, on_progress)
        results.append(result)
        if len(results) > 1:
            by_goal = zip(*(one.goals for one in results), strict=True)
            spread = tuple(map(_spread_of, by_goal))
            result = result.model_copy(update={"spread": spread})
            place.directory.write(result)

        if on_result is not None:
            on_result(result, place)

    return result


def _spread_of(reports: Sequence[GoalReport]) -> GoalSpread:
    """The spread of a goal over its reports of all searches."""
    values = [report.throughput and report.throughput.per_interface_fps for report in reports]
    regular = [report.result is not None and report.result.regular for report in reports]
    return GoalSpread(goal=reports[0].goal.name, values_fps=tuple(values), regular=sum(regular))


def require_throughput(result: TestResult, least: float, goal: str | None = None) -> None:
    """Checks that the conditional throughput of a goal (None: the first) is not below a limit, per interface.

    Raises:
        AssertionError: If the conditional throughput is less, or there is none.
        TesterError: If it is less, or there is none, because of the generator's limit: nothing is then known about the
            SUT.
        SearchError: If the result does not come from a search, or has no such goal.
    """
    if not isinstance(result, GoalsResult):
        raise SearchError(
            f"The result of {result.test.name} is of kind {result.kind!r} and has no conditional throughput. "
            f"Search for one first, e.g. with 'Find NDR And PDR'."
        )

    report = result.goals[0] if goal is None else result.goal_named(goal)
    is_frames = result.unit is FRAMES_PER_SECOND
    written: Callable[[float], str] = result.unit.format
    per_interface = ""
    if is_frames:
        written = format_frames_per_second
        per_interface = " per interface"

    found = None if report.throughput is None else report.throughput.per_interface_fps
    if found is not None and found >= least:
        return

    earlier = result.found_earlier(report.goal.name)
    if earlier is not None:
        _require_earlier(earlier, least)
        return

    refuse_generators_limit([report])
    has = f"has no conditional throughput ({format_regularity(report)})"
    wanted = f"it should be at least {written(least)}{per_interface if found is None else ''}"
    if found is not None:
        has = f"is {written(found)}{per_interface} ({format_regularity(report)})"
    raise AssertionError(f"{report.goal.name} {has}; {wanted}.")


def _require_earlier(earlier: OfEarlierSearch, least: float) -> None:
    """Checks that a SUT that is as before forwards enough, even if it moved by less than counts as a change.

    Raises:
        AssertionError: If it does not, or possibly does not.
    """
    sure = (1.0 - MOVED) * earlier.relevant_lower_bound.per_interface_fps
    if sure < least:
        raise AssertionError(
            f"{earlier.goal} was not searched, as the SUT is as before. The last search found at least "
            f"{format_frames_per_second(earlier.relevant_lower_bound.per_interface_fps)} per interface, which proves "
            f"{format_frames_per_second(sure)} tonight; it should be at least {format_frames_per_second(least)}. A "
            "search shows more: nightly=search."
        )


@dataclass(frozen=True)
class EarlierSearch:
    """An earlier search of the same test."""

    file: Path
    """The file that it was read from."""
    began: str
    """When it began, RFC 3339, UTC."""
    trials: tuple[TrialResult, ...]
    """Its trials that count, in the order measured."""
    result: ThroughputResult | None = None
    """Its result; None: there is only its journal."""

    @property
    def is_as_before(self) -> bool:
        """Whether there was no search because the SUT was as before."""
        return self.result is not None and self.result.is_as_before


def earlier_searches(
    path: Path,
    test: TestIdentity,
    traffic: Traffic,
    device: Device | None = None,
    *,
    besides: Iterable[Path] = (),
) -> tuple[EarlierSearch, ...]:
    """Finds earlier searches of a test with the same traffic, oldest first, without those in some runs' directories.

    Searches on another device are left out; earlier versions did not name the device. A journal that is named itself
    may be of any device. The path is the directory of a run, a folder of such directories, or a journal.

    Raises:
        SearchError: If there is nothing, or a journal cannot be read.
        ReportError: If a result file cannot be read.
    """
    if not (path.is_file() or path.is_dir()):
        raise SearchError(
            f"There are no hints at {path}. Name the directory of an earlier run, a folder of such directories or a "
            "journal, or leave hints out."
        )
    searches = [_from_journal(path, traffic)] if path.is_file() else []
    left_out = {directory.resolve() for directory in besides}
    for run in (path, *sorted(path.iterdir())) if path.is_dir() else ():
        if run.is_dir() and run.resolve() not in left_out:
            searches.append(_from_run(RunDirectory(run), test, traffic, device))
    return tuple(
        sorted((search for search in searches if search is not None), key=attrgetter("began"))
    )


_WITH_REST = re.compile(rb'"rest_s":\s*[1-9]')
"""How a result file with a trial after a rest can be recognized; the others need not be parsed."""


def memory_share(place: TestPlace, device: Device | None) -> float:
    """The largest share of a search's time that a rest may take: nothing if this run has already asked the device.

    A resumed search goes on as it began.

    Raises:
        ReportError: If a result file of the run cannot be read.
        SearchError: If the journal of the search cannot be read.
    """
    begun = None if place.resume is None else place.resume.journal_of(place.test)
    if begun is not None and begun.is_file():
        share = read_journal(begun).search.get("settings", {}).get(MEMORY_SHARE)
        return math.inf if share is None else float(share)

    files = sorted((place.directory.path / "results").glob("*.json"))
    asked = (read_result(file) for file in files if _WITH_REST.search(file.read_bytes()))
    is_asked = any(
        isinstance(result, GoalsResult) and result.conditions.device == device for result in asked
    )
    return 0.0 if is_asked else LARGEST_SHARE


def _from_run(
    run: RunDirectory, test: TestIdentity, traffic: Traffic, device: Device | None
) -> EarlierSearch | None:
    file, journal = run.result_of(test), run.journal_of(test)
    if not file.is_file():
        if journal.is_file():
            return _from_journal(journal, traffic, device)
        return None
    result = read_result(file)
    if not isinstance(result, ThroughputResult) or result.outcome is Outcome.FAILED:
        return None
    if result.conditions.traffic != traffic:
        return None
    if device is not None and result.conditions.device not in (None, device):
        return None
    trials = tuple(trial.as_result() for trial in result.trials if trial.is_evidence)
    return EarlierSearch(file, result.started.isoformat(), trials, result)


def _from_journal(
    file: Path, traffic: Traffic, device: Device | None = None
) -> EarlierSearch | None:
    contents = read_journal(file)
    if contents.search.get("traffic") != traffic.model_dump(mode="json"):
        return None
    conditions = (contents.about or {}).get("conditions") or {}
    if device is not None and conditions.get("device") not in (
        None,
        device.model_dump(mode="json"),
    ):
        return None
    return EarlierSearch(
        file,
        contents.created,
        contents.results[warm_ups_in(contents.search.get("settings") or {}) :],
    )


def add_telemetry(
    testbed: Testbed, request: TelemetryRequest, place: TestPlace, result: ThroughputResult
) -> ThroughputResult:
    """Measures telemetry of the DUTs, and writes it into the search's result file.

    The telemetry is in the search's journal as soon as it is known, and a resumed run takes it from there.

    Raises:
        DutError: If there is no DUT that can answer.
        LossRatioError: If the telemetry cannot be measured; see `measure_telemetry`.
    """
    if not testbed.duts:
        raise DutError(
            "There is no DUT that lossratio can ask: name its kind when you set up the testbed."
        )

    span = Span()
    asked = {"goal": request.goal, "load_fps": request.load, "duration_s": request.duration}
    with Additions(place, "telemetry", [asked], len(result.telemetry) + 1) as additions:
        trial = additions.known(0, TelemetryTrial)
        if trial is None:
            trial = measure_telemetry(testbed, request)
            additions.add(0, trial)

    ended = span.later_than(result.ended)
    whole = result.model_copy(update={"telemetry": (*result.telemetry, trial), "ended": ended})
    place.directory.write(whole)
    return whole
