"""A device that lossratio knows nothing about and does not touch: the kind that needs no log-in."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from lossratio.dut.base import DestinationMacs, Dut, DutCounters, DutOptions
from lossratio.errors import DutError
from lossratio.units import parse_duration

BLACK_BOX = "black_box"
"""Name of the kind."""


def _duration_or_none_at_all(value: Any) -> float:
    return 0.0 if str(value) in ("0", "0.0") else parse_duration(value)


Duration = Annotated[float, BeforeValidator(_duration_or_none_at_all)]
MacAddress = Annotated[str, Field(pattern="^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")]


class BlackBoxOptions(DutOptions):
    """What its owner knows about it."""

    hold: Duration = 0.5
    """How long after a trial frames may still come out, e.g. ``2 s`` for a deep queue. Later frames count as lost."""
    rest: Duration = 0.0
    """Time without traffic after which a trial has no effect on the next one, e.g. until a policer's bucket is full."""
    west_mac: MacAddress | None = None
    """MAC address of frames from the west: the next hop, if it routes. Where missing, that of the gateway in the
    topology file; without a gateway, that of the TG's east port."""
    east_mac: MacAddress | None = None
    """MAC address of frames from the east. Where missing, that of the gateway, or of the TG's west port."""

    @property
    def recovery_time(self) -> float:
        """The option ``rest``."""
        return self.rest


class BlackBox(Dut[BlackBoxOptions]):
    """A device on the path that others set up. Nothing is run on it, and it reports nothing."""

    kind = BLACK_BOX
    options_type = BlackBoxOptions
    lab_addresses = True

    def check(self) -> None:
        """Refuses what only a device that can be reached can do.

        Raises:
            DutError: If it is to be reset before each trial.
        """
        if self.options.reset:
            raise DutError(
                f"{self.hop.node_name}: a {self.kind} cannot be reset before each trial. Give it time instead, e.g. "
                "rest=2 s."
            )

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Does nothing: others have set it up."""

    def verify(self) -> None:
        """Does nothing: its state is not known."""

    def describe(self) -> dict[str, Any]:
        """The options, and that others have configured it."""
        return {"kind": self.kind, "configured_by": "others", **self.options.model_dump(mode="json")}

    def read_counters(self) -> DutCounters:
        """Has no counters that lossratio could read."""
        return DutCounters({}, {}, {})

    def tear_down(self) -> None:
        """Does nothing: nothing was set up."""

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The next hops of the options; where missing, the opposite ports, as through a bridge."""
        return DestinationMacs(self.options.west_mac or east_mac, self.options.east_mac or west_mac)

    @property
    def settle_time(self) -> float:
        """The option ``hold``."""
        return self.options.hold
