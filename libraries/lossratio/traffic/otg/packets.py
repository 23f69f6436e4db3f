"""The headers of frames, written in the models of the Open Traffic Generator."""

from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.agent import MAC_BYTES, FramesSpec, HeaderField, SteppingField
from lossratio.errors import TrafficError
from lossratio.traffic.otg.headers import HEADERS, MOST_LISTED, is_given

_SERVICE_TAG = 0x88A8


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
            elif is_given(field) and "." not in path:
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
            "Flows of the Open Traffic Generator can have the headers ethernet, vlan, ipv4, ipv6, udp and tcp, but "
            "this profile has others (such as vxlan). Use another profile, or another generator."
        )


def _pattern(field: HeaderField, stepping: SteppingField, base: int) -> dict[str, Any]:
    write = field.notation.write
    if not stepping.is_shuffled:
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

    return {
        "choice": "values",
        "values": [write(base + stepping.first + offset) for offset in stepping.steps],
    }
