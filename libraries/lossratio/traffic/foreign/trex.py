"""Reads profiles of TRex's stateless mode: Python files that describe streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from lossratio.agent import FCS_BYTES
from lossratio.traffic.foreign.enclosed import run_enclosed
from lossratio.traffic.foreign.packets import (
    LAYERS,
    STEPPING,
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Made,
    Packet,
    Steps,
)

_RATES = {"pps": False, "percentage": True, "bps_L1": True, "bps_L2": False}
_VARIABLE = ("name", "init_value", "min_value", "max_value", "size", "step", "op")
_WRITE = ("fv_name", "pkt_offset", "offset_fixup", "add_val", "is_big_endian", "is_big")
_FIXES = frozenset(
    ("STLVmFixIpv4", "STLVmFixChecksumHw", "fix_chksum", "fix_chksum_hw", "set_cached")
)
_NO_DIFFERENCE = frozenset(
    ("core_id", "isg", "mac_src_override_by_pkt", "mac_dst_override_mode", "random_seed")
)
_CONTINUOUS = "Use STLTXCont in a copy of the file; bursts of its frames are measured by 'Measure Back-To-Back Frames'"
_STREAM = ("name", "packet", "mode", "enabled", "self_start", "isg", "flow_stats", "next")


def read_trex(text: str) -> ForeignProfile:
    """What a profile of TRex's stateless mode describes, with its defaults.

    Args:
        text: The file.

    Raises:
        ForeignFieldError: If something in it cannot be used here.
    """
    remarks: dict[str, None] = {}
    eastward, westward = (
        tuple(_stream(one, remarks) for one in _each_stream(found)) for found in run_enclosed(text)
    )
    if not eastward:
        problem = "the first port has no streams"
        raise ForeignFieldError("get_streams", problem, 1, "Name a profile in which it sends")
    return ForeignProfile(eastward, westward, tuple(remarks))


def _each_stream(found: Any) -> Iterator[Made]:
    if isinstance(found, Made) and found.kind == "STLProfile":
        yield from _each_stream(found.values("streams").get("streams"))
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from _each_stream(one)
    elif isinstance(found, Made) and found.kind == "STLStream":
        yield found
    elif isinstance(found, Made):
        raise ForeignFieldError(found.kind, "only STLStream can be read", found.line)
    elif found is not None:
        raise ForeignFieldError("get_streams", f"it gives {found!r} instead of streams", 1)


def _stream(made: Made, remarks: dict[str, None]) -> ForeignStream:
    fields = made.values(*_STREAM)
    known = {"packet", "mode", "flow_stats", "name", *_NO_DIFFERENCE}
    for name, value in fields.items():
        usual = {"next": None, "enabled": True, "self_start": True, "action_count": 0}
        if name not in known and not (name in usual and usual[name] == value):
            problem = "streams here have no such field, as all of them are sent at once"
            raise ForeignFieldError(f"STLStream.{name}", problem, made.line)

    packet, steps = _packet(fields.get("packet"), made.line)
    frames, is_of_bits = _rate(fields.get("mode"), packet, made.line)
    statistics = fields.get("flow_stats")
    if isinstance(statistics, Made) and statistics.kind == "STLFlowLatencyStats":
        remarks["TRex keeps the rate of a latency stream; here, it grows with the load."] = None
    if fields.get("isg"):
        remarks["Streams begin together ('isg' is left out)."] = None

    # Record: a stream.
    return ForeignStream(
        packet,
        steps=steps,
        frames=frames,
        is_of_bits=is_of_bits,
        name=fields.get("name"),
        line=made.line,
    )


def _rate(mode: Any, packet: Packet, line: int) -> tuple[float, bool]:
    """A stream's proportion, and whether it refers to bits on the line."""
    if mode is None:
        return 1.0, False
    if not isinstance(mode, Made) or mode.kind != "STLTXCont":
        kind = mode.kind if isinstance(mode, Made) else "mode"
        problem = "only continuous streams (STLTXCont) are supported, because a trial has one load"
        line = getattr(mode, "line", line)
        raise ForeignFieldError(kind, problem, line, _CONTINUOUS)

    given = mode.values("pps")
    rates = [(name, value) for name, value in given.items() if value is not None]
    if not rates:
        return 1.0, False
    name, value = rates[0]
    if name not in _RATES or len(rates) > 1 or not isinstance(value, (int, float)) or value <= 0:
        raise ForeignFieldError(f"STLTXCont.{name}", f"{value!r} is not a rate", mode.line)
    if name == "bps_L2":
        return value / (8.0 * (len(packet) + FCS_BYTES)), False
    return float(value), _RATES[name]


def _packet(builder: Any, line: int) -> tuple[Packet, dict[tuple[int, str], Steps]]:
    if not isinstance(builder, Made) or builder.kind != "STLPktBuilder":
        kind = builder.kind if isinstance(builder, Made) else "packet"
        raise ForeignFieldError(kind, "only packets of STLPktBuilder can be read", line)
    fields = builder.values("pkt", "pkt_buffer", "vm")
    packet = fields.pop("pkt", None)
    machine = fields.pop("vm", None)
    for name, value in fields.items():
        if value is not None:
            raise ForeignFieldError(f"STLPktBuilder.{name}", "it cannot be read", builder.line)
    if not isinstance(packet, Packet):
        problem = "only packets of Scapy's layers can be read; give lossratio a capture as such"
        raise ForeignFieldError("STLPktBuilder.pkt", problem, builder.line)
    len(packet)
    return packet, _steps(packet, machine, builder.line)


