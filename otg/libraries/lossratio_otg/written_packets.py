"""The headers of frames, written in the models of the Open Traffic Generator."""

from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.agent import MAC_BYTES, SERVICE_TAG, FramesSpec, HeaderField, SteppingField, headers_of
from lossratio.errors import TrafficError
from lossratio_otg.headers import HEADERS, MOST_LISTED, is_given


def write_packet(spec: FramesSpec, source_mac: str, destination_mac: str) -> list[dict[str, Any]]:
    """The headers of frames, in the form of the models.

    Raises:
        TrafficError: If the frames have several pairs of MAC addresses.
    """
    if any(field.offset < MAC_BYTES * 2 for field in spec.fields):
        raise TrafficError(
            "With the Open Traffic Generator, frames have one pair of MAC addresses, but this profile has more "
            "('ethernet'). Use another profile, or another generator."
        )

    data = bytes(MAC_BYTES * 2) + bytes.fromhex(spec.header)[MAC_BYTES * 2 :]
    macs = {"src": source_mac, "dst": destination_mac}
    ethernet, *packet = _written(data, spec.fields)
    return [
        {**ethernet, "ethernet": {**ethernet["ethernet"], **{name: _value(mac) for name, mac in macs.items()}}},
        *packet,
    ]


def _value(value: Any) -> dict[str, Any]:
    return {"choice": "value", "value": value}


def _written(data: bytes, fields: Sequence[SteppingField]) -> Iterator[dict[str, Any]]:
    names = {model.header: name for name, model in HEADERS.items()}
    for header, start, end in headers_of(data):
        if header not in names or end != start + header.length:
            break
        own = data[start:end]
        model: dict[str, Any] = {}
        for path, field in HEADERS[names[header]].fields:
            number = field.value(own)
            if field.computed == "next" and (end == len(data) or number == SERVICE_TAG):
                model[path] = _value(number)
            elif field.computed is None and is_given(field) and "." not in path:
                written = _given(field, number, start, fields)
                if written is not None:
                    model[path] = written
        yield {"choice": names[header], names[header]: model}
        if end == len(data):
            return

    raise TrafficError(
        "Flows of the Open Traffic Generator can have the headers ethernet, vlan, ipv4, ipv6, udp and tcp, but this "
        "profile has others (such as vxlan). Use another profile, or another generator."
    )


def _given(field: HeaderField, number: int, start: int, fields: Sequence[SteppingField]) -> dict[str, Any] | None:
    """What a model says about a field of a header that begins at a place; None: it has the model's default."""
    first, end = start + field.first, start + field.end
    for each in fields:
        if first <= each.offset and each.offset + each.width == end:
            base = number >> 8 * each.width << 8 * each.width
            return _pattern(field, each, base)
    if number or field.default or field.bits > 8:
        return _value(field.notation.write(number))
    return None


def _pattern(field: HeaderField, stepping: SteppingField, base: int) -> dict[str, Any]:
    write = field.notation.write
    if not stepping.is_shuffled:
        start = write(base + stepping.first)
        step = write(1)
        return {"choice": "increment", "increment": {"start": start, "step": step, "count": stepping.count}}

    if stepping.count > MOST_LISTED:
        raise TrafficError(
            f"An Open Traffic Generator supports {MOST_LISTED:,} values of a field in random order, but the profile "
            f"has {stepping.count:,}. Use 'order: increment' or fewer values."
        )

    return {"choice": "values", "values": [write(base + stepping.first + offset) for offset in stepping.steps]}
