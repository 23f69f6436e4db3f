import math
from fractions import Fraction

import numpy as np
import pytest

from lossratio.simulation import Buffer, ConstantLoss, Device, Policer, SharpKnee, SimulatedMeasurer
from lossratio.trials import BurstRateError, Step, TrialInput

OVERLOAD_AND_HALF = TrialInput.schedule(Step(2.0, 110e3), Step(3.0, 55e3))


def timeline(sut, trial, **settings):
    return SimulatedMeasurer(sut, seed=1, **settings).measure(trial).timelines[0]


def longest_burst(sut, load, most=200_000):
    """The longest burst without loss, by bisection."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if timeline(sut, TrialInput.burst(middle, load)).lost else (middle, high)
    return low


def token_bucket(rate, size, load, frames):
    """Numbers of the frames that a full token bucket loses, one frame after the other."""
    gain = Fraction(rate) / Fraction(load)
    tokens, lost = Fraction(size), []
    for number in range(frames):
        if number:
            tokens = min(Fraction(size), tokens + gain)
        if tokens >= 1:
            tokens -= 1
        else:
            lost.append(number)
    return lost


@pytest.mark.parametrize("size", [1, 50, 1000, 100_000])
@pytest.mark.parametrize("load", [100_001.0, 150_000.0, 1_488_095.25])
def test_the_longest_burst_through_a_bucket_is_what_the_arithmetic_gives(size, load):
    gain = Fraction(100_000) / Fraction(load)
    known = math.floor((size - gain) / (1 - gain))
    if known < 200_000:
        assert longest_burst(Policer(rate=1e5, burst=size), load) == known
        assert longest_burst(Buffer(capacity=1e5, size=size), load) == known
        assert longest_burst(Device(capacity=1e5, size=size), load) == known
    else:
        assert longest_burst(Policer(rate=1e5, burst=size), load) == 199_999


@pytest.mark.whole
@pytest.mark.parametrize(("rate", "size", "load"), [(7.0, 5.0, 10.0), (3.0, 2.0, 64.0), (99.0, 20.0, 100.0)])
def test_a_bucket_loses_the_very_frames_that_a_real_one_loses(rate, size, load):
    for frames in range(1, 300):
        known = token_bucket(rate, size, load, frames)
        course = timeline(Policer(rate=rate, burst=size), TrialInput.burst(frames, load))
        assert course.lost == len(known)
        assert course.last_lost == (known[-1] / load if known else None)


def test_a_bucket_is_full_again_after_size_over_rate():
    for settle, lost in ((0.99, True), (1.0, False)):
        measurer = SimulatedMeasurer(Policer(rate=1000.0, burst=1000), seed=1, settle=settle)
        longest = TrialInput.burst(longest_burst(Policer(rate=1000.0, burst=1000), 10_000.0), 10_000.0)
        assert measurer.measure(longest).loss_ratio == 0.0
        assert bool(measurer.measure(longest).timelines[0].lost) == lost


def test_a_burst_has_all_frames_and_the_rate_of_its_load():
    output = SimulatedMeasurer(ConstantLoss(), seed=1).measure(TrialInput.burst(777, 1e5))
    assert (output.sent_frames, output.unsent_frames, output.timelines[0].lost) == (777, 0, 0)
    assert output.timelines[0].rate == pytest.approx(1e5)


def test_a_burst_above_the_generator_s_rate_is_one_clear_error():
    with pytest.raises(BurstRateError, match="sends 90000 frames/s, and cannot send a burst of 50 frames") as error:
        timeline(ConstantLoss(), TrialInput.burst(50, 1e5), max_rate=9e4)
    assert error.value.rate == 9e4


def test_an_overload_that_ends_at_once_has_no_recovery_time():
    course = timeline(SharpKnee(capacity=100e3), OVERLOAD_AND_HALF)
    assert [step.lost for step in course.steps] == [20_000, 0]
    assert course.recovery_time() == 0.0


@pytest.mark.parametrize("recovery", [0.001, 0.25, 1.5])
def test_a_slow_recovery_is_seen_as_long_as_it_is(recovery):
    course = timeline(Device(capacity=100e3, recovery=recovery), OVERLOAD_AND_HALF)
    assert course.recovery_time() == pytest.approx(recovery, abs=3 / 55e3)
    assert None not in [outage.duration for outage in course.outages]


def test_a_sut_that_never_recovers_loses_until_the_end():
    course = timeline(Device(capacity=100e3, recovery=60.0, recovery_loss=1.0), OVERLOAD_AND_HALF)
    assert course.outages[-1].duration is None


def test_both_methods_of_rfc_6201_see_the_known_downtime():
    course = timeline(Device(capacity=1e6, downtime=0.3, resets=(2.0,)), TrialInput.schedule(Step(5.0, 1e5)))
    (outage,) = course.outages
    assert outage.frames / course.rate == pytest.approx(0.3, abs=1e-5)
    assert outage.duration == pytest.approx(0.3, abs=2e-5)
    assert (outage.first_sent, outage.last_sent) == pytest.approx((2.0, 2.3), abs=1.1e-5)


def test_directions_that_share_a_sut_share_its_losses():
    output = SimulatedMeasurer(Device(capacity=1e6, downtime=0.3, resets=(1.0,)), seed=1, directions=2).measure(
        TrialInput.schedule(Step(2.0, 1e4))
    )
    assert [course.lost for course in output.timelines] == [3000, 3000]
    assert [len(course.outages) for course in output.timelines] == [1, 1]
    slow = SimulatedMeasurer(Device(capacity=100e3, recovery=0.5), seed=1, directions=2)
    courses = slow.measure(TrialInput.schedule(Step(1.0, 55e3), Step(1.0, 27.5e3))).timelines
    assert [course.recovery_time() for course in courses] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert sum(course.steps[0].lost for course in courses) == pytest.approx(10_000, abs=1)


def test_the_counters_of_a_schedule_agree_with_its_timeline():
    output = SimulatedMeasurer(SharpKnee(capacity=80e3), seed=1, max_rate=100e3).measure(OVERLOAD_AND_HALF)
    (course,) = output.timelines
    assert output.lost_frames == course.lost == 40_000
    assert output.unsent_frames == pytest.approx(20_000, abs=2)
    assert np.sum([step.sent for step in course.steps]) == output.sent_frames
