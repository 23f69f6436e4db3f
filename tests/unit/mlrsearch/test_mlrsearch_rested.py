"""The last trials of a search, after a rest: does the SUT pass more then?"""

from __future__ import annotations

import pytest

from lossratio.arena.families import Inconstant
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, IrregularReason, MLRsearch
from lossratio.simulation import SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult

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


@pytest.mark.parametrize("early_verdict", [False, True])
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
def test_a_sut_at_half_rate_for_10_s_after_a_loss_passes_what_the_search_refused(goals, early_verdict):
    measurer = SimulatedMeasurer(HalfAfterLoss(7_650.0, 10.0), seed=1)
    controller, trials = searched(measurer, goals, early_verdict=early_verdict)
    asked = rested(trials)
    passed = [trial for trial in asked if trial.loss_ratio == 0.0]
    assert len(passed) == 5
    assert len(asked) <= 9
    assert 0.8 * 7_650 < max(trial.load for trial in passed) <= 7_650
    assert all(trial.duration == 1.0 and trial.input.certain_above is None for trial in asked)
    assert bounds(trials, goals) == bounds([trial for trial in trials if not trial.input.rest], goals)
    assert all(found.regular for found in controller.result().values())


def test_a_sut_that_is_only_slow_at_first_passes_whole_trials_where_early_verdicts_ended_them():
    controller, trials = searched(SlowAtFirst(), [NDR], early_verdict=True)
    assert controller.result()[NDR].relevant_upper_bound < 8_100
    passed = [trial.load for trial in rested(trials) if trial.loss_ratio == 0.0]
    assert len(passed) == 5
    assert 9_000 < max(passed) <= 10_000


@pytest.mark.parametrize("early_verdict", [False, True])
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
def test_a_sut_that_stays_the_same_is_asked_one_trial_more(goals, early_verdict):
    _, trials = searched(SimulatedMeasurer(SharpKnee(7_650.0), seed=1), goals, early_verdict=early_verdict)
    (last,) = rested(trials)
    assert last is trials[-1]
    assert last.elapsed == REST + 1.0


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
