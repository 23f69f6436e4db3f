"""Trials at equal loads decide whether the capacity varies; where it is constant, the curve is tested, then local."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy
from soak_trials import counts_of, estimated, loads_around, trial, trials_of

from lossratio.plrsearch import LikelihoodName, PLRsearch, Replicates
from lossratio.plrsearch.model import Curves
from lossratio.plrsearch.model.functions import STRETCH
from lossratio.plrsearch.variation.replicates import AfterOverload, LackOfFit
from lossratio.simulation import PerformanceSpectrum, SimulatedMeasurer, SmoothKnee
from lossratio.simulation.sut import SutWithoutMemory
from lossratio.trials import run_search

CAPACITY = 18e6


class Queues(SutWithoutMemory):
    """Queues with a knee each, that get unequal shares of the frames."""

    def __init__(self, number, apart):
        shares = 1.0 + np.linspace(apart, 0.0, number)
        self.shares, self.knee = shares / shares.sum(), SmoothKnee(CAPACITY / number, 1e3)
        self.critical_load = scipy.optimize.brentq(
            lambda load: np.log(self.ratio(load) / 1e-7), 0.9 * CAPACITY, CAPACITY, xtol=1e-3
        )

    def ratio(self, load):
        """Mean loss ratio."""
        return max(sum(self.knee.loss_rate(share * load) for share in self.shares) / load, 1e-300)

    def truth(self, **_):
        """Not asked for here."""

    def _lost_frames(self, traffic, rng):
        return int(rng.binomial(traffic.frames, min(self.ratio(traffic.load), 1.0)))


def counts_at(loads, capacities, rng):
    lost = [rng.poisson(2.0 * max(load - own, 0.0)) for load, own in zip(loads, capacities, strict=True)]
    return counts_of([(load, 2.0, float(number)) for load, number in zip(loads, lost, strict=True)])


def test_counts_at_equal_loads_tell_a_constant_capacity_from_one_that_varies():
    rng = np.random.default_rng(1)
    loads = np.repeat(np.linspace(18.1e6, 19e6, 10), 6)
    constant = [Replicates.of(counts_at(loads, np.full(60, CAPACITY), rng)) for _ in range(20)]
    assert all(found.are_alike and found.freedom == 50 for found in constant)
    assert np.mean([found.ratio for found in constant]) == pytest.approx(1.0, abs=0.1)
    varying = Replicates.of(counts_at(loads, CAPACITY * (1.0 + 0.004 * rng.standard_normal(60)), rng))
    assert varying.differ
    assert varying.ratio > 1e3


def test_trials_at_different_loads_decide_nothing():
    rng = np.random.default_rng(1)
    found = Replicates.of(counts_at(np.linspace(18.1e6, 19e6, 60), np.full(60, CAPACITY), rng))
    assert (found.freedom, found.ratio) == (0, None)
    assert not found.are_alike
    assert not found.differ


@pytest.mark.long
@pytest.mark.parametrize(("number", "apart"), [(2, 0.01), (8, 0.03)])
def test_several_queues_are_described_near_the_target(number, apart):
    sut = Queues(number, apart)
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=240.0)
    found = run_search(controller, SimulatedMeasurer(sut, seed=1, overhead=0.5))
    low, high = found.interval(0.95)
    assert low <= sut.critical_load <= high
    assert high - low < 5e-4 * CAPACITY
    assert found.description.likelihood is LikelihoodName.POISSON
    assert found.description.below < 0.999 * CAPACITY
    assert not found.misfit.is_wrong, found.misfit.reasons
    assert np.mean(found.counts.load > found.description.below) < 0.5


def test_a_shape_that_is_no_functions_anywhere_is_flagged_and_not_for_a_capacity_that_varies():
    loads = np.repeat(np.linspace(17.5e6, 18.5e6, 20), 4)
    background = [trial(load, 40 + round(5.0 * max(load - 18e6, 0.0))) for load in loads]
    found = estimated(background, likelihood="varying", max_load=30e6)
    assert found.description.likelihood is LikelihoodName.POISSON
    reason, too_few = found.misfit.reasons
    assert "Neither function has the shape" in reason
    assert too_few == found.misfit.provisional


def test_a_knee_of_one_frame_per_second_is_as_sharp_as_a_curve_can_be():
    loads = np.repeat(150e3 + np.array([-100.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 20.0, 1e3, 1e5]), 20)
    results = [trial(load, round(2.0 * max(load - 150e3, 0.0)), duration=2.0) for load in loads]
    found = estimated(results, likelihood="varying", max_load=400e3)
    assert found.description.likelihood is LikelihoodName.POISSON
    assert not found.misfit.is_wrong, found.misfit.reasons


def test_few_loads_with_a_loss_that_hardly_depends_on_them_are_flagged():
    step = 2.0**19
    quiet = {
        22.5: [3],
        26: [1, 2, 2],
        27: [1, 0],
        28: [2, 1, 0],
        28.5: [1, 1],
        29: [3],
        29.5: [1],
        29.75: [0],
        30: [1, 0],
    }
    known = [(step * steps, lost) for steps, counts in quiet.items() for lost in counts]
    overload = [(30_000_000, 23_997_045), (18_219_008, 439_369), (18_481_152, 963_889), (23_461_888, 10_923_248)]
    knee = [(18_001_480, 29_531), (17_986_716, 16_477), (17_978_480, 11_606), (17_972_678.5, 9_190)]
    results = [trial(load, lost, sent=round(2.0 * load)) for load, lost in [*known, *overload, *knee]]
    found = estimated(results, likelihood="varying", max_load=30e6)
    assert found.interval(0.95)[1] < 17e6
    assert "Neither function has the shape" in found.misfit.reasons[0]


def test_a_capacity_that_varies_is_described_as_that():
    loads = np.repeat(loads_around(6e6, 40), 4)
    found = estimated(trials_of(PerformanceSpectrum(6e6, 0.004), loads), likelihood="varying")
    assert found.description.likelihood is LikelihoodName.VARYING
    assert found.description.lack_of_fit is None


def test_loss_at_one_load_is_not_hidden_among_that_of_many_quiet_ones():
    curve = SimpleNamespace(mode=Curves(STRETCH, *map(np.array, (44956445.7, 2038425.3, 0.0))))
    loads = np.linspace(12e6, 16e6, 20)
    expected = 2.0 * np.exp(curve.mode.log_loss_rate(loads))
    quiet = [(load, 2.0, float(round(mean))) for load, mean in zip(loads, expected, strict=True)]
    far = (17956864.0, 0.0046, 10.0)
    assert not LackOfFit.of(curve, counts_of(quiet)).is_certain
    assert LackOfFit.of(curve, counts_of([*quiet, far])).is_certain


def memory_of(trials, slower, rng, *, number=300, capacities=None):
    """Trials at three loads in runs, of a sharp knee that overload lowers by a share for some trials."""
    overload, loads = 18.6e6, (18.6e6, 18.0e6, 17.9e6)
    rows, left = [], 0
    for index in range(number):
        load = loads[0] if index % 13 < 7 else loads[1 + rng.integers(2)]
        capacity = (CAPACITY if capacities is None else capacities[index]) * (1.0 - slower * (left > 0))
        rows.append((load, 2.0, float(rng.poisson(2.0 * max(load - capacity, 0.0)))))
        left = trials if load == overload else left - 1
    return counts_of(rows)


@pytest.mark.parametrize(("trials", "slower"), [(1, 0.005), (1, -0.002), (2, 0.005), (4, 0.005)])
def test_what_overload_leaves_behind_is_seen_and_its_trials_are_left_out(trials, slower):
    counts = memory_of(trials, slower, np.random.default_rng(1))
    found = AfterOverload.of(counts, 1e-7)
    assert found.trials == trials
    assert (found.more > found.less) == (slower > 0.0)
    rested = found.rested(counts)
    assert len(rested) < len(counts)
    assert not Replicates.of(rested).differ
    assert f"loses {'more' if slower > 0.0 else 'less'} (in " in str(found)


@pytest.mark.parametrize("way", ["normal", "alike", "sine", "falling"])
def test_capacities_that_change_by_themselves_are_no_effect_of_overload(way):
    seen, index = 0, np.arange(300)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        change = rng.standard_normal(300)
        if way == "alike":
            for at in range(1, 300):
                change[at] = 0.95 * change[at - 1] + np.sqrt(1.0 - 0.95**2) * change[at]
        elif way == "sine":
            change = np.sin(2.0 * np.pi * (index / rng.uniform(5.0, 200.0) + rng.random()))
        elif way == "falling":
            change = 0.1 * change - index / 100.0
        counts = memory_of(1, 0.0, rng, capacities=CAPACITY * (1.0 + 0.004 * change))
        seen += AfterOverload.of(counts, 1e-7) is not None
    assert seen <= 1


def test_a_capacity_that_falls_is_no_effect_of_overload_where_the_trial_after_it_is_always_the_earlier_one():
    rows = [
        (load, 2.0, 2.0 * (load - CAPACITY * (0.99 - 1e-6 * index)))
        for index, load in enumerate([18.6e6, 17.83e6, 17.83e6] * 40)
    ]
    assert AfterOverload.of(counts_of(rows), 1e-7) is None


def test_the_critical_load_is_that_of_a_sut_that_was_not_overloaded():
    loads = {"overload": 18.6e6, "knee": (17.3e6, 17.4e6, 17.45e6, 17.5e6, 17.6e6, 17.8e6)}
    usual, slow = SmoothKnee(CAPACITY, 5e4), SmoothKnee(0.995 * CAPACITY, 5e4)
    results, before = [], 0.0
    for index in range(400):
        load = loads["overload"] if index % 3 else loads["knee"][index // 3 % 6]
        if index > 150 and index % 3 == 2:
            load = loads["knee"][index // 3 % 6]
        results += trials_of(slow if before == loads["overload"] else usual, [load], seed=index, duration=2.0)
        before = load
    found = estimated(results, likelihood="varying", max_load=30e6)
    low, high = found.interval(0.95)
    assert low <= 17486955 <= high
    assert high - low < 5e-4 * CAPACITY
    assert found.description.likelihood is LikelihoodName.POISSON
    assert "overload loses more" in str(found.variation)
    assert found.guard.trials <= len(found.description.counts)
    assert not found.misfit.is_wrong, found.misfit.reasons
