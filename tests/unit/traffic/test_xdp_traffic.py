"""The generator inside the kernel, with real traffic between namespaces: counts, faults of devices, and late frames."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from at_least_one import at_least_one
from local_session import PYTHON
from traffic_lab import EAST, WEST, drop, hold, received_by
from waiting import wait_until
from whole_trials import hold_load, run_latency, run_trial, run_watched, whole
from xdp_lab import NEEDS, REPEATS, configure

from lossratio.traffic import PortPair, TrafficPort, by_traffic, load_profile, make_configuration
from lossratio.trials import TrialInput, output_from_counters, read_counts

pytestmark = NEEDS


def lossy_flows(way):
    """How many of the direction's flows lost a frame."""
    flows = len(read_counts(way.losses.flows_known))
    lost = read_counts(way.losses.flows_lost)
    return sum(any(lost[flow::flows]) for flow in range(flows))


@pytest.mark.parametrize("size", [64, 1518, "IMIX_v4_1"])
def test_all_frames_come_back_intact_and_once_both_ways(ready, agent, size):
    facts = configure(agent, frame_size=size)
    assert facts["receives"] == {"tg0": "native", "tg1": "native"}
    for load, duration in ((20_000, 0.1), (3_333, 0.2)):
        for direction in whole(run_trial, agent, load, duration):
            assert direction.sent_frames == direction.intended_frames == round(load * duration + 0.49)
            assert (direction.received_frames, direction.examined_frames, direction.faulty) == (
                direction.sent_frames,
                direction.sent_frames,
                0,
            )


def test_a_ramp_is_not_counted_and_its_frames_are(ready, agent):
    configure(agent)
    # A busy machine may keep frames of the ramp from being sent, but not each time.
    for _ in range(20):
        before = received_by(ready, "dut0")
        east, west = run_trial(agent, 5_000, 0.1, ramp=0.2)
        ramp = received_by(ready, "dut0") - before - east.sent_frames
        assert (east.intended_frames, west.intended_frames) == (500, 500)
        assert (east.received_frames, west.received_frames) == (east.sent_frames, west.sent_frames)
        if ramp >= 400:
            break
    assert ramp >= 400


def test_early_verdicts_are_those_of_whole_trials(ready, agent):
    configure(agent, settle_time=0.05)
    drop(ready, "dut0", "limit rate over 4000/second burst 100 packets")
    for number in range(12):
        # The burst makes the knee of such a trial 5,000 frames per second.
        load, above = 5_000 * (0.98 + 0.01 * number), (0.0, 0.005)[number % 2]
        watched = run_watched(agent, load, 0.1, above=above, in_flight=1e-3, ends=False)
        assert not watched.ended
        output = output_from_counters(TrialInput(0.1, load), watched.directions)
        assert output.loss_ratio > above or watched.certain_after is None
    # A hopeless load, of which a thousand frames make 0.5 %.
    watched = whole(run_watched, agent, 8_000, 20.0, above=0.005, in_flight=1e-3)
    assert watched.ended
    assert 0.4 < watched.certain_after < 10.0
    assert [(direction.intended_frames, direction.unsent_frames) for direction in watched.directions] == [
        (160_000, 0)
    ] * 2
    lossy, other = watched.directions
    assert lossy.sent_frames - lossy.received_frames >= 1_600
    assert other.received_frames == other.sent_frames < 80_000
    # Nothing of it is left for the next trial.
    (_, west) = run_trial(agent, 4_000, 0.1)
    assert (west.received_frames, west.late_frames) == (west.sent_frames, 0)
    (_, west) = whole(run_trial, agent, 4_000, 0.1)
    assert (west.sent_frames, west.received_frames) == (400, 400)


