"""An upper bound that bursts after stalls may have made is measured again, as long as that may tell."""

import pytest
from report_examples import counted_trial, stalled_trial, throughput_of

from lossratio.measurements.throughput.limits import UNSENT_LIMIT
from lossratio.mlrsearch import NDR, PDR, RFC2544, MLRsearch
from lossratio.mlrsearch.bursts import needs_more_trials, trials_left

CAPACITY = 100_000.0


def searched(stalls, is_stalled):
    """The rules of a search's trials, and its upper bound; `is_stalled` says which trials above the capacity stall."""
    search = MLRsearch([NDR], 90_000.0, 120_000.0)
    rules = []
    above = 0
    while (trial := search.next_trial()) is not None:
        lost = max(0, round(trial.load - CAPACITY))
        if lost:
            above += 1
        if lost and is_stalled(above):
            result = stalled_trial(trial.load, lost=lost, stall=stalls)
        else:
            result = counted_trial(trial.load, lost=lost)
        search.record(result)
        rules.append(search.last_purpose.rule)
    return rules, search.result()[NDR].relevant_upper_bound


@pytest.mark.whole
@pytest.mark.parametrize(
    ("stall", "is_stalled", "more"),
    [
        pytest.param(0.0, lambda above: True, (0, 0), id="no stall"),
        pytest.param(0.006, lambda above: above % 4 == 0, (1, 10), id="a few bursts explain the loss"),
        pytest.param(0.006, lambda above: above % 4, (23, 33), id="the fourth trials, without stalls, decide alone"),
        pytest.param(0.006, lambda above: above % 7, (60, 73), id="few have no stalls, until enough was measured"),
        pytest.param(0.006, lambda above: above % 20, (1, 20), id="too few have no stalls, so that more cannot tell"),
        pytest.param(0.02, lambda above: True, (1, 6), id="all trials are explained, so that more cannot tell"),
    ],
)
def test_a_bound_is_measured_again_if_more_trials_can_prove_it_without_bursts(stall, is_stalled, more):
    rules, upper = searched(stall, is_stalled)
    least, most = more
    assert least <= rules.count("bursts") <= most
    plain, same = searched(0.0, lambda above: True)
    assert upper == same
    assert len(rules) - rules.count("bursts") == len(plain)


def searched_with_unsent(goal, is_unsent):
    """The rules of a search's trials, and all trials; `is_unsent` says which trials above the capacity lack frames."""
    search = MLRsearch([goal], 90_000.0, 120_000.0)
    rules, trials = [], []
    above = 0
    while (trial := search.next_trial()) is not None:
        missing = 3 * max(0, round((trial.load - CAPACITY) * trial.duration))
        above += bool(missing)
        causes = {"unsent": missing} if missing and is_unsent(above) else {"lost": missing}
        trials.append(counted_trial(trial.load, duration=trial.duration, **causes))
        search.record(trials[-1])
        rules.append(search.last_purpose.rule)
    return rules, trials


@pytest.mark.parametrize("goal", [NDR, PDR, RFC2544], ids=str)
@pytest.mark.parametrize(
    ("is_unsent", "most", "is_of_sut"),
    [
        pytest.param(lambda above: False, 0, True, id="all frames are sent"),
        pytest.param(lambda above: above % 3 == 0, 7, True, id="each third trial lacks frames, but the SUT fails"),
        pytest.param(lambda above: True, 1, False, id="the generator cannot send the load"),
    ],
)
def test_an_upper_bound_that_unsent_frames_may_have_made_is_measured_on(goal, is_unsent, most, is_of_sut):
    rules, trials = searched_with_unsent(goal, is_unsent)
    assert rules.count("bursts") <= most
    (report,) = throughput_of(trials, (goal,)).goals
    assert CAPACITY <= report.result.relevant_upper_bound.per_interface_fps <= 1.01 * CAPACITY
    assert report.result.reason == (None if is_of_sut else UNSENT_LIMIT)


def test_unsent_frames_take_no_more_trials_than_the_duration_sum():
    trials = [counted_trial(CAPACITY, lost=100)] * 8 + [counted_trial(CAPACITY, unsent=100)] * 3
    assert needs_more_trials(NDR, trials)
    assert trials_left(NDR, trials) == (3, 10)


