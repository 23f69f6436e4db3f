"""Which load to offer next: the draft's rule, and one that looks for what the posterior does not know yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lossratio.plrsearch.critical import CriticalLoadQuestion
from lossratio.plrsearch.curves import Curves
from lossratio.plrsearch.distribution import Mode, Posterior
from lossratio.plrsearch.functions import Array
from lossratio.trial import TrialResult

_DRAINED = 3
_OVERLOAD = 4.0
"""How far above the mrr overload is, in widths of the knee and standard deviations of the capacity."""
_CANDIDATES = 12
_NODES = 400
_TYPICAL_DURATION = 5.0
"""Seconds of a trial, for the noise of its count."""
_MODEL_ERROR = 0.03
"""Relative error of the curve that no count can beat: no trial is taken for more precise than that."""


@dataclass(frozen=True)
class Choice:
    """A load, and why.

    Attributes:
        load: In frames per second.
        purpose: For people.
    """

    load: float
    purpose: str


class Selection(Protocol):
    """Chooses loads. It is told each result once, in order.

    Attributes:
        needs_posterior_from: Trials from which on a choice is based on posteriors.
        lag: How many of the latest results these posteriors do not know.
    """

    needs_posterior_from: int
    lag: int

    def record(self, result: TrialResult) -> None:
        """Takes in a result."""

    def choose(self, posteriors: Sequence[Posterior]) -> Choice:
        """The next load; within the limits.

        Args:
            posteriors: The fitting functions' posteriors that the choice may be based on; empty if there are none yet.
        """


class DraftSelection:
    """The rule of the draft, sections 5.6 and 4.3.2.

    A list of lossy loads, which begins with the maximum load, draws the next load upwards after trials with loss ratios
    below the target: else such trials would go on for long.
    """

    needs_posterior_from = 4
    lag = 1  # The draft integrates while it measures (4.3.2).

    def __init__(self, question: CriticalLoadQuestion) -> None:
        self._question = question
        self._lossy_loads = [question.max_load]
        self._drained = 0.0
        self._quiet = 0
        self._trials = 0
        self._forwarding_rate = question.max_load

    def record(self, result: TrialResult) -> None:
        """See `Selection.record`."""
        self._trials += 1
        self._quiet += 1
        self._forwarding_rate = result.forwarding_rate
        if result.loss_ratio >= self._question.target_loss_ratio:
            self._lossy_loads = sorted(self._lossy_loads + [result.load] * (4 * self._quiet))
            self._quiet = 0
            return
        self._drained = self._lossy_loads[0]
        if len(self._lossy_loads) > _DRAINED:
            del self._lossy_loads[:_DRAINED]

    def choose(self, posteriors: Sequence[Posterior]) -> Choice:
        """See `Selection.choose`."""
        question = self._question
        if self._trials == 0:
            return Choice(0.5 * (question.min_load + question.max_load), "the middle of the loads")
        if self._trials == 1:
            return Choice(question.max_load, "the maximum load")
        if not posteriors:
            load = self._forwarding_rate / (1.0 - question.target_loss_ratio)
            return Choice(_clamped(load, question), "the forwarding rate of the last trial")
        mean = float(np.mean([each.moments.mean for each in posteriors]))
        return Choice(_clamped(self._drawn(mean), question), f"the estimate, {mean:,.0f} frames/s")

    def _drawn(self, mean: float) -> float:
        """The estimate, after quiet trials drawn towards the lossy load that was the smallest."""
        if not self._quiet or self._drained <= mean:
            return mean
        weight = 2.0 ** (1 - self._quiet)
        return (self._drained + weight * mean) / (1.0 + weight)


class PosteriorSelection:
    """Every other trial in overload, the others where their counts are expected to tell most about the critical load.

    In overload a trial's count shows the capacity it found, to a part in ten thousand. How much the capacity varies
    decides about a loss ratio of 1e-7, so these trials are not wasted; without variation they fix the curve's place.
    """

    needs_posterior_from = 3
    lag = 0

    def __init__(self, question: CriticalLoadQuestion) -> None:
        self._question = question
        self._trials = 0
        self._forwarding_rate = question.max_load

    def record(self, result: TrialResult) -> None:
        """See `Selection.record`."""
        self._trials += 1
        self._forwarding_rate = result.forwarding_rate

    def choose(self, posteriors: Sequence[Posterior]) -> Choice:
        """See `Selection.choose`."""
        question = self._question
        if self._trials == 0:
            return Choice(question.max_load, "the maximum load")
        if not posteriors:
            load = self._forwarding_rate / (1.0 - question.target_loss_ratio)
            return Choice(_clamped(load, question), "the forwarding rate of the last trial")
        best = max(posteriors, key=lambda each: each.log_evidence)
        mode = best.mode
        if self._trials % 2 == 0:
            load = mode.mrr + _OVERLOAD * float(np.hypot(2.0 * mode.spread, mode.deviation))
            return Choice(_clamped(max(load, 1.005 * mode.mrr), question), "overload, to see the capacity")
        load = _most_informative(best, mode, question)
        return Choice(load, f"most informative about {best.moments.mean:,.0f} frames/s")


def _most_informative(posterior: Posterior, mode: Mode, question: CriticalLoadQuestion) -> float:
    """The load whose count is expected to reduce the variance of log c most, by linear regression on the nodes."""
    lowest = min(posterior.moments.mean, mode.mrr)
    candidates = np.linspace(lowest, mode.mrr + 2.0 * mode.spread, _CANDIDATES)
    candidates = np.unique(np.clip(candidates, question.min_load, question.max_load))
    masses = posterior.masses.ravel()
    chosen = np.argsort(-masses, kind="stable")[:_NODES]
    weights = masses[chosen] / masses[chosen].sum()
    panel = chosen // posterior.panels.log_density.shape[1]
    panels = posterior.panels
    curves = Curves(posterior.function, np.exp(panels.log_spread[panel]), panels.deviation[panel])
    mrr = np.exp(panels.log_mrr.ravel()[chosen])
    log_load = np.log(panels.critical_load.ravel()[chosen])
    gains = [_gain(curves, mrr, log_load, weights, mode, float(load)) for load in candidates]
    return float(candidates[int(np.argmax(gains))])


def _gain(curves: Curves, mrr: Array, log_load: Array, weights: Array, mode: Mode, load: float) -> float:
    """Expected reduction of the variance of log c by a trial of about 5 s at a load."""
    point = curves.at(np.full(len(mrr), load), mrr, np.arange(len(mrr)))
    log_rate, centre = point.log_rate, float(np.sum(weights * point.log_rate))
    variance = float(np.sum(weights * (log_rate - centre) ** 2))
    covariance = float(np.sum(weights * (log_rate - centre) * (log_load - np.sum(weights * log_load))))
    steepness = float(np.sum(weights * point.mrr_slope))
    poisson = np.exp(min(-centre, 300.0)) / _TYPICAL_DURATION
    noise = poisson + min((steepness * mode.deviation) ** 2, 4.0) + _MODEL_ERROR**2
    return covariance**2 / (variance + float(noise))


def _clamped(load: float, question: CriticalLoadQuestion) -> float:
    return min(max(load, question.min_load), question.max_load)
