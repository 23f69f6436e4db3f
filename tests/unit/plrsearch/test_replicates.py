"""Trials at equal loads say how counts differ: by chance, in batches, by rare losses, or by a capacity that varies."""

import numpy as np
import pytest
from soak_trials import counts_of, estimated, loads_around, trial, trials_of

from lossratio.plrsearch import LikelihoodName, Replicates, Scatter
from lossratio.simulation import PerformanceSpectrum

CAPACITY = 18e6


def counts_at(loads, capacities, rng):
    lost = [rng.poisson(2.0 * max(load - own, 0.0)) for load, own in zip(loads, capacities, strict=True)]
    return counts_of([(load, 2.0, float(number)) for load, number in zip(loads, lost, strict=True)])


def test_counts_at_equal_loads_tell_a_constant_capacity_from_one_that_varies():
    rng = np.random.default_rng(1)
    loads = np.repeat(np.linspace(18.1e6, 19e6, 10), 6)
    constant = [Replicates.of(counts_at(loads, np.full(60, CAPACITY), rng)) for _ in range(20)]
    assert all(not found.differ and found.freedom == 50 for found in constant)
    assert np.mean([found.ratio for found in constant]) == pytest.approx(1.0, abs=0.1)
    varying = Replicates.of(counts_at(loads, CAPACITY * (1.0 + 0.004 * rng.standard_normal(60)), rng))
    assert varying.differ
    assert varying.ratio > 1e3


def test_trials_at_different_loads_decide_nothing():
    rng = np.random.default_rng(1)
    found = Replicates.of(counts_at(np.linspace(18.1e6, 19e6, 60), np.full(60, CAPACITY), rng))
    assert (found.freedom, found.ratio) == (0, None)
    assert not found.differ


def lost_at(loads, mean, rng, *, batch=1, rare=0.0):
    """Counts of one trial after the other: batches, and 300 frames more in a share of the trials."""
    rows = []
    for load in loads:
        lost = batch * rng.poisson(mean(load) / batch) + 300 * (rng.random() < rare)
        rows.append((load, 2.0, float(lost)))
    return counts_of(rows)


def rising(load):
    """From 50 lost frames to 50,000."""
    return 50.0 * np.exp((load - 18e6) / 0.145e6)


LOADS = np.repeat(np.linspace(18e6, 19e6, 10), 8)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("scatter", "ways"),
    [
        (Scatter.CHANCE, {}),
        (Scatter.BATCHES, {"batch": 32}),
        (Scatter.BATCHES, {"batch": 256}),
        (Scatter.EVENTS, {"rare": 0.2}),
    ],
)
def test_how_counts_differ_is_seen_nearly_always(scatter, ways):
    rng = np.random.default_rng(1)
    seen = [Replicates.of(lost_at(LOADS, rising, rng, **ways)).scatter for _ in range(60)]
    assert seen.count(scatter) >= 57


@pytest.mark.parametrize("batch", [1, 4, 32, 256])
def test_the_size_of_a_batch_is_known(batch):
    rng = np.random.default_rng(2)
    sizes = [Replicates.of(lost_at(LOADS, rising, rng, batch=batch)).batch for _ in range(30)]
    assert sum(abs(size - batch) <= 0.1 * batch for size in sizes) >= 28


def test_batches_of_different_sizes_have_the_dispersion_as_theirs():
    rng = np.random.default_rng(3)
    rows = []
    for load in np.repeat(np.linspace(18e6, 19e6, 10), 30):
        number = rng.poisson(rising(load) / 32.0)
        rows.append((load, 2.0, float(rng.integers(16, 49, number).sum())))
    found = Replicates.of(counts_of(rows))
    # E[S^2] / E[S] of sizes from 16 to 48.
    assert found.scatter is Scatter.BATCHES
    assert found.batch == pytest.approx(np.mean(np.arange(16, 49) ** 2.0) / 32.0, rel=0.15)


@pytest.mark.parametrize("batch", [16, 32])
def test_a_few_trials_that_lack_frames_do_not_hide_the_batch(batch):
    rng = np.random.default_rng(4)
    counts = batch * rng.binomial(60, 0.4, (30, 24))
    # A trial that sent less than it should loses a part of a batch, and leaves the rest to the next trial.
    short = rng.permuted(np.arange(24) < 4, axis=-1)
    counts[:, short] -= rng.integers(1, 4, (30, 4))
    rows = [[(load, 0.2, float(lost)) for load, lost in zip(LOADS[:24], each, strict=True)] for each in counts]
    found = [Replicates.of(counts_of(each)).multiple for each in rows]
    assert found.count(batch) >= 24


