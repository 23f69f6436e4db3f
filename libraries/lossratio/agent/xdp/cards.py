# SPDX-License-Identifier: Apache-2.0
"""What a port's card reports: which frames it has sent, by its own counters.

A driver that refuses a frame frees its memory, and may not count the refusal.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Iterable, Mapping, Sequence

from ..core.ethtool import ask, statistics
from ..core.links import Link
from ..core.protocol import AgentError

HARDWARE = ("tx_packets_phy", "tx_unicast.nic", "port.tx_unicast", "tx_pkts_nic")
"""Drivers' names for their cards' own counts of sent frames: mlx5, ice, i40e, ixgbe. If there is none of these, the
interface's ``tx_packets`` counts."""
VIRTIO = "xdp_tx - xdp_tx_drops"
"""virtio_net's name for the number of frames from programs in all its transmit queues. Its ``tx_packets`` only counts a
frame when a later one is sent, so the last frames of a trial are counted in the next trial."""
_OF_VIRTIO = re.compile(r"tx(_queue_)?\d+_(xdp_tx|xdp_tx_drops)")
_RINGS, _RING_WORDS = 0x10, 9
_BATCHES = ((3e6, 32), (1.2e6, 16), (0.0, 4))
"""From each of these rates on, in frames per second, this many runs of a sender's program pass before frames are handed
over."""


def transmitted(port: Link) -> tuple[str, int] | None:
    """How many frames a card has sent, and the name of that counter; None for a veth, which counts what it refuses."""
    if port.kind == "veth":
        return None
    counts = statistics(port.name)
    for name in HARDWARE:
        if name in counts:
            return name, counts[name]

    given, dropped = _of_virtio(counts)
    if given is not None:
        return VIRTIO, given - dropped
    return "tx_packets", port.transmitted


def refused_frames(before: Link, now: Link, sent: tuple[str, int] | None, given: int, *, is_over: bool = True) -> int:
    """How many frames a port did not take: a veth counts these, and a card only counts sent frames.

    Args:
        before: The port before it was given frames.
        now: The port now.
        sent: The earlier result of `transmitted`.
        given: How many frames it was given.
        is_over: Whether it must have counted some of these frames by now.

    Raises:
        AgentError: If its driver has counted none.
    """
    if sent is None:
        return now.transmit_drops - before.transmit_drops
    _, count = sent
    found = transmitted(now)
    left = 0 if found is None else found[1] - count
    if given and not left and is_over:
        raise AgentError(
            "counters",
            f"The driver of {now.name} has counted none of {given} frames that it was given, so it is not known how "
            "many left. Use 'kind: afpacket'.",
        )
    return max(0, given - left)


def _of_virtio(counts: Mapping[str, int]) -> tuple[int | None, int]:
    """Frames that programs gave to the transmit queues of virtio_net, and that these refused; None: another driver."""
    given, dropped = None, 0
    for name, count in counts.items():
        found = _OF_VIRTIO.fullmatch(name)
        if found is None:
            continue
        if found[2] == "xdp_tx":
            given = (given or 0) + count
        else:
            dropped += count
    return given, dropped


def handed_over(port: Link) -> int | None:
    """How many frames a veth was given by programs, sent or refused; None for a card, and if it is not reported.

    The kernel adds to this count for each processor without a lock: if two processors share a queue, it misses some
    frames, possibly including refused ones. So the missed frames show how far its count of refused frames can be
    trusted.
    """
    if port.kind != "veth":
        return None
    counts = statistics(port.name)
    own = [count for name, count in counts.items() if name.startswith("tx_queue_") and "_xdp_xmit" in name]
    return sum(own) if own else None


def transmit_ring(name: str) -> int | None:
    """How many frames the transmit ring of an interface holds (``ethtool -g``); None if the driver does not say."""
    try:
        answer = ask(name, struct.pack("=I", _RINGS).ljust(4 * _RING_WORDS, b"\0"))
    except OSError:
        return None
    return struct.unpack(f"={_RING_WORDS}I", answer)[-1] or None


def batch_at(rate: float, rings: Iterable[int]) -> int:
    """How many runs of a program pass before frames are handed over: at most a quarter of the smallest ring."""
    return min([next(batch for least, batch in _BATCHES if rate >= least), *(max(1, ring // 4) for ring in rings)])


def described(ports: Sequence[Link]) -> dict[str, dict[str, Any]]:
    """Which counter says what each port sent, and how large its transmit ring is, if known."""
    sent = {port.name: found[0] for port in ports if (found := transmitted(port)) is not None}
    rings = {port.name: ring for port in ports if (ring := transmit_ring(port.name)) is not None}
    return {"sent_by": sent, "transmit_rings": rings}
