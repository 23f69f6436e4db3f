"""Sizes of frames with a tunnel in them (draft-vpolak-mkonstan-bmwg-mlrsearch-02, terminology).

A frame's size is that of the Ethernet frame on the wire, VLAN tags and frame check sequence (FCS) included; preamble
and interframe gap are not in it. All sizes are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.errors import SearchError

ETHERNET_HEADER = 14
VLAN_TAG = 4
FCS = 4


@dataclass(frozen=True)
class Tunnel:
    """The bytes that a tunnel adds around an inner packet.

    Attributes:
        name: Its name.
        header: Bytes between the outer Ethernet header and the inner packet: outer IP and tunnel headers.
        trailer: Bytes between the inner packet and the frame check sequence.
        carries_ethernet: Whether the inner packet is an Ethernet frame; else it is an IP packet.
    """

    name: str
    header: int
    trailer: int = 0
    carries_ethernet: bool = False

    def inner_size(self, frame_size: int, *, vlan_tags: int = 0) -> int:
        """The size of the inner packet in a frame of a given size.

        For an inner Ethernet frame this is its inner L2 size, as if it had an FCS of its own: the outer one's, which
        counts once (a VXLAN frame of 114 bytes carries one of 64). For an inner IP packet it is its inner IP size.

        Raises:
            SearchError: If the frame is too small for the tunnel.
        """
        around = ETHERNET_HEADER + VLAN_TAG * vlan_tags + self.header + self.trailer
        inner = frame_size - around - (0 if self.carries_ethernet else FCS)
        if inner <= (ETHERNET_HEADER + FCS if self.carries_ethernet else 0):
            raise SearchError(f"A frame of {frame_size} bytes has no room for a packet inside {self.name}.")
        return inner

    def frame_size(self, inner_size: int, *, vlan_tags: int = 0) -> int:
        """The size of the frame around an inner packet of a given size, counted as `inner_size` does."""
        around = ETHERNET_HEADER + VLAN_TAG * vlan_tags + self.header + self.trailer
        return inner_size + around + (0 if self.carries_ethernet else FCS)


VXLAN = Tunnel("VXLAN over IPv4", header=20 + 8 + 8, carries_ethernet=True)
"""IPv4, UDP and VXLAN headers (RFC 7348)."""

VXLAN_IPV6 = Tunnel("VXLAN over IPv6", header=40 + 8 + 8, carries_ethernet=True)
"""IPv6, UDP and VXLAN headers (RFC 7348)."""

GRE = Tunnel("GRE over IPv4", header=20 + 4)
"""IPv4 and GRE headers without options (RFC 2784)."""
