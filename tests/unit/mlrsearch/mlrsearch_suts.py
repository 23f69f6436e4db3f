"""Small systems under test: functions from load and duration to a loss ratio, and a loop that searches them."""

from __future__ import annotations

import random
from collections.abc import Callable

from lossratio.mlrsearch import MLRsearch, SearchResult
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

LossRatio = Callable[[float, float], float]


def knee(capacity: float, degradation: float = 0.0) -> LossRatio:
    """Forwards all up to its capacity; above, the forwarding rate falls by `degradation` of the excess."""

    def loss_ratio(load: float, duration: float) -> float:
        excess = max(0.0, load - capacity)
        forwarded = min(load, max(0.0, capacity - degradation * excess))
        return 1.0 - forwarded / load

    return loss_ratio


def policer(rate: float, burst: float) -> LossRatio:
    """Passes rate * duration + burst frames, so its zero-loss truth is rate + burst / duration."""
    return lambda load, duration: max(0.0, 1.0 - (rate * duration + burst) / (load * duration))


def noisy(capacity: float, spread: float, seed: int) -> LossRatio:
    """A knee whose capacity is another one in each trial."""
    rng = random.Random(seed)

    def loss_ratio(load: float, duration: float) -> float:
        return max(0.0, 1.0 - capacity * (1.0 - rng.expovariate(1.0 / spread)) / load)

    return lambda load, duration: min(1.0, loss_ratio(load, duration))


def measured(load: float, duration: float, loss_ratio: float, effective: float | None = None) -> TrialResult:
    """A trial result."""
    return TrialResult(TrialInput(duration, load), TrialOutput(loss_ratio, effective_duration=effective))


def drive(controller: MLRsearch, sut: LossRatio, most_trials: int = 20_000) -> SearchResult:
    """Runs a search to its end; fails if it has none."""
    for _ in range(most_trials):
        trial = controller.next_trial()
        if trial is None:
            return controller.result()
        controller.record(TrialResult(trial, TrialOutput(min(1.0, max(0.0, sut(trial.load, trial.duration))))))
    raise AssertionError(f"The search did not end within {most_trials} trials.")
