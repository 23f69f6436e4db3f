"""Tests of the generator inside the kernel with real frames, on a TG and a DUT of namespaces."""

from __future__ import annotations

import pytest
from traffic_lab import EAST, WEST

from lossratio.bpf import why_impossible
from lossratio.traffic import PortPair, load_profile, make_configuration

REPEATS = 20
"""A busy machine may keep a sender from its burst's rate, but not each time."""

NEEDS = [
    pytest.mark.netns,
    # Two that send at once would leave no processor to anything else.
    pytest.mark.xdist_group("xdp"),
    pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}"),
]


def configure(agent, profile="ethip4-udp", frame_size=64, settle_time=0.1, generator="xdp", cpus=None, **traffic):
    loaded = load_profile(profile, frame_size=frame_size, **traffic)
    configuration = make_configuration(loaded, [PortPair(WEST, EAST)], settle_time=settle_time)
    # However late a busy machine lets it.
    options = {"catch_up": 10.0} if cpus is None else {"catch_up": 10.0, "cpus": cpus}
    return agent.configure(configuration, generator=generator, options=options)
