"""The headers of test frames, as traffic profiles describe them, from the outside in."""

from collections.abc import Collection, Iterator
from math import lcm
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from lossratio.agent import (
    ETHERNET_HEADER_BYTES,
    FCS_BYTES,
    IPV4,
    IPV6,
    MPLS,
    TAG_BYTES,
    TCP,
    TCP_PROTOCOL,
    UDP,
    UDP_PROTOCOL,
    VLAN,
    VXLAN,
)
from lossratio.topology import Side
from lossratio.traffic.ranges import PORTS, AddressRange, PortRange, Range
from lossratio.values import FileModel, Like, left_out_if_empty

SMALLEST_FRAME = 64
"""Bytes, with FCS, of the smallest Ethernet frame."""
SMALLEST_IPV6_FRAME = 78
"""Bytes, with FCS, of the smallest frame with IPv6 that tests use."""
LARGEST_FRAME = 9000
"""Bytes, with FCS, of the largest (jumbo) frame that tests use."""
TCP_FLAGS = "FSRPAUEC"
"""The initial letters of the flags of TCP, from the lowest bit on."""
_HOSTS = 1 << 16
_MAC_HOSTS = 1 << 20
_OPTION_BYTES = 8
_TUNNEL_BYTES = UDP.length + VXLAN.length


class Addresses(FileModel):
    """A header with addresses."""

    source: AddressRange = AddressRange()
    """Source addresses, on the transmitting side."""
    destination: AddressRange = AddressRange()
    """Destination addresses, on the receiving side."""

    def on(self, side: Side) -> Side:
        """A side as these headers address it."""
        return side


class Ethernet(Addresses):
    """MAC addresses of a side's hosts, instead of the ports' own, in frames that pass no router."""

    def ranges(self) -> Iterator[tuple[str, Range]]:
        """The ranges, by their names."""
        yield "source MAC addresses", self.source
        yield "destination MAC addresses", self.destination


class VlanTag(FileModel):
    """An IEEE 802.1Q or 802.1ad tag."""

    id: int = Field(ge=1, le=4094)
    """The VLAN."""
    priority: int = Field(default=0, ge=0, le=7)
    """Its priority code point."""
    is_marked: bool = False
    """Whether devices on the way may write another priority into it."""

    _leave_out = left_out_if_empty("is_marked")


class MplsLabel(FileModel):
    """An entry of the MPLS label stack (RFC 3032)."""

    label: int = Field(ge=0, lt=1 << 20)
    """The label."""
    traffic_class: int = Field(default=0, ge=0, le=7)
    """Its traffic class (RFC 5462)."""
    ttl: int = Field(default=64, ge=1, le=255)
    """Its time to live; devices on the way may write another one."""


class Ipv4(Addresses):
    """The IPv4 header."""

    version: ClassVar[int] = 4
    """Of IP."""
    ttl: int = Field(default=64, ge=1, le=255)
    """Time to live."""
    protocol: int = Field(default=61, ge=0, le=255)
    """Protocol number where no other header follows; 61 is 'any host internal protocol'."""
    dscp: int = Field(default=0, ge=0, le=63)
    """The differentiated services code point."""
    is_marked: bool = False
    """Whether devices on the way may write another code point (DSCP) into it."""
    is_wide: bool = False
    """Whether addresses may come from 240.0.0.0/4, which nobody uses, if the benchmarking networks have too few."""
    options: Annotated[
        str,
        Like(
            r"^([0-9a-f]{8}){0,10}$", "whole words of four bytes in hexadecimal, such as 01010100"
        ),
    ] = ""
    """Its options (RFC 791), in hexadecimal."""

    _leave_out = left_out_if_empty("dscp", "options")

    @property
    def length(self) -> int:
        """Bytes of the header."""
        return IPV4.length + len(self.options) // 2

    @model_validator(mode="after")
    def _fits(self) -> "Ipv4":
        for addresses in (self.source, self.destination):
            if addresses.last >= _HOSTS and not self.is_wide:
                raise ValueError(
                    f"address {addresses.last} is not in the benchmarking network (RFC 2544): "
                    f"each side has {_HOSTS} addresses; use fewer addresses, more ports, IPv6, or "
                    "'is_wide'"
                )
        return self

    def on(self, side: Side) -> Side:
        """A side as these headers address it."""
        if self.is_wide:
            return side.wide
        return side


