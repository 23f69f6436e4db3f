"""What the embedded generator sees of devices that change, repeat and misdeliver frames, with real frames.

Each of these devices lets as many frames out as come in: counting them alone finds no loss.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import faulty_device
import pytest
from local_session import PYTHON, LocalSession
from traffic_lab import PAIR

from lossratio.traffic import AgentClient, load_profile, make_configuration

pytestmark = pytest.mark.netns

LOAD, DURATION, SENT = 2000.0, 0.25, 500
FAULTS = ("duplicated", "reordered", "corrupted", "wrong_length", "misdelivered")


@pytest.fixture
def through(netns_lab, tmp_path):
    """Lets an agent send through a device with a fault, and gives the counters of both directions."""
    netns_lab.namespace("tg")
    netns_lab.namespace("dut1")
    netns_lab.veth("tg", "tg0", "dut1", "dut0")
    netns_lab.veth("tg", "tg1", "dut1", "dut1")

    def send(fault, *, profile="ethip4-udp", frame_size=64, examines=True):
        netns_lab.run("dut1", "sh", "-c", "ip link set dut0 mtu 9000 && ip link set dut1 mtu 9000")
        script = (sys.executable, str(Path(faulty_device.__file__)), "dut0", "dut1", fault)
        device = netns_lab.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
        assert device.stdout.readline() == "ready\n"
        traffic = load_profile(profile, frame_size=frame_size)
        configuration = replace(make_configuration(traffic, [PAIR], settle_time=0.8), examines=examines)
        with AgentClient.start(LocalSession(netns_lab, "tg", tmp_path), python=PYTHON) as agent:
            agent.configure(configuration, options={"catch_up": 10.0})
            return agent.trial(LOAD, DURATION)

    return send


def faults(direction):
    """The faults that were counted, if any."""
    return {name: getattr(direction, name) for name in FAULTS if getattr(direction, name)}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("none", {}),
        ("route", {}),
        ("lose and duplicate", {"duplicated": 10}),
        ("corrupt", {"corrupted": 10}),
        ("zero", {"corrupted": 10}),
        ("renumber", {"corrupted": 10}),
        ("checksum", {"corrupted": 10}),
        ("addresses", {"misdelivered": 10}),
        ("mac", {"misdelivered": 10}),
        ("truncate", {"wrong_length": 10}),
        ("pad", {"wrong_length": 10}),
    ],
)
def test_frames_that_come_back_otherwise_than_they_were_sent_are_counted_apart_and_not_received(
    through, fault, expected
):
    east, west = through(fault)
    assert (east.sent, west.sent) == (SENT, SENT)
    assert faults(east) == expected
    assert east.received == SENT - sum(expected.values())
    assert (west.received, faults(west)) == (SENT, {})
    assert (east.examined, west.examined) == (SENT, SENT)


def test_reordered_frames_are_received_ones_and_counted_as_rfc_4737_says(through):
    east, west = through("reorder")
    assert (faults(east), faults(west)) == ({"reordered": 10}, {})
    assert (east.received, west.received) == (SENT, SENT)


def test_frames_that_come_out_at_another_port_are_lost_and_misdelivered_there(through):
    east, west = through("cross")
    assert (east.received, west.received) == (SENT - 10, SENT)
    assert (faults(east), faults(west)) == ({}, {"misdelivered": 10})


@pytest.mark.parametrize(
    ("profile", "frame_size"),
    [
        ("ethip4-udp", "IMIX_v4_1"),
        ("ethip4-tcp", 66),
        ("ethip6-udp", 78),
        ("dot1q-ip4base", 64),
        ("dot1ad-ip4base", 64),
        ("ethip4vxlan-ip4base", 96),
        ("ethip4-udp-1mflows", 64),
        ("ethip4-udp", 1518),
    ],
)
def test_frames_of_all_kinds_are_recognised_and_their_copies_are(through, profile, frame_size):
    east, west = through("lose and duplicate", profile=profile, frame_size=frame_size)
    assert (east.received, west.received) == (SENT - 10, SENT)
    assert (faults(east), faults(west)) == ({"duplicated": 10}, {})
    assert (east.examined, west.examined) == (SENT, SENT)


TIGHT = """
format: lossratio-traffic-profile/1
name: tight
description: Frames of 78 bytes have 8 bytes behind these headers, and a checksum covers them.
dot1q: {id: 7}
ipv6: {}
udp: {}
"""


@pytest.mark.parametrize(("fault", "expected"), [("none", {}), ("pad", {"wrong_length": 10}), ("corrupt", {})])
def test_frames_without_room_for_a_number_are_checked_for_their_length(through, tmp_path, fault, expected):
    (tmp_path / "tight.yaml").write_text(TIGHT)
    east, west = through(fault, profile=tmp_path / "tight.yaml", frame_size=78)
    assert (east.examined, faults(east), east.received) == (0, expected, SENT - sum(expected.values()))
    assert (west.received, faults(west)) == (SENT, {})


def test_nobody_looks_at_frames_where_that_was_not_asked_for(through):
    east, _ = through("corrupt", examines=False)
    assert (east.received, east.examined, faults(east)) == (SENT, None, {})
