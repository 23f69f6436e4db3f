"""The load of the next trial: where a trial is expected to reduce the uncertainty most.

In overload a count shows the capacity: of these, trials at equal loads say how many are needed.
"""

from dataclasses import dataclass, replace

import numpy as np

from lossratio.plrsearch.estimate import NEAR
from lossratio.plrsearch.model import (
    Array,
    CriticalLoadQuestion,
    LikelihoodName,
    Weighting,
    critical_load,
)
from lossratio.plrsearch.variation import Description
from lossratio.trials import TrialResult

_OVERLOAD = 5.0
"""How far above the mrr overload is, in widths of the knee and standard deviations of the capacity."""
_IN_OVERLOAD = 0.15
"""Share of trials in overload: without any, no trial shows whether capacities vary normally."""
_IF_CONSTANT = 0.05
"""The same while trials at equal loads show that the capacity is constant."""
_IF_VARYING = 0.7
"""The same while they show that it varies."""
_RUN = 3.0
"""Trials by which those in overload may be late or early, where the capacity varies: so there are runs of some ten of
them and of some others, which show what overload leaves behind."""
_OVERLOAD_STEP = 0.004
"""Largest step between loads in overload, as a share: equal ones show whether the capacity varies."""
_CANDIDATES = 12

_POINTS = 256
_MODEL_ERROR = 0.03
"""Relative error of the curve itself: no trial counts as more precise."""
_LOCAL_ERROR = 0.05
"""The same, in addition, for each nat of distance from the target, where the curve holds near it only."""
_ALIKE = 0.5
"""Nats by which losses of trials that share this error differ, at most."""
_UNEXPLORED = 4
"""Loads that are looked at where loss begins, before they are known to be fitted by a function."""

_SHARE, _MOST = 0.15, 0.2
"""Share of the trials that are at and just below the reported load, and of those that were meant to be, at most."""
_FIRST = 50
"""Where the capacity is constant: number of trials after which others guard, too."""
_WATCHING = 0.6
"""The share of the others that guards then."""
_ENOUGH = 120
"""Number of guarding trials after which no more are added. A stall that comes once a minute is in none of 120 trials
of 2 s with a probability of 2 %; few other trials would show it."""
_KNOWN = 0.02
"""Largest standard deviation of the critical load, as a share of its mean, with which it is guarded."""
_JUST_BELOW = 0.1
"""Share of the target that the likeliest curve loses just below the reported load."""


@dataclass(frozen=True)
class Choice:
    """A load, and the reason for it."""

    load: float
    """In frames per second."""
    purpose: str
    """The reason in words."""


class Guarding:
    """Chooses guard trials. It gets each trial once, in order.

    Attributes:
        load: The load about to be reported, in frames per second; None: it is not known well enough to be guarded.
    """

    def __init__(
        self, question: CriticalLoadQuestion, weighting: Weighting = Weighting.EVIDENCE
    ) -> None:
        """Begins without trials; the question has target and limits, and the weighting is that of the stated load."""
        self._question, self._weighting = question, weighting
        self._loads: list[float] = []
        self._given = 0
        self._known: Description | None = None
        self.load: float | None = None
        self._guards: tuple[float, float] = (0.0, 0.0)

    def record(self, load: float) -> None:
        """Takes in the load of a trial."""
        self._loads.append(load)

    def wanted(self, known: Description, *, watching: bool = False) -> float | None:
        """The load of the next trial, if it is to be a guard trial; None if another one is needed more.

        Args:
            known: The description of the trials.
            watching: Whether as many are wanted as it takes to see a rare stall.
        """
        if known is not self._known:
            self._known = known
            self._place(known)
        trials = len(self._loads)
        rare = min(_WATCHING * (trials - _FIRST), _ENOUGH) if watching else 0.0
        if self.load is None or self._given >= max(
            _MOST * trials, rare + (_MOST - _SHARE) * trials
        ):
            return None
        guarding = sum((1.0 - NEAR) * self.load <= load <= self.load for load in self._loads)
        if guarding >= max(_SHARE * trials, rare):
            return None
        self._given += 1
        return self._guards[self._given % 2]

    def _place(self, known: Description) -> None:
        """The load to guard, and those of guard trials: one standard deviation below it, and where loss is rare.

        They are on a grid, so that equal loads are frequent. The load is the stated one. Where bursts alone lose the
        target, there is none: then trials where the curves lose it show the bursts best.
        """
        posterior = known.best
        share = posterior.stdev / posterior.mean
        self.load = None
        if share > _KNOWN:
            return

        shown = (known, replace(known, bursts=None))
        with_bursts, without = (
            float(each.mixed(self._weighting).rough_quantiles([0.5])[0]) for each in shown
        )
        self.load = with_bursts if with_bursts > self._question.min_load else without
        curves = posterior.curves.at(np.full(2, posterior.likeliest))
        targets = self._question.target_loss_ratio * np.array([1.0, _JUST_BELOW])
        there, below = critical_load(curves, self._question, targets)
        stdev = max(share, 1e-9) * self.load
        step = 2.0 ** np.floor(np.log2(stdev))
        near, below = (
            float(step * np.floor(load / step))
            for load in (self.load - stdev, self.load * below / there)
        )
        self._guards = near, min(near, below)


