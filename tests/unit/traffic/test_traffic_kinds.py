"""All kinds of traffic through a real bridge."""

from dataclasses import asdict

import pytest
from at_least_one import at_least_one
from frame_samples import with_fields_of_scapy
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from traffic_lab import EAST, WEST, Capture, configure, drop
from whole_trials import run_latency, run_trial, whole

from lossratio.agent.core.configuration import PARTS, Configuration
from lossratio.agent.core.protocol import AgentError, read_record
from lossratio.errors import TrafficError
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials.counters import output_from_counters
from lossratio.trials.trial_input import TrialInput

pytestmark = pytest.mark.netns


def set_mtu(lab, mtu, *, tg=None):
    for node, names in (("tg", ("tg0", "tg1")), ("dut1", ("dut0", "dut1", "br0"))):
        for name in names:
            lab.run(node, "ip", "link", "set", "dev", name, "mtu", str(tg if tg and node == "tg" else mtu))


@pytest.mark.parametrize(
    ("profile", "frame_size"),
    [
        ("ethip6-ip6base", 78),
        ("ethip6-udp", "IMIX_v4_1"),
        ("ethip4-tcp", 128),
        ("dot1q-ip4base", 64),
        ("dot1q-ip4base", 1518),
        ("dot1ad-ip4base", 64),
        ("ethip4vxlan-ip4base", 114),
        ("dot1q-ip4vxlan-ip4base", 118),
        ("ethip4-udp-1mflows", 64),
        ("ethip4-udp-100kflows", "IMIX_v4_1"),
        ("ethip6-ip6scale2m-rnd", 78),
    ],
)
def test_every_kind_of_frame_comes_back_and_is_counted(agent, profile, frame_size):
    configure(agent, frame_size, profile=profile)
    for direction in at_least_one(run_trial(agent, 4000.0, 0.2)):
        assert direction.intended_frames == 800
        assert direction.received_frames == direction.sent_frames > 0


@pytest.mark.parametrize("profile", ["dot1q-ip4base", "dot1ad-ip4base"])
def test_tagged_frames_that_are_dropped_are_lost(agent, bridged, profile):
    configure(agent, profile=profile, bidirectional=False)
    drop(bridged, "dut0", "numgen inc mod 4 0")
    (direction,) = run_trial(agent, 2000.0, 0.2)
    assert direction.sent_frames - direction.received_frames in (
        direction.sent_frames // 4,
        -(-direction.sent_frames // 4),
    )


@pytest.mark.parametrize("profile", ["dot1q-ip4base", "ethip6-udp", "ethip4vxlan-ip4base"])
def test_latency_of_every_kind_of_frame_can_be_measured(agent, profile):
    configure(agent, 118, profile=profile)
    for direction in at_least_one(run_latency(agent, 2000.0, 0.3).latency):
        assert direction.error is None
        assert direction.received_frames == direction.sent_frames > 0


def test_jumbo_frames_need_ports_with_room_for_them(agent, bridged):
    with pytest.raises(TrafficError, match=r"Frames of 9000 bytes do not go through tg0, whose MTU is 1500\. Raise it"):
        configure(agent, 9000)
    set_mtu(bridged, 8982)
    configure(agent, 9000)
    for direction in run_trial(agent, 1000.0, 0.2):
        assert direction.received_frames == direction.sent_frames > 0


def test_two_tags_need_a_larger_mtu_and_one_does_not(agent, bridged):
    configure(agent, 1518, profile="dot1q-ip4base")
    with pytest.raises(TrafficError, match="MTU is 1500"):
        configure(agent, 1523, profile="dot1ad-ip4base")


def test_a_trial_goes_on_with_the_flows_where_the_last_one_ended(agent, bridged):
    configure(agent, 300, profile="ethip4-udp-1mflows", bidirectional=False)
    first = 0
    for _ in range(2):
        capture = Capture(bridged, "dut0", 30)
        (direction,) = run_trial(agent, 100.0, 0.5)
        seen, numbers = capture.frames(), range(first, first + 30)
        packets = [Ether(frame) for frame in seen]
        assert [packet[IP].src for packet in packets] == [f"198.18.0.{1 + number % 64}" for number in numbers]
        assert [packet[UDP].sport for packet in packets] == [1024 + number for number in numbers]
        assert [with_fields_of_scapy(frame) for frame in seen] == seen
        first = direction.sent_frames


def test_flows_beyond_the_first_round_of_the_ring_are_patched_in(agent, bridged):
    configure(agent, 1500, profile="ethip4-udp-100kflows", bidirectional=False)
    (direction,) = run_trial(agent, 20_000.0, 0.1)
    capture = Capture(bridged, "dut0", 20)
    run_trial(agent, 100.0, 0.2)
    seen = capture.frames()
    first = direction.sent_frames
    assert first > 1000
    assert [Ether(frame)[UDP].sport for frame in seen] == [1024 + number % 3125 for number in range(first, first + 20)]
    assert [Ether(frame)[IP].src for frame in seen] == [
        f"198.18.0.{1 + number % 32}" for number in range(first, first + 20)
    ]
    assert [with_fields_of_scapy(frame) for frame in seen] == seen


def test_a_direction_sends_its_share_of_the_load(agent):
    configure(agent, 512, profile="ethip4-udp-download")
    counters = whole(run_trial, agent, 2000.0, 0.25)
    assert [(direction.intended_frames, direction.load_ratio) for direction in counters] == [(500, 1.0), (250, 0.5)]
    assert all(direction.received_frames == direction.sent_frames > 0 for direction in counters)
    output = output_from_counters(TrialInput(0.25, 2000.0), counters)
    assert (output.loss_ratio, output.unsent_frames) == (0.0, 0)


def test_two_links_carry_traffic_in_parallel(agent, bridged):
    for number in (2, 3):
        bridged.veth("tg", f"tg{number}", "dut1", f"dut{number}")
    bridged.bridge("dut1", "br1", "dut2", "dut3")
    second = PortPair(TrafficPort("port2", "tg2"), TrafficPort("port3", "tg3"))
    profile = load_profile("ethip4-udp", frame_size=64)
    agent.configure(make_configuration(profile, [PortPair(WEST, EAST), second], settle_time=0.2))
    counters = run_trial(agent, 1000.0, 0.2)
    assert [direction.name for direction in counters] == ["port0>port1", "port1>port0", "port2>port3", "port3>port2"]
    assert all(
        direction.intended_frames == 200 and direction.received_frames == direction.sent_frames > 0
        for direction in counters
    )


@pytest.mark.parametrize("shares", [(0.5, 0.5), (1.0, 0.0), (1.0, 1.5)])
def test_shares_of_the_load_that_make_no_sense_are_refused(shares):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PortPair(WEST, EAST)], settle_time=0)
    data = asdict(configuration)
    for direction, share in zip(data["directions"], shares, strict=True):
        direction["load_share"] = share
    with pytest.raises(AgentError, match="shares of the load must be above 0, and the largest must be 1"):
        read_record(Configuration, data, PARTS)
