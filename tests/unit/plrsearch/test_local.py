"""The critical load by a line near the target, for curves that are no function of the draft."""

import numpy as np
import pytest
import scipy
from soak_trials import counts_of, estimated, trial

from lossratio.plrsearch import LocalFit
from lossratio.plrsearch.model import CriticalLoadQuestion
from lossratio.simulation import SmoothKnee

CAPACITY, TARGET = 18e6, 1e-7
QUESTION = CriticalLoadQuestion(TARGET, 1e4, 30e6)


def queues(number, apart):
    shares = 1.0 + np.linspace(apart, 0.0, number)
    shares /= shares.sum()
    knee = SmoothKnee(CAPACITY / number, 1e3)
    return lambda load: sum(knee.loss_rate(share * load) for share in shares) / load


def waiting(load):
    """The loss ratio of one server with exponential times and 256 places (M/M/1/256)."""
    use = load / CAPACITY
    return (1.0 - use) * use**256 / (1.0 - use**257)


CURVES = {
    "2 queues": queues(2, 0.01),
    "8 queues": queues(8, 0.03),
    "M/M/1/256": waiting,
    "stretch": lambda load: SmoothKnee(CAPACITY, 5e4).loss_rate(load) / load,
    "erf": lambda load: SmoothKnee(CAPACITY, 2e5, "erf").loss_rate(load) / load,
}


def load_of(ratio, curve):
    def excess(load):
        return np.log(max(curve(load), 1e-300) / ratio)

    return scipy.optimize.brentq(excess, 0.5 * CAPACITY, 0.9999 * CAPACITY)


def redrawn(curve, rng, batch=1):
    """Trials that lose from a tenth to a thousand targets."""
    rows = []
    for targets in (0.1, 1.0, 2.0, 10.0, 50.0, 300.0, 1000.0):
        load = load_of(targets * TARGET, curve)
        lost = batch * rng.poisson(2.0 * load * targets * TARGET / batch, 8)
        rows += [(load, 2.0, float(count)) for count in lost]
    return counts_of(rows)


@pytest.mark.whole
@pytest.mark.parametrize("name", CURVES)
def test_the_interval_covers_the_truth_and_is_narrow(name):
    curve = CURVES[name]
    truth = load_of(TARGET, curve)
    widths, covered = [], 0
    for seed in range(60):
        low, high = LocalFit.of(redrawn(curve, np.random.default_rng(seed)), QUESTION).interval(0.95)
        covered += low <= truth <= high
        widths.append((high - low) / truth)
    assert covered >= 54
    assert np.median(widths) < 3e-3


@pytest.mark.whole
def test_batches_are_counted_as_one_loss_each():
    curve = CURVES["stretch"]
    truth = load_of(TARGET, curve)
    covered = 0
    for seed in range(40):
        counts = redrawn(curve, np.random.default_rng(seed), batch=32)
        results = [trial(load, int(lost), duration=2.0) for load, lost in zip(counts.load, counts.lost, strict=True)]
        found = estimated(results, likelihood="varying", max_load=30e6)
        low, high = found.interval(0.95)
        covered += low <= truth <= high
    assert covered >= 36
    assert found.description.batch == 32.0
    assert any("in batches of 32" in sentence for sentence in found.sentences)


def test_a_knee_without_a_width_is_between_two_loads():
    loads = np.repeat(150e3 + np.array([-100.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 20.0, 1e3, 1e5]), 20)
    results = [trial(load, round(2.0 * max(load - 150e3, 0.0)), duration=2.0) for load in loads]
    found = estimated(results, likelihood="varying", max_load=400e3)
    low, high = found.interval(0.95)
    assert low <= 150e3 <= high
    # No trial shows how much is lost just below the load at which losses begin.
    assert low > 0.95 * 149_999.0
    assert high - 150e3 < 5.0
    assert found.median == pytest.approx(150e3, abs=5.0)
    assert found.misfit.fits


def test_a_floor_of_lost_frames_is_no_knee():
    """Bit errors of .3 targets, at each load."""
    rng = np.random.default_rng(1)
    knee = SmoothKnee(CAPACITY, 2e4)
    loads = np.repeat([16e6, 17e6, 17.5e6, 17.7e6, 17.8e6, 17.83e6, 17.86e6, 17.9e6], 10)
    rows = [(load, 2.0, float(rng.poisson(2.0 * (knee.loss_rate(load) + 0.3 * TARGET * load)))) for load in loads]
    low, high = LocalFit.of(counts_of(rows), QUESTION).interval(0.95)
    truth = scipy.optimize.brentq(lambda load: knee.loss_rate(load) / load - 0.7 * TARGET, 17.7e6, 17.9e6)
    assert 17.7e6 < low < high < 17.9e6
    assert abs(0.5 * (low + high) - truth) < 0.003 * truth


def test_two_lost_frames_far_below_the_forwarding_rate_do_not_show_where_losses_begin():
    rows = [(9e6, 2.0, 0.0), (10e6, 2.0, 3.0), (13e6, 2.0, 3.0), (17e6, 2.0, 80.0), (18.1e6, 2.0, 200_000.0)]
    found = LocalFit.of(counts_of(rows), QUESTION)
    assert (found.quiet, found.lossy) == (9e6, 17e6)


def test_two_lost_frames_at_the_forwarding_rate_show_where_losses_begin():
    rows = [(17.9e6, 2.0, 0.0), (18e6, 2.0, 5.0), (28.8e6, 2.0, 21_600_000.0)]
    found = LocalFit.of(counts_of(rows), QUESTION)
    assert (found.quiet, found.lossy) == (17.9e6, 18e6)


def test_a_lossless_load_far_above_a_lossy_one_does_not_raise_the_estimate():
    results = [trial(10e6, 3000, duration=2.0), trial(9e6, 0, duration=2.0), trial(11e6, 0, duration=2.0)]
    found = estimated(results, likelihood="varying", max_load=30e6)
    assert found.interval(0.95) == pytest.approx((0.95 * 9e6, 10e6))
    assert 9e6 < found.median < 10e6
    assert found.description.local.above == 11e6


@pytest.mark.parametrize("targets", [0.1, 10.0])
def test_the_line_has_the_loss_ratio_of_the_curve_near_the_target(targets):
    curve = CURVES["stretch"]
    fit = LocalFit.of(redrawn(curve, np.random.default_rng(1)), QUESTION)
    load = load_of(targets * TARGET, curve)
    assert fit.load_of(targets) == pytest.approx(load, rel=1e-3)
    assert fit.loss_ratio([load])[0] == pytest.approx(targets * TARGET, rel=0.3)
