"""Whether the model fits the trials: if it does not, the estimate is no measurement, however narrow its interval.

Trials at equal loads say first whether the capacity varies. Where it is constant, lost frames at each load are compared
with the likeliest curve. Where it varies, each trial has a residual: the distance of the capacity that explains its
count from the capacity of the likeliest curve, in standard deviations that the model allows. A wrong model shows in one
of these:

- *spread*: around the best Poisson curve a healthy SUT's counts have a chi-squared of about 1 per trial;
- *shape*: where the capacity varies, it has to vary normally;
- *curve*: where it is constant, lost frames at each load that neither function explains;
- *surprise*: a trial that loses frames where (nearly) none can be lost;
- *order*: so few independent trials that they show little.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
import scipy

from lossratio.plrsearch.estimate.tails import Tails
from lossratio.plrsearch.model import Array, LikelihoodName, TrialCounts
from lossratio.plrsearch.quadrature import Posterior, posteriors
from lossratio.plrsearch.variation import (
    ENOUGH,
    FEW_CYCLES,
    Capacities,
    Description,
    LackOfFit,
    Replicates,
)
from lossratio.trials import Observed

_ENOUGH = 4
_ENOUGH_INDEPENDENT = 20.0
"""Independent trials that show how far down capacities go."""
_PARAMETERS = 2
_IMPROBABLE = 0.002
"""Largest probability of a flagged sample under the model, for each check."""
_NOT_NORMAL = 1.32
"""Anderson and Darling's distance of a normal sample, but for a share `_IMPROBABLE` of them."""
_VERY_IMPROBABLE = 1e-4
_STEADY = 0.3
"""Standard deviation of residuals; if it is smaller, the SUT's loss varies less than chance, and has no shape: e.g. a
simulated SUT whose loss is the same in each trial, but for whole frames."""
_NARROW = 0.7
"""Standard deviation of residuals in overload, at most, if it contradicts the model's."""
TRIALS_FOR_TAILS = 150
"""Trials that show whether 2 % of all trials are unusually slow (Hanley and Lippman-Hand 1983)."""
_NONE_SEEN = 3.0
"""As many rare events are expected in trials that have none of them with a probability of 5 %, at most."""
_RARE_S, _STALL_S = 300.0, 0.01
"""Seconds between the rarest stalls that trials have to show, and of the longest: longer ones lose a high target."""
_QUIET = 1000.0
"""Largest loss ratio of trials that show a stall, in targets."""
_LARGEST_ERROR = 0.05
"""Largest error of an integral, in nats and in standard deviations."""
_MATTERS = 6.0
"""Nats of evidence below the better function's; a function that is farther below does not matter."""
_MOST_EXPECTED = 10.0
"""Largest expected loss of a trial that can be a surprise."""
_CAPACITIES = np.linspace(-6.0, 6.0, 49)
"""Capacities over which the probability of a surprise is averaged, in standard deviations."""


@dataclass(frozen=True)
class FitCheck(Observed):
    """How well the model fits the trials; a value beyond its limit is among the reasons of a misfit."""

    chi_squared_per_trial: float | None
    """Chi-squared per trial around the likeliest Poisson curve; null: the capacity varies, or too few trials lost
    frames."""
    function_distance_stdevs: float
    """Distance of the functions' mean critical loads, in their standard deviations. Large in nearly all healthy runs
    under the Poisson likelihood, so no reason by itself."""
    drift_ratio: float | None
    """Change of the capacity from the first to the last trial, as a share; null: none is seen."""
    drift_stdev_ratio: float | None
    """Standard deviation of the drift."""
    replicates_chi_squared: float | None = None
    """Chi-squared per degree of freedom of trials at equal loads: about 1 where they differ no more than by chance;
    null: no loads are equal, or an earlier version."""
    replicates_freedom: int | None = None
    """Its degrees of freedom; null: by an earlier version."""
    described_below_fps: float | None = None
    """The functions describe the trials below that load (of each transmitting interface) only, as neither fits all of
    them; null: they describe all, or an earlier version."""
    heavy_tails_ratio: float | None = None
    """Probability that the capacity has heavier tails than a normal distribution: the interval reaches down to the
    critical load with these; null: the trials show a constant capacity or are too few, or an earlier version."""


@dataclass(frozen=True)
class Misfit:
    """How well the model fits."""

    reasons: tuple[str, ...]
    """Why the model does not fit, or why its number is provisional, in words; empty if it fits."""
    fit: FitCheck
    """The numbers behind them."""
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


def _residuals(description: Description) -> Array:
    """Residuals of trials that show how a varying capacity is distributed; empty if they are too few."""
    if description.likelihood is not LikelihoodName.VARYING:
        return np.zeros(0)
    mode = description.best.mode
    capacities = Capacities.of(description.best, description.counts)
    shown = capacities.residuals(float(mode.deviation / mode.mrr), description.order.correlation)
    if len(shown) < ENOUGH or np.std(shown) < _STEADY:
        return np.zeros(0)
    return shown