class PosteriorSelection:
    """Trials that are expected to reduce the uncertainty of the critical load most.

    Some of them are in overload: there a count shows the capacity in that trial, to a part in ten thousand. The
    variation of the capacity decides about a loss ratio of 1e-7. Some others guard the load that is about to be
    reported (see `Guarding`): there a loss for another reason than the load is seen. All trials have the
    duration that the user chose: the capacity of a SUT with memory, such as a policer, depends on it.

    Attributes:
        needs_posterior_from: After so many trials a choice is based on a description, of all but the last one: it is
            made while that runs.
        duration: Seconds of the first trial.
        growth: Seconds that each trial is longer than the one before.
        estimate: What FD.io CSIT's code reports, if this is its selection.
    """

    needs_posterior_from = 5
    duration, growth = 2.0, 0.0
    estimate = None

    def __init__(
        self, question: CriticalLoadQuestion, likelihood: LikelihoodName, weighting: Weighting
    ) -> None:
        self._question = question
        self._own_noise = 1.0 if likelihood is LikelihoodName.GEOMETRIC else 0.0
        self._varies = likelihood is LikelihoodName.VARYING
        self._trials = self._overloads = 0
        self._guarding = Guarding(question, weighting)
        self._forwarding_rate = question.max_load
        self._overloading = False
        self._overload: float | None = None
        self._reach = 1.0

    def record(self, result: TrialResult) -> None:
        """Takes in a result. It gets each one once, in order."""
        self._trials += 1
        self._guarding.record(result.load)
        self._forwarding_rate = result.forwarding_rate
        if self._overload is not None and result.output.lost_frames:
            self._reach = 1.0
        elif self._overload is not None and self._overload < self._question.max_load:
            # It was no overload, e.g. because the first trials were slow ones: the next one goes twice as far.
            self._overloads -= 1
            self._reach *= 2.0
        self._overload = None

    def choose(self, known: Description | None, duration: float) -> Choice:
        """The next trial of that duration in seconds; its load is within the limits.

        The description of the trials is known that the choice may be based on; None if there is none yet.
        """
        question = self._question
        if self._trials == 0:
            return Choice(question.max_load, "the maximum load")
        if known is None:
            load = self._forwarding_rate / (1.0 - question.target_loss_ratio)
            return Choice(
                _in_whole_frames(load, duration, question), "the forwarding rate of the last trial"
            )

        best = known.best
        constant = known.lack_of_fit is not None and known.unexplored is None
        guard = self._guarding.wanted(known, watching=constant)
        if guard is not None:
            return Choice(
                _in_whole_frames(guard, duration, question),
                f"guard of {self._guarding.load:,.0f} frames/s",
            )

        share, run = (_IF_VARYING, _RUN) if known.replicates.differ else (_IN_OVERLOAD, 0.0)
        if known.after_overload is not None:
            run = _RUN
        elif known.lack_of_fit is not None:
            share = _IF_CONSTANT

        late = share * self._trials - self._overloads
        self._overloading = late > (-run if self._overloading else run)
        if self._varies and self._overloading:
            self._overloads += 1
            mode, reach = best.mode, self._reach
            load = float(mode.mrr + reach * _OVERLOAD * np.hypot(2.0 * mode.spread, mode.deviation))
            load = max(load, (1.0 + 0.005 * reach) * float(mode.mrr))
            step = 2.0 ** np.floor(np.log2(_OVERLOAD_STEP * load))
            self._overload = clamped(float(step * np.ceil(load / step)), question)
            return Choice(self._overload, "overload, to see how much the capacity varies")

        load = _in_whole_frames(self._most_informative(known, duration), duration, question)
        return Choice(load, f"most informative about {best.mean:,.0f} frames/s")

    def _most_informative(self, known: Description, duration: float) -> float:
        """The load, not in overload, with the largest gain."""
        if known.unexplored is not None:
            # Neither function fits: the loads at which loss begins are looked at one after the other.
            low, high = known.unexplored
            return low + (high - low) * (self._trials % _UNEXPLORED + 0.5) / _UNEXPLORED
        # On a grid between the critical load and the knee, or the end of what is described: equal loads are frequent.
        below = np.inf if known.below is None else known.below
        mode = known.best.mode
        mean = min(known.best.mean, float(mode.mrr))
        high = max(min(float(mode.mrr + 2.0 * mode.spread), below), mean)
        step = 2.0 ** np.floor(np.log2(max((high - mean) / _CANDIDATES, 1e-9 * high)))
        loads = step * np.arange(np.ceil(mean / step), np.floor(high / step) + 1.0)
        loads = loads if len(loads) else np.array([mean])
        loads = np.unique(np.clip(loads, self._question.min_load, self._question.max_load))
        return float(loads[np.argmax(_gains(known, loads, duration, self._own_noise))])


