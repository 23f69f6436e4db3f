"""Whether the model fits: SUTs inside its family do, others do not. Seeds make each answer always the same."""

import re

import numpy as np
import pytest
from soak_trials import estimated, loads_around, trial, trials_at, trials_of

from lossratio.simulation import CapacityDrift, PerformanceSpectrum, Policer, RareStalls, SmoothKnee

NUMBER = 80


def misfit_of(sut, likelihood, *, seed=1, below=0.03, above=0.03):
    results = trials_of(sut, loads_around(6e6, NUMBER, below=below, above=above), seed=seed)
    return estimated(results, likelihood=likelihood).misfit


@pytest.mark.long
@pytest.mark.parametrize("likelihood", ["poisson", "geometric", "varying"])
def test_healthy_suts_fit(likelihood, how_many):
    misfits = [misfit_of(SmoothKnee(6e6, 2e4), likelihood, seed=seed) for seed in range(how_many(2, 4))]
    assert not any(misfit.is_wrong for misfit in misfits)
    assert all(misfit.fits for misfit in misfits) == (likelihood != "varying")


@pytest.mark.long
def test_a_capacity_that_varies_normally_fits_where_it_is_modelled_and_only_there():
    sut = PerformanceSpectrum(6e6, 0.004)
    misfit = misfit_of(sut, "varying")
    assert not misfit.is_wrong
    assert misfit.reasons == (misfit.provisional,)
    assert "80 trials are too few" in misfit.provisional
    enough = trials_of(sut, loads_around(6e6, 150))
    assert estimated(enough, likelihood="varying").misfit.fits
    assert "more than chance" in misfit_of(sut, "poisson").reasons[0]


def test_the_number_of_few_trials_is_provisional_even_if_nothing_varies_in_them():
    quiet = [trial(5.8e6 + 1e3 * number, 0) for number in range(5)]
    misfit = estimated([trial(9e6, round(5.0 * (9e6 - 5.9e6))), *quiet], likelihood="varying").misfit
    assert misfit.fit.chi_squared_per_trial is None
    assert misfit.reasons == (misfit.provisional,)
    assert "6 trials are too few" in misfit.provisional
    loads = np.linspace(5.94e6, 6.06e6, 15)
    few, enough = (
        estimated(trials_of(SmoothKnee(6e6, 2e4), np.repeat(loads, times)), likelihood="varying") for times in (9, 10)
    )
    assert few.description.replicates.are_alike
    assert "135 trials are too few" in few.misfit.provisional
    assert not few.misfit.is_wrong
    assert "Rare stalls are open" in enough.misfit.provisional
    assert "900 s are needed (a longer timeout)" in enough.misfit.provisional


def test_seconds_without_a_stall_are_those_of_trials_however_many_interfaces_sent():
    loads = np.repeat(np.linspace(5.78e6, 5.98e6, 15), 10)
    one_way, other_way = (trials_of(SmoothKnee(6e6, 2e4), loads, seed=seed) for seed in (1, 2))
    both_ways = [
        trial(one.load, one.output.lost_frames + other.output.lost_frames, sent=2 * one.output.sent_frames)
        for one, other in zip(one_way, other_way, strict=True)
    ]
    for trials in (one_way, both_ways):
        said = re.search(r"none is seen in the ([\d,]+) s", estimated(trials, likelihood="varying").misfit.provisional)
        assert 300.0 < float(said[1]) < 750.0


def test_stalls_are_seen():
    misfit = misfit_of(RareStalls(6e6, interval=30.0, stall=0.02), "poisson", below=0.3)
    assert not misfit.fits


def test_a_capacity_that_varies_by_half_of_itself_has_no_critical_load():
    results = trials_of(PerformanceSpectrum(6e6, 0.5), loads_around(6e6, NUMBER, below=0.3, above=0.3))
    estimate = estimated(results, likelihood="varying")
    assert not estimate.misfit.fits or estimate.is_at_most_min_load


