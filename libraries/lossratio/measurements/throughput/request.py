"""The request of a search for conditional throughput."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, model_validator

from lossratio import mlrsearch
from lossratio.measurements import NOT_IN_FILES, Request
from lossratio.measurements.throughput.goals import NdrPdrGoals, goals_from
from lossratio.measurements.throughput.nightly import SEARCH_EVERY, Nightly
from lossratio.mlrsearch import Forecast, SearchGoal
from lossratio.values import LONGEST_TRIAL, Choice, Duration

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange

DEFAULT_TIMEOUT = 1200.0
"""Seconds that a search may take: FD.io CSIT's limit."""


class SearchRequest(Request):
    """Searches for the non-drop rate and the partial drop rate at once, or for any goals."""

    goals: Annotated[tuple[SearchGoal, ...], BeforeValidator(goals_from), NOT_IN_FILES] = (
        NdrPdrGoals.csit.value
    )
    """The search goals: given as goals, as the name of a set (``csit``), as names of presets, or as a file of goals."""
    timeout: Duration | None = DEFAULT_TIMEOUT
    """Seconds of trials after which the search ends with the results so far: by default FD.io CSIT's 20 minutes. In
    scripts, None means that there is no limit."""
    warm_up_duration: Annotated[Duration | None, Field(gt=0.0, le=LONGEST_TRIAL)] = None
    """Seconds of a first trial at maximum load with the same traffic. This trial does not count. None: there is
    none."""
    fail_fast: bool = True
    """Whether the search ends for all goals when one goal fails at the minimum load."""
    hints: Annotated[Path | None, NOT_IN_FILES] = None
    """Earlier searches of the same test, which show where this search should start: the directory of a run, a folder of
    such directories, or a journal. None: there are no hints."""
    early_verdict: bool = False
    """Whether a trial ends as soon as it is certain to be a high-loss trial for every goal."""
    per_direction: Annotated[bool, Field(exclude=True)] = False
    """Whether the same search also finds each direction's own highest load for every goal. All directions are offered
    the same load."""
    end_at_coin: Annotated[bool, Field(exclude=True)] = False
    """Whether the search gives up a goal if trials pass and fail by chance over a range of loads. The result then has
    this range instead of bounds.
    """
    nightly: Annotated[Choice[Nightly], Field(exclude=True)] = Nightly.SEARCH
    """What happens if `hints` has earlier searches: ``search`` always searches; ``as_before`` searches only if the SUT
    is not as before."""
    search_every: Annotated[int, Field(ge=1, exclude=True)] = SEARCH_EVERY
    """With ``as_before``, one night in this many has a search in any case."""

    @model_validator(mode="after")
    def _has_a_goal(self) -> SearchRequest:
        if not self.goals:
            raise ValueError("A search needs at least one search goal, such as NDR")
        return self

    @model_validator(mode="after")
    def _has_streams_of_goals(self) -> SearchRequest:
        for goal in self.goals:
            if goal.stream is None or ">" in goal.stream:
                continue
            if goal.stream not in self.profile.stream_names:
                has = ", ".join(self.profile.stream_names) or "none"
                raise ValueError(
                    f"the goal {goal} is for the stream {goal.stream!r}, but the profile {self.profile.name} has "
                    f"no such stream; its streams: {has}"
                )
        return self

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time that the search is expected to take.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each full-length trial takes besides its traffic.
        """
        search = mlrsearch.MLRsearch(
            [replace(goal) for goal in self.goals], loads.min_load, loads.max_load, timeout=None
        )
        longer = 1.0 + waits / self.goals[0].final_trial_duration
        expected = search.forecast()
        return Forecast(expected.seconds * longer, expected.low * longer, expected.high * longer)


HOW_TO_SEARCH = frozenset(SearchRequest.model_fields) - {*Request.model_fields, "goals", "timeout"}
"""The fields that control the search for throughput. Other searches only have goals and a time limit."""
