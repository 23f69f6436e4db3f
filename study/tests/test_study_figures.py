"""Figures, demands and tables, from rows made up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from study_examples import rows as made_up

from lossratio_study.algorithms import OURS, PEER
from lossratio_study.figures import (
    Figure,
    at_overhead,
    bias,
    bias_beside_peer,
    figures,
    geometric_mean,
    mean_spread_ratio,
    mean_time_ratio,
    searches,
    spread,
    spread_ratio,
    standard_error,
    time,
    worst_time_ratio,
)
from lossratio_study.tables import algorithm_table, family_tables, figure_table, group_table, text_table


def pandas():
    """Loads it when a test runs, as each process collects these tests."""
    return pytest.importorskip("pandas")


def rows(*values, **common):
    return made_up(pandas(), *values, **common)


def both(ours, theirs, **common):
    return rows({"algorithm": OURS, **ours}, {"algorithm": PEER, **theirs}, **common)


def two_families(first, second):
    return pandas().concat([first.assign(family="sharp knee"), second.assign(family="jitter")], ignore_index=True)


def test_time_is_a_mean_over_searches_not_over_goals():
    frame = rows({"elapsed": 10.0}, {"elapsed": 30.0, "seed": 1}, {"elapsed": 1000.0, "goal_number": 1})
    assert len(searches(frame)) == 2
    assert dict(time(frame, OURS)) == {"sharp knee": 20.0}


def test_families_count_alike_in_the_time_ratio():
    frame = two_families(both({"elapsed": 10}, {"elapsed": 20}), both({"elapsed": 8000}, {"elapsed": 1000}))
    assert math.isclose(mean_time_ratio(frame), 2.0)
    assert worst_time_ratio(frame) == 8.0
    assert math.isnan(geometric_mean([]))


def test_a_bias_is_in_percent_of_the_truth_and_needs_one():
    frame = rows({"lower": 99.0}, {"lower": 98.0}, {"lower": 5.0, "truth": math.nan}, {"lower": math.nan})
    assert math.isclose(bias(frame, OURS)["sharp knee"], -1.5)


def test_biases_of_families_may_cancel_but_not_those_of_one_algorithm():
    frame = two_families(both({"lower": 99.0}, {"lower": 98.0}), both({"lower": 98.0}, {"lower": 99.5}))
    assert math.isclose(bias_beside_peer(frame), 0.25)


def test_a_spread_is_that_of_searches_on_one_sut():
    frame = rows({"lower": 99}, {"lower": 101}, {"lower": 500, "seed": 1}, {"lower": 500, "seed": 1})
    assert math.isclose(spread(frame, OURS)["sharp knee"], 100.0 * math.sqrt(2.0) / 100.0 / 2.0)


def test_spreads_are_set_beside_the_peers():
    noisy = [{"lower": 98}, {"lower": 102}], [{"lower": 99}, {"lower": 101}]
    frame = pandas().concat([rows(*noisy[0], algorithm=OURS), rows(*noisy[1], algorithm=PEER)])
    assert math.isclose(spread_ratio(frame), 2.0)
    swapped = pandas().concat([rows(*noisy[0], algorithm=PEER), rows(*noisy[1], algorithm=OURS)])
    assert math.isclose(mean_spread_ratio(pandas().concat([frame, swapped.assign(goal_set="G2")])), 1.0)
    assert math.isnan(spread_ratio(both({}, {})))


def test_the_standard_error_of_a_mean_is_the_textbooks():
    values = np.random.default_rng(1).normal(size=12)
    frame = pandas().DataFrame({"seed": range(12), "value": values})
    expected = values.std(ddof=1) / math.sqrt(12)
    assert math.isclose(standard_error(lambda sample: sample.value.mean(), frame), expected)
    assert math.isnan(standard_error(lambda sample: 1.0, frame[:1]))


def test_overheads_are_distinguished():
    frame = rows({}, {"overhead": 0.5}, {"overhead": 0.5, "counted": True})
    assert len(at_overhead(frame, 0.5, counted=True)) == 1
    assert len(at_overhead(frame, 0.0, counted=False)) == 1


@pytest.mark.parametrize(("value", "verdict"), [(0.9, "pass"), (0.93, "aim missed"), (0.96, "FAIL"), (math.nan, "-")])
def test_a_verdict_says_what_is_reached(value, verdict):
    assert Figure("time", "G1", value, 0.01, must=0.95, aim=0.9).verdict == verdict


@pytest.mark.whole
def test_all_demands_are_judged_once_for_each_goal_set():
    frame = pandas().concat(
        both({"elapsed": 9, "lower": 99.01 + seed}, {"elapsed": 10, "lower": 99.0 + seed}, seed=0, repeat=seed).assign(
            goal_set=goal_set, overhead=overhead, counted=counted
        )
        for seed in (0, 1)
        for goal_set in ("G1", "G2", "G3", "G4", "G5", "G6")
        for overhead, counted in ((0.0, False), (0.5, False), (0.5, True))
    )
    by_name = {(figure.name, figure.goals): figure for figure in figures(frame, 1.1)}
    names = ["time / peer's", "time / peer's, worst family", "time / peer's, overhead 0.5 s not counted"]
    names += ["time / peer's, overhead 0.5 s counted", "bias beside peer's, %", "spread / peer's"]
    assert {key for key in by_name if key[1] != "all"} == {(name, f"G{n}") for name in names for n in range(1, 6)}
    assert by_name["time / peer's", "G1"].verdict == "pass"
    assert by_name["time / peer's", "G2"].verdict == "FAIL"
    assert by_name["bias beside peer's, %", "G1"].value == pytest.approx(0.01)
    assert by_name["ms per decision", "all"].value == pytest.approx(0.1)
    assert by_name["results with faults", "all"].verdict == "pass"
    assert by_name["time per decision, 1,000 trials / 100", "all"].value == 1.1


def test_a_single_fault_fails():
    frame = both({"faults": "the relevant lower bound is 1.0, not 2.0"}, {})
    (faulty,) = [figure for figure in figures(frame, 1.0) if figure.name == "results with faults"]
    assert faulty.verdict == "FAIL"


def test_tables_show_seconds_by_group_family_and_algorithm():
    frame = two_families(both({"elapsed": 9}, {"elapsed": 10}), both({"elapsed": 30}, {"elapsed": 40}))
    groups = {"sharp knee": "quiet", "jitter": "jittery"}
    lines = group_table(frame, groups).splitlines()
    assert lines[1].split() == [OURS, "9", "/", "30", "/", "-"]
    assert lines[3].split() == [*PEER.split(), "10", "/", "40", "/", "-"]
    title, ratios = next(family_tables(frame))
    assert title == "Search time divided by the peer's"
    assert ratios.splitlines()[1].split() == ["sharp", "knee", "0.90"]
    assert ratios.splitlines()[2].split() == ["jitter", "0.75"]
    assert algorithm_table(frame).splitlines()[1].split()[:5] == ["G1", OURS, "19.5", "20", "29"]
    assert figure_table([Figure("time", "G1", 0.93, 0.01, 0.95, 0.9)]).splitlines()[1].split() == [
        *("time", "G1", "0.930", "0.010", "0.95", "0.9"),
        *("aim", "missed"),
    ]


def test_columns_are_as_wide_as_they_need_to_be():
    assert text_table(["", "a"], [["x", "10"], ["long", "1"]]).splitlines() == ["       a", "x     10", "long   1"]
