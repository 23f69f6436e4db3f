"""Between ports of unlike encapsulation each frame comes back with the headers of its side, and the rest is compared.

The devices are real: the kernel's VXLAN, its rules of nftables, and a box of our own. What they lose is known.
"""

import subprocess
import sys

import edge_device
import numpy as np
import pytest
from at_least_one import at_least_one
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1AD, Ether
from scapy.layers.vxlan import VXLAN
from traffic_lab import EAST, PAIR, WEST
from whole_trials import run_trial, whole

from lossratio.agent.afpacket.examination import _ExpectedFrames
from lossratio.agent.afpacket.frames import build_frames
from lossratio.agent.xdp.frames import FramePlan
from lossratio.bpf import why_impossible
from lossratio.errors import ProfileError, TrafficError
from lossratio.topology import TrexGenerator, XdpGenerator
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.generators.own import Xdp
from lossratio.traffic.generators.trex import Trex

HEAD = "format: lossratio-traffic-profile/1\nname: mine\n"
PACKET = "ipv4: {source: {count: 254}}, udp: {}"
ONE_PACKET = PACKET.replace(", udp", "\nudp")
EDGES = {
    "trunk to access": f"dot1q: {{id: 100}}\n{ONE_PACKET}\nreverse: {{headers: {{{PACKET}}}}}",
    "QinQ": f"{ONE_PACKET}\nreverse: {{headers: {{dot1ad: {{id: 7}}, {PACKET}}}}}",
    "MPLS": f"{ONE_PACKET}\nreceived: {{mpls: [{{label: 20}}, {{label: 30}}], {PACKET}}}\n"
    f"reverse: {{headers: {{mpls: [{{label: 40}}], {PACKET}}}}}",
    "VXLAN": f"ethernet: {{}}\n{ONE_PACKET}\nreverse: {{longer: 50, headers: {{ipv4: {{destination: {{first: 254}}}}, "
    f"vxlan: {{vni: 42, inner: {{ethernet: {{}}, {PACKET}}}}}}}}}",
    "marks": f"{ONE_PACKET}\nreceived: {{{PACKET.replace('}}', '}, dscp: 46}')}}}\nreverse: {{received: {{{PACKET}}}}}",
}
NO_BPF = why_impossible()
XDP = pytest.param("xdp", marks=pytest.mark.skipif(NO_BPF is not None, reason=f"{NO_BPF}"))
LOAD, DURATION, SENT = 2000.0, 0.25, 500


def write(path, edge):
    (path / "mine.yaml").write_text(HEAD + EDGES.get(edge, edge))
    return path / "mine.yaml"


def read(path, edge, frame_size=128, **more):
    return load_profile(write(path, edge), frame_size=frame_size, **more)


def directions(path, edge, frame_size=128):
    return make_configuration(read(path, edge, frame_size), [PAIR], settle_time=0.0).directions


def pushed(edge, frame):
    """What scapy makes of a frame eastward."""
    ether, behind = Ether(frame), frame[14:]
    macs = {"src": ether.src, "dst": ether.dst}
    if edge == "trunk to access":
        return Ether(**macs, type=0x800) / behind[4:]
    if edge == "QinQ":
        return Ether(**macs, type=0x88A8) / Dot1AD(vlan=7, type=0x800) / behind
    if edge == "MPLS":
        return Ether(**macs, type=0x8847) / MPLS(label=20, s=0, ttl=64) / MPLS(label=30, s=1, ttl=64) / behind
    if edge == "VXLAN":
        outer = IP(src="198.18.0.254", dst="198.19.0.1", id=0, ttl=64) / UDP(sport=49152, dport=4789, chksum=0)
        return Ether(**macs) / outer / VXLAN(flags=8, vni=42) / frame
    marked = Ether(frame)
    marked[IP].tos = 46 << 2
    del marked[IP].chksum
    return marked


