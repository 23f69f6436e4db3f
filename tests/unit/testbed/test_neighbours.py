from __future__ import annotations

from dataclasses import dataclass

import pytest

from lossratio.dut import DestinationMacs
from lossratio.testbed.set_up import address_path


class Bridge:
    def destination_macs(self, west_mac, east_mac):
        return DestinationMacs(from_west=east_mac, from_east=west_mac)


@dataclass
class Router:
    name: str

    def destination_macs(self, west_mac, east_mac):
        return DestinationMacs(from_west=f"{self.name}.west", from_east=f"{self.name}.east")


WEST, EAST = "tg.west", "tg.east"


def test_frames_through_a_bridge_are_addressed_to_the_opposite_tg_port():
    from_tg, neighbours = address_path([Bridge()], WEST, EAST)
    assert from_tg == DestinationMacs(from_west=EAST, from_east=WEST)
    assert neighbours == ((WEST, EAST),)


def test_frames_through_a_router_are_addressed_to_the_facing_interface():
    from_tg, neighbours = address_path([Router("a")], WEST, EAST)
    assert from_tg == DestinationMacs(from_west="a.west", from_east="a.east")
    assert neighbours == ((WEST, EAST),)


@pytest.mark.parametrize(
    ("duts", "from_tg", "neighbours"),
    [
        ([Router("a"), Router("b")], ("a.west", "b.east"), [(WEST, "b.west"), ("a.east", EAST)]),
        ([Bridge(), Router("b")], ("b.west", "b.east"), [(WEST, "b.west"), (WEST, EAST)]),
        ([Router("a"), Bridge()], ("a.west", "a.east"), [(WEST, EAST), ("a.east", EAST)]),
        ([Bridge(), Bridge()], (EAST, WEST), [(WEST, EAST), (WEST, EAST)]),
    ],
)
def test_a_chain_addresses_frames_beyond_its_bridges(duts, from_tg, neighbours):
    assert address_path(duts, WEST, EAST) == (DestinationMacs(*from_tg), tuple(neighbours))
