"""The end of a search where only a coin would decide."""

from __future__ import annotations

import random
import warnings
from functools import cache

import pytest

from lossratio.mlrsearch import NDR, PDR, IrregularReason, MLRsearch, SearchGoal, zone_in
from lossratio.trials import TrialInput, TrialOutput, TrialResult

pytestmark = pytest.mark.whole

MIN, MAX = 10e3, 1e6
ZONE = (500e3, 560e3)


def searched(goals, seed, zone=ZONE, *, journal=(), **settings):
    """The result of a search on a SUT that is a coin between two loads, and its trials."""
    chance = random.Random(seed)
    controller = MLRsearch(goals, MIN, MAX, **settings)
    trials = list(journal)
    for trial in trials:
        controller.record(trial)
    while (trial := controller.next_trial()) is not None:
        lossy = trial.load > zone[1] or (trial.load >= zone[0] and chance.random() < 0.5)
        trials.append(TrialResult(trial, TrialOutput(0.02 if lossy else 0.0)))
        controller.record(trials[-1])
    return controller.result(), trials


@cache
def ended(seed):
    """The result of a search that may end at a coin, and its trials."""
    return searched([PDR], seed, end_at_coin=True)


@cache
def whole(seed):
    """The trials of the same search without that end."""
    return searched([PDR], seed)[1]


@pytest.mark.parametrize("seed", range(6))
def test_a_search_ends_with_the_zone_where_a_coin_would_decide(seed):
    result, trials = ended(seed)
    assert result.finished
    assert len(trials) <= len(whole(seed))
    if result[PDR].regular:
        return
    assert result[PDR].reason is IrregularReason.COIN
    least, most = zone_in(PDR, trials, MIN, MAX).loads
    assert ZONE[0] <= least < most <= ZONE[1]
    inside = [trial for trial in trials if least <= trial.load <= most]
    assert len(inside) >= PDR.duration_sum


def test_most_such_searches_end_so_and_in_half_of_the_trials():
    seeds = range(12)
    coins = [result[PDR].reason is IrregularReason.COIN for result, _ in map(ended, seeds)]
    assert sum(coins) >= 6
    assert sum(len(trials) for _, trials in map(ended, seeds)) < 0.7 * sum(map(len, map(whole, seeds)))


def test_where_no_coin_decides_the_search_is_the_same():
    for goals in ([NDR, PDR], [PDR]):
        sharp = 540e3, 540e3
        assert searched(goals, 1, sharp, end_at_coin=True)[1] == searched(goals, 1, sharp)[1]


def test_one_goal_is_given_up_and_the_other_one_is_found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        large = SearchGoal(0.05, 0.5, 1.0, 21.0, 0.005, 1.0, name="large loss")
    found = [searched([PDR, large], seed, end_at_coin=True)[0] for seed in range(3)]
    assert any(result[PDR].reason is IrregularReason.COIN for result in found)
    assert all(result[large].reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND for result in found)


def test_a_search_that_ended_so_is_over_when_it_is_replayed_and_goes_on_without_the_setting():
    seed = next(
        seed for seed in range(12) if searched([PDR], seed, end_at_coin=True)[0][PDR].reason is IrregularReason.COIN
    )
    result, trials = searched([PDR], seed, end_at_coin=True)
    again, same = searched([PDR], seed, journal=trials, end_at_coin=True)
    assert same == trials
    assert again[PDR] == result[PDR]
    _, more = searched([PDR], seed, journal=trials)
    assert len(more) > len(trials)
    assert isinstance(more[-1].input, TrialInput)
