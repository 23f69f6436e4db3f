"""Single frames from the ports, and where they come out: for a look at the cabling, not for a measurement."""

from __future__ import annotations

import time
from typing import Mapping, Sequence

from .links import Link
from .packets import ETH_P_ALL, PacketWire, Wire, open_packets
from .protocol import AgentError, Message

_HEAD_BYTES = 128
_GAP_SECONDS = 0.001
_MOST_ARRIVALS = 20_000
_MOST_KINDS = 1_000


def open_probe(ports: Sequence[str], links: Mapping[str, Link]) -> PacketWire:
    """Opens interfaces for a probe."""
    try:
        return PacketWire(links, {port: [open_packets(links[port], ETH_P_ALL)] for port in ports})
    except OSError as error:
        raise AgentError(
            "permission", f"The kernel of this node does not give the packet sockets for a probe: {error}."
        ) from error


def probe(wire: Wire, sends: Sequence[tuple[str, str]], seconds: float) -> Message:
    """Sends frames, in hexadecimal without FCS, and notes what arrives on all ports until some seconds later.

    Returns:
        ``arrivals``: lists of a port, the first bytes of a frame with all of its tags, its length, and how often
        it came; ``unsent``: lists of a port, the length of a frame and the reason why it was not sent; ``is_storm``:
        whether so many frames came that the rest was not looked at.
    """
    arrivals: dict[tuple[str, str, int], int] = {}
    unsent = []
    count = 0

    def collect(seconds: float) -> int:
        received = 0
        end = time.monotonic() + seconds
        while count + received < _MOST_ARRIVALS:
            for port, frame in wire.receive(max(0.0, end - time.monotonic())):
                received += 1
                kind = (port, frame[:_HEAD_BYTES].hex(), len(frame))
                if kind in arrivals or len(arrivals) < _MOST_KINDS:
                    arrivals[kind] = arrivals.get(kind, 0) + 1
            if time.monotonic() >= end:
                break
        return received

    for port, frame in sends:
        data = bytes.fromhex(frame)
        try:
            wire.send(port, data)
        except OSError as error:
            unsent.append([port, len(data), error.strerror or str(error)])
        count += collect(_GAP_SECONDS)
    count += collect(seconds)
    return {
        "arrivals": [[*kind, number] for kind, number in arrivals.items()],
        "unsent": unsent,
        "is_storm": count >= _MOST_ARRIVALS,
    }
