"""How the capacity varies beyond the model of the quadrature: its shape, its correlation, its drift.

The quadrature takes capacities for normally distributed and independent. Where the trials speak against that, the
critical load is computed here: first the drift is taken out of the trials, then the shapes of the capacity's
distribution are weighted by their evidence. The knee is that of the quadrature's likeliest curve: where capacities are
far from normal they vary by more than its width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, Curves, FittingFunction, LikelihoodName, TrialCounts
from lossratio.plrsearch.quadrature import Mode, Posterior, posteriors
from lossratio.plrsearch.variation.findings import excess_kurtosis, skewness
from lossratio.plrsearch.variation.integral import ShapePosterior, shape_posterior
from lossratio.plrsearch.variation.order import ENOUGH, Order, order_of
from lossratio.plrsearch.variation.sample import Capacities
from lossratio.plrsearch.variation.shapes import SHAPES, Shape

_PRIOR = 10.0
"""How many times as probable as each other shape the normal one is, before any trial."""
_IMPROBABLE = 0.005
"""Largest probability of a sample's shape, if capacities are normal, with which other shapes are considered."""
_STEADY = 0.3
"""Standard deviation of residuals, in that of the model; if it is smaller, their shape is that of rounding."""
_OUTLYING = 8.0
"""Distance of outliers below the median, in distances of the lower quartile from it: 5.4 standard deviations."""
_ROUNDS = 4
_SETTLED = 0.1
"""Largest correction of the drift, in its standard deviations, after which it is known."""
_HERMITE = 9
"""Nodes of the distribution of the drift."""


@dataclass(frozen=True)
class Distribution:
    """A distribution of the critical load, as points with weights; in frames per second, sorted."""

    loads: Array
    """The points."""
    weights: Array
    """Their weights; the sum is 1."""
    question: CriticalLoadQuestion
    """Target and limits."""

    @classmethod
    def of(cls, loads: Array, weights: Array, question: CriticalLoadQuestion) -> Distribution:
        """Sorts the points."""
        order = np.argsort(loads, kind="stable")
        return cls(loads[order], weights[order] / weights.sum(), question)

    @property
    def p_at_min(self) -> float:
        """Probability that the critical load is the minimum load or less."""
        return float(self.weights[self.loads <= self.question.min_load].sum())

    @property
    def p_at_max(self) -> float:
        """Probability that it is the maximum load or more."""
        return float(self.weights[self.loads >= self.question.max_load].sum())

    @property
    def mean(self) -> float:
        """Mean critical load."""
        return float(self.loads[0] + self.weights @ (self.loads - self.loads[0]))

    @property
    def stdev(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt(self.weights @ (self.loads - self.mean) ** 2))

    def quantile(self, probability: float) -> float:
        """The load that the critical load is below with this probability."""
        middle = np.cumsum(self.weights) - 0.5 * self.weights
        return float(np.interp(probability, middle, self.loads))

    def interval(self, probability: float) -> tuple[float, float]:
        """Loads that enclose the critical load with this probability, tails being equal."""
        tail = 0.5 * (1.0 - probability)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def density(self, loads: Sequence[float]) -> Array:
        """Probability density at loads, per frame per second, smoothed over a fiftieth of the 95 % interval."""
        width = max((self.quantile(0.975) - self.quantile(0.025)) / 50.0, 1e-9 * self.mean)
        density = np.zeros(len(loads))
        for index, load in enumerate(loads):
            density[index] = self.weights @ np.exp(-0.5 * ((load - self.loads) / width) ** 2)
        return np.asarray(density / (width * np.sqrt(2.0 * np.pi)))


@dataclass(frozen=True)
class ShapeEstimate:
    """The critical load under one shape of the capacity's distribution."""

    name: str
    """Name of the shape."""
    weight: float
    """The shape's share in the estimate, by its evidence."""
    parameters: dict[str, float]
    """Mean parameters by name: the capacity in frames per second, widths and sizes as shares of it."""
    loads: Distribution
    """Distribution of the critical load; before a drift, if there is one."""
    log_evidence: float
    """Logarithm of the probability of all counts, less that of the likeliest shape."""


