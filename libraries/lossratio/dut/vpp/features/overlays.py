"""Headers around packets that need no keys (VXLAN, tags, SRv6, GTP-U, GENEVE), and a bond."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv6Address
from typing import Literal

from pydantic import Field

from lossratio.dut.linux.addressing import WEST_VNI
from lossratio.dut.vpp.features.feature import (
    LOOKING,
    Command,
    Feature,
    Needs,
    Ports,
    Shown,
    VppPort,
)
from lossratio.dut.vpp.features.process import (
    MACS,
    MEMIF,
    MEMIFS,
    forwarder,
    is_connected,
    memif_commands,
    sleeping,
)
from lossratio.dut.vpp.features.secure_tunnels import both_sides, first_ends, reach_ends, through
from lossratio.topology import EAST

_BLIND = ("classify", "allowlist", "mark")
"""Options of filters where frames enter. Frames that have a tag there pass them unseen (tried with VPP 26.10)."""
_TAG_BYTES = 4
_VXLAN_BYTES = 50


class Vlan(Feature):
    """An IEEE 802.1Q tag on links."""

    vlan: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on both links, with an interface on each link; bridges and cross-connects remove the tag."""
    vlan_east: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on the east link of the path, if it is a different one."""
    vlan_between: bool = False
    """Whether only the links between two DUTs have the tag."""

    needs = Needs(LOOKING, tags=("dot1q",), overhead={"vlan_between": _TAG_BYTES})

    def problem(self) -> str | None:
        """The options `vlan_east` and `vlan_between` need the option `vlan`; some filters cannot look behind a tag."""
        if self.vlan is None:
            return "vlan_east and vlan_between apply to a tag; also set vlan"
        if self.vlan_between and self.vlan_east is not None:
            return "vlan_east applies to a link of the TG, which has no tag with vlan_between: leave one of them out"
        blind = [name for name in _BLIND if getattr(self, name, None)]
        if blind and not self.vlan_between:
            return f"{blind[0]} would have no effect, because VPP does not look behind the tag: leave vlan out"
        return None

    def below(self, port: VppPort) -> tuple[VppPort, Sequence[Command]]:
        """The interface of the VLAN."""
        if not Vlan._is_tagged(self, port):
            return port, ()
        is_east_end = port.side is EAST and not port.faces_dut
        vlan = self.vlan_east if self.vlan_east and is_east_end else self.vlan
        name = f"{port.interface}.{vlan}"
        made = Command(f"create sub-interfaces {port.interface} {vlan}", answer=re.escape(name))
        return replace(port, interface=name, vlan=name), (
            made,
            Command(f"set interface state {name} up"),
        )

    def commands(self, ports: Ports) -> Iterator[Command]:
        """Tags are removed, and written again."""
        if not self.is_router:
            yield from (
                Command(f"set interface l2 tag-rewrite {port.interface} pop 1")
                for port in ports
                if Vlan._is_tagged(self, port)
            )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The interfaces."""
        for port in ports:
            yield Shown(f"show interface {port.interface}", r"\sup\s", f"{port.interface} up")

    def _is_tagged(self, port: VppPort) -> bool:
        return port.faces_dut or not self.vlan_between


class Vxlan(Feature):
    """A VXLAN tunnel on links."""

    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, as for ``linux_bridge``. With ``l2bd`` or ``l2xc``."""
    vxlan_between: bool = False
    """Whether only frames between two DUTs are in a VXLAN tunnel. With ``l2bd`` or ``l2xc``."""

    needs = Needs(
        ("l2bd", "l2xc"),
        plugins={"vxlan": "23.06"},
        tags=("vxlan",),
        overhead={"vxlan_between": _VXLAN_BYTES},
    )

    @property
    def is_addressed(self) -> bool:
        """Whether VPP is the end of a tunnel to the TG: frames must then be addressed to VPP."""
        return self.vxlan or super().is_addressed

    def problem(self) -> str | None:
        """Tunnels cannot be both on all links and only between DUTs."""
        if self.vxlan and self.vxlan_between:
            return "vxlan is on all links, vxlan_between only on links between DUTs: leave one of them out"
        return None

    def below(self, port: VppPort) -> tuple[VppPort, Sequence[Command]]:
        """The tunnel's interface."""
        if self.vxlan_between and not port.faces_dut:
            return port, ()
        tunnel = port.tunnel
        mac = port.other_end or port.neighbour_mac
        local, remote, vni = tunnel.local, tunnel.remote, tunnel.vni
        if port.faces_dut:
            # Both ends use the same identifier, unlike the ends of a tunnel to the TG.
            local, remote = first_ends(port)
            vni = WEST_VNI

        ends = f"src {local} dst {remote} vni {vni} instance {tunnel.vni} decap-next l2"
        # Table: the commands that make a tunnel.
        commands = (
            Command(f"set interface ip address {port.link} {local}/32"),
            Command(f"set ip neighbor {port.link} {remote} {mac} static"),
            Command(f"ip route add {remote}/32 via {remote} {port.link}"),
            Command(f"create vxlan tunnel {ends}", answer=r"vxlan_tunnel\d+"),
        )
        return replace(port, interface=tunnel.name, neighbour_mac=""), commands


