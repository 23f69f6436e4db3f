"""The result of a search for conditional throughput: goals, bounds, and additions after the search."""

import warnings
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.errors import SearchError
from lossratio.measurements.latency.result import LatencyAtLoad
from lossratio.measurements.telemetry import TelemetryTrial
from lossratio.measurements.throughput.extra_trials import LongerTrial
from lossratio.mlrsearch import Answer, IrregularReason, SearchGoal, SearchGoalWarning
from lossratio.results import MaxLoad, Outcome, TestResult
from lossratio.values import Rate, Ratio, Record, Seconds, UtcTime, left_out_if_empty

_PDR = "PDR"


class Goal(Record):
    """A search goal, with every attribute."""

    name: str
    """Name of the goal."""
    loss_ratio: Ratio
    """Goal loss ratio."""
    exceed_ratio: Ratio
    """Goal exceed ratio: the share of trial seconds that may lose more than the goal loss ratio."""
    final_trial_duration_s: Seconds
    """Goal final trial duration."""
    duration_sum_s: Seconds
    """Goal duration sum."""
    initial_trial_duration_s: Seconds
    """Goal initial trial duration."""
    width_ratio: Ratio
    """Goal width: the largest difference of the relevant bounds, as a share of the load named by
    `width_relative_to`."""
    width_relative_to: Literal["relevant upper bound"] = "relevant upper bound"
    """The load that the goal width is relative to."""
    stream: str | None = None
    """The stream of the traffic profile, or the direction, whose loss counts; left out: the loss of all frames
    counts."""

    _leave_out = left_out_if_empty("stream")

    @property
    def part(self) -> str:
        """The stream or the direction whose loss counts, in words; empty: all frames."""
        if self.stream is None or ">" in self.stream:
            return self.stream or ""
        return f"stream {self.stream}"


class LossyShare(Record):
    """The full-length trials at one load that lost more than a goal allows."""

    load: Rate
    """The load."""
    trials: int = Field(ge=1)
    """Full-length trials at this load."""
    lossy: int = Field(ge=0)
    """How many of them lost more than the goal loss ratio."""
    longest_run: int = Field(ge=0)
    """The largest number of these trials in a row."""


class ZoneOfChance(Record):
    """Loads at which a verdict is a coin toss: 30 to 70 % of trials are lossy. They span more than the goal width."""

    shares: tuple[LossyShare, ...] = Field(min_length=2)
    """The measured loads of the zone, ascending; the first and the last one are its ends."""

    @property
    def ends(self) -> tuple[Rate, Rate]:
        """The smallest and the largest load."""
        return self.shares[0].load, self.shares[-1].load

    @property
    def width(self) -> float:
        """Distance between its ends, relative to the larger one."""
        least, most = (end.per_interface_fps for end in self.ends)
        return 1.0 - least / most


class GoalOutcome(Record):
    """A goal result (RFC 9971)."""

    regular: bool
    """Whether the goal result is regular."""
    reason: str | None
    """Why it is irregular; null if it is regular."""
    relevant_lower_bound: Rate | None
    """The largest load below the relevant upper bound that meets the goal; null: there is no such load."""
    relevant_upper_bound: Rate | None
    """The smallest load that does not meet the goal, or the maximum load if even that meets it; null: there is none."""
    conditional_throughput: Rate | None
    """The typical forwarding rate at the relevant lower bound; null without one."""
    zone: ZoneOfChance | None = None
    """Loads that another search may find as well; left out: there is no such zone, or the trials do not show it."""

    _leave_out = left_out_if_empty("zone")

    @model_validator(mode="after")
    def _is_consistent(self) -> "GoalOutcome":
        if self.regular == (self.reason is not None):
            raise ValueError("an irregular goal result has a reason, and a regular one has none")
        if self.regular and None in (self.relevant_lower_bound, self.relevant_upper_bound):
            raise ValueError("a regular goal result has both bounds")
        if (self.conditional_throughput is None) != (self.relevant_lower_bound is None):
            raise ValueError(
                "there is a conditional throughput if and only if there is a relevant lower bound"
            )
        return self


