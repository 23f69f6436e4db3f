"""The addresses of test traffic: the blocks that RFC 2544 and RFC 5180 reserve for benchmarking, or the lab's own.

West is the side of the path's first TG port, and east is the side of its second one. Generators send from one side's
networks to the other's; routed devices route each side's networks to its TG port.
"""

from dataclasses import dataclass, replace
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from typing import Annotated, Any

from pydantic import BeforeValidator

from lossratio.topology.quantities import ONE_OR_SEVERAL, as_tuple

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address
"""An address of either version of IP."""


def _with_length(address: Any) -> Any:
    if isinstance(address, str) and "/" not in address:
        raise ValueError(f"{address!r} needs the prefix length of its network, e.g. '{address}/24'")
    return address


OwnAddress = Annotated[IPv4Interface | IPv6Interface, BeforeValidator(_with_length)]
Addresses = Annotated[tuple[OwnAddress, ...], BeforeValidator(as_tuple), ONE_OR_SEVERAL]
Gateways = Annotated[tuple[Address, ...], BeforeValidator(as_tuple), ONE_OR_SEVERAL]
Networks = Annotated[tuple[Network, ...], BeforeValidator(as_tuple), ONE_OR_SEVERAL]

_WIDE = IPv4Network("240.0.0.0/4")


@dataclass(frozen=True)
class Side:
    """The networks that are reached through one TG port."""

    ipv4: IPv4Network
    """Its IPv4 network."""
    ipv6: IPv6Network
    """Its IPv6 network."""
    ipv4_offset: int = 0
    """Address n of a profile is address n + offset of the network."""
    ipv6_offset: int = 0
    """The same for IPv6."""
    taken: tuple[Address, ...] = ()
    """Addresses that traffic must not have, such as the gateway's."""
    wide_ipv4: IPv4Network = _WIDE
    """Its part of the unused addresses (RFC 1112, section 4), if more hosts are needed than `ipv4` has."""

    @property
    def wide(self) -> "Side":
        """The same side with these IPv4 addresses."""
        return replace(self, ipv4=self.wide_ipv4, ipv4_offset=0)


WEST = Side(
    IPv4Network("198.18.0.0/16"), IPv6Network("2001:2::/49"), wide_ipv4=IPv4Network("240.0.0.0/6")
)
"""Networks behind the path's first TG port (halves of 198.18.0.0/15, RFC 2544, and of 2001:2::/48, RFC 5180)."""
EAST = Side(
    IPv4Network("198.19.0.0/16"),
    IPv6Network("2001:2:0:8000::/49"),
    wide_ipv4=IPv4Network("244.0.0.0/6"),
)
"""Networks behind the path's second TG port."""


def split_sides(paths: int) -> tuple[tuple[Side, Side], ...]:
    """The networks west and east of each parallel path: equal parts of `WEST` and `EAST`.

    So a router can distinguish the paths.
    """
    bits = (paths - 1).bit_length()
    return tuple(zip(_parts(WEST, bits)[:paths], _parts(EAST, bits)[:paths], strict=True))


def _parts(side: Side, bits: int) -> list[Side]:
    networks = (network.subnets(bits) for network in (side.ipv4, side.ipv6, side.wide_ipv4))
    return [Side(ipv4, ipv6, wide_ipv4=wide) for ipv4, ipv6, wide in zip(*networks, strict=True)]
