"""Whether the model fits the trials: if it does not, the estimate is no measurement, however narrow its interval.

Each trial has a residual: the distance of the capacity that explains its count from the capacity of the likeliest
curve, in standard deviations that the model allows. A wrong model shows in one of these:

- *spread*: around the best Poisson curve a healthy SUT's counts have a chi-squared of about 1 per trial;
- *shape*: where the capacity may vary, it has to vary normally, neither skewed nor with heavy tails;
- *curve*: residuals that go along with the load, because the loss has another shape;
- *surprise*: a trial that loses frames where (nearly) none can be lost;
- *trend*: residuals that rise or fall with time (draft 4.3.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, FittingFunction, LikelihoodName, TrialCounts
from lossratio.plrsearch.quadrature import Mode, Posterior
from lossratio.plrsearch.variation import Variation, excess_kurtosis, rank_correlation, skewness

_ENOUGH = 4
_ENOUGH_FOR_SHAPE = 20
_PARAMETERS = 2
_IMPROBABLE = 0.005
"""Largest probability of a flagged sample under the model, for each check."""
_IMPROBABLE_LIKENESS = 0.001
"""The same for neighbours' likeness: small counts make it a little likelier than normal residuals do."""
_VERY_IMPROBABLE = 1e-4
_LEAST_DRIFT = 5e-5
"""Smallest drift that is a reason, as a share of the capacity. Loads of a search change with time, so that a small
misfit at some of them looks like a drift: of up to 0.002 % on healthy SUTs whose interval is 0.003 % wide."""
_STEADY = 0.3
"""Standard deviation of residuals; if it is smaller, the SUT's loss varies less than chance, and has no shape: e.g. a
simulated SUT whose loss is the same in each trial, but for whole frames."""
TRIALS_FOR_TAILS = 150
"""Trials that show whether 2 % of all trials are unusually slow (Hanley and Lippman-Hand 1983)."""
_NONE_SEEN = 3.0
_LARGEST_ERROR = 0.05
"""Largest error of an integral, as a share of the posterior's mass."""
_MATTERS = 6.0
"""Nats of evidence below the better function's; a function that is farther below does not matter."""
_VARIES = 10.0
"""Nats by which trials are more probable if the capacity varies, with which it does, however few of them lost frames.
On healthy SUTs they are less probable then, by 1 to 3 nats."""
_CERTAIN = 3.0
"""Loss is certain if it is expected even of a capacity larger by so many standard deviations."""
_CERTAIN_LOSS = 16.0
"""Lost frames that are expected of that capacity, at least."""
_MOST_EXPECTED = 10.0
"""Largest expected loss of a trial that can be a surprise."""
_CAPACITIES = np.linspace(-6.0, 6.0, 49)
"""Capacities over which the probability of a surprise is averaged, in standard deviations."""


