"""What a port has sent, by its own counters: a driver that refuses a frame frees it, and may not count that."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from typing import Mapping

from ..core.links import Link

HARDWARE = ("tx_packets_phy", "tx_unicast.nic", "port.tx_unicast", "tx_pkts_nic")
"""Names that drivers give their cards' own counts of frames sent: mlx5, ice, i40e, ixgbe. Where there is none of them,
the interface's ``tx_packets`` counts."""

_SIOCETHTOOL = 0x8946
_DRIVER_INFO, _STRINGS, _STATISTICS = 0x3, 0x1B, 0x1D
_STATISTICS_NAMES = 1
_INFO_BYTES, _COUNT_OFFSET, _NAME_BYTES = 196, 180, 32


def transmitted(port: Link) -> tuple[str, int] | None:
    """How many frames a card has sent, and the name of that counter; None for a veth, which counts what it refuses."""
    if port.kind == "veth":
        return None
    counts = statistics(port.name)
    return next(((name, counts[name]) for name in HARDWARE if name in counts), ("tx_packets", port.transmitted))


def statistics(name: str) -> Mapping[str, int]:
    """The statistics of an interface's driver, by name (``ethtool -S``); none where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            info = _ask(asked, name, struct.pack("=I", _DRIVER_INFO).ljust(_INFO_BYTES, b"\0"))
            (count,) = struct.unpack_from("=I", info, _COUNT_OFFSET)
            header = struct.pack("=III", _STRINGS, _STATISTICS_NAMES, count)
            names = _ask(asked, name, header + bytes(_NAME_BYTES * count))[len(header) :]
            values = _ask(asked, name, struct.pack("=II", _STATISTICS, count) + bytes(8 * count))
        except OSError:
            return {}
    texts = (names[place : place + _NAME_BYTES].split(b"\0")[0].decode() for place in range(0, len(names), _NAME_BYTES))
    return dict(zip(texts, struct.unpack_from(f"={count}Q", values, 8)))


def _ask(asked: socket.socket, name: str, command: bytes) -> bytes:
    data = array.array("B", command)
    fcntl.ioctl(asked, _SIOCETHTOOL, struct.pack("@16sP", name.encode(), data.buffer_info()[0]).ljust(40, b"\0"))
    return data.tobytes()
