import csv
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

from lossratio.errors import SearchError
from lossratio.mlrsearch import IrregularReason, SearchGoal
from lossratio.simulation import ConstantLoss, SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search
from lossratio_study.older import MLRsearch2021
from lossratio_study.older.mlrsearch_2021 import Choice, Exit, MeasuredBounds, MeasuredLoads, PhaseRule
from lossratio_study.older.scripted import log_width, phases_of, step_down, step_up

NDR = SearchGoal(0.0, 0.0, 30.0, 30.0, 0.005, 1.0, name="NDR")
PDR = SearchGoal(0.005, 0.0, 30.0, 30.0, 0.005, 1.0, name="PDR")
EXAMPLE = Path(__file__).with_name("mlrsearch_2021_example_run.csv")
WIDTH = log_width(0.005)
NOTHING = MeasuredBounds()


def controller(goals=(NDR, PDR), min_load=1e3, max_load=1e6, **arguments):
    return MLRsearch2021(goals, min_load, max_load, **arguments)


def rule(width_goal=WIDTH, expansion_coefficient=4.0, min_load=1e3, max_load=1e6):
    return PhaseRule(width_goal, expansion_coefficient, min_load, max_load)


def measured(**loss_ratios):
    loads = MeasuredLoads()
    for load, loss_ratio in loss_ratios.items():
        loads.add(TrialResult(TrialInput(1.0, float(load.lstrip("_"))), TrialOutput(loss_ratio)))
    return loads


def test_the_drafts_example_run_is_reproduced_trial_by_trial():
    search = MLRsearch2021((NDR, PDR), 2 * 9001, 18_750_000)
    for row in csv.DictReader(EXAMPLE.open()):
        trial = search.next_trial()
        assert trial.load == pytest.approx(float(row["intended_load_pps"]), rel=1e-9)
        assert trial.duration == float(row["trial_duration_s"])
        assert search.purpose.startswith(row["phase"].split("-")[0])
        search.record(TrialResult(trial, TrialOutput(float(row["loss_ratio"]))))
    assert search.next_trial() is None
    result = search.result()
    assert result.finished
    assert result[NDR].relevant_lower_bound == pytest.approx(5112894.3238511775, rel=1e-9)
    assert result[NDR].relevant_upper_bound == pytest.approx(5138587.208637197, rel=1e-9)
    assert result[PDR].relevant_lower_bound == pytest.approx(5190360.904111567, rel=1e-9)
    assert result[PDR].relevant_upper_bound == pytest.approx(5216443.04126728, rel=1e-9)
    assert result[PDR].conditional_throughput == pytest.approx(5190360.904111567 * (1 - 0.0027629971184465604))
    assert result[NDR].regular
    assert result[PDR].regular


def test_effective_loss_ratio_is_the_largest_one_up_to_a_load():
    loads = measured(_100=0.0, _200=0.02, _300=0.01, _400=0.03)
    assert list(loads.effective_loss_ratios().values()) == [0.0, 0.02, 0.02, 0.03]
    assert loads.bounds(0.01) == MeasuredBounds(100.0, None, 200.0, 300.0)
    assert loads.bounds(0.02) == MeasuredBounds(300.0, 200.0, 400.0, None)


def test_loss_ratios_of_one_duration_say_nothing_about_another():
    search = controller()
    search.record(TrialResult(TrialInput(1.0, 500e3), TrialOutput(0.5)))
    search.record(TrialResult(TrialInput(30.0, 600e3), TrialOutput(0.0)))
    assert search.result()[NDR].relevant_lower_bound == 600e3
    assert search.result()[NDR].relevant_upper_bound is None


@pytest.mark.parametrize(("intermediate", "durations"), [(0, [30]), (1, [1, 30]), (2, [1, math.sqrt(30), 30])])
def test_phases_grow_in_duration_and_halve_in_width(intermediate, durations):
    phases = phases_of(NDR, intermediate)
    assert [phase.duration for phase in phases] == pytest.approx(durations)
    widths = [phase.width_goal / WIDTH for phase in phases]
    assert widths == pytest.approx([2.0**number for number in range(intermediate, -1, -1)], rel=3e-6)


def test_the_first_trial_is_forgotten_once_there_is_a_third(follow):
    search = controller()
    follow(search, 0.5, 0.0, 0.0)
    # With the maximum load as upper bound this would be a bisect.
    trial = search.next_trial()
    assert "external search up" in search.purpose
    assert math.log(trial.load / 500e3) == pytest.approx((4 + 4 * 4) * WIDTH, rel=1e-5)


def test_what_was_forgotten_is_not_measured_again(follow, searched):
    search = controller()
    # Only the maximum load has loss, so external search comes back to it.
    _, trials = searched(search, lambda trial: 0.5 if trial.load == 1e6 else 0.0)
    assert len([trial for trial in trials if trial == TrialInput(1.0, 1e6)]) == 1
    assert search.result()[NDR].relevant_upper_bound == 1e6


