"""What counts say about loads: the laws of verification, and how frames are lost."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lossratio.plrsearch.counting import Evidence
from lossratio.plrsearch.losses import batch, crossing, fixed_pause

TARGET = 1e-7
LOAD = 18e6
ROWS = st.lists(st.tuples(st.sampled_from([0.9, 0.97, 1.0, 1.02, 1.2]), st.integers(0, 60)), min_size=1, max_size=40)


def evidence(rows, scale=1.0, **options):
    """Trials of 2 s, each a load as a share of `LOAD`, and its lost frames."""
    return Evidence.of([(scale * LOAD * share, 2.0, float(lost), 0.0, 2.0) for share, lost in rows], TARGET, **options)


@settings(max_examples=25)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(rows, random):
    mixed = list(rows)
    random.shuffle(mixed)
    assert evidence(rows).is_verified(LOAD) == evidence(mixed).is_verified(LOAD)
    assert evidence(rows).clump(LOAD) == pytest.approx(evidence(mixed).clump(LOAD))


@settings(max_examples=25)
@given(ROWS)
def test_a_verified_load_has_ten_trials_or_more_at_it_or_just_above(rows):
    if evidence(rows).is_verified(LOAD):
        assert sum(share >= 1.0 for share, _ in rows) >= 10


@settings(max_examples=25)
@given(st.integers(10, 60))
def test_trials_without_loss_verify_and_one_heavy_loss_below_does_not(number):
    quiet = [(1.0, 0)] * number
    assert evidence(quiet).is_verified(LOAD)
    assert not evidence([*quiet, *[(0.95, 40_000)] * 10]).is_verified(LOAD)


def test_one_loss_far_above_the_target_below_a_load_speaks_against_it():
    quiet = [(1.0, 0)] * 12
    assert not evidence([*quiet, (0.95, 1000), (0.95, 0), (0.95, 0)]).is_verified(LOAD)
    # One trial is no proof of what the lower load loses, but all trials together lose more than the target.
    assert not evidence([*quiet, (0.95, 100)]).is_verified(LOAD)
    assert evidence([*quiet, (0.95, 1), (0.95, 0), (0.95, 0)]).is_verified(LOAD)


def test_more_than_the_target_is_rarely_verified():
    rng = np.random.default_rng(3)
    mean = 1.5 * TARGET * 2.0 * LOAD
    drawn = (evidence([(1.0, lost) for lost in rng.poisson(mean, 20)]) for _ in range(100))
    assert sum(one.is_verified(LOAD) for one in drawn) <= 2


def test_a_third_of_the_target_is_nearly_always_verified():
    rng = np.random.default_rng(3)
    mean = TARGET * 2.0 * LOAD / 3.0
    drawn = (evidence([(1.0, lost) for lost in rng.poisson(mean, 20)]) for _ in range(100))
    assert sum(one.is_verified(LOAD) for one in drawn) >= 98


def test_batches_need_as_many_times_more_frames():
    rng = np.random.default_rng(5)
    overload = [(1.1, 32 * lost) for lost in rng.poisson(1e5, 30)]
    assert evidence(overload).clump(LOAD) == pytest.approx(32.0, rel=0.5)
    assert not evidence([*overload, *[(1.0, 0)] * 15]).is_verified(LOAD)
    assert evidence([*overload, *[(1.0, 0)] * 80]).is_verified(LOAD)


def test_a_batch_is_told_if_all_counts_are_its_multiples():
    six = [(1.0, 32), (1.0, 0), (1.0, 96), (1.0, 64), (1.0, 32), (1.0, 64), (1.0, 32)]
    assert batch(evidence(six).counts.lost) == 32.0
    assert batch(evidence([*six, (1.0, 40)]).counts.lost) is None
    # Even numbers of batches by chance would look like batches of 64.
    assert batch(evidence([(1.0, 64), (1.0, 64), (1.0, 128)]).counts.lost) is None
    assert batch(evidence([(1.0, 1), (1.0, 2), (1.0, 3)]).counts.lost) is None


def test_quiet_loads_below_do_not_make_events_rarer():
    above = [*[(1.1, 0)] * 19, (1.1, 5000)]
    assert evidence([*above, *[(1.05, 0)] * 40, *[(1.0, 0)] * 80]).is_verified(LOAD)


def test_losses_above_all_quiet_loads_are_those_of_overload_and_no_events():
    assert evidence([(1.02, 500), *[(1.01, 0)] * 40, *[(1.0, 0)] * 10]).is_verified(LOAD)


def test_frames_that_each_trial_loses_once_do_not_count():
    rows = [(1.0, 30)] * 20
    assert not evidence(rows).is_verified(LOAD)
    assert evidence(rows, once=31.0).is_verified(LOAD)


def test_a_capacity_that_varies_is_no_batch():
    rng = np.random.default_rng(2)
    rows = [(1.2, round(7.2e6 + 1e5 * z)) for z in rng.standard_normal(8)]
    assert evidence(rows).clump(LOAD) == 1.0


@settings(max_examples=25)
@given(st.floats(50e-6, 2e-3), st.floats(0.3, 0.9), st.lists(st.floats(0.0, 1.0), min_size=4, max_size=8, unique=True))
def test_pauses_of_one_length_are_known_to_a_twentieth(length, place, shares):
    ring = place * LOAD * length
    loads = sorted({round((place + 0.05 + (0.9 - place) * share), 6) for share in shares})
    rows = [(load, round(LOAD * load * length - ring)) for load in loads]
    rows += [(load, 0) for load in loads]
    found = fixed_pause(evidence(rows).counts)
    if found is not None:
        assert found.length_s == pytest.approx(length, rel=0.05)
        assert found.ring_frames == pytest.approx(ring, rel=0.05)
    elif len(loads) >= 3 and loads[-1] > 1.1 * loads[0]:
        assert min(lost for _, lost in rows) < 500


@pytest.mark.parametrize(("quiet", "is_single"), [(6, True), (0, False)])
def test_trials_with_several_pauses_are_on_the_line_of_one(quiet, is_single):
    """If most trials see pauses, one may be several; the load at which nothing is lost is the same."""
    ring, length = 15e3, 1e-3
    seen = [(0.86, 1), (0.88, 1), (0.9, 2), (0.92, 1), (0.94, 3), (0.96, 1)]
    rows = [(share, pauses * round(LOAD * share * length - ring)) for share, pauses in seen]
    found = fixed_pause(evidence([*rows, *[(0.9, 0)] * quiet]).counts)
    assert found.is_single is is_single
    assert found.free_load == pytest.approx(0.998 * ring / length, rel=1e-3)
    assert found.length_s == pytest.approx(length, rel=0.01)


@pytest.mark.parametrize("spread", [0.005, 0.02])
def test_a_line_crosses_the_target_where_an_exponential_knee_does(spread):
    rng = np.random.default_rng(4)
    shares = np.linspace(1.0 - 4.0 * spread, 1.0 + 4.0 * spread, 30)
    rows = [(share, rng.poisson(TARGET * np.exp((share - 1.0) / spread) * 2.0 * share * LOAD)) for share in shares]
    assert crossing(evidence(rows).counts, TARGET) == pytest.approx(LOAD, rel=0.5 * spread)


def test_a_line_needs_losses_that_grow_with_the_load():
    assert crossing(evidence([(1.0, 0), (1.02, 0)]).counts, TARGET) is None
    assert crossing(evidence([(1.0, 50), (1.02, 0)]).counts, TARGET) is None
