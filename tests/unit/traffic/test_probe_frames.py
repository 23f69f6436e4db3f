"""Frames of a probe of the cabling: their marks, and what other frames are."""

from __future__ import annotations

import pytest
from scapy.contrib.lldp import LLDPDU  # noqa: F401 (it teaches scapy the ethertype)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import ICMPv6MLReport2, ICMPv6ND_RS, IPv6, IPv6ExtHdrHopByHop, RouterAlert
from scapy.layers.l2 import ARP, LLC, STP, Dot1Q, Dot3, Ether
from traffic_lab import PAIR

from lossratio.traffic import Arrival, Marker, load_profile, make_configuration, smallest_probe

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


@pytest.mark.parametrize("profile", ["ethip4-udp", "ethip4-tcp", "ethip6-udp", "dot1q-ip4base", "ethip4vxlan-ip4base"])
def test_a_mark_survives_and_leaves_checksums_correct(profile):
    (direction, _) = make_configuration(
        load_profile(profile, frame_size=1518, bidirectional=True), [PAIR], settle_time=0.0
    ).directions
    assert smallest_probe(direction) < 128
    marker = Marker()
    frame = marker.frame(direction, *MACS, 3, 200).sent
    assert marker.mark_in(frame[:128]) == (3, 200)
    assert Marker().mark_in(frame) is None
    layers = Ether(frame)
    for name in ("UDP", "TCP"):
        if layers.haslayer(name) and layers[name].chksum:
            checksum = layers[name].chksum
            del layers[name].chksum
            assert Ether(bytes(layers))[name].chksum == checksum


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (Ether() / ARP(), "ARP"),
        (Ether() / Dot1Q(vlan=7) / ARP(), "ARP"),
        (Ether(type=0x88CC) / bytes(20), "LLDP"),
        (Dot3(dst="01:80:c2:00:00:00") / LLC() / STP(), "spanning tree or discovery (IEEE 802.2)"),
        (Ether() / IPv6() / ICMPv6ND_RS() / bytes(8), "neighbour discovery"),
        (
            Ether() / IPv6() / IPv6ExtHdrHopByHop(options=[RouterAlert()]) / ICMPv6MLReport2() / bytes(8),
            "neighbour discovery",
        ),
        (Ether() / IPv6() / UDP() / bytes(30), None),
        (Ether() / IP() / UDP(), None),
        (Ether(type=0x9000), None),
    ],
    ids=range(9),
)
def test_what_devices_say_to_each_other_is_no_foreign_traffic(frame, what):
    assert Arrival("tg0", bytes(frame), 60, 1).chatter == what


def test_frames_of_others_are_named():
    ip = Ether(src=MACS[0]) / Dot1Q(vlan=7) / IP(src="192.0.2.1", dst="192.0.2.2")
    assert Arrival("tg0", bytes(ip), 60, 1).in_words == "IPv4 from 192.0.2.1 to 192.0.2.2 (from 02:00:00:00:00:01)"
    ipv6 = Ether(src=MACS[0]) / IPv6(src="2001:db8::1", dst="2001:db8::2")
    assert Arrival("tg0", bytes(ipv6), 60, 1).in_words.startswith("IPv6 from 2001:db8::1 to 2001:db8::2")
    assert Arrival("tg0", bytes(Ether(src=MACS[0], type=0x9000)), 60, 1).in_words == f"ethertype 0x9000 from {MACS[0]}"
