"""Which goal of a search is meant: by its name, or PDR where nobody says."""

from __future__ import annotations

from lossratio.errors import SearchError
from lossratio.results import GoalReport, ThroughputResult

_PDR = "PDR"


def goal_named(result: ThroughputResult, name: str) -> GoalReport:
    """A goal of a search, by its name in any case.

    Raises:
        SearchError: If there is no such goal; names those there are.
    """
    for report in result.goals:
        if report.goal.name.casefold() == name.casefold():
            return report
    names = ", ".join(report.goal.name for report in result.goals)
    raise SearchError(f"The search had no goal {name!r}. Its goals were {names}.")


def goal_to_follow(result: ThroughputResult, name: str | None) -> GoalReport:
    """The goal at whose load something is measured after a search.

    Args:
        result: What the search found.
        name: The goal's name in any case; None: PDR (or whatever ends with these letters), else the last one.

    Raises:
        SearchError: If there is no goal of that name.
    """
    if name is not None:
        return goal_named(result, name)
    return next((each for each in result.goals if each.goal.name.upper().endswith(_PDR)), result.goals[-1])
