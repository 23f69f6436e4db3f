"""Faults that somebody thought of who knew the documentation only, with real frames: each is named exactly, but one."""

from __future__ import annotations

import pytest
from located_losses import GENERATORS, patterns_through, says
from test_more_faults import profile_of

pytestmark = [pytest.mark.netns]
VOICE_AND_VIDEO = """
streams:
  - {name: voice, share: 1, dscp: 46, priority: 5}
  - {name: data, share: 3, priority: 1}
  - {name: video, share: 2, dscp: 34, priority: 5, frame_size: 512}
"""
SIZES_OF_DATA = """
streams:
  - {name: voice, share: 1, dscp: 46, priority: 5}
  - {name: data, share: 3, priority: 1, frame_size: IMIX_v4_1}
"""
FULL = "ip saddr != @known update @known { ip saddr } accept\nip saddr != @known"
TABLE = "set known { type ipv4_addr; flags dynamic; size 100; }"
# Table: what is dropped there and on the way back, addresses, ports, streams, frame size, and what is said.
CASES = {
    "a third of one flow": (
        *("ip saddr & 0.0.0.255 == 0.0.0.9 numgen random mod 10 < 3", ""),
        *(16, 1, "", 64, "of 1 of 16 flows; these lose "),
    ),
    "odd ports": ("udp dport & 1 == 1", "", 1, 8, "", 64, "of 4 of 8 flows; these lose every frame"),
    "middle frames of a hash": (
        *("meta length 500-600 jhash ip saddr mod 4 seed 0xcafe 1", ""),
        *(64, 1, "", "IMIX_v4_1", "of 570 B in 19 of 64 flows, about as many as one of 3 queues"),
    ),
    "two of three queues": (
        "jhash ip saddr mod 3 seed 0xcafe != 0",
        "",
        254,
        1,
        "",
        64,
        "of 170 of 254 flows; these lose every frame",
    ),
    "a queue by two fields": (
        "jhash ip saddr . udp dport mod 8 seed 7 3",
        "",
        60,
        7,
        "",
        64,
        "of 52 of 420 flows, about as many as one of 8 queues",
    ),
    "a full table": (
        "ip saddr != @known update @known { ip saddr } accept\nip saddr != @known",
        "",
        254,
        1,
        "",
        64,
        "of",
    ),
    "large frames on the way back": ("", "meta length > 1400", 4, 1, "", "IMIX_v4_1", "of 1,518 B; these lose every"),
    "some small frames": (
        "meta length < 70 numgen random mod 100 < 5",
        "",
        4,
        1,
        "",
        "IMIX_v4_1",
        "of 64 B; these lose ",
    ),
    "a class of two streams": (
        *("vlan pcp 5 numgen random mod 5 0", ""),
        *(4, 1, VOICE_AND_VIDEO, 128, "those with VLAN priority 5; these lose "),
    ),
    # A counter that loses so many of each 2,000 frames in a row: nothing is said of it.
    "a block of frames": ("numgen inc mod 2000 < 150", "", 254, 1, "", 64, None),
    "a host": (*("ip saddr & 0.0.0.255 == 0.0.0.9", ""), *(16, 1, "", 64, "of 1 of 16 flows; these lose every frame")),
    "large frames of a stream": (*("vlan pcp 1 meta length > 1400", ""), *(4, 1, SIZES_OF_DATA, 128, "of 1,518 B")),
}


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_named(bridged, agent, generator, tmp_path, case):
    there, back, *traffic, sentence = CASES[case]
    for interface, condition in (("dut0", there), ("dut1", back)):
        if condition:
            hook = f'type filter hook ingress device "{interface}" priority 0;'
            table = TABLE if "@known" in condition else ""
            rules = f"table netdev {interface} {{\n{table}\nchain c {{\n{hook}\n{condition} drop\n}}\n}}\n"
            bridged.run("dut1", "nft", "-f", "-", input=rules)
    found = patterns_through(bridged, agent, generator, profile_of(tmp_path, *traffic))
    if sentence is None:
        assert found == ()
    else:
        assert any(says(pattern, sentence) for pattern in found)
