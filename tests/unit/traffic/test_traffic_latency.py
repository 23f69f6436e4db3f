"""Latency of real frames, measured by the embedded generator."""

import random
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from at_least_one import at_least_one
from traffic_lab import configure, drop, hold, received_by
from waiting import wait_until
from whole_trials import run_latency, run_trial, whole

from lossratio.agent.afpacket import clocks
from lossratio.agent.afpacket.clocks import ClockState, clock_state, state_of
from lossratio.agent.afpacket.latency import ClockWatch, Stamps, latency_frames, stamps_of, summarize
from lossratio.traffic import AgentRefusalError, by_traffic

real = pytest.mark.netns


def stamps(*seen):
    numbers, times = zip(*seen, strict=True) if seen else ((), ())
    return Stamps(np.array(numbers, dtype=np.int64), np.array(times, dtype=np.int64), 0, "one kernel")


LEFT = stamps((0, 1_000), (1, 2_000_000), (2, 4_000_000))
ARRIVED = stamps((0, 11_000), (1, 2_030_000), (2, 4_020_000))


def test_latencies_are_differences_of_the_same_frame_s_times():
    answer = summarize("a>b", LEFT, ARRIVED)
    assert (answer["sent_frames"], answer["received_frames"], answer["error"]) == (3, 3, None)
    assert (answer["least_us"], answer["mean_us"], answer["most_us"]) == (10.0, 20.0, 30.0)
    assert answer["jitter_us"] == 15.0
    assert answer["histogram"] == [[10.0, 1], [20.0, 1], [30.0, 1]]


def test_the_frame_in_the_middle_is_the_first_one_sent_after_it_that_came_back():
    assert summarize("a>b", LEFT, ARRIVED)["middle_us"] == 20.0
    # Of these, the middle is at 2,000,500 ns.
    later = stamps((0, 1_000), (1, 2_000_000), (2, 3_000_000), (3, 4_000_000))
    lost = stamps((0, 11_000), (1, 2_030_000), (3, 4_070_000))
    assert summarize("a>b", later, lost)["middle_us"] == 70.0
    at_last = stamps((0, 11_000), (1, 2_030_000))
    assert summarize("a>b", later, at_last)["middle_us"] is None


def test_a_frame_that_overtook_another_and_one_that_came_twice_are_distinguished():
    arrived = stamps((1, 2_030_000), (0, 2_031_000), (1, 2_040_000), (2, 4_020_000))
    answer = summarize("a>b", LEFT, arrived)
    assert (answer["received_frames"], answer["out_of_order_frames"], answer["duplicate_frames"]) == (3, 1, 1)
    assert answer["most_us"] == 2030.0
    assert dict(answer["histogram"])[30.0] == 1


@pytest.mark.parametrize(
    ("arrived", "error"),
    [
        (stamps(), "None of 3 latency frames came back"),
        (stamps((0, 900)), "before they left. The system's clock was set"),
        (stamps((7, 9_000_000)), "were never sent"),
        (Stamps(np.array([0]), np.array([2_000]), 5, "one kernel"), "More latency frames"),
    ],
)
def test_latencies_that_cannot_be_trusted_are_an_error(arrived, error):
    answer = summarize("a>b", LEFT, arrived)
    assert error in answer["error"]
    assert answer["least_us"] is answer["mean_us"] is answer["most_us"] is None
    assert answer["histogram"] == []


def test_latencies_by_a_clock_that_was_set_meanwhile_are_an_error():
    answer = summarize("a>b", LEFT, replace(ARRIVED, clock_was_set=True))
    assert "The system's clock was set" in answer["error"]
    assert answer["most_us"] is None


def follows(server="10.0.9.9", error_us=0.0, problem=""):
    return ClockState(server, error_us * 1000.0, problem)


def by_another_clock(ahead_us, left=follows(), arrived=follows()):  # noqa: B008 - they are frozen
    """The latency of frames whose receiver is another machine, with a clock that is ahead."""
    there = replace(ARRIVED, times=ARRIVED.times + 1000 * ahead_us, kernel="another kernel", clock=arrived)
    # As the agent at the other end hears of them.
    here = stamps_of(replace(LEFT, clock=left).as_message())
    return summarize("a>b", here, there)


@pytest.mark.parametrize("ahead_us", [-2, 0, 7])
def test_latencies_between_machines_are_stated_with_the_error_of_both_clocks_which_encloses_them(ahead_us):
    answer = by_another_clock(ahead_us, follows(error_us=1.5), follows(error_us=5.5))
    assert (answer["error"], answer["clock_error_us"]) == (None, 7.0)
    for name, truth in (("least_us", 10.0), ("mean_us", 20.0), ("most_us", 30.0)):
        assert abs(answer[name] - truth) <= answer["clock_error_us"]


