"""Rule `plan`: the trial that leads to a pair of bounds soonest, judging by all trials so far.

It plans for goals whose trials have one length. It begins when single trials have found two neighbouring loads, or when
a load below the bound that the overload had predicted lost frames. For each pair of neighbouring loads it computes two
numbers: the probability that the pair is the bounds, and the expected time that the proof still needs. The best pair
has the smallest time per success. Its proof begins with the load that saves more time by failing. If failures of this
proof would take longer than the search for a better pair, the next load is the load whose trial says most about the
place of the bounds.
"""

import math
from collections.abc import Collection
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lossratio.mlrsearch.classification import Bound
from lossratio.mlrsearch.posterior import LOSSY, Curves, Floats, Plan, ascending, race
from lossratio.mlrsearch.rules.view import Choice, GoalView

NAME = "plan"

Needed = NDArray[np.intp]
"""How many low-loss and high-loss trials each load still needs, in a row for each load."""

PATIENCE = 0.35
"""A search goes on only if failures take more than this many times as long, for each trial that a lower bound needs.

Example: a pair fails in two of three cases, after 20 trials. Its failures take 40 trials on average. 5 bits are
missing, and a trial gives half a bit, so a search takes 10 trials. 11 low-loss trials prove a lower bound, so failures
must take more than 3.9 times as long, which is 39 trials. They do, and the search goes on.
"""

AROUND, AROUND_EXPECTED = 12, 3
"""Pairs are compared within this many steps around the middle of all curves, and around the expected bound."""

COARSE = 24
"""Number of further loads of the whole range that are considered."""

BELOW = 0.8, 0.875, 0.9
"""If trials pass and fail by chance, a goal that allows loss has a trial at the second share of the bound's load,
unless there was a trial between the first share and the third. Some routers lose more there than at the bound."""

FEW = 0.01
"""The largest share of the frames that a trial may lose by bad luck."""

FAR, CHECKS = 8, 4
"""If the smallest lossy load lost few frames, the search goes this many goal widths below it only once the load had
this many more lossy trials than twice the number of trials that it passed, or three times this number of trials.

Example: a SUT loses 0.01 % in 30 % of its trials, at any load, so it has a throughput where half of the trials may
lose frames. Two unlucky trials at 99 kfps suggest that as much is lost at 10 kfps.
"""

FARTHER = 8
"""If loss does not fade from the second smallest lossy load to the smallest one, the next load is at most this many
times as far below it as the two are apart, or at the largest load that passed below it if that is farther away. Perhaps
trials are lossy by chance, and chance must not lead far away.

Example: a trial at 100 kfps loses 1 %, and one at 99 kfps loses 2 %, perhaps in a stall. The next load is about 91 kfps
or more.
"""

LEAST_SUCCESS = 1e-9
"""Smaller probabilities that a pair is the bounds count as this probability."""

ROUNDING = 1e-6
"""Relative difference below which the times of two pairs differ only by chance."""

MOST_KNOWN = 64
"""Maximum number of loads whose trials a plan uses, so that decisions do not slow down. The same number applies to
earlier searches.

Example: a script had trials at 300 loads. 280 of the loads passed, all of them far below the smallest lossy load.
"""

MOST_TRIALS = 64
"""Maximum number of trials of a proof that are distinguished. A load that needs more trials counts as needing this
many."""


def plan(view: GoalView) -> Choice | None:
    """The next trial. None: for goals with shorter trials, while short looks make progress, and if plans do not end."""
    facts = view.plan
    interval = view.intervals[0]
    if facts is None or not (facts.begun or facts.posterior.earlier) or view.is_in_vain:
        return None

    is_below = view.expectation.position is None or view.expectation.position <= 0.0
    if interval.upper is None or (interval.lower is None and (is_below or not interval.open)):
        return None

    index, bound = _checked(view, facts, *_best(view, facts))
    load = view.grid.load(index)
    # If loads only change from passing to failing, the SUT may be getting slower. A trial below does not show more.
    is_both = bound is not Bound.UNDECIDED and min(facts.slower, facts.faster) > 0
    if is_both and (below := _trial_below(view, load, BELOW[-1] * load)) is not None:
        return below

    is_new = view.stages[-1].evidence.tally(load).full_trials == 0
    return Choice(NAME, 0 if bound is Bound.UNDECIDED and is_new else view.final, load, bound)


