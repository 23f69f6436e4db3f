from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from at_least_one import at_least_one
from hypothesis import HealthCheck, given, settings, strategies as st
from mlrsearch_reference import reference_bounds
from mlrsearch_suts import drive, knee, measured, noisy, policer

from lossratio.errors import SearchError
from lossratio.mlrsearch import (
    NDR,
    PDR,
    RFC2544,
    TST009,
    Bound,
    IrregularReason,
    LoadGrid,
    MLRsearch,
    SearchGoal,
    goal_result,
)
from lossratio.simulation import SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

MIN, MAX = 9001.0, 14_880_952.0
QUICK = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, name="quick")
GOAL_SETS = {
    "NDR and PDR": [NDR, PDR],
    "RFC 2544": [RFC2544],
    "TST009": [TST009],
    "quick": [QUICK],
    "different widths": [QUICK, replace(PDR, width=0.037), replace(NDR, width=0.005)],
}


@pytest.mark.whole
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
@pytest.mark.parametrize("capacity", [9100.0, 1e5, 1_234_567.0, 14.8e6])
@pytest.mark.parametrize("degradation", [0.0, 0.3])
def test_a_knee_is_enclosed_by_every_goal(goals, capacity, degradation):
    controller = MLRsearch(goals, MIN, MAX)
    result = drive(controller, knee(capacity, degradation))
    assert result.finished
    for goal in goals:
        goal_result = result[goal]
        assert goal_result.regular
        assert knee(capacity, degradation)(goal_result.relevant_lower_bound, 1.0) <= goal.loss_ratio
        assert knee(capacity, degradation)(goal_result.relevant_upper_bound, 1.0) > goal.loss_ratio
        assert goal_result.relevant_upper_bound * (1.0 - goal.width) <= goal_result.relevant_lower_bound


@pytest.mark.parametrize("goal", [RFC2544, TST009, NDR])
def test_a_burst_that_hides_loss_in_short_trials_is_seen_through(goal):
    rate, burst = 1e6, 50_000.0
    goal_result = drive(MLRsearch([goal], MIN, MAX), policer(rate, burst))[goal]
    truth = rate + burst / goal.final_trial_duration
    assert goal_result.regular
    assert goal_result.relevant_lower_bound <= truth < goal_result.relevant_upper_bound


@pytest.mark.whole
@pytest.mark.parametrize("goals", [GOAL_SETS["NDR and PDR"], GOAL_SETS["different widths"]])
def test_the_order_of_goals_changes_no_trial(goals):
    forwards, backwards = (MLRsearch(order, MIN, MAX) for order in (goals, goals[::-1]))
    first, second = drive(forwards, noisy(1e6, 0.01, 0)), drive(backwards, noisy(1e6, 0.01, 0))
    assert forwards.evidence == backwards.evidence
    assert dict(first) == dict(second)


def test_equal_goals_share_one_entry_and_names_distinguish_goals():
    twin = replace(NDR, name="twin")
    result = drive(MLRsearch([NDR, replace(NDR), twin], MIN, MAX), knee(1e6))
    assert list(result) == [NDR, twin]
    assert replace(result[twin], goal=NDR) == result[NDR]


@pytest.mark.whole
def test_asking_again_changes_nothing():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    sut = noisy(1e6, 0.01, 1)
    while (trial := controller.next_trial()) is not None:
        assert controller.next_trial() is trial
        controller.result()
        assert controller.next_trial() is trial
        controller.record(TrialResult(trial, TrialOutput(sut(trial.load, trial.duration))))
    assert controller.next_trial() is None


def test_the_timeout_counts_what_trials_took():
    controller = MLRsearch([NDR, PDR], MIN, MAX, timeout=20.0)
    sut = knee(1e6)
    while (trial := controller.next_trial()) is not None:
        controller.record(
            TrialResult(trial, TrialOutput(sut(trial.load, trial.duration), elapsed=trial.duration + 1.0))
        )
    result = controller.result()
    assert controller.trials == 10
    assert not result.finished
    assert (result.elapsed, result.trials) == (20.0, 10)
    assert {result[goal].reason for goal in (NDR, PDR)} == {IrregularReason.TIMEOUT}