@pytest.mark.parametrize(("ahead_us", "least"), [(-7, 3), (-17, -7), (-2000, -1990)])
def test_latencies_that_are_not_beyond_the_error_of_both_clocks_are_not_stated(ahead_us, least):
    answer = by_another_clock(ahead_us, follows(error_us=1.5), follows(error_us=5.5))
    told = f"The smallest latency is {least} µs by the clocks of both machines, which may differ by 7 µs (chrony, "
    assert told in answer["error"]
    assert answer["least_us"] is answer["most_us"] is None


@pytest.mark.parametrize(
    ("left", "arrived", "why"),
    [
        (follows(problem="chrony is not installed"), follows(), "at the sending end, chrony is not installed"),
        (follows(), follows(problem="chronyd does not answer"), "at the receiving end, chronyd does not answer"),
        (follows("10.0.9.9"), follows("10.0.9.8"), "the ends follow different servers, 10.0.9.9 and 10.0.9.8"),
    ],
)
def test_latency_between_machines_whose_clocks_are_not_known_is_not_measured_and_says_why(left, arrived, why):
    answer = by_another_clock(0, left, arrived)
    assert f"separate clocks, and {why}. Have chrony at both ends follow one nearby server" in answer["error"]
    assert answer["most_us"] is None
    assert answer["histogram"] == []


# What chronyc 4.3 says.
TRACKING = (
    "0A000909,10.0.9.9,2,1795767746.622117261,-0.000001428,0.000000072,0.000000414,-0.080,0.001,0.063,0.000002356,"
    "0.000002020,1.0,Normal"
)
SOURCES = "^,*,10.0.9.9,1,0,377,2,0.000000824,0.000000890,0.000001351\n^,-,10.0.9.8,1,0,377,2,0.0,0.0,0.0"


def columns(text):
    return [line.split(",") for line in text.splitlines()]


def test_the_error_of_a_clock_is_the_bound_of_chrony_s_manual():
    state = state_of(columns(TRACKING), columns(SOURCES))
    assert (state.reference, state.problem) == ("10.0.9.9 (0A000909)", "")
    # The offset, which may have either sign, the root dispersion, and half of the root delay.
    assert state.error_ns == pytest.approx(1428 + 2020 + 2356 / 2)


@pytest.mark.parametrize(
    ("tracking", "sources", "why"),
    [
        (TRACKING.replace("Normal", "Not synchronised"), SOURCES, "its clock is not synchronised"),
        (TRACKING, SOURCES.replace("*", "?"), "its clock is not synchronised"),
        (TRACKING, "#,*,PHC0,0,0,377,2,0.0,0.0,0.0", "follows its own reference clock, PHC0"),
    ],
)
def test_a_clock_that_follows_no_server_has_no_known_error(tracking, sources, why):
    assert why in state_of(columns(tracking), columns(sources)).problem


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "chrony is not installed"),
        ("exit 1", "chronyd does not answer (see 'chronyc tracking')"),
        ("echo nothing", "the answer of 'chronyc -c tracking' cannot be read"),
        (f"test $2 = sources && echo '{SOURCES}' || echo {TRACKING}", ""),
    ],
)
def test_a_node_is_asked_for_its_clock(monkeypatch, tmp_path, script, why):
    program = tmp_path / "chronyc"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setattr(clocks, "_CHRONYC", (str(program), "-c"))
    assert clock_state().problem == why


@pytest.mark.parametrize(("step", "is_noticed"), [(0, False), (1_000_000, True), (-1_000_000, True)])
def test_a_clock_that_is_set_is_noticed(monkeypatch, step, is_noticed):
    watch = ClockWatch()
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + step)
    assert watch.was_set() is is_noticed


@pytest.mark.parametrize("period", [2, 10, 16, 100])
def test_latency_frames_do_not_keep_step_with_anything(period):
    random.seed(20_260_101)
    frames = latency_frames(9_000.0, 10.0)
    assert len(frames) == len(set(frames)) == 9_000
    assert min(frames) >= 0
    assert max(frames) < 90_000
    hits = Counter(frame % period for frame in frames)
    expected = 9_000 / period
    assert sum((hits[place] - expected) ** 2 / expected for place in range(period)) < period + 5 * (2 * period) ** 0.5


@pytest.mark.whole
@pytest.mark.parametrize(("load", "duration", "count"), [(5.0, 1.0, 1), (400_000.0, 2.0, 2_000), (1e6, 600.0, 131_072)])
def test_latency_frames_are_a_tenth_of_a_load_and_a_thousand_a_second_at_most(load, duration, count):
    assert len(latency_frames(load, duration)) == count