@dataclass(frozen=True)
class Variation:
    """How the capacity varies, where it is not by independent normal numbers, and the critical load with that."""

    shapes: tuple[ShapeEstimate, ...]
    """Estimates by shape of the distribution; empty if the shape is that of the quadrature, normal."""
    order: Order
    """Drift and correlation."""
    counts: TrialCounts
    """The trials, without the drift."""
    loads: Distribution
    """Distribution of the critical load, at the end of the trials."""
    posteriors: tuple[Posterior, ...]
    """The quadrature's posteriors of the trials, without the drift."""
    residuals: tuple[tuple[float, float], ...]
    """Load in frames per second of each trial in which loss was certain, and its residual in standard deviations: of a
    normal distribution, if all of this is right."""
    surprises: Array
    """The probability of less capacity, given that there was loss, in each trial that may have had none."""

    @property
    def independent_trials(self) -> float:
        """How many independent trials show as much."""
        return self.order.share * len(self.counts)


def variation_of(given: tuple[Posterior, ...], counts: TrialCounts, question: CriticalLoadQuestion) -> Variation | None:
    """How the capacity varies; None if the quadrature's model describes it, or trials are too few to show it.

    Args:
        given: The quadrature's posteriors of the trials.
        counts: The trials, in the order of measurement.
        question: Target and limits.
    """
    if not counts.lost.any():
        return None
    capacities = _capacities(given, counts)
    if capacities.certain.sum() < ENOUGH or np.std(_standardized(capacities, _best(given).mode)) < _STEADY:
        return None
    order = order_of(capacities)
    steady, known = counts, given
    if order.drift:
        order, steady = _without_drift(order, counts, question)
        known = posteriors(steady, question, LikelihoodName.VARYING)
        capacities = _capacities(known, steady)
    best = _best(known)
    # Where the capacity varies less than the best trials show it, residuals are those of counts: odd only by chance.
    varies = best.mode.deviation > best.mode.mrr * capacities.blur[capacities.certain].min(initial=np.inf)
    if varies and _is_odd(capacities, best.mode, order):
        core = _without_outliers(best, capacities, steady, question)
        shown = Capacities.of(core.function, core.mode, steady)
        if _is_odd(shown, core.mode, order):
            return _by_shapes(SHAPES, shown, order, steady, known, core, question)
    if order.correlation:
        return _by_shapes(SHAPES[:1], capacities, order, steady, known, best, question)
    if not order.drift:
        return None
    panels = [(posterior.panels.critical_load.ravel(), posterior.masses.ravel()) for posterior in known]
    evidence = np.array([posterior.log_evidence for posterior in known])
    shares = np.exp(evidence - evidence.max())
    loads = np.concatenate([loads for loads, _ in panels])
    masses = np.concatenate([share * masses for share, (_, masses) in zip(shares, panels, strict=True)])
    kept = masses > 1e-12 * masses.max()
    values = _standardized(capacities, best.mode)
    return Variation(
        shapes=(),
        order=order,
        counts=steady,
        loads=_at_end(loads[kept], masses[kept], order, question),
        posteriors=known,
        residuals=_with_loads(counts, capacities, values),
        surprises=np.zeros(0),
    )


def _best(known: tuple[Posterior, ...]) -> Posterior:
    return max(known, key=lambda posterior: posterior.log_evidence)


def _capacities(known: tuple[Posterior, ...], counts: TrialCounts) -> Capacities:
    best = _best(known)
    return Capacities.of(best.function, best.mode, counts)


def _without_drift(order: Order, counts: TrialCounts, question: CriticalLoadQuestion) -> tuple[Order, TrialCounts]:
    """The drift, corrected until nothing is left of it in the trials without it, and these trials."""
    drift = order.drift
    for _ in range(_ROUNDS):
        steady = steadied(counts, drift, order.centre)
        rough = posteriors(steady, question, LikelihoodName.VARYING, for_selection=True)
        left = order_of(_capacities(rough, steady), drift)
        drift += left.drift
        order = Order(drift, left.drift_stdev, left.centre, left.correlation, left.share)
        if abs(left.drift) < _SETTLED * left.drift_stdev:
            break
    return order, steadied(counts, drift, order.centre)


