"""Trials that say little or too much, or contradict each other: each has a defined answer, in finite numbers."""

from dataclasses import replace

import numpy as np
import pytest
from soak_trials import estimated, loads_around, trial, trials_at, trials_of

from lossratio.errors import SearchError
from lossratio.plrsearch import LikelihoodName, why_set_aside
from lossratio.plrsearch.model.counts import collect
from lossratio.plrsearch.model.critical_loads import CriticalLoadQuestion
from lossratio.plrsearch.quadrature import posteriors
from lossratio.simulation import BackgroundLoss, SharpKnee
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

any_likelihood = pytest.mark.parametrize("likelihood", [likelihood.value for likelihood in LikelihoodName])
LOADS = np.linspace(1e6, 1e7, 8)


def is_finite(estimate):
    numbers = [
        estimate.mean,
        estimate.stdev,
        *estimate.interval(0.95),
        estimate.combined.p_at_min,
        estimate.combined.p_at_max,
    ]
    numbers += [function.log_evidence for function in estimate.description.posteriors]
    numbers += [function.mean for function in estimate.functions.values()]
    numbers += [value for function in estimate.functions.values() for value in function.loss_ratio([1e4, 1e6, 1e7])]
    return bool(np.isfinite(numbers).all()) and 0.0 < estimate.mean <= 1e7


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "varying"])
def test_no_trials_say_what_the_prior_says(likelihood):
    estimate = estimated([], likelihood=likelihood)
    assert is_finite(estimate)
    assert estimate.mean == pytest.approx(4.65e6 if likelihood == "poisson" else 5e6, rel=0.01)
    assert estimate.misfit.fits


@pytest.mark.whole
@pytest.mark.filterwarnings("error")
def test_limits_far_apart_and_no_trials_are_no_reason_for_a_warning():
    low, high = estimated([], target=1e-12, min_load=7e4, max_load=4e9).interval(0.95)
    assert 7e4 <= low < high <= 4e9


@pytest.mark.whole
@any_likelihood
def test_one_trial_says_little(likelihood):
    estimate = estimated([trial(5e6, 100)], likelihood=likelihood)
    assert is_finite(estimate)
    assert estimate.interval(0.95)[1] < 5.000001e6
    assert estimate.stdev > 1e5


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "varying"])
def test_no_loss_anywhere_says_at_least_the_maximum_load(likelihood):
    estimate = estimated([trial(1e7, 0) for _ in range(30)], likelihood=likelihood)
    assert is_finite(estimate)
    assert estimate.is_at_least_max_load
    assert "at least the maximum load" in estimate.limits


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "varying"])
def test_total_loss_everywhere_says_at_most_the_minimum_load(likelihood):
    estimate = estimated(trials_at(LOADS, lambda load: 5.0 * load), likelihood=likelihood)
    assert is_finite(estimate)
    assert estimate.is_at_most_min_load
    assert "at most the minimum load" in estimate.limits


@pytest.mark.whole
@any_likelihood
def test_a_maximum_load_far_below_the_capacity_says_at_least(likelihood):
    estimate = estimated(trials_of(SharpKnee(1e9), [1e7] * 20), likelihood=likelihood)
    assert estimate.is_at_least_max_load
    assert not estimate.is_at_most_min_load


@pytest.mark.whole
@any_likelihood
def test_a_minimum_load_above_the_critical_load_says_at_most(likelihood):
    results = trials_of(SharpKnee(5e5), np.linspace(1e6, 2e6, 20))
    estimate = estimated(results, likelihood=likelihood, min_load=1e6)
    assert is_finite(estimate)
    assert estimate.is_at_most_min_load


@pytest.mark.whole
@any_likelihood
def test_ten_billion_frames_in_a_trial_keep_their_digits(likelihood):
    results = [
        trial(8e6, 0, sent=10**10),
        trial(9e6, 1, sent=10**10),
        trial(9.1e6, 10**7, sent=10**10),
        trial(9.2e6, 2 * 10**8, sent=10**10),
    ]
    estimate = estimated(results, likelihood=likelihood)
    assert is_finite(estimate)
    assert 7e6 < estimate.mean < 9.2e6


@pytest.mark.whole
@pytest.mark.parametrize("target", [1e-12, 0.5])
@pytest.mark.parametrize("likelihood", ["poisson", "varying"])
def test_extreme_targets_have_answers(target, likelihood):
    results = trials_of(SharpKnee(3e6), np.linspace(2.9e6, 9e6, 12))
    estimate = estimated(results, target=target, likelihood=likelihood)
    assert is_finite(estimate)
    # A line, or two of twelve loads, know less than a function does.
    rough = 0.1 if likelihood == "varying" else 0.02
    assert estimate.mean == pytest.approx(3e6 if target < 0.1 else 6e6, rel=rough)


@pytest.mark.parametrize("target", [0.0, 1.0, -1e-7, 1.5, float("inf")])
def test_targets_beyond_0_and_1_are_refused(target):
    with pytest.raises(SearchError, match="target loss ratio"):
        estimated([], target=target)


@pytest.mark.parametrize("limits", [(0.0, 1e7), (1e7, 1e4), (1e4, float("inf"))])
def test_limits_that_make_no_sense_are_refused(limits):
    with pytest.raises(SearchError, match="minimum"):
        estimated([], min_load=limits[0], max_load=limits[1])


@pytest.mark.parametrize(
    ("name", "asked"),
    [("target_loss_ratio", {"target": float("nan")}), ("min_load", {"min_load": float("nan"), "max_load": 1e7})],
)
def test_what_is_no_number_is_refused_by_its_name(name, asked):
    with pytest.raises(SearchError, match=f"{name} must be a number, not nan"):
        estimated([], **asked)


