import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from at_least_one import at_least_one
from checker import checked, faults

from lossratio.mlrsearch import (
    NDR,
    PDR,
    RFC2544,
    TST009,
    GoalResult,
    IrregularReason,
    MLRsearch,
    SearchGoal,
    SearchResult,
    goal_result,
)
from lossratio.simulation import ConstantLoss, PerformanceSpectrum, SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

LIMITS = {"min_load": 1e3, "max_load": 1e6}


def trials(*rows):
    """Trials from rows of count, duration, load, loss ratio."""
    return [
        TrialResult(TrialInput(duration, load), TrialOutput(loss_ratio))
        for count, duration, load, loss_ratio in rows
        for _ in range(count)
    ]


PROOF = trials((11, 1.0, 500e3, 0.0), (11, 1.0, 501e3, 0.1))
PROVED = GoalResult(NDR, True, 500e3, 501e3, 500e3)


def search_result(*goal_results):
    return SearchResult(goal_results, finished=True, elapsed=22.0, trials=22)


def example():
    path = Path(__file__).parents[1] / "mlrsearch" / "rfc9971_example_search.json"
    return json.loads(path.read_text())


def test_it_classifies_the_rfcs_example_as_the_rfc_does():
    data = example()
    for name, values in at_least_one(data["goals"].items()):
        goal = SearchGoal(width=0.5, initial_trial_duration=1.0, name=name, **values)
        for point in at_least_one(data["points"]):
            rows = [(row["count"], float(row["duration"]), 1e6, row["loss_ratio"]) for row in point["trials"]]
            shown = checked(goal, trials(*rows))
            expected = point["classification"][name]
            assert (shown.relevant_lower_bound is not None) == (expected == "lower"), (name, point["name"])
            assert (shown.relevant_upper_bound is not None) == (expected == "upper"), (name, point["name"])


def test_a_proved_result_has_no_faults():
    assert faults(search_result(PROVED), PROOF, **LIMITS) == ()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (replace(PROVED, relevant_lower_bound=499e3), "the relevant lower bound is 500000.0, not 499000.0"),
        (replace(PROVED, relevant_upper_bound=502e3), "the relevant upper bound is 501000.0, not 502000.0"),
        (replace(PROVED, relevant_upper_bound=None), "the relevant upper bound is 501000.0, not None"),
        (replace(PROVED, conditional_throughput=501e3), "the conditional throughput is"),
        (replace(PROVED, conditional_throughput=None), "the conditional throughput is"),
        (replace(PROVED, regular=False, reason=IrregularReason.TIMEOUT), "the result is regular"),
    ],
)
def test_each_wrong_statement_is_a_fault(said, message):
    (fault,) = faults(search_result(said), PROOF, **LIMITS)
    assert fault.startswith("NDR: ")
    assert message in fault


def test_bounds_without_enough_trials_are_faults():
    problems = faults(search_result(PROVED), PROOF[1:], **LIMITS)
    assert any("the relevant lower bound is None" in fault for fault in problems)
    problems = faults(search_result(PROVED), PROOF[:-1], **LIMITS)
    assert any("the relevant upper bound is None" in fault for fault in problems)
    assert any("irregular" in fault for fault in problems)


def test_a_lower_bound_above_an_upper_bound_is_not_relevant():
    inverted = PROOF + trials((11, 1.0, 600e3, 0.0))
    assert faults(search_result(PROVED), inverted, **LIMITS) == ()


def test_a_smaller_upper_bound_is_the_relevant_one():
    shown = checked(NDR, PROOF + trials((11, 1.0, 400e3, 0.1)))
    assert (shown.relevant_lower_bound, shown.relevant_upper_bound) == (None, 400e3)


def test_a_regular_result_wider_than_its_goal_is_a_fault():
    wide = trials((11, 1.0, 500e3, 0.0), (11, 1.0, 503e3, 0.1))
    problems = faults(search_result(replace(PROVED, relevant_upper_bound=503e3)), wide, **LIMITS)
    assert problems == ("NDR: with bounds 500000.0 and 503000.0 the result is irregular",)


def test_trials_outside_the_loads_are_faults():
    (fault,) = faults(search_result(PROVED), PROOF + trials((1, 1.0, 2e6, 0.5)), **LIMITS)
    assert "2000000.0 is outside" in fault


@pytest.mark.parametrize("reason", [None, *IrregularReason])
def test_only_the_right_reason_is_taken_for_a_lossless_sut(reason):
    said = GoalResult(NDR, False, 1e6, 1e6, 1e6, reason)
    problems = faults(search_result(said), trials((11, 1.0, 1e6, 0.0)), **LIMITS)
    assert (problems == ()) == (reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND)


@pytest.mark.parametrize("reason", [None, *IrregularReason])
def test_only_the_right_reason_is_taken_for_loss_at_min_load(reason):
    said = GoalResult(NDR, False, None, 1e3, None, reason)
    problems = faults(search_result(said), trials((11, 1.0, 1e3, 0.1)), **LIMITS)
    assert (problems == ()) == (reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND)


