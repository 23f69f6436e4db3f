"""Questions after a rest that cost next to nothing: by the first trial, or after a long time without loss."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lossratio.mlrsearch import (
    NDR,
    PDR,
    RFC2544,
    TST009,
    MLRsearch,
    RestAnswer,
    failed_since_loss,
    fewer_after_rest,
    rest_answers,
)
from lossratio.simulation import SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult
from lossratio_study.families import Inconstant

MIN, MAX, REST, SHARE = 900.0, 20_000.0, 15.0, 0.25
CAPACITY = 7_650.0
LONGER = replace(NDR, duration_sum=121.0, name="longer NDR")
"""A search for it takes so long that a rest is no more than its share."""


class LessAfterRest:
    """Loses a part of a trial's frames that begins so many seconds after the last traffic, or later."""

    def __init__(self, seconds, lost):
        self.seconds, self.lost = seconds, lost

    def start(self, rng):
        ended = -math.inf

        def lost_frames(traffic):
            nonlocal ended
            is_asleep = traffic.start - ended >= self.seconds
            ended = traffic.start + traffic.duration
            asleep = round(self.lost * traffic.frames) if is_asleep else 0
            return max(asleep, int(traffic.frames - CAPACITY * traffic.duration))

        return lost_frames


def searched(sut, goals, **settings):
    """The trials of a search as users run it, and its controller."""
    settings = {"memory_rest": REST, "memory_share": SHARE, "has_rested": True, **settings}
    controller = MLRsearch(goals, MIN, MAX, **settings)
    measurer = SimulatedMeasurer(sut, seed=1)
    trials = []
    while (trial := controller.next_trial()) is not None:
        trials.append(TrialResult(trial, measurer.measure(trial)))
        controller.record(trials[-1])
        assert len(trials) < 1000
    return trials, controller


def rested(trials):
    """The numbers of the trials after a rest."""
    return [number for number, trial in enumerate(trials) if trial.input.rest]


def bounds(controller, goal=NDR):
    found = controller.result()[goal]
    return found.relevant_lower_bound, found.relevant_upper_bound


@pytest.mark.whole
def test_with_hints_the_first_trials_ask_in_turns_just_above_the_bounds_and_at_a_lower_one():
    nights = [searched(SharpKnee(CAPACITY), [NDR, PDR])[0]]
    for expected_above in (True, False, True):
        trials, controller = searched(SharpKnee(CAPACITY), [NDR, PDR], hints=nights)
        lower, _ = bounds(controller)
        _, upper = bounds(controller, PDR)
        assert rested(trials) == [0]
        assert trials[1].load == MAX
        load = trials[0].load
        assert (upper < load < 1.01 * upper) if expected_above else load == lower
        nights.append(trials)


@pytest.mark.whole
def test_the_question_of_the_first_trial_costs_no_rest_and_changes_no_bound():
    nights = [searched(SharpKnee(CAPACITY), [NDR, PDR])[0]]
    _, asked = searched(SharpKnee(CAPACITY), [NDR, PDR], hints=nights)
    _, alone = searched(SharpKnee(CAPACITY), [NDR, PDR], hints=nights, memory_rest=0.0)
    assert asked.elapsed <= alone.elapsed + 1.0
    assert bounds(asked) == bounds(alone)


@pytest.mark.whole
@pytest.mark.parametrize("has_rested", [True, False])
def test_a_search_waits_for_the_first_trial_where_the_last_one_took_four_times_as_long(has_rested):
    nights = [searched(SharpKnee(CAPACITY), [NDR])[0]]
    assert sum(trial.elapsed for trial in nights[0]) < REST / SHARE
    trials, _ = searched(SharpKnee(CAPACITY), [NDR], hints=nights, has_rested=has_rested)
    assert rested(trials) == ([0] if has_rested else [])
    nights = [searched(SharpKnee(CAPACITY), [RFC2544])[0]]
    trials, _ = searched(SharpKnee(CAPACITY), [RFC2544], hints=nights, has_rested=has_rested)
    assert rested(trials) == [0]


@pytest.mark.whole
def test_a_sut_that_remembers_is_found_by_the_first_trial_and_asked_further_when_the_search_is_over():
    sut = Inconstant(CAPACITY, less=0.5, memory=10.0)
    nights = [searched(sut, [LONGER])[0]]
    trials, controller = searched(sut, [LONGER], hints=nights)
    first, overload, control = trials[:3]
    assert (first.loss_ratio, overload.load, control.load) == (0.0, MAX, first.load)
    assert overload.loss_ratio > 0.0
    assert control.loss_ratio > 0.0
    answers = rest_answers(trials, bounds(controller, LONGER)[1], 0.0)
    assert list(answers.values()).count(RestAnswer.REMEMBERED) == 5
    assert min(rested(trials)[1:]) > 20


