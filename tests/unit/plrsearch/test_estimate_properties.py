"""What must not change an estimate, and what must."""

import numpy as np
import pytest
from soak_trials import LIMITS, estimated, loads_around, trial, trials_of

from lossratio.plrsearch import Weighting
from lossratio.plrsearch.likelihood.constant_capacity import PoissonLikelihood
from lossratio.plrsearch.likelihood.density import Model, Prior
from lossratio.plrsearch.model.counts import collect
from lossratio.plrsearch.model.critical_loads import CriticalLoadQuestion
from lossratio.plrsearch.model.functions import FUNCTIONS
from lossratio.plrsearch.quadrature.constant_capacity import EXACT, integrate
from lossratio.simulation import SmoothKnee

KNEE = SmoothKnee(6e6, 2e4)
RESULTS = trials_of(KNEE, loads_around(5.9e6, 40))


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "geometric", "varying"])
def test_the_order_of_trials_does_not_matter(likelihood):
    shuffled = [RESULTS[index] for index in np.random.default_rng(1).permutation(len(RESULTS))]
    one, other = (estimated(results, likelihood=likelihood) for results in (RESULTS, shuffled))
    assert one.mean == pytest.approx(other.mean, rel=1e-12)
    assert one.stdev == pytest.approx(other.stdev, rel=1e-9)


@pytest.mark.whole
def test_splitting_trials_at_the_same_load_changes_nothing_for_poisson():
    halves = []
    for result in RESULTS:
        sent, lost = result.output.sent_frames, result.output.lost_frames
        halves += [
            trial(result.load, lost // 2, sent=sent // 2, duration=2.5),
            trial(result.load, lost - lost // 2, sent=sent - sent // 2, duration=2.5),
        ]
    one, other = estimated(RESULTS), estimated(halves)
    assert one.mean == pytest.approx(other.mean, rel=1e-11)
    assert one.stdev == pytest.approx(other.stdev, rel=1e-7)


@pytest.mark.whole
def test_finer_panels_change_nothing():
    question = CriticalLoadQuestion(1e-7, **LIMITS)
    for function in FUNCTIONS:
        model = Model(function, PoissonLikelihood(collect(RESULTS)), Prior(0.5e7))
        usual, finer = (integrate(model, question, tolerance) for tolerance in (EXACT, 1e-2 * EXACT))
        assert usual.mean == pytest.approx(finer.mean, rel=1e-9)
        assert usual.stdev == pytest.approx(finer.stdev, rel=1e-6)
        assert usual.log_evidence == pytest.approx(finer.log_evidence, abs=1e-6)


def test_another_unit_of_load_scales_the_estimate():
    scaled = [trial(1e2 * result.load, result.output.lost_frames * 100, duration=5.0) for result in RESULTS]
    small = [trial(result.load, result.output.lost_frames) for result in RESULTS]
    one = estimated(small, likelihood="geometric", target=1e-5)
    other = estimated(scaled, likelihood="geometric", target=1e-5, min_load=1e6, max_load=1e9)
    assert other.mean == pytest.approx(1e2 * one.mean, rel=1e-3)


@pytest.mark.whole
def test_a_larger_target_means_a_larger_load():
    means = [estimated(RESULTS, target=target).mean for target in (1e-9, 1e-7, 1e-5)]
    assert means == sorted(means)


@pytest.mark.whole
def test_both_weightings_are_there_and_equal_weights_mix_both_functions():
    estimate = estimated(RESULTS)
    functions = [function.mean for function in estimate.functions.values()]
    assert estimate.description.mixed(Weighting.EQUAL).mean == pytest.approx(np.mean(functions))
    assert estimate.mean == estimate.description.mixed(Weighting.EVIDENCE).mean
    assert min(functions) <= estimate.mean <= max(functions)


def test_the_likeliest_curve_has_the_target_about_at_the_mean():
    estimate = estimated(RESULTS)
    assert estimate.functions["stretch"].loss_ratio([estimate.functions["stretch"].mean])[0] == pytest.approx(
        1e-7, rel=0.1
    )


@pytest.mark.whole
def test_intervals_have_a_frame_of_the_longest_trial_as_margin_but_keep_to_the_limits():
    estimate = estimated(RESULTS)
    low, high = estimate.combined.interval(0.95)
    assert estimate.interval(0.95) == pytest.approx((low - 0.2, high + 0.2), abs=1e-3)
    assert estimated([trial(1e7, 0)] * 30).interval(0.95)[1] == LIMITS["max_load"]
