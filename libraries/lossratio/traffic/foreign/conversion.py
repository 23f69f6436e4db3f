"""Makes traffic profiles from what other generators' profiles describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_address
from math import gcd, lcm
from typing import Any

from pydantic import ValidationError

from lossratio.agent import FCS_BYTES
from lossratio.traffic.foreign.packets import (
    LAYERS,
    STEPPING,
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Layer,
    Steps,
)
from lossratio.traffic.headers import SMALLEST_FRAME, SMALLEST_IPV6_FRAME
from lossratio.traffic.profile import TrafficProfile
from lossratio.traffic.streams import LONGEST_ROUND, StreamError
from lossratio.units import L1_OVERHEAD
from lossratio.wrong_values import in_words

_FORMAT = "lossratio-traffic-profile/1"
_PARTS = 1000
_NUMBERS = {"IP": 0xFFFF, "IPv6": 0xFFFFFFFF, "Ether": 0xFFFFF}
"""The part of an address that is its number in the benchmarking network."""
_ONE_PORT = "Make a copy of the file in which the second port sends nothing, and another one for its streams"
_TEXT = re.compile(r"[^A-Za-z0-9_.-]+")

_USUAL_PORTS = {"UDP": (53, 53), "TCP": (20, 80)}
"""Source and destination port of Scapy's layers, if none is given."""


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
        self._streams = streams
        self.headers = [_headers(stream, remarks) for stream in streams]
        """The headers of each stream."""
        self.mixes: dict[str, Any] = {}
        """The profile's field with mixes of sizes; empty: there are none."""
        self.sizes = [self._size(stream, remarks) for stream in streams]
        """The frame size of each stream, or the name of its mix."""
        self._frames = _proportions(streams, remarks)

    @property
    def line(self) -> int | None:
        """Where its first stream is described."""
        return self._streams[0].line

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
        weights: dict[int, int] = {}
        for length, weight in (stream.sizes or {len(stream.packet): 1}).items():
            size = max(least, length + FCS_BYTES)
            weights[size] = weights.get(size, 0) + weight
            if size > length + FCS_BYTES:
                remarks[f"Frames have at least {least} bytes, with the frame check sequence."] = (
                    None
                )

        if len(weights) == 1:
            return next(iter(weights))
        divisor = gcd(*weights.values())
        mix = f"sizes{len(self.mixes.get('mixes', {})) + 1}"
        self.mixes.setdefault("mixes", {})[mix] = {
            size: one // divisor for size, one in weights.items()
        }
        return mix


