from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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
    MLRsearch,
    SearchGoal,
    goal_result,
)
from lossratio.trial import TrialInput, TrialOutput, TrialResult, run_search

MIN, MAX = 9001.0, 14_880_952.0
QUICK = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, name="quick")
GOAL_SETS = {
    "NDR and PDR": [NDR, PDR],
    "RFC 2544": [RFC2544],
    "TST009": [TST009],
    "quick": [QUICK],
    "different widths": [QUICK, replace(PDR, width=0.037), replace(NDR, width=0.005)],
}


@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
@pytest.mark.parametrize("capacity", [9100.0, 1e5, 1_234_567.0, 14.8e6])
@pytest.mark.parametrize("degradation", [0.0, 0.3])
def test_a_knee_is_enclosed_by_every_goal(goals, capacity, degradation):
    controller = MLRsearch(goals, MIN, MAX)
    result = drive(controller, knee(capacity, degradation))
    assert result.finished
    for goal in goals:
        found = result[goal]
        assert found.regular
        assert knee(capacity, degradation)(found.relevant_lower_bound, 1.0) <= goal.loss_ratio
        assert knee(capacity, degradation)(found.relevant_upper_bound, 1.0) > goal.loss_ratio
        assert found.relevant_upper_bound * (1.0 - goal.width) <= found.relevant_lower_bound


@pytest.mark.parametrize("goal", [RFC2544, TST009, NDR])
def test_a_burst_that_hides_loss_in_short_trials_is_seen_through(goal):
    rate, burst = 1e6, 50_000.0
    found = drive(MLRsearch([goal], MIN, MAX), policer(rate, burst))[goal]
    truth = rate + burst / goal.final_trial_duration
    assert found.regular
    assert found.relevant_lower_bound <= truth < found.relevant_upper_bound


def test_all_trials_lossless_end_irregular_at_max_load():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    result = drive(controller, lambda load, duration: 0.0)
    assert result.finished
    assert controller.trials == 11
    for goal in (NDR, PDR):
        assert result[goal].reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND
        assert result[goal].conditional_throughput == MAX


@pytest.mark.parametrize("fail_fast", [True, False])
def test_all_trials_lossy_end_irregular_at_min_load(fail_fast):
    result = drive(MLRsearch([NDR, PDR], MIN, MAX, fail_fast=fail_fast), lambda load, duration: 1.0)
    assert result.finished
    assert result.elapsed <= 40.0
    for goal in (NDR, PDR):
        assert result[goal].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
        assert result[goal].relevant_lower_bound is None


def lossy_by_a_little(load, duration):
    return max(1e-6, knee(1e6)(load, duration))


def test_fail_fast_ends_the_search_for_all_goals():
    result = drive(MLRsearch([PDR, NDR], MIN, MAX), lossy_by_a_little)
    assert result.finished
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[PDR].reason is IrregularReason.OTHER_GOAL_FAILED


def test_without_fail_fast_the_other_goals_are_found():
    result = drive(MLRsearch([PDR, NDR], MIN, MAX, fail_fast=False), lossy_by_a_little)
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[PDR].regular


def test_loss_inversion_gives_the_lower_bounds():
    def sut(load, duration):
        return 0.01 if 5e5 < load < 5.1e5 else knee(1e6)(load, duration)

    controller = MLRsearch([NDR], MIN, MAX)
    controller.record(measured(505_000.0, 21.0, 0.01))
    found = drive(controller, sut)[NDR]
    assert found.regular
    assert found.relevant_upper_bound < 5.1e5
    assert found.relevant_lower_bound < 5.01e5


@pytest.mark.parametrize("rate", [0.9999, 0.9997, 0.9995, 0.999, 0.998])
def test_a_sut_that_slows_down_ends_with_a_result(rate):
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    result = drive(controller, lambda load, duration: knee(1e6 * rate**controller.trials)(load, duration))
    assert result.finished
    assert all(result[goal].regular for goal in (NDR, PDR))


@pytest.mark.parametrize("goals", [[NDR, PDR], [TST009], [RFC2544]], ids=["CSIT", "TST009", "RFC 2544"])
@pytest.mark.parametrize("rate", [1.0005, 1.001, 1.002, 1.005])
def test_a_sut_that_speeds_up_is_not_followed_to_the_maximum_load(goals, rate):
    controller = MLRsearch(goals, MIN, MAX)
    result = drive(controller, lambda load, duration: knee(1e6 * rate**controller.trials)(load, duration), 500)
    assert all(result[goal].regular for goal in goals)


def test_loss_that_fades_slowly_is_followed_to_its_end():
    def fading(load, duration):
        loss_ratio = 0.02 * math.exp((load / 1e6 - 1.0) / 0.05)
        return 0.0 if loss_ratio * load * duration < 1.0 else min(1.0, loss_ratio)

    controller = MLRsearch([QUICK], MIN, MAX)
    assert drive(controller, fading)[QUICK].regular
    assert controller.trials < 20


def test_a_sut_that_changes_once_ends_with_a_result():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    result = drive(controller, lambda load, duration: knee(1e6 if controller.trials < 15 else 7e5)(load, duration))
    assert result.finished
    assert result[NDR].relevant_lower_bound <= 7e5


