"""Streams in the notation of TRex's HLTAPI: names of arguments instead of packets and instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lossratio.agent import ETHERNET_HEADER_BYTES, FCS_BYTES, VLAN
from lossratio.traffic.foreign.packets import (
    ForeignFieldError,
    ForeignStream,
    Layer,
    Made,
    Packet,
    Steps,
    number_of,
)

# Table: the arguments that are read, with TRex's defaults. A layer's argument has the name of its field in Scapy.
_GENERAL: Mapping[str, Any] = {
    "name": None,
    "direction": 0,
    "transmit_mode": "continuous",
    "pkts_per_burst": 1,
    "burst_loop_count": 1,
    "length_mode": "fixed",
    "frame_size": 64,
    "frame_size_min": 64,
    "frame_size_max": 64,
    "frame_size_step": 1,
    "l3_length": None,
    "l3_length_min": 110,
    "l3_length_max": 238,
    "l3_length_step": 1,
    "l3_protocol": None,
    "l4_protocol": None,
}
_IMIX = {1: (64, 7), 2: (570, 4), 3: (1518, 1), 4: (9230, 0)}
"""Sizes and their weights."""
_RATES = {"rate_pps": "pps", "rate_bps": "bps_L2", "rate_percent": "percentage"}
_USUAL_RATE = {"percentage": 10.0}
# Table: TRex's classes for the modes of sending, the type of their numbers, and their arguments.
_MODES: Mapping[str, tuple[str, Callable[[Any], float], Mapping[str, str]]] = {
    "continuous": ("STLTXCont", float, _RATES),
    "single_burst": ("STLTXMultiBurst", int, {"pkts_per_burst": "pkts_per_burst"}),
    "multi_burst": (
        "STLTXMultiBurst",
        int,
        {"pkts_per_burst": "pkts_per_burst", "burst_loop_count": "count"},
    ),
}
_TAGS = {"vlan_id": ("vlan", 0), "vlan_user_priority": ("prio", 1)}
_IP = {
    "ipv4": {
        "ip_src_addr": ("src", "0.0.0.0"),  # noqa: S104 (an address of a packet)
        "ip_dst_addr": ("dst", "192.0.0.1"),
        "ip_ttl": ("ttl", 64),
    },
    "ipv6": {
        "ipv6_src_addr": ("src", "fe80::12"),
        "ipv6_dst_addr": ("dst", "fe80::22"),
        "ipv6_hop_limit": ("hlim", 64),
        "ipv6_traffic_class": ("tc", 0),
        "ipv6_next_header": ("nh", None),
    },
}
_TRANSPORT = {
    "udp": {"udp_src_port": ("sport", 1024), "udp_dst_port": ("dport", 80)},
    "tcp": {"tcp_src_port": ("sport", 1024), "tcp_dst_port": ("dport", 80)},
}
_NAMES = {"ipv4": "IP", "ipv6": "IPv6", "udp": "UDP", "tcp": "TCP"}
_FLAGS = {f"tcp_{name}_flag": name[0].upper() for name in ("fin", "syn", "rst", "psh", "ack")}
_STEPPED = {
    "mac_src": "src",
    "mac_dst": "dst",
    "ip_src": "src",
    "ip_dst": "dst",
    "ipv6_src": "src",
    "ipv6_dst": "dst",
    "tcp_src_port": "sport",
    "tcp_dst_port": "dport",
    "udp_src_port": "sport",
    "udp_dst_port": "dport",
}
"""The beginnings of arguments for fields that can step, with Scapy's names of these fields."""
_LAYERS_OF = {"mac": ("Ether",), "ip": ("IP",), "ipv6": ("IPv6",), "tcp": ("TCP",), "udp": ("UDP",)}
_MAC2 = (f"mac_{end}2{part}" for end in ("src", "dst") for part in ("", "_mode", "_count", "_step"))
_WITHOUT_DIFFERENCE = frozenset(
    (
        "consistent_random",
        "disable_flow_stats",
        "flow_stats_id",
        "split_by_cores",
        "inter_burst_gap",
    )
).union(
    ("ignore_macs", "mac_src", "mac_dst", "vlan_cfi", "vlan_protocol_tag_id", *_MAC2),
    ("mode", "port_handle", "stream_id", "save_to_yaml"),
)
_ADDRESS_BITS, _PORT_BITS = 32, 16