@pytest.mark.whole
@pytest.mark.parametrize("goals", [[NDR, PDR], [TST009]], ids=["CSIT", "TST009"])
def test_a_timeout_at_any_moment_leaves_what_the_trials_prove(goals):
    free = MLRsearch(goals, MIN, MAX)
    drive(free, noisy(1e6, 0.01, 3))
    seconds = 0.5
    assert free.elapsed > seconds
    while seconds < free.elapsed:
        controller = MLRsearch(goals, MIN, MAX, timeout=seconds)
        result = drive(controller, noisy(1e6, 0.01, 3))
        assert result.finished == (controller.elapsed == free.elapsed)
        assert seconds <= controller.elapsed < seconds + 60.0
        for goal, search_result in at_least_one(result.items()):
            again = goal_result(
                goal, controller.evidence, min_load=MIN, max_load=MAX, unfinished=IrregularReason.TIMEOUT
            )
            assert search_result == again
        # No multiple of a trial's length, so that all parts of trials are met.
        seconds += 25.5


def test_results_found_before_the_timeout_stay_regular():
    free = MLRsearch([NDR], MIN, MAX)
    drive(free, knee(1e6))
    limited = MLRsearch([NDR], MIN, MAX, timeout=free.elapsed)
    assert drive(limited, knee(1e6)).finished
    assert limited.result()[NDR].regular


def test_a_search_that_is_stopped_says_so_and_what_it_knows():
    class Measurer:
        def measure(self, trial):
            return TrialOutput(knee(1e6)(trial.load, trial.duration))

    result = run_search(MLRsearch([NDR], MIN, MAX), Measurer(), timeout=15.0)
    assert not result.finished
    assert result[NDR].reason is IrregularReason.STOPPED_EARLY


def test_a_warm_up_is_the_first_trial_and_no_evidence():
    controller = MLRsearch([NDR], MIN, MAX, warm_up_duration=2.5)
    assert controller.next_trial() == TrialInput(2.5, MAX)
    assert "warm-up" in str(controller.purpose)
    controller.record(measured(1e6, 1.0, 0.0))
    assert controller.next_trial() == TrialInput(2.5, MAX)
    controller.record(measured(MAX, 2.5, 1.0))
    assert controller.evidence == (measured(1e6, 1.0, 0.0),)
    assert (controller.trials, controller.elapsed) == (2, 3.5)
    assert controller.next_trial() == TrialInput(1.0, MAX)


@pytest.mark.parametrize("times", [{"timeout": 0.0}, {"timeout": math.nan}, {"warm_up_duration": -1.0}])
def test_times_that_make_no_sense_are_refused(times):
    with pytest.raises(SearchError, match=r"positive number of seconds|must be a number"):
        MLRsearch([NDR], MIN, MAX, **times)


@pytest.mark.whole
def test_the_purpose_says_for_whom_and_what_is_expected():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    purposes = []
    sut = knee(1e6)
    while (trial := controller.next_trial()) is not None:
        purposes.append(controller.purpose)
        controller.record(TrialResult(trial, TrialOutput(sut(trial.load, trial.duration))))
    assert controller.purpose is None
    assert str(purposes[0]).startswith("NDR, PDR: search between the minimum load and the maximum load")
    last = purposes[-1]
    assert last.goals == (PDR,)
    assert last.expected is Bound.UPPER
    assert str(last) == "PDR: prove the upper bound in 21 s; high loss is expected"


class AnySut:
    """Answers as hypothesis wants, then as a random generator does."""

    def __init__(self, answers, seed):
        self.answers = iter(answers)
        self.rng = random.Random(seed)

    def __call__(self, trial):
        loss, scale = next(self.answers, (self.rng.choice([0.0, 0.0, 0.003, 1.0]), self.rng.choice([1.0, 0.5, 2.0])))
        return measured(trial.load, trial.duration, loss, effective=trial.duration * scale)