@dataclass(frozen=True)
class Misfit:
    """How well the model fits."""

    reasons: tuple[str, ...]
    """Why the model does not fit, or why its number is provisional, in words; empty if it fits."""
    chi_squared: float | None
    """Chi-squared per trial around the likeliest Poisson curve, of trials with more than one frame of expected loss;
    None if such trials are too few."""
    distance: float
    """Distance of both functions' mean critical loads, in their standard deviations. Large in nearly all healthy runs
    under the Poisson likelihood, so no reason by itself."""
    drift: float | None
    """Change of the capacity from the first to the last trial, by linear regression, as a share of the capacity; None
    if trials with loss are too few."""
    drift_stdev: float | None
    """The drift's standard deviation."""
    correlation: float | None
    """Correlation of the capacities of successive trials in which loss was certain; None if these are too few."""
    residuals: tuple[tuple[float, float], ...] = field(repr=False)
    """Load in frames per second of each trial in which loss was certain, and its residual in standard deviations, in
    the order of measurement."""
    provisional: str | None = None
    """The reason that more trials will end, one of `reasons`; None if there is none."""

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against the model."""
        return not self.reasons

    @property
    def is_wrong(self) -> bool:
        """Whether the trials speak against the model, so that more of them will not help."""
        return any(reason != self.provisional for reason in self.reasons)


def check(
    posteriors: Sequence[Posterior],
    poisson: Sequence[Posterior],
    counts: TrialCounts,
    likelihood: LikelihoodName,
    variation: Variation | None = None,
) -> Misfit:
    """Checks the model against the trials.

    Args:
        posteriors: The functions' posteriors under the likelihood of the estimate.
        poisson: The same under the Poisson likelihood; rough posteriors are enough.
        counts: The trials, in the order of measurement.
        likelihood: The likelihood of the estimate.
        variation: How the capacity varies, if not by independent normal numbers.
    """
    around_poisson = _residuals(poisson, counts)
    gain = _best(posteriors).log_evidence - _best(poisson).log_evidence
    if variation is not None:
        posteriors, counts = variation.posteriors, variation.counts
    residuals = _residuals(posteriors, counts) if likelihood is LikelihoodName.VARYING else around_poisson
    chi_squared = around_poisson.chi_squared
    drift, drift_stdev = _drift(residuals)
    if variation is not None and variation.order.drift:
        drift, drift_stdev = variation.order.change, variation.order.change_stdev
    varies = likelihood is LikelihoodName.VARYING
    is_described = variation is not None and not variation.shapes
    provisional = _provisional(chi_squared, gain, len(counts)) if varies and not is_described else None
    if variation is not None and variation.shapes:
        shown = variation.residuals
        values = np.array([value for _, value in shown])
        # Beside a tail of slow trials, unusually fast ones decide nothing.
        is_normal = max(variation.shapes, key=lambda shape: shape.weight).name == "normal"
        shape = _shape(values) if is_normal or not skewness(values).above else []
        reasons = [*shape, *_curve(np.array([load for load, _ in shown]), values)]
        reasons += _inexplicable(variation.surprises, variation.order.share, len(counts))
    else:
        values = residuals.standardized
        shown = tuple(
            (float(load), float(value)) for load, value in zip(residuals.load[residuals.certain], values, strict=True)
        )
        shape = (
            [*_shape(values), *_curve(residuals.load[residuals.certain], values)] if varies else _spread(chi_squared)
        )
        reasons = [*_uncertified(posteriors), *shape, *_surprise(residuals)]
        if varies or not reasons:
            # Around a curve that fits badly residuals depend on the load, and loads change with time.
            reasons += _trend(residuals, _drift(residuals)[0])
    return Misfit(
        reasons=tuple(reasons) if provisional is None else (*reasons, provisional),
        chi_squared=float(chi_squared.mean()) if len(chi_squared) >= _ENOUGH else None,
        distance=_distance(posteriors),
        drift=drift,
        drift_stdev=drift_stdev,
        correlation=_correlation(residuals.standardized),
        residuals=shown,
        provisional=provisional,
    )


def _provisional(chi_squared: Array, gain: float, trials: int) -> str | None:
    """Where the capacity varies, few trials do not show how often it is low.

    It is seen to vary by counts that scatter, or, where too few trials lost frames for that, by a trial without loss at
    a higher load than one with much: then the trials are more probable by many nats if it varies.
    """
    if trials >= TRIALS_FOR_TAILS or not (_spread(chi_squared) or gain > _VARIES):
        return None
    return (
        f"The SUT's capacity varies from trial to trial, and {trials} trials are too few to show how often it is low: "
        f"as many as {min(1.0, _NONE_SEEN / max(trials, 1)):.2g} of all trials may be unusually slow without a single "
        f"one among these. At least {TRIALS_FOR_TAILS} trials are needed."
    )


def _inexplicable(surprises: Array, share: float, trials: int) -> list[str]:
    """Whether losses where none was certain are so small that the shape of the capacities does not explain them."""
    if not len(surprises):
        return []
    # If capacities explain the losses, the probabilities are even, and this sum is gamma distributed.
    total = float(-np.sum(np.log(np.maximum(1.0 - surprises, 1e-15))))
    # Trials that are alike count as a share of one.
    if scipy.special.gammaincc(share * len(surprises), share * total) > _IMPROBABLE:
        return []
    return [
        f"{len(surprises)} of {trials} trials lost frames at loads at which they may have lost none, and too few for "
        f"slower trials: the SUT loses frames at times for a reason that is not the load."
    ]


def _correlation(values: Array) -> float | None:
    """Correlation of successive values; None if they are few, or all the same."""
    if len(values) < _ENOUGH_FOR_SHAPE or np.std(values) < _STEADY:
        return None
    centred = values - values.mean()
    return float(np.sum(centred[1:] * centred[:-1]) / np.sum(centred**2))


@dataclass(frozen=True)
class _Residuals:
    """Arrays of one entry per trial, in the order of measurement."""

    load: Array
    """Loads, in frames per second."""
    expected: Array
    """Mean lost frames of the curve."""
    lost: Array
    """Lost frames."""
    capacity: Array
    """Capacity that explains the count, as a share of the curve's own, less 1."""
    scale: Array
    """Standard deviation of `capacity` under the model."""
    certain: NDArray[np.bool_]
    """Whether loss was certain: else a trial without loss has a residual of unknown size."""
    chance: Array
    """The probability of so many losses or more; 1 where many are expected."""

    @classmethod
    def of(cls, function: FittingFunction, mode: Mode, counts: TrialCounts) -> _Residuals:
        spread, mrr = np.array(mode.spread), np.array(mode.mrr)
        expected = np.exp(function.log_loss_rate(counts.load, mrr, spread)) * counts.exposure
        log_rate = np.log(np.maximum(counts.lost, 0.7) / counts.exposure)
        place = np.maximum(function.explaining_mrr(counts.load, log_rate, spread), spread)
        slope = function.log_loss(counts.load, place, spread).slope
        width = -1.0 / (slope * np.sqrt(np.maximum(counts.lost, 1.0)))
        unlucky = function.log_loss_rate(counts.load, mrr + _CERTAIN * mode.deviation, spread)
        certain = np.exp(unlucky) * counts.exposure > _CERTAIN_LOSS
        return cls(
            counts.load,
            expected,
            counts.lost,
            place / mode.mrr - 1.0,
            np.hypot(width, mode.deviation) / mode.mrr,
            certain,
            _chance(function, mode, counts, expected),
        )

    @property
    def standardized(self) -> Array:
        """Residuals of trials in which loss was certain; normal if the model is right."""
        return np.asarray((self.capacity / self.scale)[self.certain])

    @property
    def chi_squared(self) -> Array:
        """Chi-squared of each trial with more than one frame of expected loss."""
        enough = self.expected > 1.0
        return np.asarray((self.lost[enough] - self.expected[enough]) ** 2 / self.expected[enough])


