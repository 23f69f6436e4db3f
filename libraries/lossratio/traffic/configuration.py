"""From a traffic profile to the configuration of a generator: who sends which frames to whom."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from lossratio.agent import (
    BENCHMARK_NETWORKS,
    Configuration,
    Direction,
    FramesSpec,
    Question,
    Speaker,
    behind_tags,
)
from lossratio.errors import TopologyError, TrafficError
from lossratio.topology import Port, Side, split_sides
from lossratio.traffic.frame_headers import ETHERTYPES, frames_spec, received_spec
from lossratio.traffic.profile import TrafficProfile, address_span

_MOST_NEIGHBOURS = 256
"""The maximum number of addresses of a port that its gateways are reminded of."""
MOST_SPREAD = 1024
"""The maximum number of flows that represent all flows in the check of a path."""
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0


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
    """The configuration of a generator that sends a profile's frames: from west to east only, if unidirectional.

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
        if not port.own_addresses:
            continue

        ranges = [(address, address) for address in port.own_addresses]
        for headers, end in ((source, "source"), (sink, "destination")):
            is_of_nat = headers is not None and headers.to_nat and end == "destination"
            if headers is None or is_of_nat:
                continue
            for each in headers.every_headers:
                ip = each.ip
                first, last = address_span(getattr(ip, end), ip.on(side), ip.version)
                ranges.append((str(first), str(last)))

        yield Speaker(port.interface, tuple(dict.fromkeys(ranges)))


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
        steps = each.steps
        values = tuple(each.first + steps[number % each.count] for number in numbers)
        fields.append(replace(each, first=min(values), count=count, seed=None, values=values))

    together = spec.order
    if together is not None:
        streams = tuple(together.streams[number] for number in numbers)
        sizes = tuple(together.sizes[number] for number in numbers)
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
            if header[place - 2 : place] != ETHERTYPES[gateway.version]:
                continue

            asker = next(
                address for address in port.interface.address if address.version == gateway.version
            )
            known: dict[str, None] = {}
            for first, last in ((ip_address(first), ip_address(last)) for first, last in ranges):
                if first.version == asker.version:
                    lowest = max(int(first), int(asker.network[0]))
                    # One more than the maximum is enough to see that there are too many.
                    highest = min(int(last), int(asker.network[-1]), lowest + _MOST_NEIGHBOURS)
                    known |= dict.fromkeys(
                        str(type(first)(number)) for number in range(lowest, highest + 1)
                    )

            if len(known) > _MOST_NEIGHBOURS:
                raise TopologyError(
                    f"{port}: the gateway {gateway} would have to learn more than "
                    f"{_MOST_NEIGHBOURS} addresses of the traffic by ARP or neighbour discovery, "
                    "but a generator with cards cannot announce so many. Give the port a "
                    "'network' that the gateway routes to the port's address, or use a traffic "
                    "profile with fewer addresses."
                )

            tags = header[12 : place - 2].hex()
            yield from (Question(name, source, str(gateway), tags) for source in known)
