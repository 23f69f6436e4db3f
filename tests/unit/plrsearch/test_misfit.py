"""Whether the model fits: SUTs inside its family do, others do not. Seeds make each answer always the same."""

import numpy as np
import pytest
from soak_trials import estimated, loads_around, trials_of

from lossratio.simulation import PerformanceSpectrum, Policer, RareStalls, SmoothKnee

NUMBER = 80


def misfit_of(sut, likelihood, *, seed=1, below=0.03, above=0.03):
    results = trials_of(sut, loads_around(6e6, NUMBER, below=below, above=above), seed=seed)
    return estimated(results, likelihood=likelihood).misfit


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "geometric", "varying"])
def test_healthy_suts_fit(likelihood, how_many):
    assert all(misfit_of(SmoothKnee(6e6, 2e4), likelihood, seed=seed).fits for seed in range(how_many(2, 4)))


@pytest.mark.whole
def test_a_capacity_that_varies_normally_fits_where_it_is_modelled_and_only_there():
    sut = PerformanceSpectrum(6e6, 0.004)
    loads = np.repeat(loads_around(6e6, NUMBER // 4), 4)
    assert estimated(trials_of(sut, loads), likelihood="varying").misfit.fits
    assert "more than by chance" in misfit_of(sut, "poisson").reasons[0]


@pytest.mark.whole
def test_stalls_are_seen():
    misfit = misfit_of(RareStalls(6e6, interval=30.0, stall=0.02), "poisson", below=0.3)
    assert not misfit.fits


def test_a_capacity_that_varies_by_half_of_itself_has_no_critical_load():
    results = trials_of(PerformanceSpectrum(6e6, 0.5), loads_around(6e6, NUMBER, below=0.3, above=0.3))
    estimate = estimated(results, likelihood="varying")
    assert not estimate.is_regular


def test_few_trials_never_speak_against_a_model():
    results = trials_of(SmoothKnee(6e6, 2e4), [5.9e6, 6e6, 6.1e6])
    assert estimated(results).misfit.fits


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "geometric"])
def test_the_interval_of_a_policer_contains_its_truth_or_the_model_does_not_fit(likelihood):
    sut = Policer(5e4, 1000.0)
    results = trials_of(sut, loads_around(5.02e4, 60), duration=5.0)
    estimate = estimated(results, likelihood=likelihood)
    low, high = estimate.interval(0.95)
    assert low <= 5e4 + 1000.0 / 5.0 <= high or not estimate.is_regular
