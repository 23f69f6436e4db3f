from __future__ import annotations

import statistics

import pytest
from mlrsearch_suts import drive, knee, noisy

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, MLRsearch
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import TrialOutput
from lossratio_study.families import FAMILIES
from lossratio_study.search import GOAL_SETS
from lossratio_study.suts import Overhead

MIN, MAX = 9001.0, 14_880_952.0


@pytest.mark.whole
@pytest.mark.parametrize("goals", [[NDR, PDR], [RFC2544], [TST009]], ids=["CSIT", "RFC 2544", "TST009"])
def test_the_time_of_a_quiet_search_is_within_the_forecast_before_it(goals):
    controller = MLRsearch(goals, MIN, MAX)
    before = controller.forecast()
    drive(controller, knee(1e6))
    assert before.low <= before.seconds <= before.high
    assert 0.9 * before.low <= controller.elapsed <= before.high


@pytest.mark.whole
def test_most_searches_take_as_long_as_the_forecast_says():
    inside = []
    for seed in range(5):
        controller, sut = MLRsearch([NDR, PDR], MIN, MAX), noisy(1e6, 0.005, seed)
        forecasts = []
        while (trial := controller.next_trial()) is not None:
            forecasts.append((controller.elapsed, controller.forecast()))
            controller.record(TrialResult(trial, TrialOutput(min(1.0, max(0.0, sut(trial.load, trial.duration))))))
        inside += [forecast.low <= controller.elapsed - elapsed <= forecast.high for elapsed, forecast in forecasts]
    assert statistics.fmean(inside) > 0.7


def test_a_finished_search_takes_no_more_time():
    controller = MLRsearch([NDR], MIN, MAX)
    drive(controller, knee(1e6))
    assert controller.forecast().high == 0.0


@pytest.mark.whole
def test_asking_for_a_forecast_changes_no_trial():
    asked, unasked = MLRsearch([NDR, PDR], MIN, MAX), MLRsearch([NDR, PDR], MIN, MAX)
    sut, same = noisy(1e6, 0.01, 3), noisy(1e6, 0.01, 3)
    while (trial := asked.next_trial()) is not None:
        asked.forecast()
        asked.record(TrialResult(trial, TrialOutput(min(1.0, max(0.0, sut(trial.load, trial.duration))))))
    drive(unasked, same)
    assert asked.evidence == unasked.evidence


def test_the_overhead_of_trials_makes_the_time_left_longer():
    quick, slow = MLRsearch([NDR], MIN, MAX), MLRsearch([NDR], MIN, MAX)
    for controller, overhead in ((quick, 0.0), (slow, 0.5)):
        trial = controller.next_trial()
        controller.record(TrialResult(trial, TrialOutput(0.9, elapsed=trial.duration + overhead)))
    assert slow.forecast().seconds == pytest.approx(1.5 * quick.forecast().seconds)


def test_no_forecast_reaches_beyond_the_timeout():
    controller = MLRsearch([TST009], MIN, MAX, timeout=100.0)
    assert controller.forecast().high == 100.0


def test_a_warm_up_is_in_the_forecast():
    plain, warm = MLRsearch([NDR], MIN, MAX), MLRsearch([NDR], MIN, MAX, warm_up_duration=30.0)
    assert warm.forecast().seconds == plain.forecast().seconds + 30.0


@pytest.mark.whole
@pytest.mark.parametrize("early_verdict", [False, True])
@pytest.mark.parametrize("goals", ["G1", "G2", "G3", "G4", "G5"])
def test_the_band_holds_in_most_searches_at_any_time(goals, early_verdict):
    held = {share: [] for share in (0.0, 0.25, 0.5, 0.75)}
    for family in [*FAMILIES.values()][early_verdict::2]:
        subject = family.subject(12)
        controller = MLRsearch(
            GOAL_SETS[goals].goals, subject.min_load, subject.max_load, fail_fast=False, early_verdict=early_verdict
        )
        measurer = subject.measurer(Overhead(0.0))
        forecasts = []
        while (trial := controller.next_trial()) is not None:
            forecasts.append((controller.elapsed, controller.forecast()))
            controller.record(TrialResult(trial, measurer.measure(trial)))
        for share, inside in held.items():
            elapsed, forecast = [entry for entry in forecasts if entry[0] <= share * controller.elapsed][-1]
            inside.append(0.999 * forecast.low <= controller.elapsed - elapsed <= 1.001 * forecast.high)
    assert min(statistics.fmean(inside) for inside in held.values()) >= 0.6
