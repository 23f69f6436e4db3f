"""Headers of the Open Traffic Generator's models, and the bytes of frames: one table, read in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from lossratio.errors import TrafficError
from lossratio.traffic.agent.core.configuration import ChecksumField, FramesSpec, LengthField, SteppingField
from lossratio.traffic.configuration import FrameHeaders

MOST_LISTED = 1 << 16
"""The most values of a field that do not count up one by one."""

MOST_COUNTED = 1 << 20
"""The most values of one that counts up."""

_MAC_BYTES = 6
_WIDEST = 8
_SERVICE_TAG = 0x88A8
_LISTED_BITS = 32


@dataclass(frozen=True)
class Notation:
    """How the models write a value."""

    read: Callable[[Any], int]
    """From a model's value to the number; a ValueError if it is none."""
    write: Callable[[int], Any]
    """From the number to the model's value."""


_NUMBER = Notation(int, int)
MAC = Notation(
    lambda text: int.from_bytes(bytes.fromhex(text.replace(":", "")), "big"),
    lambda number: number.to_bytes(_MAC_BYTES, "big").hex(":"),
)
_IPV4 = Notation(lambda text: int(IPv4Address(text)), lambda number: str(IPv4Address(number)))
_IPV6 = Notation(lambda text: int(IPv6Address(text)), lambda number: str(IPv6Address(number)))


@dataclass(frozen=True)
class HeaderField:
    """A field of a header."""

    path: str
    """Its name in the models; a dot leads into a part of it."""
    start: int
    """Its first bit."""
    bits: int
    """Its width in bits."""
    default: int = 0
    """Its value where none is said."""
    notation: Notation = _NUMBER
    """How the models write its values."""
    computed: Literal["next", "length", "checksum", None] = None
    """What it follows from: the next header, the frame's length, or a part of the frame; None: it is given."""

    def bytes_in(self) -> tuple[int, int]:
        """The first of its bytes, and the one behind the last."""
        return self.start // 8, -(-(self.start + self.bits) // 8)


@dataclass(frozen=True)
class Header:
    """A header of the models."""

    length: int
    """Its bytes."""
    fields: tuple[HeaderField, ...]
    """Its fields. Bits of none of them are zero."""
    number: int | None = None
    """What the header before calls it: an EtherType, or a number of a protocol above IP."""
    followers: tuple[str, ...] = ()
    """The headers that may follow it."""
    counts_from: int = 0
    """From which of its bytes on its length is counted."""
    addresses: int | None = None
    """Where the addresses begin that are in checksums of the header behind; they end with the header."""


_BEHIND_ETHERNET = ("vlan", "ipv4", "ipv6")
_BEHIND_IP = ("tcp", "udp")

