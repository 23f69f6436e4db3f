"""The same search several times over, to see how far its results are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lossratio.errors import SearchError
from lossratio.measurements import OnProgress, TestPlace
from lossratio.measurements.throughput.measure import SearchRequest, find_conditional_throughput
from lossratio.results import GoalReport, GoalSpread, ThroughputResult, goal_spread
from lossratio.testbed import Testbed

OnResult = Callable[[ThroughputResult, TestPlace], None]


def repeat_search(
    testbed: Testbed,
    request: SearchRequest,
    next_place: Callable[[], TestPlace],
    times: int,
    *,
    on_progress: OnProgress | None = None,
    on_result: OnResult | None = None,
) -> ThroughputResult:
    """Searches several times for the same. Each search has its own files; from the second on, results tell the spread.

    Args:
        testbed: What to measure on.
        request: What to search for.
        next_place: Gives each search a place for its files.
        times: How many searches.
        on_progress: Called after each trial.
        on_result: Called after each search.

    Returns:
        The last result, with the spread of all.

    Raises:
        SearchError: If there is to be no search at all.
        LossRatioError: If one of the searches fails.
    """
    if times < 1:
        raise SearchError(f"A search can be repeated 1 time or more, not {times}.")
    results: list[ThroughputResult] = []
    for _ in range(times):
        place = next_place()
        result = find_conditional_throughput(testbed, request, place, on_progress)
        results.append(result)
        if len(results) > 1:
            result = result.model_copy(update={"spread": spread_of(results)})
            place.directory.write(result)
        if on_result is not None:
            on_result(result, place)
    return result


def spread_of(results: Sequence[ThroughputResult]) -> tuple[GoalSpread, ...]:
    """The spread of each goal's conditional throughput over results of the same search."""
    return tuple(_spread([result.goals[place] for result in results]) for place in range(len(results[0].goals)))


def _spread(reports: Sequence[GoalReport]) -> GoalSpread:
    found = [report.result for report in reports]
    values = [None if result is None else result.conditional_throughput for result in found]
    return goal_spread(reports[0].goal.name, values, sum(result is not None and result.regular for result in found))
