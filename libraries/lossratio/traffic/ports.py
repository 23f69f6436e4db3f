"""The TG's two ports, and what a generator is to send between them."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.addressing import EAST, WEST
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


def make_configuration(
    profile: TrafficProfile, west: TrafficPort, east: TrafficPort, *, settle_time: float
) -> Configuration:
    """What a generator needs to know to send a profile's frames.

    Args:
        profile: What is sent; a unidirectional one from west to east only.
        west: The path's first port.
        east: Its second port.
        settle_time: Seconds to wait, after the traffic, for frames in flight: a property of the DUT.

    Raises:
        TrafficError: If a frame is too small for its headers.
    """
    ways = ((west, WEST, east, EAST), (east, EAST, west, WEST))[: profile.transmitting_directions]
    return Configuration(
        ports=(west.interface, east.interface),
        directions=tuple(
            Direction(
                name=f"{source.name}>{sink.name}",
                transmit=source.interface,
                receive=sink.interface,
                destination_mac=source.destination_mac,
                frames=frames_spec(profile, source_side, sink_side),
            )
            for source, source_side, sink, sink_side in ways
        ),
        settle_time=settle_time,
    )
