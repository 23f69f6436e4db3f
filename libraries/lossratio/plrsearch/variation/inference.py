"""One description of the trials: which of them, how they are distributed, and the posteriors of both functions.

Trials at equal loads decide first, without any model. If they differ by chance only, the capacity is constant: counts
are Poisson, and where neither function has the shape of the loss, only trials near the target are described. Else the
capacity varies, or it is not known whether it does: then it is normally distributed, and a drift and the likeness of
successive trials are considered. Where trials right after one in overload differ from others, only the others count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
import scipy

from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    FittingFunction,
    LikelihoodName,
    TrialCounts,
    Weighting,
    merged,
)
from lossratio.plrsearch.quadrature import Distribution, Posterior, even_points, posteriors
from lossratio.plrsearch.variation.bursts import Bursts
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
_PHASES = 128
"""Points of half a sine's period."""
_SETTLED = 0.1
"""Largest correction of drift or sine, in its standard deviations, after which it is known."""
_PRIOR_PRECISION, _LARGEST_SHIFT = 0.1, 2.0
"""What the order of the trials that are certain to lose says about the drift beside the evidence of all trials, and how
far the likeliest drift may be from it, in its standard deviations."""


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
    bursts: Bursts | None = None
    """Bursts of lost frames at any load; the posteriors are those without them. None: none are seen."""

    @cached_property
    def reported(self) -> tuple[Posterior, ...]:
        """The posteriors of the critical load with all losses: those of bursts, too."""
        if self.bursts is None:
            return self.posteriors
        return tuple(map(self.bursts.added, self.posteriors))

    @property
    def best(self) -> Posterior:
        """The posterior of the function that fits best."""
        return _best(self.posteriors)

    def weights(self, weighting: Weighting) -> tuple[float, ...]:
        """Weights of the functions: half each also where neither has the shape of the loss far from the target.

        There the evidence says which of them fits farther away, and not which is better at the target.
        """
        if weighting is Weighting.EQUAL or self.below is not None:
            return tuple(1.0 / len(self.posteriors) for _ in self.posteriors)
        shares = np.exp(
            [posterior.log_evidence - self.best.log_evidence for posterior in self.posteriors]
        )
        return tuple(float(share) for share in shares / shares.sum())

    def mixed(self, weighting: Weighting) -> Distribution:
        """The critical load under both functions together."""
        return Distribution.mixed(self.reported, self.weights(weighting))

    @property
    def independent_trials(self) -> float:
        """How many independent trials show as much."""
        return self.order.share * len(self.counts)


def described(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    likelihood: LikelihoodName,
    *,
    for_selection: bool = False,
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
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    replicates: Replicates,
    *,
    for_selection: bool,
) -> Description:
    """The description of trials whose capacity varies, unless those at equal loads are alike."""
    likelihood = LikelihoodName.VARYING
    if replicates.are_alike or Replicates.without_largest(counts).are_alike:
        constant = _of_constant_capacity(counts, question, replicates, for_selection=for_selection)
        if constant.replicates.are_alike:
            return constant

    known = posteriors(counts, question, likelihood, for_selection=for_selection)
    if not counts.lost.any():
        return Description(known, counts, likelihood, replicates)

    order = order_of(Capacities.of(_best(known), counts))
    rates = [0.0] * len(known)
    if order.drift or order.swing:
        order = _settled(order, counts, question, _best(known).curves.function)
    if order.drift:
        order, rates = _likeliest_drift(order, counts, question)
    steady = _steadied(counts, order)
    if order != NO_ORDER:
        known = posteriors(
            steady, question, likelihood, for_selection=for_selection, share=order.share
        )
    if order.drift or order.swing:
        known = tuple(
            _at_end(posterior, order, rate) for posterior, rate in zip(known, rates, strict=True)
        )

    return Description(known, steady, likelihood, replicates, order=order)


def _of_constant_capacity(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    replicates: Replicates,
    *,
    for_selection: bool,
) -> Description:
    """All trials if one of the functions fits; else those near the target, if they are enough."""

    def of(near: TrialCounts, below: float | None) -> Description:
        known = posteriors(near, question, LikelihoodName.POISSON, for_selection=for_selection)
        found = Description(known, near, LikelihoodName.POISSON, replicates, below=below)
        return replace(found, lack_of_fit=LackOfFit.of(found.best, near))

    def without_bursts(near: TrialCounts, below: float | None) -> Description:
        """Without the trials that have bursts, if a function fits the others."""
        every = found = of(near, below)
        # Where trials at equal loads are alike, it is the curve that does not fit.
        curved = (
            replicates.are_alike and found.lack_of_fit is not None and found.lack_of_fit.is_certain
        )
        for _ in range(0 if curved else _ROUNDS):
            bursts = Bursts.of(found.best, near, below)
            if bursts is None or (
                found.bursts is not None and np.array_equal(bursts.seen, found.bursts.seen)
            ):
                break

            rested = near.at(~bursts.seen)
            found = replace(of(rested, below), bursts=bursts, replicates=Replicates.of(rested))
            if (
                found.lack_of_fit is None
                or found.lack_of_fit.is_certain
                or not found.replicates.are_alike
            ):
                return every

        return found

    found, (sums, trials), target = (
        without_bursts(counts, None),
        merged(counts),
        question.target_loss_ratio,
    )
    sent = sums.load * sums.exposure
    # Near are the loads below the first that loses far more than the target.
    below = float(
        sums.load[sums.lost > np.maximum(_NEAR * target * sent, _LEAST_LOST * trials)].min(
            initial=np.inf
        )
    )
    if found.lack_of_fit is None or not found.lack_of_fit.is_certain or not np.isfinite(below):
        return found
    near = _below(counts, below)
    if len(np.unique(near.load[near.lost > 0.0])) < _LEAST_LOADS:
        quiet = (sums.lost <= target * sent) & (sums.load < below)
        return replace(
            found, unexplored=(float(sums.load[quiet].max(initial=question.min_load)), below)
        )
    return without_bursts(near, below)


