"""A night that asks one question: is the SUT as it was in the last searches of the test?

This module decides when to ask this question, which searches to use, and how often the answer is wrong. Replays show
how often: one of these nights, with its trials moved by a change, is compared with the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING

from pydantic import JsonValue

from lossratio.measurements.throughput.result import (
    Goal,
    OfEarlierSearch,
    QuestionAsked,
    ReplayedChange,
    ThroughputResult,
    describe_goal,
)
from lossratio.measurements.throughput.settings import EARLY_VERDICT
from lossratio.mlrsearch import Answer, LoadGrid, Question, SearchGoal
from lossratio.results import Outcome
from lossratio.trials import TrialInput, TrialOutput, TrialResult
from lossratio.values import format_ratio
from lossratio.version import __version__

if TYPE_CHECKING:
    from lossratio.simulation import Replay
    from lossratio.testbed import LoadRange

LEAST_SEARCHES = 5
"""The minimum number of whole searches since the last change that was found."""

SEARCH_EVERY = 7
"""One of this many nights has a search in any case."""

REPLAYS = 8
"""Number of questions in the replays of each night, for each change."""

ALLOWED = {0.05: 0.05, 0.02: 0.3}
"""The share of changes that replays may miss, by their size. If they miss more, the question is not asked."""


class Nightly(str, Enum):
    """How a search proceeds if earlier searches are known."""

    SEARCH = "search"
    """It searches every time."""
    AS_BEFORE = "as_before"
    """It asks whether the SUT is as before. It searches if the SUT is not as before, or if the answer is open."""


@dataclass(frozen=True)
class Tonight:
    """Everything that must be the same as in the earlier searches."""

    goals: tuple[SearchGoal, ...]
    """The goals."""
    loads: LoadRange
    """The loads."""
    topology: dict[str, JsonValue]
    """The topology file's contents."""
    early_verdict: bool
    """Whether trials end as soon as their verdict is certain."""
    search_every: int
    """One of this many nights has a search in any case."""

    @property
    def described(self) -> tuple[Goal, ...]:
        """The goals in the form of results."""
        return tuple(describe_goal(goal) for goal in self.goals)

    @property
    def grid(self) -> LoadGrid:
        """The loads of the search."""
        width = min(goal.width for goal in self.goals)
        return LoadGrid(self.loads.min_load, self.loads.max_load, width, self.loads.step)


def ask(
    earlier: Sequence[ThroughputResult], tonight: Tonight
) -> tuple[Question | None, QuestionAsked]:
    """Tonight's question (None: it is not asked), and the facts that are known about it before its first trial.

    Args:
        earlier: The results of earlier nights with the same test, traffic and device, oldest first.
        tonight: What must be the same as on those nights.
    """
    goals = tonight.goals
    if any(goal.stream is not None for goal in goals):
        return _not_asked("its goals are for single streams")
    durations = {goal.first_duration for goal in goals}
    durations |= {goal.final_trial_duration for goal in goals}
    if len(durations) > 1:
        return _not_asked("its goals have trials of more than one length")

    nights = _since_last_change([night for night in earlier if night.outcome is not Outcome.FAILED])
    searches = [night for night in nights if not night.is_as_before]
    since_search = len(nights) - 1 - max((nights.index(night) for night in searches), default=-1)
    alike = [night for night in searches if _is_alike(night, tonight)]
    if searches and searches[-1] not in alike:
        return _not_asked(
            "the last search had a different topology, version of lossratio or set of goals"
        )
    if len(alike) < LEAST_SEARCHES:
        return _not_asked(
            f"it needs {LEAST_SEARCHES} regular searches since the last change, with the same device, topology, "
            f"version of lossratio and goals; there have been {len(alike)}"
        )
    if since_search + 1 >= tonight.search_every:
        return _not_asked(f"one in {tonight.search_every} nights always searches")

    last = alike[-LEAST_SEARCHES:]
    trials = [_trials_of(night, goals) for night in last]
    question = _question(trials, tonight)
    if question.answer is not None:
        return _not_asked("the earlier searches have too few trials near the bounds of a goal")
    replays = tuple(replayed_changes(trials, tonight))
    known = QuestionAsked(
        answer="unsure",
        since=last[-1].started,
        earlier=tuple(_found(last, question)),
        replays=replays,
    )
    why = why_too_often_wrong(replays)
    if why is not None:
        return None, known.model_copy(update={"answer": "not asked", "reason": why})
    return question, known