def _chance(function: FittingFunction, mode: Mode, counts: TrialCounts, expected: Array) -> Array:
    """The probability of each trial's losses or more, over all capacities; 1 for trials that are no surprise."""
    chance = np.ones(len(counts))
    few = np.flatnonzero((counts.lost > 0) & (expected < _MOST_EXPECTED))
    capacities = np.maximum(mode.mrr + mode.deviation * _CAPACITIES, mode.spread)
    weights = np.exp(-0.5 * _CAPACITIES**2)
    rates = np.exp(function.log_loss_rate(counts.load[few, None], capacities, np.array(mode.spread)))
    means = np.maximum(rates * counts.exposure[few, None], 1e-300)
    # The probability of k losses or more is the incomplete gamma function's.
    chance[few] = scipy.special.gammainc(counts.lost[few, None], means) @ (weights / weights.sum())
    return chance


def _residuals(posteriors: Sequence[Posterior], counts: TrialCounts) -> _Residuals:
    """Residuals of the function that fits best."""
    best = _best(posteriors)
    return _Residuals.of(best.function, best.mode, counts)


def _best(posteriors: Sequence[Posterior]) -> Posterior:
    return max(posteriors, key=lambda posterior: posterior.log_evidence)


def _uncertified(posteriors: Sequence[Posterior]) -> list[str]:
    """Whether the integral of a function that matters is not exact enough."""
    best = max(posterior.log_evidence for posterior in posteriors)
    return [
        f"The posterior of the {posterior.function.name} function is too rough for the quadrature: its mass may be "
        f"wrong by a share of {posterior.error:.2g}."
        for posterior in posteriors
        if posterior.error > _LARGEST_ERROR and posterior.log_evidence > best - _MATTERS
    ]


