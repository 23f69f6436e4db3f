# SPDX-License-Identifier: Apache-2.0
"""Which networks of a node's routes form a default route, in one or several pieces."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Any, Collection, Union

Network = Union[IPv4Network, IPv6Network]


def default_networks(networks: Collection[Network]) -> set[Network]:
    """The networks in a node's routes that form a default route, in one or several pieces.

    These are networks of similar size that together contain all addresses, such as 0.0.0.0/1 and 128.0.0.0/1. Networks
    that contain the benchmarking networks (RFC 2544, RFC 5180) and more, such as 2000::/3, are also among them, because
    such a route would carry test traffic.
    """
    default: set[Network] = set()
    for texts in (("0.0.0.0/0", "198.18.0.0/15"), ("::/0", "2001:2::/48")):
        everywhere, test = map(ip_network, texts)
        own: list[Any] = [network for network in networks if network.version == everywhere.version]
        default.update(network for network in own if network != test and network.supernet_of(test))
        # A set that contains everything may hide another such set of smaller networks, which takes precedence.
        shortest = 0
        for length in sorted({network.prefixlen for network in own}):
            pieces = [network for network in own if shortest <= network.prefixlen <= length]
            if list(collapse_addresses(pieces)) == [everywhere]:
                default.update(pieces)
                shortest = length + 1
    return default