def _not_asked(why: str) -> tuple[None, QuestionAsked]:
    return None, QuestionAsked(answer="not asked", reason=why)


def _since_last_change(nights: Sequence[ThroughputResult]) -> Sequence[ThroughputResult]:
    """The nights since the last change of the SUT, beginning with the night of that change."""
    changed = [
        place
        for place, night in enumerate(nights)
        if night.question is not None and night.question.answer == str(Answer.CHANGED)
    ]
    return nights[max(changed, default=0) :]


def _is_alike(night: ThroughputResult, tonight: Tonight) -> bool:
    """Whether the result comes from a whole search like tonight's."""
    conditions = night.conditions
    if night.outcome is not Outcome.MEASURED or conditions.testbed.topology != tonight.topology:
        return False
    if conditions.controller.lossratio_version != __version__:
        return False
    has_early_verdicts = night.settings.get(EARLY_VERDICT) is True
    has_goals = tuple(report.goal for report in night.goals) == tonight.described
    return has_goals and has_early_verdicts == tonight.early_verdict


def _found(searches: Sequence[ThroughputResult], question: Question) -> Iterator[OfEarlierSearch]:
    for reports in zip(*(search.goals for search in searches), strict=True):
        last = reports[-1]
        lower, upper = last.bounds
        throughputs = [report.throughput for report in reports]
        passing, failing = question.loads(last.goal.name)
        if lower is not None and upper is not None:
            # Record: the bounds that the last search found for a goal, tonight's loads, and the values of all searches.
            yield OfEarlierSearch(
                goal=last.goal.name,
                relevant_lower_bound=lower,
                relevant_upper_bound=upper,
                passing_load_fps=passing,
                failing_load_fps=failing,
                values_fps=tuple(
                    rate.per_interface_fps for rate in throughputs if rate is not None
                ),
            )


def _trials_of(night: ThroughputResult, goals: Sequence[SearchGoal]) -> list[TrialResult]:
    """The full-length trials of a search, without those after a rest."""
    trials = (trial.as_result() for trial in night.evidence)
    duration = goals[0].final_trial_duration
    return [trial for trial in trials if trial.duration >= duration and not trial.input.rest]


def _question(nights: Iterable[Sequence[TrialResult]], tonight: Tonight) -> Question:
    return Question(tonight.goals, tonight.grid, [trial for night in nights for trial in night])


def replayed_changes(
    nights: Sequence[Sequence[TrialResult]], tonight: Tonight
) -> Iterator[ReplayedChange]:
    """Asks about each night as if it were tonight: without a change, and after each change in `ALLOWED`.

    The other nights are known.

    Args:
        nights: The trials of searches, oldest first.
        tonight: The question.
    """
    # Imported here, because few searches ask this question.
    import numpy as np

    from lossratio.simulation import Replay, counted, record_of

    record = record_of(counted(trial) for night in nights for trial in night)
    for change in (0.0, *ALLOWED):
        as_before = 0
        for place, number in product(range(len(nights)), range(REPLAYS)):
            factor = 1.0 + (change if number % 2 else -change)
            rng = np.random.default_rng((place, round(change * 1e6), number))
            question = _question([*nights[:place], *nights[place + 1 :]], tonight)
            as_before += _is_as_before(question, Replay(record, rng, "either"), factor, tonight)
        questions = len(nights) * REPLAYS
        yield ReplayedChange(change_ratio=change, questions=questions, as_before=as_before)


def _is_as_before(question: Question, replay: Replay, factor: float, tonight: Tonight) -> bool:
    """The answer to one question, in a replay of a night on which the SUT was faster by a factor."""
    duration = tonight.goals[0].final_trial_duration
    while question.answer is None:
        load = question.next_load()
        output = TrialOutput(replay.loss_ratio(load / factor))
        question.add(TrialResult(TrialInput(duration, load), output))
    return question.answer is Answer.AS_BEFORE


def why_too_often_wrong(replays: Sequence[ReplayedChange]) -> str | None:
    """Why the replays forbid the question: they miss too many changes; None: the question may be asked."""
    for replayed in replays:
        allowed = ALLOWED.get(replayed.change_ratio, 1.0)
        if replayed.as_before > allowed * replayed.questions:
            return (
                f"in replays of these nights, {replayed.as_before} of {replayed.questions} changes of "
                f"{format_ratio(replayed.change_ratio)} were missed"
            )
    return None
