import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, MLRsearch
from lossratio.plrsearch import LikelihoodName, PLRsearch, StopReason, Verdict
from lossratio.plrsearch.variation import described
from lossratio.simulation import PerformanceSpectrum, SharpKnee, SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

HEALTHY = SmoothKnee(mrr=18e6, spread=5e4)
CRITICAL_LOAD = 17_487_000.0
LIMITS = (1e4, 30e6)


def search(sut=HEALTHY, *, seed=1, **arguments):
    results = []
    controller = PLRsearch(1e-7, *LIMITS, **{"timeout": 45.0, "likelihood": "poisson", **arguments})
    search_result = run_search(controller, SimulatedMeasurer(sut, seed=seed, overhead=0.5), on_trial=results.append)
    return search_result, results


@pytest.mark.whole
def test_a_search_finds_the_critical_load_in_time():
    estimate, results = search()
    assert estimate.stopped_by is StopReason.TIMEOUT
    assert estimate.mean == pytest.approx(CRITICAL_LOAD, rel=0.01)
    assert sum(result.duration for result in results) <= 45.0
    assert all(LIMITS[0] <= result.load <= LIMITS[1] for result in results)
    assert len(estimate.counts) == len(results)


@pytest.mark.whole
def test_the_same_results_lead_to_the_same_trials():
    _, first = search(timeout=30.0)
    _, second = search(timeout=30.0)
    assert first == second


def test_asking_again_changes_nothing():
    controller = PLRsearch(1e-7, *LIMITS)
    assert controller.next_trial() == controller.next_trial()


@pytest.mark.whole
def test_the_last_trial_is_no_shorter_than_the_others():
    for timeout in (28.0, 29.3, 30.6):
        estimate, results = search(timeout=timeout, initial_duration=3.0)
        assert {result.duration for result in results} == {3.0}
        assert timeout - 3.5 < sum(result.elapsed for result in results) <= timeout + 0.5
        assert estimate.stopped_by is StopReason.TIMEOUT


@pytest.mark.whole
def test_a_time_too_short_for_one_trial_shortens_it():
    _, results = search(timeout=2.0)
    assert [result.duration for result in results] == [2.0]


@pytest.mark.whole
def test_an_interval_that_may_end_the_search_is_wider():
    with_precision, _ = search(precision=1e-6)
    without, _ = search()
    means, own_means = ([point.interval[0] for point in one.history] for one in (with_precision, without))
    assert means == own_means
    factor = 1.1 + 2.0 / len(with_precision.counts)
    (low, high), (own_low, own_high) = with_precision.interval(), without.interval()
    assert high - low == pytest.approx(factor * (own_high - own_low), rel=0.02)
    assert without.stopping_factor == 1.0
    last, own_last = with_precision.history[-1], without.history[-1]
    assert np.ptp(last.interval[1:]) == pytest.approx((1.1 + 2.0 / last.trials) * np.ptp(own_last.interval[1:]))


def test_a_slow_first_trial_does_not_keep_the_search_below_the_knee():
    class SlowAtFirst:
        """A sharp knee that is 5 % lower in the first trial."""

        def start(self, rng):
            """The first trial is the next one."""
            capacities = iter([0.95 * 18e6])
            return lambda traffic: round(traffic.frames * max(0.0, 1.0 - next(capacities, 18e6) / traffic.load))

    estimate, results = search(SlowAtFirst(), likelihood="varying", timeout=32.0)
    assert results[0].forwarding_rate == pytest.approx(0.95 * 18e6, rel=1e-3)
    assert max(result.load for result in results[1:]) > 17.9e6
    assert estimate.misfit.fits


@pytest.mark.whole
def test_enough_precision_ends_the_search():
    estimate, _ = search(precision=0.001, timeout=1800.0)
    low, high = estimate.interval(0.95)
    assert estimate.stopped_by is StopReason.PRECISION
    assert high - low <= 0.001 * estimate.mean
    assert sum(1 for _ in estimate.history) > 3


@pytest.mark.whole
def test_a_search_can_end_when_the_model_does_not_fit():
    sut = PerformanceSpectrum(capacity=18e6, jitter=0.004)
    estimate, _ = search(sut, stop_on_misfit=True, timeout=1800.0)
    assert estimate.stopped_by is StopReason.MISFIT
    assert "more than by chance" in estimate.misfit.reasons[0]


