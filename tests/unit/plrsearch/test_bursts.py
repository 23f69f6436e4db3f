"""Bursts of lost frames at any load, such as stalls: seen, counted in the number, and not seen where there are none."""

import numpy as np
import pytest
from scipy import optimize
from soak_trials import trial, trials_of

from lossratio.plrsearch import estimate
from lossratio.simulation import SmoothKnee

KNEE = SmoothKnee(18e6, 2e4)
TARGET, LIMITS = 1e-7, {"min_load": 1e4, "max_load": 30e6}
LOADS = np.repeat([17.767e6, 17.813e6, 17.924e6, 17.98e6, 18.09e6, 18.22e6], [60, 60, 100, 4, 8, 8])
"""Those of a search of ten minutes, in trials of 2 s."""


def estimated(seed, *, stalls=0.0, every=60.0):
    """The estimate of a SUT that stalls at any load, once in so many seconds; stalls lose a share of the target."""
    rng = np.random.default_rng(seed)
    size = stalls * TARGET * every * 18e6
    results = []
    for found in trials_of(KNEE, rng.permutation(LOADS), seed=seed, duration=2.0):
        burst = rng.poisson(rng.exponential(size, rng.poisson(2.0 / every)).sum()) if stalls else 0
        results.append(trial(found.load, found.output.lost_frames + burst, duration=2.0))
    return estimate(results, target_loss_ratio=TARGET, **LIMITS)


def critical_load(share):
    """The load at which the knee loses a share of the target."""
    return optimize.brentq(lambda load: np.log(KNEE.loss_rate(load) / load / TARGET / share), 17e6, 18e6)


@pytest.mark.parametrize("every", [20.0, 60.0])
@pytest.mark.parametrize("seed", [0, 1, 2, 4])  # By chance no trial of seed 3 shows a stall.
def test_stalls_of_half_the_target_are_seen_and_the_interval_reaches_the_critical_load_with_them(seed, every):
    found = estimated(seed, stalls=0.5, every=every)
    low, high = found.interval()
    assert low <= critical_load(0.5) <= high
    assert any("burst" in reason for reason in found.misfit.reasons), found.misfit.reasons


@pytest.mark.parametrize("seed", range(2))
def test_with_stalls_of_twice_the_target_there_is_no_critical_load_above_the_minimum(seed):
    found = estimated(seed, stalls=2.0)
    assert found.interval()[0] == LIMITS["min_load"]
    assert not found.misfit.fits


@pytest.mark.parametrize("seed", range(6))
def test_chance_is_not_taken_for_bursts(seed):
    found = estimated(seed)
    assert found.description.bursts is None
    assert found.misfit.fits
