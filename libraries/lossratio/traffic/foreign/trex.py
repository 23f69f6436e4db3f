"""Reads profiles of TRex's stateless mode: Python files that describe streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lossratio.agent import FCS_BYTES
from lossratio.errors import ProfileError
from lossratio.files import read_input_file
from lossratio.traffic.foreign.captures import read_capture
from lossratio.traffic.foreign.enclosed import run_enclosed
from lossratio.traffic.foreign.field_engine import FieldEngine
from lossratio.traffic.foreign.hlt import read_hlt
from lossratio.traffic.foreign.packets import (
    ForeignFieldError,
    ForeignProfile,
    ForeignStream,
    Made,
    Packet,
)

_RATES = {"pps": False, "percentage": True, "bps_L1": True, "bps_L2": False}
_NO_DIFFERENCE = frozenset(
    ("core_id", "isg", "mac_src_override_by_pkt", "mac_dst_override_mode", "random_seed")
)
_STREAM = ("name", "packet", "mode", "enabled", "self_start", "isg", "flow_stats", "next")
_BURSTS = {
    "STLTXSingleBurst": ("pps", "total_pkts"),
    "STLTXMultiBurst": ("pps", "pkts_per_burst", "ibg", "count"),
}
"""The modes of streams that end, with their arguments."""
_MOST_BYTES = 1 << 24
_BUILDER = ("pkt", "pkt_buffer", "vm")
_ALL_AT_ONCE = "Use one kind in a copy of the file, such as STLTXCont"


def read_trex(text: str, folder: Path) -> ForeignProfile:
    """What a profile of TRex's stateless mode describes, with its defaults.

    Args:
        text: The file.
        folder: The folder that it is in, whose captures it can name.

    Raises:
        ForeignFieldError: If something in it cannot be used here.
    """
    remarks: dict[str, None] = {}
    eastward, westward = (_way(found, folder, remarks) for found in run_enclosed(text))
    if not eastward:
        problem = "the first port has no streams"
        raise ForeignFieldError("get_streams", problem, 1, "Name a profile whose first port sends")
    return ForeignProfile(eastward, westward, tuple(remarks))


def _way(found: Any, folder: Path, remarks: dict[str, None]) -> tuple[ForeignStream, ...]:
    """The streams of a port."""
    made = list(_each_stream(found))
    _check_order([one.values(*_STREAM) for one in made], made)
    both = [
        read_hlt(one, remarks) if one.kind == "STLHltStream" else _stream(one, folder, remarks)
        for one in made
    ]
    streams = tuple(_with_rate(stream, mode) for stream, mode in both)

    bursts = [stream for stream in streams if stream.is_burst]
    if bursts and len(bursts) < len(streams):
        problem = "some streams end (bursts), and others do not"
        raise ForeignFieldError("mode", problem, bursts[0].line, _ALL_AT_ONCE)
    if bursts:
        remarks[
            "Bursts become continuous: a stream's share of the load is its share of the "
            "frames, and trials set load and duration."
        ] = None
    return streams


def _each_stream(found: Any) -> Iterator[Made]:
    if isinstance(found, Made) and found.kind == "STLProfile":
        yield from _each_stream(found.values("streams").get("streams"))
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from _each_stream(one)
    elif isinstance(found, Made) and found.kind in ("STLStream", "STLHltStream"):
        yield found
    elif isinstance(found, Made):
        raise ForeignFieldError(
            found.kind, "only STLStream and STLHltStream can be read", found.line
        )
    elif found is not None:
        raise ForeignFieldError("get_streams", f"it returns {found!r} instead of streams", 1)


def _check_order(streams: Sequence[Mapping[str, Any]], made: Sequence[Made]) -> None:
    """Makes sure that streams which others start follow these, so that each is sent equally often."""
    names = [stream.get("name") for stream in streams]
    started: set[int] = set()
    for number, stream in enumerate(streams):
        following = stream.get("next")
        if following is None:
            continue
        is_round = following == names[0] and len(started) == number == len(names) - 1
        if not is_round and following not in names[number + 1 : number + 2]:
            raise made[number].refused(
                "next", f"{following!r} is neither the stream after it nor the first one"
            )
        started.add(number + 1)

    for number, stream in enumerate(streams):
        if not stream.get("self_start", True) and number not in started:
            raise made[number].refused("self_start", "no stream starts it")


def _stream(made: Made, folder: Path, remarks: dict[str, None]) -> tuple[ForeignStream, Any]:
    """A stream, and its mode of sending."""
    fields = made.values(*_STREAM)
    known = {"packet", "mode", "flow_stats", "name", "self_start", *_NO_DIFFERENCE}
    if getattr(fields.get("mode"), "kind", None) in _BURSTS:
        known |= {"next", "action_count"}
    for name, value in fields.items():
        usual = {"next": None, "enabled": True, "action_count": 0}
        if name not in known and not (name in usual and usual[name] == value):
            raise made.refused(
                name, "continuous streams have no such field here, as all of them are sent at once"
            )

    builder = fields.get("packet")
    if not isinstance(builder, Made) or builder.kind != "STLPktBuilder":
        kind = getattr(builder, "kind", "packet")
        raise ForeignFieldError(kind, "only packets of STLPktBuilder can be read", made.line)
    packet = _packet(builder, folder)
    engine = FieldEngine(packet, remarks)
    engine.run(builder.values(*_BUILDER).get("vm"), builder.line)
    statistics = fields.get("flow_stats")
    if isinstance(statistics, Made) and statistics.kind == "STLFlowLatencyStats":
        remarks["TRex keeps a latency stream's rate constant; here, it grows with the load."] = None
    if fields.get("isg"):
        remarks["All streams start together ('isg' is ignored)."] = None

    # Record: a stream.
    stream = ForeignStream(
        packet, sizes=engine.sizes, steps=engine.steps, name=fields.get("name"), line=made.line
    )
    return stream, fields.get("mode")


def _with_rate(stream: ForeignStream, mode: Any) -> ForeignStream:
    """A stream with its proportion of a mode."""
    kind = getattr(mode, "kind", type(mode).__name__)
    line = getattr(mode, "line", stream.line)
    if mode is None:
        return stream
    if kind in _BURSTS:
        return replace(stream, frames=_frames_of_burst(mode), is_burst=True)
    if kind != "STLTXCont":
        raise ForeignFieldError(kind, "this mode of sending cannot be read", line)

    given = mode.values("pps")
    rates = [(name, value) for name, value in given.items() if value is not None]
    if not rates:
        return stream
    name, value = rates[0]
    if name not in _RATES or len(rates) > 1 or not isinstance(value, (int, float)) or value <= 0:
        raise mode.refused(name, f"{value!r} is not a rate")
    if name == "bps_L2":
        return replace(stream, frames=value / (8.0 * (stream.average_length + FCS_BYTES)))
    return replace(stream, frames=float(value), is_of_bits=_RATES[name])


def _frames_of_burst(mode: Made) -> float:
    """The frames that a stream sends before it ends."""
    given = mode.values(*_BURSTS[mode.kind])
    frames = 1.0
    for name in ("total_pkts", "pkts_per_burst", "count"):
        number = given.get(name, 1)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise mode.refused(name, f"{number!r} is no number")
        frames *= number
    return frames


def _packet(builder: Made, folder: Path) -> Packet:
    fields = builder.values(*_BUILDER)
    known = ("pkt", "vm", "path_relative_to_profile")
    for name, value in fields.items():
        if value is not None and name not in known:
            raise builder.refused(name, "it cannot be read")

    packet = fields.get("pkt")
    if isinstance(packet, str):
        try:
            return read_capture(_beside(folder, packet)).eastward[0].packet
        except (ProfileError, ForeignFieldError) as error:
            raise builder.refused("pkt", f"{packet} cannot be read: {error}".rstrip(".")) from error
    if not isinstance(packet, Packet):
        raise builder.refused(
            "pkt", "only packets of Scapy's layers, and captures beside the file, can be read"
        )
    len(packet)
    return packet


def _beside(folder: Path, name: str) -> bytes:
    """The content of a capture in the profile's own folder, or below it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ProfileError("it is not in the profile's folder")
    return read_input_file(path, ProfileError, _MOST_BYTES)
