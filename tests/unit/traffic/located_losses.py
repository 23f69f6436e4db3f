"""Trials of real frames through a device that loses some, as a measurement sees them: where their losses sit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from lossy_devices import whole_trial
from netns import NetnsLab
from traffic_lab import PAIR
from whole_trials import run_trial

from lossratio.bpf import why_impossible
from lossratio.results import LossPattern, loss_places_in
from lossratio.traffic import AgentClient, TrafficProfile, make_configuration

GENERATORS = [
    "afpacket",
    pytest.param("xdp", marks=pytest.mark.skipif(why_impossible() is not None, reason="no BPF here")),
]
"""The generators that locate losses."""
LOADS = (18e3, 12e3, 16e3, 10e3, 14e3, 19e3, 13e3, 17e3)
_SECONDS = 0.25
"""A sender takes a whole processor, whatever its load, so that trials are short."""


def patterns_through(
    lab: NetnsLab, agent: AgentClient, generator: str, profile: TrafficProfile, loads: Sequence[float] = LOADS
) -> tuple[LossPattern, ...]:
    """What the lost frames of trials through the bridge have in common."""
    for interface in ("dut0", "dut1"):
        lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
    configuration = make_configuration(profile, [PAIR], settle_time=0.2)
    agent.configure(configuration, generator=generator, options={"catch_up": 10.0})
    trials = [
        whole_trial(number, load, _SECONDS, run_trial(agent, load, _SECONDS))
        for number, load in enumerate(loads, start=1)
    ]
    places = loss_places_in(trials)
    return () if places is None else places.patterns


def says(pattern: LossPattern, words: str) -> bool:
    """Whether a pattern is told in these words, apart from the numbers of its flows."""
    return words in re.sub(r" \(numbers? [^)]*\)", "", pattern.sentence)
