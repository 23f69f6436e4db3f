"""Losses that do not come from the load."""

import numpy as np
import pytest
from soak_trials import counts_of, trial

from lossratio.plrsearch import estimate
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.variation import RareLoss, Scatter, SeenCapacity, described
from lossratio.plrsearch.variation.rare import passed_follows_load

QUESTION = CriticalLoadQuestion(1e-7, 1e3, 30e6)
OVERLOAD = [(18.2e6, 448_000), (18.2e6, 448_500), (18.2e6, 447_800), (20e6, 4_000_000)]
"""Loads in frames per second, and frames that trials of 2 s lose: a capacity of 18 Mfps that hardly varies."""


def counts(rows):
    return counts_of([(load, 2.0, float(lost)) for load, lost in rows])


NONE = counts_of([(1e6, 2.0, 0.0)]).at(np.zeros(1, bool))


def found(rows, *, target=1e-7):
    """The estimate of trials of 2 s."""
    results = [trial(load, lost, duration=2.0) for load, lost in rows]
    return estimate(results, target_loss_ratio=target, min_load=1e3, max_load=30e6)


def test_a_loss_is_rare_if_a_trial_with_more_load_lost_far_less():
    rare = RareLoss.of(counts([(16e6, 0), (17.2e6, 1968), (17.6e6, 132), (17.9e6, 60_000), *OVERLOAD]), NONE, 1.0)
    assert (rare.load, rare.frames) == (17.2e6, 1836.0)
    # The knee, or a few batches of 100 frames, may lose this.
    assert RareLoss.of(counts([(16e6, 0), (17.2e6, 1100), (17.6e6, 132), *OVERLOAD]), NONE, 1.0) is None
    assert RareLoss.of(counts([(16e6, 0), (17.2e6, 1968), (17.6e6, 132), *OVERLOAD]), NONE, 100.0) is None


def test_the_loss_at_the_lowest_load_is_told():
    rare = RareLoss.of(counts([(5e6, 0), (5e6, 300), (9e6, 0), (9e6, 2000), *OVERLOAD]), NONE, 1.0)
    assert (rare.load, rare.frames) == (5e6, 300.0)


def test_a_long_trial_that_loses_far_more_than_an_equal_one_leaves_the_load_below_in_doubt():
    usual = [trial(load, lost, duration=2.0) for load, lost in [*[(17.8e6, 0)] * 12, *[(17.9e6, 1)] * 12, *OVERLOAD]]
    quiet = [trial(load, 0, duration=20.0) for load in (17.9e6, 17.8e6, 17.8e6)]

    def found(*long):
        return estimate([*usual, *long, *quiet], target_loss_ratio=1e-7, min_load=1e3, max_load=30e6)

    assert found().doubt is None
    result = found(trial(17.9e6, 78_000, duration=20.0))
    assert result.verified == 17.8e6
    assert "a trial of 20 s at 17.900 Mfps lost about 78,000 frames more" in result.doubt
    # A bucket is empty in each long trial, and in no short one.
    policed = [trial(17.9e6, 78_000, duration=20.0), trial(17.95e6, 1_078_000, duration=20.0)]
    quiet.pop(0)
    assert found(*policed).description.rare is None


@pytest.mark.parametrize(("deviation", "batch"), [(0.0, 1.0), (0.0, 256.0), (2e-4, 1.0), (5e-3, 1.0)])
def test_knees_batches_and_capacities_that_vary_have_no_rare_losses(deviation, batch):
    # A knee that is 1 % wide; each capacity is drawn anew.
    loads = np.repeat(18e6 * np.array([0.95, 0.97, 0.98, 0.985, 0.99, 0.995, 1.0, 1.012, 1.1]), 6)
    for seed in range(50):
        rng = np.random.default_rng(seed)
        over = loads / (18e6 * (1.0 + deviation * rng.standard_normal(len(loads)))) - 1.0
        mean = 36e6 * 0.002 * np.logaddexp(0.0, over / 0.002)
        lost = batch * rng.poisson(mean / batch)
        assert RareLoss.of(counts(zip(loads, lost, strict=True)), NONE, batch) is None


def test_a_load_with_quiet_trials_is_in_doubt_if_trials_above_have_rare_losses():
    quiet = [(15.5e6, 0)] * 12
    rare = found([*quiet, (17.2e6, 1968), (17.6e6, 132), *OVERLOAD])
    assert rare.stated == rare.verified == 15.5e6
    assert rare.doubt == (
        "a trial of 2 s at 17.200 Mfps lost about 1,836 frames more than one with at least as much load. If such "
        "losses come more often than once in 1,200 s at 15.500 Mfps, too, they exceed the target. The trials there "
        "took 24 s, which is too short to rule that out; search with rarest=1200 s"
    )
    assert not rare.is_regular
    assert found([*quiet, (17.2e6, 1100), (17.6e6, 132), *OVERLOAD]).doubt is None
    # Small losses may come as often as the trials could have missed them.
    assert found([*quiet, *[(15.5e6, 0)] * 108, (17.2e6, 60), (17.6e6, 0), *OVERLOAD]).doubt is None


