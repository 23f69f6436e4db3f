"""The input of a rule, and its answer."""

from dataclasses import dataclass

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.expectation import Expectation, LossCurve
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.posterior import Plan
from lossratio.mlrsearch.stages import Interval, Stage, Stages


@dataclass
class GoalView:
    """The knowledge about one goal: all that a rule may look at. A rule changes nothing in it."""

    grid: LoadGrid
    """The loads that the search measures."""
    width: int
    """The goal's width in grid steps."""
    progress: Stages
    """The goal's targets, coarsest first, with what is known about each."""
    curve: LossCurve
    """The loss at all loads."""
    expectation: Expectation
    """Where single short trials are expected to find the bound."""
    plan: Plan | None = None
    """What plans are made of, for goals whose trials have one length; None for others."""
    hinted: int | None = None
    """Grid index of the load that earlier searches promise as the relevant lower bound, where long trials are to begin;
    None: there is no such load."""
    fails_soon: bool = False
    """Whether a trial ends as soon as it is certain to be a high-loss trial, so that one that fails costs little."""

    @property
    def goal(self) -> SearchGoal:
        """The goal."""
        return self.progress.goal

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The goal's targets, coarsest first; the last one is the goal itself."""
        return self.progress.stages

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The interval of each stage."""
        return self.progress.intervals

    @property
    def final(self) -> int:
        """Number of the last stage: the goal itself."""
        return len(self.stages) - 1

    @property
    def first_open(self) -> int | None:
        """Number of the coarsest stage in whose interval something has to be measured; None: the search is over."""
        return next((number for number, interval in enumerate(self.intervals) if interval.open), None)

    @property
    def hinted_pair(self) -> tuple[float, float] | None:
        """The two loads, in frames per second, between which earlier searches promise the bound."""
        if self.hinted is None:
            return None
        return self.grid.load(self.hinted), self.grid.load(self.hinted + self.width)


@dataclass(frozen=True)
class Choice:
    """The trial that a rule wants next."""

    rule: str
    """Name of the rule."""
    stage: int
    """Number of the stage that the trial is for; 0 is the coarsest."""
    load: float
    """Frames per second."""
    expected: Bound
    """What the load is expected to be."""
