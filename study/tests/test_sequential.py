"""Sequential goals: the test of a load, and the promise of a search."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from sequential_checker import shown_by

from lossratio.mlrsearch import Bound, IrregularReason
from lossratio.trials import TrialInput, TrialOutput, TrialResult
from lossratio_study import sequential
from lossratio_study.promises import MAX_LOAD, MIN_LOAD, PROMISES, is_wrong, promises_kept, search_on_curve
from lossratio_study.sequential import Order, SequentialEvidence, SequentialGoal, SequentialSearch, trials_alike

HALF = SequentialGoal(0.0, 0.5, name="half")
MIXTURE = SequentialGoal(0.0, 0.5, indifference=0.0, name="mixture")


def measured(load, duration, loss_ratio):
    """A trial result."""
    return TrialResult(TrialInput(duration, load), TrialOutput(loss_ratio))


def classify(goal, trials):
    """The verdict on the load of some trials."""
    evidence = SequentialEvidence(goal)
    for trial in trials:
        evidence.add(trial)
    return evidence.bound(trials[0].load)


def probability_of_verdict(goal, place, share, side):
    """How probable it is that a load with this share of lossy trials gets a verdict: by all paths of some trials."""
    needed, alive, verdict = goal.support_needed(place), {(0, 0): 1.0}, 0.0
    for _ in range(60):
        later = {}
        for (low, high), probability in alive.items():
            for path, chance in (((low + 1, high), 1.0 - share), ((low, high + 1), share)):
                if getattr(goal.support(*path), side) >= needed:
                    verdict += probability * chance
                else:
                    later[path] = later.get(path, 0.0) + probability * chance
        alive = later
    return verdict


def test_five_trials_without_loss_are_enough_where_half_may_be_lossy():
    assert HALF.least_trials == 5
    assert (HALF.duration_sum, HALF.final_trial_duration) == (5.0, 1.0)
    trials = [measured(1e5, 1.0, 0.0) for _ in range(6)]
    assert classify(HALF, trials) is Bound.LOWER
    assert classify(HALF, trials[1:]) is Bound.UNDECIDED
    assert classify(HALF, [replace(trial, output=replace(trial.output, loss_ratio=0.1)) for trial in trials]) is (
        Bound.UPPER
    )


@pytest.mark.parametrize("goal", [HALF, MIXTURE, *PROMISES[1:3]], ids=str)
@pytest.mark.parametrize("place", [1, 4])
def test_no_test_is_wrong_more_often_than_its_share_of_the_error(goal, place):
    goal = replace(goal, error=0.3)
    allowed = math.exp(-goal.support_needed(place))
    bad, good = goal.exceed_ratio + goal.indifference, max(0.0, goal.exceed_ratio - goal.indifference)
    assert 0.0 < probability_of_verdict(goal, place, bad, "lower") <= allowed
    assert 0.0 < probability_of_verdict(goal, place, good, "upper") <= allowed


def test_the_shares_of_the_error_add_up_to_it():
    shares = [math.exp(-HALF.support_needed(place)) for place in range(1, 20_001)]
    assert shares == sorted(shares, reverse=True)
    assert 0.9999 * HALF.error < math.fsum(shares) < HALF.error


@pytest.mark.parametrize(("low", "high"), [(0, 1), (3, 0), (7, 2), (2, 7), (40, 60)])
@pytest.mark.parametrize("exceed_ratio", [0.1, 0.5])
def test_a_mixture_is_the_mean_likelihood_ratio(exceed_ratio, low, high):
    support = SequentialGoal(0.0, exceed_ratio, indifference=0.0).support(low, high)
    at = exceed_ratio**high * (1.0 - exceed_ratio) ** low

    def mean(start, end, steps=20_000):
        shares = (start + (end - start) * (step + 0.5) / steps for step in range(steps))
        return math.fsum(share**high * (1.0 - share) ** low for share in shares) / steps / at

    assert math.exp(support.lower) == pytest.approx(mean(0.0, exceed_ratio), rel=1e-4)
    assert math.exp(support.upper) == pytest.approx(mean(exceed_ratio, 1.0), rel=1e-4)


def test_where_no_trial_may_be_lossy_one_refutes_a_load():
    goal = SequentialGoal(0.0, 0.0, indifference=0.1)
    assert goal.least_trials == math.ceil(math.log(0.05 * 0.3) / math.log(0.9))
    assert goal.support(100, 1) == (-math.inf, math.inf)


def test_trials_of_other_durations_and_the_trial_that_chose_the_load_do_not_count():
    evidence = SequentialEvidence(HALF)
    for _ in range(5):
        evidence.add(measured(1e5, 1.0, 0.0))
        evidence.add(measured(1e5, 2.0, 0.0))
        evidence.add(measured(1e5, 0.5, 0.0))
    assert evidence.bound(1e5) is Bound.UNDECIDED
    assert evidence.missing(1e5, Bound.LOWER) == 1.0
    assert evidence.missing(1e5, Bound.UPPER) == 9.0
    evidence.add(measured(1e5, 1.0, 0.0))
    assert evidence.bound(1e5) is Bound.LOWER


def test_where_shorter_trials_choose_each_full_length_one_counts():
    goal = SequentialGoal(0.0, 0.5, final_trial_duration=10.0)
    assert (goal.first_duration, goal.duration_sum) == (1.0, 50.0)
    assert classify(goal, [measured(1e5, 10.0, 0.0) for _ in range(5)]) is Bound.LOWER


MIXED = [*[0.0] * 6, *[0.1, 0.1, 0.0] * 4]
"""Loss ratios that make a load a lower bound, and then look like those of another load."""


def test_a_verdict_stands_and_loads_outside_of_the_bounds_are_not_tested():
    evidence = SequentialEvidence(HALF)
    for load, ratios in ((1e5, MIXED), (9e4, [0.1] * 12), (2e5, [0.1] * 12), (3e5, [0.0] * 12)):
        for loss_ratio in ratios:
            evidence.add(measured(load, 1.0, loss_ratio))
    assert evidence.relevant_bounds() == (1e5, 2e5)
    assert evidence.bound(9e4) is evidence.bound(3e5) is Bound.UNDECIDED


def test_a_load_that_no_trials_decide_is_decided_by_the_limit_and_marked():
    goal = SequentialGoal(0.0, 0.5, width=0.5)
    search = SequentialSearch([goal], 1e4, 1e6)
    trials = [measured(2e5, 1.0, 0.1)] * 8
    trials += [measured(1e5, 1.0, 0.1 * (number % 2)) for number in range(goal.most_trials + 1)]
    for trial in trials[:-1]:
        search.record(trial)
    assert search.result()[goal].relevant_lower_bound is None
    search.record(trials[-1])
    result = search.result()[goal]
    assert (result.relevant_lower_bound, result.relevant_upper_bound) == (1e5, 2e5)
    assert (result.regular, result.reason) == (False, IrregularReason.COIN)


@pytest.mark.parametrize("goal", [HALF, SequentialGoal(0.0, 0.5, final_trial_duration=30.0), MIXTURE], ids=str)
def test_a_search_of_a_knee_ends_with_its_bounds(goal, searched, capacity):
    for rate in (2.2e4, 3.3e5, 9.9e5):
        found, trials = searched(SequentialSearch([goal], MIN_LOAD, MAX_LOAD), capacity(rate))
        result = found[goal]
        assert result.regular
        assert len(trials) <= 40
        assert result.relevant_lower_bound <= rate <= result.relevant_upper_bound


@pytest.mark.whole
@pytest.mark.parametrize("goal", PROMISES, ids=str)
def test_the_independent_checker_finds_no_fault(goal):
    goal = replace(goal, width=0.1)
    for seed in range(4):
        draw = random.Random(seed)
        controller, trials = SequentialSearch([goal], MIN_LOAD, MAX_LOAD), []
        while (trial := controller.next_trial()) is not None:
            is_lossy = draw.random() < 1.0 / (1.0 + math.exp((3e5 - trial.load) / 3e4))
            trials.append(measured(trial.load, trial.duration, 0.02 * is_lossy))
            controller.record(trials[-1])
        result = controller.result()[goal]
        lower, upper, is_unsure = shown_by(goal, trials)
        assert (result.relevant_lower_bound, result.relevant_upper_bound) == (lower, upper)
        assert result.regular is not is_unsure


@pytest.mark.whole
def test_the_promise_of_the_presets_is_kept_on_simulated_suts():
    class Careless(SequentialGoal):
        def support_needed(self, place):
            return 1.0

    kept, broken = promises_kept((PROMISES[0], Careless(0.0, 0.5)), 40)
    assert kept.irregular < 4
    assert kept.error <= kept.goal.error
    assert broken.error > 2.0 * broken.goal.error


def order_of(outcomes):
    order = Order()
    for outcome in outcomes:
        order.add(outcome)
    return order


def test_trials_are_alike_if_their_outcomes_change_less_often_than_by_chance():
    draw = random.Random(1)

    def alike(stuck):
        lucks = [[draw.random() < 0.5 for _ in range(40 // stuck)] for _ in range(5)]
        return trials_alike(order_of(luck for luck in own for _ in range(stuck)) for own in lucks)

    assert sum(alike(1) > 1 for _ in range(400)) < 0.05 * 400
    assert {alike(4) for _ in range(50)} <= {3, 4, 5, 6}
    assert trials_alike([order_of([True] * 50), order_of([False] * 50)]) == 1


def test_a_verdict_falls_where_trials_turn_out_to_be_alike():
    evidence = SequentialEvidence(HALF)
    for _ in range(6):
        evidence.add(measured(1e5, 1.0, 0.0))
    assert evidence.bound(1e5) is Bound.LOWER
    for loss_ratio in (0.1, 0.0, 0.1):
        for _ in range(5):
            evidence.add(measured(2e5, 1.0, loss_ratio))
    assert evidence.bound(1e5) is Bound.UNDECIDED
    assert evidence.missing(1e5, Bound.LOWER) > 5.0


@pytest.mark.whole
def test_trials_that_are_stuck_break_the_promise_far_less_often_and_independent_ones_cost_no_more(monkeypatch):
    def searches(stuck, number):
        found = [search_on_curve(PROMISES[0], seed, stuck) for seed in range(number)]
        return sum(any(is_wrong(PROMISES[0], *one[:2])) for one in found), sum(trials for *_, trials in found)

    (wrong, _), (_, trials) = searches(3, 40), searches(1, 12)
    monkeypatch.setattr(sequential, "ALIKE", 1e9)
    (wrong_before, _), (_, trials_before) = searches(3, 40), searches(1, 12)
    assert wrong <= 6 < 12 <= wrong_before
    assert trials < 1.05 * trials_before


def test_a_bound_is_wrong_only_outside_of_the_zone_of_indifference():
    result, _, trials = search_on_curve(HALF, 1)
    assert trials > 10
    assert is_wrong(HALF, result, lambda load: 0.5) == (False, False)
    assert is_wrong(HALF, result, lambda load: 0.7) == (True, False)
    assert is_wrong(HALF, result, lambda load: 0.3) == (False, True)
    assert is_wrong(MIXTURE, result, lambda load: 0.51) == (True, False)
