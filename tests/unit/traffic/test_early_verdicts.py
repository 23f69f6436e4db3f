"""Trials that are watched: when their verdict is certain, and what becomes of them then."""

import pytest
from traffic_lab import configure, drop, hold
from whole_trials import run_trial, run_watched, whole

from lossratio.agent import Plan
from lossratio.agent.core.early_verdict import Lookout, ReceivedSoFar, SentSoFar, wait_for_held_frames
from lossratio.traffic import Answer, TrafficMeasurer
from lossratio.traffic.answers import read_answer
from lossratio.trials import IN_FLIGHT, DirectionCounters, TrialInput, output_from_counters

TRIAL = TrialInput(duration=1.0, load=1000.0, certain_above=0.01)
HALF = (SentSoFar(sent=500, unsent=0, kept=3), ReceivedSoFar(received=480, dropped=1))


def is_certain(above, *directions):
    """Whether a trial of 1000 frames in each direction ends, of which half have been sent, and 5 may be in flight."""
    plan = Plan(((1000.0, 1.0),), above=above, in_flight=0.005)
    names = [str(number) for number in range(len(directions))]
    lookout = Lookout(plan, dict.fromkeys(names, 1000.0), lambda *_: None)
    sent, received = (dict(zip(names, ends, strict=True)) for ends in zip(*directions, strict=True))
    return lookout.sees(sent, received)


def test_a_verdict_is_certain_where_more_frames_are_lost_than_the_whole_trial_may_lose():
    assert is_certain(0.0109, HALF)
    assert not is_certain(0.011, HALF)
    assert not is_certain(0.0, (HALF[0], ReceivedSoFar(491, 1)))


def test_a_surplus_of_one_direction_hides_no_loss_of_another():
    assert is_certain(0.005, HALF, (HALF[0], ReceivedSoFar(600, 1)))
    assert not is_certain(0.0055, HALF, (HALF[0], ReceivedSoFar(600, 1)))


def test_nothing_is_certain_where_frames_are_unsent():
    assert not is_certain(0.0, HALF, (SentSoFar(500, 1, 3), HALF[1]))


class Agent:
    """Answers watched trials with these, one after the other: sent, received, most missing, seconds until it ended."""

    def __init__(self, *watched):
        self.watched = list(watched)
        self.asked = []

    def run(self, plan):
        if plan.above is None:
            self.asked.append(None)
            return Answer((DirectionCounters("a>b", intended_frames=1000, sent_frames=1000, received_frames=1000),))
        self.asked.append((plan.above, plan.in_flight))
        sent, received, missing, ended = self.watched.pop(0)
        counters = DirectionCounters("a>b", intended_frames=1000, sent_frames=sent, received_frames=received)
        return Answer((counters,), certain_after=ended, ended=ended is not None, most_missing={"a>b": missing})


def test_the_output_says_when_it_ended_and_how_much_was_lost_at_least():
    output = TrafficMeasurer(Agent((500, 480, 25, 0.5))).measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.unsent_frames, output.repeats) == (0.5, 0.02, 0, 0)


def test_a_verdict_that_was_none_is_measured_again_with_more_frames_allowed_for_on_their_way():
    agent = Agent((500, 495, 25, 0.5), (1000, 995, 30, None), (500, 400, 120, 0.5))
    measurer = TrafficMeasurer(agent)
    output = measurer.measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.repeats) == (None, 0.005, 1)
    # Twenty frames of 1,000 per second were on their way.
    assert agent.asked == [(0.01, IN_FLIGHT), (0.01, 0.04)]
    assert measurer.measure(TRIAL).decided_after == 0.5
    assert agent.asked[-1] == (0.01, 0.04)


def test_the_allowance_doubles_where_a_verdict_was_none_and_falls_where_verdicts_are_right():
    none, right, seen = (500, 495, 5, 0.5), (500, 400, 100, 0.5), (500, 400, 103, 0.5)
    agent = Agent(none, none, *[right] * 40, seen, right)
    measurer = TrafficMeasurer(agent)
    for _ in range(42):
        measurer.measure(TRIAL)
    allowances = [asked[1] for asked in agent.asked]
    assert allowances[:3] == [IN_FLIGHT, 2 * IN_FLIGHT, 4 * IN_FLIGHT]
    assert allowances[3] == pytest.approx(0.9 * 4 * IN_FLIGHT)
    # Never less than at first, nor than twice of what was seen on its way.
    assert allowances[-2:] == [IN_FLIGHT, 0.006]


def test_after_verdicts_that_were_none_again_and_again_the_trial_takes_its_whole_duration():
    agent = Agent(*[(500, 495, 25, 0.5)] * 2)
    output = TrafficMeasurer(agent, repeats=2).measure(TRIAL)
    assert (output.decided_after, output.loss_ratio, output.repeats) == (None, 0.0, 2)
    assert agent.asked[-1] is None