@pytest.mark.whole
def test_a_load_below_equal_pauses_that_are_known_is_not_in_doubt():
    # Pauses of 300 us overflow a ring of 4,096 frames from 13.65 Mfps on.
    rng = np.random.default_rng(3)
    loads = np.repeat([14e6, 15e6, 16e6, 17e6], 12)
    pauses = rng.poisson(2.0 / 6.0, len(loads))
    lost = np.round(pauses * (3e-4 * loads - 4096.0)).astype(int)
    result = found([*[(13.6e6, 0)] * 30, *zip(loads, lost, strict=True), *OVERLOAD])
    assert result.description.rare is not None
    assert result.verified == 13.6e6
    assert result.doubt is None


@pytest.mark.whole
def test_pauses_are_not_taken_for_a_capacity_that_varies():
    # Exponential pauses of 168 us come each .17 s: far below the capacity, some trials lose thousands, others none.
    rng = np.random.default_rng(1)
    loads = np.repeat([4e6, 5.4e6, 7.4e6, 8.4e6, 12e6, 17.4e6], 8)
    lost = [
        np.maximum(rng.exponential(168e-6, rng.poisson(2.0 / 0.17)) * load - 4096.0, 0.0).sum().round()
        for load in loads
    ]
    over = [(28.8e6, 21.6e6 + 13e3 * number) for number in rng.standard_normal(6)]
    known = described(
        counts([*zip(loads, lost, strict=True), *np.round(over), *OVERLOAD[:3]]), QUESTION, LikelihoodName.VARYING
    )
    assert known.replicates.scatter is Scatter.EVENTS
    assert known.pauses is not None


def test_long_pauses_at_widely_different_loads_are_not_taken_for_a_capacity_that_varies():
    """A pause of 44 ms overflows a ring of 50,000 frames, and one of three trials has such a pause."""
    rows = []
    for load in np.linspace(17e6, 12e6, 12):
        rows += [(load, 0), (load, 0), (load, 0.044 * load - 50_000.0)]
    described_of = counts([*OVERLOAD, (17.5e6, 0), *rows])
    known = described(described_of, QUESTION, LikelihoodName.VARYING)
    assert known.replicates.scatter is Scatter.EVENTS
    assert known.pauses.length_s == pytest.approx(0.044, rel=0.1)


def test_a_capacity_that_varies_does_not_follow_the_load():
    rng = np.random.default_rng(1)
    rows = [(load, max(0.0, 2.0 * (load - rng.uniform(12e6, 18e6)))) for load in np.linspace(12e6, 17.9e6, 60)]
    assert not passed_follows_load(counts([(17.95e6, 0), *rows]))


def test_three_trials_of_a_capacity_that_varies_hardly_ever_follow_the_load(how_many):
    number = how_many(400, 4000)
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(number):
        loads = rng.uniform(12.5e6, 17.9e6, 6)
        lost = np.maximum(0.0, 2.0 * (loads - rng.uniform(12e6, 18e6, 6)))
        seen += passed_follows_load(counts([(17.95e6, 0), *zip(loads, lost, strict=True)]))
    assert seen <= 0.02 * number


SCANS = [(40_212.0, 1093), (37_619.0, 1198), (36_190.0, 747)]
"""A radio leaves its channel for 100 ms, and most trials do not see that."""


@pytest.mark.whole
def test_a_loss_far_below_overload_leaves_a_verified_load_in_doubt_although_it_seems_to_be_overload():
    knee = [(72_000.0, 54_455), (44_796.0, 2149), (44_748.0, 157), (44_722.0, 154), (44_386.0, 46), (44_386.0, 43)]
    quiet = [(load, 0) for load, _ in SCANS] + [(35_434.0, 0)] * 12
    results = [trial(load, lost, duration=2.0) for load, lost in [*knee, *SCANS, *quiet]]
    found = estimate(results, target_loss_ratio=5e-4, min_load=1e2, max_load=72_000.0)
    assert found.verified == 35_434.0
    assert found.doubt.startswith(
        "a trial of 2 s at 36.190 kfps lost about 747 frames more than one with at least as much"
    )
    # Above all loads without loss, the capacity decides.
    assert SeenCapacity.of(found.counts).mean > 40_212.0