class GoalReport(Record):
    """A search goal, and its result."""

    goal: Goal
    """The goal."""
    result: GoalOutcome | None
    """The goal result; null if the measurement failed."""

    @property
    def throughput(self) -> Rate | None:
        """The conditional throughput, if there is one."""
        if self.result is None:
            return None
        return self.result.conditional_throughput

    @property
    def bounds(self) -> tuple[Rate | None, Rate | None]:
        """The relevant lower and upper bound, if any; a maximum load that meets the goal is not an upper bound."""
        if self.result is None:
            return None, None
        lower, upper = self.result.relevant_lower_bound, self.result.relevant_upper_bound
        return lower, None if upper == lower else upper

    @property
    def reason(self) -> str | None:
        """Why the goal result is irregular; None: it is regular, or there is none."""
        return None if self.result is None else self.result.reason

    @property
    def zone(self) -> ZoneOfChance | None:
        """Loads that another search may find as well, if there are any."""
        return None if self.result is None else self.result.zone

    @property
    def is_as_before(self) -> bool:
        """Whether there was no search, as the SUT is as before."""
        return self.reason == str(IrregularReason.AS_BEFORE)

    @property
    def is_left_to_a_coin(self) -> bool:
        """Whether the search gave up the goal because only chance would decide."""
        return self.reason == str(IrregularReason.COIN)


class OfEarlierSearch(Record):
    """What the last search found for a goal, and the loads of the question for this goal."""

    goal: str
    """Name of the goal."""
    relevant_lower_bound: Rate
    """Its relevant lower bound."""
    relevant_upper_bound: Rate
    """Its relevant upper bound."""
    passing_load_fps: float = Field(gt=0.0)
    """The load at which trials pass the goal if the SUT is as before, per interface."""
    failing_load_fps: float = Field(gt=0.0)
    """The load at which trials fail the goal if the SUT is as before, per interface."""
    values_fps: tuple[float, ...] = ()
    """The conditional throughput per interface of each search that the question compares with, oldest first. The last
    value is the value of this search."""


class ReplayedChange(Record):
    """Questions in replays of this test's own nights, after a change of the SUT's speed."""

    change_ratio: Ratio
    """Size of the change; 0: none. Half of the questions follow a gain, and the other half a loss."""
    questions: int = Field(ge=1)
    """Number of questions."""
    as_before: int = Field(ge=0)
    """How many were answered *as before*. The others were left to a search."""


class QuestionAsked(Record):
    """The question whether the SUT is as in earlier searches."""

    answer: Literal["as before", "changed", "unsure", "not asked"]
    """The answer. There was a search, unless it is *as before*."""
    reason: str | None = None
    """Why the question was not asked; null: it was asked."""
    trials: int = Field(default=0, ge=0)
    """Number of trials of the question. They are the first trials of the result."""
    since: UtcTime | None = None
    """When the last search before the question began; null: not known."""
    earlier: tuple[OfEarlierSearch, ...] = ()
    """What this search found for each goal."""
    replays: tuple[ReplayedChange, ...] = ()
    """How often the question is answered wrongly; empty: it was not asked."""


