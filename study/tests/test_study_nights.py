"""Nights that hint one another, and what is made of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from study_examples import CAPACITY, KNEE, QUICK_SET, rows as made_up

from lossratio.simulation import Overload, SharpKnee, Traffic
from lossratio_study.figures import bias_by_hints, hint_figures, seen
from lossratio_study.nights import CHANGES, HINT_ALGORITHMS, scaled
from lossratio_study.search import search_rows
from lossratio_study.suts import Overhead, Scaled
from lossratio_study.tables import hint_family_tables

FREE = Overhead(0.0)
UNCHANGED, SMALL = CHANGES["unchanged"], CHANGES["1 %"]


def one_row(name, repeat=0, subject=KNEE):
    (row,) = search_rows(QUICK_SET, subject, FREE, HINT_ALGORITHMS[name], repeat)
    return row


def rows(*values, **common):
    return made_up(pytest.importorskip("pandas"), *values, **common)


@pytest.mark.whole
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_hints_leave_the_result_on_a_quiet_sut_as_it_is(change):
    hinted, plain = one_row(change.with_hints), one_row(change.without_hints)
    assert (hinted.lower, hinted.upper, hinted.truth) == (plain.lower, plain.upper, plain.truth)
    assert hinted.faults == plain.faults == ""


@pytest.mark.whole
def test_hints_save_time_where_nothing_has_changed():
    collapse = replace(KNEE, sut=SharpKnee(CAPACITY, Overload(drop_cost=0.5, dip=0.2)))
    hinted, plain = (one_row(name, subject=collapse) for name in (UNCHANGED.with_hints, UNCHANGED.without_hints))
    assert hinted.elapsed < plain.elapsed


def test_a_changed_sut_has_a_changed_truth():
    assert one_row(UNCHANGED.without_hints).truth == pytest.approx(CAPACITY)
    assert abs(one_row(SMALL.without_hints).truth / CAPACITY - 1.0) == pytest.approx(0.01)
    drifted = one_row(CHANGES["drift 0.1 % a night"].without_hints).truth
    assert drifted == pytest.approx(CAPACITY * 1.001**40)


def test_both_searches_see_the_same_sut_each_time():
    assert CHANGES
    for change in CHANGES.values():
        assert change.tonight(KNEE) == change.tonight(KNEE)
        assert change.drawn(KNEE) == change.drawn(KNEE)


def test_a_faster_sut_does_with_more_load_what_the_other_did():
    half, twice = (Scaled(SharpKnee(1000.0), factor).start(np.random.default_rng(0)) for factor in (0.5, 2.0))
    assert half(Traffic(0.0, 1.0, 500)) == 0
    assert half(Traffic(0.0, 1.0, 600)) == 100
    assert twice(Traffic(0.0, 1.0, 2000)) == 0
    assert twice(Traffic(0.0, 1.0, 2400)) == 400
    truth = Scaled(SharpKnee(1000.0), 2.0).truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.5)
    assert truth == pytest.approx(2000.0)
    assert scaled(KNEE, 1.0) is KNEE


def test_a_bias_by_hints_is_that_of_the_same_suts():
    frame = rows(
        {"algorithm": UNCHANGED.with_hints, "lower": 99.0},
        {"algorithm": UNCHANGED.without_hints, "lower": 100.0},
        {"algorithm": UNCHANGED.with_hints, "lower": 1010.0, "seed": 1},
        {"algorithm": UNCHANGED.without_hints, "lower": 1000.0, "seed": 1},
    )
    assert bias_by_hints(frame, UNCHANGED) == pytest.approx(0.0)
    assert bias_by_hints(frame[:2], UNCHANGED) == pytest.approx(-1.0)


def test_a_change_is_seen_where_the_lower_bound_moves_with_it():
    before = {"algorithm": UNCHANGED.without_hints, "lower": 100.0, "truth": 100.0}
    after = [{"algorithm": SMALL.without_hints, "lower": lower, "truth": 99.0} for lower in (99.0, 99.8, 101.0, 99.5)]
    assert seen(rows(before, *after), with_hints=False) == 50.0
    assert math.isnan(seen(rows(before, *after), with_hints=True))


def test_figures_are_judged_for_each_change_that_was_studied():
    both = [
        {"algorithm": name, "elapsed": seconds, "seed": seed, "lower": 100.0}
        for seed in (0, 1)
        for name, seconds in ((UNCHANGED.with_hints, 9.0), (UNCHANGED.without_hints, 10.0))
    ]
    by_name = {figure.name: figure for figure in hint_figures(rows(*both))}
    assert list(by_name) == [
        "time / without hints, unchanged",
        "time / without hints, worst family, unchanged",
        "bias by hints, %, unchanged",
    ]
    assert by_name["time / without hints, unchanged"].value == pytest.approx(0.9)
    assert by_name["time / without hints, unchanged"].verdict == "aim missed"


def test_each_family_has_its_share_of_the_time_without_hints_and_the_least_that_there_could_be():
    seconds = {"sharp knee": (9.0, 6.0), "jitter": (4.0, 1.5)}
    both = [
        {"algorithm": name, "family": family, "elapsed": elapsed, "certificate": certificate}
        for family, (hinted, certificate) in seconds.items()
        for name, elapsed in ((UNCHANGED.with_hints, hinted), (UNCHANGED.without_hints, 10.0))
    ]
    ((title, table),) = hint_family_tables(rows(*both))
    assert title.startswith("Divided by the search time without hints, unchanged")
    lines = [line.split("  ") for line in table.splitlines()[1:]]
    assert {line[0]: line[-1].strip() for line in lines} == {
        "sharp knee": "0.90 | 0.60",
        "jitter": "0.40 | 0.15",
        "geometric mean": "0.60 | 0.30",
    }
