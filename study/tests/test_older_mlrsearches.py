"""What the MLRsearches of 2019 and of 2021 have in common."""

import math

import numpy as np
import pytest

from lossratio.mlrsearch import IrregularReason, SearchGoal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput
from lossratio_study.older import MLRsearch2019, MLRsearch2021
from lossratio_study.older.scripted import log_width

NDR = SearchGoal(0.0, 0.0, 30.0, 30.0, 0.005, 1.0, name="NDR")
PDR = SearchGoal(0.005, 0.0, 30.0, 30.0, 0.005, 1.0, name="PDR")


@pytest.fixture(params=[MLRsearch2019, MLRsearch2021])
def controller(request):
    """Makes a search of either kind."""
    return lambda min_load=1e3: request.param((NDR, PDR), min_load, 1e6, timeout=None)


def test_the_initial_phase_measures_the_maximum_load_then_what_was_forwarded_twice(follow, controller):
    trials = follow(controller(), 0.5, 0.1, 0.0)
    assert [trial.load for trial in trials] == pytest.approx([1e6, 500e3, 450e3])
    assert {trial.duration for trial in trials} == {1.0}


@pytest.mark.parametrize(
    ("loss_ratios", "higher", "lower"), [((0.001, 0.5), 0, 1), ((0.5, 0.001, 0.5), 1, 2), ((0.5, 0.0, 0.5), 2, 1)]
)
def test_loads_of_the_initial_phase_are_one_first_phase_width_apart(follow, controller, loss_ratios, higher, lower):
    trials = follow(controller(), *loss_ratios)
    distance = math.log(trials[higher].load / trials[lower].load)
    assert distance == pytest.approx(4 * log_width(0.005), rel=1e-5)


def test_loads_of_the_initial_phase_never_fall_below_the_minimum(follow, controller):
    assert [trial.load for trial in follow(controller(), 1.0, 1.0)] == [1e6, 1e3]


def test_a_lossless_sut_ends_at_the_maximum_load(searched, controller):
    result, _ = searched(controller(), lambda trial: 0.0)
    assert result.finished
    for goal in (NDR, PDR):
        assert not result[goal].regular
        assert result[goal].reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND
        assert (result[goal].relevant_lower_bound, result[goal].relevant_upper_bound) == (1e6, 1e6)


@pytest.mark.whole
def test_any_answers_end_within_the_loads(searched, controller):
    rng = np.random.default_rng(1)
    for _ in range(100):
        result, trials = searched(controller(1e5), lambda trial: float(rng.choice([0.0, 0.003, 0.01, 0.3, 1.0])))
        assert result
        assert result.finished
        assert len(trials) < 300
        assert all(1e5 <= trial.load <= 1e6 for trial in trials)
        for goal_result in result.values():
            lower, upper = goal_result.relevant_lower_bound, goal_result.relevant_upper_bound
            assert lower is None or upper is None or lower <= upper


def test_unasked_trials_outside_the_loads_or_after_the_end_only_take_time(searched, capacity, controller):
    asked, trials = searched(controller(), capacity(5e5))
    search = controller()
    search.record(TrialResult(TrialInput(1.0, 1.0), TrialOutput(1.0)))
    search.record(TrialResult(TrialInput(1.0, 2e6), TrialOutput(0.0)))
    result, others = searched(search, capacity(5e5))
    assert others == trials
    search.record(TrialResult(TrialInput(1.0, result[NDR].relevant_lower_bound), TrialOutput(1.0)))
    assert search.result()[NDR] == asked[NDR]
    assert search.result().elapsed == pytest.approx(asked.elapsed + 3.0)


@pytest.mark.whole
def test_any_unasked_trials_leave_it_within_its_loads_and_let_it_end(controller):
    rng = np.random.default_rng(2)
    for _ in range(100):
        search = controller(1e5)
        asked = 0
        while (trial := search.next_trial()) is not None:
            assert 1e5 <= trial.load <= 1e6
            asked += 1
            assert asked < 500
            search.record(TrialResult(trial, TrialOutput(float(rng.choice([0.0, 0.003, 0.3])))))
            if asked < 50:
                unasked = TrialInput(float(rng.choice([1.0, 7.0, 30.0])), float(10 ** rng.uniform(4.5, 6.5)))
                search.record(TrialResult(unasked, TrialOutput(float(rng.choice([0.0, 0.003, 0.3])))))
