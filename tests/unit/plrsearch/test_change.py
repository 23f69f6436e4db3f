"""Whether the SUT changed during the search, by trials at equal and at other loads."""

import numpy as np
import pytest
from soak_trials import counts_of, estimated, trial

from lossratio.plrsearch import Change


def loss(load, capacity):
    return 2.0 * 2e4 * np.log1p(np.exp((load - capacity) / 2e4))


def counts_with(capacities, rng, *, batch=1):
    """Trials around a knee of 18 Mfps whose capacity is given for each trial."""
    rows = []
    for capacity in capacities:
        load = rng.choice(np.linspace(17.85e6, 18.05e6, 9))
        rows.append((load, 2.0, float(batch * rng.poisson(loss(load, capacity) / batch))))
    return counts_of(rows)


@pytest.mark.whole
@pytest.mark.parametrize(("batch", "deviation"), [(1, 0.0), (32, 0.0), (1, 0.001)])
def test_a_sut_that_stays_the_same_is_said_to_have_changed_in_few_searches(batch, deviation, how_many):
    seen, number = 0, how_many(100, 400)
    for seed in range(number):
        rng = np.random.default_rng(seed)
        capacities = 18e6 * (1.0 + deviation * rng.standard_normal(120))
        seen += Change.of(counts_with(capacities, rng, batch=batch)) is not None
    assert seen <= 0.02 * number


@pytest.mark.whole
@pytest.mark.parametrize(("at", "change"), [(8, 0.05), (40, 0.01), (60, -0.01), (100, -0.05)])
def test_a_step_is_found_where_it_is(at, change):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        capacities = np.where(np.arange(120) < at, 18e6 * (1.0 - change), 18e6)
        found.append(Change.of(counts_with(capacities, rng)))
    near = [one for one in found if one is not None and abs(one.trials - at) <= 3]
    assert len(near) >= 18
    assert all(one.loses_more == (change < 0.0) for one in near)


def test_a_sut_that_becomes_much_faster_has_changed_although_only_one_trial_lost_frames_in_overload():
    before = [(9e6 + 1e4 * number, 2.0, 5000.0 * number) for number in range(1, 6)]
    first = (9.1e6, 2.0, 190_000.0)
    after = [(9.1e6, 2.0, 0.0)] * 9 + [(load, 2.0, 0.0) for load in np.linspace(9.2e6, 15e6, 10)]
    found = Change.of(counts_of([*before, first, *after]))
    assert found.trials == 6
    assert not found.loses_more


def test_a_sut_that_becomes_much_faster_has_changed_although_two_equal_trials_differ_by_as_much():
    """One pair of trials does not show how much trials scatter, and small losses may come in large batches."""
    before = [(30e6, 2.0, 42e6), *[(9e6 + 1e4 * number, 2.0, 4000.0) for number in range(6)]]
    after = [(30e6, 2.0, 24e6), *[(17.5e6, 2.0, 0.0)] * 9]
    found = Change.of(counts_of([*before, *after]))
    assert found.trials == len(before)
    assert not found.loses_more


def test_a_sut_that_becomes_faster_has_changed_although_each_trial_before_may_have_lost_few_batches():
    """A failed interface is back: each trial before it lost fewer frames than four batches of 512."""
    before = [(960e3, 2.0, 1.26e6), (331e3, 2.0, 1942.0), (329.7e3, 2.0, 982.0), (330.3e3, 2.0, 1531.0)]
    before += [(328.3e3, 2.0, 279.0), (324.4e3, 2.0, 6.0), (332.8e3, 2.0, 5594.0), (332.8e3, 2.0, 5576.0)]
    after = [(332.8e3, 2.0, 0.0), (960e3, 2.0, 722e3), (599e3, 2.0, 1525.0), *[(581e3, 2.0, 0.0)] * 11]
    found = Change.of(counts_of([*before, *after]))
    assert found.trials in (len(before), len(before) + 1)
    assert not found.loses_more
    # One loss of two batches may be chance.
    lossy = [(331e3, 2.0, 0.0)] * 5 + [(331e3, 2.0, 1942.0), (329.7e3, 2.0, 0.0)]
    assert Change.of(counts_of([*lossy, *after])) is None


