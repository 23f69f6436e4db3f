"""The SUTs and goals that searches are compared on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lossratio.simulation import GRACEFUL, ConstantLoss, SharpKnee, Traffic
from lossratio.trials.trial_input import TrialInput
from lossratio_study.algorithms import ALGORITHMS, OURS
from lossratio_study.families import Discards, Inconstant
from lossratio_study.search import GOAL_SETS, search_rows
from lossratio_study.study import FAMILY_SETS
from lossratio_study.suts import Overhead, Series, Subject

COMMON_SETS = {name: families for name, families in FAMILY_SETS.items() if name != "hard"}
EVERY_FAMILY = [family for families in COMMON_SETS.values() for family in families.values()]
HARD = FAMILY_SETS["hard"]


def parts_with_overload(sut):
    parts = sut.parts if isinstance(sut, Series) else (sut,)
    return [part for part in parts if hasattr(part, "overload")]


def of(goal):
    return goal.loss_ratio, goal.exceed_ratio, goal.final_trial_duration, goal.duration_sum, goal.width


def test_the_goal_sets_are_those_that_figures_are_promised_for():
    assert [of(goal) for goal in GOAL_SETS["G1"].goals] == [(0, 0.5, 1, 21, 0.005), (0.005, 0.5, 1, 21, 0.005)]
    assert [of(goal) for goal in GOAL_SETS["G2"].goals] == [(0, 0, 60, 60, 0.005)]
    assert [of(goal) for goal in GOAL_SETS["G3"].goals] == [(0, 0.5, 60, 120, 0.005)]
    assert [of(goal) for goal in GOAL_SETS["G4"].goals] == [(0, 0.5, 1, 5, 0.01)]
    assert [of(goal) for goal in GOAL_SETS["G5"].goals] == [(r, 0.5, 1, 21, 0.005) for r in (0, 0.001, 0.005, 0.01)]
    assert {goal.first_duration for goal_set in GOAL_SETS.values() for goal in goal_set.goals} == {1.0}


def test_only_loss_verification_would_be_undone_by_counting_overhead():
    assert [name for name, goal_set in GOAL_SETS.items() if not goal_set.countable_overhead] == ["G3"]


@pytest.mark.parametrize("families", COMMON_SETS.values(), ids=COMMON_SETS)
def test_half_of_the_suts_of_a_study_forward_less_than_their_capacity_in_overload(families):
    assert len(families) >= 12
    suts = [family.subject(seed).sut for family in families.values() for seed in range(6)]
    overloaded = [sut for sut in suts if any(part.overload != GRACEFUL for part in parts_with_overload(sut))]
    assert len(overloaded) == len(suts) / 2


def test_held_out_families_are_none_of_those_for_development():
    development, held_out = FAMILY_SETS["development"], FAMILY_SETS["held-out"]
    assert not set(development) & set(held_out)
    assert not {family.make for family in development.values()} & {family.make for family in held_out.values()}
    assert {family.group for family in EVERY_FAMILY} == {"quiet", "jittery", "mix"}


@pytest.mark.parametrize("family", [*EVERY_FAMILY, *HARD.values()], ids=lambda family: family.name)
def test_a_seed_always_makes_the_same_sut_and_another_seed_another(family):
    assert family.subject(3) == family.subject(3)
    assert family.subject(3).sut != family.subject(4).sut


@pytest.mark.parametrize("family", EVERY_FAMILY, ids=lambda family: family.name)
def test_the_true_throughput_is_within_the_loads_of_the_search(family):
    for seed in range(4):
        subject = family.subject(seed)
        measurer = subject.measurer(Overhead(0.0))
        assert measurer.measure(TrialInput(1.0, subject.min_load)).loss_ratio == 0.0
        truth = subject.sut.truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.5)
        assert truth is None or subject.min_load < truth < 1.2 * subject.max_load


@pytest.mark.whole
@pytest.mark.parametrize("family", HARD.values(), ids=lambda family: family.name)
def test_a_search_of_a_hard_sut_ends_with_a_result_that_its_trials_bear_out(family):
    for seed in range(3):
        for goals in ("G2", "G4"):
            (row,) = search_rows(GOAL_SETS[goals], family.subject(seed), Overhead(0.0), ALGORITHMS[OURS], 1)
            assert row.faults == ""
            assert row.trials <= 200


def lost(sut, *trials, rest=0.0):
    measurer = Subject("hard", 0, sut, 1.0, 1e6).measurer(Overhead(rest))
    return [round(measurer.measure(TrialInput(duration, load)).lost_frames) for load, duration in trials]


def test_hard_suts_lose_frames_as_they_say():
    assert lost(Inconstant(1000.0), (900.0, 1.0), (1100.0, 2.0)) == [0, 200]
    assert lost(Inconstant(1000.0, less=0.1, memory=5.0), (950.0, 1.0), (1100.0, 1.0), (950.0, 1.0)) == [0, 100, 50]
    assert lost(Inconstant(1000.0, less=0.1, memory=5.0), (1100.0, 1.0), (950.0, 1.0), rest=6.0) == [100, 0]
    assert lost(Inconstant(1000.0, less=0.5, warm_up=4.0), *[(1000.0, 1.0)] * 5) == [500, 375, 250, 125, 0]
    assert lost(Inconstant(1000.0, per_trial=-0.1), *[(1000.0, 1.0)] * 3) == [0, 100, 190]
    assert lost(Inconstant(1e6, every=10.0, stall=0.1), (100.0, 9.0), (100.0, 1.0), (100.0, 20.0)) == [0, 10, 20]
    assert lost(Inconstant(1e6, share=0.01, plateau=1000.0), (1000.0, 1.0), (1100.0, 1.0)) == [0, 11]
    assert lost(Inconstant(1e6, frames=1), (1000.0, 1.0), (10.0, 60.0)) == [1, 1]


def test_discards_lose_the_share_of_their_level_by_chance_and_the_excess():
    steps = Discards(1e6, ((1e5, 0.1), (5e5, 0.2)))
    few, more, most, excess = lost(steps, (1e5, 1.0), (2e5, 10.0), (6e5, 10.0), (2e6, 1.0))
    assert few == 0
    assert more == pytest.approx(0.1 * 2e6, rel=0.01)
    assert most == pytest.approx(0.2 * 6e6, rel=0.01)
    assert excess == 1_000_000
    (half,) = lost(Discards(1e6, ((5e5, 0.2),), ramps=True), (7.5e5, 10.0))
    assert half == pytest.approx(0.1 * 7.5e6, rel=0.01)


def test_a_generator_that_sends_less_than_it_should_leaves_frames_unsent():
    subject = HARD["generator-limited"].subject(0)
    output = subject.measurer(Overhead(0.0)).measure(TrialInput(1.0, subject.max_load))
    assert output.unsent_frames == pytest.approx(0.2 * subject.max_load, rel=0.01)
    assert output.loss_ratio >= 0.19


def test_streams_of_random_numbers_are_repeatable_and_differ():
    subject = FAMILY_SETS["development"]["jitter"].subject(0)
    trial = TrialInput(1.0, subject.max_load)
    losses = [subject.measurer(Overhead(0.0), *stream).measure(trial).loss_ratio for stream in ((0, 1), (0, 1), (1, 0))]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize(("counted", "effective"), [(True, 1.5), (False, 1.0)])
def test_an_overhead_is_spent_and_counts_where_it_is_to_count(counted, effective):
    subject = Subject("sharp knee", 0, SharpKnee(1e6), 1e3, 1e7)
    output = subject.measurer(Overhead(0.5, counted)).measure(TrialInput(1.0, 1e5))
    assert output.elapsed == 1.5
    assert math.isclose(output.effective_duration or 1.0, effective)


def test_a_series_forwards_what_all_its_parts_forward():
    lost = Series((SharpKnee(800.0), ConstantLoss(0.0), SharpKnee(600.0))).start(np.random.default_rng(0))
    assert [lost(Traffic(0.0, 1.0, frames)) for frames in (500, 700, 1000)] == [0, 100, 400]
    hole = Series((ConstantLoss(1.0), SharpKnee(600.0))).start(np.random.default_rng(0))
    assert hole(Traffic(0.0, 1.0, 1000)) == 1000
