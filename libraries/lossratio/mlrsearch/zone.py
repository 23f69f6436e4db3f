"""The zone of loads in which the verdict on a load is a coin toss.

If 30 to 70 % of trials lose too many frames, another search may find any load of the zone. So the zone is part of a
result: repeatability is promised only outside of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from lossratio.mlrsearch.goal import SearchGoal
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.posterior import LOSSY, NOTHING_EXPECTED, Posterior
from lossratio.mlrsearch.result import within_width
from lossratio.trials import TrialResult, sut_loss_ratio

COIN = (0.3, 0.7)
"""Shares of lossy trials between which a verdict is a coin toss."""

SURE = 0.5
"""Minimum probability, from all trials, that a load's share of lossy trials is between these shares."""

LEAST_TRIALS, LEAST_SHARE = 2, 0.2
"""Minimum number of trials at each end of a zone, and the minimum share among them, both of lossy trials and of other
trials."""


@dataclass(frozen=True)
class LoadShare:
    """The full-length trials at one load, as they count for one goal."""

    load: float
    """Frames per second per interface."""
    trials: int
    """Number of these trials."""
    lossy: int
    """Number of trials in which the SUT lost more than the goal allows."""
    longest_run: int
    """The largest number of these lossy trials in a row."""


@dataclass(frozen=True)
class Zone:
    """Loads at which the verdict is a coin toss, and which span more than a goal's width."""

    shares: tuple[LoadShare, ...]
    """The measured loads of the zone, ascending; the first and the last one are its ends."""

    @property
    def loads(self) -> tuple[float, float]:
        """The ends of the zone, in frames per second per interface."""
        return self.shares[0].load, self.shares[-1].load


def zone_in(
    goal: SearchGoal, results: Sequence[TrialResult], min_load: float, max_load: float
) -> Zone | None:
    """The zone around the bounds of a goal; None: there is none, or chance does not decide about the goal's loads.

    Args:
        goal: The goal.
        results: All trials that count, in the order measured.
        min_load: Smallest load of the search, frames per second per interface.
        max_load: Largest load of the search, frames per second per interface.
    """
    if not COIN[0] <= goal.exceed_ratio <= COIN[1] or min_load >= max_load:
        return None

    grid = LoadGrid(min_load, max_load, goal.width)
    outcomes = dict[float, list[bool]]()
    posterior = Posterior(grid.top)
    for load, is_lossy in _verdicts(goal, results):
        posterior.add(grid.position(load), not is_lossy)
        outcomes.setdefault(load, []).append(is_lossy)

    shares = [_share(load, outcomes[load]) for load in sorted(outcomes)]
    if not shares:
        return None

    positions = np.array([grid.position(share.load) for share in shares])
    curves = posterior.curves(NOTHING_EXPECTED, positions)
    sure = curves.chances @ ((COIN[0] < LOSSY) & (COIN[1] > LOSSY))
    coins = groupby(zip(sure >= SURE, shares, strict=True), itemgetter(0))
    runs = [[share for _, share in run] for is_coin, run in coins if is_coin]
    zones = [Zone(tuple(run[first : last + 1])) for run in runs for first, last in _ends(run)]
    widest = max(zones, key=lambda zone: zone.shares[-1].load / zone.shares[0].load, default=None)
    if widest is None or within_width(goal.width, *widest.loads):
        return None

    return widest


def _verdicts(goal: SearchGoal, results: Sequence[TrialResult]) -> Iterator[tuple[float, bool]]:
    """The load of each full-length trial, and whether the SUT lost more than the goal allows, if that is known."""
    for result in map(goal.seen, results):
        is_lossy = result.loss_ratio > goal.loss_ratio
        if is_lossy and sut_loss_ratio(result) <= goal.loss_ratio:
            # Frames that the SUT did not lose decide here, so it is not known whether the trial is lossy.
            continue
        if result.duration >= goal.final_trial_duration and (is_lossy or not result.is_early):
            yield result.load, is_lossy


def is_left_to_a_coin(
    goal: SearchGoal, results: Sequence[TrialResult], min_load: float, max_load: float
) -> bool:
    """Whether only the loads of a zone of chance are left to find in a search for a goal.

    The zone needs as many trials as the proof of a bound. In addition, loads above it must have been lossy, and loads
    below it must not.

    Args:
        goal: The goal.
        results: All trials that count.
        min_load: Smallest load of the search, frames per second per interface.
        max_load: Largest load of the search, frames per second per interface.
    """
    zone = zone_in(goal, results, min_load, max_load)
    if zone is None:
        return False

    least, most = zone.loads
    seen = [goal.seen(result) for result in results]
    seconds = sum(share.trials for share in zone.shares) * goal.final_trial_duration
    is_low_below = any(
        result.load < least and result.loss_ratio <= goal.loss_ratio for result in seen
    )
    is_high_above = any(
        result.load > most and result.loss_ratio > goal.loss_ratio for result in seen
    )
    return seconds >= goal.duration_sum and is_low_below and is_high_above


def _ends(run: Sequence[LoadShare]) -> Iterator[tuple[int, int]]:
    """The first and the last load of a run with enough trials to show a coin toss; none if there is no such run."""
    shown = [
        number
        for number, share in enumerate(run)
        if share.trials >= LEAST_TRIALS
        and min(share.lossy, share.trials - share.lossy) >= LEAST_SHARE * share.trials
    ]
    if shown:
        yield shown[0], shown[-1]


def _share(load: float, lossy: Sequence[bool]) -> LoadShare:
    runs = [len([*run]) for is_lossy, run in groupby(lossy) if is_lossy]
    return LoadShare(load, len(lossy), sum(lossy), max(runs, default=0))