def tails_of(description: Description) -> Tails | None:
    """Tails of the capacity, by trials that show how it is distributed; None: they are so few as to be provisional."""
    shown = _residuals(description)
    enough = len(description.counts) >= TRIALS_FOR_TAILS and len(shown)
    if enough:
        return Tails.of(shown, description.best)
    return None


def check(description: Description, trials: int, tails: Tails | None = None) -> Misfit:
    """Checks the model against the trials; `trials` is the number of all, also of those that are not described."""
    best = description.best
    order = description.order
    counts = description.counts
    varies = description.likelihood is LikelihoodName.VARYING
    chi_squared = np.zeros(0)
    if description.likelihood is LikelihoodName.GEOMETRIC:
        known = posteriors(counts, best.question, LikelihoodName.POISSON, for_selection=True)
        best = max(known, key=attrgetter("log_evidence"))

    if not varies:
        expected = _expected(best, counts)
        chi_squared = ((counts.lost - expected) ** 2 / np.maximum(expected, 1.0))[expected > 1.0]

    one, other = description.posteriors
    stdev = max(float(np.hypot(one.stdev, other.stdev)), 1e-300 * one.mean)
    provisional = (
        _provisional(description, trials) if varies or description.lack_of_fit is not None else None
    )
    if description.lack_of_fit is not None:
        reasons = _of_constant_capacity(description, description.lack_of_fit)
    else:
        reasons = (
            _of_varying_capacity(description, tails)
            if varies
            else _of_counts(best, counts, chi_squared)
        )

    return Misfit(
        reasons=(*reasons,) if provisional is None else (*reasons, provisional),
        fit=FitCheck(
            chi_squared_per_trial=float(chi_squared.mean())
            if len(chi_squared) >= _ENOUGH
            else None,
            function_distance_stdevs=abs(one.mean - other.mean) / stdev,
            drift_ratio=order.change if order.drift else None,
            drift_stdev_ratio=order.change_stdev if order.drift else None,
            replicates_chi_squared=description.replicates.ratio,
            replicates_freedom=description.replicates.freedom,
            described_below_fps=description.below,
            heavy_tails_ratio=None if tails is None else tails.probability,
        ),
        provisional=provisional,
    )


def _of_constant_capacity(description: Description, lack: LackOfFit) -> Iterator[str]:
    """Whether the curve has the shape of the loss, where trials at equal loads differ by chance only."""
    if description.bursts is not None:
        yield (
            f"Some trials lose more than others at their load: {description.bursts}. The number is with these, as far "
            "as known."
        )
    elif lack.is_certain:
        near = (
            ""
            if description.below is None
            else f", not even at the loads below {description.below:,.10g} frames/s"
        )
        yield (
            f"Neither function has the shape of the SUT's loss{near}: chi-squared is "
            f"{lack.deviance / lack.freedom:.3g} per load around the likeliest curve, where it should be about 1."
        )


def rare_stalls(description: Description) -> str | None:
    """That stalls which alone lose the target may be in none of the trials, where the capacity is constant."""
    counts = description.counts
    target = description.best.question.target_loss_ratio
    every = min(_RARE_S, _STALL_S / target)
    shown = counts.lost <= _QUIET * target * counts.load * counts.exposure
    seconds = float(counts.duration[shown].sum())
    needed = _NONE_SEEN * every
    if description.lack_of_fit is None or description.bursts is not None or seconds >= needed:
        return None
    return (
        f"Rare stalls are open: none is seen in the {seconds:,.0f} s of trials that would show one, and "
        f"{needed:,.0f} s are needed (a longer timeout). Stalls of {target * every:.2g} s, once in {every:,.0f} s, "
        "lose the target by themselves."
    )


def _provisional(description: Description, trials: int) -> str | None:
    """Few trials do not show losses that come in few of them: a stall, or a capacity that is rarely low."""
    if trials >= TRIALS_FOR_TAILS:
        return rare_stalls(description)
    cause = (
        "Trials at equal loads differ by more than chance. "
        if description.replicates.differ
        else ""
    )
    return (
        f"{cause}{trials} trials are too few to show how often the SUT loses more: as many as "
        f"{min(1.0, _NONE_SEEN / max(trials, 1)):.2g} of all trials may be unusually slow, or stall, without a single "
        f"one among these. At least {TRIALS_FOR_TAILS} trials are needed."
    )


def _of_counts(best: Posterior, counts: TrialCounts, chi_squared: Array) -> Iterator[str]:
    """Whether counts scatter by chance only, and lose nothing where the curve does not."""
    freedom = len(chi_squared) - _PARAMETERS
    if (
        len(chi_squared) >= _ENOUGH
        and scipy.special.chdtrc(freedom, chi_squared.sum()) <= _IMPROBABLE
    ):
        yield (
            f"Counts of lost frames scatter more than chance alone would have it: chi-squared is "
            f"{chi_squared.mean():.3g} per trial around the best curve, where it should be about 1. The SUT's capacity "
            f"varies from trial to trial, or neither function has the shape of its loss."
        )
    yield from _surprise(best, counts)