def steadied(counts: TrialCounts, drift: float, centre: float) -> TrialCounts:
    """The trials as they would have been without the drift, all at the time `centre`.

    Both fitting functions are homogeneous: a SUT that is slower by a factor in all loads loses at a load what it
    lost at a load larger by that factor, in a time shorter by it.
    """
    traffic = np.cumsum(counts.exposure)
    time = (traffic - 0.5 * counts.exposure) / traffic[-1]
    scale = 1.0 + drift * (time - centre)
    return TrialCounts(counts.load / scale, counts.exposure * scale, counts.lost)


def _standardized(capacities: Capacities, mode: Mode) -> Array:
    """Residuals of trials in which loss was certain, in standard deviations of the model."""
    width = np.hypot(capacities.blur, mode.deviation / mode.mrr)
    return np.asarray((capacities.place / width)[capacities.certain])


def _is_odd(capacities: Capacities, mode: Mode, order: Order) -> bool:
    """Whether the capacities are not normally distributed."""
    values = _whitened(_standardized(capacities, mode), capacities.gaps, order)
    if len(values) < ENOUGH or np.std(values) < _STEADY:
        return False
    findings = skewness(values), excess_kurtosis(values)
    too_wide = scipy.special.chdtrc(len(values), np.sum(values**2)) < _IMPROBABLE
    return bool(too_wide) or any(finding.probability < _IMPROBABLE for finding in findings)


def _without_outliers(
    best: Posterior, capacities: Capacities, counts: TrialCounts, question: CriticalLoadQuestion
) -> Posterior:
    """The likelier function's posterior without unusually slow trials, which would show a knee that is too wide."""
    certain = capacities.place[capacities.certain]
    lower, median = np.quantile(certain, [0.25, 0.5])
    usual = capacities.place > median - _OUTLYING * (median - lower)
    if usual.all() or not counts.lost[usual].any():
        return best
    rest = TrialCounts(counts.load[usual], counts.exposure[usual], counts.lost[usual])
    return _best(posteriors(rest, question, LikelihoodName.VARYING, for_selection=True))


def _by_shapes(
    shapes: Sequence[Shape],
    capacities: Capacities,
    order: Order,
    counts: TrialCounts,
    known: tuple[Posterior, ...],
    best: Posterior,
    question: CriticalLoadQuestion,
) -> Variation:
    """The critical load under each shape of the distribution of the capacities, and under all together.

    Args:
        shapes: The shapes; the first one is normal.
        capacities: What the trials show.
        order: Drift and correlation.
        counts: The trials, without the drift.
        known: The quadrature's posteriors of them.
        best: The posterior whose likeliest curve is the knee.
        question: Target and limits.
    """
    fits = [shape_posterior(shape, capacities, order.share) for shape in shapes]
    loads = [_critical_loads(fit, best.function, best.mode, question) for fit in fits]
    evidence = np.array([fit.log_evidence for fit in fits])
    weights = np.exp(evidence - evidence.max()) * np.where([fit.shape is SHAPES[0] for fit in fits], _PRIOR, 1.0)
    weights /= weights.sum()
    estimates = tuple(
        ShapeEstimate(
            fit.shape.name,
            float(weight),
            _described(fit, capacities.reference),
            Distribution.of(own, fit.weight, question),
            float(fit.log_evidence - evidence.max()),
        )
        for fit, own, weight in zip(fits, loads, weights, strict=True)
    )
    likeliest = fits[int(np.argmax(weights))]
    every_load = np.concatenate(loads)
    every_weight = np.concatenate([weight * fit.weight for fit, weight in zip(fits, weights, strict=True)])
    below = _below(likeliest, capacities.place, capacities.blur)
    scores = scipy.special.ndtri(np.clip(below[capacities.certain], 1e-12, 1.0 - 1e-12))
    return Variation(
        estimates,
        order,
        counts,
        _at_end(every_load, every_weight, order, question),
        known,
        _with_loads(counts, capacities, _whitened(scores, capacities.gaps, order)),
        _surprises(likeliest, capacities, below),
    )


