"""Faults that were not thought of when the sentences were made: each is named, or it is none."""

from __future__ import annotations

import pytest
from located_losses import GENERATORS, patterns_through, says

from lossratio.traffic import load_profile

pytestmark = [pytest.mark.netns]
HEAD = """
format: lossratio-traffic-profile/1
name: faults
dot1q: {id: 7}
ipv4:
  source: {first: 1, count: FLOWS}
  destination: {first: 1}
udp: {destination_port: {first: 2000, count: PORTS}}
"""
STREAMS = """
streams:
  - {name: voice, share: 1, dscp: 46, priority: 5}
  - {name: data, share: 2, priority: 1}
  - {name: bulk, share: 1, dscp: 8, frame_size: 512}
"""
HOOK = 'type filter hook ingress device "dut0" priority 0;'
SEEN = "set seen { type ipv4_addr; flags dynamic,timeout; timeout 150ms; size 1024; }"
FIRST_OF_FLOW = "ip saddr @seen accept\nadd @seen { ip saddr timeout 150ms } drop"
LARGE_OF_ONE = "ip saddr & 0.0.0.255 == 0.0.0.9 meta length > 1400 drop"
HALF = "jhash ip saddr mod 2 seed 0xbeef 1 drop"
HASHED = "jhash ip saddr mod 4 seed 0xbeef 2"
# Table: a rule, flows, ports, streams, frame size, and what is said; None: only the direction.
CASES = {
    "half of the addresses": ("ip saddr & 0.0.0.128 == 0.0.0.128 drop", 254, 1, "", 64, "127 of 254 flows; these lose"),
    "a port": ("udp dport 2002 drop", 1, 4, "", 64, "of 1 of 4 flows; these lose every frame"),
    "a hash": (
        f"{HASHED} drop",
        254,
        1,
        "",
        64,
        "of 61 of 254 flows, about as many as one of 4 queues gets; these lose every",
    ),
    "a priority": ("vlan pcp 5 drop", 4, 1, STREAMS, 128, "of stream voice; these lose every frame"),
    "a policed class": (
        "ip dscp 8 limit rate over 600/second burst 5 packets drop",
        *(4, 1, STREAMS, 128, "of stream bulk; these lose"),
    ),
    "a little of a class": ("ip dscp 0 numgen random mod 20 0 drop", 4, 1, STREAMS, 128, "of stream data; these lose"),
    "small frames": ("meta length < 70 drop", 4, 1, "", "IMIX_v4_1", "of 64 B; these lose every frame"),
    "every tenth frame": (
        "numgen inc mod 10 0 drop",
        254,
        1,
        "",
        64,
        "one in 10, always the same number of frames apart",
    ),
    # A flow is forgotten after 150 ms, and loses one more frame of a trial of 250 ms.
    "new flows": (FIRST_OF_FLOW, 100, 1, "", 64, "50 % of the lost frames are the first frame of each of the"),
    "large frames of a flow": (LARGE_OF_ONE, 16, 1, "", "IMIX_v4_1", "of 1,518 B in 1 of 16 flows; these lose every"),
    "an MTU": ("MTU", 4, 1, "", "IMIX_v4_1", "of 1,518 B; these lose every frame"),
    "half of a hash": (f"{HASHED} numgen random mod 2 0 drop", 254, 1, "", 64, "of 61 of 254 flows, about as many as"),
    "half of the flows": (
        "jhash ip saddr mod 2 seed 0xbeef 1 drop",
        254,
        1,
        "",
        64,
        "of 254 flows, about as many as one of 2",
    ),
    "random loss": ("numgen random mod 50 0 drop", 254, 1, "", 64, None),
    "a policer": ("limit rate over 6000/second burst 50 packets drop", 4, 1, STREAMS, 128, None),
}


def patterns(lab, agent, generator, tmp_path, case):
    rule, flows, ports, streams, size, _ = CASES[case]
    if rule == "MTU":
        lab.run("dut1", "ip", "link", "set", "dev", "dut1", "mtu", "1400")
    else:
        seen = SEEN if "@seen" in rule else ""
        lab.run("dut1", "nft", "-f", "-", input=f"table netdev f {{\n{seen}\nchain c {{\n{HOOK}\n{rule}\n}}\n}}\n")
    return patterns_through(lab, agent, generator, profile_of(tmp_path, flows, ports, streams, size))


def profile_of(directory, flows, ports, streams, size):
    """Traffic with so many addresses and ports, and with streams if there are some."""
    head = HEAD.replace("FLOWS", str(flows)).replace("PORTS", str(ports))
    if not streams:
        head = head.replace("dot1q: {id: 7}\n", "")
    file = directory / "faults.yaml"
    file.write_text(head + streams)
    return load_profile(file, frame_size=size)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_named(bridged, agent, generator, tmp_path, case):
    found = patterns(bridged, agent, generator, tmp_path, case)
    sentence = CASES[case][-1]
    if sentence is None:
        assert {pattern.kind for pattern in found} == {"direction"}
    else:
        assert any(says(pattern, sentence) for pattern in found)
