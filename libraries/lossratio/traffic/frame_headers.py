"""The headers of a direction's frames, byte by byte, for any generator.

The outer MAC addresses are left to the generator, which knows those of its ports.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lossratio.agent import (
    COMPENSATION_BYTES,
    FCS_BYTES,
    IPV4,
    IPV4_BYTES,
    IPV6,
    MACS_BYTES,
    MPLS,
    PORT_BYTES,
    TAG_BYTES,
    TCP,
    UDP,
    UDP_PROTOCOL,
    VXLAN,
    WORD_BYTES,
    ChecksumField,
    FramesSpec,
    Header,
    LengthField,
    SteppingField,
    mac_bytes,
    permutation,
)
from lossratio.errors import TrafficError
from lossratio.topology import Side
from lossratio.traffic.headers import (
    Ethernet,
    Geneve,
    Headers,
    InnerHeaders,
    Ipv4,
    Ipv6,
    PortHeader,
    TcpHeader,
    Vxlan,
)
from lossratio.traffic.profile import TrafficDirection, address_span
from lossratio.traffic.ranges import Range
from lossratio.traffic.streams import in_one_order

_MAC_ADDRESSES = bytes(MACS_BYTES)
ETHERTYPES = {4: IPV4.number.to_bytes(2, "big"), 6: IPV6.number.to_bytes(2, "big")}
"""Ethertypes of IP, by its version."""
_MOST_HOSTS = 1 << 20
_LOCAL_MAC = 0x02 << 20
_STEPPING_BYTES = 8
_TCP_WINDOW = 8192
_GENEVE_START = b"\0\0\x65\x58\0"
"""The bytes of GENEVE before the lower 16 bits of its network identifier: it holds Ethernet frames."""
_TAG_OPTION = bytes([1, 1, 254, 4 + TAG_BYTES + COMPENSATION_BYTES]) + b"LR"
"""Bytes before the tag: two options without a meaning, which align the tag, and an experimental one (RFC 6994)."""


def frames_spec(direction: TrafficDirection, source: Side, destination: Side) -> FramesSpec:
    """Describes the frames of one direction, from a side's networks to another side's."""
    sizes = tuple(direction.size_weights.items())
    specs = []
    for headers in direction.every_headers:
        frame = _Frame(source, source if direction.to_nat else destination, direction.seed)
        frame.add_all(headers)
        specs.append(replace(frame.spec(sizes), any_mac=headers.any_mac))
    if direction.streams:
        return in_one_order(direction.streams, specs)
    return specs[0]


def received_spec(
    direction: TrafficDirection, sent: FramesSpec, source: Side, destination: Side
) -> FramesSpec | None:
    """The same frames as they come back, with the `received` headers; None: as they were sent."""
    headers = direction.received
    if headers is None:
        return None

    frame = _Frame(source, source if direction.to_nat else destination, direction.seed)
    begins_there = headers.tunnel is not None and direction.headers.tunnel is None
    frame.add_all(headers, begins_tunnel=begins_there)
    # Random orders belong to the packet, and are the same at both ends.
    seeds = iter([field.seed for field in sent.fields if field.seed is not None])
    frame.fields = [
        field if field.seed is None else replace(field, seed=next(seeds)) for field in frame.fields
    ]
    longer = direction.growth
    sizes = tuple((size + longer, weight) for size, weight in sent.sizes)
    return replace(frame.spec(sizes), any_mac=headers.any_mac, payload_shift=longer)


@dataclass(eq=False)
class FrameHeaders:
    """Headers that are put one after the other."""

    data: bytes = b""
    """Their bytes so far."""
    fields: list[SteppingField] = field(default_factory=list)
    """Fields that step."""
    lengths: list[LengthField] = field(default_factory=list)
    """Fields that hold a length."""
    checksums: list[ChecksumField] = field(default_factory=list)
    """Fields that hold a checksum."""
    rewritable: list[tuple[int, int]] = field(default_factory=lambda: [(0, len(_MAC_ADDRESSES))])
    """Starts and ends of fields that devices on the way may rewrite."""
    addresses: list[tuple[int, int]] = field(default_factory=list)
    """Starts and ends of IP addresses that they may not rewrite."""
    urgent_pointer: int | None = None
    """Place of TCP's urgent pointer; None: there is none."""
    covered: tuple[int, int] = (0, 0)
    """Start and end of the innermost IP addresses."""

    def add(self, header: Header, data: bytes, options: int = 0) -> int:
        """Adds a header whose lengths and checksums are computed; returns where it begins.

        Args:
            header: The header.
            data: Its bytes, with zeros in fields that are computed or step.
            options: Number of bytes of its options, which are added later.
        """
        start = len(self.data)
        for each in header.fields:
            place = start + each.first
            if each.computed == "length":
                self.lengths.append(LengthField(place, start + header.counts_from))
            elif each.computed == "checksum" and header.addresses:
                end = start + header.length + options
                self.checksums.append(ChecksumField(place, start, end))
            elif each.computed == "checksum":
                pseudo_header = (*self.covered, header.number)
                self.checksums.append(ChecksumField(place, start, pseudo_header=pseudo_header))

        if header.addresses:
            self.covered = (start + header.addresses, start + header.length)
        if header is TCP:
            self.urgent_pointer = start + TCP.field("urgent pointer").first
        self.data += data
        return start

    def spec(self, sizes: tuple[tuple[int, int], ...]) -> FramesSpec:
        """The description of frames with these headers, in sizes with their weights."""
        is_numbered = True
        compensation: int | None = None
        if any(checksum.end is None for checksum in self.checksums):
            # A word compensates for the sequence number in the checksum above IP.
            room = min(size for size, _ in sizes) - FCS_BYTES - len(self.data)
            has_room = room >= TAG_BYTES + COMPENSATION_BYTES
            # RFC 9293: the urgent pointer means nothing without the flag URG.
            if has_room:
                compensation = len(self.data) + TAG_BYTES
            else:
                compensation = self.urgent_pointer

            is_numbered = compensation is not None

        # Record: the frames of a direction.
        return FramesSpec(
            header=self.data.hex(),
            fields=tuple(self.fields),
            lengths=tuple(self.lengths),
            checksums=tuple(self.checksums),
            sizes=sizes,
            tag_offset=len(self.data),
            is_numbered=is_numbered,
            compensation=compensation,
            rewritable=tuple(self.rewritable),
            addresses=tuple(self.addresses),
        )


