"""Bursts, schedules and outages with real frames, beside truths that are known without them."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import faulty_device
import pytest
from local_session import PYTHON, LocalSession
from traffic_lab import PAIR, configure, drop, received_by
from waiting import wait_until

from lossratio.traffic import AgentClient, AgentRefusalError, TrafficMeasurer, load_profile, make_configuration
from lossratio.trials import BurstRateError, Step, TrialInput

pytestmark = pytest.mark.netns

RATE, LOAD = 20_000, 50_000.0
"""Frames per second of the policer, and of bursts."""

PACING = 0.2e-3
"""Seconds by which the sender's batches and the device's wake-ups move a burst's frames."""

WITHIN = 2e-3
"""Seconds by which a measured time may differ from the known one."""

ATTEMPTS = 10
"""A busy machine may keep a process waiting, but not each time."""

FEW_BYTES, MOST_WAITING = 4096, 8
"""Bytes of frames that can wait in the device, and how many frames these are about."""


def measurer_of(agent, **options):
    configure(agent, settle_time=0.05, bidirectional=False, **options)
    return TrafficMeasurer(agent, repeats=2 * ATTEMPTS)


@pytest.mark.parametrize("size", [50, 1000])
def test_a_policer_passes_the_burst_that_the_arithmetic_gives_and_no_longer_one(agent, bridged, size):
    drop(bridged, "dut0", f"limit rate over {RATE}/second burst {size} packets")
    measurer = measurer_of(agent)
    known = math.floor((size - RATE / LOAD) / (1 - RATE / LOAD))
    error = math.ceil((1 + RATE * PACING) / (1 - RATE / LOAD))

    def lost(frames):
        time.sleep(size / RATE)
        output = measurer.measure(TrialInput.burst(frames, LOAD))
        assert (output.sent_frames, output.unsent_frames) == (frames, 0)
        return output.lost_frames

    assert any(lost(known - error) == 0 for _ in range(ATTEMPTS))
    assert lost(known + error) > 0
    # Beyond the longest burst, the policer passes its rate.
    expected = size + RATE * (3 * known - 1) / LOAD
    assert any(abs(3 * known - lost(3 * known) - expected) <= error for _ in range(ATTEMPTS))


def test_a_burst_has_the_rate_that_was_asked_for(agent, bridged):
    before = received_by(bridged, "dut0")
    output = measurer_of(agent).measure(TrialInput.burst(2000, LOAD))
    (timeline,) = output.timelines
    assert received_by(bridged, "dut0") - before == 2000 * (1 + output.repeats)
    assert timeline.rate == pytest.approx(LOAD, rel=0.01)
    assert (timeline.lost, timeline.steps[0].sent) == (0, 2000)


def test_a_rate_that_no_sender_keeps_is_one_clear_error(agent):
    configure(agent, settle_time=0.05)
    with pytest.raises(BurstRateError, match=r"cannot send a burst of 100000 frames at 50000000 frames/s") as error:
        TrafficMeasurer(agent, repeats=0).measure(TrialInput.burst(100_000, 50e6))
    assert 0 < error.value.rate < 50e6


def test_steps_follow_each_other_without_a_gap(agent):
    configure(agent, settle_time=0.05)
    schedule = TrialInput.schedule(Step(0.3, 20_000.0), Step(0.2, 10_000.0), Step(0.1, 30_000.0))
    for attempt in range(ATTEMPTS):
        output = TrafficMeasurer(agent).measure(schedule)
        starts = [[step.start for step in timeline.steps] for timeline in output.timelines]
        if output.unsent_frames == 0 and all(one == pytest.approx([0.0, 0.3, 0.5], abs=WITHIN) for one in starts):
            break
        assert attempt < ATTEMPTS - 1
    for timeline in output.timelines:
        assert [step.sent for step in timeline.steps] == [6000, 2000, 3000]
        assert (timeline.lost, timeline.outages, timeline.recovery_time()) == (0, (), 0.0)
    assert output.loss_ratio == 0.0


