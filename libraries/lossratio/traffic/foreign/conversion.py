"""Makes traffic profiles from what other generators' profiles describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from pydantic import ValidationError

from lossratio.agent import FCS_BYTES, TAG_BYTES
from lossratio.traffic.foreign.packets import (
    LAYERS,
    MOST_LISTED,
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Layer,
    Steps,
    number_of,
)
from lossratio.traffic.frame_sizes import MOST_SIZES
from lossratio.traffic.headers import LARGEST_FRAME, SMALLEST_FRAME, SMALLEST_IPV6_FRAME, TCP_FLAGS
from lossratio.traffic.profile import TrafficProfile
from lossratio.traffic.streams import LONGEST_ROUND, StreamError, whole_shares
from lossratio.values import L1_OVERHEAD, in_words

_FORMAT = "lossratio-traffic-profile/1"
_PARTS = 1000
_NUMBER_MASK = 0xFFFF
"""The part of an address that is its number in the benchmarking network."""
_MOST_NUMBERS = 1 << 15
"""The maximum number of consecutive values that a field takes."""
_MOST_MAC_NUMBERS = 1 << 20
_ONE_PORT = "Make a copy of the file in which the second port sends nothing, and another one for its streams"
_TEXT = re.compile(r"[^A-Za-z0-9_.-]+")

_USUAL_PORTS = {"UDP": (53, 53), "TCP": (20, 80)}
"""Source and destination port of Scapy's layers, if none is given."""
_USUAL_FLAGS = "S"
"""The flags of Scapy's layer, if none are given."""


@dataclass(frozen=True)
class ConvertedProfile:
    """A traffic profile that was made from another generator's."""

    fields: Mapping[str, Any]
    """The profile, as in its file."""
    frame_size: int | str | None
    """The frame size to measure with; None: each stream has its own."""
    remarks: tuple[str, ...]
    """The differences from the original, in sentences."""


def convert(profile: ForeignProfile, name: str, description: str) -> ConvertedProfile:
    """Makes a traffic profile from another generator's.

    Args:
        profile: The contents of that profile.
        name: The name of the traffic profile.
        description: Its description.

    Raises:
        ForeignFieldError: If something in it cannot be used here.
    """
    remarks = dict.fromkeys(profile.remarks)
    eastward = _Way(profile.eastward, remarks)
    fields: dict[str, Any] = {"format": _FORMAT, "name": name, "description": description}
    fields |= eastward.headers[0]
    fields |= eastward.mixes
    frame_size = eastward.sizes[0]
    if not profile.westward:
        fields["bidirectional"] = False
    elif profile.westward != profile.eastward:
        westward = _Way(profile.westward, remarks)
        if westward.described != eastward.described:
            fields["reverse"] = _reverse(eastward, westward)

    if len(eastward.headers) > 1:
        fields["streams"] = list(eastward.streams())
    _check(fields, frame_size, profile.eastward)
    return ConvertedProfile(fields, None if "streams" in fields else frame_size, tuple(remarks))


class _Way:
    """The streams of a direction, as in a profile's file."""

    def __init__(self, streams: Sequence[ForeignStream], remarks: dict[str, None]) -> None:
        self.line = streams[0].line
        """Where its first stream is described."""
        self._streams = streams
        self.headers = [_headers(stream, remarks) for stream in streams]
        """The headers of each stream."""
        self.mixes: dict[str, Any] = {}
        """The profile's field with mixes of sizes; empty: there are none."""
        self.sizes = [self._size(stream, remarks) for stream in streams]
        """The frame size of each stream, or the name of its mix."""
        self._frames = _proportions(streams, remarks)

    @property
    def described(self) -> object:
        """What has to be equal in both directions if a profile says nothing about the other direction."""
        return self.headers, self.mixes, self.sizes, self._frames

    def streams(self) -> Iterator[dict[str, Any]]:
        """Its streams."""
        names = _names(self._streams)
        rows = zip(names, self._frames, self.sizes, self.headers, strict=True)
        for name, frames, size, headers in rows:
            described = {"name": name, "share": frames, "frame_size": size}
            if headers != self.headers[0]:
                described["headers"] = headers
            yield described

    def _size(self, stream: ForeignStream, remarks: dict[str, None]) -> int | str:
        names = [layer.name for layer in stream.packet.layers]
        least = SMALLEST_IPV6_FRAME if "IPv6" in names else SMALLEST_FRAME
        headers = sum(layer.length for layer in stream.packet.layers)
        least = max(least, headers + TAG_BYTES + FCS_BYTES)
        weights: dict[int, int] = {}
        for length, weight in _some(stream.weights, remarks).items():
            size = max(least, min(LARGEST_FRAME, length + FCS_BYTES))
            weights[size] = weights.get(size, 0) + weight
            if size != length + FCS_BYTES:
                limit = "least" if size == least else "most"
                remarks[
                    f"Frames have at {limit} {size} bytes, including the frame check sequence."
                ] = None

        if len(weights) == 1:
            return next(iter(weights))
        divisor = gcd(*weights.values())
        mix = f"sizes{len(self.mixes.get('mixes', {})) + 1}"
        self.mixes.setdefault("mixes", {})[mix] = {
            size: one // divisor for size, one in weights.items()
        }
        return mix


