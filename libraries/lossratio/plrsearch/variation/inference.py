"""One description of the trials: which of them, how they are distributed, and the posteriors of both functions.

Trials at equal loads decide first, without any model. If they differ by chance only, the capacity is constant: counts
are Poisson, and where neither function has the shape of the loss, only trials near the target are described. Else the
capacity varies, or it is not known whether it does: then it is normally distributed, and a drift and the likeness of
successive trials are considered. Where trials right after one in overload differ from others, only the others count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName, TrialCounts, Weighting, merged
from lossratio.plrsearch.quadrature import Posterior, even_points, posteriors
from lossratio.plrsearch.variation.order import NO_ORDER, Capacities, Order, order_of
from lossratio.plrsearch.variation.replicates import AfterOverload, LackOfFit, Replicates

_NEAR = 100.0
"""Largest loss ratio of trials near the target, in targets."""
_LEAST_LOST = 100.0
"""Lost frames in a trial that is too far from the target, at least: with fewer its loss ratio is not known."""
_LEAST_LOADS = 5
"""Loads with loss near the target, at least, the lowest one that is far from it included."""
_ANCHOR = 10.0
"""Frames that the lowest load that is far from the target counts as having lost: no function is far from it there."""
_ROUNDS = 4
_SETTLED = 0.1
"""Largest correction of the drift, in its standard deviations, after which it is known."""


@dataclass(frozen=True)
class Description:
    """The posteriors of the fitting functions, and what they describe."""

    posteriors: tuple[Posterior, ...]
    """One for each function; the critical load is that at the end of the trials."""
    counts: TrialCounts
    """The trials that they describe: without the drift, and those near the target if the others do not fit."""
    likelihood: LikelihoodName
    """How counts are distributed in them: `VARYING` becomes `POISSON` where the capacity is constant."""
    replicates: Replicates
    """What trials at equal loads show."""
    after_overload: AfterOverload | None = None
    """That trials after one in overload differ, and are left out; None: it is not seen."""
    order: Order = NO_ORDER
    """Drift, and correlation of successive trials."""
    lack_of_fit: LackOfFit | None = None
    """How far the counts are from the curve; None: the capacity may vary."""
    below: float | None = None
    """Trials below that load are described, in frames per second; None: all are."""
    unexplored: tuple[float, float] | None = None
    """Loads in frames per second between which no function is known to fit: from the highest with little loss to the
    lowest far from the target; None: trials show what is between."""

    @property
    def best(self) -> Posterior:
        """The posterior of the function that fits best."""
        return max(self.posteriors, key=lambda posterior: posterior.log_evidence)

    def weights(self, weighting: Weighting) -> tuple[float, ...]:
        """Weights of the functions: half each also where neither has the shape of the loss far from the target.

        There the evidence says which of them fits farther away, and not which is better at the target.
        """
        if weighting is Weighting.EQUAL or self.below is not None:
            return tuple(1.0 / len(self.posteriors) for _ in self.posteriors)
        shares = np.exp([posterior.log_evidence - self.best.log_evidence for posterior in self.posteriors])
        return tuple(float(share) for share in shares / shares.sum())

    @property
    def independent_trials(self) -> float:
        """How many independent trials show as much."""
        return self.order.share * len(self.counts)

    def evidence(self, counts: TrialCounts) -> TrialCounts:
        """Those of all trials that are described."""
        return counts if self.after_overload is None else self.after_overload.rested(counts)


def described(
    counts: TrialCounts, question: CriticalLoadQuestion, likelihood: LikelihoodName, *, for_selection: bool = False
) -> Description:
    """The description of trials in the order of measurement; by rough posteriors to choose a load by."""
    replicates = Replicates.of(counts)
    if likelihood is not LikelihoodName.VARYING:
        known = posteriors(counts, question, likelihood, for_selection=for_selection)
        return Description(known, counts, likelihood, replicates)
    after = AfterOverload.of(counts, question.target_loss_ratio) if replicates.differ else None
    if after is None:
        return _of_varying(counts, question, replicates, for_selection=for_selection)
    rested = after.rested(counts)
    found = _of_varying(rested, question, Replicates.of(rested), for_selection=for_selection)
    return replace(found, after_overload=after)


def _of_varying(
    counts: TrialCounts, question: CriticalLoadQuestion, replicates: Replicates, *, for_selection: bool
) -> Description:
    """The description of trials whose capacity varies, unless those at equal loads are alike."""
    likelihood = LikelihoodName.VARYING
    if replicates.are_alike:
        return _of_constant_capacity(counts, question, replicates, for_selection=for_selection)
    known = posteriors(counts, question, likelihood, for_selection=for_selection)
    if not counts.lost.any():
        return Description(known, counts, likelihood, replicates)
    order, steady = order_of(_capacities(known, counts)), counts
    if order.drift:
        order, steady = _without_drift(order, counts, question)
    if order.swing:
        steady = _steadied(counts, order)
    if order != NO_ORDER:
        known = posteriors(steady, question, likelihood, for_selection=for_selection, share=order.share)
    if order.drift or order.swing:
        known = tuple(_at_end(posterior, order) for posterior in known)
    return Description(known, steady, likelihood, replicates, order=order)


def _of_constant_capacity(
    counts: TrialCounts, question: CriticalLoadQuestion, replicates: Replicates, *, for_selection: bool
) -> Description:
    """All trials if one of the functions fits; else those near the target, if they are enough."""

    def of(near: TrialCounts, below: float | None) -> Description:
        known = posteriors(near, question, LikelihoodName.POISSON, for_selection=for_selection)
        found = Description(known, near, LikelihoodName.POISSON, replicates, below=below)
        return replace(found, lack_of_fit=LackOfFit.of(found.best, near))

    found, (sums, trials), target = of(counts, None), merged(counts), question.target_loss_ratio
    sent = sums.load * sums.exposure
    # Near are the loads below the first that loses far more than the target.
    below = float(sums.load[sums.lost > np.maximum(_NEAR * target * sent, _LEAST_LOST * trials)].min(initial=np.inf))
    if found.lack_of_fit is None or not found.lack_of_fit.is_certain or not np.isfinite(below):
        return found
    near = _below(counts, below)
    if len(np.unique(near.load[near.lost > 0.0])) < _LEAST_LOADS:
        quiet = (sums.lost <= target * sent) & (sums.load < below)
        return replace(found, unexplored=(float(sums.load[quiet].max(initial=question.min_load)), below))
    return of(near, below)


def _below(counts: TrialCounts, load: float) -> TrialCounts:
    """The trials below a load, and as much of those at the load as shows roughly what is lost there."""
    which, at = counts.load < load, counts.load == load
    near = TrialCounts(counts.load[which], counts.exposure[which], counts.lost[which])
    if not at.any():
        return near
    exposure = _ANCHOR * counts.exposure[at].sum() / counts.lost[at].sum()
    columns = (near.load, load), (near.exposure, exposure), (near.lost, _ANCHOR)
    return TrialCounts(*(np.append(column, value) for column, value in columns))


def _capacities(known: Sequence[Posterior], counts: TrialCounts) -> Capacities:
    best = max(known, key=lambda posterior: posterior.log_evidence)
    return Capacities.of(best.function, best.mode, counts)


def _without_drift(order: Order, counts: TrialCounts, question: CriticalLoadQuestion) -> tuple[Order, TrialCounts]:
    """The drift, corrected until nothing is left of it in the trials without it, and these trials."""
    drift = order.drift
    for _ in range(_ROUNDS):
        steady = _steadied(counts, replace(order, drift=drift))
        rough = posteriors(steady, question, LikelihoodName.VARYING, for_selection=True)
        left = order_of(_capacities(rough, steady), drift)
        drift += left.drift
        order = Order(drift, left.drift_stdev, left.centre, left.correlation, left.share)
        if abs(left.drift) < _SETTLED * left.drift_stdev:
            break
    return order, _steadied(counts, order)


def _steadied(counts: TrialCounts, order: Order) -> TrialCounts:
    """The trials as they would have been without the drift, all at the time `centre`, and without the sine.

    Both fitting functions are homogeneous: a SUT that is slower by a factor in all loads loses at a load what it
    lost at a load larger by that factor, in a time shorter by it.
    """
    traffic = np.cumsum(counts.exposure)
    time = (traffic - 0.5 * counts.exposure) / traffic[-1]
    scale = order.scale(time)
    return TrialCounts(counts.load / scale, counts.exposure * scale, counts.lost)


def _at_end(posterior: Posterior, order: Order) -> Posterior:
    """The posterior at the end of the trials: moved by drift or sine, and wider by what is not known about these."""
    nodes, question = posterior.nodes, posterior.question
    share, stdev = order.lasting(question.target_loss_ratio)
    moved = nodes.critical_load * (share + stdev * scipy.special.ndtri(even_points(len(nodes.mass), 1)[:, 0]))
    moved = np.clip(moved, question.min_load, question.max_load)
    return replace(posterior, nodes=replace(nodes, critical_load=moved))