@pytest.mark.whole
@pytest.mark.parametrize("period", [4, 7])
def test_the_time_left_knows_the_trials_that_test_a_bound_for_bursts(period):
    """All trials but each fourth or seventh stall, so that many more are needed."""
    forecasts = []
    search = MLRsearch([NDR], 90_000.0, 120_000.0)
    above = 0
    while (trial := search.next_trial()) is not None:
        if search.purpose.rule == "bursts":
            forecasts.append((search.elapsed, search.forecast()))
        lost = max(0, round(trial.load - CAPACITY))
        above += bool(lost)
        if lost and above % period:
            search.record(stalled_trial(trial.load, lost=lost, stall=0.006))
        else:
            search.record(counted_trial(trial.load, lost=lost))

    assert len(forecasts) > 20
    left = [search.elapsed - elapsed for elapsed, _ in forecasts]
    assert all(shown.low <= seconds <= shown.high for seconds, (_, shown) in zip(left, forecasts, strict=True))
    for seconds, (_, shown) in zip(left, forecasts, strict=True):
        assert shown.seconds == pytest.approx(seconds, rel=0.5, abs=10.0)
    shown = [forecast.seconds for _, forecast in forecasts]
    assert shown[-1] < shown[len(shown) // 2] < shown[0]


def forecasts_of(is_stalled, more_lost=lambda above: 0):
    """The time left and its forecast before each trial, with the trial's rule."""
    search = MLRsearch([NDR], 90_000.0, 120_000.0)
    shown, above = [], 0
    while (trial := search.next_trial()) is not None:
        shown.append((search.purpose.rule, search.elapsed, search.forecast()))
        lost = max(0, round(trial.load - CAPACITY))
        if lost:
            above += 1
            lost += more_lost(above)
        if lost and is_stalled(above):
            search.record(stalled_trial(trial.load, lost=lost, stall=0.006))
        else:
            search.record(counted_trial(trial.load, lost=lost))
    return [(rule, search.elapsed - elapsed, forecast) for rule, elapsed, forecast in shown]


@pytest.mark.whole
def test_the_time_left_foresees_trials_for_bursts_during_the_proof():
    """Two of three trials stall: when the proof ends, the time left does not jump."""
    shown = forecasts_of(lambda above: above % 3)
    first = next(number for number, (rule, _, _) in enumerate(shown) if rule == "bursts")
    assert len(shown) - first > 10
    left = [forecast.seconds for _, _, forecast in shown]
    assert left[first] < left[first - 1] + 2.0
    for _, really, forecast in shown[first // 2 : first]:
        assert forecast.seconds == pytest.approx(really, rel=0.35)


def test_the_time_left_knows_that_larger_losses_than_those_of_bursts_decide():
    """Nearly all trials stall, but most lose more than the bursts can have cost, so few more trials are needed."""
    shown = forecasts_of(lambda above: above % 7, lambda above: 2000 if above % 4 else 0)
    bursts = [(really, forecast) for rule, really, forecast in shown if rule == "bursts"]
    assert len(bursts) > 1
    assert all(forecast.seconds <= 2.0 * really + 2.0 for really, forecast in bursts)


def test_without_stalls_no_trials_for_bursts_are_foreseen(monkeypatch):
    plain = [forecast for _, _, forecast in forecasts_of(lambda above: False)]
    monkeypatch.setattr("lossratio.mlrsearch.forecast.trials_foreseen", lambda goal, at_upper, proof: 0)
    assert [forecast for _, _, forecast in forecasts_of(lambda above: False)] == plain


@pytest.mark.whole
def test_trials_that_look_for_the_cause_do_not_turn_a_bound():
    """Most trials stall, and of those that follow the proof, most lose nothing."""
    search = MLRsearch([NDR, PDR], 90_000.0, 120_000.0)
    made = {}
    while (trial := search.next_trial()) is not None:
        number = made[trial.load] = made.get(trial.load, 0) + 1
        lost = max(0, round(trial.load - CAPACITY))
        hidden = number > 11 and number % 6 and lost < 600
        if number % 6:
            result = stalled_trial(trial.load, lost=0 if hidden else lost, stall=0.006)
        else:
            result = counted_trial(trial.load, lost=lost)
        search.record(result)
    assert search.result()[NDR].relevant_lower_bound <= CAPACITY <= search.result()[NDR].relevant_upper_bound