@pytest.mark.long
def test_loss_where_the_curve_has_none_is_seen():
    lossless = loads_around(5e6, 40, below=0.1, above=0.05)
    results = [*trials_of(SmoothKnee(6e6, 2e4), loads_around(6e6, NUMBER)), *trials_at(lossless, lambda load: 0.0)]
    assert not estimated(results, likelihood="varying").misfit.is_wrong
    misfit = estimated([*results, trial(5e6, 1000)], likelihood="varying").misfit
    assert [reason for reason in misfit.reasons if "1 of 121 trials lost frames" in reason]


def test_one_of_many_trials_may_lose_where_the_curve_has_little():
    rng = np.random.default_rng(2)
    loads = np.linspace(6e6, 6.3e6, 150)
    capacities = 6e6 * (1.0 + 0.004 * rng.standard_normal(150))
    overload = [trial(load, max(0, round(5.0 * (load - own)))) for load, own in zip(loads, capacities, strict=True)]

    def surprises(quiet, deviations):
        slow = trial(6e6 * (1.0 - 0.004 * deviations), 50)
        misfit = estimated([*overload, *[trial(5.85e6, 0)] * quiet, slow], likelihood="varying").misfit
        return [reason for reason in misfit.reasons if "lost frames at loads" in reason]

    assert surprises(10, 4.1)
    assert not surprises(600, 4.1)
    assert surprises(600, 5.5)


@pytest.mark.long
def test_slow_trials_that_widen_the_model_beyond_what_overload_shows_are_seen():
    rng = np.random.default_rng(3)
    loads = np.concatenate([np.linspace(6.04e6, 6.3e6, 160), np.linspace(5.9e6, 5.98e6, 80)])
    capacities = 6e6 * (1.0 + 0.002 * rng.standard_normal(240))

    def reasons():
        results = [trial(load, max(0, round(5.0 * (load - own)))) for load, own in zip(loads, capacities, strict=True)]
        return [one for one in estimated(results, likelihood="varying").misfit.reasons if "in overload differ" in one]

    assert not reasons()
    capacities[[180, 230]] = 5.29e6, 5.63e6
    assert reasons()


@pytest.mark.long
def test_a_capacity_that_falls_all_the_time_is_described():
    drifting = misfit_of(CapacityDrift(6e6, -1e-5), "varying", below=0.0, above=0.1)
    assert not drifting.is_wrong
    assert drifting.fit.drift_ratio == pytest.approx(np.expm1(-1e-5 * 400.0), rel=0.1)


def test_few_trials_never_speak_against_a_model():
    results = trials_of(SmoothKnee(6e6, 2e4), [5.9e6, 6e6, 6.1e6])
    assert estimated(results).misfit.fits


@pytest.mark.parametrize("likelihood", ["poisson", "varying"])
def test_the_interval_of_a_policer_contains_its_truth_or_the_model_does_not_fit(likelihood):
    sut = Policer(5e4, 1000.0)
    results = trials_of(sut, loads_around(5.02e4, 60), duration=5.0)
    estimate = estimated(results, likelihood=likelihood)
    low, high = estimate.interval(0.95)
    assert low <= 5e4 + 1000.0 / 5.0 <= high or not estimate.misfit.fits


def test_an_interval_that_reaches_far_down_is_provisional():
    overload = [trial(8e6, 10_000_000), trial(8.1e6, 10_500_000)]
    estimate = estimated(overload)
    assert estimate.interval(0.95)[0] < 0.5 * estimate.mean
    assert estimate.misfit.reasons == (estimate.misfit.provisional,)
    assert "reaches down to 0.4 of the number" in estimate.misfit.reasons[0]
    assert estimated([*overload, *trials_of(SmoothKnee(6e6, 2e4), np.linspace(5.9e6, 6.1e6, 20))]).misfit.fits
