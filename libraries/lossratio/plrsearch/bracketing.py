"""The bracket of the search by counts: the highest load that passed and the lowest one that did not.

Each load has one trial, or a few. Where an overload forwards frames, the next load is the forwarded rate, else half of
the load. Then steps that double, and halving, make the bracket narrow.
"""

from __future__ import annotations

import math

import numpy as np

from lossratio.plrsearch.counting import FINE, NEAR, Evidence
from lossratio.plrsearch.counts import OVERLOAD

HALF = 0.5
_FORWARDS = 0.3
"""A SUT that forwards at least this share of an overload is searched below the forwarded rate."""
_FEW = 5
"""Trials that lose a little, whatever the load is, after which one asks whether each trial loses frames once."""


def bracket(evidence: Evidence) -> tuple[float | None, float | None]:
    """The highest load that lost at most half of the target, below the lowest load that lost more; in frames/s."""
    fails = {load: evidence.mean_ratio(load) > HALF * evidence.target for load in evidence.loads}
    ceiling = min((load for load in fails if fails[load]), default=None)
    passed = [load for load in fails if not fails[load] and (ceiling is None or load < ceiling)]
    return max(passed, default=None), ceiling


def bracketed(evidence: Evidence, begin: float) -> float | None:
    """The next load in frames per second, which may be beyond the limits of loads; None: the bracket is narrow.

    Args:
        evidence: The trials so far.
        begin: The first load.
    """
    floor, ceiling = bracket(evidence)
    if floor is None:
        return begin if ceiling is None else _below(evidence, ceiling)
    if ceiling is None:
        return floor * (1.0 + 2.0 * FINE * 2.0 ** (len(evidence.counts) - 1))
    if ceiling - floor <= FINE * ceiling:
        return None
    return HALF * (floor + ceiling) if ceiling < 2.0 * floor else math.sqrt(floor * ceiling)


def _below(evidence: Evidence, ceiling: float) -> float:
    """A load below all loads so far: the forwarded rate, then steps that double."""
    counts = evidence.counts
    forwarded = float(counts.forwarding_rate[np.argmin(counts.load)])
    if forwarded < (1.0 - NEAR) * ceiling:
        return forwarded if forwarded > _FORWARDS * ceiling else HALF * ceiling
    steps = np.count_nonzero(counts.lost < NEAR * counts.sent)
    return (1.0 - min(FINE * 2.0**steps, HALF)) * forwarded


def losing_little(evidence: Evidence) -> float | None:
    """The lowest load if a few trials lose a little, whatever their loads are, and none passes; None: it is not so."""
    lost, sent = evidence.counts.lost, evidence.counts.sent
    is_lossy = lost > evidence.target * sent
    little = is_lossy & (lost < NEAR * OVERLOAD * sent)
    if np.count_nonzero(little) < _FEW or not is_lossy.all():
        return None
    return float(evidence.counts.load[little].min())