def ask_again(view: GoalView) -> Choice | None:
    """The next trial once both bounds are found; None: there is none."""
    if view.plan is None or (lower := view.intervals[-1].lower) is None:
        return None
    return _trial_below(view, lower, lower)


def _trial_below(view: GoalView, load: float, most: float) -> Choice | None:
    """A trial below a load that may be a bound; None: there is no such trial, as for all goals that allow no loss.

    Loads up to the largest of those that mostly failed are tried again. If trials pass and fail by chance, one trial
    shows whether more is lost below. Example: half of the trials at 1,377 kfps pass, so it may be PDR. A trial at 1,205
    kfps loses 2 %. Either a second trial passes, or PDR is lower. For NDR, such a trial says little, because it may
    lose a few frames by chance.
    """
    facts = view.plan
    if facts is None or view.goal.loss_ratio == 0.0 or view.is_in_vain:
        return None

    grid = view.grid
    evidence = view.stages[-1].evidence
    measured = sorted(facts.posterior.measured)

    for position in measured:
        low, high = facts.posterior.counts(position)
        again = grid.load(round(position))
        is_open = position == round(position) and evidence.bound(again) is Bound.UNDECIDED
        if (
            is_open
            and grid.min_load <= again < most
            and high > view.goal.exceed_ratio * (low + high)
        ):
            return Choice(NAME, view.final, again, Bound.UPPER)

    first, look, last = (round(grid.position(share * load)) for share in BELOW)
    is_seen = first < 0 or any(first <= position <= last for position in measured)
    highest = max(facts.passed, default=-math.inf)
    is_chance = any(
        last < position <= highest and facts.posterior.counts(position)[1] for position in measured
    )

    return (
        Choice(NAME, view.final, grid.load(look), Bound.LOWER)
        if is_chance and not is_seen
        else None
    )


def _checked(view: GoalView, facts: Plan, index: int, bound: Bound) -> tuple[int, Bound]:
    """The smallest lossy load, if bad luck may have led far below it; otherwise, this load.

    Only goals that allow no loss, and prove a load by more than `CHECKS` trials, are led so far by bad luck.
    """
    upper = view.intervals[0].upper
    if upper is None or view.goal.loss_ratio > 0.0 or _trials(view, 0.0)[0] <= CHECKS:
        return index, bound

    smallest = round(view.grid.position(upper))
    low, high = facts.posterior.counts(smallest)
    is_far = smallest - index > FAR * view.width and smallest <= view.intervals[-1].last
    is_few = high - 2 * low < CHECKS and low + high < 3 * CHECKS
    if is_far and is_few and view.curve.loss_ratio(upper) <= FEW:
        return smallest, Bound.UPPER
    return index, bound


