"""Bursts and schedules of the generator inside the kernel, with real frames."""

from __future__ import annotations

import math
import time

import pytest
from traffic_lab import drop
from whole_trials import run_trial
from xdp_lab import NEEDS, REPEATS, configure

from lossratio.traffic import AgentRefusalError, TrafficMeasurer
from lossratio.trials import Step, TrialInput

pytestmark = NEEDS


def test_a_burst_has_all_its_frames_at_its_rate(ready, agent):
    configure(agent)
    output = TrafficMeasurer(agent, repeats=REPEATS).measure(TrialInput.burst(3000, 100_000.0))
    assert (output.sent_frames, output.lost_frames, output.unsent_frames) == (6000, 0, 0)
    for timeline in output.timelines:
        assert timeline.rate == pytest.approx(100_000.0, rel=0.02)
        assert abs(timeline.began - time.monotonic()) < 60.0


def test_a_policer_passes_the_burst_that_the_arithmetic_gives(ready, agent):
    drop(ready, "dut0", "limit rate over 20000/second burst 500 packets")
    configure(agent, bidirectional=False)
    measurer, known = TrafficMeasurer(agent, repeats=REPEATS), math.floor((500 - 0.4) / (1 - 0.4))

    def lost(frames):
        time.sleep(500 / 20_000)
        return measurer.measure(TrialInput.burst(frames, 50_000.0)).lost_frames

    # A wake-up of the device that is 0.2 ms late moves the result by 7 frames.
    assert any(lost(known - 8) == 0 for _ in range(10))
    assert lost(known + 8) > 0


def test_every_lost_frame_of_a_schedule_has_its_step(ready, agent):
    drop(ready, "dut0", "numgen inc mod 10 9")
    configure(agent, bidirectional=False)
    output = TrafficMeasurer(agent).measure(TrialInput.schedule(Step(0.2, 20_000.0), Step(0.2, 10_000.0)))
    (timeline,) = output.timelines
    sent = [step.sent for step in timeline.steps]
    assert sum(sent) == output.sent_frames > 0
    assert [step.lost for step in timeline.steps] == [sent[0] // 10, sum(sent) // 10 - sent[0] // 10]
    assert (timeline.lost, timeline.steps[1].start) == (output.lost_frames, 0.2)
    assert 0.0 < timeline.steps[0].last_lost <= timeline.steps[1].last_lost
    # The last tenth frame is one of the last ten.
    assert timeline.steps[1].last_lost >= timeline.steps[1].start
    assert abs(timeline.began - time.monotonic()) < 60.0


def test_a_policer_recovers_at_once_and_a_device_that_loses_all_does_not(ready, agent):
    drop(ready, "dut0", "limit rate over 10000/second burst 200 packets")
    configure(agent)
    measurer = TrafficMeasurer(agent)
    schedule = TrialInput.schedule(Step(0.3, 20_000.0), Step(0.3, 10_000.0 / 2))
    for attempt in range(10):
        policed, other = measurer.measure(schedule).timelines
        assert policed.steps[0].lost > 0
        # A stall of the machine is made up for, and may empty the bucket again.
        if policed.recovery_time() < 1e-3 and other.lost == 0:
            break
        assert attempt < 9, policed
    drop(ready, "dut1", "limit rate over 1/second burst 1000 packets")
    for attempt in range(10):
        _, lossy = measurer.measure(schedule).timelines
        assert lossy.steps[1].lost == lossy.steps[1].sent
        if lossy.recovery_time() == pytest.approx(0.3, abs=0.05):
            break
        assert attempt < 9, lossy


def test_schedules_whose_times_are_not_kept_and_outages_are_refused(ready, agent):
    configure(agent)
    measurer = TrafficMeasurer(agent)
    with pytest.raises(AgentRefusalError, match=r"times of only 1,048,576 frames of each sender, but 2,000,000"):
        measurer.measure(TrialInput.schedule(Step(0.1, 2e6), Step(2.0, 1e6)))
    with pytest.raises(AgentRefusalError, match="cannot tell when running traffic loses frames"):
        measurer.start_traffic(1000.0, watch=True)
    assert run_trial(agent, 1000.0, 0.01)
