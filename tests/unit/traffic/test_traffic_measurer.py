import time
from dataclasses import replace

import pytest

from lossratio.agent.core.generator import late_and_copies
from lossratio.traffic import Answer, TrafficMeasurer
from lossratio.trials import Exchange
from lossratio.trials.counters import NegativeLossError
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters

TRIAL = TrialInput(duration=1.0, load=100.0)


class Agent:
    """Answers with the counters of its trials, one after the other; of frames received, or sent and received."""

    def __init__(self, *counts):
        self.counts = list(counts)
        self.asked = []

    def run(self, plan):
        self.asked += plan.steps
        intended = round(sum(load * duration for load, duration in plan.steps))
        count = self.counts.pop(0)
        sent, received = count if isinstance(count, tuple) else (intended, count)
        counters = DirectionCounters(
            "a>b", intended_frames=intended, sent_frames=sent, received_frames=received, unsent_frames=intended - sent
        )
        return Answer((counters,))


def test_as_many_connections_are_opened_as_are_expected():
    """At 996.24 per second for half a second 499 are due: the last one begins in time."""
    asked = []

    class Connecting:
        def run(self, plan):
            count = plan.connections
            asked.append(count)
            return Answer((DirectionCounters("port0>port1", count, count, count),))

    trials = [TrialInput(0.5, load, exchange=Exchange()) for load in (996.24, 1000.0, 7 / 0.5)]
    outputs = [TrafficMeasurer(Connecting()).measure(trial) for trial in trials]
    assert asked == [499, 500, 7]
    assert [output.unsent_frames for output in outputs] == [0, 0, 0]


@pytest.mark.parametrize(("is_established", "forgotten"), [(False, 1), (True, 0)])
def test_devices_keep_connections_that_were_established_before(is_established, forgotten):
    emptied = []

    class Connecting:
        def run(self, plan):
            count = plan.connections
            return Answer((DirectionCounters("port0>port1", count, count, count),))

    exchange = Exchange(established=is_established)
    measurer = TrafficMeasurer(Connecting(), forget=lambda: emptied.append(True))
    measurer.measure(TrialInput(0.5, 1000.0, exchange=exchange))
    assert len(emptied) == forgotten


def test_a_surplus_of_frames_is_measured_again():
    agent = Agent(103, 101, 99)
    output = TrafficMeasurer(agent).measure(TRIAL)
    assert output.loss_ratio == 0.01
    assert agent.asked == [(100.0, 1.0)] * 3


def test_a_surplus_again_and_again_is_an_error_with_the_counters():
    agent = Agent(101, 102, 103, 100)
    with pytest.raises(NegativeLossError, match=r"a>b: sent 100, received 103.*2 earlier attempts failed"):
        TrafficMeasurer(agent, repeats=2).measure(TRIAL)
    assert len(agent.asked) == 3


def test_a_trial_in_which_the_generator_faltered_is_measured_again_whatever_the_sut_did():
    agent = Agent((99, 99), (97, 50), (100, 80), 100)
    output = TrafficMeasurer(agent).measure(TRIAL)
    assert output.loss_ratio == pytest.approx(0.2)
    assert output.repeats == 2
    assert len(agent.asked) == 3


def test_a_generator_that_falters_again_and_again_is_believed():
    output = TrafficMeasurer(Agent((99, 99), (98, 98), (97, 97)), repeats=2).measure(TRIAL)
    assert (output.unsent_frames, output.lost_frames, output.repeats) == (3, 0, 2)
    assert output.loss_ratio == pytest.approx(0.03)


def test_a_short_trial_is_measured_again_until_it_was_sent():
    agent = Agent(*[(99, 99)] * 8, 100)
    output = TrafficMeasurer(agent).measure(TrialInput(0.5, 200.0))
    assert (output.loss_ratio, output.unsent_frames, output.repeats) == (0.0, 0, 8)


def test_nine_repetitions_of_a_short_trial_that_do_not_help_are_not_tried_again_at_that_load():
    agent = Agent(*[(99, 99)] * 28)
    measurer = TrafficMeasurer(agent)
    outputs = [measurer.measure(TrialInput(0.5, load)) for load in (200.0, 200.0, 199.0, 202.0)]
    assert [(output.unsent_frames, output.repeats) for output in outputs] == [(1, 9), (1, 3), (1, 9), (2, 3)]
    assert agent.counts == []


def test_a_short_trial_whose_load_is_too_much_for_the_sut_is_measured_again_three_times_and_the_last_counts():
    agent = Agent((99, 99), (99, 99), (99, 90), (99, 99))
    output = TrafficMeasurer(agent).measure(TrialInput(0.5, 200.0))
    assert (output.unsent_frames, output.lost_frames, output.repeats) == (1, 0, 3)


