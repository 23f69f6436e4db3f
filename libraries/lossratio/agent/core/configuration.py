# SPDX-License-Identifier: Apache-2.0
"""Configuration of a generator: ports and directions. It is in the `configure` request for every generator.

The controller's side also makes these objects, and sends them as JSON, by `dataclasses.asdict`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable

from .frames_spec import MOST_STREAMS, ChecksumField, FramesSpec, LengthField, SteppingField, StreamOrder, TagPlace
from .protocol import AgentError
from .wire import ETHERNET_HEADER_BYTES, FCS_BYTES, LEAST_LENGTH, VLAN_TAG_BYTES


@dataclass(frozen=True)
class Direction:
    """One direction of the traffic."""

    name: str
    """Its name in counters, e.g. ``port0>port1``."""
    transmit: str
    """Interface from which its frames leave."""
    receive: str
    """Interface to which they come back; the same interface: they come from a reflector."""
    destination_mac: str | None
    """Destination MAC address of its frames; None: the receiving interface's own."""
    frames: FramesSpec
    """Its frames."""
    load_share: float = 1.0
    """Its share of a trial's load, above 0 and at most 1. The direction with the largest share has the whole load."""
    source_mac: str | None = None
    """Source MAC address of its frames; None: the transmitting interface's own."""
    broadcast_share: float = 0.0
    """Share of its frames that go to the broadcast address instead (RFC 2544, section 11.1). They are not counted: the
    counters cover all other frames."""
    growth: int = 0
    """Bytes by which its frames are longer when they come back, because devices put headers between the Ethernet header
    and the packet; below 0: they remove some."""
    arriving_frames: FramesSpec | None = None
    """Its frames as they come back, with everything that devices change on purpose; None: as they were sent. The flows
    are the same, and so are the sizes apart from the headers."""
    elsewhere: str = ""
    """The end that the agent of another node has: ``transmit`` or ``receive``; empty: both ends are on this node."""

    @property
    def sends_here(self) -> bool:
        """Whether its frames leave from this node."""
        return self.elsewhere != "transmit"

    @property
    def receives_here(self) -> bool:
        """Whether its frames come back to this node."""
        return self.elsewhere != "receive"

    @property
    def counted_share(self) -> float:
        """Its share of a trial's load without broadcast frames."""
        return self.load_share * (1.0 - self.broadcast_share)

    @property
    def local_ports(self) -> tuple[str, ...]:
        """Its interfaces on this node."""
        both = ((self.transmit, self.sends_here), (self.receive, self.receives_here))
        return tuple(port for port, is_here in both if is_here)

    @property
    def arriving(self) -> FramesSpec:
        """Its frames as they come back, apart from the bytes that devices put after the Ethernet header."""
        if self.arriving_frames is None:
            return self.frames
        return self.arriving_frames

    @property
    def may_be_padded(self) -> bool:
        """Whether links pad some of its frames on the way because they become too short for an Ethernet frame."""
        smallest = min(size for size, _ in self.arriving.sizes)
        return self.arriving_frames is not None and smallest - FCS_BYTES < LEAST_LENGTH

    def changed(self, change: Callable[[FramesSpec], FramesSpec]) -> Direction:
        """The same direction after a change of its frames, both as they are sent and as they come back."""
        arriving = self.arriving_frames
        return replace(self, frames=change(self.frames), arriving_frames=None if arriving is None else change(arriving))

    def of_size(self, size: int) -> Direction:
        """The same direction with frames of one size, in bytes with FCS."""
        grown = self.arriving.max_size - self.frames.max_size
        arriving = self.arriving_frames
        return replace(
            self,
            frames=self.frames.sized(size),
            arriving_frames=None if arriving is None else arriving.sized(size + grown),
        )

    @property
    def arriving_tag(self) -> TagPlace:
        """The place of the trial's tag in frames that come back."""
        place = self.arriving.tag_place
        return replace(place, offset=place.offset + self.growth)

    @property
    def replaced(self) -> int:
        """Number of bytes at the start of its frames that are replaced when they return; 0 if only fields change."""
        if not self.growth:
            return 0
        tag = VLAN_TAG_BYTES if self.arriving.tag_place.behind_vlan else 0
        return ETHERNET_HEADER_BYTES + tag + max(0, -self.growth)

    @property
    def rewritable(self) -> tuple[tuple[int, int], ...]:
        """Ranges of bytes that devices may rewrite or replace."""
        return ((0, self.replaced), *self.arriving.rewritable)

    @property
    def header_checksums(self) -> list[tuple[int, int]]:
        """Ranges whose checksums must be right when frames come back."""
        ranges = [(checksum.start, checksum.end) for checksum in self.arriving.checksums]
        return [(start, end) for start, end in ranges if end is not None and start >= self.replaced]

    @property
    def arriving_lengths(self) -> set[int]:
        """Lengths without FCS, and without bytes that devices add, with which frames may come back."""
        lengths = {size - FCS_BYTES for size, _ in self.arriving.sizes}
        if self.may_be_padded:
            lengths.add(LEAST_LENGTH)
        return lengths

    @property
    def mtu(self) -> int:
        """Minimum MTU that its largest frame needs, both when it is sent and when it comes back."""
        return max(self.frames.mtu, self.arriving.mtu + self.growth)

    @property
    def returned(self) -> FramesSpec:
        """Its frames as they come back, and as a reflector sends them."""
        if self.transmit == self.receive:
            return self.frames.reflected()
        return self.arriving

    def macs(self, source: bytes, sink: bytes) -> tuple[bytes, bytes]:
        """Source and destination MAC addresses of its frames, given those of its ports."""
        texts = ((self.source_mac, source), (self.destination_mac, sink))
        own, destination = (port if text is None else mac_bytes(text) for text, port in texts)
        return own, destination


