"""A goal's targets, and what the trials say about each: running sums per load, bounds, and the interval between them.

A goal is approached through coarser targets, which need less time per load. All targets have the goal's loss ratio and
exceed ratio, but the coarser ones have shorter trials and smaller duration sums. All of them already have the final
width. On a common grid of loads, single short trials find the pair of neighbours that the final target has to prove, so
no trial is wasted. From the goal to its coarsest target, intervals become narrower.

Nothing is ever scanned again, so a decision costs the same after a thousand trials as after ten.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from lossratio.mlrsearch.classification import Bound, Criterion
from lossratio.mlrsearch.evidence import Evidence, RelevantBounds, evidence_of
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.result import within_width
from lossratio.trials import TrialResult

STEPS_OF_SUMS = 3
"""Number of coarser duration sums before the final one, if trials have one length: 1, 2.8, 7.6 s before 21 s."""

SMALLEST_GROWTH = 2.7
"""If shorter trials come first, coarser duration sums must grow by this factor to be worth the time."""


@dataclass(frozen=True)
class Target:
    """A step on the way to a goal; the last step is the goal itself."""

    trial_duration: float
    """Seconds of each trial for this target."""
    duration_sum: float
    """Seconds of full-length trials that always classify a load."""
    criterion: Criterion
    """What classifies loads."""

    @property
    def trials(self) -> int:
        """How many full-length trials add up to the duration sum."""
        return math.ceil(self.duration_sum / self.trial_duration)


def targets_of(goal: SearchGoal, *, early_verdict: bool = False) -> tuple[Target, ...]:
    """A goal's targets, coarsest first; the last is the goal itself.

    Shorter trials come first, if the goal allows any: one of the initial duration, and one of the geometric mean of
    initial and final duration (1 s and 7.7 s before 60 s). With early verdicts, the final trial fails as soon as the
    middle trial would, so the middle trial is left out. After that, the duration sum grows by a constant factor.

    Args:
        goal: The goal.
        early_verdict: Whether trials end as soon as they are certain to be high-loss trials.
    """
    first, final = goal.first_duration, goal.final_trial_duration
    growth = max(1.0, goal.duration_sum / final) ** (1.0 / STEPS_OF_SUMS)
    steps = [(final, final * growth**step) for step in range(STEPS_OF_SUMS)]
    if first < final:
        durations = (first,) if early_verdict else (first, math.sqrt(first * final))
        steps = [(duration, duration) for duration in durations] + steps * (
            growth >= SMALLEST_GROWTH
        )

    targets: list[Target] = []
    for trial_duration, duration_sum in (*steps, (final, goal.duration_sum)):
        target = Target(
            trial_duration, duration_sum, Criterion.make(goal, trial_duration, duration_sum)
        )
        if targets and _effort(target) == _effort(targets[-1]):
            targets.pop()
        targets.append(target)

    return tuple(targets)


def _effort(target: Target) -> tuple[float, int, int]:
    """Trial duration, and how many of these trials prove a lower and an upper bound."""
    p, q = target.criterion.exceed
    trials = target.duration_sum / target.trial_duration
    return target.trial_duration, math.ceil(trials * (q - p) / q), math.floor(trials * p / q) + 1


@dataclass(frozen=True)
class GoalBounds:
    """The bounds of one goal after some trials."""

    goal: SearchGoal
    """The goal."""
    proved: RelevantBounds
    """The relevant bounds (RFC 9971)."""
    leaning: RelevantBounds
    """The relevant bounds of the easiest target on the way to the goal, usually a single trial of the initial duration.
    The trials so far suggest these bounds."""

    @property
    def shown(self) -> RelevantBounds:
        """The proved bounds, or, as long as one of them is missing, the bounds that the trials so far suggest."""
        if None in self.proved:
            return self.leaning
        return self.proved


@dataclass(frozen=True)
class Interval:
    """The bounds of a target."""

    lower: float | None
    """The tightest lower bound, in frames per second; None if there is none yet."""
    upper: float | None
    """The tightest upper bound, in frames per second; None if there is none yet."""
    first: int
    """Grid index of the smallest load inside."""
    last: int
    """Grid index of the largest load inside; below `first` if there is none."""
    open: bool
    """Whether something inside has to be measured."""

    @property
    def steps(self) -> int:
        """How many grid steps apart the bounds are; a missing bound is one step outside the grid."""
        return self.last - self.first + 2


@dataclass
class Stage:
    """One target and what is known about it."""

    target: Target
    """The target."""
    evidence: Evidence
    """The trials as they count for the target."""
    passed: set[float] = field(default_factory=set)
    """Loads that have been lower bounds, even temporarily, in frames per second per interface."""
    failed: set[float] = field(default_factory=set)
    """Loads that were upper bounds although they had passed the next coarser target, in frames per second per
    interface."""


class Stages:
    """The stages of one goal, coarsest first.

    Attributes:
        goal: The goal.
        grid: The loads that the search measures.
        stages: The stages.
        intervals: The interval of each stage; a coarser interval lies within the finer ones, because single short
            trials show more sooner, if less surely.
        turned: Loads that a target classified otherwise than the first target that classified them.
    """

    def __init__(
        self, goal: SearchGoal, grid: LoadGrid, targets: Sequence[Target] | None = None
    ) -> None:
        *coarser, final = targets or targets_of(goal)
        self.stages = (
            *(Stage(target, Evidence(target.criterion)) for target in coarser),
            Stage(final, evidence_of(goal)),
        )
        self.goal = goal
        self.turned: set[float] = set()
        self.grid = grid
        self._promised: dict[float, Bound] = {}
        self.intervals = self._intervals()

    def add(self, result: TrialResult) -> None:
        """Counts a trial: always for the goal, and for coarser targets if the controller could have requested it."""
        could_be_asked_for = self.grid.min_load <= result.load <= self.grid.max_load
        counting = self.stages if could_be_asked_for else self.stages[-1:]
        changes = [stage.evidence.add(result) for stage in counting]
        if any(changes):
            if could_be_asked_for:
                self._follow(result.load)
            self.intervals = self._intervals()

    def relevant_bounds(self) -> RelevantBounds:
        """The goal's relevant lower and upper bound."""
        return self.stages[-1].evidence.relevant_bounds()

    def bounds(self) -> GoalBounds:
        """The goal's bounds so far: the proved bounds, and those of the coarsest target."""
        return GoalBounds(
            self.goal, self.relevant_bounds(), self.stages[0].evidence.relevant_bounds()
        )

    def fall(self, number: int) -> int:
        """How many grid steps a target has gone down, from failure to failure."""
        stage = self.stages[number]
        upper = self.intervals[number].upper
        if upper is None or upper not in stage.failed:
            return 0
        return round(self.grid.position(max(stage.failed)) - self.grid.position(upper))

    def _follow(self, load: float) -> None:
        """Notes which targets a load has passed or failed, and whether they contradict the first one."""
        has_passed = False
        for stage in self.stages:
            bound = stage.evidence.bound(load)
            if bound is Bound.LOWER:
                stage.passed.add(load)
            elif bound is Bound.UPPER and has_passed:
                stage.failed.add(load)
            has_passed = load in stage.passed
            if bound is Bound.UNDECIDED:
                continue
            if bound is not self._promised.setdefault(load, bound):
                self.turned.add(load)

    def _intervals(self) -> tuple[Interval, ...]:
        lower, upper = self.relevant_bounds()
        intervals = [self._interval(lower, upper)]
        for stage in reversed(self.stages[:-1]):
            coarse_upper = stage.evidence.upper_above(0.0 if lower is None else lower)
            if coarse_upper is not None and (upper is None or coarse_upper < upper):
                upper = coarse_upper
            coarse_lower = stage.evidence.lower_below(math.inf if upper is None else upper)
            if coarse_lower is not None and (lower is None or coarse_lower > lower):
                lower = coarse_lower
            intervals.append(self._interval(lower, upper))
        return tuple(reversed(intervals))

    def _interval(self, lower: float | None, upper: float | None) -> Interval:
        grid = self.grid
        first = 0 if lower is None else max(0, math.floor(grid.position(lower)) + 1)
        last = grid.top if upper is None else min(grid.top, math.ceil(grid.position(upper)) - 1)
        narrow = (
            lower is not None and upper is not None and within_width(self.goal.width, lower, upper)
        )
        return Interval(lower, upper, first, last, first <= last and not narrow)
