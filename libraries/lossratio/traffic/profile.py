"""Traffic profiles: headers, sizes and flows of frames, also in words for reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, computed_field, field_validator, model_validator

from lossratio.errors import ProfileError
from lossratio.results import FrameSizeShare, LoadSemantics, Traffic, load_semantics
from lossratio.topology import EAST, WEST, Address, FileName, Side
from lossratio.traffic.frame_sizes import RESERVED_NAMES, parse_frame_size, weights_of
from lossratio.traffic.headers import Headers, InnerHeaders, why_wrong_sizes
from lossratio.traffic.ranges import AddressRange
from lossratio.traffic.received import as_received, check_received
from lossratio.traffic.streams import (
    StreamError,
    StreamFields,
    TrafficStream,
    check_layout,
    check_streams,
    sizes_of,
    weights_of_streams,
)
from lossratio.values import RESOLVED, FileModel, left_out_if_empty, refused_in_words

MOST_FLOWS = 1 << 22
"""The maximum number of flows of a profile in each direction."""


class Reverse(FileModel):
    """The differences of the direction from the second port to the first one."""

    load_share: float = Field(default=1.0, gt=0.0, le=1.0)
    """Its share of the load; see `ProfileFile.load_share`."""
    frame_size: Annotated[int | str | None, RESOLVED] = None
    """Its frame size, or the name of its mix of sizes. Default: that of the other direction."""
    longer: int = Field(default=0, ge=0, le=200)
    """Bytes by which its frames are longer than this frame size, such as a tunnel's headers."""
    headers: Headers | None = None
    """Headers of its frames. Default: those of the other direction, with the sides swapped."""
    received: Headers | None = None
    """Headers that its frames come back with. By default, they follow from the headers of the other direction."""
    to_nat: bool = False
    """Whether its frames go over connections that the other direction has opened through a NAT with ports that are
    known beforehand: the destination addresses are the NAT's, on the transmitting side."""

    _leave_out = left_out_if_empty("received")


class ProfileFile(Headers):
    """A traffic profile as its file describes it: everything but the size of the frames."""

    format: Literal["lossratio-traffic-profile/1"]
    """Format of the file."""
    name: FileName
    """Name of the profile; it is in every result."""
    description: str = ""
    """Remarks about it."""
    bidirectional: bool = True
    """Whether both ports transmit; otherwise only the first one does."""
    load_share: float = Field(default=1.0, gt=0.0, le=1.0)
    """The first direction's share of the load. The direction with the larger share, which is 1, gets the whole load
    (RFC 9971 allows loads that a subset of the interfaces defines)."""
    broadcast_share: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the frames of each direction that go to the broadcast address (RFC 2544, section 11.1). They are part
    of the load, but only the other frames are counted."""
    headroom: int = Field(default=0, ge=0, le=200)
    """Bytes of a link that the maximum load leaves free with each frame. The frames stay as they are."""
    received: Headers | None = None
    """Headers that the first direction's frames come back with, for the same flows. By default, the packet is the one
    that was sent, with the tags, labels and tunnel of the other direction."""
    reverse: Reverse = Reverse()
    """The differences of the other direction."""
    mixes: dict[str, dict[int, int]] = Field(default_factory=dict)
    """Mixes of frame sizes by name: bytes with FCS, each with its weight."""
    seed: int = Field(default=1, ge=0, lt=1 << 16)
    """Seed of all random orders. Each field and direction has its own order, which is the same in every test."""
    streams: tuple[StreamFields, ...] = ()
    """Parts of each direction's frames with their own sizes, marks and flows, whose loss is counted separately; empty:
    all frames are alike."""

    _leave_out = left_out_if_empty("any_mac", "headroom", "mpls", "received", "streams")

    @field_validator("mixes")
    @classmethod
    def _names_are_free(cls, mixes: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
        for name in mixes:
            if name.casefold() in RESERVED_NAMES or not name[:1].isalpha():
                raise ValueError(
                    f"{name!r} cannot be the name of a mix: it is in use, or does not begin with a letter. Choose "
                    "another name"
                )
        return mixes


class TrafficDirection(FileModel):
    """One direction of a profile's traffic."""

    headers: Headers
    """The headers of its frames."""
    size_weights: dict[int, int]
    """Sizes of its frames in bytes with FCS, with their weights."""
    load_share: float
    """Its share of the load."""
    seed: int
    """Seed of its random orders."""
    to_nat: bool = False
    """Whether the destination addresses are those of a NAT, on the transmitting side."""
    received: Headers | None = None
    """Headers with which its frames come back; None: the headers with which they are sent."""
    streams: tuple[TrafficStream, ...] = ()
    """Its streams; empty: all its frames are alike."""

    @property
    def every_headers(self) -> tuple[Headers, ...]:
        """The headers of the frames of each of its streams."""
        return tuple(stream.headers for stream in self.streams) or (self.headers,)

    @property
    def flows(self) -> int:
        """How many of its frames differ in their headers."""
        return sum(headers.flows for headers in self.every_headers)

    @property
    def growth(self) -> int:
        """Bytes by which its frames are longer when they come back, for these headers."""
        if self.received is None:
            return 0
        return self.received.length - self.headers.length

    @property
    def average_frame_size(self) -> float:
        """Average size of its frames, in bytes with FCS."""
        size_sum = sum(size * weight for size, weight in self.size_weights.items())
        return size_sum / sum(self.size_weights.values())


