"""No DUT at all: a cable from the TG's one port to the other, to see what the generator can do by itself."""

from __future__ import annotations

from typing import Any

from lossratio.dut.base import DestinationMacs, Dut, DutCounters, DutOptions
from lossratio.errors import DutError

CABLE = "none"
"""Name of the kind; a path with it goes through no node."""


class CableOptions(DutOptions):
    """A cable can be asked for nothing."""


class Cable(Dut[CableOptions]):
    """What stands for a DUT where there is none; nothing can be set up on a node."""

    kind = CABLE
    options_type = CableOptions

    def check(self) -> None:
        """Refuses to be set up on a node.

        Raises:
            DutError: Always.
        """
        raise DutError(
            f"{self.hop.node_name}: kind {CABLE!r} is a cable, and this path goes through a node. Leave the kind out "
            f"if the node forwards without being set up, or use a topology with a link from the TG to the TG."
        )

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Refuses, as `check` does."""
        self.check()

    def verify(self) -> None:
        """Finds nothing to verify."""

    def describe(self) -> dict[str, Any]:
        """Says that there is nothing."""
        return {"kind": self.kind}

    def read_counters(self) -> DutCounters:
        """Counts nothing."""
        return DutCounters({}, {}, {})

    def tear_down(self) -> None:
        """Finds nothing to tear down."""

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The opposite port's."""
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

    @property
    def settle_time(self) -> float:
        """A cable holds no frames for longer than anybody could measure."""
        return 0.0