def _steps(packet: Packet, machine: Any, line: int) -> dict[tuple[int, str], Steps]:
    """The fields that a field engine's instructions change."""
    variables: dict[str, Steps] = {}
    written: dict[tuple[int, str], Steps] = {}

    for each in _instructions(machine, line):
        if each.kind in ("STLVmFlowVar", "var"):
            name, steps = _variable(each)
            variables[name] = steps
        elif each.kind in ("STLVmTupleGen", "tuple_var"):
            variables |= _tuple(each)
        elif each.kind in ("STLVmWrFlowVar", "write"):
            place, steps = _written(each, packet, variables)
            written[place] = steps
        elif each.kind not in _FIXES:
            raise ForeignFieldError(
                each.kind, "the field engine's instruction is not supported", each.line
            )
    return written


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


def _variable(made: Made) -> tuple[str, Steps]:
    fields = made.values(*_VARIABLE)
    for name in ("value_list", "next_var"):
        if fields.get(name) is not None:
            problem = "only consecutive numbers are supported"
            raise ForeignFieldError(f"{made.kind}.{name}", problem, made.line)
    first = _number(fields.get("min_value", fields.get("init_value")), made)
    last = _number(fields.get("max_value", first), made)
    if fields.get("step", 1) != 1:
        problem = f"steps of {fields['step']} are not supported, only steps of 1"
        raise ForeignFieldError(f"{made.kind}.step", problem, made.line)
    if last < first:
        raise ForeignFieldError(f"{made.kind}.max_value", "it is below min_value", made.line)
    is_random = fields.get("op", "inc") == "random"
    return str(fields.get("name")), Steps(first, last - first + 1, is_random)


def _tuple(made: Made) -> Mapping[str, Steps]:
    """Addresses and ports that a generator of clients steps through."""
    fields = made.values("name", "ip_min", "ip_max", "port_min", "port_max", "limit_flows", "flags")
    if fields.get("flags"):
        raise ForeignFieldError(f"{made.kind}.flags", "it is not supported", made.line)
    found = {}
    for part, usual in (("ip", 1), ("port", 1025)):
        first = _number(fields.get(f"{part}_min", usual), made)
        last = _number(fields.get(f"{part}_max", first), made)
        found[f"{fields.get('name')}.{part}"] = Steps(first, last - first + 1)
    return found


def _number(value: Any, made: Made) -> int:
    if isinstance(value, str):
        try:
            return int(ip_address(value))
        except ValueError:
            pass
    if not isinstance(value, int):
        raise ForeignFieldError(
            made.kind, f"{value!r} is neither a number nor an address", made.line
        )
    return value


def _written(
    made: Made, packet: Packet, variables: Mapping[str, Steps]
) -> tuple[tuple[int, str], Steps]:
    """The field to which an instruction writes a variable, and its values there."""
    fields = made.values(*_WRITE)
    variable = fields.get("fv_name")
    steps = variables.get(str(variable))
    if steps is None:
        raise ForeignFieldError(
            f"{made.kind}.fv_name", f"there is no variable {variable!r}", made.line
        )

    place, name, rest = _place(made, fields.get("pkt_offset"), packet)
    added = fields.get("add_val", 0)
    if not isinstance(added, int):
        raise ForeignFieldError(f"{made.kind}.add_val", f"{added!r} is not a number", made.line)
    # An address is a number in a network here, so only its last bytes count.
    layer = packet.layers[place]
    if (rest or fields.get("offset_fixup", 0)) and name not in ("src", "dst"):
        problem = f"a part of {layer.name}.{name} cannot be written"
        raise ForeignFieldError(f"{made.kind}.pkt_offset", problem, made.line)
    return (place, name), Steps(steps.first + added, steps.count, steps.is_random)


def _place(made: Made, offset: Any, packet: Packet) -> tuple[int, str, int]:
    """The number of a layer, the name of its field, and the bytes of the field that come before an offset."""
    if isinstance(offset, int):
        before = 0
        for place, layer in enumerate(packet.layers):
            own, names = LAYERS[layer.name]
            for name in names.keys() & STEPPING:
                field = own.field(names[name])
                if field.first <= offset - before < field.end:
                    return place, name, offset - before - field.first
            before += own.length

    header, _, name = str(offset).rpartition(".")
    kind, _, number = header.partition(":")
    places = [place for place, layer in enumerate(packet.layers) if layer.name == kind]
    which = int(number) if number.isdecimal() else 0
    if which < len(places):
        return places[which], name, 0
    problem = f"{offset!r} is neither an address nor a port of this packet"
    raise ForeignFieldError(f"{made.kind}.pkt_offset", problem, made.line)
