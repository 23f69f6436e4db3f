"""Reads profiles of trafficgen: JSON files that describe streams."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lossratio.agent import FCS_BYTES
from lossratio.traffic.foreign.enclosed import run_enclosed
from lossratio.traffic.foreign.packets import (
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Packet,
    Steps,
    number_of,
)
from lossratio.yaml_file import lines_of

_FIRST_PORT = 32768
_USUAL = {
    "UDP": "Ether()/IP()/UDP(sport=32768, dport=53)",
    "TCP": "Ether()/IP()/TCP(sport=32768, dport=80)",
}
_REFUSED: Mapping[str, tuple[Any, str]] = {
    "offset": (0, "all streams begin together"),
    "duration": (None, "each stream is sent for the whole trial"),
    "repeat": (False, "each stream is sent for the whole trial"),
    "device_pairs": (None, "a profile is the same on all paths"),
    "latency_only": (False, "no stream is for latency alone"),
}
"""Unsupported fields, each with the value that changes nothing, and the reason."""
_NOT_OURS = "Name a file with a list 'streams', as trafficgen reads it"
_READ = ("flows", "frame_size", "flow_mods", "rate", "frame_type", "stream_types", "protocol")
_ALSO_READ = ("traffic_direction", "stream_id", "the_packet", "enabled")
_WITHOUT_DIFFERENCE = ("latency", "repeat_delay", "repeat_flows")
_KNOWN = frozenset((*_READ, *_ALSO_READ, *_WITHOUT_DIFFERENCE, *_REFUSED))
_SENT = frozenset(("measurement", "ddos"))
_ETHERNET = ("Ether",)
_IP = ("IP", "IPv6")
_PORTS = ("UDP", "TCP")
# Table: what each modification changes.
_MODS = {
    "use_src_mac_flows": (_ETHERNET, "src"),
    "use_dst_mac_flows": (_ETHERNET, "dst"),
    "use_src_ip_flows": (_IP, "src"),
    "use_dst_ip_flows": (_IP, "dst"),
    "use_src_port_flows": (_PORTS, "sport"),
    "use_dst_port_flows": (_PORTS, "dport"),
}


def read_trafficgen(text: str) -> ForeignProfile:
    """What a trafficgen profile describes; if a file has several profiles, the default one.

    Args:
        text: The file.

    Raises:
        ForeignFieldError: If something in it cannot be used here.
    """
    remarks: dict[str, None] = {}
    ways: tuple[list[ForeignStream], list[ForeignStream]] = ([], [])
    for number, (stream, lines) in enumerate(_streams(text)):
        where = f"streams[{number}]"
        if not stream.get("enabled", True):
            continue
        if not _SENT & set(stream.get("stream_types", ["measurement"])):
            remarks["Streams that only teach devices addresses are left out."] = None
            continue
        try:
            read = _stream(stream, where, lines.get(""), remarks)
        except ForeignFieldError as error:
            field = error.what.partition(f"{where}.")[2].partition(",")[0]
            raise error.at(error.what, lines.get(field, lines.get(""))) from error

        direction = stream.get("traffic_direction", "bidirectional")
        if direction != "revunidirectional":
            ways[0].append(read)
        if direction != "unidirectional":
            ways[1].append(read)

    eastward, westward = (tuple(way) for way in ways)
    if not eastward:
        problem = "the first port sends nothing that is measured"
        raise ForeignFieldError("streams", problem, 1, "Name a profile whose first port sends")
    return ForeignProfile(eastward, westward, tuple(remarks))


def _streams(text: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, int]]]:
    """The streams, each with the lines of its fields; the line of the stream itself has no name."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"it is not JSON: {error}"
        raise ForeignFieldError("the file", problem, error.lineno, _NOT_OURS) from error
    except (ValueError, RecursionError) as error:
        raise ForeignFieldError("the file", f"it is not JSON: {error}", 1, _NOT_OURS) from error

    profiles = content.get("profiles") if isinstance(content, dict) else None
    place: tuple[str | int, ...] = ("streams",)
    if isinstance(profiles, list):
        chosen = content.get("default_profile")
        named = {
            one.get("name"): number for number, one in enumerate(profiles) if isinstance(one, dict)
        }
        number = named.get(chosen, next(iter(named.values()), 0))
        content = profiles[number] if number < len(profiles) else {}
        place = ("profiles", number, "streams")
    streams = content.get("streams") if isinstance(content, dict) else None
    if not isinstance(streams, list) or not all(isinstance(one, dict) for one in streams):
        raise ForeignFieldError("streams", "the file has no list of streams", 1, _NOT_OURS)

    # JSON is YAML, whose reader knows lines.
    lines = lines_of(text.replace("\t", " "))
    for number, stream in enumerate(streams):
        own = {field: line for field in stream if (line := lines.get((*place, number, field)))}
        yield stream, {**own, "": lines.get((*place, number), 1)}


