"""A traffic profile in words, as test reports state it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network

from lossratio.topology import EAST, WEST, Side
from lossratio.traffic.profile.headers import Headers, InnerHeaders, Range
from lossratio.traffic.profile.profile import TrafficDirection, TrafficProfile


def frame_format(profile: TrafficProfile) -> str:
    """Protocols of the frames from the outside in, e.g. ``Ethernet II, IPv4, UDP``; each direction's if they differ."""
    return _in_words(profile, lambda direction: _format(direction.headers))


def ip_versions(profile: TrafficProfile) -> dict[str, float]:
    """Shares of the frames by (outermost) IP version."""
    shares: dict[str, float] = {}
    for direction in profile.directions:
        version = "IPv6" if direction.headers.ipv4 is None else "IPv4"
        shares[version] = shares.get(version, 0.0) + direction.load_share / profile.load_factor
    return shares


def addresses(profile: TrafficProfile) -> str:
    """Addresses of the frames, of the first port's direction and, if there is one, of the other's."""
    ways = ((WEST, EAST), (EAST, WEST))
    return "; ".join(
        _addresses(direction.headers, *way) for direction, way in zip(profile.directions, ways, strict=False)
    )


def modifiers(profile: TrafficProfile) -> str:
    """The changes from frame to frame, e.g. ``254 source addresses in turn``; ``none`` if nothing does."""
    return _in_words(profile, lambda direction: _modifiers(direction.headers))


def _in_words(profile: TrafficProfile, describe: Callable[[TrafficDirection], str]) -> str:
    descriptions = [describe(direction) for direction in profile.directions]
    return descriptions[0] if len(set(descriptions)) == 1 else "; back: ".join(descriptions)


def _format(headers: Headers) -> str:
    if headers.vxlan is None:
        return _plain_format(headers)
    return f"{_layers(headers)}, UDP, VXLAN, {_plain_format(headers.vxlan.inner)}"


def _plain_format(headers: InnerHeaders) -> str:
    if headers.udp is not None:
        return f"{_layers(headers)}, UDP"
    return f"{_layers(headers)}, " + ("TCP" if headers.tcp is not None else f"IP protocol {headers.protocol}")


def _layers(headers: InnerHeaders) -> str:
    present = {"IEEE 802.1ad": headers.dot1ad, "IEEE 802.1Q": headers.dot1q, "IPv4": headers.ipv4, "IPv6": headers.ipv6}
    return ", ".join(["Ethernet II", *(name for name, header in present.items() if header is not None)])


def _addresses(headers: Headers, source: Side, destination: Side) -> str:
    outer = _plain_addresses(headers, source, destination)
    if headers.vxlan is None:
        return outer
    return f"{outer}, within {_plain_addresses(headers.vxlan.inner, source, destination)}"


def _plain_addresses(headers: InnerHeaders, source: Side, destination: Side) -> str:
    (_, sources), (_, destinations), *_ = headers.ranges()
    if headers.ipv4 is not None:
        return f"{_span(sources, source.ipv4)} to {_span(destinations, destination.ipv4)}"
    return f"{_span(sources, source.ipv6)} to {_span(destinations, destination.ipv6)}"


def _span(numbers: Range, network: IPv4Network | IPv6Network) -> str:
    first, last = (network.network_address + number for number in (numbers.first, numbers.last))
    return str(first) if first == last else f"{first}-{last}"


def _modifiers(headers: Headers) -> str:
    how = {"increment": "in turn", "random": "in random order"}
    changing = [f"{values.count} {name} {how[values.order]}" for name, values in headers.ranges() if values.count > 1]
    return ", ".join(changing) or "none"
