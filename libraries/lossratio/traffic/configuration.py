"""From a traffic profile to the description of its frames: headers byte by byte, for any generator.

The outer MAC addresses are left to the generator, which knows those of its ports.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from lossratio.errors import TopologyError, TrafficError
from lossratio.topology import Port, Side, split_sides
from lossratio.traffic.agent.core.configuration import (
    BENCHMARK_NETWORKS,
    COMPENSATION_BYTES,
    FCS_BYTES,
    TAG_BYTES,
    ChecksumField,
    Configuration,
    Direction,
    FramesSpec,
    LengthField,
    Speaker,
    SteppingField,
    behind_tags,
    mac_bytes,
)
from lossratio.traffic.agent.core.neighbours import Question
from lossratio.traffic.agent.xdp.frames import permutation
from lossratio.traffic.headers import (
    Ethernet,
    Geneve,
    Headers,
    InnerHeaders,
    Ipv4,
    Ipv6,
    PortHeader,
    Range,
    TcpHeader,
    Vxlan,
)
from lossratio.traffic.profile import TrafficDirection, TrafficProfile, address_span
from lossratio.traffic.streams import in_one_order

_MAC_ADDRESSES = bytes(12)
_IPV4_ETHERTYPE = b"\x08\x00"
_IPV6_ETHERTYPE = b"\x86\xdd"
_ETHERTYPES = {4: _IPV4_ETHERTYPE, 6: _IPV6_ETHERTYPE}
_MPLS_ETHERTYPE = b"\x88\x47"
_LABEL_BYTES = 4
_IPV4_ADDRESS_BYTES = 4
_MOST_NEIGHBOURS = 256
MOST_SPREAD = 1024
"""The most flows that represent all flows in the check of a path."""
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0
_MOST_HOSTS = 1 << 20
_LOCAL_MAC = 0x02 << 20
_STEPPING_BYTES = 8
_TCP_ACK, _TCP_WINDOW = 0x10, 8192
_FIRST_NUMBERS = (1).to_bytes(4, "big") * 2
_TAG_OPTION = bytes([1, 1, 254, 4 + TAG_BYTES + COMPENSATION_BYTES]) + b"LR"
"""Before the tag: two options without a meaning, so that it is aligned, and an experimental one (RFC 6994)."""


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
        self._pseudo_header = (0, 0, 0)

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
            for width, number, count in ((2, same, 1), (4, first, values.count)):
                self.fields.append(SteppingField(len(self.data), width, number, count))
                self.data += bytes(width)

    def add_headers(self, headers: InnerHeaders, macs: bytes, labels: bytes = b"") -> None:
        self.data += macs
        for data, tag in headers.each_tag():
            if tag.is_marked:
                # After the ethertype, in the byte with the highest bits of the VLAN.
                self.rewritable.append((len(self.data) + 2, len(self.data) + 3))
            self.data += data
        self._add_ethertype(headers.ip.version, labels)
        if headers.ipv4 is not None:
            self._add_ipv4(headers.ipv4, headers.protocol)
        if headers.ipv6 is not None:
            self._add_ipv6(headers.ipv6, headers.protocol)
        transport = headers.udp or headers.tcp
        if transport is not None:
            self._add_transport(transport)

    def add_tunnel(self, tunnel: Vxlan | Geneve, *, of_device: bool = False) -> None:
        """UDP without a checksum, the tunnel's header, and the frame within.

        If a device begins the tunnel, everything is compared except what the device may choose itself.
        """
        start = len(self.data)
        self._add_field(2, tunnel.source_port.first, tunnel.source_port)
        self.data += tunnel.port.to_bytes(2, "big") + bytes(4) + tunnel.start
        self.lengths.append(LengthField(start + 4, start))
        source, destination = self._sides

        if isinstance(tunnel, Vxlan):
            self.data += tunnel.vni.to_bytes(3, "big") + b"\0"
            if of_device:
                self._leave_choices(start)
            else:
                # A device that ends the tunnel and begins another one writes all of this anew.
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

        self.data += b"\0"
        self._add_field(2, tunnel.vni.first, tunnel.vni)
        self.data += b"\0" + mac_bytes(tunnel.destination_mac)[:4]
        self._add_field(2, 0, tunnel.vni)
        self.rewritable = [(0, len(self.data))]
        self.addresses = []
        self.add_headers(tunnel.inner, _inner_mac(source))

    def _leave_choices(self, start: int) -> None:
        """Leaves out the parts of outer headers that a tunnel's first device chooses; `start` is where UDP is."""
        addresses, _, _ = self._pseudo_header
        if start - addresses == 2 * _IPV4_ADDRESS_BYTES:
            # The identification, and the flag 'don't fragment'.
            ip = addresses - 12
            self.rewritable.append((ip + 4, ip + 7))
        else:
            # The flow label.
            ip = addresses - 8
            self.rewritable.append((ip + 1, ip + 4))

        # The source port, which is a hash of the flow, and the checksum, which may be zero.
        self.rewritable += [(start, start + 2), (start + 6, start + 8)]

    def _add_ethertype(self, version: int, labels: bytes) -> None:
        """The ethertype of IP, or that of MPLS and its labels, whose times to live are decremented."""
        if not labels:
            self.data += _ETHERTYPES[version]
            return

        self.data += _MPLS_ETHERTYPE
        for _ in range(0, len(labels), _LABEL_BYTES):
            end = len(self.data) + _LABEL_BYTES
            self.data += labels[:_LABEL_BYTES]
            labels = labels[_LABEL_BYTES:]
            self.rewritable.append((end - 1, end))

    def _add_ipv4(self, header: Ipv4, protocol: int) -> None:
        """RFC 791, without options."""
        start = len(self.data)
        self._pseudo_header = (start + 12, start + 20, protocol)
        self.lengths.append(LengthField(start + 2, start))
        self.checksums.append(ChecksumField(start + 10, start, start + 20))
        # A router decrements the time to live, and computes the checksum anew.
        self.rewritable += [(start + 8, start + 9), (start + 10, start + 12)]
        if header.is_marked:
            self.rewritable.append((start + 1, start + 2))
        self.addresses.append((start + 12, start + 20))
        marks = header.dscp << 2
        self.data += bytes([0x45, marks, 0, 0, 0, 0, 0, 0, header.ttl, protocol, 0, 0])
        self._add_addresses(header)

    def _add_ipv6(self, header: Ipv6, protocol: int) -> None:
        """RFC 8200, without extension headers."""
        start = len(self.data)
        self._pseudo_header = (start + 8, start + 40, protocol)
        self.lengths.append(LengthField(start + 4, start + 40))
        self.rewritable.append((start + 7, start + 8))
        if header.is_marked:
            # Its bits begin in the byte of the version, and end in the byte of the flow label.
            self.rewritable.append((start, start + 2))
        self.addresses.append((start + 8, start + 40))
        marks = (6 << 12 | header.dscp << 6).to_bytes(2, "big")
        self.data += marks + bytes([0, 0, 0, 0, protocol, header.hop_limit])
        self._add_addresses(header)

    def _add_transport(self, header: PortHeader) -> None:
        """RFC 768, or RFC 9293: an acknowledgement, without options or with the one that holds the tag."""
        start = len(self.data)
        self._add_field(2, header.source_port.first, header.source_port)
        self._add_field(2, header.destination_port.first, header.destination_port)
        if not isinstance(header, TcpHeader):
            self.data += bytes(4)
            self.lengths.append(LengthField(start + 4, start))
            self.checksums.append(
                ChecksumField(start + 6, start, pseudo_header=self._pseudo_header)
            )
            return

        # The first segment after a handshake whose numbers begin at zero.
        numbers, words = (_FIRST_NUMBERS, 9) if header.connects else (bytes(8), 5)
        self.data += (
            numbers + bytes([words << 4, _TCP_ACK]) + _TCP_WINDOW.to_bytes(2, "big") + bytes(4)
        )
        self.urgent_pointer = len(self.data) - 2
        self.checksums.append(ChecksumField(start + 16, start, pseudo_header=self._pseudo_header))
        if header.connects:
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
            seed = self._seed + len(self.fields) if values.order == "random" else None
            self.fields.append(SteppingField(len(self.data), width, first, values.count, seed))
        self.data += bytes(width) if values.count > 1 else first.to_bytes(width, "big")