def _stream(
    stream: Mapping[str, Any], where: str, line: int | None, remarks: dict[str, None]
) -> ForeignStream:
    for name, value in stream.items():
        if name in _REFUSED and value != _REFUSED[name][0]:
            usual, problem = _REFUSED[name]
            way_out = f"Set it to {json.dumps(usual)} in a copy of the file"
            if usual is None:
                way_out = "Leave it out in a copy of the file"
            raise ForeignFieldError(f"{where}.{name}", problem, way_out=way_out)
        if name not in _KNOWN:
            raise ForeignFieldError(f"{where}.{name}", "the field is not known")
    if stream.get("frame_type", "generic") != "generic":
        problem = f"{stream['frame_type']!r} frames are not supported, only 'generic' ones"
        raise ForeignFieldError(f"{where}.frame_type", problem)

    size = _whole(stream, "frame_size", where)
    packet = _packet(stream, where)
    room = size - FCS_BYTES - len(packet)
    if room > 0:
        packet = Packet(packet.layers, packet.payload + room)
    rate = _whole(stream, "rate", where)
    if stream.get("latency", True):
        remarks["No frames are added for latency: each measurement of latency marks its own."] = (
            None
        )

    # Record: a stream.
    return ForeignStream(
        packet,
        steps=_steps(stream, packet, where),
        frames=float(rate),
        name=stream.get("stream_id") or None,
        line=line,
    )


def _whole(stream: Mapping[str, Any], name: str, where: str) -> int:
    value = stream.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ForeignFieldError(f"{where}.{name}", f"{value!r} is not a number of at least 1")
    return value


def _packet(stream: Mapping[str, Any], where: str) -> Packet:
    text = stream.get("the_packet")
    if text is None:
        protocol = stream.get("protocol", "UDP")
        if protocol not in _USUAL:
            raise ForeignFieldError(
                f"{where}.protocol", f"{protocol!r} is not supported: use UDP or TCP"
            )
        text = _USUAL[protocol]
    try:
        found = run_enclosed(str(text).removeprefix("scapy:"), is_file=False)
    except ForeignFieldError as error:
        raise error.at(f"{where}.the_packet, {error.what}", None) from error
    if not isinstance(found, Packet):
        raise ForeignFieldError(f"{where}.the_packet", "only packets of Scapy's layers can be read")
    # The layers' lines are lines of the text, not of the file.
    layers = [replace(layer, line=None) for layer in found.layers]
    return Packet(tuple(layers), found.payload)


def _steps(stream: Mapping[str, Any], packet: Packet, where: str) -> dict[tuple[int, str], Steps]:
    """The fields that are different in each flow. Each takes as many values as there are flows."""
    flows = _whole(stream, "flows", where)
    steps = {}
    for mod in _mods(str(stream.get("flow_mods", "")), where):
        if mod == "use_protocol_flows":
            continue
        if mod not in _MODS:
            raise ForeignFieldError(f"{where}.flow_mods", f"{mod} is not known")

        kinds, name = _MODS[mod]
        for place, layer in enumerate(packet.layers):
            if layer.name in kinds:
                begin = number_of(layer.fields.get(name, 1))
                steps[place, name] = Steps(range(begin, begin + flows))
    return steps


def _mods(text: str, where: str) -> Iterator[str]:
    try:
        call = ast.parse(text.removeprefix("function:"), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ForeignFieldError(f"{where}.flow_mods", "it is not a call of a function") from error
    for keyword in call.keywords if isinstance(call, ast.Call) else ():
        if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            yield str(keyword.arg)