def constant(loads, *, batch, capacity=64_000.0, seconds=2.0, begin=0.0):
    """Counts of a device that passes a constant number of frames, in whole batches."""
    rows = []
    for load in loads:
        sent = round(load * seconds)
        beyond = sent - capacity * seconds + begin
        rows.append((load, seconds, float(batch * max(0, int(beyond / batch)))))
    return counts_of(rows)


@pytest.mark.parametrize("batch", [32, 64, 256])
def test_few_different_counts_of_a_constant_device_show_its_batch(batch):
    """Most trials at a load lose the same number of batches, so there are few different counts."""
    overload = [64_640.0] * 4
    around = [64_110.5, 64_207.5, 64_341.0, 64_475.5]
    found = Replicates.of(constant([120_000.0, 65_300.5, *overload, *around, *around], batch=batch))
    assert found.batch == pytest.approx(batch, rel=0.1)
    # Without the loads between them, there are too few counts.
    assert Replicates.of(constant([120_000.0, 65_300.5, *overload, *overload], batch=batch)).multiple == 1


def test_a_last_batch_that_is_not_full_changes_nothing():
    """At 120 kfps, a trial sends 937.5 batches, and loses the last one. All counts are multiples of 128, too."""
    near = [(load, 2.0, 256.0) for load in (64_112.0, 64_128.0, 64_192.0)]
    overload = [(64_768.0, 2.0, 256.0 * number) for number in (5, 6)]
    assert Replicates.of(counts_of([(120_000.0, 2.0, 111_744.0), *near, *overload])).multiple == 256


def test_batches_are_seen_at_round_loads_if_trials_at_a_load_differ():
    """All trials sent multiples of 32 frames. Without a jitter of the batches, a policer would lose the same."""
    overload = [(64_768.0, 2.0, 32.0 * number) for number in (45, 45, 46)]
    near = [(load, 2.0, 32.0 * number) for load in (64_112.0, 64_128.0, 64_144.0) for number in (4, 4, 5)]
    assert Replicates.of(counts_of([(120_000.0, 2.0, 111_904.0), *overload, *near])).batch == 32.0


def test_round_loads_make_no_batches():
    """A policer passes a round number of frames, so at round loads it loses multiples of 64 frames."""
    loads = np.repeat([64_032.0, 64_096.0, 64_160.0, 64_480.0, 64_640.0, 66_400.0, 72_000.0, 96_000.0, 120_000.0], 3)
    found = constant(loads, batch=1)
    assert np.gcd.reduce(found.lost.astype(int)) == 64
    assert not Replicates.of(found).has_multiples


