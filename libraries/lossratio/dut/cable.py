"""Devices that lossratio does not set up, and the cable: a path from one port of the TG to the other without a device.

The cable shows what the generator can do by itself.
"""

from typing import Any

from lossratio.dut.base import DestinationMacs, Dut, DutCounters, DutOptions, OptionsT_co
from lossratio.errors import DutError

CABLE = "none"
"""Name of the kind whose path goes through no node."""


class LeftAsItIs(Dut[OptionsT_co]):
    """A device that lossratio does not set up, and about which it knows nothing."""

    is_managed = False

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Does nothing."""

    def verify(self) -> None:
        """Does nothing: its state is not known."""

    def describe(self) -> dict[str, Any]:
        """Contains only the kind."""
        return {"kind": self.kind}

    def read_counters(self) -> DutCounters:
        """Returns no counters."""
        return DutCounters({}, {}, {})

    def tear_down(self) -> None:
        """Does nothing: nothing was set up."""

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The MAC addresses of the opposite neighbours, as through a bridge."""
        return DestinationMacs(from_west=east_mac, from_east=west_mac)


class CableOptions(DutOptions):
    """A cable has no options of its own."""

    is_router = False
    is_kernel = True


class Cable(LeftAsItIs[CableOptions]):
    """No device, only a cable. It cannot be set up on a node."""

    kind = CABLE
    options_type = CableOptions
    # The time in which frames pass a cable cannot be measured.
    settle_time = 0.0

    def check(self) -> None:
        """Refuses a path through a node: a cable has none.

        Raises:
            DutError: Always; only a path without nodes has this kind.
        """
        raise DutError(
            f"{self.hop.node_name}: kind {CABLE!r} is a cable, but this path goes through a node. Leave out the "
            "kind if the node forwards without a set-up, or use a topology with a link from the TG to the TG."
        )

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Refuses, as `check` does."""
        self.check()