@real
@pytest.mark.parametrize("frame_size", [64, 1518, "IMIX_v4_1"])
def test_latency_frames_are_a_part_of_the_load(agent, frame_size):
    configure(agent, frame_size)
    output = run_latency(agent, 3000.0, 0.4)
    for counters, latency in at_least_one(zip(output.directions, output.latency, strict=True)):
        assert counters.name == latency.direction
        assert abs(counters.intended_frames - 1200) <= 1
        assert counters.received_frames == counters.sent_frames
        assert counters.foreign_frames < 9
        assert (latency.error, latency.duplicate_frames, latency.out_of_order_frames) == (None, 0, 0)
        assert 0 < latency.received_frames == latency.sent_frames <= 121
        assert 0 < latency.least_us <= latency.mean_us <= latency.most_us
        assert sum(count for _, count in latency.histogram) == latency.received_frames
        assert latency.histogram[0][0] <= latency.least_us


@real
def test_a_device_that_treats_every_tenth_frame_in_another_way_does_so_to_a_tenth_of_the_latency_frames(agent, bridged):
    configure(agent, bidirectional=False)
    drop(bridged, "dut0", "numgen inc mod 10 0")
    (latency,) = whole(run_latency, agent, 5000.0, 0.8).latency
    assert latency.sent_frames == 400
    # 40, with a standard deviation of 6.
    assert 10 <= latency.sent_frames - latency.received_frames <= 70


@real
@pytest.mark.parametrize("profile", ["dot1q-ip4base", "ethip6-udp", "ethip4-udp-1mflows"])
def test_latency_frames_have_the_profile_s_headers(agent, profile):
    configure(agent, 118, profile=profile, bidirectional=False)
    (latency,) = run_latency(agent, 1000.0, 0.2).latency
    assert latency.error is None
    assert 0 < latency.received_frames == latency.sent_frames


@real
def test_a_queue_that_delays_frames_is_seen(agent, bridged):
    configure(agent, 1000, bidirectional=False)
    quick = run_latency(agent, 1000.0, 0.3).latency[0]
    bridged.run(
        "dut1", "tc", "qdisc", "replace", "dev", "dut1", "root", "tbf", "rate", "8mbit", "burst", "2000", "limit", "50k"
    )
    # A queue of 50,000 bytes that empties at a million bytes a second holds a frame up for 50 ms. A busy machine may
    # hold one up for longer, but not each time.
    for _ in range(20):
        (slow,) = run_latency(agent, 2000.0, 0.3).latency
        assert slow.most_us > 40_000
        assert slow.received_frames < slow.sent_frames
        if slow.most_us < 60_000:
            break
    assert quick.least_us < slow.most_us < 60_000


@real
def test_a_direction_that_fails_keeps_the_other_and_says_why(agent, bridged):
    configure(agent)
    drop(bridged, "dut1", "ether type ip")
    forward, backward = run_latency(agent, 2000.0, 0.2).latency
    assert forward.error is None
    assert backward.error.startswith(f"None of {backward.sent_frames} latency frames came back. ")
    assert backward.mean_us is None


@real
def test_trials_after_a_latency_trial_are_as_before(agent):
    configure(agent)
    run_latency(agent, 2000.0, 0.1)
    run_latency(agent, 2000.0, 0.1)
    for direction in at_least_one(run_trial(agent, 1000.0, 0.1)):
        assert (direction.received_frames, direction.late_frames) == (direction.sent_frames, 0)


@real
def test_latency_frames_that_a_device_holds_are_late_frames_of_their_trial(agent, bridged):
    configure(agent, bidirectional=False)
    # They need 1.3 s.
    hold(bridged, "dut1", 400_000)
    before = received_by(bridged, "tg1", "tg")
    output = run_latency(agent, 20_000.0, 0.05)
    (counters,), (latency,) = output.directions, output.latency
    assert latency.received_frames < latency.sent_frames
    wait_until(lambda: received_by(bridged, "tg1", "tg") >= before + counters.sent_frames)
    late, *of_earlier = by_traffic(agent.late_frames(0.1).values())
    assert counters.received_frames + late == counters.sent_frames
    assert not any(of_earlier)
    assert not any(by_traffic(agent.late_frames(0.0).values()))
    (after,) = run_trial(agent, 100.0, 0.1)
    assert (after.late_frames, after.received_frames) == (0, after.sent_frames)


@real
@pytest.mark.parametrize("begin", ["trial", "latency"])
def test_late_latency_frames_come_with_the_next_traffic_as_others_do(agent, bridged, begin):
    configure(agent, bidirectional=False)
    hold(bridged, "dut1", 400_000)
    before = received_by(bridged, "tg1", "tg")
    (counters,) = run_latency(agent, 20_000.0, 0.05).directions
    wait_until(lambda: received_by(bridged, "tg1", "tg") >= before + counters.sent_frames)
    (after,) = run_trial(agent, 100.0, 0.1) if begin == "trial" else run_latency(agent, 100.0, 0.1).directions
    assert counters.received_frames + after.late_frames == counters.sent_frames


@real
@pytest.mark.usefixtures("session")
def test_latency_is_refused_without_a_configuration(agent):
    with pytest.raises(AgentRefusalError, match="configure"):
        run_latency(agent, 1000.0, 0.1)
