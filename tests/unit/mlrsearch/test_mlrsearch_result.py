from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st
from mlrsearch_reference import reference_bounds
from mlrsearch_suts import measured

from lossratio.mlrsearch import NDR, RFC2544, IrregularReason, SearchGoal, goal_result

LIMITS = {"min_load": 10.0, "max_load": 1000.0}
ONE_TRIAL = SearchGoal(0.0, 0.5, 1.0, 1.0, 0.005)
PATIENT = SearchGoal(0.005, 0.0, 1.0, 3.0, 0.1)
LONG = SearchGoal(0.0, 0.5, 2.0, 5.0, 0.01)


def low(load):
    return measured(load, 1.0, 0.0)


def high(load):
    return measured(load, 1.0, 0.5)


def test_a_pair_within_the_width_is_regular():
    result = goal_result(ONE_TRIAL, [high(200.0), low(199.0)], **LIMITS)
    assert result.regular
    assert (result.relevant_lower_bound, result.relevant_upper_bound) == (199.0, 200.0)
    assert result.conditional_throughput == 199.0
    assert result.reason is None


def test_a_pair_wider_than_the_width_is_not():
    result = goal_result(ONE_TRIAL, [high(200.0), low(198.0)], **LIMITS)
    assert not result.regular
    assert (result.relevant_lower_bound, result.relevant_upper_bound) == (198.0, 200.0)
    assert result.reason is IrregularReason.STOPPED_EARLY


def test_loss_inversion_is_resolved_conservatively():
    result = goal_result(ONE_TRIAL, [low(500.0), high(200.0), low(199.0), high(600.0)], **LIMITS)
    assert (result.relevant_lower_bound, result.relevant_upper_bound) == (199.0, 200.0)


def test_a_lower_bound_at_max_load_is_a_result_of_zero_width_and_marked():
    result = goal_result(NDR, [low(1000.0)] * 11, **LIMITS)
    assert not result.regular
    assert result.reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND
    assert result.relevant_lower_bound == result.relevant_upper_bound == 1000.0
    assert result.conditional_throughput == 1000.0


def test_an_upper_bound_at_min_load_has_neither_lower_bound_nor_throughput():
    result = goal_result(RFC2544, [high(10.0)], **LIMITS)
    assert not result.regular
    assert result.reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert (result.relevant_lower_bound, result.relevant_upper_bound) == (None, 10.0)
    assert result.conditional_throughput is None


@pytest.mark.parametrize("reason", [IrregularReason.TIMEOUT, IrregularReason.STOPPED_EARLY])
def test_nothing_measured_gives_nothing_but_the_reason(reason):
    result = goal_result(NDR, [], **LIMITS, unfinished=reason)
    assert (result.regular, result.relevant_lower_bound, result.relevant_upper_bound) == (False, None, None)
    assert result.reason is reason


def test_reasons_read_as_sentences():
    assert str(IrregularReason.TIMEOUT) == "the time ran out"
    assert f"{IrregularReason.MAX_LOAD_IS_LOWER_BOUND}" == "the maximum load is a lower bound"


loads = st.sampled_from([10.0, 50.0, 199.0, 199.5, 200.0, 400.0, 999.0, 1000.0])
trials = st.lists(
    st.builds(measured, loads, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.01, 1.0])), max_size=40
)


@pytest.mark.whole
@given(trials, st.sampled_from([ONE_TRIAL, PATIENT, LONG]))
# Chance seldom finds pairs of bounds that are a little wider than the width.
@example([low(198.5), high(200.0)], ONE_TRIAL)
@example([low(350.0)] * 3 + [high(400.0)] * 3, PATIENT)
@example([measured(394.0, 2.0, 0.0)] * 3 + [measured(400.0, 2.0, 1.0)] * 3, LONG)
def test_bounds_are_the_rfcs_and_never_cross(results, goal):
    result = goal_result(goal, results, **LIMITS)
    lower, upper = reference_bounds(goal, results)
    assert result.relevant_lower_bound == lower
    assert result.relevant_upper_bound == (upper if upper is not None or lower != 1000.0 else 1000.0)
    if lower is not None and upper is not None:
        assert lower < upper
        assert result.regular == (upper - lower <= goal.width * upper)