class Ipv6(Addresses):
    """The IPv6 header."""

    version: ClassVar[int] = 6
    """Of IP."""
    hop_limit: int = Field(default=64, ge=1, le=255)
    """Hop limit."""
    dscp: int = Field(default=0, ge=0, le=63)
    """The differentiated services code point."""
    is_marked: bool = False
    """Whether devices on the way may write another code point (DSCP) into it."""
    next_header: int = Field(default=61, ge=0, le=255)
    """Protocol number where no other header follows; 61 is 'any host internal protocol'."""

    _leave_out = left_out_if_empty("is_marked", "dscp")

    @property
    def length(self) -> int:
        """Bytes of the header."""
        return IPV6.length


class PortHeader(FileModel):
    """The header of UDP or TCP."""

    source_port: PortRange = PortRange(first=1024)
    """Source ports."""
    destination_port: PortRange = PortRange(first=1024)
    """Destination ports."""

    @property
    def length(self) -> int:
        """Bytes of the header."""
        return UDP.length


class TcpHeader(PortHeader):
    """The header of TCP."""

    connects: bool = False
    """Whether the segments belong to connections that a handshake opens. The generator's tag is then in an option (RFC
    6994), and not in the payload, so that the segments of the handshake have no payload."""
    flags: (
        Annotated[
            str,
            Like(r"^(none|[FSRPAEC]+)$", "initial letters of flags, such as S or SA, or 'none'"),
        ]
        | None
    ) = None
    """The initial letters of the flags in each segment, without the flag URG. Default: ACK alone."""

    _leave_out = left_out_if_empty("flags")

    @property
    def flag_bits(self) -> int:
        """The flags, as in the header."""
        letters = self.flags or "A"
        return sum(1 << place for place, letter in enumerate(TCP_FLAGS) if letter in letters)

    @model_validator(mode="after")
    def _has_own_flags(self) -> "TcpHeader":
        if self.connects and self.flags is not None:
            raise ValueError(
                "flags: leave them out, because a connection ('connects') has the flags of its handshake"
            )
        return self

    @property
    def length(self) -> int:
        """Bytes of the header, without the tag in its option."""
        return TCP.length + _OPTION_BYTES * self.connects


