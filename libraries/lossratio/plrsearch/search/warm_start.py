"""Where to begin when the SUT is not unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from lossratio.errors import SearchError
from lossratio.plrsearch.model import CriticalLoadQuestion


class Bounds(Protocol):
    """The bounds of a search goal, as an MLRsearch result has them; in frames per second, None if not found."""

    @property
    def relevant_lower_bound(self) -> float | None:
        """The largest load that passed."""

    @property
    def relevant_upper_bound(self) -> float | None:
        """The smallest load that did not."""


WarmStart: TypeAlias = Iterable[float] | Mapping[object, Bounds]
"""Loads in frames per second; or an MLRsearch result of the same SUT under the same traffic."""


def warm_loads(given: WarmStart, question: CriticalLoadQuestion) -> tuple[float, ...]:
    """Loads of the first trials, the highest first.

    Args:
        given: The loads, or an MLRsearch result: then its relevant bounds.
        question: Has the limits; loads beyond are moved to them.

    Raises:
        SearchError: If a load is not a positive number.
    """
    if isinstance(given, Mapping):
        bounds = [each for goal in given.values() for each in (goal.relevant_lower_bound, goal.relevant_upper_bound)]
        loads = [float(bound) for bound in bounds if bound]
    else:
        loads = [float(load) for load in given]
    if not all(load > 0.0 for load in loads):
        raise SearchError(f"A warm start needs positive loads in frames per second, not {loads!r}.")
    return tuple(sorted({min(max(load, question.min_load), question.max_load) for load in loads}, reverse=True))
