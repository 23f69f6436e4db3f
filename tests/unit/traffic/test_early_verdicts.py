"""Trials that are watched: when their verdict is certain, and what becomes of them then."""

from dataclasses import replace

import pytest
from traffic_lab import configure, drop

from lossratio.traffic import TrafficMeasurer, WatchedTrial
from lossratio.traffic.agent.core.early_verdict import SoFar, is_certain
from lossratio.traffic.answers import read_watched
from lossratio.trials import DirectionCounters, TrialInput, output_from_counters

HALF = SoFar(whole=1000, sent=500, unsent=0, received=480, in_flight=5.0, of_generator=4)
TRIAL = TrialInput(duration=1.0, load=1000.0, certain_above=0.01)


def test_frames_that_may_be_on_their_way_or_the_generators_are_not_lost_yet():
    assert HALF.lost == 11
    assert is_certain([HALF], 0.0109)
    assert not is_certain([HALF], 0.011)
    assert not is_certain([replace(HALF, received=491)], 0.0)


def test_a_surplus_of_one_direction_hides_no_loss_of_another():
    assert is_certain([HALF, replace(HALF, received=600)], 0.005)
    assert not is_certain([HALF, replace(HALF, received=600)], 0.0055)


def test_nothing_is_certain_where_frames_are_unsent():
    assert not is_certain([HALF, replace(HALF, unsent=1)], 0.0)


class Agent:
    """Answers watched trials with these, one after the other: sent, received, most missing, seconds until it ended."""

    def __init__(self, *watched):
        self.watched = list(watched)
        self.asked = []

    def trial(self, load, duration, ramp=0.0):
        self.asked.append(None)
        return (DirectionCounters("a>b", intended=1000, sent=1000, received=1000),)

    def watched_trial(self, load, duration, above, in_flight, ramp=0.0):
        self.asked.append((above, in_flight))
        sent, received, missing, ended = self.watched.pop(0)
        counters = DirectionCounters("a>b", intended=1000, sent=sent, received=received)
        return WatchedTrial((counters,), ended, ended is not None, {"a>b": missing})


def test_the_output_says_when_it_ended_and_how_much_was_lost_at_least():
    output = TrafficMeasurer(Agent((500, 480, 25, 0.5))).measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.unsent_frames, output.repeats) == (0.5, 0.02, 0, 0)


def test_a_verdict_that_was_none_is_measured_again_with_more_frames_allowed_for_on_their_way():
    agent = Agent((500, 495, 25, 0.5), (1000, 995, 30, None), (500, 400, 120, 0.5))
    measurer = TrafficMeasurer(agent)
    output = measurer.measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.repeats) == (None, 0.005, 1)
    # Twenty frames of 1,000 per second were on their way.
    assert agent.asked == [(0.01, 0.001), (0.01, 0.04)]
    assert measurer.measure(TRIAL).decided_after == 0.5
    assert agent.asked[-1] == (0.01, 0.04)


def test_after_verdicts_that_were_none_again_and_again_the_trial_takes_its_whole_duration():
    agent = Agent(*[(500, 495, 25, 0.5)] * 2)
    output = TrafficMeasurer(agent, repeats=2).measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.repeats) == (None, 0.0, 2)
    assert agent.asked[-1] is None


@pytest.mark.parametrize(
    "wrong", [{"certain_after": None}, {"most_missing": {}}, {"most_missing": {"a>b": 1.5}}, {"directions": []}]
)
def test_an_answer_that_is_none_is_refused(wrong):
    direction = {"name": "a>b", "intended": 9, "sent": 4, "received": 1, "unsent": 0, "generator_drops": 0}
    more = {"late_of_trial_before": 0, "elapsed": 0.5, "load_share": 1.0, "examination": None}
    answer = {"directions": [{**direction, **more}], "certain_after": 0.5, "ended": True, "most_missing": {"a>b": 3}}
    assert read_watched(answer, ["a>b"]).ended
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_watched({**answer, **wrong}, ["a>b"])


@pytest.mark.netns
def test_early_verdicts_on_real_frames_are_those_of_whole_trials(agent, bridged):
    configure(agent, settle_time=0.05)
    drop(bridged, "dut0", "limit rate over 4000/second burst 100 packets")
    for number in range(24):
        # The burst makes the knee of such a trial 5,000 frames per second.
        load, above = 5000.0 * (0.98 + 0.01 * (number % 12)), (0.0, 0.005)[number % 2]
        watched = agent.watched_trial(load, 0.1, above=above, in_flight=1e-3, ends=False)
        assert not watched.ended
        output = output_from_counters(TrialInput(0.1, load), watched.directions)
        assert output.loss_ratio > above or watched.certain_after is None
    # A hopeless load, of which a thousand frames make 0.5 %.
    watched = agent.watched_trial(8000.0, 20.0, above=0.005, in_flight=1e-3)
    assert watched.ended
    assert 0.4 < watched.certain_after < 3.0
    assert [direction.intended for direction in watched.directions] == [160_000] * 2
    output = output_from_counters(TrialInput(20.0, 8000.0), watched.directions, decided_after=watched.certain_after)
    assert output.loss_ratio > 0.005
    lossy, whole = watched.directions
    assert lossy.sent - lossy.received >= 1600
    assert whole.received == whole.sent < 40_000


@pytest.mark.netns
def test_a_running_trial_is_seen_and_counts_the_same(agent, bridged):
    configure(agent, settle_time=0.05)
    seen = []
    agent.see = lambda *frames: seen.append(frames)
    for measure in (
        lambda: agent.trial(2000.0, 1.3),
        lambda: agent.watched_trial(2000.0, 1.3, above=0.5, in_flight=1e-3).directions,
    ):
        assert [(direction.sent, direction.received) for direction in measure()] == [(2600, 2600)] * 2
        assert seen
        assert all(0 < frames <= 5200 for note in seen for frames in note)
        seen.clear()
    agent.see = None
    assert agent.trial(2000.0, 0.6)[0].received == 1200
    assert seen == []
