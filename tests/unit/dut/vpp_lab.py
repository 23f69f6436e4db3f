"""The program that stands in for VPP, and frames through a VPP."""

from __future__ import annotations

from pathlib import Path

STAND_IN = Path(__file__).with_name("vpp_stand_in")


def assert_passes(dut_lab, dut, *, version=4):
    macs = dut.destination_macs(*dut_lab.macs)
    before = dut.read_counters()
    for entry, destination in (("west", macs.from_west), ("east", macs.from_east)):
        flooded = dut_lab.flood(entry, destination, frames=100, version=version)
        assert (flooded.sent, flooded.received) == (100, 100)
    counted = dut.read_counters().since(before)
    assert counted.received["west"] == counted.received["east"] == 100
    assert counted.unaccounted == 0
    assert set(counted.dropped.values()) == {0}
