"""The supported part of an Open Traffic Generator configuration: one table of fields, and the flows.

A field is refused by name if the table does not have it, or does not allow its value.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lossratio.agent import FCS_BYTES, MAC, TAG_BYTES, Configuration, Direction, HeaderField
from lossratio.traffic import SMALLEST_FRAME
from lossratio.values import L1_OVERHEAD
from lossratio_otg.headers import HEADERS, MOST_LISTED
from lossratio_otg.models import checked
from lossratio_otg.packets import FieldError, read_packet

MOST_FLOWS = 16
"""The maximum number of flows of a configuration, each of which has its own sender."""
MOST_SECONDS = 7 * 86_400.0
"""The longest duration of flows with an end, in seconds."""
LARGEST_FRAME = 65_535
"""The largest size of a frame, in bytes with FCS; the limit of a port is its MTU."""
_MOST_SIZES = 32
_LARGEST_WEIGHT = 1000
_FASTEST = 1e10
_MOST_VALUES = 16 * MOST_LISTED
_MOST_ENTRIES = 64
_MOST_HEADERS = 8
_MOST_LEVELS = 3
_ENTRIES = {"flows": MOST_FLOWS, "packet": _MOST_HEADERS, "values": MOST_LISTED}
ANY, IGNORED = object(), object()
"""Words of the table: any value that the models allow; a field that is accepted with a warning."""
_LAYER1 = ("media", "promiscuous", "mtu", "ieee_media_defaults", "auto_negotiate", "auto_negotiation", "flow_control")
_SPEED = re.compile(r"speed_(\d+)_(?:[fh]d_)?([mg])bps")
_COUNTER = {"start": ANY, "step": ANY, "count": ANY}
_PATTERN = {"choice": ANY, "value": ANY, "values": [ANY], "increment": _COUNTER, "decrement": _COUNTER}
_ADDRESS = {"choice": ("auto", "value"), "value": ANY, "auto": ANY}
_COMPUTED = {"choice": ("auto", "generated"), "auto": ANY, "generated": ("good",)}
_NEXT = {"choice": ("auto", "value"), "auto": ANY, "value": ANY}
_NO_MAC = "00:00:00:00:00:00"
_GAPS = {"gap": (12,), "delay": {"choice": ANY, "bytes": (0,), "nanoseconds": (0,), "microseconds": (0,)}}


def _header(fields: Iterable[tuple[str, HeaderField]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, field in fields:
        *parents, name = path.split(".")
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {"choice": ANY})
        of_given = _ADDRESS if field.notation is MAC else _PATTERN
        inner[name] = {None: of_given, "next": _NEXT}.get(field.computed, _COMPUTED)
    return tree


# Table: the supported part of OTG's model.
CONFIG: Mapping[str, Any] = {
    "ports": [{"name": ANY, "location": ANY}],
    "layer1": [{"name": ANY, "port_names": ANY, "speed": ANY, **dict.fromkeys(_LAYER1, IGNORED)}],
    "captures": [{"name": ANY, "port_names": ANY, "format": ("pcap",), "overwrite": (True,), "packet_size": ANY}],
    "options": {"port_options": {"location_preemption": IGNORED, "data_integrity": (False,)}},
    "flows": [
        {
            "name": ANY,
            "tx_rx": {"choice": ("port",), "port": {"tx_name": ANY, "rx_name": ANY, "rx_names": ANY}},
            "packet": [{"choice": ANY, **{kind: _header(model.fields) for kind, model in HEADERS.items()}}],
            "size": {
                "choice": ("fixed", "weight_pairs"),
                "fixed": ANY,
                "weight_pairs": {"choice": ("custom",), "custom": [{"size": ANY, "weight": ANY}]},
            },
            "rate": {"choice": ("percentage", "pps"), "pps": ANY, "percentage": ANY},
            "duration": {
                "choice": ("continuous", "fixed_packets", "fixed_seconds"),
                "fixed_packets": {"packets": ANY, **_GAPS},
                "fixed_seconds": {"seconds": ANY, **_GAPS},
                "continuous": _GAPS,
            },
            "metrics": {
                "enable": ANY,
                "loss": ANY,
                "timestamps": (False,),
                "latency": {"enable": ANY, "mode": ("store_forward",)},
            },
        }
    ],
}
"""The fields of a configuration."""
CONTROL_STATE: Mapping[str, Any] = {
    "choice": ("port", "traffic"),
    "traffic": {"choice": ("flow_transmit",), "flow_transmit": {"state": ("start", "stop"), "flow_names": ANY}},
    "port": {"choice": ("capture",), "capture": {"state": ("start", "stop"), "port_names": ANY}},
}
"""The fields of a request that starts or stops flows or captures."""
CAPTURE: Mapping[str, Any] = {"port_name": ANY, "packets": {"choice": ("all",)}}
"""The fields of a request for captured frames."""
METRICS: Mapping[str, Any] = {
    "choice": ("flow", "port"),
    "port": {"port_names": ANY, "column_names": ANY},
    "flow": {"flow_names": ANY, "metric_names": ANY},
}
"""The fields of a request for metrics."""


def read_request(kind: str, sent: Any, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A request in the form of a model, e.g. ``Config``, and a warning of each field that changes nothing.

    Raises:
        FieldError: If the table does not have a field, or does not allow its value.
        ModelError: If it does not fit the model.
    """
    # The models take long to examine many parts, and drop unknown fields.
    list(check_fields(sent, table))
    model = checked(kind, sent)
    return model, list(check_fields(model, table))


