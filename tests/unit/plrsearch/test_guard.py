"""What frames at and just below the reported load say without any model."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from soak_trials import LIMITS, estimated, loads_around, trial, trials_of

from lossratio.plrsearch import Verdict
from lossratio.plrsearch.estimate import LossBounds
from lossratio.plrsearch.estimate.guard import guard
from lossratio.plrsearch.model import CriticalLoadQuestion, collect
from lossratio.simulation import SmoothKnee
from lossratio.simulation.sut import SutWithoutMemory

QUESTION = CriticalLoadQuestion(1e-7, 1e4, 3e7)
KNEE = SmoothKnee(6e6, 2e4)
AROUND = trials_of(KNEE, loads_around(6e6, 60))


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


def test_trials_above_a_load_verify_it_together_with_those_at_the_load():
    """One stall in ten trials says little; three in 50 trials say enough."""
    question = CriticalLoadQuestion(1e-6, **LIMITS)
    stalls = [(5e6, 1), (5.1e6, 0), (5.2e6, 1), (5.3e6, 0), (5.4e6, 1)]
    trials = [trial(load, 12 * (number < seen)) for load, seen in stalls for number in range(10)]
    found = guard(collect(trials), question, 5.4e6, 5.3e6)
    assert found.verdict is Verdict.VERIFIED
    alone = guard(collect(trials[:10]), question, 5.4e6, 5.3e6)
    assert alone.verdict is Verdict.EXTRAPOLATED
    assert found.load_per_interface_fps == 5.2e6


def test_verified_states_up_to_which_bursts_it_is():
    quiet = bounds([36e6] * 108, [0] * 108)
    largest = quiet.largest_burst(1e-7)
    assert largest == pytest.approx(108 * 36e6 * 1e-7 / 3.689, rel=2e-3)
    assert bounds([36e6 / largest] * 108, [0] * 108).most == pytest.approx(1e-7, rel=2e-3)
    assert bounds([36e6], [0]).largest_burst(1e-8) is None
    single = trials_of(KNEE, [5.7e6] * 40, seed=2)
    shown = guard(collect(single), CriticalLoadQuestion(1e-7, **LIMITS), 5.7e6, 5.6e6)
    assert shown.verdict is Verdict.VERIFIED
    assert (1.0 - 1.0 / shown.unseen_burst_trials) ** 40 == pytest.approx(0.025)
    assert "unless more than 31 frames are lost at a time, less often than every 57 s" in str(shown)
    assert "at a time, less often than every 23 s" in str(shown.of_trials(2.0))
    assert "unless more than 1 frame is lost at a time, less often" in str(replace(shown, largest_burst_frames=1.4))


def test_missing_frames_verify_the_target_if_they_lose_as_little():
    few = bounds([1e6, 1e6], [0, 0])
    missing = few.missing_frames(1e-7)
    assert bounds([2e6 + missing], [0]).most == pytest.approx(1e-7, rel=1e-2)
    assert bounds([1e8, 1e8], [1, 1]).missing_frames(1e-7) == 0.0
    assert bounds([1e8, 1e8], [20, 20]).missing_frames(1e-7) is None


@pytest.mark.whole
def test_a_load_without_trials_is_extrapolated_and_one_with_enough_of_them_verified():
    above = [result for result in AROUND if result.output.lost_frames > 50]
    assert estimated(above).guard.verdict is Verdict.EXTRAPOLATED
    below = trials_of(KNEE, [5.7e6] * 10, seed=2)
    guard = estimated([*above, *below]).guard
    assert guard.verdict is Verdict.VERIFIED
    assert guard.load_per_interface_fps == 5.7e6
    assert guard.extrapolation_factor <= 1.0
    assert guard.missing_frames is None


def test_if_even_the_lowest_load_loses_too_much_the_result_says_so():
    losing = [trial(load, 40, duration=2.0) for load in (8e6, 6e6, 5e6, 4e6, 2e6, 1e6) for _ in range(2)]
    found = estimated(losing, likelihood="varying")
    assert found.stated < 1e6
    assert found.doubt == (
        "no load is verified; even the lowest load that was tried, 1.0000 Mfps, lost more than the target"
    )
    quiet = estimated([*losing, trial(0.9e6, 0, duration=2.0)], likelihood="varying")
    assert "lowest load" not in quiet.doubt


def test_a_minimum_load_that_loses_more_than_the_target_is_not_called_verified_alone():
    trials = [trial(1e4, 50) for _ in range(12)]
    found = estimated([*trials, trial(1e6, 100_000)], likelihood="varying", target=1e-6)
    assert str(found.guard).startswith(
        "verified to be above the target: 600 of 600,000 frames were lost at 10.000 kfps"
    )


def test_few_trials_verify_nothing_however_many_frames_they_sent_and_name_what_they_leave_open():
    question = CriticalLoadQuestion(1e-7, **LIMITS)
    few = guard(collect(trials_of(KNEE, [5.7e6] * 4, seed=2)), question, 5.7e6, 5.6e6)
    # The upper limit, -ln(0.025) / 1.14e8 = 3.236e-8, is rounded up.
    assert ", a ratio of 0 to 3.3e-08; " in str(few)
    assert few.extrapolation_factor < 1.0
    assert few.verdict is Verdict.EXTRAPOLATED
    assert few.largest_burst_frames is None
    assert few.missing_trials == 6
    assert few.missing_frames == pytest.approx(6 * 5.7e6 * 5.0)
    assert str(few).startswith("extrapolated: 0 of 114,000,000 frames were lost at 5.7000 Mfps, ")
    assert "losses that come less often than every 8.3 s may be in none of these trials" in str(few)
    single = guard(collect(trials_of(KNEE, [5.7e6], seed=2)), question, 5.7e6, 5.6e6)
    assert "losses that come less often than every 5.1 s may be in none of these trials" in str(single)
    assert "; another 170,000,000 frames in 6 or more trials would verify it" in str(few)
    assert " frames in one or more trials would verify it" in str(replace(few, missing_trials=1))
    # How long that takes is only roughly known.
    for seconds, words in ((216.4, "3 min 36 s"), (7_265.0, "2 h 1 min"), (1_844_666.0, "21 d 8 h")):
        assert f" trials ({words}) would verify it" in str(replace(few, missing_s=seconds))
    # Trials that do not exist leave everything open.
    none = guard(collect([trial(9e6, 1000)]), question, 5.7e6, 5.6e6)
    assert none.unseen_burst_trials is None
    assert str(none) == "extrapolated: no trial was at 5.7000 Mfps or just below"


def test_enough_frames_that_verify_no_load_are_said_not_to():
    # Only together, 12 trials at four loads have lost nothing.
    loads = np.repeat([5.64e6, 5.66e6, 5.68e6, 5.7e6], 3)
    spread = guard(collect([trial(load, 0) for load in loads]), CriticalLoadQuestion(1e-7, **LIMITS), 5.7e6, 5.6e6)
    assert spread.verdict is Verdict.EXTRAPOLATED
    assert spread.extrapolation_factor < 1.0
    assert str(spread).endswith("; these trials are at several loads, or others speak against this load")


def test_loss_below_the_reported_load_contradicts_it_and_is_a_misfit():
    lossy = [trial(5.8e6, lost) for lost in (150, 90, 120, 110, 140, 100)]
    question = CriticalLoadQuestion(1e-7, **LIMITS)
    shown = guard(collect([*AROUND, *lossy]), question, 5.9e6, 5.85e6)
    assert shown.verdict is Verdict.CONTRADICTED
    assert shown.lost_frames >= 710
    assert str(shown).startswith("contradicted: ")
    # Other trials at the minimum load say that the critical load is at most that.
    at_min = guard(collect([*lossy, *lossy]), CriticalLoadQuestion(1e-7, 5.8e6, 1e7), 5.8e6, 5.8e6)
    assert at_min.verdict is Verdict.VERIFIED
    # A few trials may all have had a burst.
    assert guard(collect(lossy), question, 5.9e6, 5.8e6).verdict is Verdict.EXTRAPOLATED


@pytest.mark.whole
@pytest.mark.parametrize("every", [2.0, 20.0, 60.0])
def test_bursts_contradict_a_load_that_loses_the_target_in_no_more_than_one_of_a_hundred_results(every, how_many):
    rng, contradicted, number = np.random.default_rng(1), 0, how_many(300, 1000)
    for _ in range(number):
        stalls = [round(rng.exponential(1.8 * every, count).sum()) for count in rng.poisson(2.0 / every, 30)]
        trials = [trial(17.7e6, lost, duration=2.0) for lost in stalls]
        contradicted += guard(collect(trials), QUESTION, 17.8e6, 17.7e6).verdict is Verdict.CONTRADICTED
    assert contradicted <= number / 100


class TwoQueues(SutWithoutMemory):
    """Half of the frames go to each of two queues, of which one is slower by 1 %."""

    queues = SmoothKnee(9e6, 1e4), SmoothKnee(9.09e6, 1e4)

    def loss_ratio(self, load):
        return sum(queue.loss_rate(load / 2.0) for queue in self.queues) / load

    def truth(self, **_):
        return scipy.optimize.brentq(lambda load: self.loss_ratio(load) - 1e-7, 1.6e7, 1.8e7)

    def _lost_frames(self, traffic, rng):
        return int(rng.poisson(traffic.frames * self.loss_ratio(traffic.load)))


@pytest.mark.whole
def test_quiet_trials_far_below_do_not_hide_what_two_queues_lose_just_below_the_reported_load():
    sut, contradicted, unjust = TwoQueues(), 0, 0
    near = sut.truth() * 1.0003
    assert sut.loss_ratio(near) == pytest.approx(1.2e-7, rel=0.1)
    for seed in range(20):
        quiet = trials_of(sut, np.linspace(0.96, 0.985, 33) * near, seed=seed, duration=2.0)
        loads = [near] * 75
        shown = guard(collect([*quiet, *trials_of(sut, loads, seed=seed, duration=2.0)]), QUESTION, near * 1.001, near)
        contradicted += shown.verdict is Verdict.CONTRADICTED
        loads = [sut.truth()] * 75
        shown = guard(collect([*quiet, *trials_of(sut, loads, seed=seed, duration=2.0)]), QUESTION, near, sut.truth())
        unjust += shown.verdict is Verdict.CONTRADICTED
    assert contradicted >= 18
    assert unjust <= 1


def test_trials_between_bursts_are_not_chosen():
    quiet = [trial(5.9e6, 0, duration=10.0) for _ in range(4)]
    bursts = [trial(5.85e6, 60 * (number % 2), duration=10.0) for number in range(20)]
    shown = guard(collect([*quiet, *bursts]), CriticalLoadQuestion(1e-7, **LIMITS), 5.9e6, 5.8e6)
    assert shown.verdict is Verdict.EXTRAPOLATED
    assert shown.load_per_interface_fps == 5.85e6


def test_the_load_that_is_verified_is_the_highest_one_that_the_trials_show():
    def shown(lost, below=0):
        loads = [*[5.6e6] * 5, *[5.7e6] * 40, *[5.79e6] * 20]
        trials = [trial(load, lost * (load > 5.78e6) + below * (load < 5.65e6)) for load in loads]
        return guard(collect(trials), QUESTION, 5.8e6, 5.79e6)

    assert [shown(lost).load_per_interface_fps for lost in (0, 3)] == [5.79e6, 5.7e6]
    assert {shown(lost).verdict for lost in (0, 3)} == {Verdict.VERIFIED}
    assert shown(3).most_loss_ratio <= 1e-7 < bounds([5.79e6 * 5.0] * 20, [3] * 20).most
    # What is lost at lower loads speaks against those above, however quiet they were.
    assert shown(0, below=40).verdict is not Verdict.VERIFIED


def test_quiet_trials_of_a_device_that_loses_frames_in_batches_are_worth_as_much_less():
    counts = collect([trial(5.7e6, 0) for _ in range(12)])
    assert guard(counts, QUESTION, 5.7e6, 5.65e6).verdict is Verdict.VERIFIED
    shown = guard(counts, QUESTION, 5.7e6, 5.65e6, batch=32.0)
    assert shown.verdict is Verdict.EXTRAPOLATED
    assert shown.burst_frames == 32.0
    assert shown.most_loss_ratio == pytest.approx(32.0 * 3.689 / (12 * 5.0 * 5.7e6), rel=1e-2)


def test_long_trials_that_lose_more_refute_a_load_and_others_confirm_a_lower_one():
    short = [trial(load, 0, duration=2.0) for load in [18e6] * 12]

    def shown(*long):
        return guard(collect(short), QUESTION, 18.1e6, 18.05e6, collect(long))

    lossy = trial(18e6, 7_000_000, duration=20.0)
    quiet = [trial(17.1e6, 0, duration=20.0)] * 2
    assert shown().protocol_s is None
    assert shown(lossy, lossy).verdict is Verdict.CONTRADICTED
    assert shown(*quiet).load_per_interface_fps == 17.1e6
    settled = shown(lossy, *quiet)
    assert (settled.verdict, settled.load_per_interface_fps) == (Verdict.VERIFIED, 17.1e6)
    assert settled.protocol_s == 20.0