def test_short_trials_are_not_compared_with_others():
    """Each trial loses 300 frames, however long it takes, so short ones lose a larger share."""
    usual = [(17e6, 2.0, 300.0)] * 6
    short = [(17e6, 0.4, 300.0)] * 8
    later = [(17.2e6, 2.0, 300.0)] * 20
    assert Change.of(counts_of([*usual, *short, *later])) is None


def in_overload(capacities, rng):
    """Trials in overload, between trials far below it, where nothing is lost."""
    rows = []
    for capacity in capacities:
        rows.append((28e6, 2.0, float(rng.poisson(2.0 * (28e6 - capacity)))))
        rows.append((12e6, 2.0, 0.0))
    return counts_of(rows)


@pytest.mark.parametrize("change", [-0.25, -0.03, 0.03])
def test_a_sut_that_slowly_becomes_faster_or_slower_has_changed_until_it_stays_about_the_same(change):
    at = np.arange(50)
    capacities = 18e6 * (1.0 + change * np.exp(-at / 8.0))
    found = Change.of(in_overload(capacities, np.random.default_rng(1)))
    assert found.loses_more == (change > 0.0)
    assert capacities[found.trials // 2] == pytest.approx(18e6, rel=0.005)
    assert found.trials <= 80


def test_a_drift_that_few_trials_show_at_the_end_is_no_change():
    quiet = [(12e6, 2.0, 0.0)] * 5
    overload = [(28e6, 2.0, 20e6 - 2e5 * number) for number in range(12)]
    assert Change.of(counts_of([*quiet, overload[0], *quiet * 40, *overload[1:]])) is None


@pytest.mark.whole
@pytest.mark.parametrize("deviation", [0.0, 0.002, 0.05])
def test_overload_that_differs_from_trial_to_trial_is_no_trend(deviation, how_many):
    seen, number = 0, how_many(60, 600)
    for seed in range(number):
        rng = np.random.default_rng(seed)
        capacities = 18e6 * (1.0 + deviation * rng.standard_normal(50))
        seen += Change.of(in_overload(capacities, rng)) is not None
    assert seen <= 0.02 * number


def test_what_was_before_a_change_is_forgotten_and_the_change_is_said():
    loads = [17.7e6, 17.8e6, 17.9e6, 18.1e6] * 10
    before = [trial(load, round(loss(load, 17.5e6)), duration=2.0) for load in loads]
    after = [trial(load, round(loss(load, 18e6)), duration=2.0) for load in loads * 2]
    found = estimated([*before, *after], likelihood="varying", max_load=30e6)
    alone = estimated(after, likelihood="varying", max_load=30e6)
    assert found.description.change.trials == 40
    assert found.median == pytest.approx(alone.median, rel=1e-9)
    assert found.sentences[0].startswith(
        "Since some time between 79 s and 81 s after the beginning, trials lose fewer frames than before"
    )
    assert alone.description.change is None


def test_a_rare_loss_is_no_change():
    quiet = [trial(17.5e6, 3000 * (number % 20 == 0), duration=2.0) for number in range(100)]
    lossy = [trial(18.1e6, 200_000 + number % 7, duration=2.0) for number in range(20)]
    found = estimated([*lossy[:10], *quiet, *lossy[10:]], likelihood="varying", max_load=30e6)
    assert found.description.change is None


@pytest.mark.whole
def test_rare_losses_at_a_load_that_is_tried_at_the_beginning_only_are_no_change(how_many):
    seen = 0
    for seed in range(how_many(20, 200)):
        rng = np.random.default_rng(seed)
        rare = [(17.5e6, 2.0, 1000.0 * (rng.random() < 0.6)) for _ in range(40)]
        overload = [(18.1e6, 2.0, float(rng.poisson(200_000))) for _ in range(120)]
        seen += Change.of(counts_of([*rare, *overload])) is not None
    assert seen <= 0.02 * how_many(20, 200)


@pytest.mark.whole
def test_pauses_at_a_load_that_is_left_are_no_change(how_many):
    """Each seventh trial sees a pause, at the first load as well as at the loads that follow."""
    number = how_many(40, 400)
    seen = 0
    for seed in range(number):
        rng = np.random.default_rng(seed)
        loads = np.repeat([9.2e6, 8.4e6, 8.6e6, 8.8e6, 9.3e6], [280, 110, 110, 60, 60])
        lost = np.where(rng.random(len(loads)) < 1.0 / 7.0, 1.2e-3 * loads, 0.0)
        overload = [(16e6, 2.0, 2.4e6), (16e6, 2.0, 2.4e6)]
        rows = [(load, 2.0, float(round(number))) for load, number in zip(loads, lost, strict=True)]
        seen += Change.of(counts_of([*overload, *rows])) is not None
    assert seen <= 0.02 * number


def test_one_late_trial_with_a_loss_is_no_change():
    quiet = [trial(17.5e6 + 1e4 * (number % 6), 0, duration=2.0) for number in range(60)]
    lossy = [trial(18.1e6, 200_000 + number % 7, duration=2.0) for number in range(20)]
    rare = trial(17.4e6, 1235, duration=2.0)
    found = estimated([*lossy[:10], *quiet, rare, *lossy[10:]], likelihood="varying", max_load=30e6)
    assert found.description.change is None


@pytest.mark.whole
def test_two_capacities_that_alternate_are_no_change(how_many):
    seen = 0
    for seed in range(how_many(40, 400)):
        rng = np.random.default_rng(seed)
        capacities = np.where(rng.random(100) < 0.3, 17.6e6, 18e6)
        seen += Change.of(counts_with(capacities, rng)) is not None
    assert seen <= 0.02 * how_many(40, 400)


@pytest.mark.whole
def test_pauses_are_no_change(how_many):
    """A search tries lower and lower loads while it sees losses, so these come first."""
    seen = 0
    for seed in range(how_many(40, 400)):
        rng = np.random.default_rng(seed)
        loads = np.concatenate([np.full(30, 17.6e6), np.full(40, 16.7e6), np.full(30, 15.9e6)])
        events = rng.poisson(np.where(loads > 16e6, 0.3, 0.1))
        overload = [(18.1e6, 2.0, float(rng.poisson(200_000))) for _ in range(20)]
        rows = [(load, 2.0, 400.0 * number) for load, number in zip(loads, events, strict=True)]
        seen += Change.of(counts_of([*overload[:10], *rows, *overload[10:]])) is not None
    assert seen <= 0.02 * how_many(40, 400)


def spells(lost, rng, *, longest=20):
    """120 trials in overload of a SUT that has two states in turn: the frames that they lose."""
    states = np.repeat(np.arange(60) % 2, rng.integers(5, longest, 60))[:120]
    return counts_of([(18.5e6, 2.0, float(rng.poisson(lost[state]))) for state in states])


@pytest.mark.whole
def test_two_states_in_turn_are_no_lasting_change(how_many):
    number = how_many(40, 400)
    seen = sum(Change.of(spells((1e6, 3e6), np.random.default_rng(seed))) is not None for seed in range(number))
    assert seen <= 0.1 * number


def test_a_state_that_lasts_is_a_change_although_it_was_seen_before_for_a_moment():
    lost = [3e6] * 30 + [1e6] * 2 + [3e6] * 8 + [1e6] * 60
    rng = np.random.default_rng(1)
    found = Change.of(counts_of([(18.5e6, 2.0, float(rng.poisson(one))) for one in lost]))
    assert abs(found.trials - 40) <= 1


def test_single_trials_at_different_loads_show_together_that_more_is_lost():
    before = [(load, 2.0, 30_000.0) for load in np.linspace(9e6, 9.2e6, 9)]
    after = [*[(load, 2.0, 9e5) for load in np.linspace(8e6, 8.8e6, 8)], *[(5e6, 2.0, 0.0)] * 12]
    assert 9 <= Change.of(counts_of([*before, *after])).trials <= 10
    rare = [(8e6, 2.0, 900_000.0), *[(5e6, 2.0, 0.0)] * 13]
    assert Change.of(counts_of([*before, *rare])) is None
