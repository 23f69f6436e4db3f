"""The bracket of the search by counts: the highest load that passed and the lowest one that did not.

Each load has one trial, or a few. Where an overload forwards frames, the next load is the forwarded rate, else half of
the load. Then steps that double, and halving, make the bracket narrow. The later it is, the wider a narrow bracket may
be: a load still has to be verified.
"""

from __future__ import annotations

import math

import numpy as np

from lossratio.plrsearch.counting import FINE, Evidence

HALF = 0.5
FEW = 5
"""Short trials before a long one."""
_LATE = 8.0
"""At the end of the search's time, a narrow bracket is this many times as wide as `FINE`; before, in proportion."""


def bracket(evidence: Evidence) -> tuple[float | None, float | None]:
    """The highest load that lost at most half of the target, below the lowest load that lost more; in frames/s."""
    fails = {load: evidence.at(load).ratio > HALF * evidence.target for load in evidence.loads}
    ceiling = min((load for load in fails if fails[load]), default=None)
    passed = [load for load in fails if not fails[load] and (ceiling is None or load < ceiling)]
    return max(passed, default=None), ceiling


def bracketed(evidence: Evidence, used: float) -> float | None:
    """The next load in frames per second, which may be beyond the limits of loads; None: the bracket is narrow.

    Args:
        evidence: The trials.
        used: The share of the search's time that has passed.
    """
    floor, ceiling = bracket(evidence)
    step = FINE * 2.0 ** len(evidence.counts)
    if ceiling is None:
        return (floor or 0.0) * (1.0 + step)
    if floor is None:
        forwarded = float(evidence.counts.forwarding_rate[np.argmin(evidence.counts.load)])
        return max(HALF * ceiling, min(forwarded, (1.0 - 0.25 * step) * ceiling))
    narrow = FINE * max(1.0, _LATE * used)
    return None if ceiling <= (1.0 + narrow) * floor else math.sqrt(floor * ceiling)


def losing_little(evidence: Evidence) -> float | None:
    """The lowest load if a few trials lose a little, at any load, and none passes; None: not so, or asked.

    A long trial shows whether each trial loses frames once.
    """
    is_lossy = evidence.counts.lost > evidence.target * evidence.counts.sent
    little = is_lossy & evidence.counts.is_little
    is_asked = len(evidence.loads) < len(little)
    if is_asked or np.count_nonzero(little) < FEW or not is_lossy.all():
        return None
    return float(evidence.counts.load[little].min())