def _in_whole_frames(load: float, duration: float, question: CriticalLoadQuestion) -> float:
    """The nearest load at which a trial sends a whole number of frames: one more frame may be the first lost one."""
    return clamped(round(load * duration) / duration, question)


def clamped(load: float, question: CriticalLoadQuestion) -> float:
    """The load within the limits."""
    return min(max(load, question.min_load), question.max_load)


def _gains(known: Description, loads: Array, duration: float, own_noise: float) -> Array:
    """Expected reduction of the variance of log c, the critical load's logarithm, by a trial's count at each load.

    By linear regression with the logarithm y of the mean loss: cov(log c, y)^2 / (var(y) + noise) over the posterior.
    Counts have a squared relative scatter in addition to Poisson's. Where the curve is known to hold near the target
    only, its error grows with the distance from it, and is the same in all trials there: the more there are, the less
    one more of them shows.
    """
    posterior = known.best
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    at = np.minimum(np.searchsorted(np.cumsum(posterior.mass), steps), len(posterior.mass) - 1)
    curves = posterior.curves.at(at)
    loss = curves.function.log_loss(loads[:, None], curves.mrr, curves.spread)
    scatter = (loss.slope * curves.deviation).mean(axis=1) ** 2
    log_mean = loss.log_rate.mean(axis=1)
    noise = (
        np.exp(np.clip(-log_mean, -300.0, 300.0)) / duration + scatter + own_noise + _MODEL_ERROR**2
    )

    if known.below is not None:
        distance = log_mean - np.log(loads * posterior.question.target_loss_ratio)
        there = posterior.mode.log_loss_rate(known.counts.load)
        trials = np.sum(np.abs(there - log_mean[:, None]) < _ALIKE, axis=1)
        noise = (noise + trials * (_LOCAL_ERROR * distance) ** 2) ** 2 / noise

    centred = loss.log_rate - log_mean[:, None]
    log_load = np.log(posterior.critical_load[at])
    covariance = centred @ (log_load - log_load.mean()) / _POINTS
    gains = covariance**2 / np.maximum(np.mean(centred**2, axis=1) + noise, 1e-300)

    return np.where(scatter > 1.0, 0.0, gains)