def test_frames_that_the_device_held_back_take_an_early_verdict_back(ready, agent):
    configure(agent, frame_size=1000, settle_time=0.005, bidirectional=False)
    # It forwards 1,000 frames per second, and has room for the others.
    hold(ready, "dut1", 8_000_000)
    watched = whole(run_watched, agent, 1_500, 10.0, above=0.005, in_flight=1e-3)
    (direction,) = watched.directions
    assert watched.ended
    assert direction.received_frames == direction.sent_frames < direction.intended_frames


def test_a_running_trial_is_seen_and_counts_the_same(ready, agent):
    configure(agent, settle_time=0.05)
    seen = []
    agent.see = lambda *frames: seen.append(frames)
    counters = whole(run_trial, agent, 2_000, 1.2)
    assert [(direction.sent_frames, direction.received_frames) for direction in counters] == [(2_400, 2_400)] * 2
    assert seen
    assert all(0 < frames <= 4_800 for note in seen for frames in note)


def test_traffic_flows_between_start_and_stop(ready, agent):
    configure(agent)
    before = received_by(ready, "dut0")
    hold_load(agent, 2_000)
    wait_until(lambda: received_by(ready, "dut0") >= before + 900)
    stopped = agent.stop(0.1)
    assert stopped.sent == stopped.received > 900
    assert stopped.late == 0
    quiet = received_by(ready, "dut0")
    time.sleep(0.1)
    assert received_by(ready, "dut0") == quiet


@pytest.mark.smoke
def test_loss_of_one_direction_is_its_own(ready, agent):
    configure(agent)
    drop(ready, "dut0", "numgen inc mod 4 == 0")
    east, west = whole(run_trial, agent, 4_000, 0.25)
    assert (east.sent_frames, east.received_frames) == (1_000, 750)
    assert (west.sent_frames, west.received_frames) == (1_000, 1_000)
    # Each fourth frame of 254 flows in turn: those of every other flow.
    assert (lossy_flows(east), west.losses) == (127, None)
    assert (east.displacement_frames, west.displacement_frames) == (0, 0)
    assert 0 < west.latency_median_us <= west.latency_99_us * 1.01 <= west.latency_most_us * 1.03
    assert west.jitter_us > 0


def sleep_between_polls(lab, namespace, interface, seconds):
    """Has the kernel look into an interface's ring so rarely, as where a processor stands still."""
    settings = {"gro_flush_timeout": round(seconds * 1e9), "napi_defer_hard_irqs": 1_000_000}
    for name, value in settings.items():
        lab.run(namespace, "sh", "-c", f"echo {value} > /sys/class/net/{interface}/{name}")


def test_frames_that_the_ring_of_a_link_has_no_room_for_are_unsent_and_no_loss(ready, agent):
    configure(agent, settle_time=0.5)
    sleep_between_polls(ready, "dut1", "dut0", 0.05)
    # 1,000 frames come from one look into the ring of 256 to the next one.
    # A busy machine may leave frames unsent for its own reasons, but not each time.
    for _ in range(20):
        east, west = run_trial(agent, 20_000, 0.2)
        assert 0 < east.refused_frames <= east.unsent_frames == east.intended_frames - east.sent_frames
        sent = (east.sent_frames, west.sent_frames, 0)
        assert (east.received_frames, west.received_frames, west.refused_frames) == sent
        if east.unsent_frames == east.refused_frames:
            break
    assert east.unsent_frames == east.refused_frames


def test_the_latency_of_every_frame_is_known(ready, agent):
    configure(agent)
    output = whole(run_latency, agent, 5_000, 0.2)
    for direction in at_least_one(output.latency):
        assert (direction.sent_frames, direction.received_frames, direction.error) == (1_000, 1_000, None)
        assert 0 < direction.least_us <= direction.mean_us <= direction.most_us
        assert sum(count for _, count in direction.histogram) == 1_000
        edges = [edge for edge, _ in direction.histogram]
        assert edges == sorted(edges)
        assert direction.least_us <= edges[0] < direction.least_us * 1.01
        assert edges[-1] <= direction.most_us


