"""Faults of devices that lose real frames are named, whatever the fault looks at; what they are called is calculated.

Which sentences there are, and when none is said, is tested without frames in `test_loss_patterns`.
"""

from __future__ import annotations

import re

import pytest
from lossy_devices import whole_trial
from traffic_lab import PAIR
from whole_trials import run_trial

from lossratio.bpf import why_impossible
from lossratio.results import loss_places_in
from lossratio.traffic import load_profile, make_configuration
from lossratio.trials import most_lost_in_bursts

pytestmark = pytest.mark.netns
NEEDS_BPF = pytest.mark.skipif(why_impossible() is not None, reason="no BPF here")
LOADS = (18e3, 12e3, 16e3, 10e3, 14e3, 19e3, 13e3, 17e3)
SECONDS = 0.25
"""A sender takes a whole processor, whatever its load, so that trials are short."""
MOST_TRIALS = 12
"""How often each load is tried until nothing disturbs the tester."""
HEAD = """
format: lossratio-traffic-profile/1
name: faults
dot1q: {id: 7}
ipv4:
  source: {first: 1, count: ADDRESSES}
  destination: {first: 1}
udp: {destination_port: {first: 2000, count: PORTS}}
"""
STREAMS = """
streams:
  - {name: voice, share: 1, dscp: 46, priority: 5}
  - {name: data, share: 3, priority: 1}
  - {name: video, share: 2, dscp: 34, priority: 5, frame_size: 512}
"""
SEEN = "set seen { type ipv4_addr; flags dynamic,timeout; timeout 300ms; size 1024; }"
SEVEN = "{ 0.0.0.9, 0.0.0.30, 0.0.0.31, 0.0.0.77, 0.0.0.100, 0.0.0.138, 0.0.0.201 }"
# Table: what is dropped there and on the way back, addresses, ports, streams, frame size, and what is said.
CASES = {
    "half of the frames of some flows": (
        *(f"ip saddr & 0.0.0.255 {SEVEN} numgen random mod 2 == 0", ""),
        *(254, 1, "", 64, "of 7 of 254 flows"),
    ),
    "a queue by two fields": (
        *("jhash ip saddr . udp dport mod 8 seed 7 3", ""),
        *(60, 7, "", 64, "of 52 of 420 flows; these lose every"),
    ),
    "large frames of a flow": (
        *("ip saddr & 0.0.0.255 == 0.0.0.9 meta length > 1400", ""),
        *(16, 1, "", "IMIX_v4_1", "of the direction port0>port1, which loses 0.5"),
    ),
    "large frames on the way back": ("", "meta length > 1400", 4, 1, "", "IMIX_v4_1", "of 1,518 B; these lose every"),
    "a class of two streams": (
        *("vlan pcp 5 numgen random mod 5 0", ""),
        *(4, 1, STREAMS, 128, "those with VLAN priority 5; these lose "),
    ),
    "every tenth frame": ("numgen inc mod 10 0", "", 254, 1, "", 64, "One frame in 10 is lost, always the same number"),
    # A flow is forgotten after 300 ms, before the next trial.
    "new flows": (
        *("ip saddr @seen accept\nadd @seen { ip saddr timeout 300ms }", ""),
        *(100, 1, "", 64, "All lost frames are the first frame of each of the 100 flows"),
    ),
}


def profile_of(directory, addresses, ports, streams, size):
    """Traffic with so many addresses and ports, and with streams if there are some."""
    head = HEAD.replace("ADDRESSES", str(addresses)).replace("PORTS", str(ports))
    if not streams:
        head = head.replace("dot1q: {id: 7}\n", "")
    file = directory / "faults.yaml"
    file.write_text(head + streams)
    return load_profile(file, frame_size=size)


def undisturbed(agent, load):
    """The counters of a trial in which the machine stalled so little that its losses are those of the fault."""
    for _ in range(MOST_TRIALS):
        ways = run_trial(agent, load, SECONDS)
        lost = sum(way.lost for way in ways)
        disturbed = sum((way.unsent_frames or 0) + (way.generator_drop_frames or 0) for way in ways)
        if not disturbed and not most_lost_in_bursts(ways, SECONDS) and lost:
            return ways
    pytest.skip(f"in none of {MOST_TRIALS} trials at {load:g} frames/s did this machine send in time")


def patterns_through(lab, agent, generator, rules, profile):
    """What the lost frames of trials through a bridge with these rules have in common."""
    for interface, condition in rules.items():
        lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
        if condition:
            hook = f'type filter hook ingress device "{interface}" priority 0;'
            seen = SEEN if "@seen" in condition else ""
            text = f"table netdev {interface} {{\n{seen}\nchain c {{\n{hook}\n{condition} drop\n}}\n}}\n"
            lab.run("dut1", "nft", "-f", "-", input=text)
    configuration = make_configuration(profile, [PAIR], settle_time=0.2)
    agent.configure(configuration, generator=generator, options={"catch_up": 10.0})
    trials = [
        whole_trial(number, load, SECONDS, undisturbed(agent, load)) for number, load in enumerate(LOADS, start=1)
    ]
    places = loss_places_in(trials)
    return () if places is None else places.patterns


# What lost frames have in common is found without knowing who sent them: each generator must tell the flow, the size
# and the stream of a frame.
@pytest.mark.parametrize(
    ("case", "generator"),
    [
        ("half of the frames of some flows", "afpacket"),
        pytest.param("a queue by two fields", "xdp", marks=NEEDS_BPF),
        ("large frames of a flow", "afpacket"),
        pytest.param("large frames on the way back", "xdp", marks=NEEDS_BPF),
        ("a class of two streams", "afpacket"),
        pytest.param("a class of two streams", "xdp", marks=NEEDS_BPF),
        ("every tenth frame", "afpacket"),
        pytest.param("new flows", "xdp", marks=NEEDS_BPF),
    ],
)
def test_a_fault_is_named(bridged, agent, generator, tmp_path, case):
    there, back, *traffic, words = CASES[case]
    found = patterns_through(bridged, agent, generator, {"dut0": there, "dut1": back}, profile_of(tmp_path, *traffic))
    said = [re.sub(r" \(numbers? [^)]*\)", "", pattern.sentence) for pattern in found]
    assert any(words in sentence for sentence in said), said


@pytest.mark.parametrize("generator", ["afpacket", pytest.param("xdp", marks=NEEDS_BPF)])
def test_a_policer_is_not_faulty(bridged, agent, generator, tmp_path):
    rules = {"dut0": "limit rate over 6000/second burst 50 packets", "dut1": ""}
    found = patterns_through(bridged, agent, generator, rules, profile_of(tmp_path, 254, 1, "", 64))
    assert [pattern.kind for pattern in found] == ["direction"]