@pytest.mark.parametrize("keeps_unsent", [False, True])
def test_a_trial_that_keeps_unsent_frames_is_measured_once(keeps_unsent):
    agent = Agent((99, 50), 100)
    output = TrafficMeasurer(agent).measure(replace(TRIAL, keeps_unsent=keeps_unsent))
    seen = (output.unsent_frames, output.lost_frames, output.repeats)
    assert seen == ((1, 49, 0) if keeps_unsent else (0, 0, 1))


def test_a_long_trial_is_measured_again_three_times_at_most():
    output = TrafficMeasurer(Agent(*[(99, 99)] * 4)).measure(TRIAL)
    assert (output.unsent_frames, output.repeats) == (1, 3)


def test_counters_that_are_refused_in_a_short_trial_are_asked_for_four_times():
    agent = Agent(101, 101, 101, 101)
    with pytest.raises(NegativeLossError, match="3 earlier attempts failed"):
        TrafficMeasurer(agent).measure(TrialInput(0.5, 200.0))
    assert agent.counts == []


def test_a_load_beyond_the_generators_limit_is_measured_twice_and_larger_loads_once():
    agent = Agent((90, 90), (90, 90), (80, 80), (89, 89), (88, 88))
    measurer = TrafficMeasurer(agent)
    outputs = [measurer.measure(trial) for trial in (TRIAL, TrialInput(1.0, 101.0), TrialInput(1.0, 99.0))]
    assert [(output.unsent_frames, output.repeats) for output in outputs] == [(10, 1), (21, 0), (11, 1)]
    assert len(agent.asked) == 5


def test_a_long_stall_is_not_taken_for_the_generators_limit():
    agent = Agent((91, 91), 100, (90, 90), (99, 99), 100)
    measurer = TrafficMeasurer(agent)
    assert [measurer.measure(TRIAL).unsent_frames for _ in range(2)] == [0, 0]
    assert len(agent.asked) == 5


def test_a_load_far_below_what_was_sent_is_measured_again_however_often_the_generator_was_held_up():
    # The second trial makes a limit of its own load; a third one at a quarter of the first is no question of capacity.
    agent = Agent(400, (300, 300), (300, 300), (80, 80), (90, 90), (85, 85), 100)
    measurer = TrafficMeasurer(agent)
    trials = [TrialInput(1.0, 400.0), TrialInput(1.0, 350.0), TRIAL]
    assert [measurer.measure(trial).unsent_frames for trial in trials] == [0, 50, 0]
    assert len(agent.asked) == 7


def test_all_tries_and_idle_times_count_as_elapsed():
    output = TrafficMeasurer(Agent(101, 100), idle_time=0.05).measure(TRIAL)
    assert output.elapsed >= 0.1


@pytest.mark.parametrize(
    ("arrived", "missing", "counted"),
    [(0, 5, (0, 0, 5)), (3, 5, (3, 0, 2)), (8, 5, (5, 3, 0)), (3, 0, (0, 3, 0)), (3, None, (3, 0, None))],
)
def test_no_more_frames_of_a_trial_are_late_than_it_missed_and_the_others_are_copies(arrived, missing, counted):
    assert late_and_copies(arrived, missing) == counted


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.slept = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.mark.parametrize(("rest", "idle_time", "slept"), [(0.0, 2.0, 2.0), (15.0, 2.0, 15.0), (15.0, 20.0, 20.0)])
def test_a_trial_waits_for_its_rest_or_for_the_duts_idle_time_if_that_is_longer(monkeypatch, rest, idle_time, slept):
    clock = Clock(monkeypatch)
    measurer = TrafficMeasurer(Agent(100, 100, 100), idle_time=idle_time)
    measurer.measure(TRIAL)
    output = measurer.measure(TrialInput(1.0, 100.0, rest=rest))
    assert output.elapsed == slept
    clock.now += 1.5
    measurer.measure(TrialInput(1.0, 100.0, rest=rest))
    assert clock.slept == [idle_time, slept, slept - 1.5]


def test_a_trial_that_is_measured_again_rests_again(monkeypatch):
    clock = Clock(monkeypatch)
    output = TrafficMeasurer(Agent(103, 101, 99)).measure(TrialInput(1.0, 100.0, rest=15.0))
    assert (output.loss_ratio, clock.slept) == (0.01, [15.0] * 3)


def test_the_first_trial_waits_for_what_is_missing_of_its_rest_since_the_trials_before(monkeypatch):
    clock = Clock(monkeypatch)
    rested = TrialInput(1.0, 100.0, rest=15.0)
    TrafficMeasurer(Agent(100), idle_time=2.0, quiet_since=clock.now - 11.0).measure(rested)
    TrafficMeasurer(Agent(100), idle_time=2.0, quiet_since=clock.now - 60.0).measure(rested)
    TrafficMeasurer(Agent(100), idle_time=2.0).measure(rested)
    assert clock.slept == [4.0, 2.0, 15.0]
