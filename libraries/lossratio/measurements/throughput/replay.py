"""A search made again from its journal."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from lossratio import mlrsearch
from lossratio.errors import SearchError
from lossratio.measurements.throughput.result import Goal, search_goal
from lossratio.measurements.throughput.settings import EARLY_VERDICT, END_AT_COIN
from lossratio.trials import JournalContents
from lossratio.values import in_words


class _Searched(BaseModel):
    """A search as the header of its journal describes it."""

    goals: tuple[Goal, ...]
    min_load_fps: float
    max_load_fps: float
    timeout_s: float | None = None
    warm_up_duration_s: float | None = None


def replayed(journal: JournalContents, name: str = "The journal") -> "mlrsearch.MLRsearch":
    """The search of a journal in its state after all trials.

    Raises:
        SearchError: If the journal does not say what was searched for.
    """
    given = journal.search.get("settings")
    settings: Mapping[str, Any] = given if isinstance(given, dict) else {}
    try:
        searched = _Searched.model_validate({**journal.search, **settings})
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        lacking = "what its goals are" if field == "goals" else field
        raise SearchError(
            f"{name} does not say {lacking}: {in_words(error.errors()[0])}."
        ) from error

    # Record: the search as described by the header of its journal.
    controller = mlrsearch.MLRsearch(
        [search_goal(goal) for goal in searched.goals],
        searched.min_load_fps,
        searched.max_load_fps,
        timeout=searched.timeout_s,
        warm_up_duration=searched.warm_up_duration_s,
        fail_fast=settings.get("fail_fast") is not False,
        early_verdict=settings.get(EARLY_VERDICT) is True,
        end_at_coin=settings.get(END_AT_COIN) is True,
    )
    for trial in journal.results:
        controller.record(trial)
    return controller