def test_shares_of_round_numbers_of_frames_make_no_batches():
    """A device that loses one of sixteen flows loses a sixteenth of the frames."""
    round_loads = [(8e6 + 256.0 * number, 2.0) for number in range(0, 4000, 100)]
    other_loads = [(8e6 + 50_000.5 * number, 2.0) for number in range(1, 10)]
    rows = [(load, seconds, float(load * seconds // 16 - 5e5)) for load, seconds in [*round_loads, *other_loads]]
    assert Replicates.of(counts_of(rows[: len(round_loads)])).has_multiples
    assert Replicates.of(counts_of(rows)).multiple == 1


def test_equal_pauses_make_no_batches():
    """At each load, losses are multiples of what one pause loses, but of another number than at other loads."""
    rng = np.random.default_rng(7)
    loads = np.repeat([50e3, 55e3, 60e3, 64e3], 12)
    rows = [(load, 2.0, float(round(0.00987 * load - 311.0) * rng.poisson(1.0))) for load in loads]
    assert not Replicates.of(counts_of(rows)).has_multiples


def test_batches_that_overload_loses_evenly_are_no_events():
    """Near the critical load, some trials lose a batch; in overload, all trials lose equally many."""
    rng = np.random.default_rng(8)
    rows = [(64_050.5 + step, 2.0, 32.0 * rng.integers(0, 3)) for step in np.repeat([0.0, 7.0, 23.0], 6)]
    rows += [(load, 2.0, 32.0 * number) for load, number in [(65_000.0, 60), (66_000.5, 123), (120_000.0, 3_500)] * 6]
    found = Replicates.of(counts_of(rows))
    assert found.growth < 1.0
    assert (found.scatter, found.batch) == (Scatter.BATCHES, 32.0)
    # The same with rare losses of other sizes.
    rare = [(64_050.5, 2.0, 900.0 + 37.0 * number) for number in range(3)]
    assert Replicates.of(counts_of([*rows, *rare])).scatter is Scatter.EVENTS


def test_counts_that_a_constant_device_repeats_are_no_batch():
    rng = np.random.default_rng(5)
    lost = np.repeat([1000, 1400, 1800], 12) + (rng.random((30, 36)) < 0.2)
    rows = [[(5e3, 0.2, float(number)) for number in each] for each in lost]
    assert {Replicates.of(counts_of(each)).multiple for each in rows} == {1}


@pytest.mark.whole
def test_chance_makes_no_batch_of_different_counts():
    rng = np.random.default_rng(6)
    lost = rng.poisson(1000.0, (200, 40))
    rows = [[(5e3, 0.2, float(number)) for number in each] for each in lost]
    assert {Replicates.of(counts_of(each)).multiple for each in rows} == {1}


def test_few_trials_with_loss_say_nothing():
    found = Replicates.of(lost_at([18.5e6] * 4, rising, np.random.default_rng(1), batch=32))
    assert (found.scatter, found.batch) == (Scatter.UNKNOWN, 1.0)


@pytest.mark.whole
def test_a_capacity_that_varies_is_described_as_that():
    loads = np.repeat(loads_around(6e6, 40), 4)
    found = estimated(trials_of(PerformanceSpectrum(6e6, 0.004), loads), likelihood="varying")
    assert found.description.replicates.scatter is Scatter.VARYING
    assert found.description.likelihood is LikelihoodName.VARYING
    assert list(found.functions) == ["stretch", "erf"]
    assert any(sentence.startswith("Forwarding rates in overload differ") for sentence in found.sentences)


def test_what_a_few_trials_missed_of_a_varying_capacity_is_not_verified():
    rates = {17.934e6: 58_271, 18.088e6: 211_211, 18.153e6: 281_829}
    quiet = [trial(17.93e6, 0, duration=2.0)] * 14
    around = [trial(load, lost, duration=2.0) for load, lost in rates.items()]
    limits = {"likelihood": "varying", "max_load": 30e6}

    alike = [trial(18.219e6, lost, duration=2.0) for lost in (537_621, 538_300)]
    assert estimated([*quiet, *alike], **limits).verified == 17.93e6
    # They passed 17.950 and 18.012 Mfps, so that some trials pass less than 17.93 Mfps.
    differing = [trial(18.219e6, lost, duration=2.0) for lost in (537_621, 413_259)]
    found = estimated([*quiet, *around, *differing], **limits)
    assert found.description.replicates.scatter is Scatter.VARYING
    assert found.verified is None
    assert found.stated < found.median < 17.9e6
    assert found.doubt


def test_counts_that_are_more_even_than_chance_do_not_make_the_capacity_vary():
    """Regular pauses lose one frame in each trial at 7.8 Mfps; overload differs hardly more than by chance."""
    even = [(7.8e6, 2.0, 1.0)] * 5
    over = [(18.2e6, 2.0, lost) for lost in (439_350.0, 439_350.0, 439_800.0, 442_200.0, 442_650.0, 442_650.0)]
    found = Replicates.of(counts_of([*even, *over]))
    assert found.overload > 5.0
    assert found.scatter is not Scatter.VARYING


@pytest.mark.parametrize("size", [300.0, 3000.0])
def test_few_trials_show_that_losses_do_not_come_from_overload_where_overload_is_constant(size):
    """A capacity that varies so much would show in overload, and batches of that size, too."""
    rng = np.random.default_rng(4)
    below = [(load, 2.0, size * (number == 0)) for load in (14e6, 15e6, 16e6) for number in range(4)]
    found = []
    for _ in range(40):
        above = [(18.2e6, 2.0, float(rng.poisson(4e5))) for _ in range(2)]
        near = [(18e6, 2.0, float(rng.poisson(2.5e4))) for _ in range(2)]
        found.append(Replicates.of(counts_of([*below, *near, *above])).scatter)
    assert found.count(Scatter.EVENTS) >= 38
    wild = [(18.2e6, 2.0, lost) for lost in (3e5, 5e5)]
    assert Replicates.of(counts_of([*below, *wild])).scatter is not Scatter.EVENTS