HEADERS: Mapping[str, Header] = MappingProxyType(
    {
        "ethernet": Header(
            14,
            (
                HeaderField("dst", 0, 48, notation=MAC),
                HeaderField("src", 48, 48, notation=MAC),
                HeaderField("ether_type", 96, 16, 0xFFFF, computed="next"),
            ),
            followers=_BEHIND_ETHERNET,
        ),
        "vlan": Header(
            4,
            (
                HeaderField("priority", 0, 3),
                HeaderField("cfi", 3, 1),
                HeaderField("id", 4, 12),
                HeaderField("tpid", 16, 16, 0xFFFF, computed="next"),
            ),
            number=0x8100,
            followers=_BEHIND_ETHERNET,
        ),
        "ipv4": Header(
            20,
            (
                HeaderField("version", 0, 4, 4),
                HeaderField("header_length", 4, 4, 5),
                HeaderField("priority.raw", 8, 8),
                HeaderField("priority.dscp.phb", 8, 6),
                HeaderField("priority.dscp.ecn", 14, 2),
                HeaderField("total_length", 16, 16, computed="length"),
                HeaderField("identification", 32, 16),
                HeaderField("reserved", 48, 1),
                HeaderField("dont_fragment", 49, 1),
                HeaderField("more_fragments", 50, 1),
                HeaderField("fragment_offset", 51, 13),
                HeaderField("time_to_live", 64, 8, 64),
                HeaderField("protocol", 72, 8, 61, computed="next"),
                HeaderField("header_checksum", 80, 16, computed="checksum"),
                HeaderField("src", 96, 32, notation=_IPV4),
                HeaderField("dst", 128, 32, notation=_IPV4),
            ),
            number=0x0800,
            followers=_BEHIND_IP,
            addresses=12,
        ),
        "ipv6": Header(
            40,
            (
                HeaderField("version", 0, 4, 6),
                HeaderField("traffic_class", 4, 8),
                HeaderField("flow_label", 12, 20),
                HeaderField("payload_length", 32, 16, computed="length"),
                HeaderField("next_header", 48, 8, 59, computed="next"),
                HeaderField("hop_limit", 56, 8, 64),
                HeaderField("src", 64, 128, notation=_IPV6),
                HeaderField("dst", 192, 128, notation=_IPV6),
            ),
            number=0x86DD,
            followers=_BEHIND_IP,
            counts_from=40,
            addresses=8,
        ),
        "udp": Header(
            8,
            (
                HeaderField("src_port", 0, 16),
                HeaderField("dst_port", 16, 16),
                HeaderField("length", 32, 16, computed="length"),
                HeaderField("checksum", 48, 16, computed="checksum"),
            ),
            number=17,
        ),
        "tcp": Header(
            20,
            (
                HeaderField("src_port", 0, 16),
                HeaderField("dst_port", 16, 16),
                HeaderField("seq_num", 32, 32),
                HeaderField("ack_num", 64, 32),
                HeaderField("data_offset", 96, 4, 5),
                *(
                    HeaderField(name, 103 + place, 1)
                    for place, name in enumerate(
                        ("ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst", "ctl_syn")
                    )
                ),
                HeaderField("ctl_fin", 111, 1),
                HeaderField("window", 112, 16),
                HeaderField("checksum", 128, 16, computed="checksum"),
            ),
            number=6,
        ),
    }
)
"""The headers that both halves know. RFC 791, 8200, 768, 9293, IEEE 802.1Q."""


class FieldError(TrafficError):
    """A field of a request that is not supported, or has no such value; the message begins with its name."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


@dataclass(frozen=True)
class Packet:
    """The frames of a flow, without their sizes."""

    headers: FrameHeaders
    """The headers, with MAC addresses of zero."""
    source_mac: str | None
    """Source MAC address; None: the port's own."""
    destination_mac: str | None
    """Destination MAC address; None: the receiving port's."""


def read_packet(packet: Sequence[Mapping[str, Any]], where: str) -> Packet:
    """Reads the headers of a flow."""
    if not packet:
        raise FieldError(where, "a flow needs headers; the first one is 'ethernet'")
    reader, kinds = _PacketReader(), [part["choice"] for part in packet]
    allowed: tuple[str, ...] = ("ethernet",)
    for number, kind in enumerate(kinds):
        if kind not in allowed:
            possible = ", ".join(allowed) or "no header"
            raise FieldError(f"{where}[{number}]", f"{kind!r} cannot be here; possible: {possible}")
        allowed = HEADERS[kind].followers
    for number, (part, behind) in enumerate(zip(packet, [*kinds[1:], None], strict=True)):
        reader.add(kinds[number], part.get(kinds[number], {}), behind, f"{where}[{number}].{kinds[number]}")
    return Packet(reader.headers, *(_mac(packet[0].get("ethernet", {}), name) for name in ("src", "dst")))


def _mac(ethernet: Mapping[str, Any], name: str) -> str | None:
    value = ethernet.get(name, {}).get("value")
    return None if value is None else str(value)


