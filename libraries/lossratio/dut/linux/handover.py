"""A second stage inside a router: frames wait in a queue for a kernel thread of their direction's own.

Without it, the kernel forwards a veth's frames inside the sender's system call, so that a slow router slows the sender
down instead of losing frames; a queue right behind the veth does the same, as the sender is told when it is full. Past
a first routing step nobody is told: the queue overflows, and frames are lost as in any device too slow.

The stage is a veth pair. Frames from the west are routed into its west end by a rule of their own; they come out of its
east end in that interface's NAPI thread, and are routed on from there as usual. Frames from the east go the other way
through the same pair. A frame's TTL is lowered twice. No root is needed, as it would be for RPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType

from lossratio.dut.base import EASTWARD, WESTWARD
from lossratio.dut.changes import Changes
from lossratio.dut.linux.interfaces import existing_links
from lossratio.dut.linux.ip_forwarding import enable_forwarding
from lossratio.dut.linux.router_side import RouterSide
from lossratio.nodes import DutNode

# Stand for the other end of the veth pair; link-local ones, so that no other route can lead to them.
_GATEWAYS: Mapping[int, IPv4Address | IPv6Address] = MappingProxyType(
    {4: IPv4Address("169.254.198.18"), 6: IPv6Address("fe80::198:18")}
)
# Routing tables, and priorities of the rules that lead to them.
_EASTWARD_TABLE = 19818
_WESTWARD_TABLE = 19819


@dataclass(frozen=True)
class Handover:
    """The two stages' connection.

    Attributes:
        west: West side of the router.
        east: East side of the router.
        west_end: Name of the veth that frames from the west are sent into.
        east_end: Name of the other end.
    """

    west: RouterSide
    east: RouterSide
    west_end: str
    east_end: str

    @property
    def interfaces(self) -> tuple[str, str]:
        """Both ends."""
        return (self.west_end, self.east_end)

    @property
    def entrances(self) -> dict[str, str]:
        """By direction, the end on which its frames come in to the second stage."""
        return {EASTWARD: self.east_end, WESTWARD: self.west_end}

    @property
    def queues(self) -> dict[str, str]:
        """By direction, the end that drops the frames for which the other end's queue has no room."""
        return {EASTWARD: self.west_end, WESTWARD: self.east_end}

    def configure(self, changes: Changes, node: DutNode) -> None:
        """Makes the stage, and leads the frames through it.

        Raises:
            DutError: If the kernel has no threaded NAPI for veth (it takes 5.13 or later).
        """
        links = existing_links(node, self.west.interface, self.east.interface)
        mtu = ("mtu", str(max(links[side.interface]["mtu"] for side in (self.west, self.east))))
        changes.run(
            *("ip", "link", "add", "name", self.west_end, *mtu, "type", "veth", "peer", "name", self.east_end, *mtu),
            undo=("ip", "link", "delete", "dev", self.west_end),
        )
        enable_forwarding(changes, node, self.interfaces, self.west.network.version)
        for end in self.interfaces:
            # A veth only queues if its other end may not send what the stack has not yet cut into frames.
            changes.run("ethtool", "-K", end, "tso", "off", "gro", "on")
            changes.run("ip", "link", "set", "dev", end, "up")
            changes.write(f"/sys/class/net/{end}/threaded", "1")
        links = existing_links(node, *self.interfaces)
        ends = (self.west_end, self.east_end)
        self._lead(changes, self.west, self.east, ends, links[self.east_end]["address"], _EASTWARD_TABLE)
        self._lead(changes, self.east, self.west, ends[::-1], links[self.west_end]["address"], _WESTWARD_TABLE)

    def _lead(
        self, changes: Changes, source: RouterSide, target: RouterSide, ends: tuple[str, str], mac: str, table: int
    ) -> None:
        """Leads frames from one side into the near end, addressed to the far one."""
        near = ends[0]
        gateway = _GATEWAYS[target.network.version]
        target.add_neighbour(changes, near, gateway, mac)
        target.add(
            *(changes, "route", str(target.network), "via", str(gateway), "dev", near, "onlink", "table", str(table))
        )
        target.add(changes, "rule", "iif", source.interface, "lookup", str(table), "priority", str(table))
