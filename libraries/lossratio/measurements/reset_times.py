"""The reset time by RFC 6201, from the outages and silences of one repetition.

By time stamps, it is ``B - A``: A is the receipt of the last frame before the loss, and B is the receipt of the first
frame after the loss. A device may keep some frames during the reset, and send them when it resumes. In that case, A is
the receipt of the last frame before the silence in which frames were lost.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from pydantic import Field

from lossratio.trials import Outage, Silence, Timeline
from lossratio.values import FrameCount, Record, Seconds

_EARLY = 0.01
"""Seconds before the reset in which the outage may already begin, in addition to the error of the clocks.

If a device has come back, loss in this many seconds at the end does not mean that the device is down again."""


class ResetTime(Record):
    """One repetition, in the direction with the longest outage."""

    direction: str
    """The direction, e.g. ``port0>port1``."""
    lost_frames: FrameCount
    """Frames lost in the outage: the longest one since the reset."""
    lost_beside_frames: FrameCount
    """Frames lost before the reset, or after the reset but outside of this outage. They do not count."""
    outages: int = Field(ge=0)
    """Number of outages since the reset; 0: no loss."""
    loss_method_s: Seconds
    """Reset time by the frame loss method: frames lost in the outage divided by the rate."""
    time_stamp_s: Seconds | None
    """Reset time by the time stamp method: the length of the outage, or of the silence around it if the silence is
    longer. 0: no loss; null: the DUT did not come back within the limit, or no frame came before."""
    whole_s: Seconds | None
    """Time from the beginning of the first outage to the end of the last one, including the forwarding between them;
    null as above."""


def reset_time(timelines: Sequence[Timeline]) -> ResetTime:
    """The reset time of one repetition (whose second step begins with the reset): the time of the longest outage."""
    times = [_of_direction(timeline) for timeline in timelines]
    return max(
        times, key=lambda time: float("inf") if time.time_stamp_s is None else time.time_stamp_s
    )


@dataclass(frozen=True)
class _Pause:
    """A time without forwarding; infinitely long if its beginning or its end is not known."""

    start: float
    end: float
    frames: int

    @property
    def duration(self) -> float:
        return self.end - self.start


def _of_direction(timeline: Timeline) -> ResetTime:
    moment = timeline.steps[1].start - timeline.clock_error - _EARLY
    outages = [outage for outage in timeline.outages if outage.last_sent >= moment]
    pauses = list(_pauses(outages, timeline.silences)) or [_Pause(0.0, 0.0, 0)]
    longest = max(pauses, key=attrgetter("duration"))
    came_back = math.isfinite(longest.duration)
    whole = max(pause.end for pause in pauses) - min(pause.start for pause in pauses)

    return ResetTime(
        direction=timeline.name,
        lost_frames=longest.frames,
        lost_beside_frames=timeline.lost - longest.frames,
        outages=len(outages),
        loss_method_s=longest.frames / timeline.rate if timeline.rate else 0.0,
        time_stamp_s=longest.duration if came_back else None,
        whole_s=whole if came_back else None,
    )


def _pauses(outages: Sequence[Outage], silences: Sequence[Silence]) -> Iterator[_Pause]:
    """The time without forwarding for each outage: the outage itself, or the silence around it."""
    for index, outage in enumerate(outages):
        if outage.end is None and index and outage.last_sent - outage.first_sent <= _EARLY:
            # The very last frames were lost long after the device came back: the load is too high for the device.
            continue
        if outage.start is None or outage.end is None:
            yield _Pause(-math.inf, math.inf, outage.frames)
            continue

        around = (
            _Pause(
                silence.start,
                silence.end,
                sum(other.frames for other in outages if _is_in(other, silence)),
            )
            for silence in silences
            if _is_in(outage, silence)
        )
        yield max(
            (_Pause(outage.start, outage.end, outage.frames), *around), key=attrgetter("duration")
        )


def _is_in(outage: Outage, silence: Silence) -> bool:
    return silence.start <= outage.last_sent and outage.first_sent <= silence.end
