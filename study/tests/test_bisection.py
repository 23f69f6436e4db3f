import pytest

from lossratio.errors import SearchError
from lossratio.mlrsearch import RFC2544, TST009, Bound, IrregularReason, SearchGoal, classify
from lossratio.simulation import PerformanceSpectrum, SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search
from lossratio_study.older import RFC2544Bisection, TST009Bisection

BOTH = pytest.mark.parametrize(("algorithm", "goal"), [(RFC2544Bisection, RFC2544), (TST009Bisection, TST009)])


@BOTH
def test_trials_are_of_the_final_duration_throughout(algorithm, goal, searched, capacity):
    _, trials = searched(algorithm(goal, 1e3, 1e6), capacity(6e5))
    assert {trial.duration for trial in trials} == {60.0}


@BOTH
def test_the_result_encloses_a_known_capacity_within_the_width(algorithm, goal, searched, capacity):
    result, _ = searched(algorithm(goal, 1e3, 1e6), capacity(612_345.0))
    (goal_result,) = result.values()
    assert result.finished
    assert goal_result.regular
    assert goal_result.relevant_lower_bound <= 612_345.0 < goal_result.relevant_upper_bound
    assert (
        goal_result.relevant_upper_bound - goal_result.relevant_lower_bound <= 0.005 * goal_result.relevant_upper_bound
    )
    assert goal_result.conditional_throughput == goal_result.relevant_lower_bound


def test_the_interval_is_halved_from_the_maximum_load_down(searched, capacity):
    _, trials = searched(RFC2544Bisection(RFC2544, 1e3, 1e6), capacity(3e5))
    assert [trial.load for trial in trials[:4]] == [1e6, 500_500.0, 250_750.0, 375_625.0]


def test_one_trial_decides_about_a_load_in_rfc_2544(follow):
    search = RFC2544Bisection(RFC2544, 1e3, 1e6)
    assert [trial.load for trial in follow(search, 0.1, 0.1)] == [1e6, 500_500.0]


def test_a_loss_is_verified_by_a_second_trial_in_tst_009(follow):
    search = TST009Bisection(TST009, 1e3, 1e6)
    trials = follow(search, 0.1, 0.1, 0.1, 0.0, 0.1)
    assert [trial.load for trial in trials] == [1e6, 1e6, 500_500.0, 500_500.0, 750_250.0]
    assert "verifies the loss" in search.purpose


def test_more_repetitions_may_be_asked_for(follow):
    search = TST009Bisection(TST009, 1e3, 1e6, max_repetitions=4)
    assert [trial.load for trial in follow(search, 0.1, 0.1, 0.1, 0.1, 0.1)] == [1e6] * 4 + [500_500.0]


def test_a_loss_above_the_threshold_is_not_verified(follow):
    search = TST009Bisection(TST009, 1e3, 1e6, verified_loss=600)
    assert [trial.load for trial in follow(search, 0.1, 1e-5)] == [1e6, 500_500.0]
    assert search.next_trial().load == 500_500.0


def test_the_threshold_counts_lost_frames_where_they_are_known():
    search = TST009Bisection(TST009, 1e3, 1e6, verified_loss=600)
    search.record(TrialResult(search.next_trial(), TrialOutput(0.5, lost_frames=600)))
    assert search.next_trial().load == 1e6


@BOTH
def test_its_bounds_are_the_ones_that_rfc_9971_classifies(algorithm, goal):
    for seed in range(10):
        trials = []
        measurer = SimulatedMeasurer(PerformanceSpectrum(capacity=5e5, jitter=0.01, tail_share=0.2), seed=seed)
        (goal_result,) = run_search(algorithm(goal, 1e3, 1e6), measurer, on_trial=trials.append).values()
        at = {load: [trial for trial in trials if trial.load == load] for load in {trial.load for trial in trials}}
        assert classify(goal, at[goal_result.relevant_lower_bound]) is Bound.LOWER
        assert classify(goal, at[goal_result.relevant_upper_bound]) is Bound.UPPER