@pytest.mark.whole
def test_frequent_pauses_are_not_taken_for_a_capacity_that_overload_does_not_show():
    # Pauses of 155 us come each .18 s. No trial shows that they are rare: each loses more than one at less load.
    rng = np.random.default_rng(1)
    loads = np.array([3.2e6] * 6 + [3.31e6, 3.4e6, 3.6e6, 4.1e6, 6.4e6, 8.1e6, 12.8e6, 16.3e6])
    lost = rng.poisson(2.0 / 0.18, len(loads)) * np.maximum(155e-6 * loads - 512.0, 0.0)
    over = 373e3 + 4e4 * rng.standard_normal(6)
    rows = [*zip(loads, np.round(lost), strict=True), *((17.3e6, round(more)) for more in over)]
    known = described(counts(rows), QUESTION, LikelihoodName.VARYING)
    assert known.rare is None
    assert known.replicates.scatter is Scatter.EVENTS
    assert known.pauses.length_s == pytest.approx(155e-6, rel=0.01)
    assert known.pauses.ring_frames == pytest.approx(512.0, rel=0.02)


def test_trials_in_overload_at_different_loads_also_show_how_low_no_capacity_is():
    overload = [(18.0e6, 83_000), (17.97e6, 49_000), (18.15e6, 330_000), (18.22e6, 418_000)]
    rare = RareLoss.of(counts([(15.6e6, 7_700), (16.4e6, 0), (17.3e6, 42), *overload]), NONE, 1.0)
    assert (rare.load, rare.frames) == (15.6e6, 7_700.0)


def test_the_capacity_in_overload_does_not_vary_because_of_one_pause_in_ten_trials():
    usual = [(18.2e6, 400_000 + number) for number in range(9)]
    pause = (18.2e6, 1_400_000)
    assert SeenCapacity.of(counts([*usual[:5], pause, *usual[5:]])).stdev < 10.0
    # With fewer trials, and with two such pauses, they count.
    assert SeenCapacity.of(counts([*usual[:5], pause, *usual[6:]])).stdev > 1e5
    assert SeenCapacity.of(counts([*usual[:5], pause, pause, *usual[5:]])).stdev > 1e5


def test_losses_that_scatter_at_each_load_are_not_rare():
    # Most trials lose a few groups of about 40 frames.
    scattered = [(17.6e6, lost) for lost in (40, 130, 85, 35, 160, 90, 45, 120)]
    uneven = [(17.5e6, 250), (17.7e6, 60), *scattered, *OVERLOAD]
    assert found(uneven).description.rare is None
    even = [(17.6e6, lost) for lost in (78, 82, 80, 79, 81, 83, 77, 80)]
    assert found([(17.5e6, 2500), (17.7e6, 60), *even, *OVERLOAD]).description.rare.load == 17.5e6


def test_how_much_rates_in_overload_differ_is_said_in_numbers_of_these_trials():
    rng = np.random.default_rng(1)
    capacity = 18e6 * (1.0 + 3e-3 * rng.standard_normal(30))
    over = [(19e6, round(2.0 * (19e6 - rate))) for rate in capacity]
    below = [(rate, max(0, round(2.0 * (rate - 18e6)))) for rate in (17.7e6, 17.8e6, 18.1e6)]
    (said,) = found([*over, *below]).sentences
    number = float(said.partition("deviation of ")[2].partition(" %")[0])
    assert said.startswith("Forwarding rates in overload differ from trial to trial")
    assert 0.15 < number < 0.35


@pytest.mark.whole
def test_a_rare_loss_that_the_verified_load_allows_for_is_said_to_be_so():
    quiet = [(15.5e6, 0)] * 240
    losses = {16.5e6: 151, 17e6: 167, 17.4e6: 173}
    pauses = [(load, lost) for load, one in losses.items() for lost in (0, 0, 0, one)]
    allowed = found([*quiet, *pauses, *OVERLOAD])
    assert allowed.verified == 15.5e6
    assert allowed.doubt is None
    assert [said for said in allowed.sentences if "at least as much load" in said] == [
        "A trial of 2 s at 16.500 Mfps lost about 151 frames more than one with at least as much load; the verified "
        "load allows for such losses"
    ]


@pytest.mark.parametrize(("lost", "advice"), [(1200, "search for longer"), (2000, "search with rarest=13 s")])
def test_a_search_that_took_longer_than_would_show_rare_losses_is_only_advised_to_be_longer(lost, advice):
    rows = [*[(15.5e6, 0)] * 12, (17.2e6, lost), (17.6e6, 0), *OVERLOAD * 6]
    assert found(rows, target=1e-5).doubt.endswith(f"too short to rule that out; {advice}")