def check_fields(data: Any, table: Any, where: str = "") -> Iterator[str]:
    """Checks that a table has all fields of a request, and their values; warns of each field that changes nothing.

    Raises:
        FieldError: If a field or a value is not supported.
    """
    if table in (ANY, IGNORED) and _is_nested(data, _MOST_LEVELS):
        raise FieldError(where, f"its lists and objects are nested in more than {_MOST_LEVELS} levels")
    if table is IGNORED:
        yield f"{where}: accepted with a warning because it has no effect here"
    elif isinstance(table, tuple):
        if data not in table:
            raise FieldError(where, f"{str(data)[:100]!r} is not supported; possible: {', '.join(map(str, table))}")
    elif table is not ANY and not isinstance(data, type(table)):
        raise FieldError(where or "the request", f"it must be {'a list' if isinstance(table, list) else 'an object'}")
    elif isinstance(table, list):
        most = _ENTRIES.get(where.rpartition(".")[2], _MOST_ENTRIES)
        if len(data) > most:
            raise FieldError(where, f"at most {most} are supported, not {len(data)}")
        for number, part in enumerate(data):
            yield from check_fields(part, table[0], f"{where}[{number}]")
    elif isinstance(table, dict):
        for name, part in data.items():
            place = f"{where}.{name}".lstrip(".")
            if part == []:
                continue
            if name not in table:
                raise FieldError(place[:200], "this is not supported")
            yield from check_fields(part, table[name], place)


def _is_nested(data: Any, most: int) -> bool:
    """Whether lists and objects are nested in more than this many levels."""
    if not isinstance(data, (list, dict)):
        return False
    parts = data.values() if isinstance(data, dict) else data
    return most == 0 or any(_is_nested(part, most - 1) for part in parts)


@dataclass(frozen=True)
class Flow:
    """A flow of a configuration."""

    direction: Direction
    """Its frames and interfaces, with its name."""
    source: str
    """Name of the port that it leaves from."""
    sink: str | None
    """Name of the port that it comes back to; None: not stated, so its frames are only sent."""
    rate: float
    """Frames per second."""
    packets: int | None
    """How many frames it has; None: as many as are due in its duration."""
    duration: float | None
    """Seconds of traffic; None: until it is stopped."""
    wants_loss: bool
    """Whether its metrics have the loss."""
    wants_latency: bool
    """Whether its latency is measured."""