class _PacketReader:
    """Puts headers of the models one behind the other."""

    def __init__(self) -> None:
        self.headers = FrameHeaders()
        self._addresses: tuple[int, int] | None = None

    def add(self, kind: str, model: Mapping[str, Any], behind: str | None, where: str) -> None:
        """Adds a header; `behind` is the kind of the next one."""
        header, start = HEADERS[kind], len(self.headers.data)
        bits, stepping = 0, []
        for field in header.fields:
            place, pattern = f"{where}.{field.path}", _at(model, field.path)
            values: Sequence[int] = (field.default if "." not in field.path else 0,)
            if field.computed == "next" and behind is not None:
                values = (HEADERS[behind].number or 0,)
            if field.computed in ("length", "checksum"):
                self._compute(field, header, start, place)
            elif pattern is not None and pattern["choice"] != "auto" and field.notation is not MAC:
                values = _values(field, pattern, place)
            if len(values) > 1:
                stepping.append((field, values, place))
            else:
                bits |= values[0] << (8 * header.length - field.start - field.bits)
        data = bytearray(bits.to_bytes(header.length, "big"))
        for field, values, place in stepping:
            try:
                self.headers.fields.append(_stepping(field, values, data, start, self.headers.fields))
            except ValueError as error:
                raise FieldError(place, str(error)) from error
        for own in self.headers.fields:
            if own.offset >= start:
                data[own.offset - start : own.offset - start + own.width] = bytes(own.width)
        self.headers.data += bytes(data)
        if header.addresses is not None:
            self._addresses = (start + header.addresses, start + header.length)
        if kind == "tcp":
            self.headers.urgent_pointer = start + header.length - 2

    def _compute(self, field: HeaderField, header: Header, start: int, place: str) -> None:
        offset = start + field.start // 8
        if field.computed == "length":
            self.headers.lengths.append(LengthField(offset, start + header.counts_from))
        elif header.addresses is not None:
            self.headers.checksums.append(ChecksumField(offset, start, start + header.length))
        elif self._addresses is None:
            raise FieldError(place, "there is no IP header before, whose addresses it covers")
        else:
            pseudo_header = (*self._addresses, header.number or 0)
            self.headers.checksums.append(ChecksumField(offset, start, pseudo_header=pseudo_header))