@pytest.mark.whole
@pytest.mark.parametrize("frame_size", [128, "IMIX_v4_1"])
@pytest.mark.parametrize("edge", EDGES)
def test_the_frame_that_is_expected_is_the_one_that_scapy_makes_of_the_sent_one(tmp_path, edge, frame_size):
    eastward, westward = directions(tmp_path, edge, frame_size)
    sent, wanted = (build_frames(spec, b"\2" * 6, b"\4" * 6) for spec in (eastward.frames, eastward.arriving))
    numbers = np.arange(300)
    for before, length, after, longer in zip(*sent.frames(numbers), *wanted.frames(numbers), strict=True):
        # The outer MAC addresses are the ports' or the next hop's.
        assert after[12:longer].tobytes().hex() == bytes(pushed(edge, before[:length].tobytes()))[12:].hex()
    # The other direction is the same the other way round, at the end of which is what the west sends.
    sizes = [size for size, _ in westward.arriving.sizes]
    assert sizes == [
        size + westward.arriving.tag_offset - westward.frames.tag_offset for size, _ in westward.frames.sizes
    ]


@pytest.mark.parametrize("edge", EDGES)
def test_both_generators_expect_the_same_bytes(tmp_path, edge):
    for direction in at_least_one(directions(tmp_path, edge)):
        plan = FramePlan(direction.arriving, b"\2" * 6, b"\4" * 6)
        cycle = build_frames(direction.arriving, b"\2" * 6, b"\4" * 6)
        (template,) = plan.templates
        changing = {
            place for field in direction.arriving.fields for place in range(field.offset, field.offset + field.width)
        }
        changing |= {place for one in plan.checksums for place in (one.field.offset, one.field.offset + 1)}
        for place in at_least_one(set(range(len(template))) - changing):
            assert template[place] == cycle.data[0][place]


@pytest.mark.parametrize("edge", EDGES)
def test_each_other_byte_is_compared(tmp_path, edge):
    """What a device chooses or counts down is left out; damage of any other byte is found."""
    left_out = {"VXLAN": 16, "MPLS": 5, "marks": 3}.get(edge, 3)
    (eastward, _) = directions(tmp_path, edge)
    expected = _ExpectedFrames(eastward, build_frames(eastward.arriving, b"\2" * 6, b"\4" * 6))
    wanted, sizes = expected.frames(0x12345600, np.array([5]), 0)
    unseen = []
    for place in range(12, wanted.shape[1]):
        got = wanted.copy()
        got[0, place] ^= 0x10
        if not expected.differ(got, wanted, sizes)[0]:
            unseen.append(place)
    assert len(unseen) <= left_out, unseen


@pytest.fixture
def through(bridged, agent, tmp_path):
    """Lets a generator send through the edge of a network, which loses each tenth frame eastward."""

    def send(generator, edge, damaged):
        for interface in ("dut0", "dut1"):
            bridged.run("dut1", "ethtool", "-K", interface, "gro", "on" if generator == "xdp" else "off")
        east = EAST
        if edge in edge_device.EDGES:
            for interface in ("dut0", "dut1"):
                bridged.run("dut1", "ip", "link", "set", "dev", interface, "nomaster")
            script = (sys.executable, edge_device.__file__, "dut0", "dut1", edge, str(damaged))
            device = bridged.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
            assert device.stdout.readline() == "ready\n"
        else:
            rules = "numgen inc mod 10 9 drop"
            if edge == "VXLAN":
                east = end_tunnels(bridged)
            if edge == "marks":
                rules += "\nip dscp set 46"
            rules += f"\nnumgen inc mod 50 0 @nh,{8 * (damaged - 14)},8 set 0x77"
            hook = 'type filter hook ingress device "dut0" priority 0;'
            table = f"table netdev edge {{\nchain west {{\n{hook}\n{rules}\n}}\n}}\n"
            bridged.run("dut1", "nft", "-f", "-", input=table)
        traffic = read(tmp_path, edge)
        configuration = make_configuration(traffic, [PortPair(WEST, east)], settle_time=0.5)
        agent.configure(configuration, generator=generator, options={"catch_up": 10.0})
        return whole(run_trial, agent, LOAD, DURATION)

    return send


def end_tunnels(lab):
    """Bridges frames from the west into a VXLAN tunnel of the kernel, and gives the port in the east."""
    mac = lab.mac("tg", EAST.interface)
    tunnel = ("type", "vxlan", "id", "42", "local", "198.18.0.254", "remote", "198.19.0.1", "dstport", "4789")
    for command in (
        ("ip", "link", "set", "dev", "dut1", "nomaster"),
        ("ip", "addr", "add", "198.18.0.254/32", "dev", "lo"),
        ("ip", "route", "add", "198.19.0.0/16", "dev", "dut1", "src", "198.18.0.254"),
        ("ip", "neigh", "replace", "198.19.0.1", "lladdr", mac, "dev", "dut1"),
        ("ip", "link", "add", "tunnel", *tunnel, "dev", "dut1"),
        ("ip", "link", "set", "dev", "tunnel", "master", "br0", "up"),
    ):
        lab.run("dut1", *command)
    return TrafficPort(EAST.name, EAST.interface, destination_mac=lab.mac("dut1", "dut1"))


