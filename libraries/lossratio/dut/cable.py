"""No DUT: a cable from the TG's one port to the other, which shows what the generator can do by itself."""

from __future__ import annotations

from typing import Any

from lossratio.dut.base import DestinationMacs, Dut, DutCounters, DutOptions
from lossratio.errors import DutError

CABLE = "none"
"""Name of the kind; a path with it goes through no node."""


class CableOptions(DutOptions):
    """A cable has no options of its own."""


class Cable(Dut[CableOptions]):
    """The kind of a path without a DUT. It cannot be set up on a node."""

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
        """Does nothing: a cable has no state."""

    def describe(self) -> dict[str, Any]:
        """Has the kind only."""
        return {"kind": self.kind}

    def read_counters(self) -> DutCounters:
        """Has no counters."""
        return DutCounters({}, {}, {})

    def tear_down(self) -> None:
        """Does nothing: nothing is set up."""

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The MAC addresses of the opposite ports."""
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

    @property
    def settle_time(self) -> float:
        """0: the time in which frames pass a cable cannot be measured."""
        return 0.0