def test_every_lost_frame_has_its_place_in_time(agent, bridged):
    drop(bridged, "dut0", "numgen inc mod 10 9")
    output = measurer_of(agent).measure(TrialInput.schedule(Step(0.2, 10_000.0), Step(0.2, 5000.0)))
    (timeline,) = output.timelines
    sent = [step.sent for step in timeline.steps]
    assert [step.lost for step in timeline.steps] == [sent[0] // 10, sum(sent) // 10 - sent[0] // 10]
    assert (timeline.outage_count, timeline.lost) == (sum(sent) // 10, output.lost_frames)
    assert {outage.frames for outage in timeline.outages} == {1}
    assert [outage.first_sent for outage in timeline.outages] == sorted(outage.last_sent for outage in timeline.outages)


def test_a_device_that_never_recovers_loses_frames_until_the_end(agent, bridged):
    drop(bridged, "dut0", "limit rate over 1/second burst 1000 packets")
    output = measurer_of(agent).measure(TrialInput.schedule(Step(0.2, 10_000.0), Step(0.2, 5000.0)))
    (timeline,) = output.timelines
    assert timeline.outages[-1].duration is None
    assert timeline.recovery_time() == pytest.approx(0.2, abs=0.01)


def test_losses_of_frames_without_numbers_cannot_be_located(agent):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.05)
    frames = replace(configuration.directions[0].frames, is_numbered=False)
    agent.configure(replace(configuration, directions=(replace(configuration.directions[0], frames=frames),)))
    with pytest.raises(AgentRefusalError, match="no room") as error:
        TrafficMeasurer(agent).measure(TrialInput.schedule(Step(0.1, 1000.0)))
    assert error.value.kind == "unsupported"


@pytest.fixture
def device(netns_lab):
    """A process that forwards frames between the TG's ports, in which few bytes of frames can wait."""
    netns_lab.namespace("tg")
    netns_lab.namespace("dut1")
    netns_lab.veth("tg", "tg0", "dut1", "dut0")
    netns_lab.veth("tg", "tg1", "dut1", "dut1")
    script = (sys.executable, str(Path(faulty_device.__file__)), "dut0", "dut1", "none", "0", str(FEW_BYTES))
    process = netns_lab.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def measurer(netns_lab, device, tmp_path):
    """A measurer whose frames go through the device."""
    with AgentClient.start(LocalSession(netns_lab, "tg", tmp_path), python=PYTHON) as agent:
        yield measurer_of(agent)


def stop_for(device, seconds):
    """Stops a process for a time; the moments of its stop and its continuation."""
    os.kill(device.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    time.sleep(seconds)
    os.kill(device.pid, signal.SIGCONT)
    return stopped, time.monotonic()


def test_an_outage_is_as_long_as_the_device_was_stopped(measurer, device):
    load = 2000.0
    for attempt in range(ATTEMPTS):
        measurer.start_traffic(load, watch=True)
        measurer.wait(0.2)
        stopped, continued = stop_for(device, 0.15)
        measurer.wait(0.2)
        (timeline,) = measurer.stop_traffic().timelines
        silence = max(timeline.silences, key=lambda silence: silence.duration)
        outage = max(timeline.outages, key=lambda outage: outage.frames)
        errors = (
            timeline.began + silence.start - stopped,
            timeline.began + silence.end - continued,
            silence.duration - (continued - stopped),
            # Some frames wait in the device, and are not lost.
            outage.frames / timeline.rate - (continued - stopped) + MOST_WAITING / load,
        )
        if all(abs(error) <= WITHIN for error in errors[:3]) and abs(errors[3]) <= WITHIN + MOST_WAITING / load:
            break
        assert attempt < ATTEMPTS - 1, errors
    assert timeline.lost == sum(outage.frames for outage in timeline.outages)


def test_the_recovery_time_ends_when_the_device_goes_on(measurer, device):
    schedule = TrialInput.schedule(Step(0.4, 2000.0), Step(0.4, 1000.0))
    for attempt in range(ATTEMPTS):
        moments = []
        thread = threading.Timer(0.3, lambda into=moments: into.extend(stop_for(device, 0.25)))
        thread.start()
        (timeline,) = measurer.measure(schedule).timelines
        thread.join()
        known = moments[1] - timeline.began - timeline.steps[1].start
        if abs(timeline.recovery_time() - known) <= WITHIN + 1 / 1000.0:
            break
        assert attempt < ATTEMPTS - 1, (timeline.recovery_time(), known)


def test_a_link_that_goes_down_while_traffic_is_watched_is_an_outage_and_no_error(agent, bridged):
    measurer = measurer_of(agent)
    measurer.start_traffic(1000.0, watch=True)
    measurer.wait(0.1)
    at = measurer.now()
    bridged.run("dut1", "ip", "link", "set", "dev", "dut1", "down")
    bridged.run("dut1", "ip", "link", "set", "dev", "dut1", "up")
    before = received_by(bridged, "dut0")
    wait_until(lambda: received_by(bridged, "dut0") > before + 300)
    stopped = measurer.stop_traffic()
    (timeline,) = stopped.timelines
    assert timeline.lost == stopped.lost > 0
    assert timeline.outages[0].first_sent >= at - timeline.began - 0.01


def test_watched_traffic_stops_with_its_controller(agent, bridged, session):
    measurer_of(agent).start_traffic(1000.0, watch=True)
    process = session.processes[0].process
    process.stdin.close()
    assert process.wait() == 0
    before = received_by(bridged, "dut0")
    time.sleep(0.1)
    assert received_by(bridged, "dut0") == before
