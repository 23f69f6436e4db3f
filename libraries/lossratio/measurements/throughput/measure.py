"""Conditional throughput: a search with MLRsearch on a testbed, from the request to the result file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lossratio import mlrsearch
from lossratio.errors import DutError, SearchError
from lossratio.measurements import (
    Additions,
    MeasuredKind,
    Measurement,
    OnProgress,
    Progress,
    Span,
    TestPlace,
    check_arguments,
    measure,
)
from lossratio.measurements.telemetry import TelemetryRequest, TelemetryTrial, measure_telemetry
from lossratio.measurements.throughput.earlier import EarlierSearch, earlier_searches
from lossratio.measurements.throughput.evidence import SearchKind, search_fields
from lossratio.measurements.throughput.failed_search import longer_after
from lossratio.measurements.throughput.limits import check_generator, is_disturbed
from lossratio.measurements.throughput.nightly import Nightly, Tonight, ask
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.result import (
    GoalsResult,
    QuestionAsked,
    ThroughputResult,
    describe_goal,
)
from lossratio.measurements.throughput.settings import ALGORITHM, END_AT_COIN, NIGHTLY
from lossratio.results import Device, MaxLoad
from lossratio.trials import TrialResult
from lossratio.values import format_frame_rate

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed

ResultT = TypeVar("ResultT", bound=GoalsResult)
RequestT = TypeVar("RequestT", bound=SearchRequest)


class GoalSearch(
    SearchKind[ResultT],
    MeasuredKind[RequestT, "mlrsearch.MLRsearch", Progress, ResultT],
    Generic[RequestT, ResultT],
):
    """Searches with MLRsearch; each search has an object of its own, with its hints."""

    work = "Searching for the"

    def __init__(self) -> None:
        self._earlier: Sequence[EarlierSearch] = ()
        self._topology: dict[str, Any] = {}
        self._question: mlrsearch.Question | None = None
        self._asked: QuestionAsked | None = None
        self._controller: mlrsearch.MLRsearch | None = None

    def prepare(self, testbed: Testbed, request: RequestT, place: TestPlace) -> None:
        """Reads the hints, and checks that the generator can end trials early.

        Raises:
            SearchError: If the search should ask whether the SUT is as before, but no earlier searches are named.
        """
        from lossratio.traffic import check_early_verdicts

        if request.hints is not None:
            self._earlier = _earlier_of(request.hints, request, place, testbed.request.device)

        if request.early_verdict:
            check_early_verdicts(testbed.request.topology.generator)
        if request.nightly is Nightly.AS_BEFORE:
            if request.hints is None:
                raise SearchError(
                    "nightly=as_before asks whether the SUT is as in earlier searches. Say where they are, e.g. "
                    "hints=/srv/nightly."
                )
            self._topology = testbed.request.topology.model_dump(mode="json")

    def controller(self, request: RequestT, loads: LoadRange) -> mlrsearch.MLRsearch:
        """MLRsearch.

        Raises:
            SearchError: If two different goals have the same name, a trial would send less than one frame even at the
                maximum load, or the request makes no sense.
        """
        shortest = min((goal.first_duration for goal in request.goals), default=math.inf)
        if loads.max_load * shortest < 1.0:
            raise SearchError(
                f"A trial of {shortest:g} s at the maximum load ({format_frame_rate(loads.max_load)} per interface) "
                "sends less than one frame. Give the search goal a longer final_trial_duration."
            )
        self._ask(request, loads)
        # Record: the search as the request asks for it.
        controller = mlrsearch.MLRsearch(
            # Goals give their warnings when they are made, perhaps long before anybody can see a warning.
            [replace(goal) for goal in request.goals],
            loads.min_load,
            loads.max_load,
            timeout=request.timeout,
            warm_up_duration=request.warm_up_duration,
            fail_fast=request.fail_fast,
            hints=[search.trials for search in self._earlier if not search.is_as_before],
            early_verdict=request.early_verdict,
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

        self._controller = controller
        return controller

    def _ask(self, request: RequestT, loads: LoadRange) -> None:
        """Prepares the question before the search, if the test has one."""
        if request.nightly is Nightly.SEARCH:
            return
        results = [search.result for search in self._earlier if search.result is not None]
        # Record: everything that must be the same as in the earlier searches.
        tonight = Tonight(
            request.goals, loads, self._topology, request.early_verdict, request.search_every
        )
        self._question, self._asked = ask(results, tonight)

    def inputs(
        self, request: RequestT, loads: LoadRange, controller: mlrsearch.MLRsearch
    ) -> Mapping[str, Any]:
        """Goals, loads and settings."""
        stated = request.inputs()
        stated["settings"].update(self._settings(request, controller))
        return {
            "goals": [describe_goal(goal).model_dump(mode="json") for goal in controller.goals],
            "min_load_fps": loads.min_load,
            "max_load_fps": loads.max_load,
            **stated,
        }

    def _settings(
        self, request: RequestT, controller: mlrsearch.MLRsearch
    ) -> Iterator[tuple[str, Any]]:
        """The settings that are recorded only by searches that use them, by name."""
        if request.end_at_coin:
            yield END_AT_COIN, True
        if request.nightly is not Nightly.SEARCH:
            yield NIGHTLY, request.nightly.value
            yield "search_every", request.search_every
        if request.hints is not None:
            searches = [
                {"file": str(search.file), "began": search.began} for search in self._earlier
            ]
            starts = {str(goal): load for goal, load in controller.hinted_loads.items()}
            yield "hints", {"searches": searches, "start_fps": starts}

    def remarks(self, request: RequestT, controller: mlrsearch.MLRsearch) -> Iterator[str]:
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

    def watch(self, request: RequestT, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a search if the generator leaves frames unsent at a load that it can send, or at the smallest load.

        Unsent frames show nothing about the SUT. The trials of the run that is resumed count, because they also decide
        the search.
        """
        controller = self._controller or self.controller(request, loads)

        def check(trial: TrialResult) -> None:
            evidence = controller.evidence
            is_least = trial.load <= loads.min_load
            if not is_least and not is_disturbed(trial, evidence):
                return
            here = [each for each in evidence if each.load == trial.load]
            if here:
                one = request.fail_fast and is_least
                check_generator(here, request.goals, is_one_enough=one, others=evidence)

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
            fields["question"] = self._with_answer(self._asked)
        return self.result(**fields)

    def _with_answer(self, asked: QuestionAsked) -> QuestionAsked:
        """A question with its answer, if it was asked."""
        if self._question is None or self._controller is None:
            return asked
        answer = self._controller.answer or mlrsearch.Answer.UNSURE
        trials = self._question.trials
        return asked.model_copy(update={"answer": str(answer), "trials": trials})


