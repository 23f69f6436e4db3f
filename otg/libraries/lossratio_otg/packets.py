"""The headers of a flow in the models of the Open Traffic Generator: read into frames, and written from them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lossratio.agent import MAC, MAC_BYTES, FramesSpec, HeaderField, SteppingField
from lossratio.errors import TrafficError
from lossratio.traffic.frame_headers import FrameHeaders
from lossratio.traffic.otg.headers import HEADERS

MOST_LISTED = 1 << 16
"""The maximum number of values of a field that do not count up one by one."""
MOST_COUNTED = 1 << 20
"""The maximum number of values of a field that counts up."""
_WIDEST = 8
_SERVICE_TAG = 0x88A8
_LISTED_BITS = 32


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
    """Reads the headers of a flow.

    Raises:
        FieldError: If there are no headers, or one is in an impossible place.
    """
    if not packet:
        raise FieldError(where, "a flow needs headers; the first one is 'ethernet'")

    reader = _PacketReader()
    kinds = [part["choice"] for part in packet]
    allowed: tuple[str, ...] = ("ethernet",)

    for number, kind in enumerate(kinds):
        if kind not in allowed:
            possible = ", ".join(allowed) or "no header"
            raise FieldError(f"{where}[{number}]", f"{kind!r} cannot be here; possible: {possible}")
        allowed = HEADERS[kind].followers

    for number, (part, behind) in enumerate(zip(packet, [*kinds[1:], None], strict=True)):
        reader.add(
            kinds[number], part.get(kinds[number], {}), behind, f"{where}[{number}].{kinds[number]}"
        )

    ethernet = packet[0].get("ethernet", {})
    return Packet(reader.headers, *(ethernet.get(name, {}).get("value") for name in ("src", "dst")))


class _PacketReader:
    def __init__(self) -> None:
        self.headers = FrameHeaders()

    def add(self, kind: str, model: Mapping[str, Any], behind: str | None, where: str) -> None:
        """Adds a header; `behind` is the kind of the next one."""
        header = HEADERS[kind].header
        start = len(self.headers.data)
        bits = 0
        stepping = []

        for path, field in HEADERS[kind].fields:
            place = f"{where}.{path}"
            pattern = _at(model, path)
            values: Sequence[int] = (field.default if "." not in path else 0,)
            if field.computed == "next" and behind is not None:
                values = (HEADERS[behind].header.number,)
            if pattern is not None and pattern["choice"] != "auto" and _is_given(field):
                values = _values(field, pattern, place)

            if len(values) > 1:
                stepping.append((field, values, place))
            else:
                bits |= values[0] << (8 * header.length - field.start - field.bits)

        data = bytearray(bits.to_bytes(header.length, "big"))
        for field, values, place in stepping:
            try:
                self.headers.fields.append(
                    _stepping(field, values, data, start, self.headers.fields)
                )
            except ValueError as error:
                raise FieldError(place, str(error)) from error

        for own in self.headers.fields:
            if own.offset >= start:
                data[own.offset - start : own.offset - start + own.width] = bytes(own.width)
        self.headers.add(header, bytes(data))


def _is_given(field: HeaderField) -> bool:
    """Whether models give a field's values."""
    return field.computed in (None, "next") and field.notation is not MAC


