"""The addresses of test traffic: those that RFC 2544 and RFC 5180 set aside for benchmarking, or the lab's own.

West is the side of the path's first TG port, and east is the side of its second one. Generators send from one side's
networks to the other's; routed devices route each side's networks to its TG port.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Annotated, Any

from pydantic import BeforeValidator

from lossratio.topology.quantities import ONE_OR_SEVERAL

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _with_length(value: Any) -> Any:
    for address in _as_tuple(value):
        if isinstance(address, str) and "/" not in address:
            raise ValueError(f"{address!r} needs the prefix length of its network, e.g. '{address}/24'")
    return _as_tuple(value)


Addresses = Annotated[tuple[IPv4Interface | IPv6Interface, ...], BeforeValidator(_with_length), ONE_OR_SEVERAL]
Gateways = Annotated[tuple[Address, ...], BeforeValidator(_as_tuple), ONE_OR_SEVERAL]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_as_tuple), ONE_OR_SEVERAL]

_SHORTEST_PREFIX = {4: 8, 6: 16}


_WIDE = IPv4Network("240.0.0.0/4")


@dataclass(frozen=True)
class Side:
    """The networks that are reached through one TG port."""

    ipv4: IPv4Network
    """Its IPv4 network."""
    ipv6: IPv6Network
    """Its IPv6 network."""
    ipv4_offset: int = 0
    """A profile's address of number n is the one of number n + offset in the network."""
    ipv6_offset: int = 0
    """The same for IPv6."""
    taken: tuple[Address, ...] = ()
    """Addresses that traffic must not have, such as the gateway's."""
    wide_ipv4: IPv4Network = _WIDE
    """Its part of the addresses that nobody has (RFC 1112, section 4), where more hosts are needed than `ipv4` has."""

    @property
    def wide(self) -> "Side":
        """The same side with these IPv4 addresses."""
        return replace(self, ipv4=self.wide_ipv4, ipv4_offset=0)


WEST = Side(IPv4Network("198.18.0.0/16"), IPv6Network("2001:2::/49"), wide_ipv4=IPv4Network("240.0.0.0/6"))
"""Networks behind the path's first TG port (halves of 198.18.0.0/15, RFC 2544, and of 2001:2::/48, RFC 5180)."""

EAST = Side(IPv4Network("198.19.0.0/16"), IPv6Network("2001:2:0:8000::/49"), wide_ipv4=IPv4Network("244.0.0.0/6"))
"""Networks behind the path's second TG port."""


def split_sides(paths: int) -> tuple[tuple[Side, Side], ...]:
    """Networks of parallel paths, west and east of each: equal parts of `WEST` and `EAST`.

    So a router can distinguish the paths.
    """
    bits = (paths - 1).bit_length()
    return tuple(zip(_parts(WEST, bits)[:paths], _parts(EAST, bits)[:paths], strict=True))


def lab_side(
    address: Sequence[IPv4Interface | IPv6Interface],
    gateway: Sequence[Address],
    network: Sequence[Network],
    unused: Side,
) -> Side:
    """The networks behind a port with the lab's own addresses.

    Where a network is routed to the port, traffic has the addresses 1, 2 ... of it. Otherwise the port is a host:
    traffic has its own address, and those that follow it.
    Networks of `unused` stand for versions of IP that the port does not have, and traffic must not have either.
    """
    networks: dict[int, Network] = {4: unused.ipv4, 6: unused.ipv6}
    offsets = {4: 0, 6: 0}
    taken: list[Address] = list(gateway)
    for own in address:
        networks[own.version] = own.network
        offsets[own.version] = int(own.ip) - int(own.network.network_address) - 1
        if own.version == 4 and own.network.prefixlen < own.max_prefixlen - 1:
            taken.append(own.network.broadcast_address)
    for routed in network:
        networks[routed.version], offsets[routed.version] = routed, 0
    ipv4, ipv6 = networks[4], networks[6]
    if not isinstance(ipv4, IPv4Network) or not isinstance(ipv6, IPv6Network):
        raise TypeError(f"{ipv4} and {ipv6} are not one of each version of IP")
    return Side(ipv4, ipv6, offsets[4], offsets[6], tuple(taken), unused.wide_ipv4)


def check_port_addresses(
    address: Sequence[IPv4Interface | IPv6Interface], gateway: Sequence[Address], network: Sequence[Network]
) -> None:
    """Checks that a port's addresses, gateways and networks fit each other."""
    for name, values in (("address", address), ("gateway", gateway), ("network", network)):
        versions = [value.version for value in values]
        if len(set(versions)) < len(versions):
            raise ValueError(f"{name}: give one of each version of IP at most")
    for own in (*(interface.ip for interface in address), *gateway):
        if own.is_multicast or own.is_loopback or own.is_unspecified:
            raise ValueError(f"{own} is no address of a host on a link")
    own_networks = {interface.version: interface for interface in address}
    for hop in gateway:
        asker = own_networks.get(hop.version)
        if asker is None:
            raise ValueError(f"gateway {hop} needs an IPv{hop.version} 'address' of the port, which asks for its MAC")
        if hop == asker.ip or (hop not in asker.network and not hop.is_link_local):
            raise ValueError(f"gateway {hop} is not another address in {asker.network}, the network of {asker}")
    for routed in network:
        if routed.prefixlen < _SHORTEST_PREFIX[routed.version]:
            raise ValueError(
                f"network {routed} is as large as a default route, and test traffic never goes towards one; take "
                f"a network of the lab, /{_SHORTEST_PREFIX[routed.version]} or smaller"
            )
        if routed.is_multicast or routed.is_loopback or routed.is_link_local:
            raise ValueError(f"network {routed} is not routed")


def _parts(side: Side, bits: int) -> list[Side]:
    networks = (network.subnets(bits) for network in (side.ipv4, side.ipv6, side.wide_ipv4))
    return [Side(ipv4, ipv6, wide_ipv4=wide) for ipv4, ipv6, wide in zip(*networks, strict=True)]
