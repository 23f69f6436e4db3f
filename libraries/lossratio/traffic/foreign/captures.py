"""Reads headers from captures: files in the format of libpcap."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from ipaddress import ip_address

from lossratio.traffic.foreign.packets import (
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
_VXLAN_PORT = 4789
_AFTER_MAC = {0x88A8: "Dot1AD", 0x8100: "Dot1Q", 0x8847: "MPLS", 0x0800: "IP", 0x86DD: "IPv6"}
_AFTER_IP = {6: "TCP", 17: "UDP"}


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
    try:
        while name is not None:
            layer, following = _LAYERS[name](frame, place)
            layers.append(layer)
            place += layer.length
            name = following
    except ForeignFieldError as error:
        raise error.at(error.what, number) from error
    except (struct.error, IndexError, ValueError) as error:
        raise ForeignFieldError("its length", "it ends within its headers", number) from error
    return Packet(tuple(layers), len(frame) - place)


def _after(kind: int, what: str) -> str:
    following = _AFTER_MAC.get(kind)
    if following is None:
        raise ForeignFieldError(what, f"what follows (0x{kind:04x}) is not supported")
    return following


def _ethernet(frame: bytes, place: int) -> tuple[Layer, str]:
    (kind,) = struct.unpack_from(">12xH", frame, place)
    return Layer("Ether", {}), _after(kind, "Ethernet")


def _tag(name: str, frame: bytes, place: int) -> tuple[Layer, str]:
    control, kind = struct.unpack_from(">HH", frame, place)
    return Layer(name, {"vlan": control & 0xFFF, "prio": control >> 13}), _after(kind, name)


def _label(frame: bytes, place: int) -> tuple[Layer, str]:
    (entry,) = struct.unpack_from(">I", frame, place)
    fields = {"label": entry >> 12, "cos": entry >> 9 & 7, "ttl": entry & 0xFF}
    if not entry >> 8 & 1:
        return Layer("MPLS", fields), "MPLS"
    version = frame[place + 4] >> 4
    return Layer("MPLS", fields), "IPv6" if version == 6 else "IP"


def _ipv4(frame: bytes, place: int) -> tuple[Layer, str | None]:
    first, service, fragment, ttl, protocol = struct.unpack_from(">BB4xHBB", frame, place)
    if first != 0x45:
        raise ForeignFieldError("IPv4", "options are not supported")
    if fragment & 0x3FFF:
        raise ForeignFieldError("IPv4", "fragments are not supported")
    fields = {
        "src": str(ip_address(frame[place + 12 : place + 16])),
        "dst": str(ip_address(frame[place + 16 : place + 20])),
        "tos": service,
        "ttl": ttl,
        "proto": protocol,
    }
    return Layer("IP", fields), _AFTER_IP.get(protocol)


def _ipv6(frame: bytes, place: int) -> tuple[Layer, str | None]:
    first, following, limit = struct.unpack_from(">I2xBB", frame, place)
    source = ip_address(frame[place + 8 : place + 24])
    destination = ip_address(frame[place + 24 : place + 40])
    fields = {
        "src": str(source),
        "dst": str(destination),
        "tc": first >> 20 & 0xFF,
        "hlim": limit,
        "nh": following,
    }
    return Layer("IPv6", fields), _AFTER_IP.get(following)


def _udp(frame: bytes, place: int) -> tuple[Layer, str | None]:
    source, destination = struct.unpack_from(">HH4x", frame, place)
    layer = Layer("UDP", {"sport": source, "dport": destination})
    return layer, "VXLAN" if destination == _VXLAN_PORT else None


def _tcp(frame: bytes, place: int) -> tuple[Layer, None]:
    source, destination, offset = struct.unpack_from(">HH8xB7x", frame, place)
    if offset >> 4 != 5:
        raise ForeignFieldError("TCP", "options are not supported")
    return Layer("TCP", {"sport": source, "dport": destination}), None


def _vxlan(frame: bytes, place: int) -> tuple[Layer, str]:
    _, number = struct.unpack_from(">II", frame, place)
    return Layer("VXLAN", {"vni": number >> 8}), "Ether"


_LAYERS = {
    "Ether": _ethernet,
    "Dot1AD": lambda frame, place: _tag("Dot1AD", frame, place),
    "Dot1Q": lambda frame, place: _tag("Dot1Q", frame, place),
    "MPLS": _label,
    "IP": _ipv4,
    "IPv6": _ipv6,
    "UDP": _udp,
    "TCP": _tcp,
    "VXLAN": _vxlan,
}
