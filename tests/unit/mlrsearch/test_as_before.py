"""The question whether a SUT is as in earlier searches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lossratio.mlrsearch import NDR, PDR, Answer, IrregularReason, LoadGrid, MLRsearch, Question
from lossratio.mlrsearch.evidence import RelevantBounds
from lossratio.mlrsearch.stages import GoalBounds
from lossratio.trials import TrialInput, TrialOutput, TrialResult

GOALS = (NDR, PDR)
MIN, MAX = 10e3, 1e6
CAPACITY = 400e3
NIGHTS = 5


class Router:
    """A SUT that loses what is above its capacity, and below it some frames now and then, the more the nearer.

    Above `lossless`, a share of the loads it loses some frames in a share of its trials. A share of them is slower.
    """

    def __init__(self, seed, factor=1.0, *, zone=0.01, lossless=1.0, often=1.0, slower=(0.0, 1.0)):
        self._rng = np.random.default_rng(seed)
        self._capacity = CAPACITY * factor
        self._zone = zone
        self._lossless, self._often = lossless, often
        self._slower = slower

    def measure(self, trial):
        share, factor = self._slower
        capacity = self._capacity * (factor if self._rng.random() < share else 1.0)
        lost = max(0.0, 1.0 - capacity * (1.0 + self._rng.normal(0.0, 0.002)) / trial.load)
        chance = (trial.load / self._capacity - 1.0 + self._zone) / self._zone
        stalls = self._rng.random() < min(1.0, max(0.0, chance))
        stalls |= trial.load > self._lossless * self._capacity and self._rng.random() < self._often
        return TrialResult(trial, TrialOutput(max(lost, 1e-4 if stalls else 0.0)))


def searched(controller, router):
    """All trials of a search."""
    trials = []
    while (trial := controller.next_trial()) is not None:
        trials.append(router.measure(trial))
        controller.record(trials[-1])
    return trials


@cache
def nights(zone=0.01):
    """The trials of five searches."""
    found = [searched(MLRsearch(GOALS, MIN, MAX), Router(seed, zone=zone)) for seed in range(NIGHTS)]
    return [trial for night in found for trial in night]


def asked(router, question):
    """The question after its answer."""
    while question.answer is None:
        question.add(router.measure(TrialInput(1.0, question.next_load())))
    return question


def question(zone=0.01, goals=GOALS):
    return Question(goals, LoadGrid(MIN, MAX, NDR.width), nights(zone))


def after_search(router, zone):
    """The answer after the search that follows, unless the SUT is as before."""
    controller = MLRsearch(GOALS, MIN, MAX, question=question(zone))
    searched(controller, router)
    return controller.answer


@pytest.mark.whole
@pytest.mark.parametrize("zone", [1e-6, 0.01])
def test_a_sut_that_is_as_before_is_called_so_after_a_quarter_of_a_search(zone):
    ends = [asked(Router(seed, zone=zone), question(zone)) for seed in range(100, 120)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) >= 17
    search = len(searched(MLRsearch(GOALS, MIN, MAX), Router(7, zone=zone)))
    assert np.median([end.trials for end in ends]) <= search / 4


@pytest.mark.whole
@pytest.mark.parametrize("factor", [0.5, 0.95, 1.05, 2.0])
@pytest.mark.parametrize("zone", [1e-6, 0.01])
def test_a_change_of_five_per_cent_or_more_is_not_missed(factor, zone):
    ends = [asked(Router(seed, factor, zone=zone), question(zone)) for seed in range(100, 112)]
    assert Answer.AS_BEFORE not in [end.answer for end in ends]


@pytest.mark.whole
@pytest.mark.parametrize(("factor", "zone"), [(0.5, 1e-6), (0.95, 0.01), (1.05, 0.01), (2.0, 0.01)])
def test_after_the_search_it_is_called_a_change(factor, zone):
    answers = [after_search(Router(seed, factor, zone=zone), zone) for seed in range(100, 105)]
    assert answers.count(Answer.CHANGED) >= 4


@pytest.mark.whole
def test_earlier_loads_may_differ_by_less_than_a_step():
    moved = [
        replace(trial, input=replace(trial.input, load=trial.load * 1.001)) if number % 2 else trial
        for number, trial in enumerate(nights())
    ]
    asks = Question(GOALS, LoadGrid(MIN, MAX, NDR.width), moved)
    controller = MLRsearch(GOALS, MIN, MAX, question=asks)
    searched(controller, Router(101, 0.9))
    assert controller.answer is Answer.CHANGED


@pytest.mark.whole
@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_change_of_two_per_cent_is_missed_by_less_than_three_in_ten_questions(factor):
    ends = [asked(Router(seed, factor), question()) for seed in range(100, 130)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) <= 9


@pytest.mark.parametrize(
    "change",
    [
        {"lossless": 0.0, "often": 0.7},
        {"lossless": 0.95},
        {"lossless": 0.6},
        {"slower": (0.7, 0.9)},
        {"slower": (0.7, 0.97)},
    ],
    ids=str,
)
@pytest.mark.parametrize("zone", [1e-6, 0.01])
def test_a_change_that_moves_not_all_loads_is_not_missed(change, zone):
    ends = [asked(Router(seed, zone=zone, **change), question(zone)) for seed in range(100, 120)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) <= 1


def test_each_goal_has_its_own_loads():
    one = question()
    (ndr, above_ndr), (pdr, above_pdr) = (one.loads(str(goal)) for goal in GOALS)
    assert CAPACITY * 0.985 < ndr < above_ndr < CAPACITY * 1.015
    assert ndr < pdr < above_pdr < CAPACITY * 1.015
    asked(Router(103), one)
    assert one.answer is Answer.AS_BEFORE


def test_one_goal_alone_does_not_see_what_only_the_other_one_loses():
    one = asked(Router(5, lossless=0.6), question(goals=(PDR,)))
    assert one.answer is Answer.AS_BEFORE


def test_a_goal_without_enough_trials_at_its_bounds_is_left_to_a_search():
    few = Question(GOALS, LoadGrid(MIN, MAX, NDR.width), nights()[:10])
    assert few.answer is Answer.UNSURE


def test_trials_after_the_answer_change_nothing():
    one = question()
    asked(Router(3), one)
    answer, trials = one.answer, one.trials
    one.add(TrialResult(TrialInput(1.0, MAX), TrialOutput(0.9)))
    assert (one.answer, one.trials) == (answer, trials)


def test_a_search_ends_without_bounds_if_the_sut_is_as_before():
    controller = MLRsearch(GOALS, MIN, MAX, question=question())
    trials = searched(controller, Router(101))
    found = controller.result()
    assert controller.answer is Answer.AS_BEFORE
    assert found.finished
    assert len(trials) < 20
    for goal in GOALS:
        assert found[goal].reason is IrregularReason.AS_BEFORE
        bounds = (found[goal].relevant_lower_bound, found[goal].relevant_upper_bound)
        assert bounds == (None, None)
        assert found[goal].conditional_throughput is None


@pytest.mark.whole
def test_otherwise_its_trials_count_for_the_search():
    controller = MLRsearch(GOALS, MIN, MAX, question=question())
    trials = searched(controller, Router(101, 0.9))
    found = controller.result()
    assert controller.answer is Answer.CHANGED
    assert all(found[goal].regular for goal in GOALS)
    assert len(controller.evidence) == len(trials)
    alone = MLRsearch(GOALS, MIN, MAX)
    for trial in trials:
        alone.record(trial)
    assert dict(alone.result()) == dict(found)


def test_a_search_is_continued_in_the_midst_of_the_question():
    whole = searched(MLRsearch(GOALS, MIN, MAX, question=question()), Router(102))
    again = MLRsearch(GOALS, MIN, MAX, question=question())
    for trial in whole:
        assert again.next_trial() == trial.input
        again.record(trial)
    assert again.next_trial() is None


class Spells(Router):
    """A SUT that is 10 % slower in three of four trials, in spells of this many trials on average."""

    def __init__(self, seed, spell):
        super().__init__(seed)
        self._spell = spell
        self._change()

    def _change(self):
        self._slower = (1.0 if self._rng.random() < 0.75 else 0.0, 0.9)

    def measure(self, trial):
        if self._rng.random() < 1.0 / self._spell:
            self._change()
        return super().measure(trial)


class Unlucky(Router):
    """A SUT that loses this share of the frames in some of its trials, by their numbers from 0."""

    def __init__(self, seed, unlucky, loss=0.008):
        super().__init__(seed, zone=1e-6)
        self._unlucky, self._loss = unlucky, loss
        self.loads = []

    def measure(self, trial):
        self.loads.append(trial.load)
        if len(self.loads) - 1 in self._unlucky:
            return TrialResult(trial, TrialOutput(self._loss))
        return super().measure(trial)


def test_an_unexpected_trial_asks_for_two_more():
    quiet, noisy = (asked(Unlucky(3, unlucky), question(1e-6)) for unlucky in ((), (3,)))
    assert (quiet.answer, noisy.answer) == (Answer.AS_BEFORE, Answer.AS_BEFORE)
    assert noisy.trials == quiet.trials + 3


def test_the_question_begins_anew_after_an_overload_if_its_first_trial_is_unexpected():
    routers = Unlucky(3, ()), Unlucky(3, (0,), loss=0.0)
    quiet, noisy = (asked(router, question(1e-6)) for router in routers)
    assert (quiet.answer, noisy.answer) == (Answer.AS_BEFORE, Answer.AS_BEFORE)
    first, overload, *anew = routers[1].loads
    assert (first, overload) == (routers[0].loads[0], MAX)
    assert anew == routers[0].loads


@pytest.mark.parametrize("number", [0, 3])
def test_a_trial_that_loses_far_more_than_any_before_begins_a_search(number):
    noisy = asked(Unlucky(3, (number,), loss=0.5), question(1e-6))
    assert (noisy.answer, noisy.trials) == (Answer.UNSURE, number + 1)


@pytest.mark.whole
@pytest.mark.parametrize(("spell", "most"), [(1.0, 0), (4.0, 5)])
def test_a_sut_that_has_become_slow_now_and_then_is_seldom_called_as_before(spell, most):
    ends = [asked(Spells(seed, spell), question()) for seed in range(100, 160)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) <= most


@pytest.mark.whole
@pytest.mark.parametrize(("unlucky", "answer"), [(4, Answer.UNSURE), (1000, Answer.CHANGED)])
def test_only_the_bounds_of_the_search_show_a_change(unlucky, answer):
    controller = MLRsearch(GOALS, MIN, MAX, question=question(1e-6), fail_fast=False)
    router = Unlucky(3, range(unlucky), loss=0.5)
    for _ in range(4):
        controller.record(router.measure(controller.next_trial()))
    assert controller.answer is Answer.UNSURE
    searched(controller, router)
    assert controller.answer is answer


def test_without_a_load_that_is_lossy_there_is_no_load_to_ask_at():
    passed = [TrialResult(TrialInput(1.0, load), TrialOutput(0.0)) for load in (MAX, MAX / 2) * 10]
    assert Question(GOALS, LoadGrid(MIN, MAX, NDR.width), passed).answer is Answer.UNSURE


@pytest.mark.parametrize(
    ("between", "answer"),
    [
        ((300e3, 310e3), Answer.UNSURE),
        ((400e3, 410e3), Answer.UNSURE),
        ((250e3, 260e3), Answer.CHANGED),
        ((450e3, 460e3), Answer.CHANGED),
    ],
)
def test_bounds_that_earlier_searches_had_are_no_change(between, answer):
    bands = {300e3: 0.0, 310e3: 0.1, 400e3: 0.0, 410e3: 0.1}
    earlier = [TrialResult(TrialInput(1.0, load), TrialOutput(loss)) for load, loss in bands.items()]
    asks = Question([NDR], LoadGrid(MIN, MAX, NDR.width), earlier * 5)
    asks.answer = Answer.UNSURE
    bounds = RelevantBounds(*between)
    assert asks.answer_after([GoalBounds(NDR, bounds, bounds)]) is answer
