"""Configuration of a generator: ports and frames. It is the contents of a `configure` request for every generator.

The controller's side makes these objects, too, and sends them as JSON.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import reduce
from math import gcd
from typing import Any, Mapping

from .protocol import AgentError, Message

FCS_BYTES = 4
"""Bytes of the frame check sequence, which frame sizes include and packet sockets do not send."""

VLAN_TAG_BYTES = 4
"""Bytes of a tag of IEEE 802.1Q or 802.1ad."""

_ETHERNET_HEADER_BYTES = 14
_TAG_ETHERTYPES = (b"\x81\x00", b"\x88\xa8")

TAG_BYTES = 8
"""Bytes of a trial's tag with the sequence number behind it: see `lossratio.traffic.agent.afpacket.frames`."""

COMPENSATION_BYTES = 2
"""Bytes of the word that makes up for both in checksums."""


@dataclass(frozen=True)
class SteppingField:
    """A header field that changes from frame to frame: it takes the values first, first + 1 ... and these again.

    Fields step together: the second frame has the second value of each. So there are as many different frames (of one
    size) as the least common multiple of all counts says.

    Attributes:
        offset: Its place in the frame, in bytes.
        width: Its width, in bytes (at most eight).
        first: Its lowest value.
        count: How many values it takes.
        seed: Of the order in which it takes them, which is drawn at random; None: upwards. The same seed gives the
            same order again.
    """

    offset: int
    width: int
    first: int
    count: int
    seed: int | None = None


@dataclass(frozen=True)
class LengthField:
    """Two bytes of a header that hold the number of bytes up to the frame's end (without FCS).

    Attributes:
        offset: Its place in the frame, in bytes.
        start: From where bytes are counted.
    """

    offset: int
    start: int


@dataclass(frozen=True)
class ChecksumField:
    """Two bytes of a header that hold the Internet checksum (RFC 1071) of a part of the frame.

    Attributes:
        offset: Its place in the frame, in bytes.
        start: Where the part begins.
        end: Where it ends; None: at the frame's end.
        pseudo_header: Start and end of the addresses, and the protocol number, of the pseudo header to count in.
    """

    offset: int
    start: int
    end: int | None = None
    pseudo_header: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class TagPlace:
    """The place of a trial's tag in frames.

    Attributes:
        offset: In the frame as it was sent.
        behind_vlan: Whether the frame begins with a VLAN's tag, which the kernel takes off when it arrives.
        is_numbered: Whether a sequence number follows the tag; else the tag's complement does.
        compensation: Where the word is that makes up for both in checksums; None: no checksum covers them.
    """

    offset: int
    behind_vlan: bool
    is_numbered: bool
    compensation: int | None


