"""The streams of a traffic profile: parts of a direction's frames with their own sizes, marks and flows.

Frames of all streams follow each other in one repeating order, according to their shares. So every stream has its share
at any load, and in any part of a trial.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm
from typing import Annotated, Any

from pydantic import Field, model_validator

from lossratio.agent import (
    MACS_BYTES,
    MOST_STREAMS,
    FramesSpec,
    SteppingField,
    StreamOrder,
    size_pattern,
)
from lossratio.traffic.headers import Headers, InnerHeaders, VlanTag
from lossratio.values import RESOLVED, FileModel, Like, left_out_if_empty

LONGEST_ROUND = 4096
"""The maximum number of frames after which shares repeat."""
LONGEST_ORDER = 1 << 16
"""The maximum number of frames after which flows and sizes of all streams repeat."""
_IPV4_ADDRESSES = 8
_WORD = 2


class StreamError(ValueError):
    """One stream of a profile cannot be as it is described."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"streams: {name} {problem}")
        self.name = name
        self.problem = problem


class StreamFields(FileModel):
    """A stream, as a profile's file describes it. Fields that it does not have are as in the profile."""

    name: Annotated[
        str,
        Like(
            r"^[A-Za-z][A-Za-z0-9_.-]*$",
            "a name of letters, digits, '_', '.' and '-' that begins with a letter, such as voice",
            64,
        ),
    ]
    """Its name in results and goals."""
    share: float | None = Field(default=None, gt=0.0, lt=1e12)
    """Its frames, as a proportion: shares of 1 and 3 are a quarter and three quarters of a direction's frames."""
    rate: float | None = Field(default=None, gt=0.0, lt=1e12)
    """The proportion as a rate in frames per second, if each stream states one. The rate is only a proportion, because
    trials have other loads."""
    frame_size: Annotated[int | str | None, RESOLVED] = None
    """Bytes of its frames with FCS, or the name of a mix of sizes; left out: the frame size of the test."""
    dscp: int | None = Field(default=None, ge=0, le=63)
    """The differentiated services code point of its outermost IP header."""
    priority: int | None = Field(default=None, ge=0, le=7)
    """The priority of its outermost VLAN tag."""
    headers: Headers | None = None
    """Its headers: the same ones as in all other streams, with their own values."""

    _leave_out = left_out_if_empty("headers")

    def headers_from(self, common: Headers) -> Headers:
        """Its headers, from the profile's.

        Raises:
            ValueError: If it marks a header that its frames do not have.
        """
        headers = self.headers or common
        if self.dscp is not None:
            name = "ipv4" if headers.ipv4 is not None else "ipv6"
            marked = headers.ip.model_copy(update={"dscp": self.dscp})
            headers = headers.model_copy(update={name: marked})

        if self.priority is not None:
            name = "dot1ad" if headers.dot1ad is not None else "dot1q"
            tag: VlanTag | None = getattr(headers, name)
            if tag is None:
                raise ValueError(
                    f"streams: {self.name} has a 'priority', but its frames have no VLAN tag: give the profile or "
                    "the stream a 'dot1q' header"
                )
            marked_tag = tag.model_copy(update={"priority": self.priority})
            headers = headers.model_copy(update={name: marked_tag})
        return headers


class TrafficStream(FileModel):
    """A stream of a direction."""

    name: str
    """Its name."""
    weight: int
    """How many frames it has in a round of all streams."""
    headers: Headers
    """The headers of its frames."""
    size_weights: dict[int, int]
    """Sizes of its frames in bytes with FCS, with their weights."""

    @model_validator(mode="after")
    def _repeats_soon(self) -> "TrafficStream":
        if self.period > LONGEST_ORDER:
            raise ValueError(
                f"streams: {self.name} has {self.headers.flows} flows and {len(self.size_weights)} sizes: they "
                f"repeat only after {self.period} frames, and the limit is {LONGEST_ORDER}. Use fewer flows or "
                "sizes"
            )
        return self

    @property
    def period(self) -> int:
        """After how many of its frames everything repeats."""
        total = sum(self.size_weights.values()) // gcd(*self.size_weights.values())
        return self.headers.flows * total

    def in_words(self, total: int) -> str:
        """Its share of all frames, its marks and its sizes."""
        parts = [
            f"{100.0 * self.weight / total:.4g} %",
            "/".join(map(str, self.size_weights)) + " B",
        ]
        if self.headers.ip.dscp:
            parts.append(f"DSCP {self.headers.ip.dscp}")
        parts += [
            f"VLAN priority {tag.priority}" for _, tag in self.headers.each_tag() if tag.priority
        ]
        return f"{self.name} ({', '.join(parts)})"


