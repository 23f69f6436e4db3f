"""Tunnels of VPP, and its interfaces for frames with tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, VppForwarding, VppPort


class Vxlan(Feature):
    """A VXLAN tunnel on each link."""

    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, as for ``linux_bridge``; with ``l2bd``."""

    needs = Needs((VppForwarding.BRIDGE_DOMAIN,), plugins={"vxlan": "23.06"}, tags=("vxlan",))

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
