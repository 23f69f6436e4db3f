"""Pairs of VPP's options on the real VPP: the pair is refused before the set-up, or each option shows its effect."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
from dut_lab import PAYLOAD
from real_vpp import needs_vpp
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from test_vpp_features import HOSTS, HOSTS6, ip4, ip6, vxlan

from lossratio.dut import parse_options
from lossratio.errors import DutError

pytestmark = [pytest.mark.netns, pytest.mark.whole, *needs_vpp]

FRAMES = 100
EFFECTS = {
    "acl": ({"acl": 3}, "show errors", r"100\s+acl-plugin-"),
    "classify": ({"classify": True}, "show classify tables verbose", r"hits 100\b"),
    "allowlist": ({"allowlist": True}, "show errors", r"100\s+ip[46]-adl-allowlist"),
    "police": ({"police": "500 Mbps"}, "show policer name police-host-dut0", r"onform 100 packets"),
    "mark": ({"mark": "EF"}, "show errors", r"100\s+ip4-policer-classify\s"),
    "vlan": ({"vlan": 7}, "show interface host-dut0.7", r"rx packets\s+100\b"),
    "vxlan": ({"vxlan": True}, "show interface vxlan_tunnel24", r"rx packets\s+100\b"),
    "routes": ({"routes": 10}, "show ip{six} fib {host}/{bits}", r"to:\[100:"),
    "det44": ({"det44_hosts": 4}, "show det44 mappings", r"sessions number: 1\b"),
    "nat": ({"nat": "nat44-ed"}, "show nat44 summary", r"total sessions: 1\b"),
    "sfdp": ({"sfdp": "l4ip4"}, "show sfdp status", r"active sessions: 1\b"),
    "geneve": ({"geneve": 2}, "show errors", r"100\s+geneve4-encap"),
}
"""Options, and what shows that each of 100 frames from the west met the feature: a command, and a pattern."""
PAIRS = [
    (forwarding, one, other)
    for forwarding in ("l2xc", "l2bd", "l2patch", "ip4", "ip6")
    for one, other in combinations(EFFECTS, 2)
]


def packet_for(options: Any) -> Packet:
    """A packet from the west that passes with these options."""
    if options.geneve:
        hosts = ("240.0.0.1", "244.0.0.1")
    else:
        hosts = HOSTS6 if options.forwarding == "ip6" else HOSTS
    if options.vxlan:
        packet = vxlan(*hosts)
    else:
        packet = ip6(*hosts) if options.forwarding == "ip6" else ip4(*hosts)
    return Dot1Q(vlan=options.vlan) / packet if options.vlan else packet


@pytest.mark.parametrize(("forwarding", "one", "other"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_each_option_of_a_pair_has_its_effect_or_the_pair_is_refused(dut_lab, forwarding, one, other):
    given = {"forwarding": forwarding, **EFFECTS[one][0], **EFFECTS[other][0]}
    try:
        options = parse_options("vpp", given)
    except DutError:
        return

    with dut_lab.setting_up("vpp", **given) as set_up:
        dut = set_up()
        macs = dut.destination_macs(*dut_lab.macs)
        outside = Ether(dst=macs.from_west, src=dut_lab.macs[0])
        frames = [bytes(outside / packet_for(options) / Raw(PAYLOAD))]
        with dut.telemetry() as report:
            assert dut_lab.flood("west", "", frames=FRAMES, raw=frames).received == FRAMES
        assert isinstance(report["proved"], dict)
        six = "6" if forwarding == "ip6" else ""
        place = {"six": six, "host": (HOSTS6 if six else HOSTS)[1], "bits": 128 if six else 32}
        for name in (one, other):
            _, command, pattern = EFFECTS[name]
            answer = dut._control.ask(command.format(**place))
            assert re.search(pattern, answer), (name, answer)