_SIDS = 1 << 64
_BINDING = _SIDS + (1 << 16)
_IPV6_BYTES = 40
_SEGMENTS_BYTES = 8
_SEGMENT_BYTES = 16
_GTPU_BYTES = 36
_GENEVE_BYTES = 50
_SERVICE = _SIDS + (1 << 17)
_TEID = 10
_LACP_SECONDS = 30.0
_BEHAVIORS = {"dynamic": "end.ad", "masquerading": "end.am", "static": "end.as"}


class _Segments(Feature):
    """Segment routing over IPv6 (RFC 8986) between the two VPPs of a path."""

    needs = Needs(("ip6",), shows=("show sr localsids",), duts=2)

    @property
    def segments(self) -> tuple[int, int]:
        """Segments in the outer header between the VPPs, and in the header that the TG gets; 0: there is no header."""
        return 0, 0

    @property
    def encapsulation_overhead(self) -> int:
        """The outer IPv6 header, and the list of segments if there are several."""
        return super().encapsulation_overhead + _outer_bytes(self.segments[0])

    @property
    def growth(self) -> tuple[int, int]:
        """The outer header, if it remains."""
        _, left = self.segments
        if left:
            return (_outer_bytes(left),) * 2
        return super().growth

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """For the port that faces the other VPP, the route to the segments of that VPP."""
        via = f"via {port.routed(6).neighbour} {port.interface}"
        if port.faces_dut:
            return [Command(f"ip route add {_sid(port, 0)}/112 {via}")]
        return None

    def steering(self, ports: Ports) -> Iterator[Command]:
        """A policy that sends packets for the other side through segments there."""
        clear, wire = both_sides(ports)
        binding = clear.side.ipv6[_BINDING]
        yield Command(f"set sr encaps source addr {_sid(clear, 1)}")
        visits = " ".join(f"next {_sid(wire, number + 1)}" for number in range(self.segments[0]))
        yield Command(f"sr policy add bsid {binding} {visits} encap")
        yield Command(f"sr steer l3 {wire.side.ipv6} via bsid {binding}")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        yield Shown("show sr policies", r"Behavior:\s+Encapsulation", "a policy that encapsulates")


class Srv6(_Segments):
    """Segments of the other VPP of a path."""

    srv6: int | None = Field(default=None, ge=1, le=2)
    """Number of the other VPP's segments (1 or 2) that packets visit by segment routing. With ``ip6``."""
    srv6_decapsulation: bool = True
    """Whether the second segment removes the outer header. Otherwise, the segment is beyond the path, and the TG gets
    packets with their outer header."""

    needs = replace(_Segments.needs, tags=("srv6",))

    @property
    def segments(self) -> tuple[int, int]:
        """The number in the option; for the header that the TG gets, two if it remains, otherwise none."""
        if self.srv6:
            return (self.srv6, 0 if self.srv6_decapsulation else 2)
        return super().segments

    def problem(self) -> str | None:
        """An outer header that remains needs a second segment."""
        if self.srv6 == 2 or self.srv6_decapsulation:
            return None
        return "srv6_decapsulation=False needs srv6=2: the second segment is behind the path"

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policy for packets to the other side, and the segments of this VPP."""
        clear, _ = both_sides(ports)
        yield from self.steering(ports)
        if self.srv6 == 2:
            yield Command(f"sr localsid address {_sid(clear, 1)} behavior end")
        if self.srv6_decapsulation:
            way_out = f"{clear.interface} {clear.routed(6).neighbour}"
            yield Command(
                f"sr localsid address {_sid(clear, self.segments[0])} behavior end.dx6 {way_out}"
            )

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Packets reached each segment."""
        count = self.srv6 if self.srv6_decapsulation else 1
        yield Shown(
            "show sr localsids",
            rf"(?s)\A(.*Good traffic:\s+\[[1-9]){{{count}}}",
            "packets at each segment",
        )


