"""What the embedded generator sees of devices that change, repeat and misdeliver frames, with real frames.

Each of these devices lets as many frames out as come in: counting them alone finds no loss.
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import faulty_device
import frame_samples
import numpy as np
import pytest
from at_least_one import at_least_one
from local_session import PYTHON, LocalSession
from traffic_lab import PAIR, configure, two_nodes
from whole_trials import run_latency, run_trial, whole

from lossratio.agent.afpacket.filters import Sample
from lossratio.bpf import why_impossible
from lossratio.errors import TrafficError
from lossratio.topology import XdpGenerator
from lossratio.traffic import AgentClient, load_profile, make_configuration
from lossratio.traffic.frame_sizes import MOST_SIZES
from lossratio.traffic.generators.own import Xdp

pytestmark = pytest.mark.netns

LOAD, DURATION, SENT = 2000.0, 0.25, 500
FAULTS = ("duplicated", "reordered", "corrupted", "wrong_length", "misdelivered")


NO_BPF = why_impossible()
XDP = pytest.param("xdp", marks=pytest.mark.skipif(NO_BPF is not None, reason=f"{NO_BPF}"))
with_each_generator = pytest.mark.parametrize("through", ["afpacket", XDP], indirect=True)
with_packet_sockets = pytest.mark.parametrize("through", ["afpacket"], indirect=True)


@pytest.fixture(scope="module")
def tester(lasting_lab, tmp_path_factory):
    """Gives an agent for a kind of generator, on a TG between whose ports there is nothing yet; it is used again."""
    two_nodes(lasting_lab)
    for node, interface in (("tg", "tg0"), ("tg", "tg1"), ("dut1", "dut0"), ("dut1", "dut1")):
        lasting_lab.run(node, "ip", "link", "set", interface, "mtu", "9000")
    session = LocalSession(lasting_lab, "tg", tmp_path_factory.mktemp("tg"))
    agents = {}

    @contextmanager
    def agent(generator):
        if generator not in agents:
            for _ in range(len(agents)):
                agents.popitem()[1].close()
            for interface in ("dut0", "dut1"):
                lasting_lab.run("dut1", "ethtool", "-K", interface, "gro", "on" if generator == "xdp" else "off")
            agents[generator] = AgentClient.start(session, python=PYTHON)
        try:
            yield agents[generator]
        except BaseException:
            agents.pop(generator).close()
            raise

    yield agent
    for left in agents.values():
        left.close()


@pytest.fixture
def through(request, lasting_lab, tester):
    """Lets a generator send through a device with a fault, and gives the counters of both directions.

    It is the embedded one, unless the test names another one.
    """
    generator = getattr(request, "param", "afpacket")

    def send(
        fault,
        *,
        profile="ethip4-udp",
        frame_size=64,
        examines=True,
        duration=DURATION,
        settle_time=0.8,
        pause=None,
        header=0,
        ask="trial",
    ):
        script = (sys.executable, str(Path(faulty_device.__file__)), "dut0", "dut1", fault, str(header))
        traffic = load_profile(profile, frame_size=frame_size)
        made = make_configuration(traffic, [PAIR], settle_time=settle_time, growth=(header, -header))
        configuration = replace(made, examines=examines)
        device = lasting_lab.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
        with device, tester(generator) as agent:
            try:
                assert device.stdout.readline() == "ready\n"
                kind = "xdp" if generator == "xdp" else "afpacket"
                agent.configure(configuration, generator=kind, options={"catch_up": 10.0})
                if ask == "latency":
                    return run_latency(agent, LOAD, duration)
                if pause is None:
                    return whole(run_trial, agent, LOAD, duration)

                def second():
                    time.sleep(pause)
                    first = run_trial(agent, LOAD, duration)
                    time.sleep(pause)
                    return (*run_trial(agent, LOAD, duration), *first)

                return whole(second)[:2]
            finally:
                device.kill()

    return send


def faults(direction):
    """The faults that were counted, if any."""
    return {name: getattr(direction, f"{name}_frames") for name in FAULTS if getattr(direction, f"{name}_frames")}


EXPECTED = {
    "none": {},
    "route": {},
    "lose and duplicate": {"duplicated": 10},
    "corrupt": {"corrupted": 10},
    "zero": {"corrupted": 10},
    "renumber": {"corrupted": 10},
    "checksum": {"corrupted": 10},
    "addresses": {"misdelivered": 10},
    "mac": {"misdelivered": 10},
    "truncate": {"wrong_length": 10},
    "pad": {"wrong_length": 10},
    "last byte": {"corrupted": 10},
    "class": {"corrupted": 10},
}
ATTEMPTS = 5
OF_EACH_COUNTER = ("none", "corrupt", "addresses", "truncate")
"""What the programs of XDP count each fault as is tested frame by frame in `test_xdp_frames`."""


def with_all_frames(through, fault):
    """Counters of a trial whose frames the device has all sent on in time, which a busy machine may prevent."""
    for _ in range(ATTEMPTS):
        ways = through(fault)
        if all(way.examined_frames == SENT for way in ways):
            break
    return ways


@pytest.mark.parametrize(
    ("through", "fault"),
    [
        *(("afpacket", fault) for fault in EXPECTED),
        *(pytest.param("xdp", fault, marks=XDP.marks) for fault in OF_EACH_COUNTER),
    ],
    indirect=["through"],
)
def test_frames_that_come_back_otherwise_than_they_were_sent_are_counted_apart_and_not_received(through, fault):
    expected = EXPECTED[fault]
    east, west = with_all_frames(through, fault)
    assert (east.sent_frames, west.sent_frames) == (SENT, SENT)
    assert faults(east) == expected
    assert east.received_frames == SENT - sum(expected.values())
    assert (west.received_frames, faults(west)) == (SENT, {})
    assert (east.examined_frames, west.examined_frames) == (SENT, SENT)
    if not {"corrupted", "misdelivered", "wrong_length"} & expected.keys():
        assert east.changed_fields == ()


@pytest.mark.smoke
@with_packet_sockets
@pytest.mark.parametrize(
    ("fault", "fields"),
    [
        ("class", [("IPv4 DSCP", "0", "46")]),
        ("addresses", [("IPv4 source address", ANY, ANY), ("IPv4 destination address", ANY, ANY)]),
        ("mac", [("destination MAC address", ANY, ANY)]),
        ("truncate", [("length", "60 bytes", "56 bytes")]),
        ("vlan", [("VLAN tag", "untagged", "VLAN 7 with priority 0")]),
        # Its number may be another frame's.
        ("renumber", []),
    ],
)
def test_what_differs_in_the_first_faulty_frame_is_said(through, fault, fields):
    east, west = through(fault)
    assert [(change.name, change.before, change.after) for change in east.changed_fields] == fields
    assert west.changed_fields == ()


@with_packet_sockets
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("none", {}),
        ("lose and duplicate", {"duplicated": 10}),
        ("last byte", {"corrupted": 10}),
        ("addresses", {"misdelivered": 10}),
        ("mac", {"misdelivered": 10}),
        ("truncate", {"wrong_length": 10}),
    ],
)
def test_frames_that_a_device_puts_into_tunnels_are_recognized_within_them(through, fault, expected):
    east, west = through(fault, profile="ethip4-geneve4", header=50)
    assert (east.sent_frames, faults(east)) == (SENT, expected)
    assert east.received_frames == SENT - sum(expected.values())
    assert (west.received_frames, faults(west)) == (SENT, {})
    assert (east.examined_frames, west.examined_frames) == (SENT, SENT)


def test_latency_is_measured_through_a_tunnel_s_end(through):
    for latency in at_least_one(through("none", profile="ethip4-geneve4", header=50, ask="latency").latency):
        assert latency.received_frames == latency.sent_frames > 0


def test_a_generator_that_does_not_recognize_longer_frames_refuses_them():
    generator = Xdp(XdpGenerator(kind="xdp"), None, ())
    generator.check_growth((0, 0))
    with pytest.raises(TrafficError, match=r"\+50 bytes eastward and -50 westward, but the generator xdp"):
        generator.check_growth((50, -50))


# The kernel counts them, on each node alike.
@pytest.mark.parametrize("through", ["afpacket", XDP], indirect=True)
@pytest.mark.parametrize(("fault", "lost"), [("none", 0), ("foreign payload", 10), ("add payload", 0), ("arp", 0)])
def test_frames_that_belong_to_no_trial_are_counted_as_foreign(through, fault, lost):
    east, west = through(fault)
    assert (east.sent_frames, east.received_frames, faults(east)) == (SENT, SENT - lost, {})
    # Kernels may send a few frames of their own.
    assert 0 <= east.foreign_frames - (0 if fault == "none" else 10) < 9
    assert (west.received_frames, faults(west)) == (SENT, {})
    assert 0 <= west.foreign_frames < 9


@with_each_generator
def test_copies_of_an_earlier_trial_s_frames_are_foreign_and_not_late(through):
    # The copies of the first trial's frames come between the two.
    east, _ = through("repeat", settle_time=0.25, pause=1.5)
    assert (east.sent_frames, east.received_frames, east.late_frames) == (SENT, SENT, 0)
    assert 0 <= east.foreign_frames - SENT < 9


def test_latency_frames_are_counted_and_not_examined(bridged, agent):
    configure(agent, 64)
    output = run_latency(agent, LOAD, DURATION)
    for counters, latency in at_least_one(zip(output.directions, output.latency, strict=True)):
        assert latency.received_frames > 0
        assert (counters.received_frames, counters.examined_frames) == (
            counters.sent_frames,
            counters.sent_frames - latency.received_frames,
        )


@with_each_generator
def test_parts_of_long_frames_in_each_other_s_place_are_seen(through):
    east, west = through("words", frame_size=1518)
    assert (east.received_frames, faults(east)) == (SENT - 10, {"corrupted": 10})
    assert (west.received_frames, faults(west)) == (SENT, {})


@with_each_generator
@pytest.mark.parametrize(
    ("fault", "profile", "counted"),
    [("vlan", "ethip4-udp", "wrong_length"), ("other vlan", "dot1q-ip4base", "corrupted")],
)
def test_frames_that_come_back_in_another_vlan_do_not_count_as_received(through, fault, profile, counted):
    east, west = through(fault, profile=profile)
    assert (east.sent_frames, east.received_frames, faults(east)) == (SENT, SENT - 10, {counted: 10})
    assert (west.received_frames, faults(west)) == (SENT, {})


TRUNK = """
format: lossratio-traffic-profile/1
name: trunk-access
dot1q: {id: 100}
ipv4: {source: {count: 254}}
reverse: {headers: {ipv4: {source: {count: 254}}}}
"""


@with_packet_sockets
@pytest.mark.parametrize("fault", ["access", "padded access"])
def test_between_a_trunk_and_an_access_port_frames_come_back_with_the_tags_of_the_port_there(through, tmp_path, fault):
    (tmp_path / "trunk.yaml").write_text(TRUNK)
    for direction in at_least_one(through(fault, profile=tmp_path / "trunk.yaml")):
        assert (direction.received_frames, direction.examined_frames, faults(direction)) == (SENT, SENT, {})


@with_packet_sockets
def test_between_a_trunk_and_an_access_port_every_other_byte_is_compared(through, tmp_path):
    (tmp_path / "trunk.yaml").write_text(TRUNK)
    for direction in at_least_one(through("faulty access", profile=tmp_path / "trunk.yaml")):
        assert (direction.received_frames, faults(direction)) == (SENT - 10, {"corrupted": 10})


def test_between_a_trunk_and_an_access_port_a_tag_that_stays_makes_frames_too_long(through, tmp_path):
    (tmp_path / "trunk.yaml").write_text(TRUNK)
    east, west = through("none", profile=tmp_path / "trunk.yaml")
    # Frames that lack a tag are not recognized at all.
    assert (east.received_frames, faults(east), west.received_frames) == (0, {"wrong_length": SENT}, 0)


@with_each_generator
def test_another_mac_address_is_no_fault_where_the_profile_expects_it(through, tmp_path):
    (tmp_path / "any.yaml").write_text("format: lossratio-traffic-profile/1\nname: any\nipv4: {}\nany_mac: true\n")
    for direction in at_least_one(through("mac", profile=tmp_path / "any.yaml")):
        assert (direction.received_frames, faults(direction)) == (SENT, {})


@with_each_generator
def test_frames_that_are_echoed_to_their_sender_are_misdelivered_there(through):
    east, west = through("echo")
    assert (east.received_frames, west.received_frames) == (SENT, SENT)
    assert (faults(east), faults(west)) == ({}, {"misdelivered": 10})


@with_each_generator
def test_frames_that_are_too_short_for_their_number_are_seen(through):
    east, west = through("cut")
    assert (east.received_frames, faults(east)) == (SENT - 10, {"wrong_length": 10})
    assert (west.received_frames, faults(west)) == (SENT, {})


@with_each_generator
def test_reordered_frames_are_received_ones_and_counted_as_rfc_4737_says(through):
    east, west = through("reorder")
    assert (faults(east), faults(west)) == ({"reordered": 10}, {})
    assert (east.received_frames, west.received_frames) == (SENT, SENT)


@with_each_generator
def test_frames_that_come_out_at_another_port_are_lost_and_misdelivered_there(through):
    east, west = through("cross")
    assert (east.received_frames, west.received_frames) == (SENT - 10, SENT)
    assert (faults(east), faults(west)) == ({}, {"misdelivered": 10})


@with_packet_sockets
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
    assert (east.received_frames, west.received_frames) == (SENT - 10, SENT)
    assert (faults(east), faults(west)) == ({"duplicated": 10}, {})
    assert (east.examined_frames, west.examined_frames) == (SENT, SENT)


@pytest.mark.parametrize("through", [XDP], indirect=True)
@pytest.mark.parametrize("profile", ["dot1q-ip4base", "ethip4vxlan-ip4base"])
def test_the_generator_inside_the_kernel_recognises_frames_with_other_headers(through, profile):
    east, west = through("lose and duplicate", profile=profile, frame_size=128)
    assert (faults(east), faults(west)) == ({"duplicated": 10}, {})
    assert (east.received_frames, west.received_frames) == (SENT - 10, SENT)


TIGHT = """
format: lossratio-traffic-profile/1
name: tight
description: Frames of 78 bytes have 8 bytes behind these headers, and a checksum covers them.
dot1q: {id: 7}
ipv6: {}
udp: {}
"""


@with_each_generator
@pytest.mark.parametrize(("fault", "expected"), [("none", {}), ("pad", {"wrong_length": 10}), ("corrupt", {})])
def test_frames_without_room_for_a_number_are_checked_for_their_length(through, tmp_path, fault, expected):
    (tmp_path / "tight.yaml").write_text(TIGHT)
    east, west = through(fault, profile=tmp_path / "tight.yaml", frame_size=78)
    assert (east.examined_frames, faults(east), east.received_frames) == (0, expected, SENT - sum(expected.values()))
    assert (west.received_frames, faults(west)) == (SENT, {})


@with_packet_sockets
def test_nobody_looks_at_frames_where_that_was_not_asked_for(through):
    east, _ = through("corrupt", examines=False)
    assert (east.received_frames, east.examined_frames, faults(east)) == (SENT, None, {})


MIXED = f"""
format: lossratio-traffic-profile/1
name: mixed
description: As many sizes as a mix may have.
ipv4: {{}}
udp: {{}}
mixes: {{all: {dict.fromkeys(range(64, 64 + 8 * MOST_SIZES, 8), 1)}}}
"""


@with_packet_sockets
@pytest.mark.parametrize("fault", ["truncate", "pad"])
def test_a_wrong_length_is_seen_among_many_right_ones(through, tmp_path, fault):
    (tmp_path / "mixed.yaml").write_text(MIXED)
    east, west = through(fault, profile=tmp_path / "mixed.yaml", frame_size="all")
    assert (east.received_frames, faults(east)) == (SENT - 10, {"wrong_length": 10})
    assert (west.received_frames, faults(west)) == (SENT, {})


def test_the_kernel_and_the_agent_choose_the_same_frames(through):
    # Frames as large as these have room for 512 that are chosen.
    east, west = through("none", frame_size=9000, duration=2 * DURATION)
    assert (east.sent_frames, west.sent_frames) == (2 * SENT, 2 * SENT)
    sample = Sample(0, 2, frame_samples.DESTINATION_MAC, (60,))
    chosen = int(sample.chooses(np.arange(2 * SENT)).sum())
    assert (east.examined_frames, west.examined_frames) == (chosen, chosen)