def counts(direction):
    names = ("duplicated", "reordered", "corrupted", "readdressed", "wrong_length", "misdelivered")
    found = {name: getattr(direction, f"{name}_frames", 0) for name in names}
    return direction.received_frames, {name: count for name, count in found.items() if count}


@pytest.mark.netns
@pytest.mark.parametrize("generator", ["afpacket", XDP])
@pytest.mark.parametrize(
    ("edge", "octet", "damaged"),
    [("trunk to access", 62, 10), ("QinQ", 15, 10), ("MPLS", 14, 10), ("VXLAN", 62, 9), ("marks", 62, 9)],
)
def test_what_a_device_at_an_edge_loses_and_damages_is_measured(through, edge, octet, damaged, generator):
    east, west = through(generator, edge, octet)
    assert (east.sent_frames, west.sent_frames) == (SENT, SENT)
    assert counts(west) == (SENT, {})
    # The device has lost a tenth before.
    assert counts(east) == (SENT * 9 // 10 - damaged, {"corrupted": damaged})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ipv4: {source: {count: 254}}\nreceived: {ipv4: {}}", "must have the same 'count', 'order', "),
        ("ipv4: {}\nudp: {}\nreceived: {ipv4: {}}", "the packet must have the same headers"),
        ("ipv4: {}\nreceived: {ipv6: {}}", "the packet must have the same headers"),
        (
            "ipv4: {}\nreceived: {ipv4: {}, geneve: {inner: {ipv4: {}}}}",
            "leave out 'geneve', which cannot be expected here",
        ),
        (
            "ipv4: {}\nreverse: {longer: 60, headers: {ipv4: {source: {count: 4}}, vxlan: {inner: {ipv4: {}}}}}",
            "a tunnel has one address at each end",
        ),
    ],
)
def test_headers_that_leave_open_which_frame_has_which_are_refused(tmp_path, text, message):
    with pytest.raises(ProfileError, match=message):
        read(tmp_path, text)


def test_results_describe_other_traffic_as_before(tmp_path):
    described = read(tmp_path, "ipv4: {}").description_in_full()
    assert not {"received", "mpls", "any_mac"} & set(described)
    assert "received" not in described["reverse"]
    assert "dscp" not in described["ipv4"]
    marks = read(tmp_path, "marks").description_in_full()
    assert (marks["received"]["ipv4"]["dscp"], marks["reverse"]["received"]["ipv4"].get("dscp")) == (46, None)


def test_a_reflector_sends_back_what_it_gets_so_that_nothing_else_can_be_expected(tmp_path):
    reflected = PortPair(PAIR.west, PAIR.east, is_reflected=True)
    profile = read(tmp_path, "marks", bidirectional=False)
    with pytest.raises(TrafficError, match="'received', but a reflector"):
        make_configuration(profile, [reflected], settle_time=0.0)


def test_frames_that_links_may_pad_are_refused_inside_the_kernel_with_the_reason(tmp_path):
    configuration = make_configuration(read(tmp_path, "trunk to access", 64), [PAIR], settle_time=0.0)
    with pytest.raises(TrafficError, match=r"Links may pad them.*larger frames, 'kind: afpacket'"):
        Xdp(XdpGenerator(kind="xdp"), None, ()).configure(None, configuration)


def test_flow_statistics_of_trex_do_not_see_frames_with_other_headers_in_front(tmp_path):
    trex = object.__new__(Trex)
    trex.settings = TrexGenerator(kind="trex", directory="/opt/trex", flow_statistics=True)
    configuration = make_configuration(read(tmp_path, "MPLS"), [PAIR], settle_time=0.0)
    with pytest.raises(TrafficError, match=r"flow statistics need a header field at a fixed place.*'kind: afpacket'"):
        trex.configure(None, configuration)
