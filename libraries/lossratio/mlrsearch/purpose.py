"""Why a trial of a search was chosen, in values and in words."""

from dataclasses import dataclass

from lossratio.mlrsearch.bursts import BURSTS
from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.memory import MEMORY

ASKS_AS_BEFORE = "as before"
"""Name of the rule that chooses the trials of a question."""

_EXPECTATIONS = {
    Bound.LOWER: "low loss is expected",
    Bound.UPPER: "high loss is expected",
    Bound.UNDECIDED: "either is possible",
}

_IF_IT_REMEMBERS = {
    Bound.LOWER: "at a load at which it lost frames right after a loss",
    Bound.UPPER: "again right after a loss",
}


@dataclass(frozen=True)
class Purpose:
    """Why a trial was chosen."""

    goals: tuple[SearchGoal, ...]
    """The goals that it serves; none for a warm-up."""
    load: float
    """The trial's load, in frames per second per interface."""
    duration_sum: float
    """Seconds of trials at this load that the goals' current targets require."""
    expected: Bound
    """The kind of bound that the load is expected to be for the goals."""
    lower: float | None
    """The tightest lower bound of the first goal when the trial was chosen, in frames per second per interface; None if
    there was none."""
    upper: float | None
    """The tightest upper bound of the first goal at that time, in frames per second per interface; None if there was
    none."""
    coarse: bool
    """Whether single trials still search for the bounds. Otherwise, a bound that they found is being proved."""
    hinted: bool = False
    """Whether earlier searches promise the bound at this load."""
    rule: str | None = None
    """Name of the rule that chose the trial (see `lossratio.mlrsearch.rules`); None for a warm-up."""

    @property
    def in_short(self) -> str:
        """What the trial is for in a few words; empty if it does not serve the goals' bounds."""
        if self.rule in (None, ASKS_AS_BEFORE, BURSTS, MEMORY):
            return ""
        names = ", ".join(str(goal) for goal in self.goals)
        return f"searching for {names}" if self.coarse else f"proving {names}"

    def __str__(self) -> str:
        if not self.goals:
            return "warm-up at the maximum load; its result is discarded"
        if self.rule == ASKS_AS_BEFORE:
            return "is the SUT as it was in earlier searches?"
        if self.rule == BURSTS:
            return "is the upper bound due to frames that the SUT did not lose, or to bursts after stalls?"
        if self.rule == MEMORY:
            return f"does the SUT remember loss? {_EXPECTATIONS[self.expected]} {_IF_IT_REMEMBERS[self.expected]}"

        names = ", ".join(str(goal) for goal in self.goals)
        expectation = _EXPECTATIONS[self.expected] + (
            ", as in earlier searches" if self.hinted else ""
        )
        if not self.coarse:
            what = "a bound" if self.expected is Bound.UNDECIDED else f"the {self.expected.value}"
            return f"{names}: prove {what} in {self.duration_sum:.3g} s; {expectation}"

        lower = "the minimum load" if self.lower is None else f"{self.lower:,.0f}"
        upper = "the maximum load" if self.upper is None else f"{self.upper:,.0f} frames/s"
        return f"{names}: search between {lower} and {upper}; {expectation}"
