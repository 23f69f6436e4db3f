"""What each trial shows about its own capacity, and what their order shows: drift, and likeness of successive ones.

Descriptions of the capacities are compared by the Bayesian information criterion, in one place: a constant, a straight
line over time, or a sine, each with and without correlation of successive capacities (first-order autoregressive), and
another capacity at each load, which is a misfit of the curve and no order. Widths and ranks are robust, so that some
unusual trials decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts
from lossratio.plrsearch.quadrature import Posterior
from lossratio.trials import Observed

ENOUGH = 20
"""Trials in which loss was certain, with which order and shape are judged."""
_CORRELATIONS = np.concatenate([[0.0], np.linspace(0.02, 0.98, 49), [0.99, 0.995]])
_CLEAR = 3.0
"""Nats by which a description with more parameters has to be better, besides the criterion."""
_LEAST_DRIFT = 5e-5
"""Smallest drift, and deviation of capacities that are alike, as a share of the capacity. Loads of a search change with
time, so that a small misfit at some of them looks like a drift: of up to 0.002 % on healthy SUTs whose interval is
0.003 % wide."""
_FEW_CYCLES, _LEAST_SWING = 0.9, 2e-4
"""Periods of a sine in all the trials, at least, as with fewer it is a drift; and its amplitude, as a share: a misfit
at some loads of a SUT that stalls looks like one of up to 0.01 %."""
_REPEATED = 3
"""Trials at a load that show what the curve errs by there, at least."""
FEW_CYCLES = 3.0
"""The fewest periods of a sine that show that it repeats."""
_SINE = 1.5
"""Half of a sine's parameters."""
_MOST_PAIRS = 1000
"""Trials of which each pair makes a slope, at most."""
_MOST_CYCLES = 200.0
"""Periods of a sine in all the trials that are looked for, at most."""
_UNUSUAL = 3.0
"""Values that are farther out, in standard deviations of the middle, count as no farther for a sine: its own are half
as far."""
_LEAST_WIDTH = 1e-9
"""Values that scatter by less are equal."""

_LIKELY = 0.7
"""Lost frames that a trial without loss may have had: there a capacity is as likely to be below as above."""
_CERTAIN = 3.0
"""Loss is certain if it is expected even of a capacity larger by so many standard deviations."""
_CERTAIN_LOSS = 16.0
"""Lost frames that are expected of that capacity, at least."""

_ENOUGH_OVERLOADED = 8
"""Trials in overload that show the usual deviation."""
_WIDER = 1.3
"""How much larger the deviation is taken than such trials show it."""
_QUARTILE = 0.6745
"""Distance of a normal distribution's quartiles from its median."""


@dataclass(frozen=True)
class Capacities:
    """The capacities of trials, as shares of the likeliest mrr less 1; arrays in the order of the trials."""

    place: Array
    """The capacity that explains the count; without loss the capacity is above."""
    blur: Array
    """Standard deviation of `place` by chance alone; without loss the width of the step."""
    certain: NDArray[np.bool_]
    """Whether loss was certain: a sample of such trials is not chosen by its capacities."""
    time: Array
    """Middle of the trial as a share: 0 at the first trial's beginning, 1 for the last trial."""
    load: Array
    """In frames per second."""

    @classmethod
    def of(cls, posterior: Posterior, counts: TrialCounts) -> Capacities:
        """The capacities under a posterior's likeliest curve."""
        mode = posterior.mode
        function = posterior.mode.function
        spread = posterior.mode.spread
        log_rate = np.log(np.maximum(counts.lost, _LIKELY) / counts.exposure)
        place = np.maximum(function.explaining_mrr(counts.load, log_rate, spread), spread)
        loss = function.log_loss(counts.load, place, spread)
        place = np.maximum(place - (loss.log_rate - log_rate) / loss.slope, spread)
        blur = -1.0 / (loss.slope * np.sqrt(np.maximum(counts.lost, 1.0)))
        usual = float(mode.deviation)
        overloaded = place[counts.load >= mode.mrr]

        if len(overloaded) >= _ENOUGH_OVERLOADED:
            # But for unusual trials: by the lower half, as the largest capacities may be above the load.
            lower, median = np.quantile(overloaded, [0.25, 0.5])
            usual = min(usual, _WIDER * float(median - lower) / _QUARTILE)

        unlucky = function.log_loss_rate(counts.load, mode.mrr + _CERTAIN * usual, spread)
        certain = (np.exp(unlucky) * counts.exposure > _CERTAIN_LOSS) & (counts.lost > 0.0)
        return cls(
            place / mode.mrr - 1.0, blur / mode.mrr, certain, counts.share_of_time, counts.load
        )

    def residuals(self, deviation: float, correlation: float = 0.0) -> Array:
        """Residuals of trials in which loss was certain, in standard deviations: normal if the model is right."""
        values = (self.place / np.hypot(self.blur, deviation))[self.certain]
        if not correlation:
            return np.asarray(values)
        likeness = correlation**self.gaps
        fresh = (values[1:] - likeness * values[:-1]) / np.sqrt(1.0 - likeness**2)
        return np.concatenate([values[:1], fresh])

    @property
    def gaps(self) -> Array:
        """Time from each trial in which loss was certain to the next, in usual trials."""
        return np.asarray(np.diff(self.time[self.certain]) / np.median(np.diff(self.time)))


