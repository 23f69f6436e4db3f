"""Frames that the generator did not send: the doubt with its size, and differences that they may explain.

A value ``v`` at a load of which the share ``u`` was not sent is at most ``v / (1 - u)``: so much it is if the generator
stood still for that share of the time. If it was slow all the time, and the SUT the limit, it is ``v``.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lossratio.results.doubts import Doubt, DoubtKind
from lossratio.results.trials import Trial
from lossratio.units import Unit, format_frame_rate, format_ratio

LEAST_UNSENT = 0.01
"""Share of a load's frames; fewer unsent frames are no doubt. They cannot move a value by the least change (1 %) that a
comparison or a trend calls one, and a healthy generator on a small machine leaves some behind."""


class Offered(NamedTuple):
    """The traffic of one trial that the generator offered."""

    load: float
    """Intended load, frames per second per interface."""
    sent: int
    """Frames sent."""
    unsent: int
    """Frames that it could not send."""


def offered_in(trials: Iterable[Trial]) -> list[Offered]:
    """The traffic of the trials that counted their frames."""
    return [
        Offered(trial.load_per_interface_fps, trial.sent_frames, trial.unsent_frames)
        for trial in trials
        if trial.sent_frames is not None and trial.unsent_frames is not None
    ]


def unsent_share(offered: Iterable[Offered]) -> float:
    """The largest share of frames that the generator left unsent at one load; 0: it is below `LEAST_UNSENT`."""
    return _worst(offered)[0]


def unsent_frames(offered: Iterable[Offered], what: str = "the trials") -> Doubt | None:
    """Reports a load that the generator did not offer in the trials that values stand on."""
    share, load = _worst(offered)
    if not share:
        return None
    return Doubt(
        DoubtKind.UNSENT,
        f"of {what} at {format_frame_rate(load)} per interface the generator left {format_ratio(share)} of the frames "
        "unsent, so this load was not offered, and the SUT may forward more; leave the generator's machine alone, or "
        "measure at a load that it can send",
    )


def unsent_explain(
    before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]], unit: Unit, least_change: float
) -> bool:
    """Whether unsent frames may be the difference of two means: then it is no evidence about the SUT.

    The difference stays if it is there in the values as they are, and likewise in the most that they may be. A smaller
    relative difference than the least change is none. Each value before and after has the share of frames that the
    generator left unsent with it; 1: the value is a least one.
    """
    if not any(share for _, share in (*before, *after)):
        return False
    least_before, least_after = (statistics.fmean(value for value, _ in side) for side in (before, after))
    most_before, most_after = (_most(side, unit) for side in (before, after))
    change = most_after - most_before
    stays = change * (least_after - least_before) > 0.0 and abs(change) >= least_change * most_before
    return not stays


def _most(side: Sequence[tuple[float, float]], unit: Unit) -> float:
    """The most that the mean of some values may be; of times the mean of those whose load was offered; NaN: none."""
    if unit.lower_is_better:
        known = [value for value, share in side if not share]
        return statistics.fmean(known) if known else math.nan
    return statistics.fmean(value / (1.0 - share) if share < 1.0 else math.inf for value, share in side)


def _worst(offered: Iterable[Offered]) -> tuple[float, float]:
    """The largest share at one load, and that load."""
    totals: dict[float, tuple[int, int]] = {}
    for load, sent, unsent in offered:
        of_load = totals.get(load, (0, 0))
        totals[load] = (of_load[0] + sent, of_load[1] + unsent)
    shares = ((unsent / (sent + unsent), load) for load, (sent, unsent) in totals.items() if unsent)
    share, load = max(shares, default=(0.0, 0.0))
    return (share, load) if share > LEAST_UNSENT else (0.0, 0.0)