def interfaces_of(config: Mapping[str, Any], locations: Mapping[str, str]) -> dict[str, str]:
    """The interfaces by the names of a configuration's ports, from those by their locations.

    Raises:
        FieldError: If there is no such location.
    """
    interfaces = {}
    for number, port in enumerate(config.get("ports", ())):
        location = port.get("location")
        if location not in locations:
            there = ", ".join(locations)
            raise FieldError(
                f"ports[{number}].location", f"there is no port {str(location)[:100]!r}; there are {there}"
            )
        interfaces[port["name"]] = locations[location]
    return interfaces


def read_flows(config: Mapping[str, Any], interfaces: Mapping[str, str]) -> tuple[Flow, ...]:
    """The flows of a configuration whose fields were checked.

    Args:
        config: The configuration.
        interfaces: The interfaces by the names of their ports.

    Raises:
        FieldError: If the flows cannot be sent like that.
    """
    ports = [port["name"] for port in config.get("ports", ())]
    models = config.get("flows", ())
    for what, names in (("ports", ports), ("flows", [flow["name"] for flow in models])):
        if len(set(names)) < len(names):
            raise FieldError(what, "two of them have the same name; give each its own name")

    speeds = {name: layer1.get("speed", "") for layer1 in config.get("layer1", ()) for name in layer1["port_names"]}
    flows = tuple(_flow(model, interfaces, speeds, f"flows[{number}]") for number, model in enumerate(models))
    if sum(len(field.values) for flow in flows for field in flow.direction.frames.fields) > _MOST_VALUES:
        raise FieldError(
            "flows", f"their fields list more than {_MOST_VALUES:,} values; use fewer, or fields that count up by 1"
        )

    for number, flow in enumerate(flows):
        if flow.wants_latency and (flow.duration is None or flow.sink is None):
            raise FieldError(
                f"flows[{number}].metrics.latency",
                "latency can be measured only for flows that end by themselves (fixed_packets or fixed_seconds) "
                "and have a port in rx_names",
            )

    return flows


def _flow(model: Mapping[str, Any], interfaces: Mapping[str, str], speeds: Mapping[str, str], where: str) -> Flow:
    tx_rx = model["tx_rx"].get("port", {})
    receivers = list(tx_rx.get("rx_names", ()))
    if "rx_name" in tx_rx:
        receivers.append(tx_rx["rx_name"])
    if len(receivers) > 1:
        raise FieldError(
            f"{where}.tx_rx.port.rx_names", f"there are {len(receivers)}, but at most one port can receive a flow"
        )

    ends = [("tx_name", tx_rx.get("tx_name")), *(("rx_names", each) for each in receivers)]
    for name, port in ends:
        if port not in interfaces:
            raise FieldError(f"{where}.tx_rx.port.{name}", f"there is no port {str(port)[:100]!r}")

    headers = read_packet(model.get("packet", ()), f"{where}.packet")
    least = max(SMALLEST_FRAME, len(headers.data) + TAG_BYTES + FCS_BYTES)
    sizes = tuple(_sizes(model.get("size", {}), least, f"{where}.size"))
    rate = _rate(model.get("rate", {}), sizes, speeds.get(tx_rx["tx_name"], ""), f"{where}.rate")
    packets, seconds = _duration(model.get("duration", {}), rate, f"{where}.duration")
    metrics = model.get("metrics", {})

    sink = next(iter(receivers), None)
    ethernet = model["packet"][0].get("ethernet", {})
    destination_mac = ethernet.get("dst", {}).get("value")
    if sink is None:
        destination_mac = destination_mac or _NO_MAC

    # Record: what is sent. Frames that come back to where they were sent belong to a flow that nobody receives.
    direction = Direction(
        name=model["name"],
        transmit=interfaces[tx_rx["tx_name"]],
        receive=interfaces[sink or tx_rx["tx_name"]],
        destination_mac=destination_mac,
        source_mac=ethernet.get("src", {}).get("value"),
        frames=headers.spec(sizes),
    )
    return Flow(
        direction,
        source=tx_rx["tx_name"],
        sink=sink,
        rate=rate,
        packets=packets,
        duration=seconds,
        wants_loss=metrics.get("loss", False),
        wants_latency=metrics.get("latency", {}).get("enable", False),
    )


