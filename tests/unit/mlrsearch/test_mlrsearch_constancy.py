"""SUTs that change during a search, and SUTs that do not."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from mlrsearch_suts import measured

from lossratio.mlrsearch import RFC2544, Change, LossUnit, MLRsearch, goal_result, inconstancy_in, level_loss_in
from lossratio.simulation import Buffer, Overload, Policer, SharpKnee, SmoothKnee
from lossratio.trials import TrialInput, TrialResult
from lossratio_study.algorithms import ALGORITHMS, EARLY, OURS
from lossratio_study.families import FAMILIES, HARD_FAMILIES, HELD_OUT_FAMILIES, Inconstant
from lossratio_study.search import GOAL_SETS
from lossratio_study.suts import Overhead, Subject, log_uniform

MIN, MAX = 9001.0, 14_880_952.0


def trials_on(sut, goals, algorithm=OURS):
    subject = sut if isinstance(sut, Subject) else Subject("inconstant", 0, sut, MIN, MAX)
    return ALGORITHMS[algorithm].search(GOAL_SETS[goals].goals, subject, subject.measurer(Overhead(0.0))).trials


@pytest.mark.parametrize(("less", "memory"), [(0.18, 18.0), (0.3, 8.0)])
def test_a_memory_of_loss_is_seen_with_its_size_and_length(less, memory):
    found = inconstancy_in(trials_on(Inconstant(1e6, less=less, memory=memory), "G3"))
    assert found.change is Change.REMEMBERS_LOSS
    assert found.less == pytest.approx(less, rel=0.02)
    assert found.after < memory <= found.until


@pytest.mark.whole
def test_nearly_all_memories_of_loss_are_seen_in_searches_with_long_trials():
    draw = np.random.default_rng(96)
    found = []
    for _ in range(40):
        capacity, less, memory = (log_uniform(draw, *limits) for limits in ((5e5, 1.3e7), (0.03, 0.3), (3.0, 60.0)))
        found.append(inconstancy_in(trials_on(Inconstant(capacity, less=less, memory=memory), "G3")))
    # Of 240 such devices, all were seen.
    assert sum(one is not None and one.change is Change.REMEMBERS_LOSS for one in found) >= 38


@pytest.mark.parametrize("seconds", [1.0, 7.7])
def test_long_trials_after_a_loss_contradict_short_ones_after_a_rest_but_show_no_trend(seconds):
    """Long trials lose a tenth, and short trials nothing: at last, or each of them after a loss."""
    short = [measured(1e6, 1.0, 0.0) for _ in range(8)]
    long = [measured(1e6, seconds, 0.1) for _ in range(8)]
    trend = inconstancy_in([*short, *long])
    assert (trend is None) == (seconds > 1.0)

    mixed = [trial for pair in zip(long, short, strict=True) for trial in (measured(2e6, 1.0, 0.5), *pair)]
    rested = [
        trial if trial.loss_ratio > 0.0 else replace(trial, input=replace(trial.input, rest=20.0)) for trial in mixed
    ]
    assert inconstancy_in(rested).change is Change.REMEMBERS_LOSS


def test_a_sut_that_warms_up_is_seen_and_so_is_its_time():
    found = inconstancy_in(trials_on(Inconstant(1e6, less=0.3, warm_up=30.0), "G4"))
    assert found.change is Change.FASTER
    assert found.after <= 31.0


@pytest.mark.whole
@pytest.mark.parametrize(("per_trial", "change"), [(-2e-3, Change.SLOWER), (1e-3, Change.FASTER)])
def test_a_trend_is_seen_over_different_loads(per_trial, change):
    assert inconstancy_in(trials_on(Inconstant(3e6, per_trial=per_trial), "G1")).change is change


@pytest.mark.whole
def test_nothing_is_seen_in_trials_of_quiet_suts():
    families = [family for family in (*FAMILIES.values(), *HELD_OUT_FAMILIES.values()) if family.group == "quiet"]
    subjects = [family.subject(seed) for family in families for seed in range(40, 42)]
    # A queue that is full after a loss is a memory of loss, and so is a bucket that is empty.
    without_queue = [subject for subject in subjects if not isinstance(subject.sut, Buffer | Policer)]
    searches = [
        trials_on(subject, goals, algorithm)
        for subject in without_queue
        for goals in ("G1", "G2", "G3", "G4")
        for algorithm in (OURS, EARLY)
    ]
    assert len(searches) >= 60
    assert [search for search in searches if inconstancy_in(search) is not None or level_loss_in(search)] == []


def test_a_trial_that_is_no_evidence_contradicts_nothing_but_its_loss_is_remembered():
    def lossy_after_loss(passed_over):
        trials = [measured(2e6, 1.0, 0.5)]
        for before, _ in pairwise(range(8)):
            trials += [measured(1e6, 1.0, 0.1), measured(5e5, 20.0, 0.0), measured(1.1e6, 1.0, 0.0)]
            trials += [measured(2e6 + before, 1.0, 0.5)]
        return inconstancy_in(trials, passed_over(len(trials)))

    found = lossy_after_loss(lambda count: range(0, count, 4))
    assert (found.change, found.weak, found.strong) == (Change.REMEMBERS_LOSS, 7, 7)
    assert (found.after, found.until) == (0.0, 20.0)
    assert found.less == pytest.approx(1.0 - 0.9 / 1.1)
    assert lossy_after_loss(lambda count: range(count)) is None


@pytest.mark.whole
@pytest.mark.parametrize(("growth", "change"), [(-1e-5, Change.SLOWER), (0.0, None), (1e-5, Change.FASTER)])
def test_a_trend_of_thousands_of_trials_is_seen_by_a_part_of_them(growth, change):
    loads = [1e6 * (1.0 + number % 7 / 500.0) for number in range(6_000)]
    capacities = [1e6 * (1.0 + growth * number) for number in range(6_000)]
    losses = [max(0.0, 1.0 - capacity / load) for load, capacity in zip(loads, capacities, strict=True)]
    found = inconstancy_in([measured(load, 1.0, loss) for load, loss in zip(loads, losses, strict=True)])
    assert (None if found is None else found.change) is change


def test_what_an_early_verdict_leaves_open_contradicts_nothing():
    trials = trials_on(Inconstant(1e6, less=0.18, memory=18.0), "G3", EARLY)
    in_search = [trial for trial in trials[:7] if trial.is_early]
    assert len(in_search) >= 4
    assert inconstancy_in(trials[:7]) is None


@pytest.mark.parametrize("algorithm", [OURS, EARLY])
@pytest.mark.parametrize("goals", ["G2", "G3"])
@pytest.mark.parametrize(("less", "memory"), [(0.18, 18.0), (0.08, 6.0), (0.3, 50.0)])
def test_a_memory_is_asked_for_where_all_trials_of_a_search_are_those_of_the_weak_sut(less, memory, goals, algorithm):
    trials = trials_on(Inconstant(1e6, less=less, memory=memory), goals, algorithm)
    found = inconstancy_in(trials)
    assert found.change is Change.REMEMBERS_LOSS
    assert found.less == pytest.approx(less, abs=0.03)
    assert found.after < memory <= found.until


def memory_trials(sut, goals=RFC2544, early_verdict=False):
    """How many trials of a search asked whether the SUT remembers loss, and their words."""
    subject = Subject("asked", 0, sut, MIN, MAX)
    controller = MLRsearch([goals], MIN, MAX, early_verdict=early_verdict)
    measurer, words = subject.measurer(Overhead(0.0)), []
    while (trial := controller.next_trial()) is not None:
        if controller.purpose.rule == "memory":
            words.append(str(controller.purpose))
        controller.record(TrialResult(trial, measurer.measure(trial)))
    assert controller.result()[goals].regular
    return words


def test_the_question_is_a_few_short_trials_and_says_so():
    words = memory_trials(Inconstant(1e6, less=0.18, memory=18.0))
    assert len(words) == 11
    assert words[0] == (
        "does the SUT remember loss? low loss is expected at a load at which it lost frames right after a loss"
    )
    assert words[-1] == "does the SUT remember loss? high loss is expected again right after a loss"


@pytest.mark.parametrize("early_verdict", [False, True])
def test_a_sut_without_memory_is_hardly_asked(early_verdict):
    for sut in (SharpKnee(1e6), SharpKnee(1e6, Overload(drop_cost=0.3, dip=0.1)), SmoothKnee(1e6, 2e4)):
        assert memory_trials(sut, early_verdict=early_verdict) == []
    # A burst before the first verdict looks like a rate that is not there any more. One trial shows that it is none.
    assert len(memory_trials(Policer(1e6, 2e5), early_verdict=early_verdict)) <= 2


def test_the_question_changes_no_bounds():
    sut = Inconstant(1e6, less=0.18, memory=18.0)
    trials = trials_on(sut, "G2")
    (of_search, of_all) = (
        goal_result(RFC2544, counted, min_load=MIN, max_load=MAX) for counted in (trials[:-11], trials)
    )
    assert of_search.regular
    assert of_search == of_all


def test_a_search_without_a_regular_result_asks_nothing():
    controller = MLRsearch([RFC2544], MIN, MAX)
    while (trial := controller.next_trial()) is not None:
        controller.record(measured(trial.load, trial.duration, 0.5))
        assert controller.last_purpose.rule != "memory"
    assert controller.trials > 0


@pytest.mark.parametrize(
    ("sut", "unit", "lost"),
    [
        (Inconstant(1e6, frames=1), LossUnit.FRAMES, 1.0),
        (Inconstant(1e6, every=1.0, stall=0.02), LossUnit.SHARE, 0.02),
        (Inconstant(1e6, share=0.02), LossUnit.SHARE, 0.02),
    ],
)
def test_a_loss_at_any_load_is_seen_with_its_size(sut, unit, lost):
    subject = Subject("level", 0, sut, MIN, MAX)
    measurer = subject.measurer(Overhead(0.0))
    trials = [
        measured(load, 1.0, measurer.measure(TrialInput(1.0, load)).loss_ratio) for load in (8e5, 4e5, 1e5, 2e4, 9001.0)
    ]
    found = level_loss_in(trials)
    assert (found.unit, found.loads) == (unit, 5)
    assert found.lost == pytest.approx(lost, rel=0.05)
    assert found.lowest == 9001.0
    assert level_loss_in([*trials[:2], measured(9001.0, 1.0, 0.0)]) is None


def losing(losses):
    """Trials of 1 s that lose a number of frames at each load."""
    return [measured(load, 1.0, lost / load) for load, lost in losses.items()]


def test_few_loads_show_a_level_only_where_a_search_has_no_other_lossy_ones():
    share = {9e3: 900, 90e3: 9_000, 400e3: 40_000}
    assert level_loss_in(losing(share)).unit is LossUnit.SHARE
    assert level_loss_in(losing({**share, 200e3: 80_000})) is None
    number = {9e3: 430, 12e3: 431, 18e3: 428}
    assert level_loss_in(losing(number)).unit is LossUnit.FRAMES
    assert level_loss_in(losing({**number, 400e3: 390e3})).loads == 3
    assert level_loss_in(losing({**number, 30e3: 4_000})) is None


def test_shares_differ_by_chance_and_a_number_of_frames_does_not():
    share = losing({9e3: 245, 45e3: 1_350, 400e3: 12_000})
    assert level_loss_in(share).unit is LossUnit.SHARE
    assert level_loss_in(losing({9e3: 200, 45e3: 1_350, 400e3: 12_000})) is None
    assert level_loss_in(losing({9e3: 245, 12e3: 300, 18e3: 245})) is None


def test_a_share_of_more_than_half_may_be_the_same_at_all_loads_and_overload_is_not():
    assert level_loss_in(losing({load: 0.625 * load for load in (9e3, 90e3, 400e3)})).lost == 0.625
    overloaded = losing({load: load - 100 for load in (9e3, 90e3, 400e3)})
    assert level_loss_in(overloaded) is None


def test_a_load_below_without_loss_shows_that_loss_is_not_at_any_load():
    share = {9e3: 900, 90e3: 9_000, 400e3: 40_000}
    assert level_loss_in(losing({**share, 8e3: 0})) is None
    # Of so few frames, none may be lost by chance.
    assert level_loss_in(losing({**share, 20.0: 0})) is not None


@pytest.mark.whole
def test_a_frame_in_each_trial_is_seen_in_a_search():
    found = level_loss_in(trials_on(HARD_FAMILIES["one frame per trial"].subject(3), "G1"))
    assert found.unit is LossUnit.FRAMES
    assert math.isclose(found.lost, 1.0, rel_tol=0.01)
