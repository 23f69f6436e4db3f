"""Trials for the tests of PLRsearch."""

import numpy as np

from lossratio.plrsearch import estimate
from lossratio.plrsearch.model import TrialCounts
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

LIMITS = {"min_load": 1e4, "max_load": 1e7}


def trial(load, lost, *, sent=None, unsent=0, duration=5.0):
    """One trial's result; all frames sent unless said otherwise."""
    sent = round(load * duration) if sent is None else sent
    output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=unsent)
    return TrialResult(TrialInput(duration, load), output)


def trials_at(loads, lost):
    """Trials at loads, with lost frames as a function of the load."""
    return [trial(load, max(0, round(lost(load)))) for load in loads]


def trials_of(sut, loads, *, seed=1, duration=5.0):
    """Simulated trials."""
    measurer = SimulatedMeasurer(sut, seed=seed)
    inputs = [TrialInput(duration, float(load)) for load in loads]
    return [TrialResult(trial_input, measurer.measure(trial_input)) for trial_input in inputs]


def counts_of(rows):
    """Counts of one trial after the other, by load, exposure and lost frames."""
    load, exposure, lost = np.array(rows, dtype=float).T
    return TrialCounts(load, exposure, lost, np.cumsum(exposure), exposure)


def loads_around(capacity, number, *, below=0.03, above=0.03, seed=1):
    """Distinct loads around a capacity, in random order."""
    return np.random.default_rng(seed).uniform((1.0 - below) * capacity, (1.0 + above) * capacity, number)


def estimated(results, *, target=1e-7, likelihood="poisson", **limits):
    """The estimate, within the usual limits."""
    return estimate(results, target_loss_ratio=target, likelihood=likelihood, **{**LIMITS, **limits})