class GoalsResult(TestResult):
    """The result of a search with goals, over loads of any unit."""

    has_goals: ClassVar[bool] = True
    kind: str
    """The kind of the result."""
    algorithm: str
    """The search algorithm, e.g. ``MLRsearch``."""
    settings: dict[str, JsonValue]
    """The algorithm's other settings."""
    min_load: Rate
    """The smallest load of the search."""
    max_load: MaxLoad
    """The largest load of the search."""
    goals: tuple[GoalReport, ...] = Field(min_length=1)
    """The goals, in the order in which they were given, each with its result."""
    latency: tuple[LatencyAtLoad, ...] = ()
    """Latency at shares of a relevant lower bound; empty: it was not measured."""
    telemetry: tuple[TelemetryTrial, ...] = ()
    """Trials after the search, with the DUTs' counters before and after them; empty: there were none."""
    spread: tuple[JsonValue, ...] = ()
    """In results of earlier versions: the spread of this result and those of the same search before it."""
    experiments: dict[str, JsonValue] | None = None
    """In results of earlier versions: the experiments after a search in which no load passed."""
    smaller_load: dict[str, JsonValue] | None = None
    """In results of earlier versions: a trial below the smallest load of a search in which no load passed."""
    longer_trial: LongerTrial | None = None
    """A longer trial at a lower bound, made because losses begin within the trials; left out: there was none."""
    question: QuestionAsked | None = None
    """The question that was asked before the search; left out: there was no question."""

    _leave_out = left_out_if_empty(
        "spread", "question", "experiments", "smaller_load", "longer_trial"
    )

    @property
    def is_as_before(self) -> bool:
        """Whether there was no search, as the SUT is as before."""
        return self.question is not None and self.question.answer == str(Answer.AS_BEFORE)

    def found_earlier(self, goal: str) -> OfEarlierSearch | None:
        """What the last search found for a goal, if the SUT is as before; otherwise None."""
        if self.question is None or not self.is_as_before:
            return None
        return next((found for found in self.question.earlier if found.goal == goal), None)

    @model_validator(mode="after")
    def _is_as_before_for_all_goals(self) -> "GoalsResult":
        if self.outcome is not Outcome.FAILED and any(
            report.is_as_before != self.is_as_before for report in self.goals
        ):
            raise ValueError(
                "if the SUT is as before, no goal is searched for; otherwise, all of them are"
            )
        return self

    @model_validator(mode="after")
    def _outcome_is_that_of_the_goals(self) -> "GoalsResult":
        results = [report.result for report in self.goals]
        if self.outcome is Outcome.FAILED:
            if any(result is not None for result in results):
                raise ValueError("a failed measurement has no goal results")
        elif outcome_of(results) is not self.outcome:
            raise ValueError(
                f"the outcome must be {outcome_of(results).value!r}, because of the goal results"
            )
        return self

    def goal_named(self, name: str) -> GoalReport:
        """A goal of the search, by its name in any case.

        Raises:
            SearchError: If the search had no such goal; the message names the goals that it had.
        """
        for report in self.goals:
            if report.goal.name.casefold() == name.casefold():
                return report
        names = ", ".join(report.goal.name for report in self.goals)
        raise SearchError(f"The search had no goal {name!r}. Its goals were {names}.")

    def throughput(self, goal: str) -> float:
        """The conditional throughput of a goal, in frames per second per interface.

        Raises:
            SearchError: If there is no such goal, or its result is irregular or failed; the message has the reason.
        """
        report = self.goal_named(goal)
        outcome = report.result
        if outcome is None:
            raise SearchError(f"{report.goal.name} failed and has no throughput: {self.error}")
        if not outcome.regular or outcome.conditional_throughput is None:
            raise SearchError(
                f"{report.goal.name} is irregular and has no throughput to quote: {outcome.reason}."
            )
        return outcome.conditional_throughput.per_interface_fps

    def goal_to_follow(self, name: str | None) -> GoalReport:
        """The goal whose load later measurements use; None: PDR (or a name that ends so), or else the last goal.

        Raises:
            SearchError: If there is no goal of that name.
        """
        if name is not None:
            return self.goal_named(name)
        return next(
            (report for report in self.goals if report.goal.name.upper().endswith(_PDR)),
            self.goals[-1],
        )

    def relevant_load(self, goal: str | None) -> tuple[str, float]:
        """The goal's name, and the load for measurements after the search: its relevant lower bound, per interface.

        If the SUT is as before, it is the bound of the last search.

        Raises:
            SearchError: If there is no such goal, or it has no relevant lower bound.
        """
        chosen = self.goal_to_follow(goal)
        bound, _ = chosen.bounds
        found = self.found_earlier(chosen.goal.name)
        if found is not None:
            return chosen.goal.name, found.relevant_lower_bound.per_interface_fps
        if bound is None:
            raise SearchError(
                f"{chosen.goal.name} has no relevant lower bound at which to measure a trial. Name the load instead."
            )
        return chosen.goal.name, bound.per_interface_fps


class ThroughputResult(GoalsResult):
    """The result of a search for conditional throughput."""

    kind: Literal["throughput"] = "throughput"


def outcome_of(results: list[GoalOutcome | None]) -> Outcome:
    """The outcome of a search that did not fail; a goal without a result counts as irregular."""
    if all(result is not None and result.regular for result in results):
        return Outcome.MEASURED
    return Outcome.IRREGULAR


def describe_goal(goal: SearchGoal) -> Goal:
    """A search goal with every attribute, including those with default values."""
    return Goal(
        name=str(goal),
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        final_trial_duration_s=goal.final_trial_duration,
        duration_sum_s=goal.duration_sum,
        initial_trial_duration_s=goal.first_duration,
        width_ratio=goal.width,
        stream=goal.stream,
    )


def search_goal(goal: Goal) -> SearchGoal:
    """The search goal that a result file describes, without warnings: the search has already given them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchGoalWarning)
        return SearchGoal(
            goal.loss_ratio,
            goal.exceed_ratio,
            goal.final_trial_duration_s,
            goal.duration_sum_s,
            goal.width_ratio,
            goal.initial_trial_duration_s,
            goal.name,
            goal.stream,
        )


def format_regularity(report: GoalReport) -> str:
    """``regular``, ``irregular: why``, why there was no search, or ``failed`` if there is no goal result at all."""
    if report.result is None:
        return "failed: no result"
    if report.result.regular:
        return "regular"
    if report.is_as_before:
        return report.reason or ""
    return f"irregular: {report.reason}"