@pytest.mark.parametrize("capacity", [18e6, 18.123457e6])
def test_a_search_ends_soon_where_more_than_the_target_is_lost_at_the_minimum_load(capacity):
    limits = {"timeout": 300.0, "likelihood": "varying"}
    controller = PLRsearch(1e-7, 20e6, 30e6, **limits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = run_search(controller, SimulatedMeasurer(SmoothKnee(capacity, 1e3), seed=1, overhead=0.5))
        misfit = estimate.misfit
    assert estimate.stopped_by is StopReason.MIN_LOAD
    assert controller.trials < 15
    assert estimate.is_at_most_min_load
    assert "at most the minimum load, 20,000,000 frames/s, with probability 1." in estimate.limits
    assert misfit.fits
    assert estimate.guard.verdict is Verdict.VERIFIED
    assert estimate.verified is None


@pytest.mark.parametrize(("capacity", "limits"), [(1e6, (100.0, 1000.0)), (40e6, (1e4, 1e6))])
def test_a_target_beyond_the_trials_is_said_to_be_and_live_estimates_are_like_the_last_one(capacity, limits):
    controller = PLRsearch(1e-7, *limits, timeout=16.0)
    estimate = run_search(controller, SimulatedMeasurer(SharpKnee(capacity), seed=1))
    assert estimate.is_beyond_trials
    assert not estimate.is_at_least_max_load
    assert not estimate.is_at_most_min_load
    assert estimate.limits.startswith("The target loss ratio 1e-7 is beyond the trials: extrapolated: 0 of ")
    low, high = estimate.interval(0.95)
    latest = estimate.history[-1]
    assert latest.interval[1:] == (pytest.approx(low, rel=0.2), pytest.approx(high, rel=0.2))


def test_frames_without_loss_at_the_maximum_load_verify_that_it_is_no_limit():
    controller = PLRsearch(1e-5, 1e4, 1e6, timeout=22.0)
    estimate = run_search(controller, SimulatedMeasurer(SharpKnee(40e6), seed=1))
    assert estimate.guard.verdict is Verdict.VERIFIED
    assert estimate.is_at_least_max_load
    assert "at least the maximum load" in estimate.limits


@pytest.mark.whole
def test_trials_verify_a_load_just_below_the_estimate():
    loads = []
    controller = PLRsearch(1e-7, *LIMITS, timeout=900.0)
    measurer = SimulatedMeasurer(HEALTHY, seed=1, overhead=0.5)
    while (trial_input := controller.next_trial()) is not None:
        if controller.purpose.startswith("guard of"):
            loads.append(trial_input.load)
        controller.record(TrialResult(trial_input, measurer.measure(trial_input)))
    estimate = controller.result()
    assert 120 <= len(loads) < 0.6 * controller.trials
    assert all(0.98 * estimate.mean < load < 1.001 * estimate.mean for load in loads)
    assert loads.count(estimate.verified) >= 60
    assert estimate.guard.frames > 1e8


@pytest.mark.whole
def test_loss_that_is_the_same_in_each_trial_is_verified_below():
    controller = PLRsearch(1e-6, 10e3, 400e3, timeout=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run_search(controller, SimulatedMeasurer(SharpKnee(150e3), seed=1))
    assert found.misfit.fits
    assert found.interval(0.95)[0] <= 150e3 * 1.00001
    assert found.stated <= 150e3 * 1.00001


@pytest.mark.whole
def test_a_model_that_does_not_fit_is_never_precise_enough():
    estimate, _ = search(PerformanceSpectrum(capacity=18e6, jitter=0.004), precision=0.01, timeout=35.0)
    assert estimate.stopped_by is StopReason.TIMEOUT
    assert not estimate.misfit.fits


@pytest.mark.whole
def test_trials_of_others_are_evidence_and_results_can_be_had_at_any_time():
    controller = PLRsearch(1e-7, *LIMITS, likelihood="poisson")
    assert controller.result().stopped_by is None
    foreign = TrialResult(TrialInput(5.0, 18.5e6), TrialOutput(0.027, sent_frames=92_500_000, lost_frames=2_500_000))
    controller.record(foreign)
    assert controller.elapsed == 0.0
    controller.next_trial()
    controller.record(foreign)
    assert controller.elapsed == 5.0
    assert len(controller.result().counts) == 2


@pytest.mark.whole
def test_a_journal_continues_a_search():
    _, whole = search(timeout=50.0)
    controller = PLRsearch(1e-7, *LIMITS, timeout=50.0, likelihood="poisson")
    for result in whole[:5]:
        controller.next_trial()
        controller.record(result)
    assert controller.next_trial() == whole[5].input


@pytest.mark.whole
def test_a_search_can_begin_where_another_one_ended():
    goals = MLRsearch([NDR], *LIMITS)
    bounds = run_search(goals, SimulatedMeasurer(HEALTHY, seed=2))
    expected = {bounds[NDR].relevant_upper_bound, bounds[NDR].relevant_lower_bound}
    _, results = search(warm_start=expected, timeout=30.0)
    assert {result.load for result in results[:2]} == expected
    _, results = search(warm_start=[17e6, 99e6], timeout=30.0)
    assert [result.load for result in results[:2]] == [30e6, 17e6]


@pytest.mark.parametrize(
    "arguments",
    [
        {"timeout": 0.0},
        {"timeout": float("nan")},
        {"precision": 0.0},
        {"precision": 2.0},
        {"likelihood": "normal"},
        {"weighting": "none"},
        {"selection": "random"},
        {"initial_duration": 0.0},
        {"warm_start": [0.0]},
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_refused(arguments):
    with pytest.raises(SearchError):
        PLRsearch(1e-7, *LIMITS, **arguments)


@pytest.mark.whole
def test_the_example_of_the_methodology_page_finds_the_critical_load():
    page = Path(__file__).parents[3] / "docs" / "methodology" / "plrsearch.md"
    (example,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)  # noqa: S102
    assert names["low"] < CRITICAL_LOAD < names["high"]
    assert names["soak"].likelihood is LikelihoodName.VARYING


@pytest.mark.whole
def test_no_trial_waits_for_an_estimate_that_was_computed_while_the_last_one_ran(monkeypatch):
    computed = []
    monkeypatch.setattr(
        "lossratio.plrsearch.controller.described",
        lambda counts, *more, **options: computed.append(len(counts)) or described(counts, *more, **options),
    )
    measurer = SimulatedMeasurer(HEALTHY, seed=1, overhead=0.5)
    controller, alone = (PLRsearch(1e-7, *LIMITS, timeout=60.0) for _ in range(2))
    for _ in range(15):
        before = len(computed)
        trial_input = controller.next_trial()
        assert len(computed) == before
        controller.meanwhile()
        result = TrialResult(trial_input, measurer.measure(trial_input))
        assert alone.next_trial() == trial_input
        for search_of_them in (controller, alone):
            search_of_them.record(result)
    assert max(computed) >= 13
    assert controller.history == alone.history
