"""The load that is stated first: verified without a model, lower where losses are rare, and in long trials, too."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from soak_trials import counts_of, estimated, trial, trials_of

from lossratio.plrsearch import LocalFit, PLRsearch, Verdict
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.variation import described
from lossratio.plrsearch.variation.pauses import Allowed
from lossratio.plrsearch.verifying import Verifying
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import run_search

CAPACITY = 18e6
KNEE = SmoothKnee(CAPACITY, 2e4)


@dataclass(frozen=True)
class Software:
    """A knee that loses frames in batches, pauses that overflow a ring, bit errors, and a cold start."""

    batch: int = 1
    every: float = 0.0
    length: float = 0.0
    ring: float = 0.0
    errors: float = 0.0
    cold: int = 0

    def start(self, rng):
        number = 0

        def lost_frames(traffic):
            nonlocal number
            number += 1
            scale = 0.95 if number <= self.cold else 1.0
            mean = scale * KNEE.loss_rate(traffic.load / scale) * traffic.duration
            lost = self.batch * rng.poisson(mean / self.batch) + rng.poisson(self.errors * traffic.frames)
            if self.every:
                pauses = rng.poisson(traffic.duration / self.every)
                lost += pauses * max(0.0, self.length * traffic.load - self.ring)
            return int(min(lost, traffic.frames))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


@dataclass(frozen=True)
class Bucket:
    """A policer whose bucket holds so many seconds of its rate, and fills while nothing is sent."""

    seconds: float

    def start(self, rng):
        tokens, before = self.seconds, 0.0

        def lost_frames(traffic):
            nonlocal tokens, before
            tokens = min(self.seconds, tokens + traffic.start - before)
            before = traffic.start + traffic.duration
            lost = max(0.0, (traffic.load - CAPACITY) * traffic.duration - tokens * CAPACITY)
            tokens = max(0.0, tokens - (traffic.load / CAPACITY - 1.0) * traffic.duration)
            return round(lost)

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


class Elephant:
    """Four queues, of which one gets 30 % more frames than each of the others: below overload it loses for long."""

    def start(self, rng):
        shares = np.array([1.3, 1.0, 1.0, 1.0]) / 4.3
        knee = SmoothKnee(CAPACITY / 4.0, 1e3)

        def lost_frames(traffic):
            mean = sum(knee.loss_rate(share * traffic.load) for share in shares) * traffic.duration
            return int(min(rng.poisson(mean), traffic.frames))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


def searched(sut, seconds=300.0, seed=1):
    loads = []
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=seconds)
    measurer = SimulatedMeasurer(sut, seed=seed, overhead=0.5)
    found = run_search(controller, measurer, on_trial=lambda result: loads.append(result))
    return found, loads


HEALTHY = 17813478.5
"""The critical load of `KNEE`."""


@pytest.mark.parametrize("seed", [1, 2])
def test_five_minutes_of_a_healthy_device_are_regular_and_say_what_they_are_worth(seed):
    found, _ = searched(KNEE, seed=seed)
    assert found.is_regular
    assert 0.99 * HEALTHY < found.verified <= HEALTHY
    assert found.stated == found.verified
    assert found.guard.verdict is Verdict.VERIFIED
    assert found.guard.protocol_s == 20.0
    assert 60.0 < found.rarest_s < 300.0 / 3.0
    assert not found.sentences


def test_a_minute_finds_where_the_loss_of_one_queue_begins():
    found, _ = searched(Elephant(), seconds=60.0)
    critical = 14_863_000.0
    assert found.is_regular
    assert 0.9 * critical < found.stated <= critical


@pytest.mark.rotated
@pytest.mark.parametrize(
    ("sut", "truth", "seconds"),
    [
        (Software(batch=32), HEALTHY, 300.0),
        (Software(batch=256), HEALTHY, 1500.0),
        (Software(errors=0.3e-7), 17806337.0, 300.0),
        (Software(every=5.0, length=250e-6, ring=4096.0), 16.4168e6, 300.0),
        (Software(every=1.0, length=80e-6, ring=1024.0), 12.816e6, 300.0),
        (Software(cold=8), HEALTHY, 300.0),
    ],
    ids=["batches of 32", "batches of 256", "bit errors", "pauses", "short pauses", "cold"],
)
def test_a_load_is_verified_at_nine_tenths_of_the_truth_or_more_and_not_above(sut, truth, seconds):
    found, _ = searched(sut, seconds)
    assert found.is_regular
    assert 0.9 * truth <= found.verified <= truth


def with_rare_losses(quiet):
    """The estimate of quiet trials of 5 s at these loads, of some that lose thousands of frames, and of overload."""
    lost = (0, 4001, 0, 0, 0, 0)
    trials = [trial(load, 0) for load in quiet]
    trials += [trial(load, one) for load in (9e6, 9.1e6) for one in lost]
    trials += [trial(11e6, 1_000_000 + more) for more in (1, 305, -202, 104)]
    return estimated(trials, likelihood="varying")


def test_quiet_trials_that_verify_no_load_are_not_regular_where_some_lose_thousands_of_frames():
    found = with_rare_losses(np.linspace(8.65e6, 8.9e6, 12))
    assert found.verified is None
    assert found.guard.lost_frames == 0
    assert not found.is_regular
    assert "would verify it" not in found.doubt


def test_rare_losses_that_were_seen_may_come_more_often():
    found = with_rare_losses([8.9e6] * 12)
    assert found.verified == 8.9e6
    # 22 quiet trials, and two others: 6.296 losses or more are expected where more than two are almost sure.
    assert found.rarest_s == pytest.approx(22 * 5.0 / 6.296, rel=1e-3)


def test_a_load_that_cannot_be_verified_is_left_and_not_tried_for_ever():
    _, trials = searched(Software(every=5.0, length=250e-6, ring=4096.0), seconds=600.0)
    loads, times = np.unique([result.load for result in trials if result.output.lost_frames], return_counts=True)
    assert times[(loads > 16.5e6) & (loads < CAPACITY)].max() < 0.1 * len(trials)


def test_what_a_bucket_lets_through_in_short_trials_is_not_stated():
    found, trials = searched(Bucket(0.05))
    assert found.verified <= CAPACITY
    assert found.verified >= 0.9 * CAPACITY
    assert found.guard.protocol_s == 20.0
    assert sum(result.duration == 20.0 for result in trials) >= 2
    shorter, _ = searched(Bucket(0.05), seconds=120.0)
    assert shorter.guard.protocol_s == 10.0
    assert 0.9 * CAPACITY <= shorter.verified <= CAPACITY * 1.0051
    # In a minute there is no time for long trials: then it is not said that they agree.
    short, trials = searched(Bucket(0.01), seconds=60.0)
    assert {result.duration for result in trials} == {1.0, 2.0}
    assert short.guard.protocol_s is None
    # A shorter trial in overload shows what the bucket lets through.
    assert 0.9 * CAPACITY < short.verified <= CAPACITY
    assert any("as with a bucket or a buffer of 10 ms" in sentence for sentence in short.sentences)


@pytest.mark.parametrize("seconds", [60.0, 300.0])
def test_the_interval_contains_what_a_bucket_passes_in_the_long_run_and_the_estimate_is_no_higher(seconds):
    found, _ = searched(Bucket(0.05), seconds=seconds)
    low, high = found.interval(0.95)
    assert low <= CAPACITY * (1.0 + 1e-7) <= high < 1.01 * CAPACITY
    assert max(found.median, found.stated) <= CAPACITY


@dataclass(frozen=True)
class BatchesBehindBucket:
    """A knee that loses batches of 32, behind a bucket of 10 ms that is full when a trial begins."""

    def start(self, rng):
        def lost_frames(traffic):
            mean = SmoothKnee(CAPACITY, 1e4).loss_rate(traffic.load) * traffic.duration
            return 32 * rng.poisson(max(0.0, mean - 0.01 * CAPACITY) / 32.0)

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


def test_what_batches_lose_below_the_rate_of_a_bucket_is_not_verified_by_trials_that_the_bucket_hides():
    found, _ = searched(BatchesBehindBucket())
    # In the long run, this knee loses the target from .995 of its capacity on.
    assert 0.9 * CAPACITY < found.stated < 0.99 * CAPACITY


def test_loads_are_verified_below_the_long_run_as_soon_as_a_bucket_is_known():
    _, trials = searched(Bucket(0.05))
    first = next(number for number, result in enumerate(trials) if result.load > 1.5 * CAPACITY and number)
    loads, times = np.unique([result.load for result in trials[first + 3 :]], return_counts=True)
    verified = loads[(times >= 10) & (loads < 1.03 * CAPACITY)]
    assert 0.95 * CAPACITY < verified.max() <= CAPACITY


@dataclass(frozen=True)
class SlowPolicer:
    """A policer of 50,000 frames/s whose bucket holds 1,000 frames, and is full when a trial begins."""

    def start(self, rng):
        return lambda traffic: max(0, traffic.frames - int(50e3 * traffic.duration) - 1000)

    def truth(self, **_):
        """Not asked for here."""


def test_a_slow_policer_is_not_verified_above_its_rate_before_its_bucket_is_known():
    slow = SlowPolicer()
    controller = PLRsearch(1e-6, 10.0, 200e3, timeout=300.0)
    trials = []
    found = run_search(controller, SimulatedMeasurer(slow, seed=1, overhead=0.5), on_trial=trials.append)
    assert 0.99 * 50e3 < found.verified <= 50e3
    assert found.is_regular
    loads, times = np.unique([result.load for result in trials if not result.output.lost_frames], return_counts=True)
    assert times[loads > 50e3].max() < 5


@dataclass(frozen=True)
class Pausing:
    """It pauses five times a second, and loses frames above two thirds of its capacity."""

    def start(self, rng):
        return lambda traffic: int(
            traffic.duration * (KNEE.loss_rate(traffic.load) + 5.0 * max(0.0, 3e-5 * traffic.load - 360.0))
        )

    def truth(self, **_):
        """Not asked for here."""


def test_a_wide_range_is_halved_before_a_load_is_verified_even_if_time_is_short():
    found, _ = searched(Pausing(), seconds=60.0)
    # It would be verified at .65 of this load otherwise.
    assert 0.9 * 12e6 < found.stated <= 12.01e6


def test_a_cold_start_is_certain_within_a_minute():
    found, _ = searched(Software(cold=8), seconds=60.0)
    assert found.description.change.trials >= 8
    assert found.description.change.earliest < 19.0
    assert 0.9 * CAPACITY < found.stated <= CAPACITY


@dataclass(frozen=True)
class SmallPolicer:
    """A policer of 2,000 frames/s whose bucket holds 40 frames, and is full when a trial begins."""

    def start(self, rng):
        return lambda traffic: max(0, traffic.frames - int(2000.0 * traffic.duration) - 40)

    def truth(self, **_):
        """Not asked for here."""


def test_where_frames_are_too_few_to_verify_a_load_the_long_trials_bound_what_is_stated():
    controller = PLRsearch(1e-7, 40.0, 4e3, timeout=300.0)
    trials = []
    found = run_search(controller, SimulatedMeasurer(SmallPolicer(), seed=1, overhead=0.5), on_trial=trials.append)
    assert found.verified is None
    assert 1998.0 <= found.stated <= 2002.0
    long = [result for result in trials if result.duration == 20.0]
    # In 20 s, it lets 2,002 frames/s through, and in 2 s 2,020.
    assert 2015.0 < long[0].load < 2025.0
    assert [result.input.keeps_unsent for result in trials] == [result.duration == 20.0 for result in trials]
    assert all(1998.0 < result.load < 2002.0 and not result.output.lost_frames for result in long[1:])


def test_rare_losses_are_said_and_the_estimate_is_between_the_loads_that_show_them():
    knee = trials_of(SmoothKnee(6e6, 2e4), np.repeat(np.linspace(5.85e6, 6.02e6, 8), 5))
    quiet = [trial(load, 0) for load in [5.4e6] * 12 + [5.6e6] * 6]
    rare = [trial(5.6e6, 1000), trial(5.6e6, 1500)]
    found = estimated([*knee, *quiet, *rare], likelihood="varying")
    assert found.verified == 5.4e6
    assert found.interval(0.95) == pytest.approx((5.4e6, 5.6e6))
    assert "a trial of 5 s at 5.6000 Mfps lost about 1,000 frames more than one with at least as much load" in str(
        [*found.sentences, found.doubt]
    )
    assert estimated([*knee, *quiet], likelihood="varying").interval(0.95)[0] > 5.75e6


def test_without_enough_trials_no_load_is_verified_and_the_result_says_so():
    found, _ = searched(KNEE, seconds=20.0)
    assert found.verified is None
    assert found.stated <= found.interval(0.95)[0] < found.median
    assert found.doubt.startswith("no load is verified; extrapolated: ")
    assert not found.is_regular


def test_a_load_with_one_long_trial_without_loss_is_not_below_all_loads():
    # Since it became slower, each trial of usual length has lost frames.
    trials = [trial(9.5e6, lost, duration=2.0) for lost in (40, 20, 25, 31, 28, 33)]
    trials.append(trial(11e6, 2_000_300, duration=2.0))
    quiet = trial(9.4e6, 0, duration=20.0)
    found = estimated([*trials, quiet], likelihood="varying")
    assert 0.95 * 9.4e6 <= found.stated <= 9.4e6


def test_a_long_trial_without_loss_shows_less_where_frames_are_lost_in_batches():
    rows = [(load, 2.0, lost) for load in (9.9e6, 9.95e6, 10e6) for lost in (0, 100, 300, 200, 0, 400)]
    quiet = (9.9e6, 20.0, 0)
    question = CriticalLoadQuestion(1e-7, 1e4, 1e8)
    known = described(counts_of([*rows, quiet]), question, LikelihoodName.VARYING)
    assert known.batch >= 100.0
    once = [(load, seconds / known.batch, lost / known.batch) for load, seconds, lost in (*rows, quiet)]
    assert known.local.log_target_load == pytest.approx(LocalFit.of(counts_of(once), question).log_target_load)


def test_a_load_that_no_trials_verify_is_a_step_lower_where_frames_are_lost_in_batches():
    rng = np.random.default_rng(4)
    loads = np.repeat([9.8e6, 9.9e6, 9.95e6, 10e6, 11e6], 6)
    mean = 2.0 * 10e6 * np.maximum(loads / 10e6 - 0.99, 0.0) ** 2
    lost = 100 * rng.poisson(mean / 100)
    found = estimated(
        [trial(load, int(one), duration=2.0) for load, one in zip(loads, lost, strict=True)], likelihood="varying"
    )
    assert found.description.batch == 100.0
    assert found.verified is None
    assert found.stated == pytest.approx(0.95 * 9.9e6)


def test_where_the_capacity_varies_the_load_to_verify_is_eight_deviations_lower():
    rng = np.random.default_rng(2)
    loads = np.repeat([9.7e6, 9.8e6, 9.9e6, 10e6, 10.5e6], 12)
    lost = 2.0 * np.maximum(loads - 1e7 * (1.0 + 0.003 * rng.standard_normal(60)), 0.0)
    question = CriticalLoadQuestion(1e-7, 1e4, 1e8)
    counts = counts_of([(load, 2.0, float(round(one))) for load, one in zip(loads, lost, strict=True)])
    known = described(counts, question, LikelihoodName.VARYING, for_selection=True)
    verifying = Verifying(question)
    for load, seconds, one in zip(counts.load, counts.exposure, counts.lost, strict=True):
        verifying.record(load, load * seconds, one, is_long=False)
    low = float(known.best.rough_quantiles([0.025])[0])
    deviation = known.best.mode.deviation / known.best.mode.mrr
    assert deviation == pytest.approx(0.003, rel=0.3)
    assert verifying.wanted(known, 60.0) <= (1.0 - 8.0 * deviation) * low


QUESTION = CriticalLoadQuestion(1e-7, 1e4, 1e8)


def known_with(quiet, *, most, change=None):
    """What is known: no frames are lost up to a load, and pauses seem to allow far less, but at most another load."""
    local = LocalFit.between(quiet, quiet, 1.01e7, QUESTION)
    known = SimpleNamespace(
        change=change,
        local=local,
        reported=(local,),
        batch=1.0,
        in_long_run=QUESTION.max_load,
        most_without_pauses=QUESTION.max_load,
        most=most,
        once=None,
    )
    known.pauses, known.pauses_allow = "some", Allowed(7e6, 6e6, most)
    return known


def loads_to_verify(estimates, lossy, verifying=None):
    """The load of each trial at a SUT that loses frames above a load.

    If no load is to be verified, the trial is at the highest load without loss by the estimate at that time.
    """
    verifying = verifying or Verifying(QUESTION)
    loads = []
    for quiet in estimates:
        load = verifying.wanted(known_with(quiet, most=lossy), 40.0) or quiet
        loads.append(load)
        verifying.record(load, 2.0 * load, 900.0 if load > lossy else 0.0, is_long=False)
    return loads


def test_after_a_load_that_fails_the_search_returns_to_the_verified_one_whatever_pauses_would_allow():
    """The frames show this load; the pauses are a model."""
    loads = loads_to_verify([9.9e6] * 30 + [1e7] * 30, lossy=9.95e6)
    assert max(loads) > 9.95e6
    assert min(loads) > 0.999 * 9.9e6


def test_after_a_verified_load_that_loses_frames_later_the_search_returns_to_a_lower_verified_one():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45 + [1e7] * 30, lossy=1.1e7, verifying=verifying)
    verified = verifying.load
    assert verified > 9.95e6
    for _ in range(8):
        verifying.record(verified, 2.0 * verified, 900.0, is_long=False)
    assert verifying.wanted(known_with(1e7, most=1.1e7), 40.0) == pytest.approx(9.9e6, rel=1e-3)


def test_after_a_long_trial_with_losses_loads_just_below_are_not_enough():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45 + [1e7] * 30, lossy=1.1e7, verifying=verifying)
    known = known_with(1e7, most=1.1e7)
    load = verifying.load
    # The second of these long trials is at the load that passed in the first one.
    for _ in range(2):
        verifying.record(load, 20.0 * load, 9000.0, is_long=True)
        load = verifying.sustained(known, 40.0)
    assert load < 0.96 * 1e7


@pytest.mark.parametrize(("share", "next_load"), [(0.02, 0.95), (0.1, 0.9), (0.6, 0.75)])
def test_after_a_load_that_fails_the_next_one_is_what_passed_there_but_at_most_a_quarter_lower(share, next_load):
    verifying = Verifying(QUESTION)
    known = known_with(1e7, most=1.1e7)
    known.pauses = None
    loads_to_verify([1e7] * 36, lossy=1.1e7, verifying=verifying)
    load = verifying.load
    verifying.record(load, 2.0 * load, 0.5 * share * 2.0 * load, is_long=False)
    verifying.record(load, 2.0 * load, share * 2.0 * load, is_long=False)
    assert verifying.wanted(known, 40.0) == pytest.approx(next_load * load, rel=2e-3)


def test_a_long_trial_that_loses_a_few_frames_is_not_followed_by_one_just_below():
    """Only a bucket or a buffer passes its rate in the long run, and nearly all frames passed here."""
    verifying = Verifying(QUESTION)
    loads_to_verify([1e7] * 45, lossy=1.1e7, verifying=verifying)
    load = verifying.load
    verifying.record(load, 20.0 * load, 9000.0, is_long=True)
    assert verifying.sustained(known_with(1e7, most=1.1e7), 40.0) < 0.96 * load


def in_overload_and_long(*long):
    """What is known of trials of 2 s in overload, and of trials of 20 s: their loads, and shares of lost frames."""
    rows = [(1.2e7, 2.0, 4e6)] * 3 + [(9e6, 2.0, 0.0)] * 12
    rows += [(load, 20.0, share * 20.0 * load) for load, share in long]
    return described(counts_of(rows), QUESTION, LikelihoodName.VARYING)


def test_long_trials_without_loss_disprove_a_lower_rate_in_the_long_run():
    limited = in_overload_and_long((9.9e6, 0.1)).in_long_run
    assert limited < 9.1e6
    assert in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0)).in_long_run == limited
    assert in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0), (9.5e6, 0.0)).in_long_run == 9.5e6
    # Both of them may have been lucky.
    lower = in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0), (9.5e6, 0.0), (9.4e6, 0.01))
    assert lower.in_long_run == limited


def test_a_change_that_later_trials_disprove_does_not_cost_the_load_that_was_verified():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45, lossy=1.1e7, verifying=verifying)
    verified = verifying.load
    changed = SimpleNamespace(trials=40, is_later=lambda trials: trials < 40)
    verifying.wanted(known_with(8e6, most=1.1e7, change=changed), 40.0)
    assert verifying.load is None
    verifying.wanted(known_with(8e6, most=1.1e7), 40.0)
    assert verifying.load == verified


def test_while_there_is_time_the_search_goes_halfway_up_to_a_load_that_failed():
    loads = loads_to_verify([1e7] * 40 + [7.5e6] * 100, lossy=9.2e6)
    # First, 7.5 Mfps is verified. Pauses allow 9.2 Mfps at most.
    higher = [load for load in loads[40:] if load > 7.6e6]
    assert sorted(set(higher)) == pytest.approx([8.75e6, 9.2e6], rel=1e-4)
    assert higher == sorted(higher)


@pytest.mark.long
def test_a_load_that_loses_nearly_the_target_is_left_while_there_is_time_for_a_lower_one():
    """Each trial of a slow device has so few frames that its loss is known only after many trials."""
    knee = SmoothKnee(6e3, 100.0)
    verified = []
    for seed in range(4):
        controller = PLRsearch(1e-3, 1.0, 9.6e3, timeout=300.0)
        found = run_search(controller, SimulatedMeasurer(knee, seed=seed, overhead=0.5))
        verified.append(found.verified)
    assert sum(load is not None for load in verified) >= 3


def begun(trials):
    """A search after so many trials far below."""
    verifying = Verifying(QUESTION)
    for _ in range(trials):
        verifying.record(5e6, 1e7, 0.0, is_long=False)
    return verifying


def next_loads(verifying, known, *, trials, lost=None):
    """The loads of so many trials. Their lost frames are given by number; the others lose nothing."""
    loads = []
    for number in range(trials):
        load = verifying.wanted(known, float(trials - number)) or known.local.quiet
        loads.append(load)
        verifying.record(load, 2.0 * load, (lost or {}).get(number, 0.0), is_long=False)
    return loads


@pytest.mark.parametrize(("before", "left", "is_left"), [(40, 60, True), (260, 440, False)])
def test_one_rare_loss_is_enough_to_leave_a_load_only_if_time_is_short(before, left, is_left):
    """It is as much as the target allows in ten trials."""
    loads = next_loads(begun(before), known_with(1e7, most=1.1e7), trials=left, lost={3: 21.0})
    assert (min(loads[:30]) < 0.96 * 1e7) == is_left


def test_a_higher_load_is_tried_after_a_twelfth_of_all_trials_at_the_verified_one():
    verifying = Verifying(QUESTION)
    estimates = [9.9e6] * 60 + [1e7] * 60
    loads = loads_to_verify(estimates, lossy=1.1e7, verifying=verifying)
    first = next(number for number, load in enumerate(loads) if load > 9.95e6 and number > 60)
    assert sum(load < 9.95e6 for load in loads[:first]) >= 120 / 12


def test_a_verified_load_is_raised_toward_the_lowest_load_that_lost_frames():
    known = known_with(9e6, most=1.1e7)
    known.local = replace(known.local, lossy=1e7)
    loads = next_loads(begun(40), known, trials=60)
    # At least ten trials verify each of them.
    assert sorted({load for load in loads if load > 9.1e6}) == pytest.approx([9.5e6, 9.75e6, 9.875e6], rel=1e-3)
    # A higher load that lost nothing disagrees.
    known.local = replace(known.local, above=1.1e7)
    assert max(next_loads(begun(40), known, trials=60)) <= 9e6


@pytest.mark.parametrize(("above", "is_left"), [(3.0, False), (6.0, True)])
def test_a_load_is_not_left_if_trials_at_higher_loads_lost_less(above, is_left):
    """Then losses do not fall with the load. Here, the load alone lost 1.25 targets."""
    verifying = begun(40)
    known = known_with(1e7, most=1.1e7)
    load = verifying.wanted(known, 60.0)
    for number in range(20):
        verifying.record(1.05 * load, 2.1 * load, above * (number % 2), is_long=False)
    for number in range(10):
        verifying.record(load, 2.0 * load, 5.0 * (number % 2), is_long=False)
    verifying.wanted(known, 20.0)
    assert (verifying.load < load) == is_left
