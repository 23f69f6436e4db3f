"""Whether a search found at least the conditional throughput that is required."""

from lossratio.errors import SearchError
from lossratio.measurements.throughput.failed_search import refuse_generators_limit
from lossratio.measurements.throughput.result import GoalsResult, OfEarlierSearch, format_regularity
from lossratio.results import TestResult, apart_in_words, format_frames_per_second, written_in_full


def require_throughput(result: TestResult, least: float, goal: str | None = None) -> None:
    """Checks that the conditional throughput of a goal (None: the first goal) is not below a limit, per interface.

    Raises:
        AssertionError: If the conditional throughput is less, or there is none.
        TesterError: If it is less, or there is none, because the generator did not offer such a load, so that nothing
            is known about the SUT.
        SearchError: If the result does not come from a search, or has no such goal.
    """
    if not isinstance(result, GoalsResult):
        raise SearchError(
            f"The result of {result.test.name} is of kind {result.kind!r} and has no conditional throughput. "
            f"Search for one first, e.g. with 'Find NDR And PDR'."
        )

    if goal is None:
        report = result.goals[0]
    else:
        report = result.goal_named(goal)

    throughput = report.throughput
    if throughput is not None and throughput.per_interface_fps >= least:
        return

    asked = result.found_earlier(report.goal.name)
    if asked is not None:
        _require_tonight(asked, least, report.goal.loss_ratio)
        return

    refuse_generators_limit([report])
    written = written_in_full(result.unit)
    regularity = format_regularity(report)
    if throughput is None:
        raise AssertionError(
            f"{report.goal.name} has no conditional throughput ({regularity}); it should be at least "
            f"{written(least)}."
        )
    found, wanted = apart_in_words(written, throughput.per_interface_fps, least)
    raise AssertionError(
        f"{report.goal.name} is {found} ({regularity}); it should be at least {wanted}."
    )


def _require_tonight(asked: OfEarlierSearch, least: float, loss_ratio: float) -> None:
    """Checks that a SUT that is as before forwards enough: by tonight's trials, which lost at most the goal's share.

    Raises:
        AssertionError: If it does not forward enough, or possibly does not.
    """
    forwarded = (1.0 - loss_ratio) * asked.passing_load_fps
    if forwarded < least:
        raise AssertionError(
            f"{asked.goal} was not searched, because the SUT is as before. The last search found at least "
            f"{format_frames_per_second(asked.relevant_lower_bound.per_interface_fps)} per interface, and tonight's "
            f"trials show {format_frames_per_second(forwarded)}; it should be at least "
            f"{format_frames_per_second(least)}. To search, set nightly=search."
        )