@BOTH
def test_a_lossless_sut_ends_at_the_maximum_load_with_one_trial(algorithm, goal, searched):
    result, trials = searched(algorithm(goal, 1e3, 1e6), lambda trial: 0.0)
    assert result[goal].reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND
    assert (result[goal].relevant_lower_bound, result[goal].relevant_upper_bound) == (1e6, 1e6)
    assert [trial.load for trial in trials] == [1e6]


@BOTH
def test_the_minimum_load_is_measured_when_all_above_it_lose(algorithm, goal, searched):
    result, trials = searched(algorithm(goal, 1e3, 1e6), lambda trial: 0.1)
    assert result[goal].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[goal].relevant_upper_bound == 1e3
    assert trials[-1].load == 1e3


@BOTH
def test_the_minimum_load_may_be_the_lower_bound(algorithm, goal, searched, capacity):
    result, _ = searched(algorithm(goal, 1e3, 1e6), capacity(1001.0))
    assert result[goal].regular
    assert result[goal].relevant_lower_bound == 1e3


@BOTH
def test_a_range_within_the_width_needs_both_its_ends(algorithm, goal, searched, capacity):
    result, trials = searched(algorithm(goal, 999e3, 1e6), capacity(999.5e3))
    assert result[goal].regular
    assert {trial.load for trial in trials} == {999e3, 1e6}


@BOTH
@pytest.mark.parametrize("loss_ratio", [0.0, 0.1])
def test_one_load_is_range_enough(algorithm, goal, loss_ratio, searched):
    result, trials = searched(algorithm(goal, 1e6, 1e6), lambda trial: loss_ratio)
    assert result.finished
    assert not result[goal].regular
    assert len(trials) <= 2


def test_a_goal_that_allows_loss_is_met_with_some(searched, capacity):
    goal = SearchGoal(0.005, 0.0, 10.0, 10.0, 0.005)
    result, _ = searched(RFC2544Bisection(goal, 1e3, 1e6), capacity(5e5))
    assert result[goal].relevant_lower_bound <= 5e5 / 0.995 < result[goal].relevant_upper_bound
    assert result[goal].conditional_throughput <= 5e5 * (1 + 1e-9)


@BOTH
def test_no_trial_starts_after_the_timeout(algorithm, goal, searched, capacity):
    result, trials = searched(algorithm(goal, 1e3, 1e6, timeout=170.0), capacity(5e5))
    assert len(trials) == 3
    assert not result.finished
    assert result[goal].reason is IrregularReason.TIMEOUT


@BOTH
def test_trials_that_it_did_not_ask_for_change_nothing_but_the_time(algorithm, goal):
    search = algorithm(goal, 1e3, 1e6)
    before = search.next_trial()
    search.record(TrialResult(TrialInput(60.0, 1e3), TrialOutput(1.0, elapsed=61.0)))
    assert search.next_trial() == before
    assert search.result().elapsed == 61.0


def test_verification_finds_more_on_a_sut_with_rare_loss():
    def mean(algorithm, goal):
        suts = (PerformanceSpectrum(capacity=5e5, jitter=0.001, tail_share=0.2) for _ in range(20))
        results = (run_search(algorithm(goal, 1e3, 1e6), SimulatedMeasurer(sut, seed=i)) for i, sut in enumerate(suts))
        return sum(result[goal].relevant_lower_bound for result in results) / 20

    assert mean(TST009Bisection, TST009) > mean(RFC2544Bisection, RFC2544) * 1.005


def test_a_sharp_knee_takes_one_trial_for_each_halving():
    result = run_search(RFC2544Bisection(RFC2544, 1e3, 1e6), SimulatedMeasurer(SharpKnee(capacity=5e5), seed=1))
    assert result.trials == 10


@pytest.mark.parametrize(
    "arguments", [{"max_repetitions": 0}, {"verified_loss": -1}, {"timeout": -1}, {"verified_loss": float("nan")}]
)
def test_arguments_that_make_no_sense_are_refused(arguments):
    with pytest.raises(SearchError):
        TST009Bisection(TST009, 1e3, 1e6, **arguments)
