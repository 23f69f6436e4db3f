"""Rule `plan`: the trial that leads to a pair of bounds soonest, by all that the trials have shown so far.

It plans for goals whose trials have one length. It begins when single trials have found two neighbouring loads, or when
a load lost frames below the bound that the overload had predicted. For each pair of neighbouring loads it computes two
numbers: the probability that the pair is the bounds, and the expected time of the proof, less the trials that are done.
The next pair is the pair with the least time per success. Its first load is the load that saves more time by failing.
As long as no pair is probable enough, the search measures the load that halves the range.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.posterior import BINS, Curves, Expected, race
from lossratio.mlrsearch.rules.look import proof_of_jump
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "plan"

PROBABLE, CHEAPER = 0.41, 0.42
"""How probable a pair must be for its proof to begin, if one trial proves a load; and the exponent by which it may be
less probable where more trials prove one.

A picture: where one trial decides, a pair that fails in three of five cases is no better than halving. Where 11 trials
prove each of two loads, a pair that fails in five of six cases fails soon, and its trials show where to go.
"""

AROUND, AROUND_EXPECTED = 16, 3
"""Steps around the middle of all centres, and around the expected bound, where pairs are compared."""

FAR = 10
"""Goal widths below the smallest lossy load, from which on that load is proved for a few seconds first (see `look`)."""

MOST_LOADS = 40
"""Loads with a trial after which the other rules take over, because the SUT may change while it is searched."""

MOST_TRIALS = 64
"""Trials of a proof that are told apart; where a load needs more, it counts as so many."""


def plan(view: GoalView) -> Choice | None:
    """The next trial; None for goals with shorter trials, while short looks lead on, and where plans do not end."""
    known, interval = view.plan, view.intervals[0]
    if known is None or not known.begun or known.may_drift or len(known.posterior.measured) > MOST_LOADS:
        return None
    is_below = view.expectation.position is None or view.expectation.position <= 0.0
    if interval.upper is None or (interval.lower is None and (is_below or not interval.open)):
        return None
    grid, curves = view.grid, known.posterior.curves(known.expected)
    index, bound = _best(view, curves, _lowers(view, curves.median, known.expected))
    jump = proof_of_jump(view, index, view.width, FAR)
    if jump is not None:
        return Choice(NAME, jump.stage, jump.load, jump.expected)
    is_new = view.stages[-1].evidence.tally(grid.load(index)).full_trials == 0
    stage = 0 if bound is Bound.UNDECIDED and is_new else view.final
    return Choice(NAME, stage, grid.load(index), bound)


def _lowers(view: GoalView, median: float, expected: Expected | None) -> NDArray[np.intp]:
    """Grid indexes of the lower loads of the pairs that are compared; -1 where the minimum load is the upper bound."""
    interval = view.intervals[-1]
    lowers = round(median) + np.arange(-AROUND, AROUND)
    if expected is not None:
        near = math.floor(expected.place) + np.arange(-AROUND_EXPECTED, AROUND_EXPECTED + 1)
        lowers = np.concatenate([lowers, near])
    return np.unique(lowers.clip(interval.first - 1, interval.last))


def _best(view: GoalView, curves: Curves, lowers: NDArray[np.intp]) -> tuple[int, Bound]:
    """The grid index of the next load, and what it is expected to be."""
    interval = view.intervals[-1]
    uppers = np.where(lowers < 0, 0, np.minimum(lowers + view.width, interval.last + 1))
    places = np.union1d(lowers, uppers)
    low, high = np.searchsorted(places, lowers), np.searchsorted(places, uppers)
    needed = _needed(view, places)
    tables = race(*map(int, needed.max(axis=0)))
    cells = needed[:, :1], needed[:, 1:], np.rint(curves.lossy(places) * BINS).astype(np.intp)
    lower = tables.lower[cells]
    success = (lower[low] * (1.0 - lower[high])) @ curves.weights
    is_lower, time = lower @ curves.weights, tables.time[cells] @ curves.weights
    low_first = time[low] + is_lower[low] * time[high]
    high_first = time[high] + (1.0 - is_lower[high]) * time[low]
    best = int((np.minimum(low_first, high_first) / np.maximum(success, 1e-9)).argmin())
    trials = max(1.0, view.stages[-1].evidence.missing(0.0, Bound.LOWER) / view.goal.final_trial_duration)
    if success[best] < PROBABLE * trials**-CHEAPER:
        is_open = (places >= interval.first) & (places <= interval.last)
        return int(places[np.where(is_open, np.abs(is_lower - 0.5), math.inf).argmin()]), Bound.UNDECIDED
    lower_index, upper_index = int(lowers[best]), int(uppers[best])
    is_upper_open = upper_index <= interval.last
    if lower_index >= interval.first and (not is_upper_open or low_first[best] <= high_first[best]):
        return lower_index, Bound.LOWER
    return upper_index, Bound.UPPER


def _needed(view: GoalView, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Low-loss and high-loss trials that loads still need to be a lower and an upper bound: a row for each load."""
    interval, measured = view.intervals[-1], view.plan.posterior.measured if view.plan is not None else ()
    needed = np.tile([_trials(view, 0.0, bound) for bound in (Bound.LOWER, Bound.UPPER)], (len(places), 1))
    for row, place in enumerate(places):
        if place in measured:
            load = view.grid.load(int(place))
            needed[row] = _trials(view, load, Bound.LOWER), _trials(view, load, Bound.UPPER)
    needed[places < interval.first] = 0, 1
    needed[places > interval.last] = 1, 0
    return needed


def _trials(view: GoalView, load: float, bound: Bound) -> int:
    trials = view.stages[-1].evidence.missing(load, bound) / view.goal.final_trial_duration
    # High-loss trials must exceed their share, low-loss ones must reach theirs.
    whole = math.ceil(trials - 1e-9) if bound is Bound.LOWER else math.floor(trials + 1e-9) + 1
    return min(MOST_TRIALS, max(1, whole))
