"""VPP's features with real frames: which pass, as what they arrive, and that all others are counted as dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from dut_lab import PAYLOAD
from real_vpp import needs_vpp
from scapy.contrib.geneve import GENEVE
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from lossratio.dut.vpp.features.feature import Shown

pytestmark = [pytest.mark.netns, *needs_vpp]

HOSTS = ("198.18.0.1", "198.19.0.1")
HOSTS6 = ("2001:2::1", "2001:2:0:8000::1")
FRAMES, DROPPED = 100, 30


def ip4(source: str, destination: str, **fields: Any) -> Packet:
    return IP(src=source, dst=destination, **fields) / UDP(sport=1024, dport=1024)


def ip6(source: str, destination: str) -> Packet:
    return IPv6(src=source, dst=destination) / UDP(sport=1024, dport=1024)


def vxlan(source: str, destination: str) -> Packet:
    net, vni = source.rpartition(".")[0], 24 if source < destination else 25
    outer = IP(src=f"{net}.1", dst=f"{destination.rpartition('.')[0]}.2") / UDP(dport=4789, chksum=0)
    return (
        outer
        / VXLAN(flags="Instance", vni=vni)
        / Ether(src="02:01:00:00:00:01", dst="02:01:00:00:00:02")
        / ip4(source, destination)
    )


def geneve(source: str, destination: str) -> Packet:
    """What comes from the east is in a tunnel, to the end that VPP has there."""
    if source < destination:
        return ip4(source, destination)
    outer = IP(src="198.19.128.0", dst="198.18.128.0") / UDP(dport=6081)
    inner = Ether(dst="d0:0b:ee:d0:00:00", src="02:01:00:00:00:01") / ip4(source, destination)
    return outer / GENEVE(proto=0x6558, vni=1) / inner


@dataclass(frozen=True)
class Case:
    """A feature, and its truth."""

    options: dict[str, Any]
    passes: Callable[[str, str], Packet] = ip4
    """What passes, between a host of each side."""
    arrives: Callable[[Packet], bool] = lambda packet: True
    """What it looks like at the far side."""
    dropped: Callable[[str, str], Packet] | None = None
    """What does not pass."""
    place: str | tuple[str, ...] = ""
    """Where that is counted; several places, if versions of VPP differ."""
    shows: dict[str, str] = field(default_factory=dict)
    """What VPP shows afterwards."""
    hosts: tuple[str, str] = HOSTS


CASES = {
    "l2patch": Case({"forwarding": "l2patch"}),
    "dot1q": Case(
        {"forwarding": "l2bd", "vlan": 100},
        lambda source, sink: Dot1Q(vlan=100) / ip4(source, sink),
        lambda packet: packet[Dot1Q].vlan == 100,
        lambda source, sink: Dot1Q(vlan=7) / ip4(source, sink),
        "ethernet-input: unknown vlan",
        {"show bridge-domain 10 detail": r"host-dut0\.100.*pop-1"},
    ),
    "dot1q in ip4": Case(
        {"forwarding": "ip4", "vlan": 100},
        lambda source, sink: Dot1Q(vlan=100) / ip4(source, sink),
        lambda packet: (packet[Dot1Q].vlan, packet[IP].ttl) == (100, 63),
    ),
    "acl in dot1q": Case(
        {"forwarding": "ip4", "vlan": 100, "acl": 50},
        lambda source, sink: Dot1Q(vlan=100) / ip4(source, sink),
        dropped=lambda source, sink: Dot1Q(vlan=100) / IP(src="192.0.2.200", dst=sink, proto=255),
        place="acl-plugin-in-ip4-fa: ACL deny packets",
    ),
    "policer in dot1q": Case(
        {"forwarding": "l2bd", "vlan": 100, "police": "100 Mbps"},
        lambda source, sink: Dot1Q(vlan=100) / ip4(source, sink),
        shows={"show policer name police-host-dut0": r"onform 100 packets"},
    ),
    "policer": Case(
        {"forwarding": "l2bd", "police": "100 Mbps"},
        shows={"show policer name police-host-dut0": r"onform 100 packets"},
    ),
    "vxlan l2xc": Case(
        {"forwarding": "l2xc", "vxlan": True},
        vxlan,
        lambda packet: (packet[IP].src, packet[VXLAN].vni, packet[VXLAN][IP].ttl) == ("198.18.0.2", 25, 64),
    ),
    "geneve": Case(
        {"forwarding": "ip4", "geneve": 64},
        geneve,
        lambda packet: (packet[IP].dst, packet[GENEVE].vni, packet[GENEVE][IP].ttl) == ("198.19.128.0", 1, 63),
        hosts=("240.0.0.255", "244.0.0.255"),
    ),
    "routes": Case(
        {"forwarding": "ip6", "routes": 20000},
        ip6,
        lambda packet: packet[IPv6].hlim == 63,
        lambda source, sink: ip6(source, "2001:2:0:8000::ffff" if sink == HOSTS6[1] else "2001:2::ffff"),
        "ethernet-input: no error",
        hosts=HOSTS6,
    ),
    **{
        f"acl {way} {state}": Case(
            {"forwarding": "ip4", "acl": 50, "acl_output": way == "output", "acl_stateful": state == "stateful"},
            # A source that no rule permits.
            dropped=lambda source, sink: IP(src="192.0.2.200", dst=sink, proto=255),
            place=f"acl-plugin-{way[:-3]}-ip4-fa: ACL deny packets",
        )
        for way in ("input", "output")
        for state in ("stateless", "stateful")
    },
    "classify": Case(
        {"forwarding": "ip4", "classify": True},
        lambda source, sink: ip4(source, f"{sink}9"),
        dropped=lambda source, sink: ip4(source, sink[:-3] + "1.1"),
        place=("ip4-input: input ACL table-miss drops", "ip4-inacl: input ACL misses"),
    ),
    "classify ip6": Case(
        {"forwarding": "ip6", "classify": True},
        lambda source, sink: ip6(source, f"{sink}9"),
        dropped=lambda source, sink: ip6(source, f"{sink}:1"),
        place=("ip6-input: input ACL table-miss drops", "ip6-inacl: input ACL misses"),
        hosts=HOSTS6,
    ),
    "allowlist": Case(
        {"forwarding": "ip4", "allowlist": True},
        dropped=lambda source, sink: ip4("10.0.0.1", sink),
        place="ip4-adl-allowlist: ip4 allowlist dropped",
    ),
    "allowlist ip6": Case(
        {"forwarding": "ip6", "allowlist": True},
        ip6,
        dropped=lambda source, sink: ip6("2001:db8::1", sink),
        place="ip6-adl-allowlist: ip6 allowlist dropped",
        hosts=HOSTS6,
    ),
    "mark": Case({"forwarding": "ip4", "mark": "AF22"}, arrives=lambda packet: packet[IP].tos == 20 << 2),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_feature_does_what_it_says(dut_lab, case):
    def flood(entry, packet, count):
        macs = dut.destination_macs(*dut_lab.macs)
        outside = Ether(dst=getattr(macs, f"from_{entry}"), src=dut_lab.macs[entry == "east"])
        frames = [bytes(outside / packet / Raw(PAYLOAD))]
        return dut_lab.flood(entry, "", frames=count, raw=frames)

    west, east = case.hosts
    with dut_lab.setting_up("vpp", **case.options) as set_up:
        dut = set_up()
        with dut.telemetry() as report:
            for entry, ends in (("west", (west, east)), ("east", (east, west))):
                flooded = flood(entry, case.passes(*ends), FRAMES)
                assert flooded.received == FRAMES, dut._control.ask("show errors")
                if entry == "west":
                    arrived = Ether(flooded.first)
                    assert case.arrives(arrived), arrived.show(dump=True)
        assert isinstance(report["proved"], dict)
        if case.dropped is not None:
            before = dut.read_counters()
            assert flood("west", case.dropped(west, east), DROPPED).received == 0
            counted = dut.read_counters().since(before)
            found = {name: count for name, count in counted.details.items() if count}
            assert counted.dropped["VPP, frames from the west"] == DROPPED
            assert [count for name, count in found.items() if name.startswith(case.place)] == [DROPPED], found
        for command, pattern in case.shows.items():
            dut._control.check([Shown(command, pattern, "it")])
        dut.verify()
