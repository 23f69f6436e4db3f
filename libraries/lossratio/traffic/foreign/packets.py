"""What profiles of other generators say about frames: layers with their fields, and the fields that step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from lossratio.agent import (
    ETHERNET,
    IPV4,
    IPV6,
    MAC,
    MAC_BYTES,
    MPLS,
    TCP,
    UDP,
    VLAN,
    VXLAN,
    WORD_BYTES,
    Header,
)

_ADDRESSES = {"src": "source address", "dst": "destination address"}
_PORTS = {"sport": "source port", "dport": "destination port"}
_TAG = {"vlan": "VLAN", "prio": "VLAN priority", "type": "ethertype"}
# Table: the layers that frames can have, by their names in Scapy, and Scapy's names of the fields that are read.
LAYERS: Mapping[str, tuple[Header, Mapping[str, str]]] = {
    "Ether": (
        ETHERNET,
        {"dst": "destination MAC address", "src": "source MAC address", "type": "ethertype"},
    ),
    "Dot1AD": (VLAN, _TAG),
    "Dot1Q": (VLAN, _TAG),
    "MPLS": (
        MPLS,
        {"label": "label", "cos": "traffic class", "s": "bottom of stack", "ttl": "time to live"},
    ),
    "IP": (
        IPV4,
        {
            **_ADDRESSES,
            "tos": "type of service",
            "ttl": "time to live",
            "proto": "protocol",
            "version": "version",
            "ihl": "header length",
            "options": "options",
        },
    ),
    "IPv6": (
        IPV6,
        {
            **_ADDRESSES,
            "tc": "traffic class",
            "hlim": "hop limit",
            "nh": "next header",
            "version": "version",
        },
    ),
    "UDP": (UDP, {**_PORTS, "chksum": "checksum"}),
    "TCP": (TCP, {**_PORTS, "flags": "flags"}),
    "VXLAN": (VXLAN, {"vni": "network identifier", "flags": "flags"}),
}
"""The layers that frames can have."""
STEPPING = frozenset((*_ADDRESSES, *_PORTS))
"""The fields that can be different in each frame."""
MOST_LISTED = 4096
"""The maximum number of values of a field that do not follow each other."""
LENGTHS: Mapping[str, int] = {name: header.length for name, (header, _) in LAYERS.items()}
"""Bytes of the layers."""


class ForeignFieldError(ValueError):
    """Something in a foreign profile is not available here.

    Args:
        what: The field, as the profile calls it.
        problem: Why it is not available.
        line: The line of the file, or the number of the captured frame; None: it concerns the whole file.
        way_out: What a user can do, in sentences; empty: the remedy for any field.
    """

    def __init__(self, what: str, problem: str, line: int | None = None, way_out: str = "") -> None:
        super().__init__(f"{what}: {problem}")
        self.what = what
        self.problem = problem
        self.line = line
        self.way_out = way_out

    def at(self, what: str, line: int | None) -> ForeignFieldError:
        """The same error under the name of an outer field, which contains what cannot be used."""
        return ForeignFieldError(what, self.problem, line, self.way_out)


def number_of(value: Any) -> int:
    """The number that stands for a number, an address or a MAC address.

    Raises:
        ValueError: If it is something else.
    """
    if isinstance(value, int):
        return value
    if str(value).count(":") == MAC_BYTES - 1 and "::" not in str(value):
        return MAC.read(str(value))
    return int(ip_address(value))


@dataclass(frozen=True)
class Layer:
    """A header."""

    name: str
    """Its name in Scapy."""
    fields: Mapping[str, Any]
    """The values of the fields that are given."""
    line: int | None = None
    """The line that describes it."""

    def refused(self, field: str, problem: str) -> ForeignFieldError:
        """The error that one of its fields is not available."""
        return ForeignFieldError(f"{self.name}.{field}", problem, self.line)

    @property
    def length(self) -> int:
        """Its bytes.

        Raises:
            ForeignFieldError: If frames cannot have such a header.
        """
        if self.name not in LENGTHS:
            known = ", ".join(LENGTHS)
            raise ForeignFieldError(
                self.name, f"this header is not supported; use {known}", self.line
            )
        return LENGTHS[self.name] + len(self.options)

    @property
    def options(self) -> bytes:
        """IPv4's options, in whole words."""
        given = str(self.fields.get("options") or "").encode("latin-1")
        return given.ljust(len(given) + -len(given) % WORD_BYTES, b"\0")


@dataclass(frozen=True)
class Packet:
    """A packet: headers, and the bytes after them."""

    layers: tuple[Layer, ...]
    """From the outside in."""
    payload: int = 0
    """Number of bytes after the headers."""

    def __len__(self) -> int:
        return sum(layer.length for layer in self.layers) + self.payload


@dataclass(frozen=True, repr=False)
class Made:
    """A call of one of the generator's own classes or functions."""

    kind: str
    """Its name."""
    line: int
    """Its line."""
    arguments: Sequence[Any]
    """The positional arguments."""
    named: Mapping[str, Any]
    """The named arguments."""
    calls: Sequence[Made]
    """The calls of methods of what was made, in their order."""

    def __repr__(self) -> str:
        return f"{self.kind}()"

    def refused(self, argument: str, problem: str) -> ForeignFieldError:
        """The error that one of its arguments is not available."""
        return ForeignFieldError(f"{self.kind}.{argument}", problem, self.line)

    def values(self, *names: str) -> dict[str, Any]:
        """The arguments, by name.

        Args:
            names: The names of arguments in their order.

        Raises:
            ForeignFieldError: If it has more arguments.
        """
        if len(self.arguments) > len(names):
            raise ForeignFieldError(self.kind, "it has arguments without names", self.line)
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


@dataclass(frozen=True)
class Steps:
    """The numbers that a field takes, one in each frame."""

    numbers: Sequence[int]
    """All of them, in their order."""
    is_random: bool = False
    """Whether they come in random order."""


@dataclass(frozen=True)
class ForeignStream:
    """A stream of frames."""

    packet: Packet
    """Its headers and its length without FCS."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Lengths of its frames without FCS, with their weights; empty: all are as long as the packet."""
    steps: Mapping[tuple[int, str], Steps] = field(default_factory=dict)
    """The steps of each field, by the number of its layer and its name."""
    frames: float = 1.0
    """Its proportion of the frames, or of the bits on the line."""
    is_of_bits: bool = False
    """Whether its proportion refers to bits."""
    is_burst: bool = False
    """Whether it ends, and its proportion are the frames until then."""
    name: str | None = None
    """Its name in the profile."""
    line: int | None = None
    """The line that describes it, or the number of the first captured frame."""

    @property
    def weights(self) -> Mapping[int, int]:
        """Lengths of its frames without FCS, with their weights."""
        return self.sizes or {len(self.packet): 1}

    @property
    def average_length(self) -> float:
        """Average length of its frames without FCS."""
        total = sum(length * weight for length, weight in self.weights.items())
        return total / sum(self.weights.values())


@dataclass(frozen=True)
class ForeignProfile:
    """A profile of another generator, as far as it can be used here."""

    eastward: tuple[ForeignStream, ...]
    """The streams of the first port."""
    westward: tuple[ForeignStream, ...]
    """The streams of the second port; empty: it sends nothing."""
    remarks: tuple[str, ...] = ()
    """What is different here, in sentences."""