def check_streams(streams: Sequence[StreamFields]) -> None:
    """Makes sure that streams can be distinguished, and that all of them state how many frames they have.

    Raises:
        StreamError: If one of them has neither a share nor a rate, or both.
        ValueError: If names repeat, there are too many, or only some have a share.
    """
    names = [stream.name for stream in streams]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"streams: several have the same name: {', '.join(repeated)}; rename all but one"
        )

    if len(streams) > MOST_STREAMS:
        raise ValueError(
            f"streams: a profile can have at most {MOST_STREAMS}, not {len(streams)}; use fewer"
        )
    for stream in streams:
        if stream.share is None and stream.rate is None:
            raise StreamError(stream.name, "needs a 'share' or a 'rate'")
        if stream.share is not None and stream.rate is not None:
            raise StreamError(stream.name, "has both a 'share' and a 'rate': leave one of them out")
    if len({stream.share is None for stream in streams}) > 1:
        raise ValueError(
            "streams: some have a 'share', and others a 'rate'; give each a 'share', or each a 'rate'"
        )


def weights_of_streams(streams: Sequence[StreamFields]) -> list[int]:
    """How many frames each stream has in a round.

    Raises:
        ValueError: If a round would be too long.
    """
    weights = whole_shares([stream.share or stream.rate or 0.0 for stream in streams])
    if sum(weights) > LONGEST_ROUND:
        raise ValueError(
            f"streams: these shares repeat after {sum(weights)} frames; the limit is {LONGEST_ROUND}. Round them, e.g. "
            "to whole percentages"
        )
    return weights


