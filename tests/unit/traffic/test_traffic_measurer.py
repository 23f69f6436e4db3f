import pytest

from lossratio.counters import NegativeLossError
from lossratio.traffic import TrafficMeasurer
from lossratio.trial import DirectionCounters, TrialInput

TRIAL = TrialInput(duration=1.0, load=100.0)


class Agent:
    """Answers with the counters of its trials, one after the other."""

    def __init__(self, *received):
        self.received = list(received)
        self.asked = []

    def trial(self, load, duration):
        self.asked.append((load, duration))
        return (DirectionCounters("a>b", intended=100, sent=100, received=self.received.pop(0)),)


def test_a_surplus_of_frames_is_measured_again():
    agent = Agent(103, 101, 99)
    output = TrafficMeasurer(agent).measure(TRIAL)
    assert output.loss_ratio == 0.01
    assert agent.asked == [(100.0, 1.0)] * 3


def test_a_surplus_again_and_again_is_an_error_with_the_counters():
    agent = Agent(101, 102, 103, 100)
    with pytest.raises(NegativeLossError, match=r"a>b: sent 100, received 103.*3 times in a row"):
        TrafficMeasurer(agent, repeats=2).measure(TRIAL)
    assert len(agent.asked) == 3


def test_a_surplus_can_count_as_loss_instead():
    agent = Agent(103)
    assert TrafficMeasurer(agent, negative_loss="csit").measure(TRIAL).loss_ratio == pytest.approx(0.03)


def test_all_tries_and_idle_times_count_as_elapsed():
    output = TrafficMeasurer(Agent(101, 100), idle_time=0.05).measure(TRIAL)
    assert output.elapsed >= 0.1