@dataclass(frozen=True)
class FramesSpec:
    """Description of the frames of one direction.

    Attributes:
        header: The bytes that all frames begin with, in hexadecimal; MAC addresses, stepping fields, lengths and
            checksums are zero.
        fields: Fields that step from frame to frame.
        lengths: Fields that hold a length.
        checksums: Fields that hold a checksum; one that covers others comes after them.
        sizes: Frame sizes in bytes with FCS, each with its weight.
        tag_offset: Where the trial's tag is.
        is_numbered: Whether the smallest frame has room for a sequence number whose place in checksums is made up for.
        compensation: Where the word is that makes up for it; None: no checksum covers the sequence number.
        rewritable: Starts and ends of fields that devices on the way may rewrite, such as MAC addresses.
        addresses: Starts and ends of IP addresses that they may not rewrite.
    """

    header: str
    fields: tuple[SteppingField, ...]
    lengths: tuple[LengthField, ...]
    checksums: tuple[ChecksumField, ...]
    sizes: tuple[tuple[int, int], ...]
    tag_offset: int
    is_numbered: bool
    compensation: int | None
    rewritable: tuple[tuple[int, int], ...]
    addresses: tuple[tuple[int, int], ...]

    @property
    def max_size(self) -> int:
        """Size of the largest frame, in bytes with FCS."""
        return max(size for size, _ in self.sizes)

    @property
    def flows(self) -> int:
        """How many frames differ in more than their size."""
        return reduce(lambda one, other: one * other // gcd(one, other), (field.count for field in self.fields), 1)

    @property
    def mtu(self) -> int:
        """Least MTU that its largest frame goes through: bytes without Ethernet header, FCS and one 802.1Q tag."""
        tag = VLAN_TAG_BYTES if self.tag_place.behind_vlan else 0
        return self.max_size - FCS_BYTES - _ETHERNET_HEADER_BYTES - tag

    @property
    def tag_place(self) -> TagPlace:
        """The place of the trial's tag."""
        behind_vlan = bytes.fromhex(self.header)[12:14] in _TAG_ETHERTYPES
        return TagPlace(self.tag_offset, behind_vlan, self.is_numbered, self.compensation)

    @property
    def payload_offset(self) -> int:
        """The beginning of the payload that follows the tag."""
        end = self.tag_offset + TAG_BYTES
        return end + COMPENSATION_BYTES if self.compensation == end else end


@dataclass(frozen=True)
class Direction:
    """One direction of the traffic.

    Attributes:
        name: What counters call it, e.g. ``port0>port1``.
        transmit: Interface that its frames leave from.
        receive: Interface that they come back to.
        destination_mac: Destination MAC address of its frames; None: the receiving interface's own.
        frames: Its frames.
        load_share: Its share of a trial's load, above 0 and at most 1. The load is that of the direction with the
            largest share.
        broadcast_share: Share of its frames that go to the broadcast address instead (RFC 2544, section 11.1). Nobody
            counts them: the counters are those of all others.
    """

    name: str
    transmit: str
    receive: str
    destination_mac: str | None
    frames: FramesSpec
    load_share: float = 1.0
    broadcast_share: float = 0.0


@dataclass(frozen=True)
class Speaker:
    """A port that answers for addresses.

    Attributes:
        port: The interface.
        addresses: First and last addresses of the ranges that it answers ARP and neighbour discovery for.
        lldp: Whether it announces itself by LLDP.
    """

    port: str
    addresses: tuple[tuple[str, str], ...]
    lldp: bool


BENCHMARK_NETWORKS = ("198.18.0.0/15", "2001:2::/48")
"""The networks of test traffic (RFC 2544, RFC 5180) that a lab does not give other ones for."""


@dataclass(frozen=True)
class Configuration:
    """Ports, directions and frames of a generator.

    Attributes:
        ports: Its interfaces.
        directions: The directions that it transmits in; one at least, and each from an interface of its own.
        settle_time: Seconds to wait, after the traffic, for frames still in flight.
        examines: Whether frames that come back are looked at, as far as the generator can.
        speakers: The ports that answer for addresses.
        networks: Networks of the traffic's addresses: the node must not forward frames to them.
    """

    ports: tuple[str, ...]
    directions: tuple[Direction, ...]
    settle_time: float
    examines: bool = True
    speakers: tuple[Speaker, ...] = ()
    networks: tuple[str, ...] = BENCHMARK_NETWORKS

    def to_json(self) -> Message:
        """The configuration as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Configuration:
        """Reads the data that `to_json` wrote.

        Raises:
            AgentError: Of kind ``bad_request``.
        """
        try:
            configuration = cls(
                ports=tuple(data["ports"]),
                directions=tuple(_direction(direction) for direction in data["directions"]),
                settle_time=float(data["settle_time"]),
                examines=bool(data["examines"]),
                speakers=tuple(read_speaker(speaker) for speaker in data.get("speakers", ())),
                networks=tuple(str(network) for network in data.get("networks", BENCHMARK_NETWORKS)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise AgentError("bad_request", f"The configuration cannot be read: {error!r}.") from error
        used = {port for direction in configuration.directions for port in (direction.transmit, direction.receive)}
        names = {direction.name for direction in configuration.directions}
        if not used or used - set(configuration.ports) or len(names) < len(configuration.directions):
            raise AgentError(
                "bad_request", "A configuration needs directions with names of their own, and their ports."
            )
        shares = [direction.load_share for direction in configuration.directions]
        if min(shares) <= 0 or max(shares) != 1:
            raise AgentError("bad_request", f"Shares of the load are above 0, and the largest is 1; not {shares}.")
        if not all(0.0 <= direction.broadcast_share < 1.0 for direction in configuration.directions):
            raise AgentError("bad_request", "A share of broadcast frames is at least 0, and below 1.")
        if not configuration.settle_time >= 0:
            raise AgentError("bad_request", f"The settle_time must not be {configuration.settle_time!r}.")
        return configuration


def _direction(data: Mapping[str, Any]) -> Direction:
    return Direction(**{**data, "frames": _frames(data["frames"]), "load_share": float(data["load_share"])})


def read_speaker(data: Mapping[str, Any]) -> Speaker:
    """Reads the data of a speaker."""
    addresses = tuple((str(first), str(last)) for first, last in data["addresses"])
    return Speaker(str(data["port"]), addresses, bool(data["lldp"]))


def _frames(data: Mapping[str, Any]) -> FramesSpec:
    bytes.fromhex(data["header"])
    return FramesSpec(
        header=data["header"],
        fields=tuple(SteppingField(**field) for field in data["fields"]),
        lengths=tuple(LengthField(**field) for field in data["lengths"]),
        checksums=tuple(ChecksumField(**field) for field in data["checksums"]),
        sizes=tuple((int(size), int(weight)) for size, weight in data["sizes"]),
        tag_offset=int(data["tag_offset"]),
        is_numbered=bool(data["is_numbered"]),
        compensation=None if data["compensation"] is None else int(data["compensation"]),
        rewritable=tuple((int(start), int(end)) for start, end in data["rewritable"]),
        addresses=tuple((int(start), int(end)) for start, end in data["addresses"]),
    )