@refused_in_words(ProfileError)
class TrafficProfile(ProfileFile):
    """Headers, sizes and flows of the frames of a test. Read it with `load_profile`."""

    frame_size: int | str
    """Bytes of a frame with FCS, or the name of a mix of sizes."""

    @model_validator(mode="after")
    def _is_possible(self) -> "TrafficProfile":
        if self.streams:
            self._check_streams()
        shares = [direction.load_share for direction in self.directions]
        if max(shares) != 1:
            raise ValueError(
                f"load_share: one direction must have 1, but the largest is {max(shares):g}"
            )

        for direction in self.directions:
            self._check_direction(direction)
        return self

    def _check_direction(self, direction: TrafficDirection) -> None:
        """Makes sure that a direction's frames can be sent, and come back as the profile says."""
        longer = self.reverse.longer
        if direction.streams:
            check_layout(direction.streams)
        for stream in direction.streams:
            if problem := why_wrong_sizes(stream.headers, stream.size_weights, longer):
                raise StreamError(stream.name, f"has wrong sizes: {problem}")

        if problem := why_wrong_sizes(direction.headers, direction.size_weights, longer):
            raise ValueError(problem)
        if direction.flows > MOST_FLOWS:
            raise ValueError(
                f"these ranges make {direction.flows} flows, but at most {MOST_FLOWS} are supported; use fewer"
            )
        if direction.received is not None:
            check_received(direction.headers, direction.received)

    @cached_property
    def directions(self) -> tuple[TrafficDirection, ...]:
        """The directions of the traffic: from the first port to the second one, and back."""
        back = self.reverse
        first = self._first_headers
        headers = back.headers or first
        eastward = self._direction(first, self.frame_size, self.load_share, self.seed)
        received = self.received or as_received(first, headers)
        eastward = eastward.model_copy(update={"received": received})
        if not self.bidirectional:
            return (eastward,)

        size = self.frame_size
        if back.frame_size is not None:
            size = back.frame_size
        westward = self._direction(
            headers, size, back.load_share, self.seed + (1 << 16), back.longer
        )
        received = back.received or as_received(headers, first)
        return (eastward, westward.model_copy(update={"to_nat": back.to_nat, "received": received}))

    @property
    def size_name(self) -> str:
        """Its frame size as in names of tests, such as ``64B``; or the name of a mix."""
        if isinstance(self.frame_size, str):
            return self.frame_size
        return f"{self.frame_size}B"

    @property
    def growth(self) -> tuple[int, int]:
        """Bytes by which frames to the east, and to the west, come back longer, because of their new headers."""
        eastward = self.directions[0]
        westward = self.directions[-1]
        if not self.bidirectional:
            return eastward.growth, 0
        return eastward.growth, westward.growth

    @property
    def says_what_is_received(self) -> bool:
        """Whether its file states the headers with which frames come back."""
        return self.received is not None or self.reverse.received is not None

    @property
    def size_weights(self) -> Mapping[int, float]:
        """Sizes of the frames of all directions in bytes with FCS, with their weights."""
        weights: dict[int, float] = {}
        for direction in self.directions:
            total = sum(direction.size_weights.values())
            for size, weight in direction.size_weights.items():
                weights[size] = weights.get(size, 0.0) + direction.load_share * weight / total
        return weights

    @computed_field  # type: ignore[prop-decorator]
    @property
    def average_frame_size(self) -> float:
        """Average size of the frames of all directions, in bytes with FCS."""
        weighted = (
            direction.load_share * direction.average_frame_size for direction in self.directions
        )
        return sum(weighted) / self.load_factor

    @computed_field  # type: ignore[prop-decorator]
    @property
    def transmitting_directions(self) -> int:
        """Number of directions in which traffic is sent."""
        return len(self.directions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def load_factor(self) -> float:
        """The factor from a load to the aggregate load: the sum of the directions' shares."""
        return sum(direction.load_share for direction in self.directions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def flows(self) -> int:
        """Number of different flows in each direction; if the directions differ, the larger number."""
        return max(direction.flows for direction in self.directions)

    @property
    def stream_names(self) -> tuple[str, ...]:
        """Names of its streams; empty: all its frames are alike."""
        return tuple(stream.name for stream in self.streams)

    @property
    def is_tcp(self) -> bool:
        """Whether its connections are opened by a handshake."""
        tcp = self.directions[0].headers.tcp
        return tcp is not None and tcp.connects

    def description_in_full(self) -> dict[str, Any]:
        """The whole profile as JSON data, with its frame sizes and all defaults, for results."""
        directions = [
            direction.model_dump(mode="json", include={"size_weights", "load_share"})
            for direction in self.directions
        ]
        # Traffic without broadcast frames has the same description as before these existed.
        left_out = set() if self.broadcast_share else {"broadcast_share"}
        return {**self.model_dump(mode="json", exclude=left_out), "directions": directions}

    def described(self, sides: Sequence[tuple[Side, Side]] = ((WEST, EAST),)) -> Traffic:
        """The description for results; the paths differ in the addresses of `sides`, each path's west and east."""
        weights = self.size_weights
        total = sum(weights.values())
        sizes = (
            FrameSizeShare(size_bytes=size, share_ratio=weight / total)
            for size, weight in weights.items()
        )

        return Traffic(
            name=self.name,
            frame_sizes=tuple(sizes),
            average_frame_size_bytes=self.average_frame_size,
            frame_format=frame_format(self),
            addresses=addresses(self, sides),
            modifiers=modifiers(self),
            ip_versions=ip_versions(self),
            pattern="bidirectional" if self.bidirectional else "unidirectional",
            profile=self.description_in_full(),
        )

    def described_load(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        encapsulation_overhead: int = 0,
        growth: tuple[int, int] = (0, 0),
    ) -> LoadSemantics:
        """What a load means between pairs of ports, for results."""
        ways = [
            (f"{source}>{sink}", direction.load_share, grown)
            for west, east in pairs
            # A reflector's frames come back through the port from which they left.
            for direction, (source, sink), grown in zip(
                self.directions, dict.fromkeys(((west, east), (east, west))), growth, strict=False
            )
        ]
        return load_semantics(
            {name: share for name, share, _ in ways},
            encapsulation_overhead=encapsulation_overhead,
            growth=[grown for _, _, grown in ways],
        )

    @property
    def versions(self) -> frozenset[int]:
        """The versions of IP in its frames, including those inside tunnels."""
        return frozenset().union(*(direction.headers.versions for direction in self.directions))

    @property
    def _first_headers(self) -> Headers:
        return Headers.model_validate({name: getattr(self, name) for name in Headers.model_fields})

    def _direction(
        self, headers: Headers, size: int | str, load_share: float, seed: int, longer: int = 0
    ) -> TrafficDirection:
        sizes = self._sizes(size, headers, longer)
        streams = tuple(self._stream(*stream, headers, size, longer) for stream in self._shared_out)
        if streams:
            sizes = sizes_of(streams)
        # Record: one direction.
        return TrafficDirection(
            headers=headers, size_weights=sizes, load_share=load_share, seed=seed, streams=streams
        )

    @property
    def _shared_out(self) -> Iterator[tuple[StreamFields, int]]:
        """Its streams, each with its frames in a round."""
        if not self.streams:
            return iter(())
        return zip(self.streams, weights_of_streams(self.streams), strict=True)

    def _stream(
        self, stream: StreamFields, weight: int, headers: Headers, size: int | str, longer: int
    ) -> TrafficStream:
        own = stream.headers_from(headers)
        try:
            if stream.frame_size is not None:
                size = parse_frame_size(stream.frame_size)
            size_weights = self._sizes(size, own, longer)
        except ValueError as error:
            raise StreamError(stream.name, f"has wrong sizes: {error}") from error

        return TrafficStream(
            name=stream.name, weight=weight, headers=own, size_weights=size_weights
        )

    def _sizes(self, size: int | str, headers: Headers, longer: int) -> dict[int, int]:
        weights = weights_of(size, self.mixes, has_ipv6=6 in headers.versions)
        return {size + longer: weight for size, weight in weights.items()}

    def _check_streams(self) -> None:
        """Makes sure that the profile requests nothing that is only possible without streams."""
        check_streams(self.streams)
        without = {
            "received": self.received,
            "broadcast_share": self.broadcast_share,
            "reverse: headers": self.reverse.headers,
            "reverse: received": self.reverse.received,
            "reverse: to_nat": self.reverse.to_nat,
        }
        given = [name for name, value in without.items() if value]
        if given:
            raise ValueError(
                f"a profile with 'streams' cannot have {given[0]!r}: leave one of them out"
            )


def frame_format(profile: TrafficProfile) -> str:
    """Protocols of the frames from the outside in, e.g. ``Ethernet II, IPv4, UDP``; each direction's if they differ."""
    return _in_words(profile, lambda direction: _format(direction.headers))


def ip_versions(profile: TrafficProfile) -> dict[str, float]:
    """Shares of the frames by (outermost) IP version."""
    shares: dict[str, float] = {}
    for direction in profile.directions:
        version = f"IPv{direction.headers.ip.version}"
        shares[version] = shares.get(version, 0.0) + direction.load_share / profile.load_factor
    return shares


def addresses(profile: TrafficProfile, sides: Sequence[tuple[Side, Side]] = ((WEST, EAST),)) -> str:
    """Addresses of the frames in the first port's direction and, if any, in the other direction, on each path."""
    parts = []
    for west, east in sides:
        eastward = (west, east)
        westward = (east, west)
        if profile.reverse.to_nat:
            westward = (east, east)
        for direction, way in zip(profile.directions, (eastward, westward), strict=False):
            parts.append(_addresses(direction.headers, *way))
    return "; ".join(parts)


def address_span(numbers: AddressRange, side: Side, version: int) -> tuple[Address, Address]:
    """The first and the last address of a range within a side's addresses of IP version 4 or 6."""
    if version == 4:
        start: Address = side.ipv4.network_address + side.ipv4_offset
    else:
        start = side.ipv6.network_address + side.ipv6_offset
    return start + numbers.first, start + numbers.last


def modifiers(profile: TrafficProfile) -> str:
    """The changes from frame to frame, e.g. ``254 source addresses in turn``; ``none`` if nothing changes."""
    changes = _in_words(profile, _changing)
    if not profile.broadcast_share:
        return changes
    broadcast = f"{100 * profile.broadcast_share:g} % of the frames to the broadcast address"
    if changes == "none":
        return broadcast
    return f"{changes}, {broadcast}"


def _changing(direction: TrafficDirection) -> str:
    """The changes from frame to frame of one direction."""
    if direction.streams:
        total = sum(stream.weight for stream in direction.streams)
        return "streams " + ", ".join(stream.in_words(total) for stream in direction.streams)

    how = {"increment": "in turn", "random": "in random order"}
    changes = []
    for name, each in direction.headers.ranges():
        step = f" by {each.step}" if each.step else ""
        stay = f" for {each.repeat} frames" if each.repeat else ""
        slip = ", each round starting one later" if each.slips else ""
        if each.count > 1:
            changes.append(f"{each.count} {name} {how[each.order]}{step}{stay}{slip}")
    return ", ".join(changes) or "none"


def _in_words(profile: TrafficProfile, describe: Callable[[TrafficDirection], str]) -> str:
    descriptions = [describe(direction) for direction in profile.directions]
    if len(set(descriptions)) == 1:
        return descriptions[0]
    return "; back: ".join(descriptions)


def _format(headers: InnerHeaders) -> str:
    present: dict[str, Any] = {"IEEE 802.1ad": headers.dot1ad, "IEEE 802.1Q": headers.dot1q}
    present |= {"IPv4": headers.ipv4, "IPv6": headers.ipv6, "UDP": headers.udp, "TCP": headers.tcp}
    parts = ["Ethernet II", *(name for name, header in present.items() if header is not None)]
    if isinstance(headers, Headers) and headers.mpls:
        parts.insert(parts.index(f"IPv{headers.ip.version}"), "MPLS")
    if isinstance(headers, Headers) and headers.tunnel is not None:
        tunnel = "GENEVE"
        if headers.geneve is None:
            tunnel = "VXLAN"
        parts += ["UDP", tunnel, _format(headers.tunnel.inner)]
    elif headers.udp is None and headers.tcp is None:
        parts.append(f"IP protocol {headers.protocol}")
    return ", ".join(parts)


def _addresses(headers: InnerHeaders, source: Side, destination: Side) -> str:
    ip = headers.ip
    spans = []
    for numbers, side in ((ip.source, ip.on(source)), (ip.destination, ip.on(destination))):
        first, last = address_span(numbers, side, ip.version)
        if first == last:
            spans.append(str(first))
        else:
            spans.append(f"{first}-{last}")

    if isinstance(headers, Headers) and headers.tunnel is not None:
        spans[1] += f", within {_addresses(headers.tunnel.inner, source, destination)}"
    return " to ".join(spans)
