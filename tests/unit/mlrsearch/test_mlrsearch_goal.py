from __future__ import annotations

import math
import warnings
from dataclasses import FrozenInstanceError, replace

import pytest

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, MLRsearch, SearchGoal, SearchGoalWarning


def test_presets_are_those_of_the_rfc_and_of_csit():
    assert (RFC2544.final_trial_duration, RFC2544.duration_sum, RFC2544.loss_ratio, RFC2544.exceed_ratio) == (
        60,
        60,
        0,
        0,
    )
    assert (TST009.final_trial_duration, TST009.duration_sum, TST009.loss_ratio, TST009.exceed_ratio) == (
        60,
        120,
        0,
        0.5,
    )
    assert (NDR.final_trial_duration, NDR.duration_sum, NDR.loss_ratio, NDR.exceed_ratio) == (1, 21, 0, 0.5)
    assert replace(PDR, loss_ratio=0.0, name="NDR") == NDR
    assert PDR.loss_ratio == 0.005
    assert {goal.width for goal in (NDR, PDR, RFC2544, TST009)} == {0.005}


def test_a_goal_is_a_value():
    assert hash(replace(NDR)) == hash(NDR)
    assert replace(NDR, name="other") != NDR
    with pytest.raises(FrozenInstanceError):
        NDR.width = 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("loss_ratio", -0.1),
        ("loss_ratio", 1.0),
        ("loss_ratio", math.nan),
        ("exceed_ratio", -1e-9),
        ("exceed_ratio", 1.0),
        ("final_trial_duration", 0.0),
        ("final_trial_duration", math.inf),
        ("duration_sum", -1.0),
        ("duration_sum", math.nan),
        ("width", 0.0),
        ("width", 1.0),
        ("width", -0.5),
        ("initial_trial_duration", 0.0),
        ("initial_trial_duration", 1.5),
    ],
)
def test_a_value_out_of_range_is_named_with_its_goal(name, value):
    with pytest.raises(SearchError, match=f"(Search goal NDR|SearchGoal): {name} must be .*{value!r}"):
        replace(NDR, **{name: value})


@pytest.mark.parametrize(("final", "initial"), [(60.0, 1.0), (0.2, 0.2)])
def test_the_initial_trial_duration_defaults_to_a_second_or_less(final, initial):
    assert SearchGoal(0.0, 0.5, final, 120.0, 0.005).initial_trial_duration == initial


def test_a_duration_sum_below_the_trial_duration_is_warned_of():
    with pytest.warns(SearchGoalWarning, match="duration sum .* below the final trial duration"):
        SearchGoal(0.0, 0.5, 60.0, 30.0, 0.005)


def test_a_width_below_the_loss_ratio_is_warned_of():
    with pytest.warns(SearchGoalWarning, match="width .* below the loss ratio"):
        replace(PDR, loss_ratio=0.01)


def test_a_warning_points_at_who_made_the_goal():
    with pytest.warns(SearchGoalWarning) as caught:
        SearchGoal(0.01, 0.5, 1.0, 21.0, 0.005)
    assert caught[0].filename == __file__


def test_the_presets_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MLRsearch([NDR, PDR], 9001.0, 1e6)
        MLRsearch([RFC2544, TST009], 9001.0, 1e6)


def test_goals_with_different_final_trial_durations_are_warned_of():
    with pytest.warns(SearchGoalWarning, match="different final trial durations"):
        MLRsearch([NDR, RFC2544], 9001.0, 1e6)


def test_a_minimum_load_that_sends_no_frame_is_warned_of():
    with pytest.warns(SearchGoalWarning, match="less than one frame"):
        MLRsearch([NDR], 0.5, 1e6)


@pytest.mark.parametrize("goals", [[], ["NDR"]])
def test_a_search_needs_goals(goals):
    with pytest.raises(SearchError, match="goal"):
        MLRsearch(goals, 1e3, 1e6)


@pytest.mark.parametrize(("goal", "text"), [(NDR, "NDR"), (replace(PDR, name=None), "loss 0.5 %")])
def test_a_goal_is_called_by_its_name_or_its_loss_ratio(goal, text):
    assert str(goal) == text