def _duration(model: Mapping[str, Any], rate: float, where: str) -> tuple[int | None, float | None]:
    """How many frames, if stated, and for how many seconds, if there is an end."""
    packets = seconds = None
    choice = model.get("choice", "continuous")
    if choice == "fixed_packets":
        packets = model.get("fixed_packets", {}).get("packets", 1)
        seconds = packets / rate
    elif choice == "fixed_seconds":
        seconds = model.get("fixed_seconds", {}).get("seconds", 1.0)
    if seconds is not None and not 0.0 < seconds <= MOST_SECONDS:
        field = "fixed_seconds.seconds" if packets is None else "fixed_packets.packets"
        raise FieldError(f"{where}.{field}", f"flows must last longer than 0 s, and at most {MOST_SECONDS:,.0f} s")
    return packets, seconds


def _rate(model: Mapping[str, Any], sizes: Sequence[tuple[int, int]], speed: str, where: str) -> float:
    choice = model.get("choice", "pps")
    if choice == "pps":
        # Numbers of 64 bits are text, as in all JSON of Protocol Buffers.
        rate = float(model.get("pps", 1000))
    else:
        found = _SPEED.fullmatch(speed)
        share = float(model.get("percentage", 100.0)) / 100.0
        if found is None or not share > 0.0:
            text = "give a percentage above 0, and the port's 'speed' in 'layer1'"
            raise FieldError(f"{where}.percentage", text)
        bits = int(found[1]) * (1e9 if found[2] == "g" else 1e6)
        frame = sum(size * weight for size, weight in sizes) / sum(weight for _, weight in sizes)
        rate = share * bits / (8 * (frame + L1_OVERHEAD))

    if not 1.0 <= rate <= _FASTEST:
        raise FieldError(f"{where}.{choice}", f"it must be 1 to {_FASTEST:,.0f} frames per second")
    return rate


def _sizes(model: Mapping[str, Any], least: int, where: str) -> Iterator[tuple[int, int]]:
    if model.get("choice", "fixed") == "fixed":
        yield _size(model.get("fixed", 64), least, f"{where}.fixed"), 1
        return

    pairs = model.get("weight_pairs", {}).get("custom", ())
    for number, pair in enumerate(pairs):
        place = f"{where}.weight_pairs.custom[{number}]"
        weight = pair.get("weight", 1.0)
        if weight not in range(1, _LARGEST_WEIGHT + 1):
            raise FieldError(f"{place}.weight", f"it must be a whole number from 1 to {_LARGEST_WEIGHT}")
        yield _size(pair.get("size", 64), least, f"{place}.size"), int(weight)

    if not 1 <= len(pairs) <= _MOST_SIZES:
        raise FieldError(f"{where}.weight_pairs.custom", f"1 to {_MOST_SIZES} sizes are supported, not {len(pairs)}")


def _size(size: int, least: int, where: str) -> int:
    if not least <= size <= LARGEST_FRAME:
        raise FieldError(
            where,
            f"it must be {least} to {LARGEST_FRAME:,} bytes, because a frame holds its headers, {TAG_BYTES} "
            "bytes of this tester, and the FCS",
        )
    return size


def groups_of(flows: Sequence[Flow]) -> list[tuple[Flow, ...]]:
    """Flows that can be sent together because they last equally long and are measured in the same way."""
    groups: dict[object, list[Flow]] = {}
    for flow in flows:
        duration = None if flow.duration is None else round(flow.duration, 9)
        groups.setdefault((duration, flow.packets is None, flow.wants_latency), []).append(flow)
    return [tuple(group) for group in groups.values()]


def configuration_of(flows: Sequence[Flow], settle_time: float) -> Configuration:
    """The configuration of a generator for flows that are sent together."""
    fastest = max(flow.rate for flow in flows)
    directions = [replace(flow.direction, load_share=flow.rate / fastest) for flow in flows]
    return Configuration(
        ports=tuple(dict.fromkeys(port for each in directions for port in (each.transmit, each.receive))),
        directions=tuple(directions),
        settle_time=settle_time,
        examines=False,
        # Any addresses are possible, so the node must forward nothing.
        networks=("0.0.0.0/0", "::/0"),
    )