@dataclass(frozen=True)
class Order:
    """What the order of the trials shows."""

    drift: float
    """Change of the capacity from the beginning to the end, as a share of that at the time `centre`; 0: none is
    seen."""
    drift_stdev: float
    """Its standard deviation."""
    centre: float
    """Time, as a share, at which the drift's standard deviation changes nothing."""
    correlation: float
    """Correlation of the capacities of successive trials; 0: none is seen."""
    share: float
    """The share of an independent trial that a trial counts as."""
    swing: float = 0.0
    """Amplitude of a sine that the capacity follows, as a share of the capacity; 0: it follows none."""
    swing_stdev: float = 0.0
    """Its standard deviation."""
    cycles: float = 0.0
    """How many periods of it the trials took."""
    phase: float = 0.0
    """Its phase at the beginning, in radians."""

    def scale(self, time: Array) -> Array:
        """The capacity at times (shares of the whole time), as a share of that without drift and sine."""
        sine = np.sin(2.0 * np.pi * self.cycles * time + self.phase)
        return np.asarray(1.0 + self.drift * (time - self.centre) + self.swing * sine)

    @property
    def change(self) -> float:
        """Change of the capacity from the beginning to the end, as a share of that at the beginning."""
        return self.drift / (1.0 - self.drift * self.centre)

    @property
    def change_stdev(self) -> float:
        """Its standard deviation."""
        return self.drift_stdev / (1.0 - self.drift * self.centre) ** 2


@dataclass(frozen=True)
class CapacityVariation(Observed):
    """What the order of the trials shows: that the capacity drifts, or that successive trials are alike."""

    correlation: float
    """Correlation of the capacities of successive trials; 0: none is seen."""
    independent_trials: float
    """Number of independent trials that show as much as these."""
    drift_ratio: float
    """Change of the capacity from the beginning to the end, as a share of that at the beginning; 0: none is seen. The
    critical load is that at the end."""
    drift_stdev_ratio: float
    """Standard deviation of the drift."""
    drift_per_hour_ratio: float
    """The drift in an hour."""
    swing_ratio: float = 0.0
    """Amplitude of a sine that the capacity follows, as a share; 0: it follows none. At the critical load the mean loss
    ratio of a whole period is the target."""
    swing_cycles: float = 0.0
    """How many of its periods the trials took."""
    after_overload: str | None = None
    """That trials right after one in overload lose more, or less, than others at their loads, and so are not described;
    null: it is not seen, or by an earlier version."""

    def __str__(self) -> str:
        """What the order of the trials shows, in one line."""
        parts = [] if self.after_overload is None else [self.after_overload]
        if self.correlation:
            parts.append(
                f"successive trials are alike (correlation {self.correlation:.2f}, as much as "
                f"{self.independent_trials:.3g} independent trials)"
            )

        if self.drift_ratio:
            parts.append(
                f"drift of {self.drift_ratio:+.3%} (standard deviation {self.drift_stdev_ratio:.2%}, "
                f"{self.drift_per_hour_ratio:+.3%} in an hour): the critical load is that at the end"
            )

        if self.swing_ratio:
            condition = "" if self.swing_cycles >= FEW_CYCLES else "if it repeats, "
            parts.append(
                f"the capacity changes in time by about {self.swing_ratio:.2%} either way, as in "
                f"{self.swing_cycles:.3g} periods of a sine: {condition}the critical load is that of a whole period"
            )

        return ", ".join(parts)


NO_ORDER = Order(0.0, 0.0, 0.5, 0.0, 1.0)


