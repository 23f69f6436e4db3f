"""The TG's ports, and what a generator is to send between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lossratio.topology import Side, split_sides
from lossratio.traffic.agent.configuration import Configuration, Direction
from lossratio.traffic.layers import frames_spec
from lossratio.traffic.profile import TrafficProfile


@dataclass(frozen=True)
class TrafficPort:
    """One of the TG's ports.

    Attributes:
        name: Its name in the topology, e.g. ``port0``; counters call directions by it.
        interface: Its Linux interface.
        destination_mac: Destination MAC address of the frames that leave it: the next router's, or None where
            nothing on the way rewrites it (then they are addressed to the other port).
    """

    name: str
    interface: str
    destination_mac: str | None = None


@dataclass(frozen=True)
class PortPair:
    """Both ends of one path.

    Attributes:
        west: The path's first port.
        east: Its second port.
    """

    west: TrafficPort
    east: TrafficPort


def make_configuration(
    profile: TrafficProfile, pairs: Sequence[PortPair], *, settle_time: float, examines: bool = True
) -> Configuration:
    """What a generator needs to know to send a profile's frames.

    Parallel paths carry the same traffic, each between parts of the networks of its own: see
    `lossratio.topology.addressing.split_sides`.

    Args:
        profile: What is sent; a unidirectional one from west to east only.
        pairs: The ends of the paths; one at least.
        settle_time: Seconds to wait, after the traffic, for frames in flight: a property of the DUT.
        examines: Whether frames that come back are looked at, as far as the generator can.

    Raises:
        TrafficError: If there are too few addresses for that many paths.
    """
    return Configuration(
        ports=tuple(port.interface for pair in pairs for port in (pair.west, pair.east)),
        directions=tuple(
            each
            for pair, (west, east) in zip(pairs, split_sides(len(pairs)), strict=True)
            for each in _directions(profile, pair, west, east)
        ),
        settle_time=settle_time,
        examines=examines,
    )


def _directions(profile: TrafficProfile, pair: PortPair, west: Side, east: Side) -> Iterator[Direction]:
    ways = ((pair.west, west, pair.east, east), (pair.east, east, pair.west, west))
    for direction, (source, source_side, sink, sink_side) in zip(profile.directions, ways, strict=False):
        yield Direction(
            name=f"{source.name}>{sink.name}",
            transmit=source.interface,
            receive=sink.interface,
            destination_mac=source.destination_mac,
            frames=frames_spec(direction, source_side, sink_side),
            load_share=direction.load_share,
        )
