"""What stands on either side of each DUT on the path: whom its frames must be addressed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.dut import DestinationMacs, Dut, DutOptions


@dataclass(frozen=True)
class Neighbours:
    """MAC addresses that frames carry when they leave a DUT.

    Attributes:
        west: Destination of frames that leave it on its west side.
        east: Destination of frames that leave it on its east side.
    """

    west: str
    east: str


@dataclass(frozen=True)
class Addressing:
    """Whom frames are addressed to, all along the path.

    Attributes:
        from_tg: What frames must carry when they leave the TG's west port, and its east port.
        neighbours: The neighbours of each DUT, from west to east.
    """

    from_tg: DestinationMacs
    neighbours: tuple[Neighbours, ...]


def address_path(duts: Sequence[Dut[DutOptions]], west_mac: str, east_mac: str) -> Addressing:
    """Works out from each end of the path what frames to that end must carry on every link.

    A bridge leaves frames as they are, so before it they are addressed as beyond it; a router readdresses them.

    Args:
        duts: The DUTs, from west to east.
        west_mac: MAC address of the TG's west port.
        east_mac: MAC address of the TG's east port.
    """
    eastward = [east_mac]
    for dut in reversed(duts):
        eastward.insert(0, dut.destination_macs(west_mac, eastward[0]).from_west)
    westward = [west_mac]
    for dut in duts:
        westward.append(dut.destination_macs(westward[-1], east_mac).from_east)
    neighbours = tuple(Neighbours(west, east) for west, east in zip(westward, eastward[1:], strict=False))
    return Addressing(DestinationMacs(from_west=eastward[0], from_east=westward[-1]), neighbours)
