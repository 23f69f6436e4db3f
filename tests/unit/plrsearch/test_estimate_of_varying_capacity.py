from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lossratio.plrsearch import estimate
from lossratio.plrsearch.estimate.misfit import check
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


def trials_of_a_varying_sut(capacity, deviation, seed, number):
    """Trials at and above a sharp knee, whose place differs from trial to trial."""
    rng = np.random.default_rng(seed)
    for load in loads_of_pairs(capacity, rng, number):
        sent = round(5.0 * load)
        lost = max(0, sent - round(5.0 * capacity * (1.0 + deviation * rng.standard_normal())))
        output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=0)
        yield TrialResult(TrialInput(5.0, load), output)


def loads_of_pairs(capacity, rng, number):
    """Loads of which each is that of two trials, so that these show that the capacity varies."""
    return np.repeat(rng.uniform(0.99 * capacity, 1.05 * capacity, number // 2), 2)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_capacity_that_varies_leads_no_estimate_astray(seed):
    results = list(trials_of_a_varying_sut(18e6, 0.004, seed, 60))
    varying = estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6, likelihood="varying")
    assert varying.mean == pytest.approx(18e6, rel=0.03)
    assert 0.0 < varying.stdev < 0.02 * 18e6


def test_an_integral_that_is_too_rough_is_no_good_model():
    results = list(trials_of_a_varying_sut(18e6, 0.004, 1, 40))
    known = estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6).description
    rough = replace(known, posteriors=tuple(replace(posterior, error=np.inf) for posterior in known.posteriors))
    assert any("too rough for the integral" in reason for reason in check(rough).reasons)
    assert not any("too rough" in reason for reason in check(known).reasons)


def estimate_of_capacities(capacities, quiet):
    """The estimate of trials of 2 s in overload with these capacities, and of some at 16.4 Mfps without loss."""
    results = []
    for capacity in capacities:
        load = 1.1 * max(capacities)
        sent = round(2.0 * load)
        lost = sent - round(2.0 * capacity)
        output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=0)
        results.append(TrialResult(TrialInput(2.0, load), output))
    output = TrialOutput(0.0, sent_frames=32_800_000, lost_frames=0, unsent_frames=0)
    results += [TrialResult(TrialInput(2.0, 16.4e6), output)] * quiet
    return estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6)


CAPACITIES = (18.0e6, 17.0e6, 17.9e6, 18.6e6, 17.2e6, 19.3e6)


def test_the_stated_load_is_not_far_below_the_lowest_capacity_that_enough_trials_show():
    found = estimate_of_capacities(CAPACITIES, quiet=8)
    assert found.verified is None
    assert not found.is_regular
    assert found.stated == pytest.approx(0.95 * 17.0e6)
    assert found.interval(0.95)[0] < 0.8 * found.stated


def test_few_trials_do_not_show_the_lowest_capacity():
    found = estimate_of_capacities(CAPACITIES, quiet=5)
    assert found.stated == pytest.approx(found.interval(0.95)[0])
