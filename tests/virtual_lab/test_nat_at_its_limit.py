"""A NAT of a real kernel whose table of connections is full: `nf_conntrack_max`, which namespaces do not have."""

from __future__ import annotations

import pytest
from layouts import topologies
from measuring import PATIENTLY, place

from lossratio import load_profile
from lossratio.errors import DutError
from lossratio.measurements.connection_capacity import CapacityRequest
from lossratio.measurements.connection_rate import ConnectionRateRequest
from lossratio.measurements.measure import measure
from lossratio.mlrsearch import SearchGoal
from lossratio.results.kinds import kind_of
from lossratio.testbed import open_testbed

MOST = 400
SETTINGS = "/proc/sys/net/netfilter/nf_conntrack_"
OPTIONS = {"nat": "masquerade", "udp_timeout": "600 s"}
"""Entries outlast the trials of a slow machine."""
RATE = 200.0
FOREIGN = 10
"""Entries of log-ins, which come and go."""


@pytest.fixture(scope="module")
def nat(lab):
    """A testbed whose DUT is a NAT with few entries, and is as before afterwards."""
    dut = lab["DUT1"]
    dut.run("modprobe", "nf_conntrack")
    before = dut.run("cat", f"{SETTINGS}max").strip()
    with open_testbed(topologies(lab)["vmxnet3"], dut="linux_router", options=OPTIONS, recovery=PATIENTLY) as opened:
        dut.write(f"{SETTINGS}max", str(MOST))
        yield opened
        dut.write(f"{SETTINGS}max", before)


def foreign(lab):
    """Entries of others: those of the log-ins."""
    return int(lab["DUT1"].run("cat", f"{SETTINGS}count"))


def connections(name="ethip4-udp-connections"):
    return load_profile(name, frame_size=128)


def test_the_capacity_is_the_room_that_others_leave(lab, nat, tmp_path):
    request = CapacityRequest(profile=connections(), max_load=RATE, first=300, most=500, step=10, repeats=1)
    room = MOST - foreign(lab)
    (search,) = measure(kind_of("connection_capacity"), nat, request, place(tmp_path)).capacity.searches
    assert search.established - FOREIGN <= room <= search.lossy + FOREIGN


def test_a_rate_whose_trials_have_too_little_room_is_refused_before_any_frame(nat, tmp_path):
    goal = SearchGoal(0.0, 0.5, 4.0, 4.0, 0.05)
    request = ConnectionRateRequest(profile=connections(), max_load=RATE, goals=(goal,))
    with pytest.raises(DutError, match=rf"800 connections .* room for \d+: nf_conntrack_max is {MOST}, and \d+ are in"):
        measure(kind_of("connection_rate"), nat, request, place(tmp_path))
