"""The addresses of test traffic: those that RFC 2544 and RFC 5180 set aside for benchmarking, and no others.

West is the side of the path's first TG port, east that of its second one. Generators send from one side's networks to
the other's; routed devices route each side's networks to its TG port.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network


@dataclass(frozen=True)
class Side:
    """The networks that are reached through one TG port."""

    ipv4: IPv4Network
    ipv6: IPv6Network


WEST = Side(IPv4Network("198.18.0.0/16"), IPv6Network("2001:2::/49"))
"""Networks behind the path's first TG port (halves of 198.18.0.0/15, RFC 2544, and of 2001:2::/48, RFC 5180)."""

EAST = Side(IPv4Network("198.19.0.0/16"), IPv6Network("2001:2:0:8000::/49"))
"""Networks behind the path's second TG port."""


def split_sides(paths: int) -> tuple[tuple[Side, Side], ...]:
    """Networks of parallel paths, west and east of each: equal parts of `WEST` and `EAST`.

    So a router can tell the paths apart.

    Args:
        paths: How many paths there are.
    """
    bits = (paths - 1).bit_length()
    return tuple(zip(_parts(WEST, bits)[:paths], _parts(EAST, bits)[:paths], strict=True))


def _parts(side: Side, bits: int) -> list[Side]:
    networks = zip(side.ipv4.subnets(bits), side.ipv6.subnets(bits), strict=True)
    return [Side(ipv4, ipv6) for ipv4, ipv6 in networks]