def _spread(chi_squared: Array) -> list[str]:
    if (
        len(chi_squared) < _ENOUGH
        or scipy.special.chdtrc(len(chi_squared) - _PARAMETERS, chi_squared.sum()) > _IMPROBABLE
    ):
        return []
    return [
        f"Counts of lost frames scatter more than chance alone would have it: chi-squared is {chi_squared.mean():.3g} "
        f"per trial around the best curve, where it should be about 1. The SUT's capacity varies from trial to trial, "
        f"or neither function has the shape of its loss."
    ]


def _shape(values: Array) -> list[str]:
    if len(values) < _ENOUGH_FOR_SHAPE or np.std(values) < _STEADY:
        return []
    reasons = []
    skew, kurtosis = skewness(values), excess_kurtosis(values)
    if skew.probability < _IMPROBABLE:
        slow = "slow" if skew.value < 0 else "fast"
        reasons.append(
            f"The capacity varies, but not normally: it is skewed by {skew.value:.2f}. Some trials are "
            f"unusually {slow}; a target loss ratio is decided by the slow ones, and they are not modelled."
        )
    if kurtosis.probability < _IMPROBABLE:
        far = "some trials are unusually far from the others" if kurtosis.above else "there are two bands"
        reasons.append(
            f"The capacity varies, but not normally: {far} (excess kurtosis {kurtosis.value:.2f}). So few "
            f"trials do not show how often the capacity is low, and how low."
        )
    if scipy.special.chdtrc(len(values), np.sum(values**2)) < _IMPROBABLE:
        reasons.append(
            f"The capacity varies more than the model allows, by {np.mean(values**2):.3g} times its largest variance."
        )
    return reasons


def _curve(loads: Array, values: Array) -> list[str]:
    """Whether neighbours in load have similar residuals: by the correlation of their ranks."""
    values = values[np.argsort(loads, kind="stable")]
    if len(values) < _ENOUGH_FOR_SHAPE or np.std(values) < _STEADY:
        return []
    likeness = rank_correlation(values[1:], values[:-1])
    if likeness.value < 0.0 or likeness.probability > _IMPROBABLE_LIKENESS:
        return []
    return [
        f"Neither function has the shape of the SUT's loss: trials at neighbouring loads err to the same side "
        f"(correlation {likeness.value:.2f})."
    ]


def _surprise(residuals: _Residuals) -> list[str]:
    """Trials with loss at loads where the curve has none, if chance does not explain it."""
    number = int(np.sum(residuals.chance < _VERY_IMPROBABLE))
    if not number:
        return []
    return [
        f"{number} of {len(residuals.lost)} trials lost frames at loads at which the curve loses (nearly) none: "
        f"the SUT loses frames at times for a reason that is not the load."
    ]


def _trend(residuals: _Residuals, drift: float | None) -> list[str]:
    """Whether residuals rise or fall with time: by ranks, so that no single trial makes a trend."""
    values = residuals.standardized
    if drift is None or abs(drift) < _LEAST_DRIFT or np.std(values) < _STEADY:
        return []
    ranks = rank_correlation(np.arange(float(len(values))), values)
    if ranks.probability > _IMPROBABLE:
        return []
    return [
        f"The SUT's capacity changed by about {drift:+.3%} from the first to the last trial (by chance with a "
        f"probability of {ranks.probability:.2g} only): it was not in a steady state."
    ]


def _drift(residuals: _Residuals) -> tuple[float | None, float | None]:
    """Weighted linear regression of capacities over the trials' order, and its standard deviation."""
    certain = residuals.certain
    if certain.sum() < _ENOUGH_FOR_SHAPE:
        return None, None
    time = np.linspace(0.0, 1.0, len(certain))[certain]
    capacity, weight = residuals.capacity[certain], residuals.scale[certain] ** -2
    centred = time - np.average(time, weights=weight)
    power = float(np.sum(weight * centred**2))
    slope = float(np.sum(weight * centred * capacity)) / power
    left = capacity - np.average(capacity, weights=weight) - slope * centred
    excess = float(np.sum(weight * left**2)) / (len(time) - _PARAMETERS)
    return slope, float(np.sqrt(max(excess, 1.0) / power))


def _distance(posteriors: Sequence[Posterior]) -> float:
    first, second = (posterior.moments for posterior in posteriors)
    return abs(first.mean - second.mean) / max(float(np.hypot(first.stdev, second.stdev)), 1e-300 * first.mean)
