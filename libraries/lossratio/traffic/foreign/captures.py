"""Reads headers from captures: files in the format of libpcap."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping

from lossratio.agent import ETHERNET, IPV4, SERVICE_TAG, TCP, VLAN, Header, headers_of
from lossratio.traffic.foreign.packets import (
    LAYERS,
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Layer,
    Packet,
)

_GLOBAL_BYTES = 24
_RECORD_BYTES = 16
_ETHERNET = 1
_MAGIC = {
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
    b"\x4d\x3c\xb2\xa1": "<",
}
"""The first bytes of captures, with microseconds and nanoseconds, each with its byte order."""
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_NAMES = {header: name for name, (header, _) in LAYERS.items()}
# Table: the fields whose other values are not supported.
_SUPPORTED: Mapping[Header, tuple[tuple[str, int, str], ...]] = {
    IPV4: (
        ("version", 4, "other versions"),
        ("header length", 5, "options"),
        ("more fragments", 0, "fragments"),
        ("fragment offset", 0, "fragments"),
    ),
    TCP: (("data offset", 5, "options"),),
}
# Table: the fields of each layer that are kept.
_READ = {
    "Dot1AD": ("vlan", "prio"),
    "Dot1Q": ("vlan", "prio"),
    "MPLS": ("label", "cos", "ttl"),
    "IP": ("src", "dst", "tos", "ttl", "proto"),
    "IPv6": ("src", "dst", "tc", "hlim", "nh"),
    "UDP": ("sport", "dport"),
    "TCP": ("sport", "dport", "flags"),
    "VXLAN": ("vni",),
}


def read_capture(content: bytes) -> ForeignProfile:
    """The frames of a capture, with a stream for each kind of frame, from the first port to the second.

    Args:
        content: The file.

    Raises:
        ForeignFieldError: If it is not a capture of Ethernet frames, or some of its frames cannot be used here.
    """
    headers: dict[object, Packet] = {}
    sizes: dict[object, Counter[int]] = {}
    numbers: dict[object, int] = {}
    for number, frame in enumerate(_frames(content), 1):
        packet = _packet(frame, number)
        key = tuple((layer.name, tuple(layer.fields.items())) for layer in packet.layers)
        headers.setdefault(key, packet)
        numbers.setdefault(key, number)
        sizes.setdefault(key, Counter())[len(packet)] += 1

    if not headers:
        way_out = "Capture the frames that are to be sent"
        raise ForeignFieldError("the capture", "it has no frames", way_out=way_out)
    streams = [
        ForeignStream(packet, sizes=sizes[key], frames=float(sizes[key].total()), line=numbers[key])
        for key, packet in headers.items()
    ]
    return ForeignProfile(tuple(streams), ())


def _frames(content: bytes) -> Iterator[bytes]:
    if content[:4] == _PCAPNG:
        way_out = "Convert it, e.g. with editcap -F pcap IN OUT"
        raise ForeignFieldError("the capture", "it is in the format pcapng", way_out=way_out)
    order = _MAGIC.get(content[:4])
    if order is None or len(content) < _GLOBAL_BYTES:
        way_out = "Name a capture, e.g. one that tcpdump -w has written"
        raise ForeignFieldError("the capture", "it is not in a format of libpcap", way_out=way_out)
    (link,) = struct.unpack_from(f"{order}I", content, _GLOBAL_BYTES - 4)
    if link != _ETHERNET:
        problem = f"it has no Ethernet frames (link type {link})"
        way_out = "Capture on an Ethernet interface"
        raise ForeignFieldError("the capture", problem, way_out=way_out)

    place = _GLOBAL_BYTES
    number = 0
    while place + _RECORD_BYTES <= len(content):
        captured, length = struct.unpack_from(f"{order}8xII", content, place)
        place += _RECORD_BYTES
        number += 1
        if captured < length or place + captured > len(content):
            way_out = "Capture whole frames, e.g. with tcpdump -s 0"
            raise ForeignFieldError("its length", "it was cut short", number, way_out)
        yield content[place : place + captured]
        place += captured


def _packet(frame: bytes, number: int) -> Packet:
    parts = list(headers_of(frame))
    layers = [
        _layer(part.header, frame[: part.place], frame[part.place :], number) for part in parts
    ]
    last, _, end = parts[-1]
    if last in (ETHERNET, VLAN):
        what = "Ethernet" if last is ETHERNET else layers[-1].name
        kind = frame[end - 2 : end].hex()
        raise ForeignFieldError(
            what, f"the protocol that follows (EtherType 0x{kind}) is not supported", number
        )
    return Packet(tuple(layers), len(frame) - end)


def _layer(header: Header, before: bytes, data: bytes, number: int) -> Layer:
    """The layer of a header, from the frame in front of it, and the frame that begins with it."""
    if len(data) < header.length:
        raise ForeignFieldError("its length", "it ends within its headers", number)
    for field, supported, what in _SUPPORTED.get(header, ()):
        if header.field(field).value(data) != supported:
            raise ForeignFieldError(header.name, f"{what} are not supported", number)

    name = _NAMES[header]
    if header is VLAN and before.endswith(SERVICE_TAG.to_bytes(2, "big")):
        name = "Dot1AD"
    _, names = LAYERS[name]
    fields = {}
    for each in _READ.get(name, ()):
        known = header.field(names[each])
        fields[each] = known.notation.write(known.value(data))
    return Layer(name, fields)
