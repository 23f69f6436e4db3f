"""What a port has sent, by its own counters: a driver that refuses a frame frees it, and may not count that."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from typing import Any, Iterable, Mapping, Sequence

from ..core.links import Link

HARDWARE = ("tx_packets_phy", "tx_unicast.nic", "port.tx_unicast", "tx_pkts_nic")
"""Names that drivers give their cards' own counts of frames sent: mlx5, ice, i40e, ixgbe. Where there is none of them,
the interface's ``tx_packets`` counts."""

_SIOCETHTOOL, _SIOCGHWTSTAMP = 0x8946, 0x89B1
_STAMPING, _STAMPING_BYTES, _EVERY_FRAME = 0x41, 44, 1
_DRIVER_INFO, _STRINGS, _STATISTICS = 0x3, 0x1B, 0x1D
_STATISTICS_NAMES = 1
_RINGS, _RING_WORDS = 0x10, 9
_BATCHES = ((3e6, 32), (1.2e6, 16), (0.0, 4))
"""From these rates on, in frames per second, so many runs of a sender's program pass before frames are handed over."""
_INFO_BYTES, _COUNT_OFFSET, _NAME_BYTES = 196, 180, 32


def transmitted(port: Link) -> tuple[str, int] | None:
    """How many frames a card has sent, and the name of that counter; None for a veth, which counts what it refuses."""
    if port.kind == "veth":
        return None
    counts = statistics(port.name)
    return next(((name, counts[name]) for name in HARDWARE if name in counts), ("tx_packets", port.transmitted))


def statistics(name: str) -> Mapping[str, int]:
    """The statistics of an interface's driver, by name (``ethtool -S``); none where it has none."""
    try:
        info = _ask(name, struct.pack("=I", _DRIVER_INFO).ljust(_INFO_BYTES, b"\0"))
        (count,) = struct.unpack_from("=I", info, _COUNT_OFFSET)
        header = struct.pack("=III", _STRINGS, _STATISTICS_NAMES, count)
        names = _ask(name, header + bytes(_NAME_BYTES * count))[len(header) :]
        values = _ask(name, struct.pack("=II", _STATISTICS, count) + bytes(8 * count))
    except OSError:
        return {}
    texts = (names[place : place + _NAME_BYTES].split(b"\0")[0].decode() for place in range(0, len(names), _NAME_BYTES))
    return dict(zip(texts, struct.unpack_from(f"={count}Q", values, 8)))


def transmit_ring(name: str) -> int | None:
    """How many frames the transmit ring of an interface holds (``ethtool -g``); None where the driver does not say."""
    try:
        answer = _ask(name, struct.pack("=I", _RINGS).ljust(4 * _RING_WORDS, b"\0"))
    except OSError:
        return None
    return struct.unpack(f"={_RING_WORDS}I", answer)[-1] or None


def stamping(name: str) -> tuple[int | None, bool]:
    """The number of the clock (``/dev/ptp0`` is 0) that stamps an interface's frames, and whether all are stamped.

    This is ``ethtool -T``, and ``hwstamp_ctl``. None: it has no such clock.
    """
    try:
        answer = _ask(name, struct.pack("=I", _STAMPING).ljust(_STAMPING_BYTES, b"\0"))
        clock = struct.unpack_from("=i", answer, 8)[0]
        chosen = _ask(name, bytes(12), _SIOCGHWTSTAMP) if clock >= 0 else bytes(12)
    except OSError:
        return None, False
    return None if clock < 0 else clock, struct.unpack("=3i", chosen)[2] == _EVERY_FRAME


def batch_at(rate: float, rings: Iterable[int]) -> int:
    """How many runs of a program pass before frames are handed over: a quarter of the smallest ring at most."""
    return min([next(batch for least, batch in _BATCHES if rate >= least), *(max(1, ring // 4) for ring in rings)])


def described(ports: Sequence[Link]) -> dict[str, dict[str, Any]]:
    """Which counter says what each port sent, and how large its transmit ring is, where that is known."""
    sent = {port.name: found[0] for port in ports if (found := transmitted(port)) is not None}
    rings = {port.name: ring for port in ports if (ring := transmit_ring(port.name)) is not None}
    return {"sent_by": sent, "transmit_rings": rings}


def _ask(name: str, command: bytes, request: int = _SIOCETHTOOL) -> bytes:
    data = array.array("B", command)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked, request, struct.pack("@16sP", name.encode(), data.buffer_info()[0]).ljust(40, b"\0"))
    return data.tobytes()