@dataclass(frozen=True)
class Speaker:
    """A port that answers for addresses."""

    port: str
    """The interface."""
    addresses: tuple[tuple[str, str], ...]
    """First and last addresses of the ranges for which it answers ARP and neighbour discovery."""


BENCHMARK_NETWORKS = ("198.18.0.0/15", "2001:2::/48", "240.0.0.0/5")
"""The networks of test traffic (RFC 2544, RFC 5180, RFC 1112) that a lab does not replace by others."""


@dataclass(frozen=True)
class Configuration:
    """Ports, directions and frames of a generator."""

    ports: tuple[str, ...]
    """Its interfaces."""
    directions: tuple[Direction, ...]
    """The directions in which it transmits: at least one, each from its own interface."""
    settle_time: float
    """Seconds to wait, after the traffic, for frames still in flight."""
    examines: bool = True
    """Whether frames that come back are examined, as far as the generator can."""
    speakers: tuple[Speaker, ...] = ()
    """The ports that answer for addresses."""
    networks: tuple[str, ...] = BENCHMARK_NETWORKS
    """Networks of the traffic's addresses, to which the node must not forward frames."""
    connects: bool = False
    """Whether all its trials open connections; a generator with a special mode for connections then uses that mode."""
    watches: bool = False
    """Whether losses of running traffic are located in time."""
    loads_default_route: bool = False
    """Whether a port may carry the node's default route, because nobody reaches the node over it."""
    first_tag: int | None = None
    """The tag before that of the first traffic, the same at both ends of a path; None: any tag."""

    def __post_init__(self) -> None:
        used = {port for direction in self.directions for port in direction.local_ports}
        names = {direction.name for direction in self.directions}
        if not used or used - set(self.ports) or len(names) < len(self.directions):
            raise ValueError("directions need different names, and each direction needs its ports")
        shares = [direction.load_share for direction in self.directions]
        if min(shares) <= 0 or max(shares) != 1:
            raise ValueError(f"shares of the load must be above 0, and the largest must be 1, not {shares}")
        if not all(0.0 <= direction.broadcast_share < 1.0 for direction in self.directions):
            raise ValueError("the share of broadcast frames must be at least 0 and below 1")
        if not self.settle_time >= 0:
            raise ValueError(f"the settle_time must be 0 or more, not {self.settle_time!r}")

        for direction in self.directions:
            order = direction.frames.order
            if order is not None and (direction.elsewhere or not direction.frames.is_numbered):
                raise ValueError(
                    f"the streams of direction {direction.name} need sequence numbers in their frames, and both ends "
                    "on one node"
                )
            if order is not None and max(len(order.names), len(self.directions)) > MOST_STREAMS:
                raise ValueError(
                    f"with streams, there can be at most {MOST_STREAMS} directions, each with at most "
                    f"{MOST_STREAMS} streams"
                )
            texts = (direction.source_mac, direction.destination_mac)
            if direction.elsewhere not in ("", "transmit", "receive") or (direction.elsewhere and None in texts):
                raise ValueError(f"direction {direction.name}: 'elsewhere' needs a known end and both MAC addresses")

    @property
    def has_other_end(self) -> bool:
        """Whether the agent of another node has one end of a direction."""
        return any(direction.elsewhere for direction in self.directions)


PARTS = {
    "directions": Direction,
    "speakers": Speaker,
    "order": StreamOrder,
    "frames": FramesSpec,
    "arriving_frames": FramesSpec,
    "fields": SteppingField,
    "lengths": LengthField,
    "checksums": ChecksumField,
}
"""The parts of a configuration by the names of the fields that hold them."""


def mac_bytes(text: str) -> bytes:
    """The bytes of a MAC address.

    Raises:
        AgentError: If it is not one.
    """
    try:
        mac = bytes.fromhex(text.replace(":", ""))
    except ValueError:
        mac = b""
    if len(mac) != 6:
        raise AgentError("bad_request", f"{text!r} is not a MAC address. Write it like 02:00:00:00:00:01.")
    return mac