def order_of(capacities: Capacities) -> Order:
    """What the order of trials in which loss was certain shows."""
    which = np.flatnonzero(capacities.certain)
    if len(which) < ENOUGH:
        return NO_ORDER

    place = capacities.place[which]
    blur = capacities.blur[which]
    time = capacities.time[which]
    slope = _slope(time, place)
    penalty = 0.5 * np.log(len(which)) + _CLEAR
    level, sloping = (values - np.median(values) for values in (place, place - slope * time))
    by_load = level.copy()
    loads = capacities.load[which]
    cost = 0.0

    for at in (loads == load for load in np.unique(loads)):
        if np.sum(at) >= _REPEATED:
            by_load[at] -= np.median(level[at])
            cost += 0.5 * np.log(len(which))

    candidates = [(_log_probability(by_load) - _log_probability(level) - cost, NO_ORDER, level)]
    trends = [(NO_ORDER, level, 0.0)]
    if abs(slope) >= _LEAST_DRIFT:
        trends.append((replace(NO_ORDER, drift=slope), sloping, penalty))
    sine = _sine(capacities, level)

    if sine.swing > _LEAST_SWING:
        left = level - sine.scale(time) + 1.0
        # Some half as many sines as trials are looked for: one of them is near to any values.
        cost = _SINE * np.log(len(which)) + np.log(0.5 * len(capacities.time)) + _CLEAR
        trends.append((sine, left - np.median(left), cost))

    for trend, left, cost in trends:
        gain = _log_probability(left) - _log_probability(level) - cost
        candidates.append((gain, trend, left))
        if _width(left) > _LEAST_DRIFT:
            correlation, likelier, share = _likeliest(left, capacities.gaps)
            candidates.append(
                (
                    gain + likelier - penalty,
                    replace(trend, correlation=correlation, share=share),
                    left,
                )
            )

    _, found, left = max(candidates, key=itemgetter(0))
    if found.swing:
        # The amplitude's by least squares.
        return replace(
            found, swing_stdev=float(np.sqrt(2.0 / (len(which) * found.share)) * _width(left))
        )
    if not found.drift:
        return found

    weight = 1.0 / (blur**2 + _width(sloping) ** 2)
    centre = float(np.average(time, weights=weight))
    power = float(np.sum(weight * (time - centre) ** 2))
    # Theil and Sen's slope is at least 0.9 times as efficient as least squares.
    return replace(found, centre=centre, drift_stdev=float(np.sqrt(1.1 / (power * found.share))))


def _sine(capacities: Capacities, values: Array) -> Order:
    """The sine that is nearest to values of the trials in which loss was certain, by least squares.

    Its period is at least four trials of all, however few of them are certain to lose: these come at uneven times.
    """
    time = capacities.time[capacities.certain]
    usual = _UNUSUAL * _width(values)
    values = np.clip(values, -usual, usual)
    most = 0.25 / float(np.median(np.diff(capacities.time)))
    cycles = np.arange(_FEW_CYCLES, np.clip(most, 2.0, _MOST_CYCLES), 0.1)
    found = NO_ORDER

    for near in (0.09, 0.009, 0.0):
        angle = 2.0 * np.pi * np.outer(cycles, time)
        columns = np.stack([np.sin(angle), np.cos(angle), np.ones_like(angle)], axis=1)
        products = columns @ values
        weights = (
            np.linalg.pinv(columns @ columns.swapaxes(1, 2), hermitian=True) @ products[..., None]
        )[..., 0]
        best = int(np.argmax(np.sum(weights * products, axis=1)))
        sine, cosine, _ = weights[best].tolist()
        found = replace(NO_ORDER, swing=float(np.hypot(sine, cosine)), cycles=float(cycles[best]))
        found = replace(found, phase=float(np.arctan2(cosine, sine)))
        cycles = found.cycles + np.linspace(-near, near, 19)

    return found


def _slope(time: Array, values: Array) -> float:
    """The median of the slopes between all pairs (Theil 1950, Sen 1968)."""
    step = -(-len(time) // _MOST_PAIRS)
    time, values = time[::step], values[::step]
    first, second = np.triu_indices(len(time), 1)
    return float(np.median((values[second] - values[first]) / (time[second] - time[first])))


def _log_probability(values: Array) -> float:
    """The largest log probability of values, but for a constant, under Student's t with 4 degrees of freedom.

    The likeliest width is found by expectation and maximization.
    """
    squares = values**2
    variance = _width(values) ** 2
    for _ in range(50):
        variance = max(float(np.mean(5.0 * squares / (4.0 + squares / variance))), _LEAST_WIDTH**2)
    return float(
        -0.5 * len(values) * np.log(variance) - 2.5 * np.sum(np.log1p(squares / (4.0 * variance)))
    )


def _width(values: Array) -> float:
    """Standard deviation of a sample's middle."""
    return float(max(1.4826 * np.median(np.abs(values)), _LEAST_WIDTH))


def _likeliest(values: Array, gap: Array) -> tuple[float, float, float]:
    """The likeliest correlation of successive capacities, and by how many nats it is better than none.

    Also the share of an independent trial that a trial counts as, on average.
    """
    # Of a normal distribution with the same ranks: what is far out counts as no more than its rank.
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    scores = scipy.special.ndtri((ranks + 0.5) / len(values))
    likeness = _CORRELATIONS[:, None] ** gap
    rest = 1.0 - likeness**2
    innovation = scores[1:] - likeness * scores[:-1]
    log_probability = -0.5 * np.sum(np.log(rest) + innovation**2 / rest - scores[1:] ** 2, axis=1)
    weight = np.exp(log_probability - log_probability.max())
    # The variance of a mean of successive trials is larger by this factor; it is averaged, as it is what counts.
    factor = float(np.average((1.0 + _CORRELATIONS) / (1.0 - _CORRELATIONS), weights=weight))
    best = int(np.argmax(log_probability))
    return float(_CORRELATIONS[best]), float(log_probability[best]), 1.0 / factor
