"""Faults of real devices are named, by both generators that locate losses; a policer is not faulty."""

from __future__ import annotations

import pytest
from traffic_lab import EAST, WEST, drop

from lossratio.bpf import why_impossible
from lossratio.results import Trial, loss_places_in
from lossratio.traffic import PortPair, load_profile, make_configuration

pytestmark = pytest.mark.netns
GENERATORS = [
    "afpacket",
    pytest.param("xdp", marks=pytest.mark.skipif(why_impossible() is not None, reason="no BPF here")),
]
LOADS = (9e3, 6e3, 8e3, 5e3, 7e3, 9.5e3, 6.5e3, 8.5e3)
FAULTS = {
    "a set of flows": (
        "ip saddr & 0.0.0.255 { 0.0.0.9, 0.0.0.30, 0.0.0.31, 0.0.0.77, 0.0.0.100, 0.0.0.138, 0.0.0.201 }",
        64,
        "of 7 of 254 flows",
    ),
    "one of eight queues": ("ip saddr & 0.0.0.7 == 0.0.0.3", 64, "of 32 of 254 flows: every flow whose number is 2"),
    "half of the frames of some flows": (
        "ip saddr & 0.0.0.255 { 0.0.0.9, 0.0.0.30, 0.0.0.31, 0.0.0.77, 0.0.0.100, 0.0.0.138, 0.0.0.201 } "
        "numgen random mod 2 == 0",
        64,
        "of 7 of 254 flows",
    ),
    "a size": ("meta length 1500-1600", "IMIX_v4_1", "of 1,518 B; these lose every frame, all others none"),
    "a part of a size": ("meta length 500-600 numgen random mod 4 == 0", "IMIX_v4_1", "of 570 B; these lose 2"),
    "a direction": ("numgen random mod 50 == 0", 64, "of the direction port0>port1; the other one loses none"),
}


def places_in(lab, agent, generator, condition, frame_size, loads):
    for interface in ("dut0", "dut1"):
        lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
    drop(lab, "dut0", condition)
    profile = load_profile("ethip4-ip4base", frame_size=frame_size)
    configuration = make_configuration(profile, [PortPair(WEST, EAST)], settle_time=0.2)
    agent.configure(configuration, generator=generator, options={"catch_up": 10.0})
    trials = []
    for number, load in enumerate(loads, start=1):
        ways = agent.trial(load, 0.5)
        sent, lost = sum(way.sent_frames for way in ways), sum(way.lost for way in ways)
        trials.append(
            Trial(
                number=number,
                purpose=None,
                is_evidence=True,
                duration_s=0.5,
                load_per_interface_fps=load,
                loss_ratio=lost / sent,
                effective_duration_s=0.5,
                elapsed_s=0.5,
                forwarding_rate_per_interface_fps=load,
                sent_frames=sent,
                lost_frames=lost,
                unsent_frames=0,
                late_frames=0,
                directions=ways,
            )
        )
    return loss_places_in(trials)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(bridged, agent, generator, fault):
    condition, frame_size, sentence = FAULTS[fault]
    found = places_in(bridged, agent, generator, condition, frame_size, LOADS)
    assert sentence in found.patterns[0].sentence
    assert found.patterns[0].explained_ratio > 0.99


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_policer_is_not_faulty(bridged, agent, generator):
    condition = "limit rate over 3000/second burst 50 packets"
    found = places_in(bridged, agent, generator, condition, 64, LOADS)
    assert [pattern.kind for pattern in found.patterns] == ["direction"]
