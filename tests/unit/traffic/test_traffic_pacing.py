import math
from itertools import cycle

import pytest
from at_least_one import at_least_one
from hypothesis import example, given, strategies as st

from lossratio.agent.afpacket.receive import check_countable
from lossratio.agent.core.pacing import BATCH, CATCH_UP, LONGEST_STALL, frames_within, grace_after, transmit
from lossratio.agent.core.plan import RAMP_STEPS, Plan
from lossratio.agent.core.protocol import AgentError
from lossratio.trials.counters import output_from_counters
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters


class World:
    """A virtual clock, and a sender that needs time for every frame, wakes up late, and stalls at given times."""

    def __init__(self, seconds_per_frame=0.0, batch=128, stalls=(), lateness=(0.0,)):
        self.now = 0.0
        self.sent_at = []
        self._seconds_per_frame = seconds_per_frame
        self._batch = batch
        self._stalls = list(stalls)
        self._lateness = cycle(lateness)

    def clock(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        # No shorter than what this clock can still distinguish after a while.
        self._pass(max(seconds, 1e-9) + next(self._lateness))

    def offer(self, count):
        count = min(count, self._batch)
        self.sent_at += [self.now] * count
        self._pass(count * self._seconds_per_frame + 1e-6)
        return count

    def _pass(self, seconds):
        self.now += seconds
        if self._stalls and self.now >= self._stalls[0][0]:
            self.now += self._stalls.pop(0)[1]

    def transmit(self, load, duration, is_stopped=lambda: False, catch_up=CATCH_UP, note=None, is_patient=False):
        clocks = {"clock": self.clock, "sleep": self.sleep}
        return transmit(self.offer, load, duration, is_stopped, catch_up, is_patient=is_patient, note=note, **clocks)


@pytest.mark.parametrize(("seconds_per_frame", "gives_way"), [(1e-7, False), (2e-6, True)])
def test_a_sender_gives_way_to_others_only_while_it_is_behind(seconds_per_frame, gives_way):
    world, ways = World(seconds_per_frame), []
    clocks = {"clock": world.clock, "sleep": world.sleep, "give_way": lambda: ways.append(world.now)}
    transmit(world.offer, 1e6, 0.05, lambda: False, CATCH_UP, **clocks)
    # It is, a little, at the end of the trial.
    assert len(ways) > 100 if gives_way else len(ways) <= 2


def send_ramp(world, is_stopped=lambda: False):
    for load, seconds in Plan(((10_000.0, 1.0),), ramp=1.0).ramp_steps:
        transmit(world.offer, load, seconds, is_stopped, clock=world.clock, sleep=world.sleep)


def test_a_ramp_grows_from_nothing_to_the_load_in_its_time():
    world = World()
    send_ramp(world)
    assert world.now == pytest.approx(1.0, abs=1e-3)
    quarters = [sum(start <= at < start + 0.25 for at in world.sent_at) for start in (0.0, 0.25, 0.5, 0.75)]
    assert quarters == sorted(quarters)
    assert sum(quarters) == pytest.approx(5000, rel=0.01)
    assert quarters[-1] < 2500
    assert quarters[0] == pytest.approx(10_000 * sum(range(1, 6)) / (RAMP_STEPS + 1) / RAMP_STEPS, rel=0.05)


def test_a_ramp_ends_when_it_is_stopped():
    world = World()
    send_ramp(world, lambda: world.now > 0.1)
    assert world.now < 0.15


def test_traffic_without_an_end_can_be_stopped_while_the_interface_is_busy():
    world = World()

    def refuse(count):
        assert world.now < 1.0, "it does not look whether it is to stop"
        world.sleep(1e-3)
        return 0

    sent = transmit(refuse, 1000.0, None, lambda: world.now > 0.5, clock=world.clock, sleep=world.sleep).sent
    assert (sent, world.now) == (0, pytest.approx(0.5, abs=0.01))


loads = st.floats(1.0, 100_000.0)
durations = st.floats(0.001, 0.02)
durations_of_trials = st.floats(0.02, 10.0)
frames = st.floats(1.0, 2000.0)


@given(loads, durations)
def test_an_unhindered_sender_sends_every_frame_and_ends_on_time(load, duration):
    world = World()
    done = world.transmit(load, duration)
    assert done.sent == done.intended == frames_within(duration, load)
    assert duration <= done.elapsed <= duration + 5e-6


@pytest.mark.whole
@given(loads, durations)
def test_loss_ratios_expect_the_intended_frames(load, duration):
    done = World().transmit(load, duration)
    counters = DirectionCounters("a>b", intended_frames=done.intended, sent_frames=done.sent, received_frames=done.sent)
    assert output_from_counters(TrialInput(duration, load), [counters]).loss_ratio == 0.0


@pytest.mark.whole
@given(loads, durations)
def test_no_frame_leaves_much_too_late_or_much_too_early(load, duration):
    world = World()
    world.transmit(load, duration)
    for number, sent_at in at_least_one(enumerate(world.sent_at)):
        assert number / load - BATCH - 2e-6 <= sent_at <= number / load + BATCH + 1e-5


@given(loads, durations)
@example(11797.0, 0.001)
def test_the_first_and_the_last_frame_are_as_far_apart_as_they_are_due(load, duration):
    world = World()
    done = world.transmit(load, duration)
    assert world.sent_at[-1] - world.sent_at[0] == pytest.approx((done.sent - 1) / load, abs=5e-6)


@pytest.mark.whole
@given(st.floats(10_000.0, 100_000.0), st.floats(0.02, 0.2), st.floats(0.02, 0.05), st.floats(1.01, 1.2))
def test_a_policer_passes_its_rate_between_the_first_and_the_last_frame_and_its_burst(rate, burst_s, duration, excess):
    burst = int(rate * burst_s)
    load = (rate + burst / duration) * excess
    world = World()
    world.transmit(load, duration)
    assert passed(world.sent_at, rate, burst) == pytest.approx(rate * (len(world.sent_at) - 1) / load + burst, abs=2.0)


def passed(times, rate, burst):
    """How many frames a full bucket passes that are offered at these times."""
    tokens, last, count = float(burst), 0.0, 0
    for now in times:
        tokens, last = min(burst, tokens + (now - last) * rate), now
        if tokens >= 1.0:
            tokens, count = tokens - 1.0, count + 1
    return count


def test_a_short_stall_is_made_up_for():
    done = World(stalls=[(0.05, 0.0009)]).transmit(100_000.0, 0.1)
    assert done.sent == done.intended
    assert 0.0008 < done.worst_lateness < 0.001


@pytest.mark.parametrize("stall", [0.002, 0.005, 0.05])
def test_a_long_stall_is_made_up_for_by_one_millisecond_and_no_more(stall):
    world = World(stalls=[(0.03, stall)])
    done = world.transmit(100_000.0, 0.1)
    assert done.intended - done.sent == pytest.approx((stall - CATCH_UP) * 100_000, abs=22)
    burst = sum(1 for sent_at in world.sent_at if 0.03 + stall <= sent_at < 0.03 + stall + 1e-5)
    assert burst <= (CATCH_UP + BATCH) * 100_000 + 2


def test_as_much_is_made_up_for_as_was_asked_for():
    done = World(stalls=[(0.03, 0.05)]).transmit(10_000.0, 0.1, catch_up=0.02)
    assert done.intended - done.sent == pytest.approx((0.05 - 0.02) * 10_000, abs=12)


def test_a_stall_at_the_end_leaves_frames_unsent_and_does_not_stretch_the_trial():
    world = World(stalls=[(0.098, 0.005)])
    done = world.transmit(100_000.0, 0.1)
    assert done.intended - done.sent == pytest.approx(200, abs=22)
    assert max(world.sent_at) < 0.1
    assert done.worst_lateness == pytest.approx(0.005, abs=2e-4)


@pytest.mark.whole
@given(durations_of_trials, frames, st.floats(0.0, 0.05), st.lists(st.floats(0.0, 0.9), min_size=1, max_size=20))
@example(0.0625, 415.0, 0.0, [0.5])
def test_all_frames_due_before_the_end_are_sent_however_late_wake_ups_are_within_the_grace(
    duration, frames, catch_up, shares
):
    grace = grace_after(duration, catch_up)
    world = World(lateness=[share * grace for share in shares])
    done = world.transmit(frames / duration, duration, catch_up=max(catch_up, grace))
    assert done.sent == done.intended
    assert duration <= done.elapsed <= duration + grace


@pytest.mark.whole
@given(durations_of_trials, frames, st.floats(0.0, 0.05), st.lists(st.floats(0.0, 0.2), min_size=1, max_size=20))
def test_no_frame_leaves_later_than_the_grace_however_late_wake_ups_are(duration, frames, catch_up, lateness):
    world = World(lateness=lateness)
    done = world.transmit(frames / duration, duration, catch_up=catch_up)
    assert max(world.sent_at) < duration + grace_after(duration, catch_up)
    assert done.sent == len(world.sent_at) <= done.intended
    assert done.elapsed >= max(duration, *world.sent_at)


def test_the_last_frame_leaves_although_its_wake_up_comes_after_the_end():
    world = World(lateness=[15e-6])
    done = world.transmit(6443.0736560861815, 1.0)
    assert done.sent == done.intended == 6444
    assert 1.0 < done.elapsed < 1.0 + BATCH


@pytest.mark.parametrize(
    ("duration", "catch_up", "grace"), [(1.0, 1e-3, 1e-3), (60.0, 0.05, 0.05), (1.0, 0.05, 1e-3), (0.2, 0.0, 100e-6)]
)
def test_the_grace_is_a_thousandth_of_the_duration_and_never_more_than_is_made_up_for(duration, catch_up, grace):
    assert grace_after(duration, catch_up) == pytest.approx(grace)


def test_a_sender_that_is_too_slow_sends_what_it_can_until_the_end():
    done = World(seconds_per_frame=1e-5).transmit(1e6, 0.1)
    assert done.sent == pytest.approx(0.1 / 1e-5, rel=0.05)
    assert done.intended == 100_000
    assert done.elapsed < 0.1 + 128e-5 + 1e-4


def test_a_busy_interface_is_waited_for():
    world = World()
    refusals = iter([True] * 5)
    offer = world.offer
    world.offer = lambda count: 0 if next(refusals, False) else offer(count)
    done = world.transmit(1000.0, 0.1)
    assert done.sent == done.intended == 100


def test_traffic_without_an_end_goes_on_until_it_is_stopped():
    world = World()
    done = world.transmit(1000.0, None, is_stopped=lambda: world.now >= 0.5)
    assert done.sent == done.intended == pytest.approx(500, abs=21)
    assert 0.5 <= done.elapsed < 0.53


def test_a_trial_can_be_stopped_before_its_end():
    world = World()
    done = world.transmit(1000.0, 10.0, is_stopped=lambda: world.now >= 0.5)
    assert done.elapsed < 0.53
    # Frames that were due only later are not unsent.
    assert done.sent == done.intended == pytest.approx(500, abs=21)


def test_the_progress_of_a_trial_is_noted_after_each_batch_with_frames_that_were_skipped():
    world, noted = World(stalls=[(0.05, 0.01)]), []
    done = world.transmit(1000.0, 0.1, note=lambda *counts: noted.append(counts))
    assert noted[-1] == (done.sent, done.intended - done.sent)
    assert noted == sorted(noted)


@pytest.mark.parametrize(
    ("duration", "load", "frames"), [(1.0, 10.0, 10), (1.0, 10.5, 11), (0.1, 3.0, 1), (0.3, 10.0, 3)]
)
def test_a_fraction_of_a_frame_is_a_frame(duration, load, frames):
    assert frames_within(duration, load) == frames


def test_more_frames_than_the_kernel_counts_are_an_error_and_never_taken_for_loss():
    check_countable("port0>port1", 2**32 - 1)
    with pytest.raises(AgentError, match=f"port0>port1 sent {2**32} frames") as error:
        check_countable("port0>port1", 2**32)
    assert error.value.kind == "counters"


def test_a_burst_is_sent_to_its_last_frame_however_late():
    world = World(seconds_per_frame=15e-6, stalls=[(0.01, 0.3)])
    burst = world.transmit(100_000.0, 0.05, catch_up=math.inf)
    assert (burst.intended, burst.sent) == (5000, 5000)
    assert burst.elapsed > 0.3


def test_a_burst_that_takes_more_than_twice_its_time_is_given_up():
    world = World(seconds_per_frame=1e-3)
    burst = world.transmit(100_000.0, 0.05, catch_up=math.inf)
    assert burst.sent < burst.intended == 5000
    assert burst.elapsed == pytest.approx(2 * 0.05 + LONGEST_STALL, abs=0.2)


@pytest.mark.whole
@given(
    durations_of_trials,
    frames,
    st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.3)), max_size=3),
    st.lists(st.floats(0.0, 0.01), min_size=1, max_size=20),
)
def test_a_patient_sender_sends_every_frame_late_and_never_faster_than_the_load(duration, frames, stalls, lateness):
    load = frames / duration
    at = sorted((duration * place, stall) for place, stall in stalls)
    world = World(batch=10**6, stalls=at, lateness=[0.0, *lateness])
    done = world.transmit(load, duration, is_patient=True)
    if done.elapsed < 2.0 * duration + LONGEST_STALL:
        assert done.sent == done.intended
    # Within any time, what is due in it, in the batches around it, and what is made up for after a stall.
    most = (2.0 * BATCH + CATCH_UP) * load + 2
    for place in range(0, len(world.sent_at), max(1, len(world.sent_at) // 50)):
        first = world.sent_at[place]
        for last in range(place, len(world.sent_at), max(1, len(world.sent_at) // 50)):
            assert last - place <= (world.sent_at[last] - first) * load + most


def test_a_patient_sender_gives_up_after_twice_its_time():
    world = World(seconds_per_frame=1e-3)
    done = world.transmit(100_000.0, 0.05, is_patient=True)
    assert done.sent < done.intended == 5000
    assert done.elapsed < 2 * 0.05 + LONGEST_STALL + 0.2