def _described(fit: ShapePosterior, reference: float) -> dict[str, float]:
    values = dict(zip(fit.shape.parameters, fit.shape.described(fit.mean), strict=True))
    capacity = fit.shape.parameters[0]
    return {**values, capacity: values[capacity] * reference}


def _below(fit: ShapePosterior, capacity: Array, blur: Array) -> Array:
    return np.asarray(fit.shape.below(capacity, blur, fit.mean[None])[0])


def _whitened(scores: Array, gap: Array, order: Order) -> Array:
    """What each score has that the one before it did not show."""
    likeness = order.correlation**gap
    fresh = (scores[1:] - likeness * scores[:-1]) / np.sqrt(1.0 - likeness**2)
    return np.concatenate([scores[:1], fresh])


def _surprises(fit: ShapePosterior, capacities: Capacities, below: Array) -> Array:
    """Probabilities of less capacity, given that there was loss, in trials that may have had none.

    They are evenly distributed if capacities explain the losses; if something else loses some frames, they are near 1.
    """
    which = capacities.lossy & ~capacities.certain
    if not which.any():
        return np.zeros(0)
    edge = _below(fit, capacities.edge, capacities.blur)
    return np.asarray(np.minimum(below[which] / np.maximum(edge[which], 1e-300), 1.0))


def _with_loads(counts: TrialCounts, capacities: Capacities, values: Array) -> tuple[tuple[float, float], ...]:
    loads = counts.load[capacities.certain]
    return tuple((float(load), float(value)) for load, value in zip(loads, values, strict=True))


def _at_end(loads: Array, weights: Array, order: Order, question: CriticalLoadQuestion) -> Distribution:
    """The distribution at the end of the trials: moved by the drift, and wider by what is not known about it."""
    if not order.drift:
        return Distribution.of(loads, weights, question)
    nodes, shares = np.polynomial.hermite_e.hermegauss(_HERMITE)
    drifts = order.drift + order.drift_stdev * nodes
    moved = loads[:, None] * (1.0 + drifts * (1.0 - order.centre))
    moved = np.clip(moved, question.min_load, question.max_load)
    return Distribution.of(moved.ravel(), (weights[:, None] * shares).ravel(), question)


def _critical_loads(
    fit: ShapePosterior, function: FittingFunction, mode: Mode, question: CriticalLoadQuestion
) -> Array:
    """The critical load at each point, in frames per second: by Newton's method in brackets, on the logarithms."""
    number = len(fit.at)
    low, high = np.full(number, question.min_load), np.full(number, question.max_load)
    every = np.arange(number)

    def excess(load: Array) -> Array:
        parts = fit.shape.shortfall(load / mode.mrr - 1.0, fit.at)
        curves = Curves(function, np.full(number, mode.spread), parts.deviation * mode.mrr)
        centre = np.maximum(mode.mrr * (1.0 + fit.at[:, 0]), mode.spread)
        rate = parts.share * np.exp(curves.at(load, centre, every).log_rate) + parts.rest * mode.mrr
        return np.asarray(np.log(np.maximum(rate, 1e-300) / load) - np.log(question.target_loss_ratio))

    low_excess, high_excess = excess(low), excess(high)
    at_min, at_max = low_excess >= 0.0, high_excess <= 0.0
    for iteration in range(60):
        share = low_excess / np.where(low_excess == high_excess, 1.0, low_excess - high_excess)
        share = np.clip(share, 0.01, 0.99) if iteration % 3 else np.full(number, 0.5)
        middle = low + share * (high - low)
        value = excess(middle)
        above = value > 0.0
        high, high_excess = np.where(above, middle, high), np.where(above, value, high_excess)
        low, low_excess = np.where(above, low, middle), np.where(above, low_excess, value)
        if np.all(high - low < 1e-9 * high):
            break
    loads = 0.5 * (low + high)
    return np.asarray(np.where(at_min, question.min_load, np.where(at_max, question.max_load, loads)))