@pytest.mark.parametrize("seed", range(10))
def test_no_load_is_measured_twice_for_one_duration(seed, searched):
    sut = SmoothKnee(mrr=6e5, spread=1e4)
    measurer = SimulatedMeasurer(sut, seed=seed)
    _, trials = searched(controller(), lambda trial: measurer.measure(trial).loss_ratio)
    assert len(trials) == len(set(trials)) > 10


def test_no_answers_make_it_measure_anything_twice(searched):
    rng = np.random.default_rng(1)
    for _ in range(100):
        search = controller(min_load=1e5, timeout=None)
        _, trials = searched(search, lambda trial: float(rng.choice([0.0, 0.003, 0.01, 0.3, 1.0])))
        assert len(trials) == len(set(trials)) < 200


@pytest.mark.parametrize("seed", range(10))
def test_higher_loss_ratios_never_change_lower_ones_within_a_phase(seed):
    goals = [SearchGoal(ratio, 0.0, 30.0, 30.0, 0.005, 1.0) for ratio in (0.0, 0.001, 0.003, 0.005)]
    measurer = SimulatedMeasurer(SmoothKnee(mrr=6e5, spread=2e4), seed=seed)
    search = controller(goals)
    left = {}
    iterations = []
    while (trial := search.next_trial()) is not None:
        phase = search.purpose.partition(": ")[0]
        ratio = search.purpose.partition(" for loss ")[2]
        if (phase, ratio) not in iterations:
            iterations.append((phase, ratio))
            left = {goal: search.result()[goal] for goal in goals} if phase == "final phase" else {}
        search.record(TrialResult(trial, measurer.measure(trial)))
        if left:
            done = [goal for goal in goals if goal.loss_ratio * 100 < float(ratio.split()[0])]
            assert all(search.result()[goal] == left[goal] for goal in done)
    assert {phase for phase, _ in iterations} >= {"intermediate phase 1", "intermediate phase 2", "final phase"}


def test_a_new_phase_begins_with_a_bisect_of_the_interval_before():
    previous = MeasuredBounds(lower=500e3, upper=step_up(500e3, 2 * WIDTH))
    choice = rule().choose(NOTHING, previous)
    assert choice == Choice(pytest.approx(step_up(500e3, WIDTH)), "initial bisect")


def test_bounds_of_the_phase_before_are_measured_again_the_lower_one_first():
    previous = MeasuredBounds(lower=500e3, upper=step_up(500e3, 0.9 * WIDTH))
    assert rule().choose(NOTHING, previous) == Choice(500e3, "re-measures the lower bound")
    current = MeasuredBounds(lower=500e3)
    assert rule().choose(current, previous) == Choice(previous.upper, "re-measures the upper bound")
    assert rule().choose(MeasuredBounds(lower=500e3, upper=previous.upper), previous) is Exit.ITERATION


def test_a_bound_of_the_phase_before_must_be_compatible_with_the_present_ones():
    previous = MeasuredBounds(lower=500e3, upper=510e3)
    choice = rule().choose(MeasuredBounds(upper=490e3), previous)
    assert choice.purpose == "external search down"
    choice = rule().choose(MeasuredBounds(lower=520e3), previous)
    assert choice.purpose == "external search up"


@pytest.mark.parametrize(
    ("others", "widths"),
    [
        ({}, 4),
        ({"second_upper": 3}, 12),
        ({"second_upper": 0.5}, 4),
        ({"second_upper": 3, "previous_upper": 2}, 8),
        ({"second_upper": 3, "previous_upper": 5}, 12),
        ({"previous_upper": 3}, 12),
    ],
)
def test_external_search_quadruples_the_width_to_the_next_bound_but_no_less_than_the_goal(others, widths):
    above = {name: step_up(500e3, width * WIDTH) for name, width in others.items()}
    down = rule().choose(
        MeasuredBounds(upper=500e3, second_upper=above.get("second_upper")),
        MeasuredBounds(upper=above.get("previous_upper")),
    )
    assert math.log(500e3 / down.load) == pytest.approx(widths * WIDTH, rel=1e-5)
    below = {name: step_down(500e3, width * WIDTH) for name, width in others.items()}
    up = rule().choose(
        MeasuredBounds(lower=500e3, second_lower=below.get("second_upper")),
        MeasuredBounds(lower=below.get("previous_upper")),
    )
    assert math.log(up.load / 500e3) == pytest.approx(widths * WIDTH, rel=1e-5)


def test_the_expansion_coefficient_is_a_parameter():
    choice = rule(expansion_coefficient=2.0).choose(MeasuredBounds(upper=500e3), NOTHING)
    assert math.log(500e3 / choice.load) == pytest.approx(2 * WIDTH, rel=1e-5)


