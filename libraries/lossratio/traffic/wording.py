"""A traffic profile in words, as test reports state it."""

from __future__ import annotations

from ipaddress import IPv4Address

from lossratio.addressing import EAST, WEST
from lossratio.traffic.profile import AddressRange, PortRange, TrafficProfile


def frame_format(profile: TrafficProfile) -> str:
    """Protocols of the frames from the outside in, e.g. ``Ethernet II, IPv4, UDP``."""
    return "Ethernet II, IPv4, " + ("UDP" if profile.udp else f"IP protocol {profile.ipv4.protocol}")


def ip_versions(profile: TrafficProfile) -> dict[str, float]:
    """Shares of the frames by IP version."""
    return {"IPv4": 1.0}


def addresses(profile: TrafficProfile) -> str:
    """Addresses of the frames, of the first port's direction and, if there is one, of the other's."""
    ways = [(WEST, EAST), (EAST, WEST)][: profile.transmitting_directions]
    return "; ".join(
        f"{_span(profile.ipv4.source, int(source.ipv4.network_address))} to "
        f"{_span(profile.ipv4.destination, int(destination.ipv4.network_address))}"
        for source, destination in ways
    )


def modifiers(profile: TrafficProfile) -> str:
    """What changes from frame to frame, e.g. ``254 source addresses in turn``; ``none`` if nothing does."""
    ranges: dict[str, AddressRange | PortRange] = {
        "source addresses": profile.ipv4.source,
        "destination addresses": profile.ipv4.destination,
    }
    if profile.udp is not None:
        ranges |= {"source ports": profile.udp.source_port, "destination ports": profile.udp.destination_port}
    changing = [f"{each.count} {name} in turn" for name, each in ranges.items() if each.count > 1]
    return ", ".join(changing) or "none"


def _span(addresses: AddressRange, network: int) -> str:
    first, last = (IPv4Address(network + addresses.first + step) for step in (0, addresses.count - 1))
    return str(first) if first == last else f"{first}-{last}"
