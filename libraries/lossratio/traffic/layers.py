"""From a traffic profile to the description of its frames: headers byte by byte, for any generator.

The MAC addresses are left to the generator, which knows its ports' own.
"""

from __future__ import annotations

from lossratio.addressing import Side
from lossratio.errors import TrafficError
from lossratio.traffic.agent.configuration import (
    FCS_BYTES,
    TAG_BYTES,
    ChecksumField,
    FramesSpec,
    LengthField,
    SteppingField,
)
from lossratio.traffic.profile import AddressRange, Ipv4, PortRange, TrafficProfile, Udp

_UDP_PROTOCOL = 17
_MAC_ADDRESSES = bytes(12)
_IPV4_ETHERTYPE = b"\x08\x00"


def frames_spec(profile: TrafficProfile, source: Side, destination: Side) -> FramesSpec:
    """Describes the frames of one direction.

    Args:
        profile: The traffic profile.
        source: The side whose networks the source addresses are taken from.
        destination: The same for the destination addresses.

    Raises:
        TrafficError: If a frame is too small for its headers.
    """
    headers = _Headers()
    headers.add_ethernet()
    headers.add_ipv4(profile.ipv4, source, destination, _UDP_PROTOCOL if profile.udp else profile.ipv4.protocol)
    if profile.udp is not None:
        headers.add_udp(profile.udp)
    least = len(headers.data) + TAG_BYTES + FCS_BYTES
    smallest = min(profile.size_weights)
    if smallest < least:
        raise TrafficError(
            f"Traffic profile {profile.name}: frames of {smallest} bytes are too small, its headers need {least} bytes."
        )
    return FramesSpec(
        header=headers.data.hex(),
        fields=tuple(headers.fields),
        lengths=tuple(headers.lengths),
        checksums=tuple(headers.checksums),
        sizes=tuple(profile.size_weights.items()),
        tag_offset=len(headers.data),
    )


class _Headers:
    """Headers that are put one behind the other."""

    def __init__(self) -> None:
        self.data = b""
        self.fields: list[SteppingField] = []
        self.lengths: list[LengthField] = []
        self.checksums: list[ChecksumField] = []
        self._addresses = (0, 0)

    def add_ethernet(self) -> None:
        self.data += _MAC_ADDRESSES + _IPV4_ETHERTYPE

    def add_ipv4(self, header: Ipv4, source: Side, destination: Side, protocol: int) -> None:
        """RFC 791, without options."""
        start = len(self.data)
        self._addresses = (start + 12, start + 20)
        self.lengths.append(LengthField(start + 2, start))
        self.checksums.append(ChecksumField(start + 10, start, start + 20))
        self.data += bytes([0x45, 0, 0, 0, 0, 0, 0, 0, header.ttl, protocol, 0, 0])
        self._add_addresses(header.source, source)
        self._add_addresses(header.destination, destination)

    def add_udp(self, header: Udp) -> None:
        """RFC 768."""
        start = len(self.data)
        self._add_ports(header.source_port)
        self._add_ports(header.destination_port)
        self.data += bytes(4)
        self.lengths.append(LengthField(start + 4, start))
        self.checksums.append(ChecksumField(start + 6, start, pseudo_header=(*self._addresses, _UDP_PROTOCOL)))

    def _add_addresses(self, addresses: AddressRange, side: Side) -> None:
        self._add_field(4, int(side.ipv4.network_address) + addresses.first, addresses.count)

    def _add_ports(self, ports: PortRange) -> None:
        self._add_field(2, ports.first, ports.count)

    def _add_field(self, width: int, first: int, count: int) -> None:
        if count > 1:
            self.fields.append(SteppingField(len(self.data), width, first, count))
        self.data += bytes(width) if count > 1 else first.to_bytes(width, "big")
