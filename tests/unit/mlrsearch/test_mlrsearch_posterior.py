"""The posterior over curves of loss, the race of a load's trials, and the signs that the SUT changes."""

from __future__ import annotations

import random

import pytest

from lossratio.mlrsearch import NDR, LoadGrid
from lossratio.mlrsearch.posterior import BINS, Expected, Plan, Posterior, race
from lossratio.trials.trial import TrialInput, TrialOutput, TrialResult

GRID = LoadGrid(9001.0, 1e6, 0.005)


def test_a_race_that_a_fair_coin_decides_is_even_and_as_long_as_counted_by_hand():
    lower, time = race(2, 2)
    assert lower[2, 2, BINS // 2] == pytest.approx(0.5)
    assert time[2, 2, BINS // 2] == pytest.approx(2.5)
    assert (lower[1, 2, BINS // 2], time[1, 1, BINS // 2]) == (pytest.approx(0.75), 1.0)
    assert (lower[0, 2].min(), lower[2, 0].max(), time[0].max()) == (1.0, 0.0, 0.0)


def test_trials_at_many_loads_show_where_loss_begins_and_how_wide_its_knee_is():
    def seen(spread, rng):
        posterior = Posterior(500)
        for place in range(100, 300):
            posterior.add(float(place), rng.random() * 2.0 * spread + 200.0 - spread > place)
        return posterior.curves(None)

    sharp, wide = seen(0.4, random.Random(1)), seen(60.0, random.Random(1))
    assert sharp.median == pytest.approx(200.0, abs=1.5)
    assert wide.median == pytest.approx(200.0, abs=15.0)
    assert (sharp.lossy([190, 210]) @ sharp.weights).round(1).tolist() == [0.0, 1.0]
    assert 0.2 < (wide.lossy([190]) @ wide.weights)[0] < 0.7


def test_an_expected_bound_is_believed_until_it_was_missed():
    posterior = Posterior(500)
    posterior.add(400.0, is_low=False)
    medians = [posterior.curves(Expected(300.0, 100.0, misses)).median for misses in (0, 20)]
    assert medians[0] == pytest.approx(300.0, abs=3.0)
    assert abs(medians[1] - 300.0) > abs(medians[0] - 300.0)


def trial(place, loss):
    return TrialResult(TrialInput(1.0, GRID.load(place)), TrialOutput(loss))


@pytest.mark.parametrize(("places", "drifts"), [((50, 50, 49), True), ((50, 60, 61), False), ((50, 50, 49, 55), False)])
def test_loads_that_only_fail_after_they_passed_show_a_drift(places, drifts):
    plan = Plan(NDR, GRID, Posterior(GRID.top))
    plan.add(trial(places[0], 0.0))
    for place in places[1:3]:
        plan.add(trial(place, 0.1))
    for place in places[3:]:
        plan.add(trial(place, 0.0))
    assert plan.may_drift is drifts