class _Frame(FrameHeaders):
    def __init__(self, source: Side, destination: Side, seed: int) -> None:
        super().__init__()
        self._sides = (source, destination)
        self._seed = seed

    def add_all(self, headers: Headers, *, begins_tunnel: bool = False) -> None:
        """All headers of a frame; `begins_tunnel`: a device has put it into its tunnel."""
        if headers.ethernet is not None:
            self.add_macs(headers.ethernet)
        self.add_headers(headers, b"" if self.data else _MAC_ADDRESSES, headers.label_stack)
        if headers.tunnel is not None:
            self.add_tunnel(headers.tunnel, of_device=begins_tunnel)

    def add_macs(self, ethernet: Ethernet) -> None:
        """MAC addresses of the sides' hosts, which are written over the ports' addresses."""
        for values, side in zip(
            (ethernet.destination, ethernet.source), reversed(self._sides), strict=True
        ):
            # 02, 20 bits that only this side has, and 20 bits of the host's number.
            same, first = divmod(
                (_LOCAL_MAC | int(side.ipv4[0]) % _MOST_HOSTS) * _MOST_HOSTS + values.first, 1 << 32
            )
            self.fields.append(SteppingField(len(self.data), 2, same, 1))
            self.data += bytes(2)
            self.fields.append(self._stepping(4, first, values))
            self.data += bytes(4)

    def add_headers(self, headers: InnerHeaders, macs: bytes, labels: bytes = b"") -> None:
        self.data += macs
        for data, tag in headers.each_tag():
            if tag.is_marked:
                # After the ethertype, in the byte with the highest bits of the VLAN.
                self.rewritable.append((len(self.data) + 2, len(self.data) + 3))
            self.data += data
        self._add_ethertype(headers.ip.version, labels)

        if headers.ipv4 is not None:
            values = {"protocol": headers.protocol, "time to live": headers.ipv4.ttl}
            values["header length"] = headers.ipv4.length // WORD_BYTES
            self._add_ip(IPV4, headers.ipv4, values)
        if headers.ipv6 is not None:
            values = {"next header": headers.protocol, "hop limit": headers.ipv6.hop_limit}
            self._add_ip(IPV6, headers.ipv6, values)
        transport = headers.udp or headers.tcp
        if transport is not None:
            self._add_transport(transport)

    def add_tunnel(self, tunnel: Vxlan | Geneve, *, of_device: bool = False) -> None:
        """UDP, the tunnel's header, and the frame within.

        If a device begins the tunnel, everything is compared except what the device may choose itself.
        """
        start = len(self.data)
        pseudo_header = (*self.covered, UDP_PROTOCOL)
        self._add_field(PORT_BYTES, tunnel.source_port.first, tunnel.source_port)
        self.data += UDP.packed({"destination port": tunnel.port})[PORT_BYTES:]
        self.lengths.append(LengthField(start + UDP.field("length").first, start))
        source, destination = self._sides

        if isinstance(tunnel, Vxlan):
            self.data += VXLAN.packed({"network identifier": tunnel.vni})
            if of_device:
                self._leave_choices(start)
            else:
                # A device that ends the tunnel and begins another one rewrites all of this.
                self.rewritable = [(0, len(self.data))]
                self.addresses = []

            outer = [*self.rewritable]
            place = len(self.data)
            if tunnel.inner.ethernet is not None:
                self.add_macs(tunnel.inner.ethernet)
                self.add_headers(tunnel.inner, b"")
            else:
                self.add_headers(tunnel.inner, _inner_mac(destination) + _inner_mac(source))
            if of_device and tunnel.inner.ethernet is None:
                # The device routes the packets that it puts into the tunnel.
                self.rewritable.append((place, place + len(_MAC_ADDRESSES)))
            else:
                self.rewritable = outer
            return

        self.data += _GENEVE_START
        self._add_field(2, tunnel.vni.first, tunnel.vni)
        self.data += b"\0" + mac_bytes(tunnel.destination_mac)[:4]
        self._add_field(2, 0, tunnel.vni)
        self.rewritable = [(0, len(self.data))]
        self.addresses = []
        self.add_headers(tunnel.inner, _inner_mac(source))
        # The last one to be computed, because it covers the others.
        checksum = start + UDP.field("checksum").first
        self.checksums.append(ChecksumField(checksum, start, pseudo_header=pseudo_header))

    def _leave_choices(self, udp: int) -> None:
        """Leaves out the parts of outer headers that a tunnel's first device chooses; `udp` is where UDP is.

        The source port is a hash of the flow, and the checksum may be zero.
        """
        addresses, end = self.covered
        ip = IPV4 if end - addresses == 2 * IPV4_BYTES else IPV6
        self._leave(ip, addresses - ip.addresses, "identification", "don't fragment", "flow label")
        self._leave(UDP, udp, "source port", "checksum")

    def _add_ethertype(self, version: int, labels: bytes) -> None:
        """The ethertype of IP, or that of MPLS and its labels."""
        if not labels:
            self.data += ETHERTYPES[version]
            return

        self.data += MPLS.number.to_bytes(2, "big")
        for place in range(0, len(labels), MPLS.length):
            self._leave(MPLS, self.add(MPLS, labels[place : place + MPLS.length]))

    def _leave(self, header: Header, start: int, *names: str) -> None:
        """Leaves out some fields of a header at a place; without names, those that every router writes."""
        for each in header.fields:
            if each.name in names or (each.is_rewritten and not names):
                self.rewritable.append((start + each.first, start + each.end))

    def _add_ip(self, header: Header, ip: Ipv4 | Ipv6, values: dict[str, int]) -> None:
        options = bytes.fromhex(ip.options) if isinstance(ip, Ipv4) else b""
        first = header.packed({**values, "DSCP": ip.dscp})[: header.addresses]
        start = self.add(header, first, len(options))
        self._leave(header, start)
        if ip.is_marked:
            self._leave(header, start, "DSCP")
        self.addresses.append(self.covered)
        self._add_addresses(ip)
        self.data += options

    def _add_transport(self, header: PortHeader) -> None:
        """UDP; or TCP: an acknowledgement, without options or with the one that holds the tag."""
        behind_ports = 2 * PORT_BYTES
        if isinstance(header, TcpHeader):
            # The first segment after a handshake whose numbers begin at zero.
            number = int(header.connects)
            values = {"sequence number": number, "acknowledgement number": number}
            values |= {"data offset": 9 if header.connects else 5, "flags": header.flag_bits}
            rest = TCP.packed({**values, "window": _TCP_WINDOW})[behind_ports:]
            self.add(TCP, b"")
        else:
            rest = bytes(UDP.length - behind_ports)
            self.add(UDP, b"")

        self._add_field(PORT_BYTES, header.source_port.first, header.source_port)
        self._add_field(PORT_BYTES, header.destination_port.first, header.destination_port)
        self.data += rest
        if isinstance(header, TcpHeader) and header.connects:
            self.data += _TAG_OPTION

    def _add_addresses(self, header: Ipv4 | Ipv6) -> None:
        spans = []
        version = header.version
        ends = (header.source, header.destination)

        for addresses, side in zip(ends, map(header.on, self._sides), strict=True):
            network = side.ipv4 if version == 4 else side.ipv6
            first, last = address_span(addresses, side, version)
            if int(last) > int(network[-1]):
                raise TrafficError(
                    f"There is no address {addresses.last} in {network}, the network of this path. Use a traffic "
                    "profile with fewer addresses, more ports (ethip4-udp-hosts), or IPv6."
                )

            for taken in side.taken:
                if taken.version == version and int(first) <= int(taken) <= int(last):
                    raise TrafficError(
                        f"Traffic from {first} to {last} would have the address {taken}, which belongs to the "
                        "gateway or is a broadcast address. Give the port another 'address', or a 'network' behind "
                        "it; or use a traffic profile with fewer addresses, such as ethip4-udp-hosts."
                    )

            spans.append((first, int(first), int(last)))

        if spans[0][1] <= spans[1][2] and spans[1][1] <= spans[0][2]:
            raise TrafficError(
                f"The addresses of both sides overlap in {network}. Give the TG's ports addresses that are further "
                "apart, or use a traffic profile with fewer addresses."
            )
        for addresses, (first, *_) in zip(ends, spans, strict=True):
            stepping = first.packed[-_STEPPING_BYTES:]
            self.data += first.packed[: -len(stepping)]
            self._add_field(len(stepping), int.from_bytes(stepping, "big"), addresses)

    def _add_field(self, width: int, first: int, values: Range) -> None:
        if values.count > 1:
            self.fields.append(self._stepping(width, first, values))
        self.data += bytes(width) if values.count > 1 else first.to_bytes(width, "big")

    def _stepping(self, width: int, first: int, values: Range) -> SteppingField:
        """The field at this place, whose lowest value is the given one."""
        place = len(self.data)
        if not values.is_listed:
            seed = self._seed + len(self.fields) if values.order == "random" else None
            return SteppingField(place, width, first, values.count, seed)

        order: Sequence[int] = range(values.count)
        if values.order == "random":
            # Random orders belong to the packet, which may come back with other headers before it.
            before = sum(bool(field.values) for field in self.fields)
            order = permutation(self._seed + before, values.count)
        listed = tuple(first + number for number in values.listed(order))
        return SteppingField(place, width, first, values.frames, values=listed)


def _inner_mac(side: Side) -> bytes:
    """A locally administered MAC address that only this side has."""
    return b"\x02\0" + (side.ipv4.network_address + max(0, side.ipv4_offset)).packed