def _at(model: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        if name not in model:
            return None
        model = model[name]
    return model


def _values(field: HeaderField, pattern: Mapping[str, Any], where: str) -> Sequence[int]:
    """The values of a field, in their order."""
    choice = pattern["choice"]
    # What the models leave out has their default, which is ours, too.
    chosen = pattern.get(choice, [] if choice == "values" else {} if choice != "value" else field.default)
    read, most = field.notation.read, 1 << field.bits
    try:
        if choice == "value":
            values: Sequence[int] = (read(chosen),)
        elif choice == "values":
            values = tuple(map(read, chosen)) or (field.default,)
        elif choice not in ("increment", "decrement"):
            raise FieldError(where, f"{choice!r} is not supported; possible: value, values, increment, decrement")
        else:
            first, step, count = read(chosen.get("start", 0)), read(chosen.get("step", 1)), chosen.get("count", 1)
            step = step if choice == "increment" else -step
            values = range(first, first + count * step, step) if step and count else (first,)
            if not 0 <= values[-1] < most and len(values) <= MOST_LISTED:
                values = tuple(value % most for value in values)
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FieldError(where, f"{str(chosen)[:100]!r} is no such value") from error
    is_counting = isinstance(values, range) and values.step == 1
    if len(values) > (MOST_COUNTED if is_counting else MOST_LISTED):
        raise FieldError(
            where,
            f"it has {len(values):,} values; possible are {MOST_LISTED:,}, or {MOST_COUNTED:,} that count up by 1",
        )
    if not all(0 <= value < most for value in (values[0], values[-1], max(values))):
        raise FieldError(where, f"its values must have {field.bits} bits")
    return values


def _stepping(
    field: HeaderField, values: Sequence[int], constant: bytearray, start: int, others: Sequence[SteppingField]
) -> SteppingField:
    """The field in whole bytes, together with constant bits that are in the same bytes."""
    first, end = field.bytes_in()
    shift = 8 * end - field.start - field.bits
    around = int.from_bytes(constant[first:end], "big")
    whole = [around | value << shift for value in values]
    lowest, highest = min(whole), max(whole)
    if lowest >> 8 * _WIDEST != highest >> 8 * _WIDEST or (highest - lowest) >> _LISTED_BITS:
        raise ValueError(f"its values differ in more than the last {_LISTED_BITS} bits")
    if end - first > _WIDEST:
        # The first bytes are the same in all frames.
        constant[first : end - _WIDEST] = lowest.to_bytes(end - first, "big")[:-_WIDEST]
        first = end - _WIDEST
    mask = (1 << 8 * (end - first)) - 1
    whole = [value & mask for value in whole]
    is_counting = whole == list(range(whole[0], whole[0] + len(whole)))
    if any(own.offset < start + end and start + first < own.offset + own.width for own in others):
        raise ValueError("another field in the same byte changes, too")
    return SteppingField(start + first, end - first, min(whole), len(whole), values=() if is_counting else tuple(whole))


def write_packet(spec: FramesSpec, source_mac: str, destination_mac: str) -> list[dict[str, Any]]:
    """The headers of frames, as the models have them."""
    if any(field.offset < _MAC_BYTES * 2 for field in spec.fields):
        raise TrafficError(
            "Frames have one pair of MAC addresses with the Open Traffic Generator here, and this profile has more "
            "('ethernet'). Take another profile, or another generator."
        )
    data = bytes(_MAC_BYTES * 2) + bytes.fromhex(spec.header)[_MAC_BYTES * 2 :]
    macs = {"src": source_mac, "dst": destination_mac}
    ethernet, *packet = _written(data, spec.fields)
    return [
        {**ethernet, "ethernet": {**ethernet["ethernet"], **{name: _value(mac) for name, mac in macs.items()}}},
        *packet,
    ]


def _value(value: Any) -> dict[str, Any]:
    return {"choice": "value", "value": value}


def _written(data: bytes, fields: Sequence[SteppingField]) -> Iterator[dict[str, Any]]:
    kind: str | None = "ethernet"
    start = 0
    while kind is not None:
        header = HEADERS[kind]
        own = data[start : start + header.length]
        model: dict[str, Any] = {}
        behind = None
        for field in header.fields:
            number = int.from_bytes(own, "big") >> (8 * header.length - field.start - field.bits) & (
                (1 << field.bits) - 1
            )
            if field.computed == "next":
                behind = next((name for name in header.followers if HEADERS[name].number == number), None)
                if number == _SERVICE_TAG:
                    behind, model[field.path] = "vlan", _value(number)
                elif behind is None:
                    model[field.path] = _value(number)
            elif field.computed is None and field.notation is not MAC and "." not in field.path:
                first, end = (start + byte for byte in field.bytes_in())
                changing = [each for each in fields if first <= each.offset and each.offset + each.width == end]
                if changing:
                    base = number >> 8 * changing[0].width << 8 * changing[0].width
                    model[field.path] = _pattern(field, changing[0], base)
                elif number or field.default or field.bits > 8:
                    model[field.path] = _value(field.notation.write(number))
        yield {"choice": kind, kind: model}
        start, kind = start + header.length, behind
    if start != len(data):
        raise TrafficError(
            "Flows of the Open Traffic Generator have the headers ethernet, vlan, ipv4, ipv6, udp and tcp here, and "
            "this profile has others (such as vxlan). Take another profile, or another generator."
        )


def _pattern(field: HeaderField, stepping: SteppingField, base: int) -> dict[str, Any]:
    write = field.notation.write
    if stepping.seed is None and not stepping.values:
        start, step = write(base + stepping.first), write(1)
        return {"choice": "increment", "increment": {"start": start, "step": step, "count": stepping.count}}
    if stepping.count > MOST_LISTED:
        raise TrafficError(
            f"An Open Traffic Generator takes {MOST_LISTED:,} values of a field in random order, and the profile has "
            f"{stepping.count:,}. Use 'order: increment', or fewer of them."
        )
    offsets: Sequence[int] = stepping.offsets
    if stepping.seed is not None:
        offsets = np.random.RandomState(stepping.seed).permutation(stepping.count).tolist()
    return {"choice": "values", "values": [write(base + stepping.first + offset) for offset in offsets]}