class InnerHeaders(FileModel):
    """Ethernet, tags if any, IPv4 or IPv6, and UDP or TCP if any."""

    dot1ad: VlanTag | None = None
    """The IEEE 802.1ad service tag, which is the outermost one."""
    dot1q: VlanTag | None = None
    """The IEEE 802.1Q tag."""
    ipv4: Ipv4 | None = None
    """The IPv4 header."""
    ipv6: Ipv6 | None = None
    """The IPv6 header."""
    udp: PortHeader | None = None
    """The UDP header; without it, TCP or VXLAN, the payload follows the IP header."""
    tcp: TcpHeader | None = None
    """The TCP header."""

    @model_validator(mode="after")
    def _are_one_after_the_other(self) -> "InnerHeaders":
        if self.ipv4 is None and self.ipv6 is None:
            raise ValueError("frames need an 'ipv4' or an 'ipv6' header; add one of them")
        if self.ipv4 is not None and self.ipv6 is not None:
            raise ValueError("frames have either 'ipv4' or 'ipv6'; leave out one of them")
        if self.udp is not None and self.tcp is not None:
            raise ValueError("frames have either 'udp' or 'tcp'; leave out one of them")
        if self.ipv4 is not None and self.ipv4.options and self.udp is None:
            raise ValueError(
                "ipv4: 'options' need a 'udp' header after them; add one, or leave the options out"
            )
        return self

    @property
    def ip(self) -> Ipv4 | Ipv6:
        """The IP header."""
        ip = self.ipv4 or self.ipv6
        if ip is None:
            raise ValueError("these headers are not IP headers")
        return ip

    @property
    def tags(self) -> bytes:
        """The bytes of its tags, from the outside in."""
        return b"".join(data for data, _ in self.each_tag())

    def each_tag(self) -> Iterator[tuple[bytes, VlanTag]]:
        """Each of its tags from the outside in, with its bytes."""
        for ethertype, tag in ((b"\x88\xa8", self.dot1ad), (b"\x81\x00", self.dot1q)):
            if tag is not None:
                bits = VLAN.packed({"VLAN priority": tag.priority, "VLAN": tag.id})
                yield ethertype + bits[:2], tag

    @property
    def vlans(self) -> tuple[int | None, int | None]:
        """VLANs of its tags, beginning with the service tag's; None: there is no such tag."""
        service = None if self.dot1ad is None else self.dot1ad.id
        return service, None if self.dot1q is None else self.dot1q.id

    @property
    def protocol(self) -> int:
        """Protocol number of the header after the IP header."""
        if self.tcp is not None:
            return TCP_PROTOCOL
        if self.udp is not None:
            return UDP_PROTOCOL
        if isinstance(self.ip, Ipv6):
            return self.ip.next_header
        return self.ip.protocol

    @property
    def length(self) -> int:
        """Bytes of all headers."""
        present = (self.ipv4, self.ipv6, self.udp, self.tcp)
        behind_tags = sum(header.length for header in present if header is not None)
        return ETHERNET_HEADER_BYTES + len(self.tags) + behind_tags

    @property
    def versions(self) -> frozenset[int]:
        """The versions of IP, including those inside a tunnel."""
        return frozenset({self.ip.version})

    @property
    def flows(self) -> int:
        """How many frames differ in their headers; all ranges step together."""
        return lcm(*(values.frames for _, values in self.ranges()))

    def ranges(self) -> Iterator[tuple[str, Range]]:
        """The ranges, by their names."""
        yield "source addresses", self.ip.source
        yield "destination addresses", self.ip.destination
        ports = self.udp or self.tcp
        if ports is not None:
            yield "source ports", ports.source_port
            yield "destination ports", ports.destination_port


class TunnelledHeaders(InnerHeaders):
    """Headers of a frame within a tunnel."""

    ethernet: Ethernet | None = None
    """MAC addresses, for devices that bridge the frames within; without them, the devices route these."""

    _leave_out = left_out_if_empty("ethernet")

    def ranges(self) -> Iterator[tuple[str, Range]]:
        """The ranges, by their names."""
        if self.ethernet is not None:
            yield from self.ethernet.ranges()
        yield from super().ranges()


class TunnelHeader(FileModel):
    """UDP, a header of eight bytes, and frames within."""

    port: ClassVar[int]
    """Destination port of UDP."""
    source_port: PortRange = PortRange(first=49152)
    """Source ports of the outer UDP header."""
    inner: TunnelledHeaders
    """Headers of the frames within; without MAC addresses, these are made from the networks of their sides."""

    @property
    def length(self) -> int:
        """Bytes from the UDP header on to the payload."""
        return _TUNNEL_BYTES + self.inner.length


class Vxlan(TunnelHeader):
    """VXLAN (RFC 7348), in UDP without a checksum."""

    port = VXLAN.number
    vni: int = Field(default=1, ge=0, lt=1 << 24)
    """The VXLAN network identifier."""


class Geneve(TunnelHeader):
    """GENEVE (RFC 8926) without options, in UDP with a checksum, to a device that ends tunnels and routes packets."""

    port = 6081
    vni: Range = Range(first=1)
    """Virtual network identifiers, below 65,536."""
    destination_mac: Annotated[
        str,
        Like(
            r"^([0-9a-f]{2}:){4}00:00$",
            "a MAC address that ends in 00:00, such as d0:0b:ee:d0:00:00",
        ),
    ] = "d0:0b:ee:d0:00:00"
    """Destination MAC address of the frames in the first tunnel; it increases from tunnel to tunnel, as in VPP."""

    @model_validator(mode="after")
    def _fits(self) -> "Geneve":
        if self.vni.last >= PORTS:
            raise ValueError(f"a VNI can be at most {PORTS - 1}, not {self.vni.last}")
        return self


