"""Where the lost frames of a direction are in one trial: by flow, size, field, moment and run.

The generator knows the number of each frame that came back, and everything else about a frame follows from its number.
"""

import zlib
from base64 import b64decode
from dataclasses import dataclass
from struct import unpack

from lossratio.trials.record import Frames, Observed, Seconds

_COUNT_BYTES = 4


def read_counts(text: str) -> tuple[int, ...]:
    """The numbers in a text: 32 bits each, the lowest byte first, compressed by zlib and in base64.

    Args:
        text: The text; empty: no numbers.

    Raises:
        ValueError: If it contains anything else.
    """
    if not text:
        return ()
    try:
        data = zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"not a compressed list of counts: {error}") from error

    count, rest = divmod(len(data), _COUNT_BYTES)
    if rest:
        raise ValueError(f"it has {len(data)} bytes, but each count takes {_COUNT_BYTES}")
    return unpack(f"<{count}I", data)


@dataclass(frozen=True)
class FlowClasses(Observed):
    """A field in whose value flows differ: flow number n has ``values[n % len(values)]``."""

    field: str
    """The name of the field, with its header's: ``UDP destination port``."""
    values: tuple[int, ...]
    """Its values, in the order of the flows."""
    names: tuple[str, ...] = ()
    """The names of the values, from 0 on; empty: they are numbers."""


@dataclass(frozen=True)
class Losses(Observed):
    """Where the lost frames of one direction are in one trial.

    Only frames whose fate is known count: all frames of the trial, or a sample. Tables are texts, see `read_counts`.
    Tables of blocks have a row for each of the `blocks`, which are successive parts of the trial with the same number
    of frames.
    """

    known_frames: Frames
    """Frames whose fate is known."""
    lost_frames: Frames
    """How many of them were lost."""
    duration_s: Seconds
    """Time of the traffic."""
    run_frames: Frames
    """Number of successive frames that are known together; a longer loss event is seen in parts. If it equals the
    number of known frames, all of these are successive."""
    last_frames: Frames = 0
    """Frames of the trial that were sent before the first known one, because only the last ones are known."""
    flows: int = 1
    """Number of flows; with several streams, the number of frames after which their order repeats: each counts as a
    flow here."""
    blocks: int = 1
    """Number of blocks."""
    flows_lost: str = ""
    """Lost frames by block and flow; only of the first flows if there are very many. Empty: there is one flow."""
    flows_known: str = ""
    """Known frames of the same flows."""
    flow_hashes: str = ""
    """The lowest 7 bits of the hash of the same flows' addresses and ports by which network cards spread flows
    (Toeplitz, with Microsoft's key). Empty: their addresses do not differ."""
    classes: tuple[FlowClasses, ...] = ()
    """Fields in whose value the flows differ, apart from fields with a unique value for each flow."""
    sizes_bytes: tuple[int, ...] = ()
    """The sizes of frames, in the order in which they repeat; empty: there is one size."""
    sizes_lost: str = ""
    """Lost frames by block and place in that order."""
    sizes_known: str = ""
    """Known frames by place in that order."""
    flow_sizes_lost: str = ""
    """In trials of earlier versions: lost frames of the same flows by flow and size, from the smallest size on."""
    flow_sizes_known: str = ""
    """In trials of earlier versions: known frames of the same flows by flow and size."""
    step_s: Seconds = 0.0
    """Time of a step; 0: there are no steps."""
    steps_lost: str = ""
    """Lost frames by step, from the beginning of the traffic on."""
    steps_known: str = ""
    """Known frames by step."""
    rounds_lost: str = ""
    """In trials of earlier versions: lost frames by the number of earlier frames of the same flow: 0, 1, 2 to 3, 4 to
    7, and so on."""
    rounds_known: str = ""
    """In trials of earlier versions: known frames by the number of earlier frames of the same flow."""
    events: str = ""
    """Loss events by their size: of 1 frame, of 2 to 3, of 4 to 7, and so on."""
    leading_frames: Frames = 0
    """Frames lost at the beginning of the trial, before the first one that came back."""
    trailing_frames: Frames = 0
    """Frames lost at the end of the trial, after the last one that came back."""
    every_frames: Frames = 0
    """The number of frames after which the same ones are lost again, as a counter does it; 0: losses are not regular.
    """
    every_lost: Frames = 1
    """How many of so many successive frames are lost."""
    every_ratio: float = 1.0
    """The share of the lost frames that are lost at these places."""
