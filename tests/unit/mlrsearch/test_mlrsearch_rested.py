"""The last trials of a search, after a rest: does the SUT pass more then?"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, IrregularReason, MLRsearch, RestAnswer, rest_answers
from lossratio.simulation import Buffer, Policer, SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult
from lossratio_study.families import Inconstant

MIN, MAX, REST = 900.0, 20_000.0, 15.0
GOAL_SETS = {"NDR and PDR": [NDR, PDR], "RFC 2544": [RFC2544], "TST009": [TST009]}


class HalfAfterLoss:
    """Forwards half of its capacity as soon as it has lost a frame, and for some seconds more."""

    def __init__(self, capacity, seconds):
        self.capacity, self.seconds = capacity, seconds

    def start(self, rng):
        weak_until = -1.0

        def lost_frames(traffic):
            nonlocal weak_until
            capacity = self.capacity / 2.0 if traffic.start < weak_until else self.capacity
            if traffic.load > capacity:
                capacity = self.capacity / 2.0
                weak_until = traffic.start + traffic.duration + self.seconds
            return max(0, int(traffic.frames - capacity * traffic.duration))

        return lost_frames


class SlowAtFirst:
    """Has a fifth of a trial's frames still in a queue when an early verdict looks; delivers all if it may go on."""

    def measure(self, trial):
        is_whole = trial.certain_above is None
        if trial.load > (10_000.0 if is_whole else 8_000.0):
            return TrialOutput(0.2, elapsed=trial.rest + trial.duration, decided_after=None if is_whole else 0.1)
        return TrialOutput(0.0, elapsed=trial.rest + trial.duration)


def searched(measurer, goals, **settings):
    """The controller and all trials of a search."""
    controller, trials = MLRsearch(goals, MIN, MAX, memory_rest=REST, **settings), []
    while (trial := controller.next_trial()) is not None:
        trials.append(TrialResult(trial, measurer.measure(trial)))
        controller.record(trials[-1])
        assert len(trials) < 1000
    return controller, trials


def rested(trials):
    return [trial for trial in trials if trial.input.rest]


def bounds(trials, goals):
    controller = MLRsearch(goals, MIN, MAX)
    for trial in trials:
        controller.record(trial)
    return {
        goal: (found.relevant_lower_bound, found.relevant_upper_bound) for goal, found in controller.result().items()
    }


@pytest.mark.whole
@pytest.mark.parametrize("early_verdict", [False, True])
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
def test_a_sut_at_half_rate_for_10_s_after_a_loss_passes_what_the_search_refused(goals, early_verdict):
    measurer = SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1)
    controller, trials = searched(measurer, goals, early_verdict=early_verdict)
    asked = rested(trials)
    passed = [trial for trial in asked if trial.loss_ratio == 0.0]
    assert len({trial.load for trial in passed}) == 5
    assert len(passed) == 7
    assert len(asked) <= 11
    assert 0.8 * 7_650 < max(trial.load for trial in passed) <= 7_650
    assert all(trial.duration == 1.0 and trial.input.certain_above is None for trial in asked)
    assert bounds(trials, goals) == bounds([trial for trial in trials if not trial.input.rest], goals)
    assert all(found.regular for found in controller.result().values())


def test_a_sut_that_is_only_slow_at_first_passes_whole_trials_where_early_verdicts_ended_them():
    controller, trials = searched(SlowAtFirst(), [NDR], early_verdict=True)
    assert controller.result()[NDR].relevant_upper_bound < 8_100
    passed = [trial.load for trial in rested(trials) if trial.loss_ratio == 0.0]
    assert len(set(passed)) == 5
    assert 9_000 < max(passed) <= 10_000


@pytest.mark.parametrize(
    ("sut", "most"),
    [(Policer(7_650.0, 400.0), 8_050.0), (Policer(7_650.0, 1_000.0), 8_650.0), (Buffer(7_650.0, 800.0), 8_450.0)],
)
def test_what_a_sut_forwards_in_a_failed_trial_after_a_rest_spares_the_loads_above(sut, most):
    # By halving, these took 9, 10 and 11 rests. A trial of 1 s after a rest passes the rate and the whole burst.
    _, trials = searched(SimulatedMeasurer(sut, seed=1), [RFC2544])
    asked = rested(trials)
    passed = {trial.load for trial in asked if trial.loss_ratio == 0.0}
    assert len(asked) == 8
    assert len(passed) == 5
    assert 0.98 * most < max(passed) <= most