def test_trials_of_which_none_is_evidence_are_refused_with_a_reason():
    with pytest.raises(
        SearchError, match=r"could not send 300,000 of 25,000,000 frames, more than 1 % at 5000000 frames"
    ):
        estimated([trial(5e6, 0, sent=24_700_000, unsent=300_000)])


@pytest.mark.whole
def test_a_trial_whose_generator_faltered_changes_no_estimate():
    results = trials_of(SharpKnee(3e6), np.linspace(2.9e6, 9e6, 12))
    much_unsent = trial(2.9e6, 0, sent=14_000_000, unsent=500_000)
    counters = DirectionCounters("a>b", 14_500_000, 14_500_000, 14_400_000, lateness_s=0.0051)
    stalled = replace(trial(2.9e6, 100_000, sent=14_500_000).output, directions=(counters,))
    with_both = estimated([much_unsent, *results, TrialResult(TrialInput(5.0, 2.9e6), stalled)])
    assert with_both.mean == estimated(results).mean


def test_unsent_frames_are_no_loss_and_only_shrink_the_exposure():
    counts = collect([trial(5e6, 0, sent=24_800_000, unsent=200_000)])
    assert counts.lost[0] == 0
    assert counts.exposure[0] == pytest.approx(24_800_000 / 5e6)


@pytest.mark.parametrize(
    ("load", "duration", "stall", "is_set_aside"),
    [
        (1e6, 0.2, 0.0019, False),
        (1e6, 0.2, 0.0021, True),
        (1e6, 5.0, 0.0049, False),
        (1e6, 5.0, 0.0051, True),
        (2e3, 0.2, 0.0021, True),
        (100.0, 0.2, 0.0099, False),
        (100.0, 0.2, 0.0101, True),
    ],
)
def test_a_stall_is_too_long_beyond_a_thousandth_of_the_trial_two_milliseconds_and_a_frame(
    load, duration, stall, is_set_aside
):
    counters = DirectionCounters("a>b", 1000, 1000, 1000, lateness_s=stall)
    output = TrialOutput(0.0, sent_frames=1000, lost_frames=0, directions=(counters,))
    assert (why_set_aside(TrialResult(TrialInput(duration, load), output)) is not None) is is_set_aside


@pytest.mark.whole
@any_likelihood
def test_background_loss_above_the_target_is_no_good_fit(likelihood):
    results = trials_of(BackgroundLoss(8e6, 1e-3), loads_around(8e6, 60, below=0.5, above=0.2))
    estimate = estimated(results, likelihood=likelihood)
    assert is_finite(estimate)
    assert not estimate.is_regular


@pytest.mark.whole
@any_likelihood
def test_two_capacities_are_no_good_fit(likelihood):
    results = [
        trial(load, max(0, round(5.0 * (load - (8.0e6 if number % 2 else 8.4e6)))))
        for number, load in enumerate(loads_around(8.8e6, 80))
    ]
    estimate = estimated(results, likelihood=likelihood)
    assert is_finite(estimate)
    assert not estimate.is_regular


@pytest.mark.whole
def test_five_thousand_trials_at_few_loads_cost_no_more_than_few():
    results = trials_of(SharpKnee(8e6), np.linspace(7.9e6, 8.1e6, 10).tolist() * 500)
    estimate = estimated(results)
    assert is_finite(estimate)
    assert len(estimate.functions["erf"].mass) < 40_000


@pytest.mark.whole
def test_probabilities_beyond_0_and_1_are_refused():
    with pytest.raises(SearchError, match="probability"):
        estimated(trials_of(SharpKnee(8e6), np.linspace(7.9e6, 8.1e6, 20))).interval(1.0)


@pytest.mark.whole
def test_the_highest_of_several_maxima_in_a_row_is_found():
    """The losses of a queue that drops early contradict each other. The numbers are sums over a fine grid."""
    few = [(17825280, lost) for lost in (1, 2, 3, 4, 7)]
    few += [(17825941, 6), (17825948, 4), (17826644, 5)]
    quiet = [(7283825, 0), (17456449, 0), *[(17812224, 0)] * 6]
    results = [
        trial(float(load), lost, duration=2.0)
        for load, lost in (*quiet, *few, (18219008, 455247), (28800000, 43032350))
    ]
    question = CriticalLoadQuestion(1e-7, 1800.0, 28.8e6)
    stretch, erf = posteriors(collect(results), question, LikelihoodName.GEOMETRIC)
    assert stretch.log_evidence == pytest.approx(-65.6794847, abs=1e-6)
    assert erf.log_evidence == pytest.approx(-65.4959285, abs=1e-6)
    assert stretch.mean == pytest.approx(17825630, abs=20)


def test_steady_losses_beside_trials_without_any_have_a_rough_posterior():
    """Far from where it loses, rounding once gave a trial without loss a negative curvature, and the row no mass."""
    lost = [1166567, 947560, 1137318, 1045044, 1100583, 1107426, 1221711, 1059196, 1373967, 1187287]
    results = [
        trial(18391267.5, 0, duration=2.0),
        trial(18441346.0, 1175675, duration=2.0),
        *(trial(18545095.5, frames, duration=2.0) for frames in lost),
        *(trial(17825792.0, 0, duration=2.0) for _ in range(4)),
    ]
    question = CriticalLoadQuestion(1e-7, 1e4, 30e6)
    estimates = posteriors(collect(results), question, LikelihoodName.VARYING, for_selection=True)
    assert all(17e6 < item.mean < 18.5e6 for item in estimates)
