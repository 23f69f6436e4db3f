"""A Linux router between two interfaces, for IPv4 or IPv6, that can be made slow enough to lose frames by itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from lossratio.dut.base import DestinationMacs
from lossratio.dut.changes import Changes
from lossratio.dut.linux import LinuxDut, LinuxOptions
from lossratio.dut.linux.handover import Handover
from lossratio.dut.linux.host_routes import add_host_routes
from lossratio.dut.linux.interfaces import check_free
from lossratio.dut.linux.ip_forwarding import check_forwarding, enable_forwarding
from lossratio.dut.linux.router_side import RouterSide
from lossratio.errors import DutError
from lossratio.topology import EAST, WEST

_MOST_HOSTS = 65_000
_QUEUE = 256
"""Frames that the queue in front of a handover's thread holds."""
_SECONDS_PER_RULE = 2e-7
"""What walking a rule may take: measured 4e-8 on an idle core, five times that on a busy one."""


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class RouterOptions(LinuxOptions):
    """What a router can be asked for."""

    ip_version: Annotated[Literal[4, 6], BeforeValidator(_number)] = 4
    """Version of IP that it routes."""
    routes: int | None = Field(default=None, ge=2, le=130_000, multiple_of=2)
    """Routes to single hosts, half of them to the first hosts of each side's network. There are no others then, so test
    traffic must not go to more hosts. Where missing, there is one route to each side's network."""
    rules: int = Field(default=0, ge=0, le=10_000)
    """nftables rules that every frame walks in a kernel thread of its direction's own, behind a queue of 256 frames.
    With enough of them the router loses frames by itself: 1000 took 40 microseconds a frame where this was measured."""

    @model_validator(mode="after")
    def _one_truth(self) -> RouterOptions:
        if self.rules and self.police is not None:
            raise ValueError("police and rules do not go together: whichever is slower would hide the other")
        if self.rules and self.routes is not None:
            raise ValueError("rules and routes do not go together: the second stage has a table of its own")
        return self


class LinuxRouter(LinuxDut[RouterOptions]):
    """A router between the networks of the two sides, with static routes and neighbours and no redirects.

    It has an address on each side, the last but one of the side's network; its neighbour there is taken to have the one
    before, and needs to answer for nothing: its MAC address is a permanent entry.
    """

    kind = "linux_router"
    options_type = RouterOptions
    family = "inet"

    @property
    def walked_rules(self) -> int:
        """As the options say."""
        return self.options.rules

    @property
    def entrances(self) -> dict[str, str]:
        """The interfaces, or the far ends of the handover where there is one."""
        return self._handover.entrances if self.options.rules else super().entrances

    @property
    def queues(self) -> dict[str, str]:
        """Those of the handover."""
        return self._handover.queues if self.options.rules else {}

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """Those of the handover."""
        return self._handover.interfaces if self.options.rules else ()

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay in flight: with a queue, until it has been worked off."""
        return super().settle_time + _QUEUE * self.options.rules * _SECONDS_PER_RULE

    def check_kind(self) -> None:
        """Checks that the networks of test traffic are free here, and that forwarding cuts nothing off."""
        super().check_kind()
        check_free(self.node, [side.network for side in self._sides])
        check_forwarding(self.node, self.options.ip_version)

    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Gives both interfaces addresses, routes and neighbours, and makes the kernel forward between them."""
        enable_forwarding(changes, self.node, (self.west, self.east), self.options.ip_version)
        for side, neighbour in zip(self._sides, (west_mac, east_mac), strict=True):
            side.configure(changes, neighbour, (self.options.routes or 0) // 2)
        if self.options.rules:
            self._handover.configure(changes, self.node)

    def reconfigure(self, entries: int) -> None:
        """Adds routes to single hosts, half of them on each side, the last ones of its network first."""
        for side, count in zip(self._sides, (entries - entries // 2, entries // 2), strict=True):
            if (self.options.routes or 0) // 2 + count > _MOST_HOSTS:
                raise DutError(f"{self.node.name}: a side has {_MOST_HOSTS} hosts; add fewer routes.")
            add_host_routes(self.present.changes, side.last_hosts(count), side.neighbour, side.interface)
            self.depend_on_host_routes(side.interface, count)

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The router's own interfaces'."""
        return self.own_macs()

    @property
    def _sides(self) -> tuple[RouterSide, RouterSide]:
        ipv4 = self.options.ip_version == 4
        return (
            RouterSide(self.west, WEST.ipv4 if ipv4 else WEST.ipv6),
            RouterSide(self.east, EAST.ipv4 if ipv4 else EAST.ipv6),
        )

    @property
    def _handover(self) -> Handover:
        return Handover(*self._sides, west_end=f"{self.stem}.w", east_end=f"{self.stem}.e")