def _below(counts: TrialCounts, load: float) -> TrialCounts:
    """The trials below a load, and as much of those at the load as shows roughly what is lost there."""
    near = counts.at(counts.load < load)
    at = counts.load == load
    if not at.any():
        return near
    exposure = _ANCHOR * counts.exposure[at].sum() / counts.lost[at].sum()
    anchor = load, exposure, _ANCHOR, counts.time[at][0], 0.0
    return TrialCounts(*map(np.append, vars(near).values(), anchor))


def _best(known: Sequence[Posterior]) -> Posterior:
    return max(known, key=attrgetter("log_evidence"))


def _settled(
    order: Order, counts: TrialCounts, question: CriticalLoadQuestion, function: FittingFunction
) -> Order:
    """Drift or sine by the knee of a function that is seen without it, until it changes no more.

    Without it, also more trials are certain to lose.
    """
    for _ in range(_ROUNDS):
        steady = _steadied(counts, order)
        known = posteriors(
            steady, question, LikelihoodName.VARYING, for_selection=True, functions=(function,)
        )
        left = Capacities.of(known[0], steady)
        again = order_of(replace(left, place=(1.0 + left.place) * order.scale(left.time) - 1.0))
        if not (again.drift or again.swing):
            break
        drift, swing = abs(again.drift - order.drift), abs(again.swing - order.swing)
        order = again
        if drift <= _SETTLED * order.drift_stdev and swing <= _SETTLED * order.swing_stdev:
            break
    return order


def _likeliest_drift(
    order: Order, counts: TrialCounts, question: CriticalLoadQuestion
) -> tuple[Order, list[float]]:
    """The drift that all trials show, and by function how the critical load at the end changes with it, as a share.

    A wrong drift widens the knee, so the critical load changes more than the capacity does. The order of the trials
    that are certain to lose is a weak prior; the evidence is taken as normal around its largest.
    """
    stdev, likelihood = order.drift_stdev, LikelihoodName.VARYING
    at_end, evidence = [], []
    for drift in (replace(order, drift=order.drift + side * stdev) for side in (-1.0, 0.0, 1.0)):
        steady = _steadied(counts, drift)
        known = posteriors(steady, question, likelihood, for_selection=True, share=order.share)
        at_end.append([np.log(posterior.mean * drift.scale(np.array(1.0))) for posterior in known])
        evidence.append([posterior.log_evidence for posterior in known])
    less, middle, more = np.transpose(evidence)[int(np.argmax(evidence[1]))].tolist()
    precision = max(2.0 * middle - less - more, 0.0) + _PRIOR_PRECISION
    shift = float(np.clip(0.5 * (more - less) / precision, -_LARGEST_SHIFT, _LARGEST_SHIFT))
    rates = (np.array(at_end[2]) - np.array(at_end[0])) / (2.0 * stdev)
    return replace(
        order, drift=order.drift + shift * stdev, drift_stdev=stdev / precision**0.5
    ), rates.tolist()


def _steadied(counts: TrialCounts, order: Order) -> TrialCounts:
    """The trials as they would have been without the drift, all at the time `centre`, or without the sine.

    Both fitting functions are homogeneous: a SUT that is slower by a factor in all loads loses at a load what it
    lost at a load larger by that factor, in a time shorter by it.
    """
    scale = order.scale(counts.share_of_time)
    return replace(counts, load=counts.load / scale, exposure=counts.exposure * scale)


def _of_sine(posterior: Posterior, swing: float) -> Array:
    """The loads at which the mean over a sine's period is the target, as shares of the critical loads without it.

    That of the likeliest point is a root. Others differ by as much as if the loss ratio were exponential in the load,
    as exp(k load): by log(I0(k swing)) / k, with the Bessel function I0.
    """
    loads = posterior.critical_load
    target = posterior.question.target_loss_ratio
    slope = posterior.curves.loss(loads).load_slope
    steep = np.maximum(slope * loads - 1.0, 1.0)
    below = swing + np.log(scipy.special.i0e(steep * swing)) / steep
    # From the capacity's lowest on: there most is lost, in a short time if the knee is sharp.
    phase = (np.arange(_PHASES) + 0.5) / _PHASES
    weight, capacity = 4.0 * phase**3 / _PHASES, 1.0 - swing * np.cos(np.pi * phase**4)
    likeliest = posterior.likeliest
    curves = posterior.curves.at(np.full(_PHASES, likeliest))

    def excess(share: float) -> float:
        load = share * loads[likeliest] / capacity
        log_ratio = curves.loss(load).log_rate - np.log(load)
        return float(scipy.special.logsumexp(log_ratio, b=weight) - np.log(target))

    root = float(scipy.optimize.brentq(excess, 1.0 - swing, 1.0 + swing, xtol=1e-12))
    return np.asarray(root + below[likeliest] - below)


def _at_end(posterior: Posterior, order: Order, rate: float) -> Posterior:
    """The posterior at the end of the trials: moved by drift or sine, and wider by what is not known about these.

    The critical load changes with the drift by a rate, as a share.
    """
    loads, question = posterior.critical_load, posterior.question
    if order.swing:
        share = _of_sine(posterior, order.swing)
        stdev = order.swing_stdev
    else:
        share = order.scale(np.array(1.0))
        stdev = rate * order.drift_stdev
    moved = loads * (share + stdev * scipy.special.ndtri(even_points(len(loads), 1)[:, 0]))
    return replace(posterior, critical_load=np.clip(moved, question.min_load, question.max_load))
