"""A capacity that varies between two bounds, and one that does not."""

import numpy as np
import pytest
from soak_trials import counts_of

from lossratio.plrsearch import PLRsearch
from lossratio.plrsearch.variation.bounded import LowestCapacity
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import run_search

LOAD = 22e6


def at_one_load(capacities):
    """Trials in overload with these capacities."""
    return counts_of([(LOAD, 2.0, 2.0 * max(0.0, LOAD - capacity)) for capacity in capacities])


def shared(number, rng):
    """Capacities of a processor that another program takes a part of, in a quarter of the trials."""
    return np.where(rng.random(number) < 0.25, 15e6, 18e6)


def paths(number, rng):
    """Capacities of six paths, one of which a hash chooses for each trial."""
    return rng.choice(np.linspace(16e6, 18e6, 6), number)


@pytest.mark.parametrize(
    "drawn",
    [lambda number, rng: 17e6 + 1e6 * np.sin(np.arange(number)), lambda number, rng: rng.uniform(16e6, 18e6, number)],
    ids=["sine", "uniform"],
)
def test_the_bound_of_a_bounded_capacity_is_just_below_all_that_was_seen(drawn):
    rng = np.random.default_rng(1)
    capacities = drawn(80, rng)
    found = LowestCapacity.of(at_one_load(capacities))
    assert found.seen == pytest.approx(capacities.min())
    assert found.seen - 0.5 * capacities.std(ddof=1) == pytest.approx(found.least)


@pytest.mark.parametrize("drawn", [shared, paths])
@pytest.mark.parametrize("number", [12, 80])
def test_the_lowest_of_few_capacities_is_known_well(drawn, number):
    rng = np.random.default_rng(2)
    capacities = drawn(number, rng)
    found = LowestCapacity.of(at_one_load(capacities))
    assert found.seen == pytest.approx(capacities.min())
    assert 0.99 * found.seen <= found.least < found.surely < found.seen


def test_a_capacity_that_was_seen_only_once_is_not_the_lowest_of_a_few():
    assert LowestCapacity.of(at_one_load([15e6, *[17e6, 18e6] * 4])) is None
    assert LowestCapacity.of(at_one_load([15e6, 15e6, *[17e6, 18e6] * 4])).seen == pytest.approx(15e6)


@pytest.mark.whole
@pytest.mark.parametrize("trials", [4, 6, 8, 12, 19])
def test_few_trials_of_a_normal_capacity_seldom_look_like_a_few_values(trials, how_many):
    seen, number = 0, how_many(1000, 10_000)
    for seed in range(number):
        rng = np.random.default_rng(seed)
        capacities = 18e6 * (1.0 + 0.005 * rng.standard_normal(trials))
        seen += LowestCapacity.of(at_one_load(capacities)) is not None
    assert seen <= 0.003 * number


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, number: rng.standard_normal(number),
        lambda rng, number: rng.standard_t(5, number),
        lambda rng, number: -rng.exponential(1.0, number),
    ],
    ids=["normal", "heavy tails", "exponential"],
)
def test_a_capacity_without_a_lower_bound_has_one_by_chance_in_few_searches(draw, how_many):
    seen, number = 0, how_many(400, 4000)
    for seed in range(number):
        rng = np.random.default_rng(seed)
        capacities = 18e6 * (1.0 + 0.005 * draw(rng, 20 + seed % 61))
        seen += LowestCapacity.of(at_one_load(capacities)) is not None
    assert seen <= 0.02 * number


def test_loads_that_hide_high_capacities_show_no_bound():
    """A normally distributed capacity looks bounded if it is often above the load."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        counts = at_one_load(LOAD * (1.0 + 0.005 * rng.standard_normal(60)))
        assert LowestCapacity.of(counts) is None


def test_few_trials_show_no_bound():
    lower = 15e6 + 3e4 * np.arange(10)
    higher = 18e6 + 3e4 * np.arange(10)
    assert LowestCapacity.of(at_one_load([*lower[:9], *higher])) is None
    assert LowestCapacity.of(at_one_load([*lower, *higher])) is not None


class Shared:
    """A device that another program slows down in a quarter of the trials."""

    def start(self, rng):
        def lost_frames(traffic):
            capacity = 15e6 if rng.random() < 0.25 else 18e6
            return int(rng.poisson(max(0.0, traffic.load - capacity) * traffic.duration))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


def searched(seed):
    """A search of five minutes."""
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    return run_search(controller, SimulatedMeasurer(Shared(), seed=seed, overhead=0.5))


@pytest.mark.whole
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_load_of_a_shared_processor_is_just_below_its_lowest_capacity(seed):
    assert 0.9 * 15e6 < searched(seed).stated <= 15e6


@pytest.mark.whole
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_load_that_is_too_near_to_the_lowest_capacity_is_left_for_one_that_can_be_verified(seed):
    assert 0.98 * 15e6 < searched(seed).verified <= 15e6


@pytest.mark.whole
def test_the_lowest_capacity_of_a_shared_processor_is_in_the_interval_and_its_spread_is_said():
    found = searched(2)
    assert found.is_regular
    low, high = found.interval(0.95)
    assert low < 15e6 < high < 15.2e6
    assert any(sentence.startswith("Forwarding rates in overload differ") for sentence in found.sentences)