REFLECTOR = """
import signal, socket
from lossratio.bpf import Attachment
from lossratio.dut.xdp.device.device import Forwarder, Way
number = socket.if_nametoindex("tg1")
way = Way("back", leaving=number, macs=None, rules=None, every=1, faults=(), reflects=True)
forwarder = Forwarder(way, None)
link = Attachment(forwarder.program, number, "native")
print("attached", flush=True)
signal.pause()
"""


def longest(agent, pair, frames=200, load=1000):
    """Seconds that the slowest frame of a trial took, by the clock of the TG."""
    profile = load_profile("ethip4-udp", frame_size=1000, bidirectional=False)
    configuration = make_configuration(profile, [pair], settle_time=0.5)
    agent.configure(configuration, generator="xdp", options={"catch_up": 10.0})
    for _ in range(REPEATS):
        output = run_latency(agent, load, frames / load)
        if output.directions[0].sent_frames == frames:
            break
    (latency,) = output.latency
    assert (latency.sent_frames, latency.received_frames) == (frames, frames)
    return latency.most_us / 1e6


def test_a_round_trip_has_the_delays_of_both_ways_by_one_clock(ready, agent):
    """Two queues that keep frames: what the last of them waits for is arithmetic."""
    slow, slower = 6_400_000, 5_000_000

    def waits(bits_per_second):
        return (200 * 996 - 2_000) * 8 / bits_per_second - 0.2

    hold(ready, "dut1", slow)
    one_way = longest(agent, PortPair(WEST, EAST))
    agent.configure(  # Another generator, so that the port has no program any more.
        make_configuration(load_profile("ethip4-udp", frame_size=64), [PortPair(WEST, EAST)], settle_time=0.1),
        generator="afpacket",
    )
    far = TrafficPort("port0", EAST.interface)
    near = replace(WEST, destination_mac=ready.mac("tg", EAST.interface))
    reflector = ready.popen("tg", PYTHON, "-c", REFLECTOR, stdout=subprocess.PIPE)
    try:
        assert reflector.stdout.readline() == b"attached\n"
        there_and_back = longest(agent, PortPair(near, far, is_reflected=True))
        hold(ready, "dut0", slower)
        both = longest(agent, PortPair(near, far, is_reflected=True))
    finally:
        reflector.kill()
        reflector.communicate()
    # Nothing waits on the way back at first, and then the slower one of both queues decides.
    assert one_way == pytest.approx(waits(slow), abs=0.015)
    assert there_and_back == pytest.approx(one_way, abs=0.015)
    assert both == pytest.approx(waits(slower), abs=0.015)


def test_several_senders_share_one_direction(ready, agent):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("one processor")
    facts = configure(agent, bidirectional=False, cpus=cpus)
    assert facts["cpus"] == cpus
    (east,) = whole(run_trial, agent, 10_001, 0.1)
    assert (east.sent_frames, east.received_frames, east.faulty) == (1_001, 1_001, 0)


def test_two_senders_of_a_direction_count_loss_order_and_flows_over_a_link_of_four_queues(ready, agent):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    queues = ("numtxqueues", "4", "numrxqueues", "4")
    ready.run("tg", "ip", "link", "add", "qa", *queues, "type", "veth", "peer", "name", "qb", *queues)
    for name in ("qa", "qb"):
        ready.run("tg", "ip", "link", "set", "dev", name, "up")
        ready.run("tg", "ethtool", "-K", name, "gro", "on")
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    pair = PortPair(TrafficPort("qa", "qa"), TrafficPort("qb", "qb"))
    options = {"catch_up": 10.0, "cpus_per_direction": 2}
    facts = agent.configure(make_configuration(profile, [pair], settle_time=0.1), generator="xdp", options=options)
    assert facts["receives"] == {"qb": "native"}
    assert len(facts["cpus"]) == 2
    before = received_by(ready, "qb", "tg")
    (way,) = whole(run_trial, agent, 100_001, 0.2)
    assert received_by(ready, "qb", "tg") - before >= way.received_frames
    assert (way.sent_frames, way.received_frames, way.faulty) == (20_001, 20_001, 0)
    assert (way.reordered_frames, way.extent_frames, way.losses) == (0, 0, None)