@pytest.mark.whole
def test_a_sut_that_passes_less_after_a_rest_is_asked_twice():
    sut = LessAfterRest(5.0, 0.03)
    night = searched(SharpKnee(CAPACITY), [LONGER])[0]
    above, _ = searched(sut, [LONGER], hints=[night])
    trials, controller = searched(sut, [LONGER], hints=[night, above])
    assert rested(trials) == [0, len(trials) - 2]
    found = fewer_after_rest(trials, 0.0)
    assert [trial.load for trial in found] == [bounds(controller, LONGER)[0]] * 2
    assert all(trial.loss_ratio == pytest.approx(0.03, rel=0.01) for trial in found)


@pytest.mark.whole
@pytest.mark.parametrize("sut", [LessAfterRest(5.0, 0.03), Inconstant(CAPACITY, less=0.5, memory=10.0)])
def test_a_search_that_is_short_beside_a_rest_asks_nothing_more(sut):
    nights = [searched(sut if isinstance(sut, Inconstant) else SharpKnee(CAPACITY), [NDR])[0]]
    for _ in range(2):
        trials, controller = searched(sut, [NDR], hints=nights)
        assert rested(trials) == [0]
        assert controller.elapsed < REST / SHARE
        nights.append(trials)

    night = searched(sut, [LONGER], memory_share=0.0)[0]
    trials, _ = searched(sut, [LONGER], hints=[night], memory_share=0.0)
    assert rested(trials) == [0]


@pytest.mark.whole
def test_a_first_trial_that_failed_by_chance_is_asked_again_once():
    night = searched(SharpKnee(CAPACITY), [NDR])[0]
    above, _ = searched(SharpKnee(CAPACITY), [NDR], hints=[night])
    controller = MLRsearch([NDR], MIN, MAX, hints=[night, above], memory_rest=REST, has_rested=True)
    measurer = SimulatedMeasurer(SharpKnee(CAPACITY), seed=1)
    trials = []
    while (trial := controller.next_trial()) is not None:
        output = measurer.measure(trial)
        trials.append(TrialResult(trial, output if trials else TrialOutput(0.001, elapsed=1.0)))
        controller.record(trials[-1])
    low = [trials[number] for number in rested(trials) if trials[number].load == trials[0].load]
    assert len(low) == 2
    assert len(fewer_after_rest(trials, 0.0)) == 1


@pytest.mark.parametrize("goal", [NDR, RFC2544, TST009], ids=str)
@pytest.mark.parametrize("share", [SHARE, 0.0])
def test_a_rest_that_nobody_asked_for_takes_no_more_than_its_share(goal, share):
    trials, controller = searched(SharpKnee(CAPACITY), [goal], memory_share=share)
    rests = sum(trial.input.rest for trial in trials)
    assert rests <= share * (controller.elapsed - rests)


@pytest.mark.parametrize("goal", [RFC2544, TST009], ids=str)
def test_a_trial_after_a_long_one_without_loss_takes_the_place_of_a_rest(goal):
    trials, controller = searched(SharpKnee(CAPACITY), [goal])
    assert rested(trials) == []
    failed = failed_since_loss(trials, bounds(controller, goal)[1], REST)
    assert failed is not None
    assert failed.load < 1.02 * CAPACITY
    assert failed_since_loss(trials, bounds(controller, goal)[1], 1000.0) is None


@pytest.mark.whole
def test_a_search_that_is_replayed_without_its_hints_asks_nothing_again():
    night = searched(SharpKnee(CAPACITY), [NDR])[0]
    for nights in ([night], [night, searched(SharpKnee(CAPACITY), [NDR], hints=[night])[0]]):
        for sut in (SharpKnee(CAPACITY), LessAfterRest(5.0, 0.03), Inconstant(CAPACITY, less=0.5, memory=10.0)):
            trials, _ = searched(sut, [NDR], hints=nights)
            replay = MLRsearch([NDR], MIN, MAX, memory_rest=REST, memory_share=SHARE)
            for trial in trials:
                replay.record(trial)
            assert replay.next_trial() is None


def test_a_pair_shows_less_after_a_rest_only_at_one_load_right_after_each_other():
    rest, again = TrialInput(1.0, 5e3, rest=REST), TrialInput(1.0, 5e3)
    failed, passed = TrialResult(rest, TrialOutput(0.1)), TrialResult(again, TrialOutput(0.0))
    between = TrialResult(TrialInput(1.0, MAX), TrialOutput(0.5))
    assert fewer_after_rest([failed, passed], 0.0) == (failed,)
    assert fewer_after_rest([failed, passed], 0.2) == ()
    assert fewer_after_rest([failed, between, passed], 0.0) == ()
    assert fewer_after_rest([failed, TrialResult(again, TrialOutput(0.1))], 0.0) == ()
    assert fewer_after_rest([TrialResult(rest, TrialOutput(0.0)), passed], 0.0) == ()