@pytest.mark.whole
@pytest.mark.parametrize("early_verdict", [False, True])
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
def test_a_sut_that_stays_the_same_is_asked_one_trial_more(goals, early_verdict):
    _, trials = searched(SimulatedMeasurer(SharpKnee(7_650.0), seed=1), goals, early_verdict=early_verdict)
    (last,) = rested(trials)
    assert last is trials[-1]
    assert last.elapsed == REST + 1.0


def answers(trials, upper, allowed=0.0):
    return list(rest_answers(trials, upper, allowed).values())


class StarvedBox:
    """Forwards half of its capacity for 10 s after a loss; the generator leaves two frames of many trials unsent."""

    def __init__(self, seed):
        self.random, self.now, self.weak_until = random.Random(seed), 0.0, 0.0

    def measure(self, trial):
        self.now += trial.rest
        capacity = 3_750 if self.now < self.weak_until else 7_500
        unsent = 2 if trial.load < MAX and (trial.rest or self.random.random() < 0.5) else 0
        intended = round(trial.load * trial.duration)
        lost = max(0, intended - unsent - round(capacity * trial.duration))
        self.now += trial.duration
        if lost:
            self.weak_until = self.now + 10.0
        return counted(intended, lost, unsent, trial.rest + trial.duration)


def counted(intended, lost, unsent, elapsed=1.0):
    ratio = (lost + unsent) / intended
    counts = {"sent_frames": intended - unsent, "lost_frames": lost, "unsent_frames": unsent}
    return TrialOutput(ratio, **counts, elapsed=elapsed)


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_a_memory_is_seen_although_frames_were_not_sent(seed):
    controller, trials = searched(StarvedBox(seed), [NDR])
    found = answers(trials, controller.result()[NDR].relevant_upper_bound)
    assert found.count(RestAnswer.REMEMBERED) == 5


def test_a_load_that_passes_after_a_rest_is_measured_again_right_after_a_loss():
    _, trials = searched(SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1), [NDR])
    numbers = [number for number, trial in enumerate(trials) if trial.input.rest and trial.loss_ratio == 0.0]
    for number in numbers:
        after_rest, overload, control = trials[number : number + 3]
        assert (overload.load, overload.input.rest, control.input.rest) == (MAX, 0.0, 0.0)
        assert overload.loss_ratio > 0.0
        assert (control.load, control.duration) == (after_rest.load, after_rest.duration)
        assert control.loss_ratio > 0.0


@pytest.mark.parametrize("loads_again", [1, 2])
def test_loads_that_are_remembered_by_chance_answer_otherwise_when_they_are_asked_again(loads_again):
    box = SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1)
    asked = []

    class LikeABoxWithMemory:
        """Loses frames in each control by chance, but not in those that come after it was asked so often again."""

        def measure(self, trial):
            if trial.rest:
                asked.append(trial.load)
            output = box.measure(trial)
            is_over = len(asked) - len(set(asked)) >= loads_again and trial.load == asked[-1]
            return replace(output, loss_ratio=0.0, lost_frames=0, directions=()) if is_over else output

    controller, trials = searched(LikeABoxWithMemory(), [NDR])
    found = answers(trials, controller.result()[NDR].relevant_upper_bound)
    assert len(asked) - len(set(asked)) == loads_again
    assert (found.count(RestAnswer.REMEMBERED), found.count(RestAnswer.EASY)) == (4, 1)


def losing_now_and_then(seed, seconds):
    """A SUT of 8 kfps that loses a frame every so many seconds of traffic in the mean, and remembers nothing."""
    chance = random.Random(seed)

    class NowAndThen:
        def measure(self, trial):
            intended = round(trial.load * trial.duration)
            lost = max(0, intended - round(8_000 * trial.duration))
            lost += chance.random() < 1.0 - math.exp(-trial.duration / seconds)
            return counted(intended, min(lost, intended), 0, trial.rest + trial.duration)

    return NowAndThen()


@pytest.mark.parametrize("seconds", [20.0, 40.0])
def test_a_sut_that_loses_frames_now_and_then_remembers_nothing(seconds):
    passed_after_rest = 0
    for seed in range(6):
        controller, trials = searched(losing_now_and_then(seed, seconds), [RFC2544])
        upper = controller.result()[RFC2544].relevant_upper_bound
        found = answers(trials, upper)
        passed_after_rest += found.count(RestAnswer.EASY) + found.count(RestAnswer.REMEMBERED)
        assert found.count(RestAnswer.REMEMBERED) < 5
        assert len(rested(trials)) <= 12
    assert passed_after_rest > 0


def after(trial, loss=0.0, **counts):
    return TrialResult(trial, TrialOutput(loss, elapsed=trial.rest + trial.duration, **counts))