def _inner_mac(side: Side) -> bytes:
    """A locally administered MAC address that only this side has."""
    return b"\x02\0" + (side.ipv4.network_address + max(0, side.ipv4_offset)).packed


@dataclass(frozen=True)
class TrafficPort:
    """One of the TG's ports."""

    name: str
    """Its name in the topology, e.g. ``port0``, by which counters name directions."""
    interface: str
    """Its Linux interface."""
    destination_mac: str | None = None
    """Destination MAC address of the frames that leave it: the next router's, or None if nothing on the way rewrites it
    (frames are then addressed to the other port)."""
    own_addresses: tuple[str, ...] = ()
    """Its own IP addresses, for which it answers; empty: it answers for none."""
    lldp: bool = False
    """Whether it announces itself by LLDP."""


@dataclass(frozen=True)
class PortPair:
    """Both ends of one path."""

    west: TrafficPort
    """The path's first port."""
    east: TrafficPort
    """Its second port, or the reflector's port."""
    is_reflected: bool = False
    """Whether frames return to the first port."""

    @property
    def ports(self) -> tuple[TrafficPort, ...]:
        """The generator's ports."""
        if self.is_reflected:
            return (self.west,)
        return (self.west, self.east)


def make_configuration(
    profile: TrafficProfile,
    pairs: Sequence[PortPair],
    *,
    settle_time: float,
    sides: Sequence[tuple[Side, Side]] | None = None,
    growth: tuple[int, int] = (0, 0),
) -> Configuration:
    """The configuration of a generator that sends a profile's frames; unidirectional ones only from west to east.

    Parallel paths carry the same traffic, each between its own sides.

    Args:
        profile: The traffic.
        pairs: The ports of each path.
        settle_time: Seconds after the traffic in which frames come back in time.
        sides: The networks of each path, west and east; None: parts of the benchmarking networks, by `split_sides`.
        growth: See `lossratio.dut.DutOptions.growth`.
    """
    own = split_sides(len(pairs)) if sides is None else tuple(sides)
    networks = {str(network) for pair in own for side in pair for network in (side.ipv4, side.ipv6)}
    paths = [(pair, west, east) for pair, (west, east) in zip(pairs, own, strict=True)]
    directions = [direction for path in paths for direction in _directions(profile, *path, growth)]
    speakers = [speaker for path in paths for speaker in _speakers(profile, *path)]
    of_lab = () if sides is None else sorted(networks)
    return Configuration(
        ports=tuple(port.interface for pair in pairs for port in pair.ports),
        directions=tuple(directions),
        settle_time=settle_time,
        speakers=tuple(speakers),
        networks=(*BENCHMARK_NETWORKS, *of_lab),
    )


