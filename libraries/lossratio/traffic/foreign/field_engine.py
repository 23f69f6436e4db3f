"""The fields and sizes of frames that the instructions of TRex's field engine change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lossratio.traffic.foreign.packets import (
    LAYERS,
    MOST_LISTED,
    STEPPING,
    ForeignFieldError,
    Made,
    Packet,
    Steps,
    number_of,
)

_OTHER_NAMES = {"add_value": "add_val", "is_big_endian": "is_big"}
_BIG_ENDIAN = (None, True, "big")
_FIXES = frozenset(
    ("STLVmFixIpv4", "STLVmFixChecksumHw", "fix_chksum", "fix_chksum_hw", "set_cached")
)
_LAST, _USUAL_LIMIT = 255, 100
_COMPUTED = frozenset(("len", "plen", "chksum"))
"""Fields that are always right."""


@dataclass(frozen=True)
class _Variable:
    """A number that changes from frame to frame."""

    steps: Steps
    width: int
    """Its bytes."""


@dataclass(frozen=True)
class _Target:
    """A field that an instruction writes to."""

    key: tuple[int, str]
    """The number of its layer, and its name."""
    shift: int
    """How many bits of the field are after the last written one."""
    base: int
    """The field's number in the packet."""


@dataclass(eq=False)
class FieldEngine:
    """The instructions of a stream."""

    packet: Packet
    """The packet that they change."""
    remarks: dict[str, None]
    """Takes what is different here, in sentences."""
    steps: dict[tuple[int, str], Steps] = field(default_factory=dict)
    """The steps of each field, by the number of its layer and its name."""
    sizes: dict[int, int] = field(default_factory=dict)
    """Lengths of the frames with their weights; empty: all are as long as the packet."""
    _variables: dict[str, _Variable] = field(default_factory=dict)
    _dependent: set[str] = field(default_factory=set)

    def run(self, machine: Any, line: int) -> None:
        """Reads the instructions of a program, which a line describes.

        Raises:
            ForeignFieldError: If something in it cannot be used here.
        """
        for each in _instructions(machine, line):
            if each.kind in _FIXES:
                continue
            if each.kind not in _INSTRUCTIONS:
                problem = "the field engine's instruction is not supported"
                raise ForeignFieldError(each.kind, problem, each.line)
            read, arguments = _INSTRUCTIONS[each.kind]
            given = each.values(*arguments)
            read(self, each, {_OTHER_NAMES.get(name, name): given[name] for name in given})

    def _add_variable(self, made: Made, fields: Mapping[str, Any]) -> None:
        listed = fields.get("value_list")
        numbers: Sequence[int]
        if listed is not None:
            numbers = [_number(value, made) for value in listed]
        else:
            first = _number(fields.get("min_value", 0), made)
            last = _number(fields.get("max_value", _LAST), made)
            step = _number(fields.get("step", 1), made)
            if last < first or step < 1:
                raise made.refused(
                    "max_value", f"it is below min_value, or its step {step} is below 1"
                )
            numbers = range(first, last + 1, step)

        if fields.get("next_var") is not None:
            self._dependent.add(str(fields["next_var"]))
        op = fields.get("op", "inc")
        if op == "dec":
            numbers = numbers[::-1]
        self._set(fields.get("name"), Steps(numbers, op == "random"), fields.get("size", 4))

    def _add_tuple(self, made: Made, fields: Mapping[str, Any]) -> None:
        """Addresses and ports that a generator of clients steps through."""
        if fields.get("flags"):
            raise made.refused("flags", "it is not supported")
        for part, usual, width in (("ip", 1, 4), ("port", 1025, 2)):
            first = _number(fields.get(f"{part}_min", usual), made)
            last = _number(fields.get(f"{part}_max", first), made)
            self._set(f"{fields.get('name')}.{part}", Steps(range(first, last + 1)), width)

    def _add_repeated(self, made: Made, fields: Mapping[str, Any]) -> None:
        width = fields.get("size", 4)
        first = _number(fields.get("min_value", 0), made)
        last = _number(fields.get("max_value", (1 << 8 * width) - 1), made)
        draw = Random(_number(fields.get("seed") or 0, made))
        count = min(_number(fields.get("limit", _USUAL_LIMIT), made), MOST_LISTED)
        self.remarks[
            "Random numbers in a repeated order differ from TRex's, but there are as many of them."
        ] = None
        if fields.get("next_var") is not None:
            self._dependent.add(str(fields["next_var"]))
        numbers = [draw.randint(first, last) for _ in range(count)]
        self._set(fields.get("name", fields.get("fv_name")), Steps(numbers), width)

    def _set(self, name: Any, steps: Steps, width: int) -> None:
        self._variables[str(name)] = _Variable(steps, width)

    def _variable(self, name: Any, made: Made) -> _Variable:
        if str(name) not in self._variables:
            raise made.refused("fv_name", f"there is no variable {name!r}")
        return self._variables[str(name)]

    def _write(self, made: Made, fields: Mapping[str, Any]) -> None:
        """Writes a whole variable."""
        width = self._variable(fields.get("fv_name"), made).width
        whole = {"pkt_cast_size": width, "mask": (1 << 8 * width) - 1, "is_whole": True}
        self._write_masked(made, {**fields, **whole})

    def _write_masked(self, made: Made, fields: Mapping[str, Any]) -> None:
        """Writes those bits of a shifted variable that a mask has."""
        variable = self._variable(fields.get("fv_name"), made)
        target = self._target(made, fields, fields.get("pkt_cast_size", 1))
        if target is None:
            return
        added, shift, mask = (
            _number(fields.get(name, usual), made)
            for name, usual in (("add_val", 0), ("shift", 0), ("mask", 0xFF))
        )

        base = target.base & ~(mask << target.shift)
        left, right = max(0, shift), max(0, -shift)
        numbers = variable.steps.numbers
        first, last = (number + added for number in (numbers[0], numbers[-1]))
        fits = "is_whole" in fields and 0 <= min(first, last) <= max(first, last) <= mask
        if fits and isinstance(numbers, range):
            step = numbers.step << target.shift
            begin = base + (first << target.shift)
            written: Sequence[int] = range(begin, begin + step * len(numbers), step)
        else:
            written = [
                base + ((number + added << left >> right & mask) << target.shift)
                for number in numbers[:MOST_LISTED]
            ]
        self.steps[target.key] = Steps(written, variable.steps.is_random)

    def _target(self, made: Made, fields: Mapping[str, Any], width: int) -> _Target | None:
        """The field that an instruction writes this many bytes to; None: a computed one, or the payload."""
        place, name, before = self._place(made, fields.get("pkt_offset"))
        if place is None or name in _COMPUTED:
            if place is None:
                self.remarks["The payload is the generator's own, and does not change."] = None
            return None

        for order in ("is_big", "byte_order"):
            if fields.get(order) not in _BIG_ENDIAN:
                raise made.refused(order, "numbers in frames have their highest byte first")
        layer = self.packet.layers[place]
        if name not in STEPPING:
            raise layer.refused(name, "only addresses and ports can change from frame to frame")
        if str(fields.get("fv_name")) in self._dependent:
            raise made.refused("fv_name", "it steps only when another variable ends")
        header, names = LAYERS[layer.name]
        each = header.field(names[name])
        begin = before + _number(fields.get("offset_fixup", 0), made)
        rest = each.end - each.first - begin - width
        if begin < 0 or rest < 0:
            raise made.refused(
                "pkt_offset", f"{width} bytes from there are not within {layer.name}.{name}"
            )
        return _Target((place, name), 8 * rest, number_of(layer.fields.get(name, 1)))

    def _place(self, made: Made, offset: Any) -> tuple[int | None, str, int]:
        """The number of a layer, the name of its field, and the bytes of the field that come before an offset."""
        if isinstance(offset, int):
            return self._place_at(made, offset)
        header, _, name = str(offset).rpartition(".")
        kind, _, number = header.partition(":")
        if kind == "Raw":
            return None, name, 0
        places = [place for place, layer in enumerate(self.packet.layers) if layer.name == kind]
        which = int(number) if number.isdecimal() else 0
        if which < len(places):
            return places[which], name, 0
        raise made.refused(
            "pkt_offset", f"{offset!r} is neither an address nor a port of this packet"
        )

    def _place_at(self, made: Made, offset: int) -> tuple[int | None, str, int]:
        before = 0
        for place, layer in enumerate(self.packet.layers):
            own, names = LAYERS[layer.name]
            for name in names.keys() & STEPPING:
                each = own.field(names[name])
                if each.first <= offset - before < each.end:
                    return place, name, offset - before - each.first
            before += own.length
        if offset < before:
            raise made.refused(
                "pkt_offset", f"{offset!r} is neither an address nor a port of this packet"
            )
        return None, "", 0

    def _trim(self, made: Made, fields: Mapping[str, Any]) -> None:
        numbers = self._variable(fields.get("fv_name"), made).steps.numbers
        self.sizes = dict.fromkeys(numbers, 1)


