"""A policer is the known truth: the kernel of one machine polices what the other one sends, over PCI cards."""

from __future__ import annotations

import os

import pytest
from layouts import topologies

from lossratio import RunDirectory, SearchRequest, TestIdentity, TestPlace, find_conditional_throughput, load_profile
from lossratio.mlrsearch import SearchGoal
from lossratio.testbed import open_testbed

RATE, BURST, SECONDS = 400, 200, 2.0
TRUTH = RATE + (BURST - 1) / SECONDS
NO_LOSS = SearchGoal(0.0, 0.75, SECONDS, SECONDS, 0.02, name="no loss")


@pytest.fixture
def search(tmp_path):
    """Searches, and returns the whole result.

    Machines that wait for a core stall for longer than a frame may take, so their frames count as lost.
    """
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 9 * cores:
        pytest.skip(f"the machine is busy: a load of {load:.0f} on {cores} cores")

    def run(topology, kind):
        profile = load_profile("ethip4-udp", frame_size=64)
        request = SearchRequest(goals=(NO_LOSS,), profile=profile, min_load=100.0, max_load=2.5 * TRUTH)
        place = TestPlace(TestIdentity(name=kind, suite="virtual lab"), RunDirectory(tmp_path))
        options = {"police": f"{RATE} fps", "burst": BURST}
        with open_testbed(topology, dut=kind, options=options) as testbed:
            return find_conditional_throughput(testbed, request, place)

    return run


@pytest.mark.parametrize("generator", ["afpacket", "xdp"])
@pytest.mark.parametrize("cards", ["vmxnet3", "mixed"])
@pytest.mark.parametrize("kind", ["linux_bridge", "linux_router"])
def test_the_bounds_enclose_what_a_policer_passes(lab, search, kind, cards, generator):
    before = lab["DUT1"].shell(STATE)
    result = search(topologies(lab, generator)[cards], kind)
    found = result.goals[0].result

    print(found, [(t.load_per_interface_fps, str(t.missing)) for t in result.trials])
    assert found.regular, found.reason
    assert found.relevant_lower_bound.per_interface_fps <= TRUTH + 2 / SECONDS
    assert found.relevant_upper_bound.per_interface_fps >= TRUTH - 2 / SECONDS
    assert lab["DUT1"].shell(STATE) == before


STATE = (
    "ip -brief link; nft list ruleset; sysctl -a 2>/dev/null | grep -E '^net.(ipv4|ipv6|bridge|core)' | grep -v random"
)
"""What a tear-down restores."""