def _speakers(profile: TrafficProfile, pair: PortPair, west: Side, east: Side) -> Iterator[Speaker]:
    """The ports that answer, for their own addresses and for the addresses at their ends of the traffic."""
    eastward = profile.directions[0]
    westward = profile.directions[-1] if profile.bidirectional else None
    for port, side, source, sink in (
        (pair.west, west, eastward, westward),
        (pair.east, east, westward, eastward),
    ):
        if not port.own_addresses and not port.lldp:
            continue

        ranges = [(address, address) for address in port.own_addresses]
        for headers, end in ((source, "source"), (sink, "destination")):
            is_of_nat = headers is not None and headers.to_nat and end == "destination"
            if headers is None or not port.own_addresses or is_of_nat:
                continue
            for each in headers.every_headers:
                ip = each.ip
                first, last = address_span(getattr(ip, end), ip.on(side), ip.version)
                ranges.append((str(first), str(last)))

        yield Speaker(port.interface, tuple(dict.fromkeys(ranges)), port.lldp)


def _directions(
    profile: TrafficProfile, pair: PortPair, west: Side, east: Side, growth: tuple[int, int]
) -> Iterator[Direction]:
    ways = [
        (pair.west, west, pair.east, east, growth[0]),
        (pair.east, east, pair.west, west, growth[1]),
    ]
    if pair.is_reflected:
        if profile.says_what_is_received:
            raise TrafficError(
                f"The traffic profile {profile.name} has 'received', but a reflector sends frames back unchanged. "
                "Leave out 'received', or measure between two ports."
            )
        ways = [(pair.west, west, pair.west, east, sum(growth))]
    for direction, (source, source_side, sink, sink_side, grown) in zip(
        profile.directions, ways, strict=False
    ):
        frames = frames_spec(direction, source_side, sink_side)
        if pair.is_reflected:
            received = None
        else:
            received = received_spec(direction, frames, source_side, sink_side)

        # Record: who sends what to whom.
        yield Direction(
            name=f"{source.name}>{sink.name}",
            transmit=source.interface,
            receive=sink.interface,
            destination_mac=source.destination_mac,
            frames=frames,
            load_share=direction.load_share,
            broadcast_share=profile.broadcast_share,
            growth=grown,
            arriving_frames=received,
        )


