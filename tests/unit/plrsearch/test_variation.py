"""Capacities that are not independent and normal: the interval covers the truth, and says how they vary."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from soak_trials import LIMITS, estimated, loads_around, trial, trials_of

from lossratio.plrsearch.variation import variation_of
from lossratio.plrsearch.variation.integral import shape_posterior
from lossratio.plrsearch.variation.order import order_of
from lossratio.plrsearch.variation.sample import Capacities
from lossratio.plrsearch.variation.shapes import SHAPES, NormalShape
from lossratio.simulation import PerformanceSpectrum, SmoothKnee

CAPACITY = 6e6
NUMBER = 200
LOADS = loads_around(CAPACITY, NUMBER, below=0.01, above=0.05)
POINTS = {
    "normal": [0.001, np.log(0.004)],
    "heavy tails": [0.001, np.log(0.003), np.log(3.0)],
    "exponential tails": [0.001, np.log(0.002), np.log(0.004)],
    "slow trials": [0.001, np.log(0.002), np.log(0.02), np.log(0.05)],
    "slow level": [0.001, np.log(0.002), np.log(0.02), np.log(0.05), np.log(0.1)],
}


def known(name):
    """The same distribution as scipy has it, without that of slow trials' mixture: density and cumulative."""
    slow_width = float(np.hypot(0.002, 0.005))
    if name == "normal":
        parts = [(1.0, stats.norm(0.001, 0.004))]
    elif name == "heavy tails":
        parts = [(1.0, stats.t(3.0, 0.001, 0.003))]
    elif name == "exponential tails":
        slow, fast = stats.exponnorm(2.0, -0.001, 0.002), stats.exponnorm(2.0, 0.001, 0.002)
        return (lambda x: 0.5 * (slow.pdf(-x) + fast.pdf(x)), lambda x: 0.5 * (slow.sf(-x) + fast.cdf(x)))
    elif name == "slow level":
        parts = [(0.98, stats.norm(0.001, 0.002)), (0.02, stats.norm(-0.049, slow_width))]
    else:
        slow = stats.exponnorm(0.05 / 0.002, -0.001, 0.002)
        return (
            lambda x: 0.98 * stats.norm.pdf(x, 0.001, 0.002) + 0.02 * slow.pdf(-x),
            lambda x: 0.98 * stats.norm.cdf(x, 0.001, 0.002) + 0.02 * slow.sf(-x),
        )
    return (
        lambda x: sum(share * part.pdf(x) for share, part in parts),
        lambda x: sum(share * part.cdf(x) for share, part in parts),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
def test_shapes_are_those_of_scipy(shape):
    capacities, at, exact = np.array([-0.2, -0.05, -0.01, 0.0, 0.005]), np.array([POINTS[shape.name]]), np.zeros(())
    density, cumulative = known(shape.name)
    assert np.exp(shape.log_density(capacities, exact, at))[0] == pytest.approx(density(capacities), rel=1e-9)
    assert shape.below(capacities, exact, at)[0] == pytest.approx(cumulative(capacities), rel=1e-9)
    assert np.exp(shape.log_above(capacities, exact, at))[0] == pytest.approx(1.0 - cumulative(capacities), rel=1e-6)
    parts = shape.shortfall(np.array([-0.01]), at)
    width = max(float(parts.deviation[0]), 1e-9)
    usual = integrate.quad(lambda x: stats.norm.cdf(x, 0.001, width), -1.0, -0.01, points=[-0.02], limit=200)[0]
    lack = integrate.quad(cumulative, -1.0, -0.01, points=[-0.1, -0.02], limit=200)[0]
    assert parts.share[0] * usual + parts.rest[0] == pytest.approx(lack, rel=1e-4)


def trials_with(draw, *, loads=LOADS, seed=1):
    """Trials of a sharp knee at capacities that are drawn, as shares of `CAPACITY`, one after the other."""
    rng = np.random.default_rng(seed)
    capacities = CAPACITY * np.array([draw(rng) for _ in loads])
    return [trial(load, max(0, round(5.0 * (load - own)))) for load, own in zip(loads, capacities, strict=True)]


def wandering(correlation, deviation):
    """Draws capacities of a first-order autoregressive process."""
    state = []

    def draw(rng):
        state[:] = state or [rng.standard_normal()]
        state[0] = correlation * state[0] + np.sqrt(1.0 - correlation**2) * rng.standard_normal()
        return 1.0 + deviation * state[0]

    return draw


def critical_load_of(quantile):
    """Where sharp knees at these capacities lose 1e-7 on average."""
    edges = np.concatenate([np.geomspace(1e-14, 1e-3, 2001), np.linspace(1e-3, 1.0, 2001)[1:]])
    capacities = np.maximum(quantile(0.5 * (edges[1:] + edges[:-1])), 0.0)
    shares = np.diff(edges)
    lack = lambda load: np.sum(shares * np.maximum(0.0, 1.0 - capacities / load)) - 1e-7  # noqa: E731
    return CAPACITY * optimize.brentq(lack, 0.01, 1.2)


def test_the_normal_shape_is_that_of_the_quadrature():
    estimate = estimated(trials_of(PerformanceSpectrum(CAPACITY, 0.004), LOADS), likelihood="varying")
    assert estimate.variation is None
    best = max(estimate.functions.values(), key=lambda function: function.log_evidence)
    capacities = Capacities.of(best.posterior.function, best.mode, estimate.counts)
    fit = shape_posterior(NormalShape(), capacities, 1.0)
    deviation = np.exp(fit.mean[1]) * capacities.reference
    panels = best.posterior.panels
    expected = np.sum(best.posterior.masses * panels.deviation[:, None])
    assert deviation == pytest.approx(expected, rel=0.03)


def test_healthy_suts_vary_as_the_quadrature_has_it():
    for seed in range(3):
        assert estimated(trials_of(SmoothKnee(CAPACITY, 2e4), LOADS, seed=seed), likelihood="varying").variation is None


SLOW_QUANTILES = np.linspace(-0.2, 0.02, 100001)
SLOW_CUMULATIVE = 0.97 * stats.norm.cdf(SLOW_QUANTILES, scale=0.002)
SLOW_CUMULATIVE = SLOW_CUMULATIVE + 0.03 * stats.norm.cdf(SLOW_QUANTILES + 0.05, scale=0.002)
CASES = {
    "slow level": (
        lambda rng: 1.0 + 0.002 * rng.standard_normal() - 0.05 * (rng.random() < 0.03),
        lambda share: 1.0 + np.interp(share, SLOW_CUMULATIVE, SLOW_QUANTILES),
    ),
    "heavy tails": (lambda rng: 1.0 + 0.003 * rng.standard_t(3), lambda share: 1.0 + 0.003 * stats.t.ppf(share, 3)),
    "exponential tails": (
        lambda rng: 1.0 + rng.laplace(0.0, 0.003),
        lambda share: 1.0 + stats.laplace.ppf(share, 0.0, 0.003),
    ),
    "normal": (None, lambda share: 1.0 + 0.004 * stats.norm.ppf(share)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_interval_covers_where_capacities_are_not_independent_and_normal(name):
    draw, quantile = CASES[name]
    draw = wandering(0.9, 0.004) if name == "normal" else draw
    estimate = estimated(trials_with(draw, seed=3), likelihood="varying")
    low, high = estimate.interval(0.95)
    assert low <= critical_load_of(quantile) <= high
    assert estimate.misfit.fits, estimate.misfit.reasons
    assert max(estimate.variation.shapes, key=lambda shape: shape.weight).name == name
    assert sum(shape.weight for shape in estimate.variation.shapes) == pytest.approx(1.0)


def test_successive_trials_that_are_alike_count_for_less():
    estimate = estimated(trials_with(wandering(0.9, 0.004), seed=3), likelihood="varying")
    assert estimate.variation.order.correlation == pytest.approx(0.9, abs=0.1)
    assert 5.0 < estimate.variation.independent_trials < 0.2 * NUMBER
    shuffled = estimated(trials_with(lambda rng: 1.0 + 0.004 * rng.standard_normal()), likelihood="varying")
    assert shuffled.variation is None


def test_the_critical_load_of_a_sut_that_drifts_is_that_at_the_end():
    knee, number = SmoothKnee(CAPACITY, 2e4), len(LOADS)
    results = []
    for index, load in enumerate(LOADS):
        scale = 1.0 - 0.01 * (index + 0.5) / number
        (shown,) = trials_of(knee, [load / scale], seed=index)
        lost = round(shown.output.lost_frames * scale)
        results.append(trial(load, lost))
    estimate = estimated(results, likelihood="varying")
    steady = estimated(trials_of(knee, LOADS), likelihood="varying")
    low, high = estimate.interval(0.95)
    truth = 0.99 * steady.mean
    assert low <= truth <= high
    assert high - low < 3.0 * 0.99 * (steady.interval(0.95)[1] - steady.interval(0.95)[0])
    assert estimate.misfit.fits, estimate.misfit.reasons
    order = estimate.variation.order
    assert order.change == pytest.approx(-0.01, abs=3.0 * order.change_stdev)
    assert order.change_stdev < 1e-4
    assert estimate.mean == pytest.approx(estimate.variation.loads.mean)


def test_independent_noise_averages_out_and_trials_are_long_enough():
    averaging = estimated(trials_with(lambda rng: 1.0 + 0.004 * rng.standard_normal()), likelihood="varying").averaging
    assert averaging.correlation_time == 0.0
    assert averaging.duration == pytest.approx(5.0)
    (short, deviation), *_, (long, averaged) = averaging.allan_deviations
    assert (short, long) == pytest.approx((5.0, 160.0))
    assert deviation == pytest.approx(0.004, rel=0.1)
    assert averaged == pytest.approx(deviation * np.sqrt(short / long), rel=0.6)


def test_the_same_trials_make_the_same_estimate():
    results = trials_with(CASES["heavy tails"][0], loads=LOADS[:80])
    one, other = (estimated(results, likelihood="varying") for _ in range(2))
    assert one.interval(0.95) == other.interval(0.95)


def test_where_the_capacity_does_not_vary_it_has_no_shape_though_residuals_are_odd():
    estimate = estimated(trials_of(SmoothKnee(CAPACITY, 2e4), LOADS), likelihood="varying")
    best = max(estimate.functions.values(), key=lambda function: function.log_evidence)
    expected = 5.0 * estimate.counts.load * best.loss_ratio(estimate.counts.load)
    skewed = (np.random.default_rng(1).gamma(8.0, size=NUMBER) - 8.0) / np.sqrt(8.0)
    lost = np.maximum(np.round(expected + np.sqrt(expected) * skewed), 0.0)
    results = [trial(load, frames) for load, frames in zip(estimate.counts.load, lost, strict=True)]
    odd = estimated(results, likelihood="varying")
    assert odd.variation is None
    assert odd.mean == pytest.approx(estimate.mean, rel=1e-3)
    assert not odd.misfit.fits


def test_no_order_and_no_shape_is_seen_in_few_trials():
    estimate = estimated(trials_with(wandering(0.9, 0.004), loads=LOADS[:15]), likelihood="varying")
    posteriors = tuple(function.posterior for function in estimate.functions.values())
    assert variation_of(posteriors, estimate.counts, estimate.question) is None
    assert "too few to show" in estimate.misfit.provisional


def test_a_shape_keeps_to_the_limits():
    estimate = estimated(trials_with(CASES["heavy tails"][0]), likelihood="varying", min_load=5e6)
    low, high = estimate.interval(0.99)
    assert (low, high) >= (5e6, 5e6)
    assert high <= LIMITS["max_load"]
    assert estimate.is_at_most_min_load == (estimate.loads.p_at_min > 0.025)


def test_some_unusual_trials_are_no_drift():
    rng = np.random.default_rng(3)
    number = 120
    place = 0.003 * rng.standard_t(2, number)
    every = np.ones(number, dtype=bool)
    time = (np.arange(number) + 0.5) / number
    capacities = Capacities(CAPACITY, place, np.full(number, 1e-5), place, every, every, time)
    assert order_of(capacities).drift == 0.0
    drifting = Capacities(CAPACITY, place - 0.02 * time, np.full(number, 1e-5), place, every, every, time)
    order = order_of(drifting)
    assert order.drift == pytest.approx(-0.02, abs=4.0 * order.drift_stdev)