def test_lost_flows_of_two_senders_are_counted(ready, agent):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    loaded = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    configuration = make_configuration(loaded, [PortPair(WEST, EAST)], settle_time=0.1)
    # The driver does not count all frames of two senders that share a queue.
    cpus = str(os.cpu_count())
    ready.run("tg", "ethtool", "-L", "tg0", "rx", cpus, "tx", cpus)
    ready.run("dut1", "ethtool", "-L", "dut0", "rx", cpus, "tx", cpus)
    agent.configure(configuration, generator="xdp", options={"catch_up": 10.0, "cpus_per_direction": 2})
    drop(ready, "dut0", "ip saddr 198.18.0.1-198.18.0.3")
    for _ in range(REPEATS):
        (way,) = whole(run_trial, agent, 10_160, 0.2)
        by_the_host = way.sent_frames - way.received_frames - 3 * 8
        # Two senders may leave no processor to the devices, whose queues then lose frames of any flows.
        assert by_the_host >= 0
        assert 3 <= lossy_flows(way) <= 3 + by_the_host
        if by_the_host == 0:
            break
    assert (way.sent_frames, way.received_frames, lossy_flows(way)) == (2_032, 2_008, 3)


def held_by_a_device(ready):
    """A device that stands still until it is called to forward some frames."""
    ready.run("dut1", "ip", "link", "set", "dev", "dut0", "nomaster")
    device = ready.popen("dut1", sys.executable, "-c", HOLDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert device.stdout.readline() == "ready\n"

    def forward(frames):
        device.stdin.write(f"{frames}\n")
        device.stdin.flush()
        assert device.stdout.readline() == f"{frames} forwarded\n"

    return forward


def test_frames_of_an_earlier_trial_are_late_and_not_this_ones(ready, agent):
    configure(agent, settle_time=0.0, bidirectional=False)
    forward = held_by_a_device(ready)
    (east,) = run_trial(agent, 1_000, 0.1)
    assert east.received_frames == 0 < east.sent_frames
    forward(east.sent_frames)
    assert sum(by_traffic(agent.late_frames(0.1).values())) == east.sent_frames
    (east,) = run_trial(agent, 1_000, 0.1)
    assert (east.received_frames, east.late_frames) == (0, 0)
    forward(east.sent_frames)
    # They came before the next trial began.
    (later,) = run_trial(agent, 1_000, 0.1)
    assert (later.received_frames, later.late_frames) == (0, east.sent_frames)


def test_late_frames_of_several_earlier_trials_are_counted_apart(ready, agent):
    configure(agent, settle_time=0.0, bidirectional=False)
    forward = held_by_a_device(ready)
    sent = [run_trial(agent, 1_000 * number, 0.1)[0].sent_frames for number in (1, 2, 3)]
    forward(sent[0])
    (fourth,) = run_trial(agent, 1_000, 0.1)
    assert (fourth.late_frames, fourth.earlier_late_frames) == (0, (0, sent[0]))
    forward(sent[1] + sent[2])
    (fifth,) = run_trial(agent, 1_000, 0.1)
    assert (fifth.received_frames, fifth.late_frames) == (0, 0)
    assert (fifth.earlier_late_frames, fifth.foreign_frames) == ((sent[2], sent[1]), 0)
    forward(fourth.sent_frames)
    assert by_traffic(agent.late_frames(0.1).values()) == [0, fourth.sent_frames]


HOLDS = """
import socket, sys
west, east = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3 << 8) for _ in range(2))
west.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)
west.bind(("dut0", 3))
east.bind(("dut1", 0))
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        east.send(west.recv(2048))
    print(int(line), "forwarded", flush=True)
"""
