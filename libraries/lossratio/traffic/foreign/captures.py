"""Reads headers from captures: files in the format of libpcap."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping

from lossratio.agent import ETHERNET, IPV4, IPV6, MPLS, TCP, UDP, VLAN, VXLAN
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
_AFTER_MAC = {0x88A8: "Dot1AD", 0x8100: "Dot1Q", 0x8847: "MPLS", 0x0800: "IP", 0x86DD: "IPv6"}
_AFTER_IP = {6: "TCP", 17: "UDP"}
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
        raise ForeignFieldError("the capture", "it is in no format of libpcap", way_out=way_out)
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
            raise ForeignFieldError("its length", "it is not whole", number, way_out)
        yield content[place : place + captured]
        place += captured


def _packet(frame: bytes, number: int) -> Packet:
    layers: list[Layer] = []
    place = 0
    name: str | None = "Ether"
    while name is not None:
        header, names = LAYERS[name]
        if len(frame) < place + header.length:
            raise ForeignFieldError("its length", "it ends within its headers", number)
        values = header.values(frame[place:])
        fields = {
            each: header.field(names[each]).notation.write(values[names[each]])
            for each in _READ.get(name, ())
        }
        layers.append(Layer(name, fields))

        place += header.length
        try:
            name = _following(name, values, frame[place : place + 1])
        except ForeignFieldError as error:
            raise error.at(error.what, number) from error
    return Packet(tuple(layers), len(frame) - place)


def _following(name: str, values: Mapping[str, int], rest: bytes) -> str | None:
    """The layer after one, with its fields and the first byte behind it; None: there is none."""
    header, _ = LAYERS[name]
    if header in (ETHERNET, VLAN):
        kind = values["ethertype"]
        if kind not in _AFTER_MAC:
            what = "Ethernet" if header is ETHERNET else name
            raise ForeignFieldError(what, f"what follows (0x{kind:04x}) is not supported")
        return _AFTER_MAC[kind]

    if header is MPLS:
        if not values["bottom of stack"]:
            return "MPLS"
        return "IPv6" if rest >= b"\x60" else "IP"
    if header is IPV4:
        if (values["version"], values["header length"]) != (4, 5):
            raise ForeignFieldError("IPv4", "options are not supported")
        if values["more fragments"] or values["fragment offset"]:
            raise ForeignFieldError("IPv4", "fragments are not supported")
        return _AFTER_IP.get(values["protocol"])

    if header is IPV6:
        return _AFTER_IP.get(values["next header"])
    if header is TCP and values["data offset"] != 5:
        raise ForeignFieldError("TCP", "options are not supported")
    if header is UDP and values["destination port"] == VXLAN.number:
        return "VXLAN"
    return "Ether" if header is VXLAN else None