def read_hlt(made: Made, remarks: dict[str, None]) -> tuple[ForeignStream, Made]:
    """A stream that STLHltStream describes, and its mode of sending, as in a STLStream.

    Args:
        made: The call.
        remarks: Takes what is different here, in sentences.

    Raises:
        ForeignFieldError: If something in it cannot be used here.
    """
    try:
        hlt = _Hlt(made, remarks)
        return hlt.stream(), hlt.mode()
    except (ValueError, TypeError) as error:
        if isinstance(error, ForeignFieldError):
            raise
        raise ForeignFieldError(made.kind, f"an argument is wrong: {error}", made.line) from error


class _Hlt:
    def __init__(self, made: Made, remarks: dict[str, None]) -> None:
        self._made = made
        self._remarks = remarks
        self._given = dict(made.values())
        self._known: set[str] = set()
        if int(self._value("direction")):
            self._swap()

    def stream(self) -> ForeignStream:
        """The stream."""
        layers = tuple(self._layers())
        packet = Packet(layers)
        sizes = self._sizes(len(packet))
        packet = Packet(layers, max(sizes) - len(packet))
        steps = dict(self._steps(layers))
        for name in self._given:
            if name not in self._known | _GENERAL.keys() | _RATES.keys() | _WITHOUT_DIFFERENCE:
                raise self._made.refused(name, "the argument cannot be used here")

        # Record: the stream.
        return ForeignStream(
            packet, sizes=sizes, steps=steps, name=self._value("name"), line=self._made.line
        )

    def mode(self) -> Made:
        """How its frames are sent: without end, or until there were so many."""
        mode = self._value("transmit_mode")
        kind, read, names = _MODES.get(mode, ("", float, _RATES))
        given = [name for name in names if self._value(name) is not None]
        if not kind or (names is _RATES and len(given) > 1):
            raise self._made.refused("transmit_mode", f"{mode!r} with {given} is not supported")
        named = {names[name]: read(self._value(name)) for name in given}
        return replace(self._made, kind=kind, arguments=(), named=named or _USUAL_RATE)

    def _value(self, name: str, usual: Any = None) -> Any:
        """The value of an argument, or else what is usual, in this stream or in general."""
        self._known.add(name)
        value = self._given.get(name)
        return _GENERAL.get(name, usual) if value is None else value

    def _swap(self) -> None:
        """Exchanges the addresses of both ends."""
        self._given = {
            name.replace("_src_", "_\0_").replace("_dst_", "_src_").replace("_\0_", "_dst_")
            if name.startswith(("ip_", "ipv6_"))
            else name: value
            for name, value in self._given.items()
        }
        version = _IP.get(self._value("l3_protocol"), {})
        ends = [name for name in version if name.endswith("_addr")]
        for name, other in zip(ends, reversed(ends), strict=True):
            self._given.setdefault(name, version[other][1])

    def _layers(self) -> Iterator[Layer]:
        yield Layer("Ether", {}, self._made.line)
        for tag in self._tags():
            yield Layer("Dot1Q", tag, self._made.line)
        for argument, table in (("l3_protocol", _IP), ("l4_protocol", _TRANSPORT)):
            protocol = self._value(argument)
            if protocol is None:
                continue
            if protocol not in table:
                raise self._made.refused(argument, f"{protocol!r} is not supported")

            fields = {
                field: self._value(name, usual) for name, (field, usual) in table[protocol].items()
            }
            if protocol == "ipv4":
                fields["tos"] = self._value("ip_dscp", 0) << 2
            if protocol == "tcp":
                fields["flags"] = "".join(
                    letter for name, letter in _FLAGS.items() if self._value(name, 0)
                )
                self._remarks["TCP's numbers and window are the generator's own."] = None

            given = {name: value for name, value in fields.items() if value is not None}
            yield Layer(_NAMES[protocol], given, self._made.line)

    def _tags(self) -> Iterator[dict[str, Any]]:
        """The fields of each VLAN tag."""
        names = [name for name in self._given if name.startswith("vlan_")]
        listed = {name: _listed(self._given[name]) for name in names}

        encapsulation = self._value("l2_encap", "ethernet_ii")
        if encapsulation not in ("ethernet_ii", "ethernet_ii_vlan"):
            raise self._made.refused("l2_encap", f"{encapsulation!r} is not supported")
        least = int(encapsulation == "ethernet_ii_vlan")
        for place in range(max(map(len, listed.values()), default=least)):
            own = {name: values[place] for name, values in listed.items() if place < len(values)}
            if int(str(own.get("vlan_protocol_tag_id") or hex(VLAN.number)), 16) != VLAN.number:
                raise self._made.refused(
                    "vlan_protocol_tag_id", "only the EtherType 0x8100 is supported"
                )
            for kind in ("vlan_id", "vlan_priority"):
                mode, count = own.get(f"{kind}_mode", "fixed"), int(own.get(f"{kind}_count", 1))
                if mode != "fixed" and (count > 1 or mode == "random"):
                    raise self._made.refused(f"{kind}_mode", "it must be the same in all frames")
                self._known |= {f"{kind}_{part}" for part in ("mode", "count", "step")}
            yield {field: int(own.get(name, usual)) for name, (field, usual) in _TAGS.items()}
            self._known |= _TAGS.keys()
            if int(own.get("vlan_cfi", 1)):
                self._remarks["VLAN frames are not marked as eligible to be dropped (DEI)."] = None

    def _sizes(self, least: int) -> dict[int, int]:
        """Lengths without FCS, with their weights."""
        mode = self._value("length_mode")
        if mode == "imix":
            weights = {}
            for number, (size, weight) in _IMIX.items():
                size = int(self._value(f"l3_imix{number}_size", size)) - FCS_BYTES
                weight = int(self._value(f"l3_imix{number}_ratio", weight))
                if weight:
                    weights[size] = weight
            return weights
        if mode == "auto":
            return {least: 1}

        if mode == "fixed":
            is_of_ip = "frame_size" not in self._given and "l3_length" in self._given
            length = int(self._value("l3_length" if is_of_ip else "frame_size"))
            return {length + (ETHERNET_HEADER_BYTES if is_of_ip else -FCS_BYTES): 1}
        if mode not in ("increment", "decrement", "random"):
            raise self._made.refused("length_mode", f"{mode!r} is not supported")
        is_of_ip = not self._given.keys() & {"frame_size_min", "frame_size_max"}
        kind, more = (
            ("l3_length", ETHERNET_HEADER_BYTES) if is_of_ip else ("frame_size", -FCS_BYTES)
        )
        first, last, step = (int(self._value(f"{kind}_{part}")) for part in ("min", "max", "step"))
        return dict.fromkeys(range(first + more, last + more + 1, step), 1)

    def _steps(self, layers: Sequence[Layer]) -> Iterator[tuple[tuple[int, str], Steps]]:
        for argument, field in _STEPPED.items():
            places = [
                place
                for place, layer in enumerate(layers)
                if layer.name in _LAYERS_OF[argument.partition("_")[0]]
            ]
            mode = self._value(f"{argument}_mode", "increment" if "port" in argument else "fixed")
            count = int(self._value(f"{argument}_count", 1))
            step = number_of(self._value(f"{argument}_step", 1)) & 0xFFFFFFFF
            if not places or mode == "fixed" or (count == 1 and mode != "random"):
                continue
            bits = _PORT_BITS if "port" in argument else _ADDRESS_BITS
            first = number_of(layers[places[0]].fields.get(field, 1)) & ((1 << bits) - 1)
            if argument.startswith("mac"):
                # Only the distances count.
                first = count * step
            yield (places[0], field), self._numbers(argument, mode, first, count, step, bits)

    def _numbers(
        self, argument: str, mode: str, first: int, count: int, step: int, bits: int
    ) -> Steps:
        if mode == "random":
            return Steps(range(1, 1 << bits), is_random=True)
        if mode not in ("increment", "decrement"):
            raise self._made.refused(f"{argument}_mode", f"{mode!r} is not supported")
        if mode == "decrement":
            step = -step
        numbers: Sequence[int] = range(first, first + count * step, step)
        if not 0 <= min(numbers) <= max(numbers) < 1 << bits:
            numbers = [number % (1 << bits) for number in numbers]
        return Steps(numbers)


def _listed(value: Any) -> list[Any]:
    """The values of all VLAN tags in an argument."""
    if isinstance(value, str):
        return value.strip("{} ").split()
    return list(value) if isinstance(value, (list, tuple)) else [value]