def whole_shares(shares: Sequence[float]) -> list[int]:
    """The smallest whole numbers with these proportions."""
    exact = [Fraction(repr(share)) for share in shares]
    whole = lcm(*(share.denominator for share in exact))
    weights = [int(share * whole) for share in exact]
    divisor = gcd(*weights)
    return [weight // divisor for weight in weights]


def check_layout(streams: Sequence[TrafficStream]) -> None:
    """Makes sure that the frames of all streams have the same headers, whatever their values.

    Raises:
        ValueError: If they do not.
    """
    first, *others = streams
    for other in others:
        if _layout(other.headers) != _layout(first.headers):
            raise ValueError(
                f"streams: {first.name} and {other.name} have different headers; give all streams "
                "of a profile the same kinds of headers (VLAN tags, MPLS labels, IPv4 or IPv6, UDP or TCP, "
                "tunnel): only their values may differ"
            )

    connecting = [
        one.name for one in streams if one.headers.tcp is not None and one.headers.tcp.connects
    ]
    if connecting:
        raise ValueError(
            f"streams: {connecting[0]} has 'connects', but streams cannot open connections: leave it out"
        )

    total = sum(stream.weight for stream in streams)
    frames = total * _rounds([stream.period for stream in streams], [one.weight for one in streams])
    if frames > LONGEST_ORDER:
        raise ValueError(
            f"streams: flows and sizes of all streams repeat after {frames} frames; the limit is {LONGEST_ORDER}. Use "
            "rounder shares, or numbers of flows that are powers of two"
        )


def sizes_of(streams: Sequence[TrafficStream]) -> dict[int, int]:
    """Sizes of the frames of all streams, with their weights."""
    whole = lcm(*(sum(stream.size_weights.values()) for stream in streams))
    weights: dict[int, int] = {}
    for stream in streams:
        each = stream.weight * whole // sum(stream.size_weights.values())
        for size, weight in stream.size_weights.items():
            weights[size] = weights.get(size, 0) + each * weight
    divisor = gcd(*weights.values())
    return {size: weight // divisor for size, weight in weights.items()}


def in_one_order(streams: Sequence[TrafficStream], specs: Sequence[FramesSpec]) -> FramesSpec:
    """The frames of streams, which are described separately, in their common order.

    Args:
        streams: The streams.
        specs: The frames of each, all with the sizes of all streams.
    """
    first = specs[0]
    weights = [stream.weight for stream in streams]
    rounds = _rounds([stream.period for stream in streams], weights)
    order = size_pattern(weights) * rounds
    sizes = [size for size, _ in first.sizes]
    frames = [
        [*_frames_of(stream, spec, rounds * stream.weight, sizes)]
        for stream, spec in zip(streams, specs, strict=True)
    ]
    # Table: the number of each frame among its stream's frames.
    numbers = []
    seen = [0] * len(streams)
    for stream in order:
        numbers.append(seen[stream])
        seen[stream] += 1

    fields = []
    for offset, width in _changing_places(specs):
        by_flow = [_values(spec, offset, width) for spec in specs]
        values = [
            by_flow[stream][frames[stream][number][0] % len(by_flow[stream])]
            for stream, number in zip(order, numbers, strict=True)
        ]
        least = min(values)
        fields.append(SteppingField(offset, width, least, len(order), values=tuple(values)))

    header = bytearray(bytes.fromhex(first.header))
    for each in fields:
        header[each.offset : each.offset + each.width] = bytes(each.width)
    # Record: the order, with streams and sizes given by their indexes.
    together = StreamOrder(
        names=tuple(stream.name for stream in streams),
        streams=tuple(order),
        sizes=tuple(
            frames[stream][number][1] for stream, number in zip(order, numbers, strict=True)
        ),
    )
    return replace(first, header=header.hex(), fields=tuple(fields), order=together)


def _layout(headers: InnerHeaders) -> tuple[Any, ...]:
    """The kinds of headers."""
    present = tuple(
        getattr(headers, name) is not None
        for name in ("dot1ad", "dot1q", "ipv4", "ipv6", "udp", "tcp", "ethernet")
        if hasattr(headers, name)
    )
    if not isinstance(headers, Headers):
        return present
    tunnel = headers.tunnel
    inner = () if tunnel is None else _layout(tunnel.inner)
    return (*present, len(headers.mpls), type(tunnel), inner, headers.protocol, headers.any_mac)


def _rounds(periods: Sequence[int], weights: Sequence[int]) -> int:
    """After how many rounds everything repeats."""
    return lcm(
        *(period // gcd(period, weight) for period, weight in zip(periods, weights, strict=True))
    )


def _frames_of(
    stream: TrafficStream, spec: FramesSpec, count: int, sizes: Sequence[int]
) -> list[tuple[int, int]]:
    """Flow and size of each of a stream's frames, as for a profile with this stream alone."""
    own = replace(spec, sizes=tuple(stream.size_weights.items()))
    places = [sizes.index(own.sizes[number][0]) for number in own.size_order]
    frames = []
    for number in range(count):
        place = number % own.period
        frames.append(((place + place // own.round) % own.flows, places[number % len(places)]))
    return frames


def _changing_places(specs: Sequence[FramesSpec]) -> list[tuple[int, int]]:
    """Starts and widths of fields that differ from stream to stream, or step in one of them."""
    stepping = dict.fromkeys((field.offset, field.width) for spec in specs for field in spec.fields)
    covered = {place for start, width in stepping for place in range(start, start + width)}
    headers = [bytes.fromhex(spec.header) for spec in specs]
    # Each IPv4 address is one field; everything else differs in words, which checksums are made of.
    addresses = {
        start + half: _IPV4_ADDRESSES // 2
        for start, end in specs[0].addresses
        if end - start == _IPV4_ADDRESSES
        for half in (0, _IPV4_ADDRESSES // 2)
    }

    places = [*stepping]
    start = MACS_BYTES
    while start < len(headers[0]):
        width = addresses.get(start, _WORD)
        parts = {header[start : start + width] for header in headers}
        if len(parts) > 1 and start not in covered:
            places.append((start, width))
        start += width
    return sorted(places)


def _values(spec: FramesSpec, offset: int, width: int) -> Sequence[int]:
    """The repeating values that a place takes in a stream's flows."""
    for field in spec.fields:
        if (field.offset, field.width) == (offset, width):
            return [field.first + step for step in field.steps]
    part = bytes.fromhex(spec.header)[offset : offset + width]
    return [int.from_bytes(part, "big")]