# Table: how each instruction is read, and its arguments in their order; methods of STLVM have short names.
_INSTRUCTIONS: Mapping[
    str, tuple[Callable[[FieldEngine, Made, Mapping[str, Any]], None], tuple[str, ...]]
] = {
    "STLVmFlowVar": (
        FieldEngine._add_variable,
        ("name", "init_value", "min_value", "max_value", "size", "step", "op"),
    ),
    "var": (FieldEngine._add_variable, ("name", "min_value", "max_value", "size", "op", "step")),
    "STLVmTupleGen": (
        FieldEngine._add_tuple,
        ("name", "ip_min", "ip_max", "port_min", "port_max", "limit_flows", "flags"),
    ),
    "tuple_var": (
        FieldEngine._add_tuple,
        ("name", "ip_min", "ip_max", "port_min", "port_max", "limit_flows"),
    ),
    "STLVmFlowVarRepeatableRandom": (
        FieldEngine._add_repeated,
        ("name", "size", "limit", "seed", "min_value", "max_value"),
    ),
    "repeatable_random_var": (
        FieldEngine._add_repeated,
        ("name", "size", "limit", "seed", "min_value", "max_value"),
    ),
    "STLVmWrFlowVar": (
        FieldEngine._write,
        ("fv_name", "pkt_offset", "offset_fixup", "add_val", "is_big"),
    ),
    "write": (
        FieldEngine._write,
        ("fv_name", "pkt_offset", "offset_fixup", "add_val", "byte_order"),
    ),
    "STLVmWrMaskFlowVar": (
        FieldEngine._write_masked,
        (
            *("fv_name", "pkt_offset", "pkt_cast_size", "mask"),
            *("shift", "add_val", "offset_fixup", "is_big"),
        ),
    ),
    "write_mask": (
        FieldEngine._write_masked,
        (
            *("fv_name", "pkt_offset", "pkt_cast_size", "mask"),
            *("shift", "offset_fixup", "add_val", "byte_order"),
        ),
    ),
    "STLVmTrimPktSize": (FieldEngine._trim, ("fv_name",)),
    "trim": (FieldEngine._trim, ("fv_name",)),
}


def _instructions(machine: Any, line: int) -> Iterable[Made]:
    if isinstance(machine, Made) and machine.kind == "STLVM":
        return machine.calls
    if isinstance(machine, Made) and machine.kind == "STLScVmRaw":
        listed = machine.values("list_of_commands", "split_by_field", "cache_size")
        machine = listed.get("list_of_commands")
    if machine is None:
        return ()
    if not isinstance(machine, (list, tuple)) or not all(isinstance(one, Made) for one in machine):
        raise ForeignFieldError("STLPktBuilder.vm", "its instructions cannot be read", line)
    return machine


def _number(value: Any, made: Made) -> int:
    try:
        return number_of(value)
    except ValueError as error:
        problem = f"{value!r} is neither a number nor an address"
        raise ForeignFieldError(made.kind, problem, made.line) from error