def _of_varying_capacity(description: Description, tails: Tails | None) -> Iterator[str]:
    """Whether integrals are exact, trials independent and enough, and capacities distributed normally."""
    best = description.best
    order = description.order
    counts = description.counts
    independent = description.independent_trials

    for posterior in description.posteriors:
        if (
            posterior.error > _LARGEST_ERROR
            and posterior.log_evidence > best.log_evidence - _MATTERS
        ):
            yield (
                f"The posterior of the {posterior.name} function is too rough for the integral: its mass may be wrong "
                f"by a share of {posterior.error:.2g}."
            )

    if order.swing and order.cycles < FEW_CYCLES:
        yield (
            f"The capacity changes in time by about {order.swing:.2%} either way, as in {order.cycles:.2g} periods of "
            f"a sine: {FEW_CYCLES:.0f} are needed to know that it repeats. A longer search shows more."
        )
    elif order.share != 1.0 and independent < _ENOUGH_INDEPENDENT:
        yield (
            f"Successive trials are alike: {len(counts)} trials show as much as {independent:.2g} independent ones, "
            f"and {_ENOUGH_INDEPENDENT:.0f} are needed. A longer search, or longer trials, show more."
        )

    yield from _surprise(best, counts)
    yield from _narrow(description)
    # Where a few trials alone make the capacity vary: a capacity that varies would in the others, too.
    if not order.swing and Replicates.without_largest(counts).are_alike:
        worst = int(np.argmax(counts.lost / (counts.load * counts.exposure)))
        yield (
            f"Few trials alone make the capacity vary: without those that lost most at each load, chance explains how "
            f"trials at equal loads differ. One lost {counts.lost[worst]:,.0f} frames at {counts.load[worst]:,.10g} "
            f"frames/s."
        )

    if len(shown := _residuals(description)):
        yield from _shape(shown)
        if tails is not None and tails.are_seen:
            yield (
                f"The capacity has heavier tails than a normal distribution (probability {tails.probability:.4g}). So "
                f"the trials do not show how low it gets."
            )


def _expected(posterior: Posterior, counts: TrialCounts) -> Array:
    """Mean lost frames of the likeliest curve."""
    return np.asarray(np.exp(posterior.mode.log_loss_rate(counts.load)) * counts.exposure)


def _shape(values: Array) -> Iterator[str]:
    """Whether values are normal, by Anderson and Darling's test: it looks at the tails (D'Agostino, Stephens 1986)."""
    n = len(values)
    ordered = np.sort((values - values.mean()) / np.std(values, ddof=1))
    tails = scipy.special.log_ndtr(ordered) + scipy.special.log_ndtr(-ordered[::-1])
    distance = (-n - np.mean(np.arange(1.0, 2.0 * n, 2.0) * tails)) * (1.0 + 0.75 / n + 2.25 / n**2)
    if distance >= _NOT_NORMAL:
        yield (
            f"Trials do not differ as by a normal distribution of the capacity (Anderson and Darling's distance is "
            f"{distance:.3g}, and {_NOT_NORMAL} at most by chance): some are unusually far from the others, or there "
            f"are bands. So the trials do not show how often the capacity is low, and how low."
        )


def _narrow(description: Description) -> Iterator[str]:
    """Whether capacities in overload differ as much as the model has it: elsewhere slow trials may have widened it."""
    best = description.best
    capacities = Capacities.of(best, description.counts)
    deviation = best.mode.deviation / best.mode.mrr
    shown = (
        capacities.place[capacities.certain & (capacities.blur < _STEADY * deviation)] / deviation
    )
    if len(shown) < ENOUGH or description.order.correlation or np.std(shown) > _NARROW:
        return
    if scipy.special.chdtr(len(shown) - 1.0, len(shown) * np.var(shown)) <= _IMPROBABLE:
        yield (
            f"Capacities in overload differ by {np.std(shown):.2g} of the standard deviation that explains all trials: "
            f"others are unusually slow, and the trials do not show how often, and by how much."
        )


def _surprise(posterior: Posterior, counts: TrialCounts) -> Iterator[str]:
    """Trials with loss at loads where the curve has none, if chance does not explain it, over all capacities."""
    mode = posterior.mode
    quiet = _expected(posterior, counts) < _MOST_EXPECTED
    few = np.flatnonzero((counts.lost > 0) & quiet)
    capacities = np.maximum(mode.mrr + mode.deviation * _CAPACITIES, mode.spread)
    weights = np.exp(-0.5 * _CAPACITIES**2)
    rates = np.exp(replace(mode, mrr=capacities).log_loss_rate(counts.load[few, None]))
    means = np.maximum(rates * counts.exposure[few, None], 1e-300)
    # The probability of k losses or more is the incomplete gamma function's.
    chance = scipy.special.gammainc(counts.lost[few, None], means) @ (weights / weights.sum())
    # All the trials at such loads are looked at: one of many is improbable by chance.
    number = int(np.sum(chance < min(_VERY_IMPROBABLE, _IMPROBABLE / max(int(quiet.sum()), 1))))
    if number:
        yield f"{number} of {len(counts)} trials lost frames at loads at which the likeliest curve loses (nearly) none."