def test_external_search_ends_at_the_limits():
    assert rule(min_load=499e3).choose(MeasuredBounds(upper=500e3), NOTHING).load == 499e3
    assert rule(max_load=501e3).choose(MeasuredBounds(lower=500e3), NOTHING).load == 501e3
    assert rule(min_load=500e3).choose(MeasuredBounds(upper=500e3), NOTHING) is Exit.PHASE
    assert rule(max_load=500e3).choose(MeasuredBounds(lower=500e3), NOTHING) is Exit.ITERATION


@pytest.mark.parametrize(
    ("width", "split"), [(1.5, 0.75), (2.0, 1.0), (2.5, 2.0), (3.0, 2.0), (4.0, 2.0), (4.1, 3.0), (7.0, 4.0)]
)
def test_intervals_are_split_to_even_multiples_of_the_goal(width, split):
    bounds = MeasuredBounds(lower=500e3, upper=step_up(500e3, width * WIDTH * (1 - 1e-9)))
    choice = rule().choose(bounds, NOTHING)
    assert math.log(choice.load / 500e3) / WIDTH == pytest.approx(split, rel=1e-5)


def test_a_narrow_external_step_down_beats_a_bisect_of_a_wide_interval():
    upper = step_up(500e3, 100 * WIDTH)
    bounds = MeasuredBounds(lower=500e3, upper=upper, second_upper=step_up(upper, WIDTH))
    choice = rule().choose(bounds, NOTHING)
    assert choice.purpose == "external search down"
    assert math.log(upper / choice.load) == pytest.approx(4 * WIDTH, rel=1e-5)


def test_a_lossless_maximum_load_is_measured_once_for_each_duration(searched):
    _, trials = searched(controller(), lambda trial: 0.0)
    assert [trial.duration for trial in trials if trial.load == 1e6] == pytest.approx([1.0, math.sqrt(30), 30.0])


def test_loss_at_the_minimum_load_ends_each_phase_early(searched):
    result, trials = searched(controller(), lambda trial: 0.5)
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[NDR].relevant_upper_bound == 1e3
    assert [trial.load for trial in trials[-2:]] == [1e3, 1e3]
    assert [trial.duration for trial in trials[-2:]] == pytest.approx([math.sqrt(30), 30.0])


def test_loss_below_a_higher_goals_ratio_leaves_that_goal_unsearched(searched):
    result, _ = searched(controller(), lambda trial: 0.003)
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[PDR].reason is IrregularReason.OTHER_GOAL_FAILED


def test_the_generators_limit_counts_as_loss():
    search = controller()
    measurer = SimulatedMeasurer(ConstantLoss(), seed=1, max_rate=600e3)
    result = run_search(search, measurer)
    assert result[NDR].relevant_lower_bound <= 600e3 < result[NDR].relevant_upper_bound * (1 - 9e-6)
    assert result[NDR].regular


def test_no_trial_starts_after_the_timeout(searched, capacity):
    assert inspect.signature(MLRsearch2021).parameters["timeout"].default == 600.0
    search = controller(timeout=10.0)
    result, trials = searched(search, capacity(6e5))
    assert sum(trial.duration for trial in trials[:-1]) < 10.0 <= sum(trial.duration for trial in trials)
    assert not result.finished
    assert result[NDR].reason is IrregularReason.TIMEOUT


def test_asking_again_changes_nothing_and_unasked_trials_count(follow):
    search = controller()
    assert search.next_trial() is search.next_trial()
    search.record(TrialResult(TrialInput(1.0, 300e3), TrialOutput(0.0)))
    assert search.next_trial() == TrialInput(1.0, 1e6)
    follow(search, 0.5, 0.1, 0.1)
    assert search.purpose == "intermediate phase 1: bisect for loss 0 %"
    assert search.trials == 4


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ([], "at least one"),
        ([SearchGoal(0.0, 0.5, 1.0, 21.0, 0.005)], "single trial"),
        ([NDR, SearchGoal(0.01, 0.0, 30.0, 30.0, 0.01, 1.0)], "same trial durations and width"),
        ([NDR, SearchGoal(0.0, 0.0, 30.0, 30.0, 0.005, 1.0)], "different loss ratios"),
    ],
)
def test_goals_that_it_cannot_search_for_are_refused(goals, message):
    with pytest.raises(SearchError, match=message):
        controller(goals)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_load": 2e6}, "min load"),
        ({"timeout": 0.0}, "timeout"),
        ({"expansion_coefficient": 1.0}, "expansion coefficient"),
        ({"intermediate_phases": -1}, "intermediate phases"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SearchError, match=message):
        controller(**arguments)


def test_one_load_is_range_enough(searched):
    result, trials = searched(controller(min_load=1e6), lambda trial: 0.0)
    assert result[NDR].relevant_lower_bound == 1e6
    assert {trial.load for trial in trials} == {1e6}