def _at(model: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        if name not in model:
            return None
        model = model[name]
    return model


def _values(field: HeaderField, pattern: Mapping[str, Any], where: str) -> Sequence[int]:
    choice = pattern["choice"]
    # What the models leave out has their default, which is also ours.
    defaults = {"value": field.default, "values": []}
    chosen = pattern.get(choice, defaults.get(choice, {}))
    read = field.notation.read
    most = 1 << field.bits

    try:
        if choice == "value":
            values: Sequence[int] = (read(chosen),)
        elif choice == "values":
            values = tuple(map(read, chosen)) or (field.default,)
        elif choice in ("increment", "decrement"):
            values = _counter_values(chosen, read, most, is_down=choice == "decrement")
        else:
            raise FieldError(
                where, f"{choice!r} is not supported; possible: value, values, increment, decrement"
            )
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FieldError(where, f"{str(chosen)[:100]!r} is not such a value") from error

    is_counting = isinstance(values, range) and values.step == 1
    if len(values) > (MOST_COUNTED if is_counting else MOST_LISTED):
        raise FieldError(
            where,
            f"it has {len(values):,} values; possible are {MOST_LISTED:,}, or {MOST_COUNTED:,} that count up by 1",
        )

    extremes = (values[0], values[-1]) if isinstance(values, range) else values
    if not all(0 <= value < most for value in extremes):
        raise FieldError(where, f"its values must have {field.bits} bits")
    return values


def _counter_values(
    counter: Mapping[str, Any], read: Callable[[Any], int], most: int, *, is_down: bool
) -> Sequence[int]:
    """The values of a counter, which goes round below `most` if that needs no long list."""
    first = read(counter.get("start", 0))
    step = read(counter.get("step", 1))
    count = counter.get("count", 1)
    if is_down:
        step = -step

    values: Sequence[int] = (first,)
    if step and count:
        values = range(first, first + count * step, step)
    if not 0 <= values[-1] < most and len(values) <= MOST_LISTED:
        values = tuple(value % most for value in values)
    return values


def _stepping(
    field: HeaderField,
    values: Sequence[int],
    constant: bytearray,
    start: int,
    others: Sequence[SteppingField],
) -> SteppingField:
    """The field in whole bytes, together with constant bits that are in the same bytes."""
    first = field.first
    end = field.end
    shift = 8 * end - field.start - field.bits
    around = int.from_bytes(constant[first:end], "big")
    whole: Sequence[int]

    if isinstance(values, range) and values.step == 1 and shift == 0:
        # There may be a million of them, in each of many fields.
        whole = range(around + values.start, around + values.stop)
        lowest = whole[0]
        highest = whole[-1]
    else:
        whole = [around | value << shift for value in values]
        lowest, highest = min(whole), max(whole)

    if lowest >> 8 * _WIDEST != highest >> 8 * _WIDEST or (highest - lowest) >> _LISTED_BITS:
        raise ValueError(f"its values differ in more than the last {_LISTED_BITS} bits")

    if end - first > _WIDEST:
        # The first bytes are the same in all frames.
        constant[first : end - _WIDEST] = lowest.to_bytes(end - first, "big")[:-_WIDEST]
        first = end - _WIDEST

    if any(own.offset < start + end and start + first < own.offset + own.width for own in others):
        raise ValueError("another field in the same byte changes, too")

    mask = (1 << 8 * (end - first)) - 1
    if isinstance(whole, range):
        return SteppingField(start + first, end - first, lowest & mask, len(whole))

    whole = [value & mask for value in whole]
    is_counting = whole == list(range(whole[0], whole[0] + len(whole)))
    return SteppingField(
        start + first,
        end - first,
        min(whole),
        len(whole),
        values=() if is_counting else tuple(whole),
    )


def write_packet(spec: FramesSpec, source_mac: str, destination_mac: str) -> list[dict[str, Any]]:
    """The headers of frames, in the form of the models.

    Raises:
        TrafficError: If the frames have several pairs of MAC addresses.
    """
    if any(field.offset < MAC_BYTES * 2 for field in spec.fields):
        raise TrafficError(
            "Frames have one pair of MAC addresses with the Open Traffic Generator here, and this profile has more "
            "('ethernet'). Use another profile, or another generator."
        )

    data = bytes(MAC_BYTES * 2) + bytes.fromhex(spec.header)[MAC_BYTES * 2 :]
    macs = {"src": source_mac, "dst": destination_mac}
    ethernet, *packet = _written(data, spec.fields)
    return [
        {
            **ethernet,
            "ethernet": {
                **ethernet["ethernet"],
                **{name: _value(mac) for name, mac in macs.items()},
            },
        },
        *packet,
    ]


def _value(value: Any) -> dict[str, Any]:
    return {"choice": "value", "value": value}


def _written(data: bytes, fields: Sequence[SteppingField]) -> Iterator[dict[str, Any]]:
    kind: str | None = "ethernet"
    start = 0
    while kind is not None:
        header = HEADERS[kind].header
        own = data[start : start + header.length]
        model: dict[str, Any] = {}
        behind = None

        for path, field in HEADERS[kind].fields:
            number = field.value(own)
            if field.computed == "next":
                behind = next(
                    (
                        name
                        for name in HEADERS[kind].followers
                        if HEADERS[name].header.number == number
                    ),
                    None,
                )
                if number == _SERVICE_TAG:
                    behind = "vlan"
                    model[path] = _value(number)
                elif behind is None:
                    model[path] = _value(number)
            elif _is_given(field) and "." not in path:
                first, end = start + field.first, start + field.end
                changing = [
                    each
                    for each in fields
                    if first <= each.offset and each.offset + each.width == end
                ]
                if changing:
                    base = number >> 8 * changing[0].width << 8 * changing[0].width
                    model[path] = _pattern(field, changing[0], base)
                elif number or field.default or field.bits > 8:
                    model[path] = _value(field.notation.write(number))

        yield {"choice": kind, kind: model}
        start += header.length
        kind = behind

    if start != len(data):
        raise TrafficError(
            "Flows of the Open Traffic Generator have the headers ethernet, vlan, ipv4, ipv6, udp and tcp here, and "
            "this profile has others (such as vxlan). Use another profile, or another generator."
        )


def _pattern(field: HeaderField, stepping: SteppingField, base: int) -> dict[str, Any]:
    write = field.notation.write
    if stepping.seed is None and not stepping.values:
        start = write(base + stepping.first)
        step = write(1)
        return {
            "choice": "increment",
            "increment": {"start": start, "step": step, "count": stepping.count},
        }

    if stepping.count > MOST_LISTED:
        raise TrafficError(
            f"An Open Traffic Generator supports {MOST_LISTED:,} values of a field in random order, but the profile "
            f"has {stepping.count:,}. Use 'order: increment' or fewer values."
        )

    offsets: Sequence[int] = stepping.offsets
    if stepping.seed is not None:
        offsets = np.random.RandomState(stepping.seed).permutation(stepping.count).tolist()
    return {
        "choice": "values",
        "values": [write(base + stepping.first + offset) for offset in offsets],
    }