def _best(view: GoalView, facts: Plan) -> tuple[int, Bound]:
    """The grid index of the next load, and the expected kind of bound."""
    interval = view.intervals[-1]
    fresh = _trials(view, 0.0)
    first, last = interval.first, interval.last
    coarse = np.linspace(first, max(first, last), COARSE).round().tolist()
    near = [] if facts.expected.overload is None else [math.floor(facts.expected.overload[0])]
    around = [
        index + step for index in near for step in range(-AROUND_EXPECTED, AROUND_EXPECTED + 1)
    ]
    known = _known(facts)
    looked_at = facts.posterior.curves(facts.expected, ascending(coarse, around), known)
    passing = looked_at.chances @ race(*fresh).lower[fresh]
    lowest = max(first - 1, _deepest(view, facts))
    middle = int(np.searchsorted(-passing, -0.5))
    between = looked_at.positions[
        [max(0, middle - 1), min(len(looked_at.positions) - 1, middle)]
    ].mean()
    measured = [round(position) for position in known if position == round(position)]
    below = [index - view.width for index in measured]
    candidates = chain(
        range(round(between) - AROUND, round(between) + AROUND),
        around,
        measured,
        below,
        [first - 1],
    )
    lowers = ascending(min(last, max(lowest, index)) for index in candidates).astype(np.intp)
    uppers = np.where(lowers < 0, 0, np.minimum(lowers + view.width, last + 1))
    lowers, uppers = lowers[lowers < uppers], uppers[lowers < uppers]
    curves = facts.posterior.curves(
        facts.expected, ascending(lowers.tolist(), uppers.tolist(), coarse), known
    )
    needed = _needed(view, curves.positions)
    best = best_pair(curves, needed, lowers, uppers)
    failures = min(best.low_first, best.high_first) * (1.0 / max(best.success, LEAST_SUCCESS) - 1.0)
    bits = _bits(curves, race(*fresh).lower[fresh], view.width)
    told = information(curves, needed)
    positions = curves.positions
    told[
        (positions < max(first, lowest)) | (positions > last) | (positions != np.round(positions))
    ] = 0.0
    if failures * told.max() > PATIENCE * fresh[0] * bits and told.any():
        return int(positions[told.argmax()]), Bound.UNDECIDED

    lower_index, upper_index = int(lowers[best.number]), int(uppers[best.number])
    if lower_index >= first and (upper_index > last or best.low_first <= best.high_first):
        return lower_index, Bound.LOWER
    return upper_index, Bound.UPPER


def _deepest(view: GoalView, facts: Plan) -> int:
    """The grid index of the smallest load that may come next; -1: any load."""
    counts = facts.posterior.counts
    lossy = sorted(position for position in facts.posterior.measured if counts(position)[1])
    if facts.expected.overload is None or len(lossy) < 2:
        return -1
    lost, lost_above = (view.curve.loss_ratio(view.grid.load(round(place))) for place in lossy[:2])
    if lost < lost_above:
        return -1

    deepest = lossy[0] - FARTHER * max(view.width, lossy[1] - lossy[0])
    passed = max((position for position in facts.passed if position < lossy[0]), default=deepest)
    return math.floor(min(deepest, passed))


def _known(facts: Plan) -> Collection[float]:
    """The positions of the loads whose trials a plan uses: those closest to the contested range."""
    highest = max(facts.passed, default=facts.lowest_failure)
    first, last = min(highest, facts.lowest_failure), max(highest, facts.lowest_failure)

    def distance(position: float) -> float:
        return max(0.0, first - position, position - last)

    known: set[float] = set()
    for positions in (facts.posterior.measured, facts.posterior.earlier):
        if len(positions) > MOST_KNOWN:
            positions = sorted(sorted(positions), key=distance)[:MOST_KNOWN]
        known.update(positions)
    return known


class Pair(NamedTuple):
    """Two loads that may be the bounds. Times are in trials."""

    time_per_success: float
    """The expected time of its proof, divided by the probability that it succeeds."""
    number: int
    """Index of the pair among all pairs."""
    success: float
    """The probability that the loads are the bounds."""
    low_first: float
    """The expected time of the proof that begins with the lower load."""
    high_first: float
    """The same for the upper load."""


