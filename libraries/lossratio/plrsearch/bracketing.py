"""The bracket of the search by counts: the highest load that passed and the lowest one that did not.

Each load has one trial, or a few. Where an overload forwards frames, the next load is the forwarded rate, else half of
the load. Then steps that double, the line through two lossy loads, and halving make the bracket narrow.
"""

from __future__ import annotations

import math

import numpy as np

from lossratio.plrsearch.counting import FINE, NEAR, Evidence
from lossratio.plrsearch.counts import OVERLOAD
from lossratio.plrsearch.options import CriticalLoadQuestion

HALF = 0.5
AIM = 0.35
"""The next load should lose this share of the target."""
_FORWARDS = 0.3
"""A SUT that forwards at least this share of an overload is searched below the forwarded rate."""
_INSIDE = 0.2
"""The next load is at least this share of the bracket away from its ends."""
_FEW = 5
"""Trials that lose a little, whatever the load is, after which one asks whether each trial loses frames once."""


def bracket(evidence: Evidence) -> tuple[float | None, float | None]:
    """The highest load that lost at most half of the target, below the lowest load that lost more; in frames/s."""
    fails = {load: evidence.mean_ratio(load) > HALF * evidence.target for load in evidence.loads}
    ceiling = min((load for load in fails if fails[load]), default=None)
    passed = [load for load in fails if not fails[load] and (ceiling is None or load < ceiling)]
    return max(passed, default=None), ceiling


def bracketed(evidence: Evidence, question: CriticalLoadQuestion, begin: float) -> float | None:
    """The next load, in frames per second; None: the bracket is narrow.

    Args:
        evidence: The trials so far.
        question: The limits of loads.
        begin: The first load.
    """
    floor, ceiling = bracket(evidence)
    if ceiling is None:
        if floor is None:
            return begin
        grown = floor * (1.0 + 2.0 * FINE * 2.0 ** (len(evidence.counts) - 1))
        return None if floor >= question.max_load else min(grown, question.max_load)
    if floor is None:
        return (
            None
            if ceiling <= question.min_load
            else max(_below(evidence, ceiling), question.min_load)
        )

    gap = ceiling - floor
    if gap <= FINE * ceiling:
        return None
    aimed = _aimed(evidence)
    if aimed is not None and evidence.counts.load[-1] >= ceiling:
        return min(max(aimed, floor + _INSIDE * gap), ceiling - _INSIDE * gap)
    return HALF * (floor + ceiling) if ceiling < 2.0 * floor else math.sqrt(floor * ceiling)


def _below(evidence: Evidence, ceiling: float) -> float:
    """A load below all loads so far: the forwarded rate, then steps that double."""
    counts = evidence.counts
    forwarded = float(counts.forwarding_rate[np.argmin(counts.load)])
    if forwarded < (1.0 - NEAR) * ceiling:
        return forwarded if forwarded > _FORWARDS * ceiling else HALF * ceiling

    step = min(FINE * 2.0 ** int(np.count_nonzero(counts.lost < NEAR * counts.sent)), HALF)
    aimed = _aimed(evidence)
    if aimed is None:
        return (1.0 - step) * forwarded
    lowest = max(1.0 - 2.0 * step, HALF) * forwarded
    return min((1.0 - HALF * step) * forwarded, max(aimed, lowest))


def _aimed(evidence: Evidence) -> float | None:
    """Where the two lowest lossy loads point to: the loss ratio falls with its logarithm, or straight to 0."""
    ratios = {load: evidence.mean_ratio(load) for load in evidence.loads}
    lossy = [load for load in ratios if evidence.target < ratios[load] < 10.0 * OVERLOAD][:2]
    if len(lossy) < 2 or ratios[lossy[1]] <= ratios[lossy[0]]:
        return None

    first, second = lossy
    growth = math.log(ratios[second] / ratios[first])
    by_ratio = first - (second - first) / growth * math.log(ratios[first] / (AIM * evidence.target))
    by_loss = first - (second - first) / math.expm1(growth)
    return max(by_ratio, by_loss) if by_loss < (1.0 - FINE) * first else by_ratio


def losing_little(evidence: Evidence) -> float | None:
    """The lowest load if a few trials lose a little, whatever their loads are, and none passes; None: it is not so."""
    lost, sent = evidence.counts.lost, evidence.counts.sent
    is_lossy = lost > evidence.target * sent
    little = is_lossy & (lost < NEAR * OVERLOAD * sent)
    if np.count_nonzero(little) < _FEW or not is_lossy.all():
        return None
    return float(evidence.counts.load[little].min())
