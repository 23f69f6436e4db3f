from __future__ import annotations

import pytest
from at_least_one import at_least_one
from measurement_examples import PROFILE

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goals import PRESETS, NdrPdrGoals, goal_from, goals_from
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import NDR, PDR, SearchGoal


@pytest.mark.parametrize("name", ["NDR", "ndr", " Ndr "])
def test_a_preset_is_found_by_its_name_in_any_case(name):
    assert goal_from(name) is NDR


def test_every_preset_goes_by_its_own_name():
    for name, goal in at_least_one(PRESETS.items()):
        assert goal.name == name
        assert goal_from(name) is goal


def test_a_goal_of_ones_own_has_the_values_that_people_write():
    goal = goal_from(
        {
            "name": "mine",
            "loss_ratio": "0.1 %",
            "exceed_ratio": 0.25,
            "final_trial_duration": "2 s",
            "duration_sum": "1 min",
            "width": "2 %",
            "initial_trial_duration": "500 ms",
        }
    )
    assert goal == SearchGoal(0.001, 0.25, 2.0, 60.0, 0.02, 0.5, name="mine")


def test_fields_that_a_goal_leaves_out_are_as_in_csit():
    goal = goal_from('{"loss_ratio": 0.005}')
    assert goal == SearchGoal(
        PDR.loss_ratio, PDR.exceed_ratio, PDR.final_trial_duration, PDR.duration_sum, PDR.width, 1.0
    )


@pytest.mark.parametrize(
    ("given", "goals"),
    [
        ("NDR, PDR", (NDR, PDR)),
        (NDR, (NDR,)),
        (["NDR", PDR], (NDR, PDR)),
        ({"loss_ratio": 0.0}, (goal_from({"loss_ratio": 0.0}),)),
        ([{"loss_ratio": 0.0}, "PDR"], (goal_from({"loss_ratio": 0.0}), PDR)),
    ],
)
def test_a_request_takes_goals_however_they_are_given(given, goals):
    assert goals_from(given) == goals


def test_a_request_refuses_what_is_no_goal_with_what_there_is():
    with pytest.raises(SearchError, match=r"There is no search goal 3\. The goals are NDR"):
        goals_from(["NDR", 3])


def test_a_search_without_a_goal_is_refused_before_it_is_announced():
    with pytest.raises(SearchError, match=r"^A search needs at least one search goal, such as NDR\.$"):
        SearchRequest(profile=PROFILE, goals=())


@pytest.mark.parametrize("text", ["NRD", "", "[1, 2]", "loss_ratio=0"])
def test_an_unknown_name_is_an_error_that_names_what_there_is(text):
    with pytest.raises(SearchError, match=r"NDR, PDR, RFC2544, TST009.*QUICK_NDR.*loss_ratio"):
        goal_from(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"from character 1 on\. Write it like"),
        ('{"loss_ratio": 0, "name": "a\nb"}', r"from character 27 on.*two backslashes for each"),
        ("{loss_ratio: 0}", r"put the names of fields and each text in quotes.*like \{\"loss_ratio\""),
        ('{"loss_ratio": NaN}', "put the names .* and write numbers as digits"),
        ("{[1]: 2}", r"goal '\{\[1\]: 2\}' cannot be read: put the names of fields and each text in quotes"),
        pytest.param("{" + "-" * 100_000 + "1: 2}", "cannot be read: put the names of fields", id="minus signs"),
        pytest.param("{" + "1 + " * 5_000 + "1: 2}", "cannot be read: put the names of fields", id="sums"),
        ('{"loss_ratio": 0, "loss_ratio": "2 %"}', "has the field 'loss_ratio' twice. Leave one of them out"),
        ("""{"loss_ratio": 0, 'loss_ratio': 0}""", "has the field 'loss_ratio' twice"),
    ],
)
def test_a_goal_of_fields_that_cannot_be_read_is_an_error_that_names_the_mistake(text, message):
    with pytest.raises(SearchError, match=message):
        goal_from(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "loss_ratio is missing"),
        ({"loss_ratio": 0, "los": 1}, "there is no field 'los'; the fields are loss_ratio, exceed_ratio"),
        ({"loss_ratio": "much"}, "loss_ratio: 'much' is not a ratio"),
        ({"loss_ratio": 0, "duration_sum": "long"}, "duration_sum: .*long"),
        ({"loss_ratio": 1.5}, "loss_ratio must be at least 0 and below 1"),
    ],
)
def test_a_wrong_field_is_an_error_that_names_it(fields, message):
    with pytest.raises(SearchError, match=message):
        goal_from(fields)


def test_a_ready_made_goal_is_taken_as_it_is():
    assert goal_from(NDR) is NDR


def test_quick_goals_ask_for_the_same_loss_with_a_tenth_of_the_evidence():
    for quick, full in at_least_one(zip(NdrPdrGoals.quick.value, NdrPdrGoals.csit.value, strict=True)):
        assert quick.loss_ratio == full.loss_ratio
        assert quick.duration_sum <= full.duration_sum / 10
        assert str(quick) != str(full)