def best_pair(
    curves: Curves, needed: Needed, lowers: NDArray[np.intp], uppers: NDArray[np.intp]
) -> Pair:
    """The pair with the smallest time per success; the first one if there are several.

    Args:
        curves: What is known about the loads.
        needed: Low-loss and high-loss trials that each load of the curves still needs.
        lowers: The lower load of each pair, in grid steps.
        uppers: The upper load of each pair.
    """
    tables = race(*map(int, needed.max(axis=0)))
    lower = tables.lower[needed[:, 0], needed[:, 1]]
    time = tables.time[needed[:, 0], needed[:, 1]]
    alone = (curves.chances * time).sum(axis=1)
    low_rows = np.searchsorted(curves.positions, lowers)
    high_rows = np.searchsorted(curves.positions, uppers)

    # Both loads together are at most as certain as either of them, and a proof takes at least as long as its first
    # load.
    passes = (curves.chances * lower).sum(axis=1)[low_rows]
    fails = (curves.chances * (1.0 - lower)).sum(axis=1)[high_rows]
    shortest = np.minimum(alone[low_rows], alone[high_rows])
    least = (1.0 - ROUNDING) * shortest / np.maximum(np.minimum(passes, fails), LEAST_SUCCESS)

    best: Pair | None = None
    for number in np.argsort(least, kind="stable").tolist():
        if best is not None and least[number] > best.time_per_success:
            break
        low, high = low_rows[number], high_rows[number]
        joint = curves.joint(low, high)
        passed = lower[low] @ joint
        failed = 1.0 - lower[high]
        success = float(passed @ failed)
        low_first = float(alone[low] + passed @ time[high])
        high_first = float(alone[high] + time[low] @ joint @ failed)
        time_per_success = min(low_first, high_first) / max(success, LEAST_SUCCESS)
        pair = Pair(time_per_success, number, success, low_first, high_first)
        best = pair if best is None else min(best, pair)
    assert best is not None  # noqa: S101 (there is a load below the first one, or at it, and one above)
    return best


def information(curves: Curves, needed: Needed) -> Floats:
    """The bits that a trial at each load gives about whether the load becomes a lower bound (the trial counts)."""
    lower = race(*map(int, needed.max(axis=0))).lower
    (lows, highs) = needed.T
    is_lossy = curves.chances @ LOSSY
    after_loss = (curves.chances * LOSSY * lower[lows, np.maximum(0, highs - 1)]).sum(axis=1)
    after_none = (curves.chances * (1.0 - LOSSY) * lower[np.maximum(0, lows - 1), highs]).sum(
        axis=1
    )
    left = is_lossy * _entropy(after_loss / is_lossy) + (1.0 - is_lossy) * _entropy(
        after_none / (1.0 - is_lossy)
    )
    return np.asarray(np.maximum(0.0, _entropy(after_loss + after_none) - left))


def _bits(curves: Curves, lower: Floats, width: int) -> float:
    """How many bits of information are missing to tell which pair is the bounds."""
    falling = np.minimum.accumulate(curves.chances @ lower)
    chances = np.maximum(-np.diff(falling, prepend=1.0, append=0.0), 1e-12)
    pairs = np.concatenate([[1.0], np.maximum(1.0, np.diff(curves.positions) / width), [1.0]])
    return float(chances @ np.log2(pairs / chances))


def _entropy(chances: Floats) -> Floats:
    chances = chances.clip(1e-12, 1.0 - 1e-12)
    return np.asarray(-chances * np.log2(chances) - (1.0 - chances) * np.log2(1.0 - chances))


def _needed(view: GoalView, positions: Floats) -> Needed:
    """Low-loss and high-loss trials that loads still need to be a lower and an upper bound: a row for each load."""
    interval = view.intervals[-1]
    measured = () if view.plan is None else view.plan.posterior.measured
    needed = np.tile(_trials(view, 0.0), (len(positions), 1))
    for row, position in enumerate(positions.tolist()):
        if position in measured:
            needed[row] = _trials(view, view.grid.load(int(position)))
    needed[positions < interval.first] = 0, 1
    needed[positions > interval.last] = 1, 0
    return needed


def _trials(view: GoalView, load: float) -> tuple[int, int]:
    """Low-loss and high-loss trials that a load still needs. The load may never have been measured."""
    evidence = view.stages[-1].evidence
    duration = view.goal.final_trial_duration
    lows, highs = (evidence.missing(load, bound) / duration for bound in (Bound.LOWER, Bound.UPPER))
    # High-loss trials must exceed their share, low-loss ones must reach theirs.
    whole = math.ceil(lows - 1e-9), math.floor(highs + 1e-9) + 1
    return min(MOST_TRIALS, max(1, whole[0])), min(MOST_TRIALS, max(1, whole[1]))
