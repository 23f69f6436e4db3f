"""Faults of real devices are named, by both generators that locate losses; a policer is not faulty."""

from __future__ import annotations

import pytest
from located_losses import GENERATORS, patterns_through, says
from traffic_lab import drop

from lossratio.traffic import load_profile

pytestmark = pytest.mark.netns
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
    "a direction": ("numgen random mod 50 == 0", 64, "of the direction port0>port1, which loses"),
}


def patterns(lab, agent, generator, condition, frame_size):
    drop(lab, "dut0", condition)
    return patterns_through(lab, agent, generator, load_profile("ethip4-ip4base", frame_size=frame_size))


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(bridged, agent, generator, fault):
    condition, frame_size, sentence = FAULTS[fault]
    first = patterns(bridged, agent, generator, condition, frame_size)[0]
    assert says(first, sentence)
    assert first.explained_ratio > 0.99


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_policer_is_not_faulty(bridged, agent, generator):
    condition = "limit rate over 6000/second burst 50 packets"
    found = patterns(bridged, agent, generator, condition, 64)
    assert [pattern.kind for pattern in found] == ["direction"]
