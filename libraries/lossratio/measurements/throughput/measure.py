"""Conditional throughput: a search with MLRsearch on a testbed, from the request to the result file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lossratio.errors import SearchError
from lossratio.measurements import OnProgress, Progress, TestPlace, WarmUp, perform, run_warm_up
from lossratio.measurements.throughput.hints import EarlierSearch, describe_hints, earlier_searches, remark_on_hints
from lossratio.mlrsearch import MLRsearch, SearchGoal, SearchGoalWarning
from lossratio.results import SearchSetup, ThroughputResult, describe_goal, throughput_result
from lossratio.testbed import LoadRange, Testbed, describe_traffic, load_limits, load_range
from lossratio.traffic import TrafficProfile
from lossratio.trials import Integrity, TrialResult

DEFAULT_TIMEOUT = 1200.0
"""Seconds that a search may take: FD.io CSIT's limit."""


@dataclass(frozen=True)
class SearchRequest:
    """What to search for.

    Attributes:
        goals: The search goals.
        profile: What the traffic is.
        min_load: Smallest load per interface, frames per second; None: see `lossratio.testbed.loads.load_range`.
        max_load: Largest load per interface; None: the smallest limit of `lossratio.testbed.loads.load_limits`.
        timeout: Seconds of trials after which the search ends with what it knows; None: never.
        warm_up_duration: Seconds of a first trial at maximum load that does not count, with the same traffic; None:
            there is none.
        fail_fast: Whether the search ends for all goals when the minimum load is too much for one.
        hints: Where earlier searches of the same test are, which choose where this one starts: the directory of a run,
            a folder of such directories, or a journal. None: there are no hints.
        warm_up: A warm-up at maximum load with traffic of its own, before everything else; None: there is none.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
        integrity: What happens if frames do not come back as they were sent.
    """

    goals: Sequence[SearchGoal]
    profile: TrafficProfile
    min_load: float | None = None
    max_load: float | None = None
    timeout: float | None = DEFAULT_TIMEOUT
    warm_up_duration: float | None = None
    fail_fast: bool = True
    hints: Path | None = None
    warm_up: WarmUp | None = None
    ramp: float = 0.0
    integrity: Integrity = Integrity.DOUBT

    def settings(self) -> dict[str, Any]:
        """What the controller is told besides goals and loads, as JSON data; times in seconds."""
        return {
            "timeout_s": self.timeout,
            "warm_up_duration_s": self.warm_up_duration,
            "fail_fast": self.fail_fast,
            **({} if self.warm_up is None else {"warm_up": self.warm_up.to_json()}),
        }


def find_conditional_throughput(
    testbed: Testbed,
    request: SearchRequest,
    place: TestPlace,
    on_progress: OnProgress | None = None,
) -> ThroughputResult:
    """Searches for the conditional throughput of all goals at once, and writes the result file.

    Returns:
        The result, as it was written; irregular goal results are no error.

    Raises:
        LossRatioError: If the request makes no sense or the measurement failed. In the latter case the result file
            says so, and holds the trials there were.
    """
    limits = load_limits(testbed, request.profile)
    loads = load_range(limits, min_load=request.min_load, max_load=request.max_load)
    earlier = _earlier(request, place)
    controller, advice = _controller(request, loads, earlier)
    settings = request.settings()
    if request.hints is not None:
        settings["hints"] = describe_hints(controller, earlier)
        advice = (*advice, remark_on_hints(request.hints, controller, earlier))
    if request.warm_up is not None:
        advice = (*advice, run_warm_up(testbed, request.warm_up, loads.max_load))

    def tell(trial: TrialResult) -> None:
        if on_progress is not None:
            on_progress(_progress(controller, trial))

    inputs = {
        "algorithm": "MLRsearch",
        "goals": [describe_goal(goal).model_dump(mode="json") for goal in controller.goals],
        "min_load_fps": loads.min_load,
        "max_load_fps": loads.max_load,
        "settings": settings,
    }
    measured = perform(
        controller,
        testbed,
        request.profile,
        place,
        inputs=inputs,
        remarks=(*loads.remarks, *advice),
        on_trial=tell,
        ramp=request.ramp,
        integrity=request.integrity,
    )
    max_load = loads.describe(measured.run.conditions)
    warm_ups = 0 if request.warm_up_duration is None else 1
    setup = SearchSetup("MLRsearch", settings, controller.goals, loads.min_load, max_load, warm_ups)
    result = throughput_result(measured.run, setup, measured.result, measured.entries)
    place.directory.write(result)
    measured.raise_failure()
    return result


def _progress(controller: MLRsearch, trial: TrialResult) -> Progress:
    """Where the search is, in the controller's own words: the same work after a thousand trials as after ten."""
    so_far = Progress(controller.trials, trial, controller.bounds, controller.forecast())
    purpose = controller.last_purpose
    return so_far if purpose is None else replace(so_far, purpose=str(purpose), rule=purpose.rule)


def _earlier(request: SearchRequest, place: TestPlace) -> tuple[EarlierSearch, ...]:
    if request.hints is None:
        return ()
    own = [each.path for each in (place.directory, place.resume) if each is not None]
    return earlier_searches(request.hints, place.test.full_name, describe_traffic(request.profile), besides=own)


def _controller(
    request: SearchRequest, loads: LoadRange, earlier: Sequence[EarlierSearch]
) -> tuple[MLRsearch, tuple[str, ...]]:
    """The controller, and what RFC 9971 advises against in the request."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SearchGoalWarning)
        controller = MLRsearch(
            # Goals warn when they are made, which may have been long before anybody listened.
            [replace(goal) for goal in request.goals],
            loads.min_load,
            loads.max_load,
            timeout=request.timeout,
            warm_up_duration=request.warm_up_duration,
            fail_fast=request.fail_fast,
            hints=[each.trials for each in earlier],
        )
    _check_names(controller.goals)
    return controller, tuple(str(warning.message) for warning in caught)


def _check_names(goals: Sequence[SearchGoal]) -> None:
    """Makes sure that no result of one goal can be taken for another one's: reports and trends go by their names."""
    names = [str(goal) for goal in goals]
    for name in names:
        if names.count(name) > 1:
            raise SearchError(
                f"Two different search goals are called {name!r}. Give each a name of its own, e.g. "
                '{"name": "patient", "loss_ratio": "0.1 %", "duration_sum": "1 min"}.'
            )
