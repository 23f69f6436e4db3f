"""What counts of frames say about a loss ratio, and the statement about a load in words."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

from lossratio.plrsearch import CountedStatement, LossBounds, Verdict


def bounds(frames, lost):
    return LossBounds.of(np.array(frames, dtype=float), np.array(lost, dtype=float))


def test_bounds_are_those_of_clopper_and_pearson():
    known = scipy.stats.binomtest(5, 30_000_000).proportion_ci(0.95, method="exact")
    counted = bounds([1e7, 1e7, 1e7], [2, 1, 2])
    assert counted.burst == 1.0
    assert (counted.least, counted.most) == pytest.approx(tuple(known))
    assert bounds([1e6], [0]).most == pytest.approx(3.689e-6, rel=1e-3)


def test_losses_in_bursts_are_worth_less_than_single_ones():
    single, burst = bounds([1e7] * 10, [6, 4, 5, 5, 4, 6, 5, 7, 3, 5]), bounds([1e7] * 10, [50, *[0] * 9])
    assert burst.burst == pytest.approx(50.0)
    assert burst.least < single.least < 5e-7 < single.most < burst.most


def test_a_small_part_of_a_batch_bounds_nothing_from_below():
    one = LossBounds.of(np.full(4, 36e6), np.array([1.0, 0.0, 0.0, 0.0]), batch=213.0)
    assert one.least == 0.0
    assert LossBounds.of(np.full(4, 36e6), np.array([213.0, 0.0, 0.0, 0.0]), batch=213.0).least > 0.0


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_bursts_are_within_their_bounds_mostly(share):
    rng, truth, inside = np.random.default_rng(1), 1e-6, 0
    for _ in range(200):
        lost = [rng.exponential(10.0 / share) if rng.random() < share else 0.0 for _ in range(60)]
        counted = bounds([1e7] * 60, lost)
        inside += counted.least <= truth <= counted.most
    assert inside > 0.9 * 200


@pytest.mark.whole
@pytest.mark.parametrize(("every", "share"), [(60.0, 0.5), (60.0, 2.0), (10.0, 2.0)])
def test_bursts_in_few_trials_are_below_the_upper_bound(every, share):
    rng, truth, held, verified = np.random.default_rng(1), share * 1e-7, 0, 0
    for _ in range(200):
        stalls = rng.poisson(2.0 / every, 108)
        lost = [round(rng.exponential(truth * 18e6 * every, number).sum()) for number in stalls]
        counted = bounds([36e6] * 108, lost)
        if counted.lossy:
            held += counted.most >= truth
            verified += share > 1.0 and counted.most <= 1e-7
        else:
            held += 1
    assert held > 0.97 * 200
    assert verified < 0.025 * 200


def test_three_bursts_of_one_size_say_more_than_three_of_other_sizes():
    equal, different = (bounds([36e6] * 20, [*lost, *[0] * 17]).most for lost in ((900,) * 3, (100, 700, 1900)))
    assert equal < 0.9 * different


@pytest.mark.whole
@pytest.mark.parametrize(("every", "most"), [(60.0, 0.1), (20.0, 0.03)])
def test_bursts_of_equal_size_are_known_better_than_others(every, most):
    rng, truth, above = np.random.default_rng(1), 1e-7, 0
    equal, different = [], []
    for _ in range(200):
        stalls = rng.poisson(2.0 / every, 108)
        size = truth * 18e6 * every
        equal.append(bounds([36e6] * 108, size * stalls).most)
        different.append(bounds([36e6] * 108, [rng.exponential(size, number).sum() for number in stalls]).most)
        above += not stalls.any() or equal[-1] >= truth
    assert above > 0.97 * 200
    assert np.median(equal) < 0.9 * np.median(different)


def test_missing_frames_verify_the_target_if_they_lose_as_little():
    few = bounds([1e6, 1e6], [0, 0])
    missing = few.missing_frames(1e-7)
    assert bounds([2e6 + missing], [0]).most == pytest.approx(1e-7, rel=1e-2)
    assert bounds([1e8, 1e8], [1, 1]).missing_frames(1e-7) == 0.0
    assert bounds([1e8, 1e8], [20, 20]).missing_frames(1e-7) is None


def statement(verdict, counted, load=5.7e6):
    return CountedStatement.of(verdict, 1e-7, (load, load), counted).of_trials(5.0)


def test_verified_states_up_to_which_bursts_it_is():
    quiet = bounds([36e6] * 108, [0] * 108)
    largest = quiet.largest_burst(1e-7)
    assert largest == pytest.approx(108 * 36e6 * 1e-7 / 3.689, rel=2e-3)
    assert bounds([36e6 / largest] * 108, [0] * 108).most == pytest.approx(1e-7, rel=2e-3)
    assert bounds([36e6], [0]).largest_burst(1e-8) is None
    shown = statement(Verdict.VERIFIED, bounds([28.5e6] * 40, [0] * 40))
    assert (1.0 - 1.0 / shown.unseen_burst_trials) ** 40 == pytest.approx(0.025)
    assert "unless more than 31 frames are lost at a time, less often than every 57 s" in str(shown)
    assert "at a time, less often than every 23 s" in str(shown.of_trials(2.0))
    assert "unless more than 1 frame is lost at a time, less often" in str(replace(shown, largest_burst_frames=1.4))


def test_few_trials_verify_nothing_however_many_frames_they_sent_and_name_what_they_leave_open():
    few = statement(Verdict.EXTRAPOLATED, bounds([28.5e6] * 4, [0] * 4))
    # The upper limit, -ln(0.025) / 1.14e8 = 3.236e-8, is rounded up.
    assert ", a ratio of 0 to 3.3e-08; " in str(few)
    assert few.extrapolation_factor < 1.0
    assert few.largest_burst_frames is None
    assert few.missing_trials == 6
    assert few.missing_frames == pytest.approx(6 * 28.5e6)
    assert str(few).startswith("extrapolated: 0 of 114,000,000 frames were lost at 5.7000 Mfps, ")
    assert "losses that come less often than every 8.3 s may not have occurred in any of these trials" in str(few)
    assert "; another 170,000,000 frames in 6 or more trials would verify it" in str(few)
    assert " frames in one or more trials would verify it" in str(replace(few, missing_trials=1))
    # How long that takes is only roughly known.
    for seconds, words in ((216.4, "3 min 36 s"), (7_265.0, "2 h 1 min"), (1_844_666.0, "21 d 8 h")):
        assert f" trials ({words}) would verify it" in str(replace(few, missing_s=seconds))
    # Trials that do not exist leave everything open.
    none = statement(Verdict.EXTRAPOLATED, bounds([], []))
    assert none.unseen_burst_trials is None
    assert str(none) == "extrapolated: no trial was at 5.7000 Mfps"
