"""FD.io CSIT's own search. The numbers were measured with CSIT's code (`resources/libraries/python/PLRsearch`, version
26.02), whose Monte Carlo was given a number of samples (its `max_samples`) instead of a time."""

import math

import pytest
from soak_trials import trial

from lossratio.errors import SearchError
from lossratio.plrsearch import CsitSearch, SearchByCounts, StopReason, csit_estimates
from lossratio.plrsearch.csit import CsitIntegration, _log_erf, _log_stretch
from lossratio.plrsearch.options import CriticalLoadQuestion
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

FUNCTIONS = [
    # load, mrr, spread, logarithm of the loss rate by CSIT's stretch and erf function
    (17.4e6, 18e6, 5e4, -1.1802247876856473, -135.31884480915983),
    (18.2e6, 18e6, 5e4, 12.210599864173028, 12.206072649045305),
    (18e6, 18e6, 5e4, 10.453265363828619, 9.900839751205611),
    (1e4, 18e6, 2e6, 0.2127177021037756, -71.00046607930513),
    (9e6, 18e6, 1.2e7, 14.615488904159648, 13.905736796172599),
    (17.9e6, 18e6, 3.0, -33332.23472104467, -1111111111.330758),
    (2e7, 18e6, 1e4, 14.508657738524219, 14.508657738524219),
]

LIMITS = 1e-3, 10.0, 2e4
QUESTION = CriticalLoadQuestion(*LIMITS)
SAMPLES = 40
SEARCH = [
    # CSIT's search of 90 s: load, sent and lost frames of each trial
    (10005.0, 51026, 45933),
    (20000.0, 104000, 98626),
    (1034.4960344960336, 5483, 198),
    (998.1368460036797, 5390, 6),
    (173.98079918845286, 957, 0),
    (649.3335556128206, 3637, 0),
    (813.4233621955142, 4637, 0),
    (996.8784097604799, 5782, 7),
    (944.511757489035, 5573, 0),
    (952.598706597247, 5716, 0),
    (960.6203739490846, 5860, 0),
    (977.1099504797445, 6059, 0),
    (994.6122385721566, 6267, 2),
    (995.8283811287098, 6374, 4),
    (996.4611008427347, 6477, 5),
]
DIGITS = 2e-5
"""Relative error that a long chain of samples may have: the last bits of linear algebra differ between processors."""
MEAN, STDEV, STRETCH, ERF = 989.9722170748546, 3.4880864241553127, 989.1708057622039, 990.7619777334988


@pytest.mark.parametrize(("load", "mrr", "spread", "stretch", "erf"), FUNCTIONS)
def test_fitting_functions_are_those_of_csit(load, mrr, spread, stretch, erf):
    assert _log_stretch(load, mrr, spread) == pytest.approx(stretch, rel=1e-14)
    assert _log_erf(load, mrr, spread) == pytest.approx(erf, rel=1e-14)


@pytest.mark.whole
def test_a_whole_search_has_the_loads_and_the_estimate_of_csits():
    search = CsitSearch(*LIMITS, timeout=90.0, samples=SAMPLES)
    loads = []
    for number, (_, sent, lost) in enumerate(SEARCH):
        loads.append(search.next_trial().load)
        search.record(trial(loads[-1], lost, sent=sent, duration=5.1 + 0.1 * number))
    assert loads == pytest.approx([load for load, _, _ in SEARCH], rel=1e-6)
    last = search.estimate
    # CSIT leaves out the last trial.
    assert last.trials == len(SEARCH) - 1
    assert (
        last.mean_per_interface_fps,
        last.stdev_per_interface_fps,
        last.stretch_mean_per_interface_fps,
        last.erf_mean_per_interface_fps,
    ) == pytest.approx((MEAN, STDEV, STRETCH, ERF), rel=DIGITS)


@pytest.mark.whole
def test_estimates_of_a_list_of_trials_are_those_of_the_search():
    trials = [trial(load, lost, sent=sent) for load, sent, lost in SEARCH]
    limits = {"min_load": QUESTION.min_load, "max_load": QUESTION.max_load}
    *_, last, whole = csit_estimates(trials, target_loss_ratio=1e-3, samples=SAMPLES, **limits)
    assert (last.mean_per_interface_fps, last.stdev_per_interface_fps) == pytest.approx((MEAN, STDEV), rel=DIGITS)
    assert whole.trials == len(SEARCH)
    assert whole.mean_per_interface_fps == pytest.approx(MEAN, abs=3.0 * STDEV)


@pytest.mark.whole
def test_the_monte_carlo_agrees_with_the_integral_of_its_own_posterior():
    question = CriticalLoadQuestion(1e-3, 10.0, 2e4)
    # Without trials the posterior is the prior, of which a sum over both parameters is easy.
    integration = CsitIntegration(question, 2000)
    steps = [(index + 0.5) / 60.0 for index in range(60)]
    logs = []
    for share in steps:
        mrr = 0.5 * question.max_load * (1.0 / share - 1.0) + 1.0
        for power in steps:
            logs.append(math.log(_critical(question, mrr, mrr**power)))
    mean = sum(logs) / len(logs)
    assert math.log(integration.estimate().stretch_mean_per_interface_fps) == pytest.approx(mean, abs=0.15)


def _critical(question, mrr, spread):
    low, high = question.min_load, question.max_load
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = math.exp(_log_stretch(middle, mrr, spread)) / middle > question.target_loss_ratio
        low, high = (low, middle) if above else (middle, high)
    return middle


def test_a_frame_that_was_not_sent_counts_as_lost():
    search = CsitSearch(*LIMITS, timeout=90.0, samples=2)
    for _ in range(2):
        search.record(trial(1e4, 0, sent=1000))
    search.record(trial(1e4, 10, sent=990, unsent=10))
    assert search.next_trial().load == pytest.approx(1e4 * 0.98 / 0.999)


@pytest.mark.whole
def test_a_search_has_csits_durations_and_its_last_trial_ends_after_the_time():
    results = []
    controller = CsitSearch(*LIMITS, timeout=6.0)
    estimate = run_search(
        controller, SimulatedMeasurer(SmoothKnee(1e3, 3.0), seed=1, overhead=0.5), on_trial=results.append
    )
    assert [result.duration for result in results] == pytest.approx([5.1, 5.2])
    assert estimate.stopped_by is StopReason.TIMEOUT
    assert estimate.csit.trials == 1
    assert estimate.csit.samples == 1000
    assert controller.trials == 2


def test_the_estimate_of_another_selection_has_nothing_of_csit():
    controller = SearchByCounts(*LIMITS)
    controller.record(trial(1e3, 5))
    assert controller.result().csit is None


def test_a_trial_without_counts_is_named():
    result = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0))
    with pytest.raises(SearchError, match="the trial at 100 frames/s does not have them"):
        next(reversed([*csit_estimates([result], target_loss_ratio=1e-3, min_load=10.0, max_load=2e4, samples=2)]))


def test_one_sample_is_no_monte_carlo():
    with pytest.raises(SearchError, match="at least 2 samples, not 1"):
        CsitIntegration(QUESTION, 1)
