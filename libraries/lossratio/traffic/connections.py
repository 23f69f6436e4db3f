"""The connections that traffic makes: a frame and its answer, which goes back, belong to the same connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lossratio.agent import PORT_BYTES, Configuration, FramesSpec
from lossratio.errors import TrafficError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes: TypeAlias = NDArray[np.uint8]

_MAC = bytes(6)


def connections_of(configuration: Configuration) -> tuple[int, int]:
    """The number of connections that all directions' flows make, and the maximum to one address and port."""
    import numpy as np

    ends = [_ends(direction.frames) for direction in configuration.directions]
    # The lower end comes first, so that both directions of a connection look the same.
    ways = [
        np.where(_texts(one) < _texts(other), np.hstack((one, other)), np.hstack((other, one)))
        for one, other in ends
    ]
    _, to_one = np.unique(np.concatenate([_texts(other) for _, other in ends]), return_counts=True)
    return len(np.unique(_texts(np.concatenate(ways)))), int(to_one.max())


def _texts(rows: Bytes) -> NDArray[np.bytes_]:
    """Rows of bytes as a column of texts."""
    texts: NDArray[np.bytes_] = rows.copy().view(f"S{rows.shape[1]}")
    return texts


def _ends(frames: FramesSpec) -> tuple[Bytes, Bytes]:
    """Source and destination of each flow: address, and port if there is one."""
    # The outer headers of a tunnel may be completely rewritten, other frames' headers only in part.
    if frames.rewritable[0] != (0, 2 * len(_MAC)):
        raise TrafficError(
            "Connections cannot be counted inside tunnels. Use a traffic profile without tunnels."
        )

    # The generator's modules are only needed here.
    import numpy as np

    from lossratio.agent.afpacket import FrameBuilder

    start, end = frames.addresses[0]
    flows = np.arange(frames.flows)
    headers = FrameBuilder(frames, _MAC, _MAC).beginnings(
        flows, np.full(len(flows), frames.max_size)
    )
    middle = (start + end) // 2
    ends = [headers[:, start:middle], headers[:, middle:end]]

    if any(checksum.pseudo_header is not None for checksum in frames.checksums):
        places = (end, end + PORT_BYTES), (end + PORT_BYTES, end + 2 * PORT_BYTES)
        ends = [
            np.hstack((address, headers[:, slice(*place)]))
            for address, place in zip(ends, places, strict=True)
        ]

    return ends[0], ends[1]