class Srv6Proxy(_Segments):
    """A service that knows nothing about segment routing, behind a proxy on each of the two VPPs of a path."""

    srv6_proxy: Literal["dynamic", "masquerading", "static"] | None = None
    """How packets of segment routing pass through a process beside each of the two VPPs (testpmd by memif, or a
    ``container``): ``dynamic`` (End.AD), ``masquerading`` (End.AM) or ``static`` (End.AS). With ``ip6``. The TG gets
    them with their outer header."""

    needs = replace(
        _Segments.needs,
        plugins=dict.fromkeys(("memif", "srv6ad", "srv6am", "srv6as"), ""),
        tags=("srv6_proxy",),
        proves=(
            Shown(f"show interface {MEMIFS[1]}", r"rx packets\s+[1-9]", "packets from the service"),
        ),
    )

    @property
    def segments(self) -> tuple[int, int]:
        """Three segments; a static proxy writes another header, which does not have the visited segment."""
        if self.srv6_proxy:
            return (3, 2 if self.srv6_proxy == "static" else 3)
        return super().segments

    def problem(self) -> str | None:
        """Packets cannot also visit segments in another way."""
        if getattr(self, "srv6", 0):
            return "srv6 and srv6_proxy steer the same packets: leave one out"
        return None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policy for packets to the other side, the way through the service, and the proxy of this VPP."""
        assert self.srv6_proxy is not None  # noqa: S101  (the feature is on)
        clear, wire = both_sides(ports)
        yield from self.steering(ports)
        for number, name in enumerate(MEMIFS):
            yield from memif_commands(wire.directory, number, is_client=self.is_contained)
            yield Command(f"enable ip6 interface {name}")
        service = clear.side.ipv6[_SERVICE]
        yield Command(f"set ip neighbor {MEMIFS[0]} {service} {MACS[1]} static")
        way = f"{_BEHAVIORS[self.srv6_proxy]} nh {service} oif {MEMIFS[0]} iif {MEMIFS[1]}"
        if self.srv6_proxy == "static":
            way += f" src {_sid(wire, 1)} next {_sid(clear, 2)} next {_sid(clear, 3)}"
        yield Command(f"sr localsid address {_sid(clear, 1)} behavior {way}")

    def programs(self, directory: str) -> Iterator[tuple[str, ...]]:
        """The service."""
        if not self.is_contained:
            yield forwarder(MEMIF, directory)

    def connected(self, ports: Ports) -> Iterator[Command]:
        """If VPP's workers sleep, they do not poll these interfaces."""
        return sleeping(self, ports, MEMIFS)

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The policy, and the service."""
        yield from _Segments.verified(self, ports)
        yield from map(is_connected, MEMIFS)


class Gtpu(Feature):
    """A GTP-U tunnel (3GPP TS 29.281) between the two VPPs of a path."""

    gtpu: bool = False
    """Whether packets between the two VPPs of the path are in a GTP-U tunnel. With ``ip4``."""
    gtpu_mtu: int | None = Field(default=None, ge=576, le=9000)
    """Bytes of the largest packet between the two VPPs. Larger packets are fragmented, and reassembled."""

    needs = Needs(
        ("ip4",), plugins={"gtpu": ""}, tags=("gtpu",), duts=2, overhead={"gtpu": _GTPU_BYTES}
    )

    def problem(self) -> str | None:
        """An MTU needs a tunnel."""
        if self.gtpu:
            return None
        return "gtpu_mtu applies to a tunnel; also set gtpu"

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """For the port that faces the other VPP, the routes to the ends of the tunnel."""
        return reach_ends(port)

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnel, and the route through it."""
        _, wire = both_sides(ports)
        local, remote = first_ends(wire)
        if self.gtpu_mtu is not None:
            yield Command(f"set interface mtu packet {self.gtpu_mtu} {wire.link}")
        ends = f"src {local} dst {remote} teid {_TEID} decap-next ip4"
        yield Command(f"create gtpu tunnel {ends}", answer=r"gtpu_tunnel0")
        yield from map(Command, through("gtpu_tunnel0", wire, wire.side.ipv4))

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The tunnel."""
        yield Shown("show gtpu tunnel", rf"teid {_TEID}\b", "the tunnel")


class Bond(Feature):
    """A bond of one link between the two VPPs of a path."""

    bond: bool = False
    """Whether the link between the two VPPs of the path is a bond by LACP. With ``l2xc`` or ``l2bd``."""

    needs = Needs(("l2xc", "l2bd"), plugins={"lacp": ""}, tags=("lbond",), duts=2)

    def below(self, port: VppPort) -> tuple[VppPort, Iterable[Command]]:
        """The bond on the link to the other VPP."""
        if not port.faces_dut:
            return port, ()
        return replace(port, interface="BondEthernet0"), (
            Command("create bond mode lacp load-balance l34 id 0", answer="BondEthernet0"),
            Command(f"bond add BondEthernet0 {port.link}"),
            Command("set interface state BondEthernet0 up"),
        )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The other end takes part in the bond, which only the VPP that is set up second can know."""
        if ports[0].faces_dut:
            yield Shown(
                "show bond",
                r"BondEthernet0\s+\d+\s+lacp\s+l34\s+1\s+1\s",
                "an active link",
                _LACP_SECONDS,
            )