def test_only_a_load_that_passes_after_a_rest_and_fails_right_after_a_loss_is_remembered():
    rest, overload, control = TrialInput(1.0, 5e3, rest=15.0), TrialInput(1.0, MAX), TrialInput(1.0, 5e3)
    assert answers([after(rest, 0.1)], 4e3) == [RestAnswer.HARD]
    assert answers([after(rest)], 4e3) == [RestAnswer.PASSED]
    assert answers([after(rest), after(overload, 0.5), after(control, 0.1)], 4e3) == [RestAnswer.REMEMBERED]
    assert answers([after(rest), after(overload, 0.5), after(control)], 4e3) == [RestAnswer.EASY]
    # Without a loss before it, a trial is no control.
    assert answers([after(rest), after(overload), after(control, 0.1)], 4e3) == [RestAnswer.PASSED]
    two_unsent = TrialResult(rest, counted(5_000, 0, 2))
    assert answers([two_unsent], 4e3) == [RestAnswer.PASSED]
    assert answers([two_unsent], 4_999.0) == [RestAnswer.OPEN]
    assert answers([TrialResult(rest, counted(5_000, 1, 2))], 4_999.0) == [RestAnswer.HARD]


@pytest.mark.parametrize("unsent_after_rest", [True, False])
def test_a_trial_that_unsent_frames_leave_open_is_asked_again_and_not_for_ever(unsent_after_rest):
    controller, trials = searched(SimulatedMeasurer(SharpKnee(7_650.0), seed=1), [NDR])
    replay = MLRsearch([NDR], MIN, MAX, memory_rest=REST)
    for trial in trials[:-1]:
        replay.record(trial)
    asked = []
    while (trial := replay.next_trial()) is not None:
        intended = round(trial.load * trial.duration)
        is_open = bool(trial.rest) is unsent_after_rest
        asked.append(trial)
        replay.record(TrialResult(trial, counted(intended, 0, intended // 2 if is_open else 0)))
        assert len(asked) < 10
    assert len({trial.load for trial in asked if trial.rest}) == 1
    assert len(asked) == (3 if unsent_after_rest else 7)
    assert controller.result() == replay.result()


def test_trials_of_earlier_versions_without_controls_need_no_more():
    _, trials = searched(SimulatedMeasurer(SharpKnee(7_650.0), seed=1), [NDR])
    replay = MLRsearch([NDR], MIN, MAX, memory_rest=REST)
    for trial in trials[:-1]:
        replay.record(trial)
    for load in (7_700.0, 7_800.0, 8_000.0, 9_000.0, 12_000.0):
        replay.record(after(TrialInput(1.0, load, rest=REST)))
    assert replay.next_trial() is None


@pytest.mark.whole
def test_a_replayed_search_asks_nothing_again():
    measurer = SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1)
    _, trials = searched(measurer, [NDR, PDR])
    replay = MLRsearch([NDR, PDR], MIN, MAX, memory_rest=REST)
    for trial in trials:
        replay.record(trial)
    assert replay.next_trial() is None
    assert replay.result().finished


def test_at_the_maximum_load_the_trial_counts_for_its_bound():
    _, trials = searched(SimulatedMeasurer(SharpKnee(0.999 * MAX), seed=1), [NDR])
    (last,) = rested(trials)
    assert last.load == MAX
    controller = MLRsearch([NDR], MIN, MAX, memory_rest=REST)
    for trial in trials[:-1]:
        controller.record(trial)
    assert controller.result()[NDR].regular
    for _ in range(40):
        if (trial := controller.next_trial()) is None:
            break
        controller.record(TrialResult(trial, TrialOutput(0.0)))
    assert controller.next_trial() is None
    assert controller.result()[NDR].reason in (None, IrregularReason.MAX_LOAD_IS_LOWER_BOUND)


def test_without_a_rest_nothing_is_asked():
    controller = MLRsearch([NDR], MIN, MAX)
    measurer = SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1)
    while (trial := controller.next_trial()) is not None:
        assert trial.rest == 0.0
        controller.record(TrialResult(trial, measurer.measure(trial)))


def test_a_rest_passes_time_before_the_trial_and_is_part_of_it():
    measurer = SimulatedMeasurer(Inconstant(1e4, less=0.5, memory=10.0), seed=1)
    assert measurer.measure(TrialInput(1.0, 2e4)).loss_ratio == 0.5
    assert measurer.measure(TrialInput(1.0, 8e3)).loss_ratio == pytest.approx(0.375)
    after = measurer.measure(TrialInput(1.0, 8e3, rest=15.0))
    assert (after.loss_ratio, after.elapsed) == (0.0, 16.0)
