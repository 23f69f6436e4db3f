"""Tunnels of VPP, and its interfaces for frames with tags."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppPort


class Vlan(Feature):
    """A tag of IEEE 802.1Q on each link."""

    vlan: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on both links, by an interface upon each; bridges and cross-connects take the tag off."""

    needs = Needs(("l2xc", "l2bd", "ip4", "ip6"), tags=("dot1q",))

    def below(self, port: VppPort) -> tuple[VppPort, Sequence[Command]]:
        """The interface of the VLAN."""
        name = f"{port.interface}.{self.vlan}"
        made = Command(f"create sub-interfaces {port.interface} {self.vlan}", answer=re.escape(name))
        return replace(port, interface=name), (made, Command(f"set interface state {name} up"))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """Tags are taken off, and written again."""
        if not self.is_router:
            yield from (Command(f"set interface l2 tag-rewrite {port.interface} pop 1") for port in ports)

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The interfaces."""
        for port in ports:
            yield Shown(f"show interface {port.interface}", r"\sup\s", f"{port.interface} up")


class Vxlan(Feature):
    """A VXLAN tunnel on each link."""

    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, as for ``linux_bridge``; with ``l2bd`` or ``l2xc``."""

    needs = Needs(("l2bd", "l2xc"), plugins={"vxlan": "23.06"}, tags=("vxlan",))

    @property
    def is_addressed(self) -> bool:
        """The ends of tunnels are."""
        return self.vxlan or super().is_addressed

    def below(self, port: VppPort) -> tuple[VppPort, Sequence[Command]]:
        """The tunnel's interface."""
        tunnel = port.tunnel
        ends = f"src {tunnel.local} dst {tunnel.remote} vni {tunnel.vni} instance {tunnel.vni} decap-next l2"
        return replace(port, interface=tunnel.name, neighbour_mac=""), (
            Command(f"set interface ip address {port.link} {tunnel.local}/32"),
            Command(f"set ip neighbor {port.link} {tunnel.remote} {port.neighbour_mac} static"),
            Command(f"ip route add {tunnel.remote}/32 via {tunnel.remote} {port.link}"),
            Command(f"create vxlan tunnel {ends}", answer=r"vxlan_tunnel\d+"),
        )
