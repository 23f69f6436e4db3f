"""The question whether a SUT is as in earlier searches."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lossratio.mlrsearch import NDR, PDR, Answer, IrregularReason, LoadGrid, MLRsearch, Question, Usual
from lossratio.trials import TrialInput, TrialOutput, TrialResult

GOALS = (NDR, PDR)
MIN, MAX = 10e3, 1e6
CAPACITY = 400e3
NIGHTS = 5


class Router:
    """A SUT that loses what is above its capacity, and below it some frames now and then, the more the nearer."""

    def __init__(self, seed, factor=1.0, *, zone=0.01, overload=1.0):
        self._rng = np.random.default_rng(seed)
        self._capacity = CAPACITY * factor
        self._overload = overload / factor
        self._zone = zone

    def measure(self, trial):
        at_max_load = trial.load == MAX
        capacity = self._capacity * (self._overload if at_max_load else 1.0)
        forwarded = capacity * (1.0 + self._rng.normal(0.0, 0.002))
        lost = max(0.0, 1.0 - forwarded / trial.load)
        chance = (trial.load / self._capacity - 1.0 + self._zone) / self._zone
        stalls = self._rng.random() < min(1.0, max(0.0, chance))
        return TrialResult(trial, TrialOutput(max(lost, 1e-4 if stalls else 0.0)))


def searched(controller, router):
    """All trials of a search."""
    trials = []
    while (trial := controller.next_trial()) is not None:
        trials.append(router.measure(trial))
        controller.record(trials[-1])
    return trials


@cache
def usual(zone=0.01, scale=1.0):
    """What five searches say."""
    nights = [searched(MLRsearch(GOALS, MIN, MAX), Router(seed, zone=zone)) for seed in range(NIGHTS)]
    grid = LoadGrid(MIN * scale, MAX * scale, NDR.width)
    trials = [
        TrialResult(TrialInput(trial.duration, trial.load * scale), trial.output) for night in nights for trial in night
    ]
    return Usual(GOALS, grid, trials)


def asked(router, question):
    """The question after its answer."""
    while question.answer is None:
        question.add(router.measure(TrialInput(1.0, question.next_load())))
    return question


def question(zone=0.01):
    return Question(usual(zone), MAX)


@pytest.mark.whole
@pytest.mark.parametrize("zone", [1e-6, 0.01])
def test_a_sut_that_is_as_before_is_called_so_after_a_quarter_of_a_search(zone):
    ends = [asked(Router(seed, zone=zone), question(zone)) for seed in range(100, 120)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) >= 17
    assert Answer.CHANGED not in [end.answer for end in ends]
    search = len(searched(MLRsearch(GOALS, MIN, MAX), Router(7, zone=zone)))
    assert np.median([end.trials for end in ends]) < search / 4


@pytest.mark.whole
@pytest.mark.parametrize("factor", [0.5, 0.95, 1.05, 2.0])
@pytest.mark.parametrize("zone", [1e-6, 0.01])
def test_a_change_of_five_per_cent_or_more_is_not_missed(factor, zone):
    ends = [asked(Router(seed, factor, zone=zone), question(zone)) for seed in range(100, 112)]
    assert Answer.AS_BEFORE not in [end.answer for end in ends]
    assert [end.answer for end in ends].count(Answer.CHANGED) >= 10


@pytest.mark.whole
@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_change_of_two_per_cent_is_missed_by_less_than_three_in_ten_questions(factor):
    ends = [asked(Router(seed, factor), question()) for seed in range(100, 130)]
    assert [end.answer for end in ends].count(Answer.AS_BEFORE) <= 9


@pytest.mark.whole
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_bounds_that_moved_are_not_missed_where_the_rate_at_maximum_load_stays(factor):
    ends = [asked(Router(seed, factor, overload=1.0), question()) for seed in range(100, 112)]
    stays = [asked(Router(seed, factor, overload=factor), question()) for seed in range(100, 112)]
    for answers in ends, stays:
        assert Answer.AS_BEFORE not in [end.answer for end in answers]


@pytest.mark.whole
def test_the_unit_of_loads_does_not_matter():
    one, other = question(), Question(usual(0.01, 8.0), MAX * 8.0)
    first, second = Router(5), Router(5)
    while one.answer is None:
        load = one.next_load()
        assert other.next_load() == pytest.approx(8.0 * load)
        one.add(first.measure(TrialInput(1.0, load)))
        there = second.measure(TrialInput(1.0, load))
        other.add(TrialResult(TrialInput(1.0, 8.0 * load), there.output))
        assert other.answer is one.answer


def test_trials_after_a_rest_and_after_the_answer_change_nothing():
    one = question()
    one.add(TrialResult(TrialInput(1.0, MAX, rest=15.0), TrialOutput(0.9)))
    assert one.trials == 0
    asked(Router(3), one)
    answer, trials = one.answer, one.trials
    one.add(TrialResult(TrialInput(1.0, MAX), TrialOutput(0.9)))
    assert (one.answer, one.trials) == (answer, trials)


def test_a_search_ends_without_bounds_if_the_sut_is_as_before():
    controller = MLRsearch(GOALS, MIN, MAX, question=question(), memory_rest=15.0)
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


def test_a_sut_that_passes_nothing_has_changed():
    one = question()
    while one.answer is None:
        one.add(TrialResult(TrialInput(1.0, one.next_load()), TrialOutput(1.0)))
    assert one.answer is Answer.CHANGED


@pytest.mark.whole
def test_early_verdicts_show_no_rate():
    controller = MLRsearch(GOALS, MIN, MAX, question=question(), early_verdict=True)
    first = controller.next_trial()
    assert first.certain_above == PDR.loss_ratio
    early = TrialResult(first, TrialOutput(0.006, decided_after=0.1))
    assert usual().density(early, np.array([-8.0, 0.0, 8.0])).tolist() == [1.0, 1.0, 1.0]


def test_without_a_load_that_is_lossy_sometimes_there_is_no_load_to_ask_at():
    passed = [TrialResult(TrialInput(1.0, load), TrialOutput(0.0)) for load in (MAX, MAX / 2) * 10]
    assert Usual(GOALS, LoadGrid(MIN, MAX, NDR.width), passed).loads == []