class Headers(InnerHeaders):
    """All headers of a frame."""

    ethernet: Ethernet | None = None
    """MAC addresses; without them, frames have the ports' own."""
    mpls: tuple[MplsLabel, ...] = Field(default=(), max_length=8)
    """The stack of MPLS labels, the outermost one first."""
    vxlan: Vxlan | None = None
    """The VXLAN header and the inner frame."""
    geneve: Geneve | None = None
    """The GENEVE header and the inner frame."""
    any_mac: bool = False
    """Whether frames may come back with a destination MAC address other than the receiving port's."""

    _leave_out = left_out_if_empty("any_mac", "mpls")

    @model_validator(mode="after")
    def _are_possible(self) -> "Headers":
        if (
            self.ethernet
            and max(self.ethernet.source.last, self.ethernet.destination.last) >= _MAC_HOSTS
        ):
            raise ValueError(
                f"ethernet: each side has at most {_MAC_HOSTS} MAC addresses; use fewer"
            )

        if self.vxlan is not None and self.geneve is not None:
            raise ValueError("frames can be in one tunnel only; leave out 'vxlan' or 'geneve'")
        if self.tunnel is not None and (self.udp is not None or self.tcp is not None):
            name = "vxlan" if self.geneve is None else "geneve"
            raise ValueError(
                f"'{name}' brings its own UDP header; 'udp' and 'tcp' go into its 'inner' headers"
            )
        return self

    @property
    def tunnel(self) -> Vxlan | Geneve | None:
        """The tunnel that frames are in."""
        return self.vxlan or self.geneve

    @property
    def label_stack(self) -> bytes:
        """The bytes of its MPLS labels."""
        entries = []
        for number, entry in enumerate(self.mpls, start=1):
            values = {"label": entry.label, "traffic class": entry.traffic_class}
            is_last = number == len(self.mpls)
            values |= {"bottom of stack": int(is_last), "time to live": entry.ttl}
            entries.append(MPLS.packed(values))
        return b"".join(entries)

    @property
    def innermost(self) -> "Headers | TunnelledHeaders":
        """The headers of the packet that is benchmarked: within the tunnel if there is one."""
        if self.tunnel is None:
            return self
        return self.tunnel.inner

    @property
    def encapsulation(self) -> tuple[object, ...]:
        """The encapsulation of that packet: VLANs, MPLS labels, and the kind of tunnel."""
        labels = tuple(entry.label for entry in self.mpls)
        return (*self.vlans, labels, type(self.tunnel))

    @property
    def protocol(self) -> int:
        """Protocol number of the header after the outer IP header."""
        if self.tunnel is None:
            return super().protocol
        return UDP_PROTOCOL

    @property
    def length(self) -> int:
        """Bytes of all headers."""
        tunnel = 0 if self.tunnel is None else self.tunnel.length
        return super().length + MPLS.length * len(self.mpls) + tunnel

    @property
    def versions(self) -> frozenset[int]:
        """The versions of IP, including those inside a tunnel."""
        return super().versions | (
            frozenset() if self.tunnel is None else self.tunnel.inner.versions
        )

    def ranges(self) -> Iterator[tuple[str, Range]]:
        """The ranges, by their names."""
        if self.ethernet is not None:
            yield from self.ethernet.ranges()
        yield from super().ranges()
        if self.tunnel is not None:
            yield "source ports", self.tunnel.source_port
            yield from ((f"inner {name}", values) for name, values in self.tunnel.inner.ranges())
        if self.geneve is not None:
            yield "network identifiers", self.geneve.vni


def why_wrong_sizes(headers: Headers, sizes: Collection[int], longer: int = 0) -> str | None:
    """Why frames with these headers cannot have these sizes; None: they can.

    Args:
        headers: Headers of the frames.
        sizes: Bytes of the frames with FCS.
        longer: Bytes by which they may be longer than `LARGEST_FRAME`.
    """
    least = SMALLEST_FRAME
    if 6 in headers.versions:
        least = SMALLEST_IPV6_FRAME
    largest = LARGEST_FRAME + longer
    for size in sizes:
        if not least <= size <= largest:
            return f"{size} is not between {least} and {largest} bytes"

    smallest = min(sizes)
    needed = headers.length + TAG_BYTES + FCS_BYTES
    if smallest < needed:
        return f"frames of {smallest} bytes are too small: these headers need {needed} bytes"
    return None