def _reverse(eastward: _Way, westward: _Way) -> dict[str, Any]:
    if len(eastward.headers) > 1 or len(westward.headers) > 1 or westward.mixes:
        problem = "several streams have to be the same in both directions"
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
        exact = [Fraction(repr(one)) for one in frames]
        whole = lcm(*(one.denominator for one in exact))
        parts = [int(one * whole) for one in exact]
        divisor = gcd(*parts)
        if sum(parts) <= LONGEST_ROUND * divisor:
            return [part // divisor for part in parts]
    else:
        frames = [
            stream.frames / (len(stream.packet) + FCS_BYTES + L1_OVERHEAD) for stream in streams
        ]

    shares = [round(_PARTS * one / sum(frames)) for one in frames]
    if min(shares) < 1:
        problem = f"a stream has less than 1 of {2 * _PARTS} frames"
        raise ForeignFieldError("the rate", problem, streams[0].line)
    if len(streams) > 1:
        remarks[f"Shares of the frames are rounded to {_PARTS} parts."] = None
    return shares


def _headers(stream: ForeignStream, remarks: dict[str, None]) -> dict[str, Any]:
    """The headers of a stream, as in a profile's file."""
    try:
        return _described_headers(stream, remarks)
    except ForeignFieldError as error:
        if error.line is not None:
            raise
        raise error.at(error.what, stream.line) from error


def _described_headers(stream: ForeignStream, remarks: dict[str, None]) -> dict[str, Any]:
    layers = list(enumerate(stream.packet.layers))
    for place, field in stream.steps:
        layer = stream.packet.layers[place]
        if field not in STEPPING:
            problem = "only addresses and ports can be different in each frame"
            raise ForeignFieldError(f"{layer.name}.{field}", problem, layer.line)
    return _with_inner(layers, stream, remarks)


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
        described = _DESCRIBE[layer.name](layer, _Ranges(stream, place, layer), remarks)
        for name, value in described.items():
            if name in headers and name != "mpls":
                problem = f"frames have one header of this kind, not two ({name})"
                raise ForeignFieldError(layer.name, problem, layer.line)
            headers[name] = [*headers.get(name, ()), *value] if name == "mpls" else value

    if "ipv4" not in headers and "ipv6" not in headers:
        raise ForeignFieldError("the packet", "it has no IP header", stream.line)
    _without_protocol(headers)
    return headers


def _without_protocol(headers: dict[str, Any]) -> None:
    """Leaves out the protocol number if a header implies it."""
    if "udp" in headers or "tcp" in headers:
        headers.get("ipv4", {}).pop("protocol", None)
        headers.get("ipv6", {}).pop("next_header", None)


def _refuse_others(layer: Layer) -> None:
    _, known = LAYERS[layer.name]
    for name in layer.fields:
        if name not in known:
            problem = f"the field cannot be set, only {', '.join(sorted(known))}"
            raise ForeignFieldError(f"{layer.name}.{name}", problem, layer.line)


class _Ranges:
    """The ranges of a layer's fields."""

    def __init__(self, stream: ForeignStream, place: int, layer: Layer) -> None:
        self._stream = stream
        self._place = place
        self._layer = layer

    def steps(self, field: str) -> Steps | None:
        """The steps of a field; None: it is always the same."""
        return self._stream.steps.get((self._place, field))

    def port(self, field: str, usual: int) -> dict[str, Any]:
        """The range of a field with a port."""
        given = self._layer.fields.get(field, usual)
        if not isinstance(given, int):
            name = f"{self._layer.name}.{field}"
            raise ForeignFieldError(name, f"{given!r} is not a port", self._layer.line)
        return _range(self.steps(field) or Steps(given, 1))

    def address(self, field: str) -> dict[str, Any]:
        """The range of a field with an address: numbers within a side's network."""
        numbers = _NUMBERS[self._layer.name]
        steps = self.steps(field)
        first = self._address(field) if steps is None or steps.first <= 1 else steps.first
        count = 1 if steps is None else steps.count
        is_random = steps is not None and steps.is_random
        return _range(Steps(first & numbers, count, is_random))

    def _address(self, field: str) -> int:
        given = self._layer.fields.get(field)
        if given is None:
            return 1
        name = f"{self._layer.name}.{field}"
        try:
            return int(ip_address(given))
        except ValueError as error:
            problem = f"{given!r} is not a single address"
            raise ForeignFieldError(name, problem, self._layer.line) from error


def _range(steps: Steps) -> dict[str, Any]:
    described: dict[str, Any] = {"first": steps.first}
    if steps.count > 1:
        described["count"] = steps.count
    if steps.is_random:
        described["order"] = "random"
    return described


def _ethernet(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    stepping = {
        name: _range(Steps(1, steps.count, steps.is_random))
        for name, field in (("source", "src"), ("destination", "dst"))
        if (steps := ranges.steps(field)) is not None
    }
    if layer.fields.keys() & {"src", "dst"} or stepping:
        remarks["MAC addresses are those of the ports, or of hosts in the test network."] = None
    return {"ethernet": stepping} if stepping else {}


def _tag(name: str, layer: Layer) -> dict[str, Any]:
    tag = {"id": layer.fields.get("vlan", 1)}
    if layer.fields.get("prio"):
        tag["priority"] = layer.fields["prio"]
    return {name: tag}


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
        problem = f"{marks!r} has congestion marks (ECN), which cannot be set"
        raise ForeignFieldError(f"{layer.name}.{service}", problem, layer.line)
    if marks:
        header["dscp"] = marks >> 2

    usual = 0 if is_ipv4 else 59
    header["protocol" if is_ipv4 else "next_header"] = layer.fields.get(protocol, usual)
    if {"src", "dst"} & layer.fields.keys():
        remarks[
            "Addresses are those of the benchmarking networks; only the last two bytes stay as they are."
        ] = None
    return {"ipv4" if is_ipv4 else "ipv6": header}


def _ports(layer: Layer, ranges: _Ranges, remarks: dict[str, None]) -> dict[str, Any]:
    source, destination = _USUAL_PORTS[layer.name]
    if layer.name == "TCP":
        if layer.fields.get("flags", "A") not in ("A", 16):
            problem = f"{layer.fields['flags']!r} cannot be set: segments are acknowledgements"
            raise ForeignFieldError("TCP.flags", problem, layer.line)
        if "flags" not in layer.fields:
            remarks["TCP segments are acknowledgements, which belong to no connection."] = None

    if layer.fields.get("chksum") is not None:
        if layer.fields["chksum"] != 0:
            raise ForeignFieldError("UDP.chksum", "checksums are always correct", layer.line)
        remarks["UDP has checksums, where the other profile has none."] = None

    header = {
        "source_port": ranges.port("sport", source),
        "destination_port": ranges.port("dport", destination),
    }
    return {layer.name.lower(): header}


_DESCRIBE = {
    "Ether": _ethernet,
    "Dot1AD": lambda layer, ranges, remarks: _tag("dot1ad", layer),
    "Dot1Q": lambda layer, ranges, remarks: _tag("dot1q", layer),
    "MPLS": _mpls,
    "IP": _ip,
    "IPv6": _ip,
    "UDP": _ports,
    "TCP": _ports,
}