@pytest.mark.parametrize(
    "wrong", [{"certain_after": None}, {"most_missing": {}}, {"most_missing": {"a>b": 1.5}}, {"directions": []}]
)
def test_an_answer_that_is_none_is_refused(wrong):
    direction = {
        "name": "a>b",
        "intended_frames": 9,
        "sent_frames": 4,
        "received_frames": 1,
        "unsent_frames": 0,
        "generator_drop_frames": 0,
    }
    more = {"late_frames": 0, "elapsed_s": 0.5, "load_ratio": 1.0, "examination": None}
    answer = {"directions": [{**direction, **more}], "certain_after": 0.5, "ended": True, "most_missing": {"a>b": 3}}
    plan = Plan(((9.0, 1.0),), above=0.5)
    assert read_answer(answer, ["a>b"], plan).ended
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_answer({**answer, **wrong}, ["a>b"], plan)


@pytest.mark.parametrize(
    ("last_frame", "left", "settle_time", "waited"),
    [
        (0.0, 5.0, 0.005, 0.1),  # Nothing comes any more.
        (0.35, 5.0, 0.005, 0.45),  # Frames come for a while.
        (9.0, 0.3, 0.005, 0.4),  # Frames come for longer than the whole trial would have taken.
        (0.0, 5.0, 0.5, 0.5),  # A device that takes long.
    ],
)
def test_after_an_early_verdict_frames_are_awaited_as_long_as_they_come(last_frame, left, settle_time, waited):
    now, looks = [0.0], []

    def sleep(seconds):
        now[0] += seconds

    wait_for_held_frames(
        lambda: int(min(now[0], last_frame) * 1000),
        left,
        settle_time,
        lambda: looks.append(now[0]),
        clock=lambda: now[0],
        sleep=sleep,
    )
    assert now[0] == pytest.approx(waited, abs=0.041)
    assert now[0] >= waited - 1e-6
    assert max(b - a for a, b in zip([0.0, *looks], looks, strict=False)) < 0.05


@pytest.mark.netns
def test_frames_that_the_device_held_back_take_an_early_verdict_back(agent, bridged):
    configure(agent, 1000, settle_time=0.005, bidirectional=False)
    # It forwards 1,000 frames per second, and has room for the others.
    hold(bridged, "dut1", 8_000_000)
    watched = whole(run_watched, agent, 1500.0, 10.0, above=0.005, in_flight=1e-3)
    (direction,) = watched.directions
    assert watched.ended
    assert direction.received_frames == direction.sent_frames < direction.intended_frames
    assert watched.were_in_flight > 75


@pytest.mark.netns
def test_early_verdicts_on_real_frames_are_those_of_whole_trials(agent, bridged):
    configure(agent, settle_time=0.05)
    drop(bridged, "dut0", "limit rate over 4000/second burst 100 packets")
    for number in range(24):
        # The burst makes the knee of such a trial 5,000 frames per second.
        load, above = 5000.0 * (0.98 + 0.01 * (number % 12)), (0.0, 0.005)[number % 2]
        watched = run_watched(agent, load, 0.1, above=above, in_flight=1e-3, ends=False)
        assert not watched.ended
        output = output_from_counters(TrialInput(0.1, load), watched.directions)
        assert output.loss_ratio > above or watched.certain_after is None
    # A hopeless load, of which a thousand frames make 0.5 %.
    watched = whole(run_watched, agent, 8000.0, 20.0, above=0.005, in_flight=1e-3)
    assert watched.ended
    assert 0.4 < watched.certain_after < 10.0
    assert [direction.intended_frames for direction in watched.directions] == [160_000] * 2
    output = output_from_counters(TrialInput(20.0, 8000.0), watched.directions, decided_after=watched.certain_after)
    assert output.loss_ratio > 0.005
    lossy, other = watched.directions
    assert lossy.sent_frames - lossy.received_frames >= 1600
    assert other.received_frames == other.sent_frames < 80_000


@pytest.mark.netns
def test_a_running_trial_is_seen_and_counts_the_same(agent, bridged):
    configure(agent, settle_time=0.05)
    seen = []
    agent.see = lambda *frames: seen.append(frames)
    for measure in (
        lambda: run_trial(agent, 2000.0, 1.3),
        lambda: run_watched(agent, 2000.0, 1.3, above=0.5, in_flight=1e-3).directions,
    ):
        counters = whole(measure)
        assert [(direction.sent_frames, direction.received_frames) for direction in counters] == [(2600, 2600)] * 2
        assert seen
        assert all(0 < frames <= 5200 for note in seen for frames in note)
        seen.clear()
    agent.see = None
    assert whole(run_trial, agent, 2000.0, 0.6)[0].received_frames == 1200
    assert seen == []
