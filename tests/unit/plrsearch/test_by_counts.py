"""The search by counts finds loads of devices with a known truth, and says how they lose frames."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize
from soak_trials import trial as trial_of

from lossratio.errors import SearchError
from lossratio.plrsearch import (
    CountedLoad,
    LikelihoodName,
    LimitReached,
    SearchByCounts,
    StopReason,
    Verdict,
    load_by_counts,
)
from lossratio.plrsearch.losses import FixedPause
from lossratio.simulation import ConstantLoss, Policer, SharpKnee, SimulatedMeasurer, SmoothKnee
from lossratio.simulation.sut import Overload
from lossratio.trials import Journal, TrialInput, TrialOutput, TrialResult, run_search

TARGET = 1e-7
LIMITS = (1e4, 30e6)


def searched(sut, seconds=300.0, seed=1, **options):
    """The result, the search and its trials, of a search of a simulated device."""
    trials = []
    search = SearchByCounts(TARGET, *LIMITS, timeout=seconds, **options)
    found = run_search(search, SimulatedMeasurer(sut, seed=seed, overhead=0.5), on_trial=trials.append)
    return found, search, trials


def truth(knee):
    """The load at which a knee loses the target."""
    return optimize.brentq(lambda load: knee.loss_rate(load) / load / TARGET - 1.0, 9e6, 18e6)


@dataclass(frozen=True)
class Pausing:
    """A sharp knee that stops reading now and then, and loses what its ring does not hold."""

    every_s: float
    length_s: float
    ring: float
    scale_at: float = np.inf
    """From this time in seconds on, the device is faster by a tenth."""

    def start(self, rng):
        def lost(traffic):
            capacity = 18e6 if traffic.start >= self.scale_at else 18e6 / 1.1
            pauses = rng.poisson(traffic.duration / self.every_s) if self.length_s else 0
            over = max(0.0, traffic.load - capacity) * traffic.duration
            return int(over + pauses * max(0.0, traffic.load * self.length_s - self.ring))

        return lost


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("spread", "function"), [(5e4, "stretch"), (2e5, "erf"), (500.0, "stretch")])
def test_a_constant_device_is_verified_within_a_hundredth(spread, function, seed):
    knee = SmoothKnee(18e6, spread, function)
    found, _, _ = searched(knee, 120.0, seed)
    assert 0.99 <= found.verified / truth(knee) <= 1.0
    assert found.contradicted > truth(knee)
    assert found.is_regular


def test_a_line_below_the_stated_load_makes_a_result_irregular_unless_counts_or_pauses_explain_it():
    found, _, _ = searched(SmoothKnee(18e6, 5e4), 60.0)
    low = replace(found, line=0.9 * found.stated, contradicted=1.02 * found.stated)
    assert replace(low, line=found.stated).is_regular
    assert low.reason.startswith(
        f"a line through trials with little loss puts the critical load at {low.line / 1e6:.5g}"
    )
    assert replace(low, contradicted=1.005 * found.stated).is_regular
    assert replace(low, pause=FixedPause(1e-3, 15e3, is_single=True)).is_regular


def test_most_of_the_traffic_is_at_the_stated_load():
    found, _, trials = searched(SmoothKnee(18e6, 5e4))
    near = sum(trial.duration for trial in trials if abs(trial.load / found.stated - 1.0) < 0.01)
    assert near >= 0.7 * sum(trial.duration for trial in trials)


def test_a_precise_result_waits_for_a_long_trial():
    search = SearchByCounts(TARGET, *LIMITS, timeout=1800.0, precision=0.005)
    for load, lost in ((18e6, 0), (18.05e6, 3000)):
        for _ in range(20):
            search.record(trial_of(load, lost, duration=2.0))
    found = search.result()
    assert (found.verified, found.contradicted) == (18e6, 18.05e6)
    assert (search.next_trial().duration, search.next_trial().load) == (20.0, 18e6)
    search.record(trial_of(18e6, 0, duration=20.0))
    assert search.next_trial() is None
    assert search.result().stopped_by is StopReason.PRECISION


@pytest.mark.whole
def test_a_search_whose_trials_are_as_long_as_long_ones_goes_on_from_the_load_that_it_holds():
    knee = SmoothKnee(18e6, 4e5)
    found, _, trials = searched(knee, 3600.0, duration=30.0)
    assert {trial.duration for trial in trials} == {30.0}
    assert 0.99 <= found.verified / truth(knee) <= 1.0
    precise, search, _ = searched(SmoothKnee(18e6, 2e4), 3600.0, duration=30.0, precision=0.01)
    assert precise.stopped_by is StopReason.PRECISION
    assert search.elapsed < 1800.0


@pytest.mark.whole
def test_a_long_trial_that_only_is_missing_comes_before_the_end():
    found, search, _ = searched(SmoothKnee(18e6, 5e4), 1800.0, 2, precision=0.005)
    assert found.stopped_by is StopReason.PRECISION
    assert search.elapsed < 180.0


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("spread", [2e4, 5e4])
def test_a_precision_of_half_a_per_cent_ends_a_search_of_a_constant_device_in_two_minutes(spread, seed):
    found, search, _ = searched(SmoothKnee(18e6, spread), 1800.0, seed, precision=0.005)
    assert found.stopped_by is StopReason.PRECISION
    assert found.long_s is not None
    assert search.elapsed < 120.0
    assert found.verified <= truth(SmoothKnee(18e6, spread)) <= found.contradicted <= 1.005 * found.verified


def test_a_device_without_loss_is_verified_at_the_maximum_load():
    found, _, _ = searched(ConstantLoss(0.0), 60.0)
    assert found.verified == LIMITS[1]
    assert found.contradicted is None
    assert found.limit is LimitReached.AT_LEAST
    assert found.changes == ()


def test_a_device_that_always_loses_ends_the_search_at_the_minimum_load():
    found, search, _ = searched(ConstantLoss(0.5))
    assert found.stopped_by is StopReason.MIN_LOAD
    assert (found.stated, found.verified) == (LIMITS[0], None)
    assert found.reason.startswith("even the minimum load loses more than the target")
    assert search.elapsed < 150.0


def test_what_overload_forwards_is_no_ceiling():
    found, _, _ = searched(SharpKnee(18e6, Overload(drop_cost=0.9)))
    assert 0.99 <= found.verified / 18e6 <= 1.0


def test_a_bucket_is_told_with_its_size_and_the_rate_in_the_long_run():
    found, _, _ = searched(Policer(18e6, burst=900e3))
    assert found.bucket.frames == pytest.approx(900e3, rel=0.05)
    assert found.bucket.long_run == pytest.approx(18e6, rel=1e-3)
    assert 0.99 <= found.stated / 18e6 <= 1.0
    assert any(said.startswith("in short trials, about 900,000 frames more pass") for said in found.sentences)


@pytest.mark.parametrize("every_s", [1.0, 7.0])
def test_pauses_and_their_ring_are_told_within_a_twentieth(every_s):
    found, _, _ = searched(Pausing(every_s, 400e-6, 4096.0, scale_at=0.0))
    assert 0.9 <= found.stated / (4096.0 / 400e-6) <= 1.001
    if found.single_pause is not None:
        assert found.pause.length_s == pytest.approx(400e-6, rel=0.05)
        assert found.pause.ring_frames == pytest.approx(4096.0, rel=0.05)
        assert any("overflow a ring of about" in said for said in found.sentences)


def test_rare_pauses_are_known_by_a_line():
    found, _, _ = searched(Pausing(7.0, 400e-6, 4096.0, scale_at=0.0))
    assert found.single_pause is not None


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_pauses_that_come_every_20_s_leave_a_verified_load_after_ten_minutes(seed):
    found, _, _ = searched(Pausing(20.0, 1e-3, 15e3, scale_at=0.0), 600.0, seed)
    assert found.verified is not None
    assert 0.9 <= found.stated / 15.03e6 <= 1.0


def test_pauses_are_no_overload_if_the_target_is_large():
    search = SearchByCounts(1e-3, 500.0, 60e3, timeout=120.0)
    found = run_search(search, SimulatedMeasurer(Pausing(4.0, 34e-3, 700.0, scale_at=0.0), seed=1, overhead=0.5))
    assert found.changes == ()
    assert found.pause.length_s == pytest.approx(34e-3, rel=0.05)
    assert found.verified == pytest.approx(700.0 / 34e-3, rel=0.05)


def test_equal_losses_of_long_trials_are_no_bucket_far_below_what_an_overload_forwards():
    @dataclass(frozen=True)
    class Stalling:
        def start(self, rng):
            def lost(traffic):
                over = max(0.0, traffic.load - 18e6) * traffic.duration
                return int(over + 200 * (traffic.load > 10e6) + 2000 * (traffic.duration > 10.0))

            return lost

    found, _, trials = searched(Stalling())
    assert sum(trial.duration > 10.0 for trial in trials) >= 2
    assert found.bucket is None
    assert found.stated < 11e6


@pytest.mark.parametrize("begun_s", [15.0, 100.0])
def test_a_device_that_becomes_faster_is_searched_anew(begun_s):
    found, _, _ = searched(Pausing(np.inf, 0.0, 0.0, scale_at=begun_s))
    assert 0.99 <= found.stated / 18e6 <= 1.0 + 1e-6
    assert found.is_regular


def test_a_change_is_said_with_its_size():
    found, _, _ = searched(Pausing(np.inf, 0.0, 0.0, scale_at=100.0))
    assert found.changes == (pytest.approx(0.1, rel=0.02),)
    assert any("at the same overload, it forwarded 10 % more" in said for said in found.sentences)


@pytest.mark.parametrize("begun_s", [30.0, 42.0])
def test_little_time_after_a_change_does_not_lead_to_the_smallest_load(begun_s):
    class Slower:
        def start(self, rng):
            def lost(traffic):
                over = (traffic.load - (18e6 if traffic.start < begun_s else 16e6)) / 5e4
                return rng.poisson(traffic.duration * 5e4 * np.logaddexp(0.0, over))

            return lost

    found, _, _ = searched(Slower(), 60.0)
    assert found.changes == (pytest.approx(-0.11, rel=0.02),)
    assert 0.85 <= found.stated / 16e6 <= 0.97


def test_a_trial_that_the_generator_could_not_send_only_takes_time():
    search = SearchByCounts(TARGET, *LIMITS)
    asked = search.next_trial()
    unsent = TrialOutput(0.0, sent_frames=100, lost_frames=0, unsent_frames=900)
    search.record(TrialResult(asked, unsent))
    assert search.elapsed == asked.duration
    assert search.next_trial() == asked


def test_the_same_trials_are_asked_for_again():
    _, _, trials = searched(SmoothKnee(18e6, 5e4), 60.0)
    again = SearchByCounts(TARGET, *LIMITS, timeout=60.0)
    for trial in trials:
        assert again.next_trial() == trial.input
        assert again.purpose is not None
        again.record(trial)
    assert again.next_trial() is None
    assert isinstance(again.result(), CountedLoad)


def test_warm_loads_come_first_from_the_highest():
    search = SearchByCounts(TARGET, *LIMITS, warm_start=(17e6, 18e6))
    for load in (18e6, 17e6):
        asked = search.next_trial()
        assert asked == TrialInput(2.0, load)
        search.record(TrialResult(asked, TrialOutput(0.0, sent_frames=round(2 * load), lost_frames=0)))


def test_a_resumed_search_goes_on_and_ends_as_if_nothing_had_been(tmp_path):
    whole, _, trials = searched(SmoothKnee(18e6, 5e4), 60.0)
    search = SearchByCounts(TARGET, *LIMITS, timeout=60.0)
    path = tmp_path / "trials.jsonl"
    with Journal.open(path, {}) as journal:
        for trial in trials[:9]:
            journal.append(trial)
    rest = iter(trials[9:])

    class Again:
        """Measures what was measured then."""

        def measure(self, asked):
            again = next(rest)
            assert again.input == asked
            return again.output

    with Journal.open(path, {}) as journal:
        assert run_search(search, Again(), journal=journal) == whole


def test_a_generator_with_a_coarse_step_is_asked_for_its_multiples_only():
    found, _, trials = searched(SmoothKnee(18e6, 5e4), 90.0, load_step=7001.0)
    assert all(trial.load % 7001.0 == pytest.approx(0.0, abs=1e-6) for trial in trials)
    assert found.verified % 7001.0 == pytest.approx(0.0, abs=1e-6)


def test_a_time_too_short_for_one_trial_shortens_it():
    _, _, trials = searched(SmoothKnee(18e6, 5e4), 1.5)
    assert [trial.duration for trial in trials] == [1.5]


def test_a_load_that_only_lacks_frames_is_regular_and_says_how_many():
    trials = []
    search = SearchByCounts(1e-7, 100.0, 1e6, timeout=90.0)
    found = run_search(search, SimulatedMeasurer(SharpKnee(150e3), seed=1), on_trial=trials.append)
    assert found.verified is None
    assert found.statement.verdict is Verdict.EXTRAPOLATED
    assert found.is_regular
    assert 0.99 <= found.stated / 150e3 <= 1.0
    assert "would verify it" in str(found.statement)


def test_counts_of_any_trials_say_the_same_in_any_order():
    _, _, trials = searched(SmoothKnee(18e6, 5e4), 60.0)
    limits = {"target_loss_ratio": TARGET, "min_load": LIMITS[0], "max_load": LIMITS[1]}
    found, mixed = load_by_counts(trials, **limits), load_by_counts(trials[::-1], **limits)
    assert (found.verified, found.contradicted) == (mixed.verified, mixed.contradicted)
    assert found.model is None


@pytest.mark.whole
def test_plrsearchs_own_estimate_comes_with_it_if_it_is_asked_for():
    limits = {"target_loss_ratio": TARGET, "min_load": LIMITS[0], "max_load": LIMITS[1]}
    _, _, trials = searched(SmoothKnee(18e6, 5e4), 60.0)
    model = load_by_counts(trials, **limits, likelihood=LikelihoodName.POISSON).model
    assert model.mean == pytest.approx(truth(SmoothKnee(18e6, 5e4)), rel=5e-3)


def test_trials_that_do_not_count_are_no_evidence():
    unsent = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0, sent_frames=10, lost_frames=0, unsent_frames=90))
    with pytest.raises(SearchError, match="No trial says anything"):
        load_by_counts([unsent], target_loss_ratio=TARGET, min_load=1.0, max_load=1e3)


def test_the_example_of_the_methodology_page_verifies_a_load():
    page = Path(__file__).parents[3] / "docs" / "methodology" / "plrsearch.md"
    (example,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102
    assert names["soak"].verified < truth(SmoothKnee(18e6, 5e4)) < names["soak"].contradicted


@pytest.mark.parametrize("wrong", [{"timeout": 0.0}, {"precision": 1.0}, {"duration": -1.0}])
def test_senseless_values_are_refused(wrong):
    with pytest.raises(SearchError):
        SearchByCounts(TARGET, *LIMITS, **wrong)


@pytest.mark.parametrize("seed", [1, 6, 8])
def test_frames_that_wait_for_a_full_batch_are_known_to_be_lost_once(seed):
    @dataclass(frozen=True)
    class Waiting:
        def start(self, rng):
            return lambda traffic: int(max(0.0, traffic.load - 18e6) * traffic.duration + rng.integers(5, 32))

    found, _, _ = searched(Waiting(), 120.0, seed)
    assert 31.0 <= found.once <= 60.0
    assert 0.95 <= found.stated / 18e6 <= 1.001
    assert not found.is_regular
    assert "frames once, however long it is; they do not count" in found.reason