def test_loads_that_round_to_their_neighbours_end_with_a_result():
    result = drive(MLRsearch([NDR, PDR], 10.0, 150.0), lambda load, duration: knee(90.0)(round(load), duration))
    assert result.finished
    assert result[NDR].regular
    assert 89.0 <= result[NDR].relevant_lower_bound < 91.0


@pytest.mark.parametrize("answer", [0.0, 1.0])
@pytest.mark.parametrize("min_load", [1000.0, 998.0])
def test_a_range_without_room_ends_irregular(min_load, answer):
    result = drive(MLRsearch([NDR], min_load, 1000.0), lambda load, duration: answer)
    reasons = {0.0: IrregularReason.MAX_LOAD_IS_LOWER_BOUND, 1.0: IrregularReason.MIN_LOAD_IS_UPPER_BOUND}
    assert result[NDR].reason is reasons[answer]


def test_a_range_narrower_than_the_width_can_be_a_regular_result():
    found = drive(MLRsearch([NDR], 998.0, 1000.0), knee(999.0))[NDR]
    assert found.regular
    assert (found.relevant_lower_bound, found.relevant_upper_bound) == (998.0, 1000.0)


def test_a_hundred_goals_all_get_their_results():
    goals = [SearchGoal(ratio / 10_000, 0.5, 1.0, 5.0, 0.01, name=f"{ratio}") for ratio in range(100)]
    result = drive(MLRsearch(goals, MIN, MAX), knee(1e6))
    assert list(result) == goals
    assert all(found.regular for found in result.values())
    lowers = [result[goal].relevant_lower_bound for goal in goals]
    assert lowers == sorted(lowers)


@pytest.mark.parametrize("goals", [GOAL_SETS["NDR and PDR"], GOAL_SETS["different widths"]])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_goals_changes_no_trial(goals, seed):
    forwards, backwards = (MLRsearch(order, MIN, MAX) for order in (goals, goals[::-1]))
    first, second = drive(forwards, noisy(1e6, 0.01, seed)), drive(backwards, noisy(1e6, 0.01, seed))
    assert forwards.evidence == backwards.evidence
    assert dict(first) == dict(second)


def test_equal_goals_share_one_entry_and_names_tell_goals_apart():
    twin = replace(NDR, name="twin")
    result = drive(MLRsearch([NDR, replace(NDR), twin], MIN, MAX), knee(1e6))
    assert list(result) == [NDR, twin]
    assert replace(result[twin], goal=NDR) == result[NDR]


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
    with pytest.raises(SearchError, match="positive number of seconds"):
        MLRsearch([NDR], MIN, MAX, **times)


@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
def test_effective_durations_of_zero_end_the_search(goals):
    controller = MLRsearch(goals, MIN, MAX)
    while (trial := controller.next_trial()) is not None:
        controller.record(measured(trial.load, trial.duration, 0.5, effective=0.0))
    result = controller.result()
    assert result.finished
    assert {found.reason for found in result.values()} == {IrregularReason.STALLED}


def test_effective_durations_longer_than_trials_need_fewer_of_them():
    controller = MLRsearch([NDR], MIN, MAX)
    while (trial := controller.next_trial()) is not None:
        controller.record(measured(trial.load, trial.duration, 0.0, effective=1.5))
    assert controller.trials == 7


def test_trials_nobody_asked_for_count():
    controller = MLRsearch([NDR], MIN, MAX)
    controller.record(measured(1_000_000.0, 30.0, 0.0))
    controller.record(measured(1_004_000.0, 30.0, 0.1))
    assert controller.next_trial() is None
    found = controller.result()[NDR]
    assert found.regular
    assert (found.relevant_lower_bound, found.relevant_upper_bound) == (1_000_000.0, 1_004_000.0)


def test_trials_outside_the_range_do_no_harm():
    controller = MLRsearch([NDR], 1000.0, 2000.0)
    controller.record(measured(500.0, 30.0, 0.0))
    controller.record(measured(5000.0, 30.0, 0.9))
    found = drive(controller, knee(1500.0))[NDR]
    assert found.regular
    assert found.relevant_lower_bound <= 1500.0 < found.relevant_upper_bound


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


@pytest.mark.filterwarnings("ignore::lossratio.mlrsearch.SearchGoalWarning")
@given(goal_sets, answers, strangers, st.integers(0, 1000), st.booleans(), st.sampled_from([200.0, 995.0, 1000.0]))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
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
    for goal, found in result.items():
        lower, upper = reference_bounds(goal, controller.evidence)
        again = goal_result(goal, controller.evidence, min_load=min_load, max_load=1000.0, unfinished=found.reason)
        assert found == again
        assert found.relevant_lower_bound == lower
        if found.regular:
            assert upper - lower <= goal.width * upper
            assert found.conditional_throughput >= lower * (1.0 - goal.loss_ratio)
        else:
            assert found.reason not in (None, IrregularReason.TIMEOUT, IrregularReason.STOPPED_EARLY)
        if None not in (lower, upper):
            assert lower < upper
