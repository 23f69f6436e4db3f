"""Headers that one of two VPPs in a row puts around packets, and the other takes off: SRv6 and GTP-U; and a bond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from ipaddress import IPv6Address

from pydantic import Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppForwarding, VppPort
from lossratio.dut.vpp.features.secure_tunnels import both_sides, first_ends, reach_ends

_SIDS = 1 << 64
_BINDING = _SIDS + (1 << 16)
_IPV6_BYTES, _SEGMENTS_BYTES, _SEGMENT_BYTES = 40, 8, 16
_GTPU_BYTES = 36
_TEID = 10
_LACP_SECONDS = 30.0


class Srv6(Feature):
    """Segment routing over IPv6 (RFC 8986) between the two VPPs of a path."""

    srv6: int | None = Field(default=None, ge=1, le=2)
    """Segments, 1 or 2, of the other one of two VPPs, which packets visit by segment routing; with ``ip6``."""

    needs = Needs((VppForwarding.IP6,), tags=("srv6",), shows=("show sr localsids",), duts=2)

    @property
    def encapsulation_overhead(self) -> int:
        """The outer IPv6 header, and the list of segments if there are several."""
        many = _SEGMENTS_BYTES + 2 * _SEGMENT_BYTES if self.srv6 == 2 else 0
        return super().encapsulation_overhead + (_IPV6_BYTES + many if self.srv6 else 0)

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """Towards the other VPP its segments."""
        via = f"via {port.routed(6).neighbour} {port.interface}"
        return [Command(f"ip route add {_sid(port, 0)}/112 {via}")] if port.faces_dut else None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policy for packets to the other side, and the segments of this VPP."""
        clear, wire = both_sides(ports)
        count = self.srv6 or 0
        visits = " ".join(f"next {_sid(wire, number + 1)}" for number in range(count))
        binding = clear.side.ipv6[_BINDING]
        yield Command(f"set sr encaps source addr {_sid(clear, 1)}")
        yield Command(f"sr policy add bsid {binding} {visits} encap")
        yield Command(f"sr steer l3 {wire.side.ipv6} via bsid {binding}")
        if count == 2:
            yield Command(f"sr localsid address {_sid(clear, 1)} behavior end")
        way_out = f"{clear.interface} {clear.routed(6).neighbour}"
        yield Command(f"sr localsid address {_sid(clear, count)} behavior end.dx6 {way_out}")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The policy."""
        yield Shown("show sr policies", r"Behavior:\s+Encapsulation", "a policy that encapsulates")

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Packets reached each segment."""
        yield Shown(
            "show sr localsids", rf"(?s)\A(.*Good traffic:\s+\[[1-9]){{{self.srv6}}}", "packets at each segment"
        )


class Gtpu(Feature):
    """A GTP-U tunnel (3GPP TS 29.281) between the two VPPs of a path."""

    gtpu: bool = False
    """Whether packets between the two VPPs of the path are in a GTP-U tunnel; with ``ip4``."""
    gtpu_mtu: int | None = Field(default=None, ge=576, le=9000)
    """Bytes of the largest packet between the two VPPs: larger ones are fragmented, and reassembled."""

    needs = Needs((VppForwarding.IP4,), plugins={"gtpu": ""}, tags=("gtpu",), duts=2)

    @property
    def encapsulation_overhead(self) -> int:
        """The headers of the tunnel."""
        return super().encapsulation_overhead + (_GTPU_BYTES if self.gtpu else 0)

    def problem(self) -> str | None:
        """An MTU without a tunnel."""
        return None if self.gtpu else "gtpu_mtu is about a tunnel; give gtpu, too"

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """Towards the other VPP the ends of the tunnel."""
        return list(reach_ends(port)) if port.faces_dut else None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnel, and the route through it."""
        _, wire = both_sides(ports)
        local, remote = first_ends(wire)
        if self.gtpu_mtu is not None:
            yield Command(f"set interface mtu packet {self.gtpu_mtu} {wire.link}")
        ends = f"src {local} dst {remote} teid {_TEID} decap-next ip4"
        yield Command(f"create gtpu tunnel {ends}", answer=r"gtpu_tunnel0")
        yield Command("set interface state gtpu_tunnel0 up")
        yield Command(f"set interface unnumbered gtpu_tunnel0 use {wire.interface}")
        yield Command(f"ip route add {wire.side.ipv4} via gtpu_tunnel0")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The tunnel."""
        yield Shown("show gtpu tunnel", rf"teid {_TEID}\b", "the tunnel")


class Bond(Feature):
    """A bond of one link between the two VPPs of a path."""

    bond: bool = False
    """Whether the link between the two VPPs of the path is a bond by LACP; with ``l2xc`` or ``l2bd``."""

    needs = Needs(
        (VppForwarding.CROSS_CONNECT, VppForwarding.BRIDGE_DOMAIN), plugins={"lacp": ""}, tags=("lbond",), duts=2
    )

    def below(self, port: VppPort) -> tuple[VppPort, Iterable[Command]]:
        """The bond upon the link to the other VPP."""
        if not port.faces_dut:
            return port, ()
        return replace(port, interface="BondEthernet0"), (
            Command("create bond mode lacp load-balance l34 id 0", answer="BondEthernet0"),
            Command(f"bond add BondEthernet0 {port.link}"),
            Command("set interface state BondEthernet0 up"),
        )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The other end takes part, which the second VPP can know."""
        if ports[0].faces_dut:
            yield Shown("show bond", r"BondEthernet0\s+\d+\s+lacp\s+l34\s+1\s+1\s", "an active link", _LACP_SECONDS)


def _sid(port: VppPort, number: int) -> IPv6Address:
    """A segment of the VPP that has the networks behind a port on its own side."""
    return port.side.ipv6[_SIDS + number]
