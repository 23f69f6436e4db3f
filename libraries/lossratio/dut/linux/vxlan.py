"""A VXLAN tunnel on one link of a bridge: its frames are taken out of the tunnel, and put into one again."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from lossratio.dut.changes import Changes

WEST_VNI, EAST_VNI = 24, 25
"""VXLAN network identifiers of the tunnels; Linux knows those of one port apart by nothing else."""

PORT = 4789
"""UDP port of VXLAN (RFC 7348)."""


@dataclass(frozen=True)
class Tunnel:
    """The DUT's end of a tunnel to the neighbour on one link.

    The neighbour sends from the first address of its own network to the second one of the opposite network: so all four
    ends of both tunnels have different addresses, and test traffic needs no other networks than those it has.

    Attributes:
        interface: The interface that the tunnel goes over.
        name: Name of the tunnel's interface.
        near: Network of the neighbour's side.
        far: Network of the opposite side.
        vni: VXLAN network identifier.
    """

    interface: str
    name: str
    near: IPv4Network
    far: IPv4Network
    vni: int

    @property
    def local(self) -> IPv4Address:
        """The DUT's address."""
        return self.far[2]

    @property
    def remote(self) -> IPv4Address:
        """The neighbour's address."""
        return self.near[1]

    def configure(self, changes: Changes, neighbour_mac: str) -> None:
        """Makes the tunnel's interface, and the way to the neighbour."""
        device = ("dev", self.interface)
        for what, arguments in (
            ("address", (f"{self.local}/32", *device)),
            ("neighbour", (str(self.remote), "lladdr", neighbour_mac, *device, "nud", "permanent")),
            ("route", (f"{self.remote}/32", *device)),
        ):
            command = ("ip", "-4", what)
            changes.run(*command, "add", *arguments, undo=(*command, "delete", *arguments))
        kind = ("type", "vxlan", "id", str(self.vni), "dstport", str(PORT), "nolearning", *device)
        ends = ("local", str(self.local), "remote", str(self.remote))
        changes.run(
            *("ip", "link", "add", "name", self.name, *kind, *ends),
            undo=("ip", "link", "delete", "dev", self.name),
        )
        changes.run("ip", "link", "set", "dev", self.name, "up")