class Geneve(Feature):
    """GENEVE tunnels (RFC 8926): packets to the east are routed into them, and packets from there arrive in them."""

    geneve: int | None = Field(default=None, ge=1, le=1024)
    """Number of GENEVE tunnels on the east link, one for each of the first networks (/24) of 244.0.0.0/6, whose packets
    come from as many networks of 240.0.0.0/6. With ``ip4``, and traffic profiles such as ``ethip4-geneve16``. On that
    link, the TG sends and receives frames that are 50 bytes longer."""

    needs = Needs(
        ("ip4",),
        plugins={"geneve": ""},
        tags=("geneve_l3mode",),
        duts=1,
        proves=(Shown("show errors", r"[1-9]\d*\s+geneve4-encap", "packets in tunnels"),),
    )

    @property
    def growth(self) -> tuple[int, int]:
        """The headers of the tunnel, which are removed from frames from the east."""
        if self.geneve is None:
            return super().growth
        return (_GENEVE_BYTES, -_GENEVE_BYTES)

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnels, in one file."""
        yield Command(
            "".join(f"{line}\n" for line in Geneve._lines(self, *ports)), r"(geneve_tunnel\d+\s*)*"
        )

    def _lines(self, west: VppPort, port: VppPort) -> Iterator[str]:
        (local, remote), neighbour = first_ends(port), port.routed(4).neighbour
        source, destination = west.side.wide_ipv4, port.side.wide_ipv4
        yield f"ip route add {local}/32 via local"
        for number in range(self.geneve or 0):
            name = f"geneve_tunnel{number}"
            ends = f"local {local} remote {remote} vni {number + 1}"
            first = number << 8
            yield f"ip route add {source[first]}/24 via {west.routed(4).neighbour} {west.interface}"
            yield f"create geneve tunnel {ends} l3-mode decap-next node ethernet-input"
            yield from through(name, port, f"{destination[first]}/24", f"{neighbour} ")
            yield f"set ip neighbor {name} {neighbour} {port.neighbour_mac} static"

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The last tunnel."""
        yield Shown("show geneve tunnel", rf"vni {self.geneve}\b", f"{self.geneve} tunnels")


def _outer_bytes(segments: int) -> int:
    """Bytes of an outer IPv6 header, with the list of segments if there are several; 0: there is no header."""
    if not segments:
        return 0
    return _IPV6_BYTES + (_SEGMENTS_BYTES + segments * _SEGMENT_BYTES if segments > 1 else 0)


def _sid(port: VppPort, number: int) -> IPv6Address:
    """A segment of the VPP that has the networks behind a port on its own side."""
    return port.side.ipv6[_SIDS + number]
