"""The addresses of test traffic: those that RFC 2544 and RFC 5180 set aside for benchmarking, and no others.

West is the side of the path's first TG port, east that of its second one. Generators send from one side's networks to
the other's; routed devices route each side's networks to its TG port.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Any

Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Side:
    """The networks that are reached through one TG port."""

    ipv4: IPv4Network
    ipv6: IPv6Network


WEST = Side(IPv4Network("198.18.0.0/16"), IPv6Network("2001:2::/49"))
"""Networks behind the path's first TG port (halves of 198.18.0.0/15, RFC 2544, and of 2001:2::/48, RFC 5180)."""

EAST = Side(IPv4Network("198.19.0.0/16"), IPv6Network("2001:2:0:8000::/49"))
"""Networks behind the path's second TG port."""

_WORLDS: tuple[tuple[Network, Network], ...] = (
    (IPv4Network("0.0.0.0/0"), IPv4Network("198.18.0.0/15")),
    (IPv6Network("::/0"), IPv6Network("2001:2::/48")),
)
"""All addresses, and those for benchmarking."""


def split_sides(paths: int) -> tuple[tuple[Side, Side], ...]:
    """Networks of parallel paths, west and east of each: equal parts of `WEST` and `EAST`.

    So a router can distinguish the paths.

    Args:
        paths: How many paths there are.
    """
    bits = (paths - 1).bit_length()
    return tuple(zip(_parts(WEST, bits)[:paths], _parts(EAST, bits)[:paths], strict=True))


def default_networks(networks: Collection[Network]) -> set[Network]:
    """Which of the networks that a node has routes to are a default route, in one or in several pieces.

    These are networks of similar size that together are all addresses, such as 0.0.0.0/1 and 128.0.0.0/1, and each one
    with more than the networks for benchmarking that would carry test traffic, such as 2000::/3. The traffic agent has
    the same rule: it cannot import this one.
    """
    default: set[Network] = set()
    for everywhere, test in _WORLDS:
        own: list[Any] = [network for network in networks if network.version == everywhere.version]
        default.update(network for network in own if network != test and network.supernet_of(test))
        # Below one set that is everything there may be another one, of smaller networks, that goes first.
        shortest = 0
        for length in sorted({network.prefixlen for network in own}):
            pieces = [network for network in own if shortest <= network.prefixlen <= length]
            if list(collapse_addresses(pieces)) == [everywhere]:
                default.update(pieces)
                shortest = length + 1
    return default


def _parts(side: Side, bits: int) -> list[Side]:
    networks = zip(side.ipv4.subnets(bits), side.ipv6.subnets(bits), strict=True)
    return [Side(ipv4, ipv6) for ipv4, ipv6 in networks]
