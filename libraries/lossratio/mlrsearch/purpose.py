"""Why a controller asked for a trial, for the journal, the console and whoever asks why a search took so long."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.goal import SearchGoal

_EXPECTATIONS = {
    Bound.LOWER: "low loss is expected",
    Bound.UPPER: "high loss is expected",
    Bound.UNDECIDED: "either is possible",
}


@dataclass(frozen=True)
class Purpose:
    """Why a trial was chosen. Loads are per interface, in frames per second.

    Attributes:
        goals: The goals that it serves; none for a warm-up.
        load: The trial's load.
        duration_sum: Seconds of trials at this load that the goals' current targets ask for.
        expected: What the load is expected to be for the goals.
        lower: The tightest lower bound of the first goal when the trial was chosen; None if there was none.
        upper: The tightest upper bound, likewise.
        coarse: Whether single trials still search for the bounds; else a bound found so is being proved.
        hinted: Whether it is earlier searches that let expect the bound here.
    """

    goals: tuple[SearchGoal, ...]
    load: float
    duration_sum: float
    expected: Bound
    lower: float | None
    upper: float | None
    coarse: bool
    hinted: bool = False

    def __str__(self) -> str:
        if not self.goals:
            return "warm-up at the maximum load; its result is discarded"
        names = ", ".join(str(goal) for goal in self.goals)
        expectation = _EXPECTATIONS[self.expected] + (", as in earlier searches" if self.hinted else "")
        if not self.coarse:
            what = "a bound" if self.expected is Bound.UNDECIDED else f"the {self.expected.value}"
            return f"{names}: prove {what} in {self.duration_sum:.3g} s; {expectation}"
        lower = "the minimum load" if self.lower is None else f"{self.lower:,.0f}"
        upper = "the maximum load" if self.upper is None else f"{self.upper:,.0f} frames/s"
        return f"{names}: search between {lower} and {upper}; {expectation}"