def _earlier_of(
    hints: Path, request: SearchRequest, place: TestPlace, device: Device | None
) -> Sequence[EarlierSearch]:
    """The earlier searches that the hints name, without those of this run."""
    of_this_run = [
        directory.path for directory in (place.directory, place.resume) if directory is not None
    ]
    traffic = request.profile.described()
    return earlier_searches(hints, place.test, traffic, device, besides=of_this_run)


def _in_each_direction(request: SearchRequest, testbed: Testbed) -> SearchRequest:
    """The request with each goal of all frames for each direction alone, too. Traffic one way needs no more goals."""
    ports = [(path.west.name, path.tg_ports[-1].name) for path in testbed.request.paths]
    ways = request.profile.described_load(ports).directions
    if len(ways) == 1:
        return request
    goals = [
        replace(goal, name=f"{goal} {way}", stream=way)
        for goal in request.goals
        if goal.stream is None
        for way in ways
    ]
    # A direction that passes nothing is no reason to stop looking at the other one.
    return request.but(goals=(*request.goals, *goals), fail_fast=False)


class Throughput(GoalSearch[SearchRequest, ThroughputResult]):
    """The kind: searches for conditional throughput."""

    keyword = "Find NDR And PDR"
    method = "ndr_pdr"
    noun = "conditional throughput"
    algorithm = ALGORITHM

    def perform(
        self,
        testbed: Testbed,
        request: SearchRequest,
        place: TestPlace,
        on_progress: Callable[[Any], None] | None = None,
    ) -> ThroughputResult:
        """Measures. If losses begin within the trials, a longer one follows."""
        check_arguments(testbed, request, self.request, place, on_progress)
        if request.per_direction:
            request = _in_each_direction(request, testbed)
        result = measure(self, testbed, request, place, on_progress)
        span = Span()
        longer = longer_after(result, testbed, request, request.goals)
        if longer is None:
            return result
        ended = span.later_than(result.ended)
        whole = result.model_copy(update={"longer_trial": longer, "ended": ended})
        place.directory.write(whole)
        return whole

    def called(self, request: SearchRequest) -> str:
        """The goals."""
        return ", ".join(map(str, request.goals))

    def bounds(self, result: ThroughputResult) -> tuple[float, ...]:
        """The relevant bounds of all goals, from the lowest."""
        bounds = (bound for report in result.goals for bound in report.bounds)
        return tuple(sorted({bound.per_interface_fps for bound in bounds if bound is not None}))

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
