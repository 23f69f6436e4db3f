"""The headers of a flow in the models of the Open Traffic Generator, read into frames."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lossratio.agent import HeaderField, SteppingField
from lossratio.errors import TrafficError
from lossratio.traffic import FrameHeaders
from lossratio_otg.headers import HEADERS, MOST_LISTED, is_given

MOST_COUNTED = 1 << 20
"""The maximum number of values of a field that counts up."""
_WIDEST = 8
_LISTED_BITS = 32


class FieldError(TrafficError):
    """A field of a request that is not supported, or has no such value; the message begins with its name."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


def read_packet(packet: Sequence[Mapping[str, Any]], where: str) -> FrameHeaders:
    """Reads the headers of a flow, with MAC addresses of zero.

    Raises:
        FieldError: If there are no headers, or one is in an impossible place.
    """
    if not packet:
        raise FieldError(where, "a flow needs headers; the first one is 'ethernet'")

    headers = FrameHeaders()
    kinds = [part["choice"] for part in packet]
    allowed: tuple[str, ...] = ("ethernet",)

    for number, kind in enumerate(kinds):
        if kind not in allowed:
            possible = ", ".join(allowed) or "no header"
            raise FieldError(f"{where}[{number}]", f"{kind!r} cannot come here; possible: {possible}")
        allowed = HEADERS[kind].followers

    for number, (part, behind) in enumerate(zip(packet, [*kinds[1:], None], strict=True)):
        _add(headers, kinds[number], part.get(kinds[number], {}), behind, f"{where}[{number}].{kinds[number]}")
    return headers


def _add(headers: FrameHeaders, kind: str, model: Mapping[str, Any], behind: str | None, where: str) -> None:
    """Adds a header from its model; `behind` is the kind of the next one."""
    header = HEADERS[kind].header
    start = len(headers.data)
    constant: dict[str, int] = {}
    stepping = []

    for path, field in HEADERS[kind].fields:
        pattern: Any = model
        for name in path.split("."):
            pattern = pattern.get(name, {})
        if field.computed == "next" and behind is not None:
            constant[field.name] = HEADERS[behind].header.number
        if pattern.get("choice", "auto") == "auto" or not is_given(field):
            continue

        place = f"{where}.{path}"
        values = _values(field, pattern, place)
        constant[field.name] = values[0]
        if len(values) > 1:
            constant[field.name] = 0
            stepping.append((field, values, place))

    data = bytearray(header.packed(constant))
    for field, values, place in stepping:
        try:
            headers.fields.append(_stepping(field, values, data, start, headers.fields))
        except ValueError as error:
            raise FieldError(place, str(error)) from error

    for own in headers.fields:
        if own.offset >= start:
            data[own.offset - start : own.offset - start + own.width] = bytes(own.width)
    headers.add(header, bytes(data))


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
            raise FieldError(where, f"{choice!r} is not supported; possible: value, values, increment, decrement")
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FieldError(where, f"{str(chosen)[:100]!r} is not a value of this field") from error

    is_counting = isinstance(values, range) and values.step == 1
    if len(values) > (MOST_COUNTED if is_counting else MOST_LISTED):
        raise FieldError(
            where,
            f"it has {len(values):,} values, but may have at most {MOST_LISTED:,}, or {MOST_COUNTED:,} that "
            "count up by 1",
        )

    extremes = (values[0], values[-1]) if isinstance(values, range) else values
    if not all(0 <= value < most for value in extremes):
        raise FieldError(where, f"its values must fit into {field.bits} bits")
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
    field: HeaderField, values: Sequence[int], constant: bytearray, start: int, others: Sequence[SteppingField]
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
        raise ValueError(f"its values may differ in the last {_LISTED_BITS} bits only")

    if end - first > _WIDEST:
        # The first bytes are the same in all frames.
        constant[first : end - _WIDEST] = lowest.to_bytes(end - first, "big")[:-_WIDEST]
        first = end - _WIDEST

    if any(own.offset < start + end and start + first < own.offset + own.width for own in others):
        raise ValueError("another field in the same byte also changes, and only one of them can")

    mask = (1 << 8 * (end - first)) - 1
    if isinstance(whole, range):
        return SteppingField(start + first, end - first, lowest & mask, len(whole))

    whole = [value & mask for value in whole]
    return SteppingField(start + first, end - first, min(whole), len(whole), values=tuple(whole))
