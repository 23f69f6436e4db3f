"""Of chance alone nothing is said: neither of overloaded devices nor of counts that are drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from lossy_devices import MIX, STREAMS, Lab, bursts, every, none, overloaded, policer, red, spec, tail_drop

from lossratio.results.loss_places import loss_places
from lossratio.results.loss_tests import Table, answer, effect_of
from lossratio.results.losses import LEVEL


def beyond(capacity, batch):
    """A device that takes a batch, and loses what comes until it can take the next one."""

    def lost(numbers, load, random):
        excess = max(1, round(batch * (load / capacity - 1.0)))
        period = round(excess * load / (load - capacity))
        return every(period, excess)(numbers, load, random)

    return lost


def two_queues(capacity, room, batch):
    """Frames go to either of two queues, whatever they are."""
    even, uneven = tail_drop(capacity / 2, room, min(batch, room)), tail_drop(capacity / 2, room, min(batch, room), 0.3)

    def lost(numbers, load, random):
        flags, is_first = none(numbers, load, random), random.random(len(numbers)) < 0.5
        flags[is_first] = even(numbers[is_first], load / 2, random)
        flags[~is_first] = uneven(numbers[~is_first], load / 2, random)
        return flags

    return lost


OVERLOADED = {
    "two queues": two_queues,
    "policer": lambda capacity, room, batch: policer(capacity, room),
    "queue": lambda capacity, room, batch: tail_drop(capacity, room, min(batch, room)),
    "uneven queue": lambda capacity, room, batch: tail_drop(capacity, room, min(batch, room), 0.5),
    "random early detection": lambda capacity, room, batch: red(capacity, max(64, room)),
    "bursts": lambda capacity, room, batch: bursts(0.05, batch),
    "every nth frame": lambda capacity, room, batch: beyond(capacity, 1),
    "the end of each batch": lambda capacity, room, batch: beyond(capacity, batch),
}


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(80))
def test_of_an_overloaded_device_no_pattern_is_said(seed):
    random = np.random.default_rng(seed)
    make = OVERLOADED[sorted(OVERLOADED)[seed % len(OVERLOADED)]]
    flows = int(random.choice([1, 2, 8, 16, 64, 100, 128, 254, 256, 1000]))
    capacity = float(random.choice([10e3, 12.5e3, 8e3, 9.7e3]))
    room, batch = int(random.choice([16, 64, 128, 512])), int(random.choice([1, 16, 32, 64, 256]))
    device = overloaded(capacity, lambda limit: make(limit, room, batch))
    lab = Lab(spec(flows, MIX if random.random() < 0.4 else ((64, 1),)), seed, random.choice([None, 6000]))
    if seed % 5 == 0:
        lab = Lab(STREAMS, seed)
    loads = capacity * random.choice([4, 3, 2, 1.5, 1.25, 1.1, 1.05, 1.01], size=5, replace=False)
    devices = [device] * int(random.choice([1, 2]))
    for load in loads:
        lab.trial(float(load), 0.4, *devices)
    found = loss_places(lab.trials)
    assert found is None or found.patterns == ()


def table_of(rows, known=100.0, labels=None, trial=None):
    """A question with a row for each part of a trial."""
    lost = np.array(rows, dtype=float)
    places = np.arange(lost.shape[1]) if labels is None else np.array(labels)
    trials = np.arange(len(lost)) if trial is None else np.array(trial)
    return Table("flows", "flow", "port0>port1", lost, np.full(lost.shape, known), trials, places)


@pytest.mark.whole
def test_the_chance_of_bursts_is_no_smaller_than_it_says():
    random = np.random.default_rng(2)
    burst = np.array([1.0] * 20 + [0.0] * 80)
    chances = [
        answer(table_of([np.roll(burst, int(random.integers(100))) for _ in range(20)]), 1).chance for _ in range(500)
    ]
    for level in (0.5, 0.1, 0.01):
        assert np.mean(np.array(chances) < level) <= level + 3.0 * math.sqrt(level / 500)


@pytest.mark.whole
@pytest.mark.parametrize("length", [2, 4, 16, 100])
def test_the_chance_of_many_small_losses_is_no_smaller_than_it_says(length):
    random = np.random.default_rng(length)
    shares = np.where(np.arange(length) < length // 2, 1.0, 0.0)

    def chance(ratio: float, turns: bool) -> float:
        rows = [
            random.poisson(ratio * np.roll(shares, int(random.integers(length)) if turns else 0)) for _ in range(40)
        ]
        return answer(table_of(rows), 1).chance

    by_chance = np.array([chance(0.3, turns=True) for _ in range(200)])
    for level in (0.5, 0.1, 0.01):
        assert np.mean(by_chance < level) <= level + 3.0 * math.sqrt(level / 200)
    # The same ones in each block are seen, also where a block has few rotations.
    assert max(chance(3.0, turns=False) for _ in range(20)) < 1e-4


@pytest.mark.parametrize("places", [2, 8, 64])
def test_a_difference_that_would_have_shown_shows(places):
    """In the same rows, with this difference between two halves of the places."""
    random = np.random.default_rng(places)
    seen = 0
    for _ in range(20):
        shares = np.full((60, places), 0.05)
        known = 400.0
        silent = answer(table_of(random.binomial(int(known), shares), known), 8)
        assert silent.difference < 0.2
        shares[:, : places // 2] += silent.difference
        seen += answer(table_of(random.binomial(int(known), shares), known), 8).chance < LEVEL
    assert seen >= 19


def test_rows_that_could_not_show_anything_have_no_difference_that_would_have_shown():
    assert answer(table_of([[5.0, 6.0]] * 5), 8).difference == 1.0
    assert answer(table_of([[0.0, 0.0]] * 50), 8).difference == 1.0


def test_a_set_stands_out_or_is_not_clear():
    def effect(shares):
        return answer(table_of([100.0 * np.array(shares)] * 12), 1).effect

    found = effect([0.0, 0.9, 0.0, 1.0, 0.0, 0.0])
    assert found.members.tolist() == [False, True, False, True, False, False]
    assert (found.least, found.others, found.explained) == (0.9, 0.0, pytest.approx(1.0))
    assert effect([0.2, 0.6, 0.22, 0.6, 0.2, 0.2]).is_clear
    assert not effect(np.linspace(0.1, 0.6, 6)).is_clear
    assert effect([0.5] * 6) is None


def test_levels_of_which_no_frame_was_sent_have_no_share_of_their_own():
    table = replace(table_of([[0.0, 5.0]] * 3), known=np.array([[0.0, 100.0]] * 3))
    found = effect_of(table, np.array([True, False]))
    assert (found.share, found.least, found.others) == (0.0, 0.0, 0.05)


def test_the_interval_covers_the_difference_and_is_as_wide_as_trials_differ():
    rows = [[30.0 + step, 10.0 + step / 2.0] for step in (-2.0, 0.0, 2.0)]
    low, high = answer(table_of(rows), 1).effect.interval
    assert low < 0.2 < high
    assert high - low == pytest.approx(2 * 4.303 * 0.01 / math.sqrt(3), rel=1e-3)