def given_up(duration, effective, times, *others):
    """What is held against a search for NDR that gave up after trials at one load that count for so many seconds."""
    trial = TrialResult(TrialInput(duration, 5e5), TrialOutput(0.0, effective_duration=effective))
    said = GoalResult(NDR, False, None, None, None, IrregularReason.STALLED)
    return faults(search_result(said), [trial] * times + list(others), **LIMITS)


@pytest.mark.parametrize(("duration", "effective"), [(1.0, 0.0), (1.0, 0.001), (0.1, 1e-6)])
def test_trials_that_count_for_next_to_nothing_are_a_reason_to_give_up(duration, effective):
    assert given_up(duration, effective, 100, *trials((1, 0.05, 5e5, 0.0), (3, 1.0, 6e5, 0.0))) == ()


@pytest.mark.parametrize(
    ("duration", "effective", "times"), [(1.0, None, 1), (1.0, 0.5, 10), (0.1, None, 500), (1.0, 0.011, 100)]
)
def test_trials_that_count_are_no_reason_to_give_up(duration, effective, times):
    (fault,) = given_up(duration, effective, times)
    assert "the search should not have given up" in fault


def test_a_load_that_is_classified_is_no_reason_to_give_up():
    (fault,) = given_up(1.0, 0.0, 100, *trials((1, 2000.0, 5e5, 0.1)))[1:]
    assert "the search should not have given up" in fault


def test_another_goals_failure_must_have_happened():
    said = GoalResult(PDR, False, None, None, None, IrregularReason.OTHER_GOAL_FAILED)
    (fault,) = faults(search_result(said), trials((1, 1.0, 1e6, 0.1)), **LIMITS)
    assert "no goal failed" in fault
    failed = GoalResult(NDR, False, None, 1e3, None, IrregularReason.MIN_LOAD_IS_UPPER_BOUND)
    at_min = trials((11, 1.0, 1e3, 0.003))
    said = replace(said, relevant_lower_bound=1e3, conditional_throughput=997.0)
    assert faults(search_result(failed, said), at_min, **LIMITS) == ()


@pytest.mark.parametrize(
    ("durations", "proved"), [([1.5] * 7, True), ([1.5] * 6 + [1.4], False), ([0.1] * 105, True), ([0.1] * 104, False)]
)
def test_effective_durations_are_added_exactly(durations, proved):
    measured = [
        TrialResult(TrialInput(1.0, 1e6), TrialOutput(0.0, effective_duration=seconds)) for seconds in durations
    ]
    assert (checked(NDR, measured).relevant_lower_bound is not None) == proved


@pytest.mark.whole
def test_it_agrees_with_the_controllers_own_code_on_any_trials():
    rng = np.random.default_rng(1)
    goals = (NDR, PDR, RFC2544, TST009, SearchGoal(0.001, 0.2, 10.0, 25.0, 0.01, 1.0))
    for _ in range(100):
        rows = [
            (int(rng.integers(1, 30)), float(rng.choice([1.0, 5.0, 60.0])), float(load), float(loss))
            for load in rng.choice([1e5, 2e5, 2.005e5, 3e5], 5)
            for loss in rng.choice([0.0, 0.001, 0.004, 0.1], 1)
        ]
        measured = trials(*rows)
        for goal in at_least_one(goals):
            own = goal_result(goal, measured, **LIMITS)
            shown = checked(goal, measured)
            assert (own.relevant_lower_bound, own.relevant_upper_bound) == (
                shown.relevant_lower_bound,
                shown.relevant_upper_bound,
            )
            assert own.conditional_throughput == pytest.approx(shown.conditional_throughput)


@pytest.mark.whole
@pytest.mark.parametrize(
    "sut",
    [
        SharpKnee(capacity=5e5),
        PerformanceSpectrum(capacity=5e5, jitter=0.005, tail_share=0.1),
        ConstantLoss(),
        ConstantLoss(loss_ratio=0.003),
        ConstantLoss(loss_ratio=0.1),
    ],
)
@pytest.mark.parametrize("goals", [(NDR, PDR), (RFC2544,), (TST009,)])
def test_results_of_mlrsearch_pass(sut, goals):
    measured = []
    measurer = SimulatedMeasurer(sut, seed=3, overhead=0.5, count_overhead=True)
    result = run_search(MLRsearch(goals, 1e3, 1e6), measurer, on_trial=measured.append)
    assert faults(result, measured, **LIMITS) == ()


def early(count, load, loss_ratio):
    """Trials of 1 s that an early verdict ended when so much was lost."""
    output = TrialOutput(loss_ratio, decided_after=0.25)
    return [TrialResult(TrialInput(1.0, load), output)] * count


def test_early_verdicts_are_counted_only_where_they_are_verdicts():
    shown = checked(PDR, [*trials((11, 1.0, 500e3, 0.0)), *early(11, 501e3, 0.006)])
    assert (shown.relevant_lower_bound, shown.relevant_upper_bound) == (500e3, 501e3)
    shown = checked(PDR, [*trials((11, 1.0, 500e3, 0.0)), *early(11, 501e3, 0.004)])
    assert (shown.relevant_lower_bound, shown.relevant_upper_bound) == (500e3, None)
    goal = SearchGoal(0.005, 0.5, 1.0, 2.0, 0.005)
    assert checked(goal, [*trials((1, 1.0, 500e3, 0.004)), *early(1, 500e3, 0.006)]).conditional_throughput == 498e3