def _some(weights: Mapping[int, int], remarks: dict[str, None]) -> Mapping[int, int]:
    """Lengths with their weights, or as many as a mix can have, at equal distances from the shortest to the longest."""
    if len(weights) <= MOST_SIZES:
        return weights
    if len(set(weights.values())) > 1:
        problem = f"frames have {len(weights)} sizes with shares of their own, but at most {MOST_SIZES} are possible"
        raise ForeignFieldError("the sizes", problem)
    first, last = min(weights), max(weights)
    remarks[f"Of {len(weights)} sizes, {MOST_SIZES} at equal intervals are sent."] = None
    gaps = MOST_SIZES - 1
    return {first + (last - first) * number // gaps: 1 for number in range(MOST_SIZES)}


def _reverse(eastward: _Way, westward: _Way) -> dict[str, Any]:
    has_streams = len(eastward.headers) > 1 or len(westward.headers) > 1
    if has_streams or westward.mixes not in ({}, eastward.mixes):
        problem = "if there are several streams, both directions must have the same ones"
        raise ForeignFieldError("the second port", problem, westward.line, _ONE_PORT)
    reverse: dict[str, Any] = {}
    if westward.headers != eastward.headers:
        reverse["headers"] = westward.headers[0]
    if westward.sizes != eastward.sizes:
        reverse["frame_size"] = westward.sizes[0]
    return reverse


def _check(
    fields: Mapping[str, Any], frame_size: int | str, streams: Sequence[ForeignStream]
) -> None:
    try:
        TrafficProfile.model_validate({**fields, "frame_size": frame_size})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "the profile"
        cause = problem.get("ctx", {}).get("error")
        number = 0
        if isinstance(cause, StreamError):
            number = [stream["name"] for stream in fields["streams"]].index(cause.name)
        raise ForeignFieldError(where, in_words(problem), streams[number].line) from error


def _names(streams: Sequence[ForeignStream]) -> list[str]:
    """A name for each stream: its own name, if no other stream has it."""
    own = [_TEXT.sub("-", stream.name or "") for stream in streams]
    names = []
    for number, name in enumerate(own, 1):
        usable = name[:1].isalpha() and own.count(name) == 1
        names.append(name[:64] if usable else f"stream{number}")
    return names


def _proportions(streams: Sequence[ForeignStream], remarks: dict[str, None]) -> list[int]:
    """The share of each stream, in whole numbers whose sum is not too large."""
    if len({stream.is_of_bits for stream in streams}) > 1:
        problem = "some streams have a frame rate, and others a bit rate"
        raise ForeignFieldError("mode", problem, streams[0].line)
    if not streams[0].is_of_bits:
        frames = [stream.frames for stream in streams]
        parts = whole_shares(frames)
        if sum(parts) <= LONGEST_ROUND:
            return parts
    else:
        frames = [
            stream.frames / (stream.average_length + FCS_BYTES + L1_OVERHEAD) for stream in streams
        ]

    shares = [round(_PARTS * one / sum(frames)) for one in frames]
    if min(shares) < 1:
        problem = f"a stream has less than one frame in {2 * _PARTS} frames"
        raise ForeignFieldError("the rate", problem, streams[0].line)
    if len(streams) > 1:
        remarks[f"Shares of the frames are rounded to {_PARTS} parts."] = None
    return shares


def _headers(stream: ForeignStream, remarks: dict[str, None]) -> dict[str, Any]:
    """The headers of a stream, as in a profile's file."""
    try:
        return _with_inner(list(enumerate(stream.packet.layers)), stream, remarks)
    except ForeignFieldError as error:
        if error.line is not None:
            raise
        raise error.at(error.what, stream.line) from error


def _with_inner(
    layers: Sequence[tuple[int, Layer]], stream: ForeignStream, remarks: dict[str, None]
) -> dict[str, Any]:
    """Headers from some layer on, with those in a tunnel."""
    headers: dict[str, Any] = {}
    for number, (place, layer) in enumerate(layers):
        _refuse_others(layer)
        if layer.name == "VXLAN":
            outer = headers.pop("udp")
            headers["vxlan"] = {
                "vni": layer.fields.get("vni", 0),
                "source_port": outer["source_port"],
                "inner": _with_inner(layers[number + 1 :], stream, remarks),
            }
            return headers
        described = _DESCRIBE[layer.name](layer, _Ranges(stream, place, layer, remarks), remarks)
        if "dot1q" in headers.keys() & described.keys() and "dot1ad" not in headers:
            remarks["The outer one of two VLAN tags is a service tag (IEEE 802.1ad)."] = None
            headers["dot1ad"] = headers.pop("dot1q")
        for name, value in described.items():
            if name in headers and name != "mpls":
                problem = f"frames can have only one header of the kind {name}"
                raise ForeignFieldError(layer.name, problem, layer.line)
            headers[name] = [*headers.get(name, ()), *value] if name == "mpls" else value

    if "ipv4" not in headers and "ipv6" not in headers:
        raise ForeignFieldError("the packet", "it has no IP header", stream.line)
    if "udp" in headers or "tcp" in headers:
        # The header implies the protocol number.
        headers.get("ipv4", {}).pop("protocol", None)
        headers.get("ipv6", {}).pop("next_header", None)
    return headers


def _refuse_others(layer: Layer) -> None:
    _, known = LAYERS[layer.name]
    for name in layer.fields:
        if name not in known:
            raise layer.refused(name, f"the field cannot be set, only {', '.join(sorted(known))}")


class _Ranges:
    """The ranges of a layer's fields."""

    def __init__(
        self, stream: ForeignStream, place: int, layer: Layer, remarks: dict[str, None]
    ) -> None:
        self._stream = stream
        self._place = place
        self._layer = layer
        self._remarks = remarks

    def macs(self, field: str) -> dict[str, Any] | None:
        """The range of a field with a MAC address, from 1 on; None: it is always the same."""
        steps = self._stream.steps.get((self._place, field))
        if steps is None:
            return None
        lowest = min(steps.numbers[0], steps.numbers[-1], *steps.numbers[:MOST_LISTED])
        return self._range(steps, 1 - lowest, _MOST_MAC_NUMBERS - 1)

    def port(self, field: str, usual: int) -> dict[str, Any]:
        """The range of a field with a port."""
        given = self._layer.fields.get(field, usual)
        if not isinstance(given, int):
            raise self._layer.refused(field, f"{given!r} is not a port")
        fixed = Steps(range(given, given + 1))
        return self._range(self._stream.steps.get((self._place, field), fixed))

    def address(self, field: str) -> dict[str, Any]:
        """The range of a field with an address: numbers within a side's network."""
        try:
            given = number_of(self._layer.fields.get(field, 1))
        except ValueError as error:
            problem = f"{self._layer.fields[field]!r} is not a single address"
            raise self._layer.refused(field, problem) from error
        if not given & _NUMBER_MASK:
            self._remarks["Addresses that end in 0.0 are changed to end in 0.1."] = None
            given += 1
        fixed = Steps(range(given, given + 1))
        return self._range(self._stream.steps.get((self._place, field), fixed), 0, _NUMBER_MASK)

    def _range(self, steps: Steps, added: int = 0, mask: int = -1) -> dict[str, Any]:
        """A range as in a profile's file, of numbers to which some number is added, and of which some bits are kept."""
        numbers = steps.numbers
        is_consecutive = isinstance(numbers, range) and abs(numbers.step) == 1
        most = _MOST_NUMBERS if is_consecutive else MOST_LISTED
        if len(numbers) > most:
            self._remarks[f"Only the first {most} values of a field are sent."] = None
            numbers = numbers[:most]
        if not is_consecutive and len(numbers) > 1:
            values = [number + added & mask for number in numbers]
            return {"first": min(values), "values": values}

        first = min(numbers[0], numbers[-1]) + added & mask
        described: dict[str, Any] = {"first": first}
        if len(numbers) > 1:
            described["count"] = len(numbers)
        if steps.is_random:
            described["order"] = "random"
        return described


def _ethernet(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    stepping = {
        name: stepped
        for name, field in (("source", "src"), ("destination", "dst"))
        if (stepped := ranges.macs(field)) is not None
    }
    if layer.fields.keys() & {"src", "dst"} or stepping:
        remarks["MAC addresses are those of the ports, or of hosts in the test network."] = None
    return {"ethernet": stepping} if stepping else {}


def _tag(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    tag = {"id": layer.fields.get("vlan", 1)}
    if layer.fields.get("prio"):
        tag["priority"] = layer.fields["prio"]
    return {layer.name.lower(): tag}


def _mpls(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    names = {"label": "label", "cos": "traffic_class", "ttl": "ttl"}
    given = {names[name]: value for name, value in layer.fields.items() if name in names}
    return {"mpls": [{"label": 3, **given}]}


def _ip(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    """The IP header, of either version."""
    is_ipv4 = layer.name == "IP"
    service, limit, protocol = ("tos", "ttl", "proto") if is_ipv4 else ("tc", "hlim", "nh")
    header: dict[str, Any] = {"source": ranges.address("src"), "destination": ranges.address("dst")}
    if limit in layer.fields:
        header["ttl" if is_ipv4 else "hop_limit"] = layer.fields[limit]
    marks = layer.fields.get(service, 0)
    if not isinstance(marks, int) or marks & 3:
        raise layer.refused(service, f"{marks!r} has congestion marks (ECN), which cannot be set")
    if marks:
        header["dscp"] = marks >> 2
    if layer.options:
        header["options"] = layer.options.hex()

    usual = 0 if is_ipv4 else 59
    header["protocol" if is_ipv4 else "next_header"] = layer.fields.get(protocol, usual)
    if {"src", "dst"} & layer.fields.keys():
        remarks[
            "Addresses are those of the benchmarking networks; only the last two bytes stay as they are."
        ] = None
    return {"ipv4" if is_ipv4 else "ipv6": header}


def _ports(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    source, destination = _USUAL_PORTS[layer.name]
    header: dict[str, Any] = {}
    if layer.name == "TCP":
        letters = _letters(layer)
        if letters != "A":
            header["flags"] = letters
        remarks["TCP segments belong to no connection."] = None

    if layer.fields.get("chksum") is not None:
        if layer.fields["chksum"] != 0:
            raise layer.refused("chksum", "checksums are always correct")
        remarks["UDP frames have checksums, unlike those of the other profile."] = None

    header["source_port"] = ranges.port("sport", source)
    header["destination_port"] = ranges.port("dport", destination)
    return {layer.name.lower(): header}


def _letters(layer: Layer) -> str:
    """The initial letters of the flags of TCP, as in a profile's file."""
    given = layer.fields.get("flags", _USUAL_FLAGS)
    if isinstance(given, int):
        given = "".join(letter for place, letter in enumerate(TCP_FLAGS) if given >> place & 1)
    if not isinstance(given, str) or not set(given) <= set(TCP_FLAGS) - {"U"}:
        raise layer.refused("flags", f"{given!r} cannot be set")
    return given or "none"


_DESCRIBE = {
    "Ether": _ethernet,
    "Dot1AD": _tag,
    "Dot1Q": _tag,
    "MPLS": _mpls,
    "IP": _ip,
    "IPv6": _ip,
    "UDP": _ports,
    "TCP": _ports,
}
