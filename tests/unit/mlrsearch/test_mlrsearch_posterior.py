"""The posterior over curves of loss, the race of a load's trials, and the signs that the SUT changes."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

from lossratio.mlrsearch import NDR, PDR, LoadGrid, MLRsearch
from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.posterior import LOSSY, Curves, Expected, Plan, Posterior, ascending, race
from lossratio.mlrsearch.rules import GoalView
from lossratio.mlrsearch.rules.plan import MOST_KNOWN, best_pair, information
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

GRID = LoadGrid(9001.0, 1e6, 0.005)
NOTHING = Expected(None, 0, None)
COIN = int(np.abs(LOSSY - 0.5).argmin())


def lossy_at(posterior, position, expected=NOTHING):
    """The mean probability of a lossy trial at a load."""
    curves = posterior.curves(expected, np.array([position], dtype=float))
    return float(curves.chances[np.searchsorted(curves.positions, position)] @ LOSSY)


def test_a_race_that_a_fair_coin_decides_is_even_and_as_long_as_counted_by_hand():
    lower, time = race(2, 2)
    assert lower[2, 2, COIN] == pytest.approx(0.5)
    assert time[2, 2, COIN] == pytest.approx(2.5)
    assert (lower[1, 2, COIN], time[1, 1, COIN]) == (pytest.approx(0.75), 1.0)
    assert (lower[0, 2].min(), lower[2, 0].max(), time[0].max()) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("share", [1.0, 0.65])
def test_trials_show_the_edge_of_a_cliff_and_of_a_plateau_of_chance(share):
    rng, posterior = random.Random(1), Posterior(500)
    for position in range(100, 300, 2):
        posterior.add(float(position), position < 200 or rng.random() >= share)
    assert lossy_at(posterior, 191) < 0.05
    assert [lossy_at(posterior, position) for position in (215, 271)] == pytest.approx([share, share], abs=0.15)


def test_loss_that_a_goal_allows_goes_on_from_level_to_level():
    tops = []
    for goal in (NDR, PDR):
        posterior = GoalView(goal, LoadGrid(9001.0, 14_880_952.0, goal.width), LossCurve()).plan.posterior
        for number in range(20):
            posterior.add(200.0, is_low=number % 2 == 0)
        curves = posterior.curves(NOTHING, np.array([204.0]))
        tops.append(curves.chances[np.searchsorted(curves.positions, 204.0)] @ (LOSSY > 0.95))
    assert 0.0 < tops[1] < tops[0] / 2.0


def test_a_trial_says_the_more_about_the_verdict_on_a_coin_the_fewer_trials_decide_it():
    rng, posterior = random.Random(1), Posterior(500)
    for position in range(100, 400, 2):
        posterior.add(float(position), position < 200 or rng.random() >= 0.5)
    curves = posterior.curves(NOTHING, np.array([151.0, 301.0]))
    passes, coin = np.searchsorted(curves.positions, [151.0, 301.0])
    bits = [information(curves, np.full((len(curves.positions), 2), trials)) for trials in (1, 3, 11)]
    assert bits[0][passes] < 0.2 < 0.95 < bits[0][coin] <= 1.0
    assert bits[0][coin] > 2.0 * bits[1][coin] > 4.0 * bits[2][coin] > 0.0


def test_a_load_far_from_all_trials_is_open():
    posterior = Posterior(500)
    posterior.add(400.0, is_low=False)
    posterior.add(100.0, is_low=True)
    assert lossy_at(posterior, 100) < 0.1 < lossy_at(posterior, 250) < 0.8 < lossy_at(posterior, 400)


def test_an_expected_bound_is_believed_until_it_was_missed():
    posterior = Posterior(500)
    posterior.add(400.0, is_low=False)
    steps = [
        lossy_at(posterior, 302, expected) - lossy_at(posterior, 298, expected)
        for expected in (Expected((300.0, 100.0), misses, None) for misses in (0, 2, 20))
    ]
    assert steps[0] > 0.3 > steps[1] > steps[2] >= 0.0


def test_where_the_overload_misled_every_load_below_it_is_as_probable():
    below = Expected((300.0, 100.0), 20, None).begins_below(np.arange(20.0, 300.0, 40.0), 500)
    assert np.diff(below) == pytest.approx(40.0 / 300.0, rel=0.05)


def test_earlier_trials_are_believed_beside_the_overload_and_given_up_by_trials():
    posterior, overload = Posterior(500), Expected((300.0, 100.0), 0, None)
    posterior.add(400.0, is_low=False)
    posterior.earlier = {350.0: (3.7, 0.0), 351.0: (0.0, 3.7), 356.0: (0.0, 1.0), 380.0: (0.0, 1.0)}
    assert lossy_at(posterior, 351, overload) - lossy_at(posterior, 350, overload) > 0.6
    for _ in range(4):
        posterior.add(345.0, is_low=False)
    assert lossy_at(posterior, 340, overload) > 0.4


def test_states_are_probable_together_as_they_are_alone():
    posterior = Posterior(500)
    for position, is_low in ((200.0, True), (210.0, False), (203.0, False), (203.0, True)):
        posterior.add(position, is_low)
    curves = posterior.curves(Expected((205.0, 5.0), 0, None), np.arange(195.0, 215.0))
    low, high = np.searchsorted(curves.positions, [201, 206])
    joint = curves.joint(low, high)
    assert joint.sum(axis=1) == pytest.approx(curves.chances[low])
    assert joint.sum(axis=0) == pytest.approx(curves.chances[high])


def test_losses_that_fade_from_load_to_load_show_where_they_end():
    plan = Plan(NDR, GRID, Posterior(GRID.top))
    # Ten steps make the loss ten times as large; one frame in a trial is lost at step 300.
    for position in (310, 320, 330):
        frame = 1.0 / GRID.load(300)
        plan.add(trial(position, frame * 10.0 ** ((position - 300) / 10.0)))
    plan.expect(None, GRID.load(310))
    centre, scale = plan.expected.faded
    assert centre == pytest.approx(300.0, abs=2.0)
    assert 1.0 <= scale < 4.0


def trial(position, loss):
    return TrialResult(TrialInput(1.0, GRID.load(position)), TrialOutput(loss))


@pytest.mark.parametrize(
    ("passed", "failed", "then_passed", "drifts"),
    [(50, [50, 49, 48, 47], [], True), (50, [60, 61, 62, 63], [], False), (50, [50, 49, 48, 47], [55], False)],
)
def test_loads_that_only_fail_after_they_passed_show_a_drift(passed, failed, then_passed, drifts):
    plan = Plan(NDR, GRID, Posterior(GRID.top))
    for position, loss in ((passed, 0.0), *((low, 0.1) for low in failed), *((high, 0.0) for high in then_passed)):
        plan.add(trial(position, loss))
    assert plan.may_drift is drifts


def test_races_of_all_sizes_are_parts_of_a_few():
    sizes = {id(race(lows, highs).lower) for lows in range(1, 65) for highs in range(1, 65)}
    assert len(sizes) <= 7
    assert np.array_equal(race(3, 5).time[:4, :6], race(60, 64).time[:4, :6])


PASSED_OR_FAILED = [(position, position < 449) for position in (*range(0, 450, 2), *range(449, 900, 2))]
COINS = [
    (position, position < 630 and (position // 2 + n) % 2 == 0) for n in range(6) for position in range(602, 640, 2)
]


@pytest.mark.parametrize("trials", [PASSED_OR_FAILED, COINS], ids=["passed or failed", "coins"])
def test_a_decision_takes_no_more_work_after_hundreds_of_trials(monkeypatch, trials):
    controller = MLRsearch([NDR], GRID.min_load, GRID.max_load)
    for position, passes in trials:
        controller.record(trial(position, 0.0 if passes else 0.1))
    rows = []
    pairs = []
    curves_of = Posterior.curves
    joint_of = Curves.joint

    def curves(*given):
        found = curves_of(*given)
        rows.append(len(found.positions))
        return found

    def joint(*given):
        pairs.append(given)
        return joint_of(*given)

    monkeypatch.setattr(Posterior, "curves", curves)
    monkeypatch.setattr(Curves, "joint", joint)
    controller.next_trial()
    assert controller.purpose.rule == "plan"
    assert len(rows) == 2
    assert max(rows) <= 4 * MOST_KNOWN
    assert 0 < len(pairs) <= 40


@pytest.mark.whole
def test_a_pair_that_is_not_examined_is_not_the_best_one():
    rng = random.Random(1)
    for _ in range(30):
        posterior = Posterior(300)
        centre = rng.uniform(100.0, 200.0)
        for _ in range(rng.randint(2, 40)):
            position = float(rng.randint(0, 300))
            posterior.add(position, is_low=rng.random() > (position - centre) / rng.choice([1.0, 20.0, 100.0]) + 0.5)
        lowers = np.arange(0, 300, 3)
        curves = posterior.curves(NOTHING, ascending(lowers.tolist(), (lowers + 1).tolist()))
        needed = np.array([(rng.randint(1, 30), rng.randint(1, 30)) for _ in curves.positions])
        alone = [best_pair(curves, needed, lowers[[pair]], lowers[[pair]] + 1) for pair in range(len(lowers))]
        best = best_pair(curves, needed, lowers, lowers + 1)
        assert best._replace(number=0) == min(alone)
        assert alone[best.number] == min(alone)


@pytest.mark.whole
def test_a_plan_imports_nothing_in_the_midst_of_a_search():
    code = """
import sys
from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.trials import TrialInput, TrialOutput, TrialResult
controller = MLRsearch([NDR, PDR], 9001.0, 1e6)
before = {*sys.modules}
for number in range(30):
    trial = controller.next_trial()
    lost = max(0.0, 1.0 - 5e5 / trial.load, 0.1 * (number % 3 == 0))
    controller.record(TrialResult(trial, TrialOutput(lost)))
assert controller.purpose.rule == "plan", controller.purpose
print(*{*sys.modules} - before)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
