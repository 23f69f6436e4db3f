"""When the verdict on a running trial is certain: more frames are lost than it may lose in its whole duration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

NOTE_SECONDS = 0.5
"""Seconds between two notes of a running trial's counters."""

LOOK_SECONDS = 0.04
"""Seconds between two looks at the counters of a running trial; with the time of a look they are 50 ms at most."""


@dataclass(frozen=True)
class Watch:
    """What a running trial is watched for.

    Attributes:
        above: The loss ratio above which its verdict is certain.
        in_flight: Seconds of traffic that may be on their way, and do not count as lost yet.
        ends: Whether the trial ends then. Otherwise only the time is noted.
        note: Called with the frames sent and received so far, over all directions, about every `NOTE_SECONDS`.
    """

    above: float
    in_flight: float
    ends: bool = True
    note: Callable[[int, int], None] | None = None


@dataclass(frozen=True)
class SoFar:
    """The counters of one direction of a running trial; frames.

    Attributes:
        whole: Frames that the load and the whole duration ask for.
        sent: Frames that left.
        unsent: Frames that the generator could not send in time.
        received: Frames that came back; read after `sent`.
        in_flight: Frames that may be on their way.
        of_generator: Frames whose loss may be the generator's fault: those that it dropped itself, and those that it
            sent in a burst after a stall.
    """

    whole: int
    sent: int
    unsent: int
    received: int
    in_flight: float
    of_generator: int

    @property
    def lost(self) -> float:
        """Frames that the device has lost in any case."""
        return max(0.0, self.sent - self.received - self.in_flight - self.of_generator)


def is_certain(directions: Sequence[SoFar], above: float) -> bool:
    """Whether a trial's loss ratio is above a limit, whatever its rest may show.

    Never where frames are unsent: the trial will be measured again, or its loss is the generator's.

    Args:
        directions: The counters of all directions.
        above: The limit.
    """
    if any(direction.unsent for direction in directions):
        return False
    whole = sum(direction.whole for direction in directions)
    return sum(direction.lost for direction in directions) > above * whole