def spread_over_flows(configuration: Configuration) -> Configuration:
    """The same traffic with at most `MOST_SPREAD` of its flows, from all over, however few of them are sent."""
    directions = (each.changed(_spread) for each in configuration.directions)
    return replace(configuration, directions=tuple(directions))


def _spread(spec: FramesSpec) -> FramesSpec:
    count = min(spec.flows, MOST_SPREAD)
    numbers: dict[int, None] = {}
    turn = 0
    while len(numbers) < count:
        # Steps by the golden ratio: the first numbers are always spread evenly, and in step with no power of two.
        numbers[int(turn * _GOLDEN_RATIO % 1.0 * spec.flows)] = None
        turn += 1
    fields = []
    for each in spec.fields:
        order: Sequence[int] = range(each.count)
        if each.seed is not None:
            order = permutation(each.seed, each.count)

        steps = each.offsets or order
        values = tuple(each.first + steps[number % each.count] for number in numbers)
        fields.append(replace(each, first=min(values), count=count, seed=None, values=values))

    together = spec.order
    if together is not None:
        streams, sizes = (
            tuple(each[number] for number in numbers) for each in (together.streams, together.sizes)
        )
        together = replace(together, streams=streams, sizes=sizes)
    return replace(spec, fields=tuple(fields), order=together)


def questions_of_ports(
    ports: Sequence[Port], configuration: Configuration, port_name: Callable[[Port], str]
) -> Iterator[Question]:
    """The addresses of ports that their gateways must know, as questions for the gateways.

    These are a port's own address and the addresses of traffic at its end, as far as they are in the port's
    network: the gateway reaches others through these.

    Raises:
        TopologyError: If a gateway would have to know more addresses than a generator can remind it of.
    """
    for port in ports:
        name = port_name(port)
        own = [
            direction
            for direction in configuration.directions
            if name in (direction.transmit, direction.receive)
        ]
        # The frames that leave the port have the tags that the gateway expects, if any do.
        own.sort(key=lambda direction: direction.transmit != name)
        ranges = [
            both
            for speaker in configuration.speakers
            if speaker.port == name
            for both in speaker.addresses
        ]

        for gateway in port.interface.gateway:
            header = bytes.fromhex(own[0].frames.header) if own else b""
            place = behind_tags(header)
            if header[place - 2 : place] != _ETHERTYPES[gateway.version]:
                continue

            asker = next(
                address for address in port.interface.address if address.version == gateway.version
            )
            known: dict[str, None] = {}
            for first, last in ((ip_address(first), ip_address(last)) for first, last in ranges):
                if first.version == asker.version:
                    lowest = max(int(first), int(asker.network[0]))
                    highest = min(int(last), int(asker.network[-1]), lowest + _MOST_NEIGHBOURS)
                    known |= dict.fromkeys(
                        str(type(first)(number)) for number in range(lowest, highest + 1)
                    )

            if len(known) > _MOST_NEIGHBOURS:
                raise TopologyError(
                    f"{port}: its gateway {gateway} would have to know {len(known)} addresses of traffic by ARP or "
                    f"neighbour discovery, but a generator with cards can announce at most {_MOST_NEIGHBOURS}. Give "
                    "the port a 'network' that the gateway routes to its address, or take a profile with fewer "
                    "addresses."
                )

            tags = header[12 : place - 2].hex()
            yield from (Question(name, source, str(gateway), tags) for source in known)