answers = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.002, 0.005, 0.1, 1.0]), st.floats(0.0, 1.0)),
        st.one_of(st.sampled_from([1.0, 0.0, 1e-9, 1.5]), st.floats(0.0, 100.0)),
    ),
    max_size=60,
)
strangers = st.dictionaries(
    st.integers(0, 30),
    st.builds(measured, st.floats(100.0, 3000.0), st.floats(0.01, 100.0), st.sampled_from([0.0, 0.01, 1.0])),
    max_size=4,
)
goal_sets = st.lists(
    st.builds(
        SearchGoal,
        st.sampled_from([0.0, 0.001, 0.2]),
        st.sampled_from([0.0, 0.2, 0.5, 0.9]),
        st.sampled_from([0.5, 1.0, 10.0]),
        st.sampled_from([0.5, 1.0, 5.0, 30.0]),
        st.sampled_from([0.3, 0.05, 0.007]),
        st.sampled_from([0.5, 0.1, None]),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::lossratio.mlrsearch.SearchGoalWarning")
@given(goal_sets, answers, strangers, st.integers(0, 1000), st.booleans(), st.sampled_from([200.0, 995.0, 1000.0]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_answers_at_all_lead_to_a_correct_end(goals, answers, strangers, seed, fail_fast, min_load):
    controller = MLRsearch(goals, min_load, 1000.0, fail_fast=fail_fast)
    sut = AnySut(answers, seed)
    for number in range(20_000):
        trial = controller.next_trial()
        if trial is None:
            break
        assert min_load <= trial.load <= 1000.0
        controller.record(sut(trial))
        if number in strangers:
            controller.record(strangers[number])
    result = controller.result()
    assert result.finished
    assert set(result) == set(goals)
    for goal, search_result in result.items():
        lower, upper = reference_bounds(goal, controller.evidence)
        again = goal_result(
            goal, controller.evidence, min_load=min_load, max_load=1000.0, unfinished=search_result.reason
        )
        assert search_result == again
        assert search_result.relevant_lower_bound == lower
        if search_result.regular:
            assert upper - lower <= goal.width * upper
            assert search_result.conditional_throughput >= lower * (1.0 - goal.loss_ratio)
        else:
            assert search_result.reason not in (None, IrregularReason.TIMEOUT, IrregularReason.STOPPED_EARLY)
        if None not in (lower, upper):
            assert lower < upper


def test_a_trial_may_end_once_it_is_high_loss_for_every_goal():
    controller = MLRsearch([NDR, PDR], 1e4, 1e6, early_verdict=True, warm_up_duration=1.0)
    assert controller.next_trial().certain_above is None
    controller.record(TrialResult(controller.next_trial(), TrialOutput(0.5)))
    assert controller.next_trial().certain_above == PDR.loss_ratio
    assert MLRsearch([NDR, PDR], 1e4, 1e6).next_trial().certain_above is None


@pytest.mark.whole
@pytest.mark.parametrize("goals", [(NDR, PDR), (RFC2544,), (TST009,)], ids=str)
def test_early_verdicts_find_the_same_bounds_in_less_time(goals):
    def found(early_verdict):
        controller = MLRsearch(goals, 1e4, 1e6, early_verdict=early_verdict)
        result = run_search(controller, SimulatedMeasurer(SharpKnee(capacity=3.21e5), seed=1))
        bounds = [(each.relevant_lower_bound, each.relevant_upper_bound) for each in result.values()]
        assert all(each.regular for each in result.values())
        return bounds, result.elapsed

    (bounds, seconds), (same, fewer) = found(False), found(True)
    assert bounds == same
    assert fewer < 0.95 * seconds


def next_to(load, steps=1):
    """A load so many floating-point numbers above another one."""
    for _ in range(steps):
        load = math.nextafter(load, math.inf)
    return load


@pytest.mark.parametrize("load", [MAX, MIN, 1e5, LoadGrid(MIN, MAX, QUICK.width).load(400)])
def test_loads_that_differ_by_rounding_are_one_load(load):
    controller = MLRsearch([QUICK], MIN, MAX)
    for number in range(3):
        controller.record(measured(next_to(load, number), 1.0, 0.1 * (number + 1)))
    controller.record(measured(2.0 * load, 1.0, 0.5))
    assert len({trial.load for trial in controller.evidence}) == 2
    assert controller.result()[QUICK].relevant_upper_bound == pytest.approx(load)


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(7))
def test_any_trials_that_were_not_asked_for_are_taken_at_loads_that_nearly_meet(seed):
    chance = random.Random(seed)
    loads = [chance.uniform(MIN, MAX) for _ in range(3)]
    for goals in ([NDR, PDR], [RFC2544], [QUICK]):
        controller = MLRsearch(goals, MIN, MAX, early_verdict=chance.random() < 0.5)
        for _ in range(40):
            load = next_to(chance.choice(loads), chance.randrange(3))
            loss = chance.choice([0.0, chance.random() * 0.01, chance.random()])
            controller.record(measured(load, chance.choice([1.0, 7.75, 60.0]), loss))
            controller.next_trial()
            controller.result()
