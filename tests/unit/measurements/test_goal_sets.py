from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from at_least_one import at_least_one
from examples import examples_in

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goals import (
    PRESETS,
    QUICK_NDR,
    QUICK_PDR,
    GoalFields,
    GoalFile,
    GoalSet,
    goal_set_from,
    load_goals,
)
from lossratio.mlrsearch import NDR, PDR, TST009, SearchGoal

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "goals.md").read_text()
FILE = """\
format: lossratio-goals/1
goals:
  strict: {loss_ratio: 0.001 %, exceed_ratio: 0, duration_sum: 1 min}
  usual: {loss_ratio: 0.5 %}
"""


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        path = tmp_path / "goals.yaml"
        path.write_text(text)
        return path

    return write_text


@pytest.mark.parametrize(
    ("text", "goals"),
    [("csit", (NDR, PDR)), ("quick", (QUICK_NDR, QUICK_PDR)), ("NDR", (NDR,)), ("ndr, TST009", (NDR, TST009))],
)
def test_a_set_is_named_or_listed(text, goals):
    assert goal_set_from(text) == GoalSet(goals)


def test_a_file_has_goals_in_its_order_with_the_defaults_of_ndr(write):
    assert goal_set_from(str(write(FILE))) == GoalSet(
        (
            SearchGoal(0.00001, 0, 1.0, 60.0, 0.005, name="strict"),
            SearchGoal(0.005, 0.5, 1.0, 21.0, 0.005, name="usual"),
        )
    )


@pytest.mark.parametrize(("given", "early"), [("on", True), ("off", False)])
def test_a_file_says_whether_its_trials_end_early(write, given, early):
    assert load_goals(write(FILE.replace("goals:", f"early_verdict: {given}\ngoals:"))).early_verdict is early


@pytest.mark.parametrize("text", ["", "NRD", "NDR, nothing", "goals.json"])
def test_an_unknown_set_is_an_error_that_names_the_known_ones(text):
    known = r"Use csit, csit-half, quick, coarse, presets by name \(NDR, PDR, .*or a file"
    with pytest.raises(SearchError, match=known):
        goal_set_from(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.5 %", "150 %", r"goals.yaml:4: goals.usual: .*loss_ratio must be at least 0 and below 1, not 1.5"),
        ("1 min", "soon", r"goals.yaml:3: goals.strict.duration_sum: .*soon"),
        ("exceed_ratio", "excess", r"goals.yaml:3: goals.strict.excess: unknown field"),
        ("loss_ratio: 0.5 %", "width: 1 %", r"goals.yaml:4: goals.usual.loss_ratio: this field is required"),
        ("lossratio-goals/1", "goals", r"goals.yaml:1: format: "),
    ],
)
def test_a_mistake_is_named_with_file_line_and_field(write, old, new, message):
    with pytest.raises(SearchError, match=message):
        load_goals(write(FILE.replace(old, new)))


def test_the_references_example_is_a_file_of_goals(write):
    (example,) = examples_in(REFERENCE, "yaml")
    assert [goal.name for goal in load_goals(write(example)).goals] == ["guaranteed", "usual", "best_effort"]


def test_the_reference_names_every_field_and_preset():
    for name in (*GoalFile.model_fields, *GoalFields.model_fields, *PRESETS):
        assert f"`{name}`" in REFERENCE, name


def test_half_of_csits_evidence_is_a_set_of_its_own():
    for half, full in at_least_one(zip(goal_set_from("csit-half").goals, goal_set_from("csit").goals, strict=True)):
        assert half.duration_sum == 11.0
        assert half == replace(full, duration_sum=11.0, name=f"HALF_{full.name}")
