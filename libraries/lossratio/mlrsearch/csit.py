"""The five names of the package MLRsearch 1.2.1 over this library's controller, for programs written for that package.

FD.io CSIT's call works after changing only the import. The choice of trials, and a few rules, are this library's own:
see ``docs/how-to/port-your-csit-suite.md``. Loads are per interface, in frames (transactions) per second.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from lossratio.mlrsearch.controller import MLRsearch
from lossratio.mlrsearch.goal import SearchGoal as Goal
from lossratio.mlrsearch.result import GoalResult, IrregularReason
from lossratio.trials import TrialInput, TrialOutput, run_search


@dataclass
class MeasurementResult:
    """The outcome of a trial. Two of offered, lost and forwarded frames are enough. Other attributes are accepted."""

    intended_duration: float
    """Seconds."""
    intended_load: float
    """Load per interface."""
    offered_count: int | None = None
    """Frames that were sent."""
    loss_count: int | None = None
    """Frames that were sent and did not come back."""
    forwarding_count: int | None = None
    """Frames that came back."""
    offered_duration: float | None = None
    """Seconds for which frames were sent; None: the intended time."""
    duration_with_overheads: float | None = None
    """Seconds that the whole trial took. All of them count. None: the seconds for which frames were sent."""
    intended_count: int | None = None
    """Frames that should be sent; None: the frames that were sent."""

    @property
    def loss_ratio(self) -> float:
        """The share of the intended frames that were lost or not sent; 1 if no frames were intended."""
        offered = self.offered_count
        lost = self.loss_count
        forwarded = self.forwarding_count
        if offered is None:
            offered = (forwarded or 0) + (lost or 0)
        if lost is None:
            lost = offered - (forwarded or 0)
        intended = offered if self.intended_count is None else self.intended_count
        whole = max(offered, intended)
        if whole:
            return min(1.0, (abs(lost) + abs(intended - offered)) / whole)
        return 1.0


class AbstractMeasurer(Protocol):
    """The measurer; a class need not inherit from it."""

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Performs a trial of this many seconds at a load."""


@dataclass(frozen=True)
class SearchGoal:
    """A search goal with MLRsearch's names and defaults."""

    loss_ratio: float = 0.0
    """Goal loss ratio."""
    exceed_ratio: float = 0.5
    """Goal exceed ratio."""
    relative_width: float = 0.005
    """Goal width, relative to the upper bound."""
    initial_trial_duration: float = 1.0
    """Seconds of the shortest trial."""
    final_trial_duration: float = 1.0
    """Seconds of full-length trials."""
    duration_sum: float = 21.0
    """Seconds of full-length trials that decide about a load."""
    preceding_targets: int = 2
    """No effect: this library chooses easier targets by itself."""
    expansion_coefficient: int = 2
    """No effect, for the same reason."""
    fail_fast: bool = True
    """Whether the search fails when the minimum load is an upper bound for this goal."""


@dataclass
class Config:
    """The settings of a search."""

    goals: Iterable[SearchGoal] = field(default_factory=lambda: (SearchGoal(),))
    """The search goals."""
    min_load: float = 9001.0
    """Smallest load."""
    max_load: float = 1e9
    """Largest load."""
    search_duration_max: float = 1200.0
    """Seconds of trials, overheads included, after which the search fails."""
    warmup_duration: float | None = 1.0
    """Seconds of a first trial at the largest load that does not count; 0 or None: there is none."""


class MultipleLossRatioSearch:
    """A search.

    Args:
        config: Its settings, which can be changed until the search begins.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def search(
        self, measurer: AbstractMeasurer, debug: Callable[[str], None] | None = None
    ) -> dict[SearchGoal, GoalResult]:
        """Searches for all goals at once.

        Args:
            measurer: Performs trials.
            debug: Called with a line for each trial; None: Python's logging.

        Returns:
            The result for each goal: its bounds and its conditional throughput are numbers, or None.

        Raises:
            RuntimeError: If the time is over, or the minimum load is an upper bound for a goal with ``fail_fast``.
            SearchError: If settings make no sense.
        """
        config = self.config
        tell = debug or logging.getLogger(__name__).debug
        goals = {
            goal: Goal(
                goal.loss_ratio,
                goal.exceed_ratio,
                goal.final_trial_duration,
                goal.duration_sum,
                goal.relative_width,
                goal.initial_trial_duration,
            )
            for goal in config.goals
        }
        controller = MLRsearch(
            goals.values(),
            config.min_load,
            config.max_load,
            timeout=config.search_duration_max,
            warm_up_duration=config.warmup_duration or None,
            fail_fast=any(goal.fail_fast for goal in goals),
        )
        found = run_search(
            controller,
            _Measurer(measurer),
            on_trial=lambda result: tell(
                f"{result.load:,.0f}/s for {result.duration:g} s: loss ratio {result.loss_ratio:.4g} "
                f"({controller.last_purpose})"
            ),
        )
        results = {goal: found[ours] for goal, ours in goals.items()}

        for goal, result in results.items():
            if result.reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND:
                # MLRsearch has no upper bound there.
                results[goal] = replace(result, relevant_upper_bound=None)

        for goal, result in results.items():
            if (
                goal.fail_fast
                and result.relevant_lower_bound is None
                and result.relevant_upper_bound is not None
            ):
                raise RuntimeError(
                    f"The minimum load, {config.min_load}, is an upper bound for {goal}. Lower min_load."
                )

        if not found.finished:
            raise RuntimeError(
                f"The search was not finished after {found.elapsed:.1f} s of trials. Raise search_duration_max."
            )
        return results


@dataclass(frozen=True)
class _Measurer:
    """Makes a measurer of this library from a measurer of MLRsearch."""

    theirs: AbstractMeasurer

    def measure(self, trial: TrialInput) -> TrialOutput:
        result = self.theirs.measure(trial.duration, trial.load)
        sent = trial.duration if result.offered_duration is None else result.offered_duration
        elapsed = sent if result.duration_with_overheads is None else result.duration_with_overheads
        # As in MLRsearch, overheads count towards the duration sum.
        return TrialOutput(result.loss_ratio, effective_duration=elapsed, elapsed=elapsed)
