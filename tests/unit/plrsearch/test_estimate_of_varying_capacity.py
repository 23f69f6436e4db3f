from __future__ import annotations

import numpy as np
import pytest

from lossratio.plrsearch import estimate
from lossratio.plrsearch.estimate.misfit import check
from lossratio.plrsearch.likelihood import Model, Prior, VaryingCapacityLikelihood
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName, from_rows
from lossratio.plrsearch.quadrature.panels import moments_of
from lossratio.plrsearch.quadrature.posterior import Posterior
from lossratio.plrsearch.quadrature.varying_capacity import (
    CERTAIN,
    EXACT,
    Resolution,
    integrate_exactly,
    integrate_varying,
)
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials.trial import TrialInput, TrialOutput, TrialResult


def trials_of_a_varying_sut(capacity, deviation, seed, number):
    """Trials at and above a sharp knee, whose place differs from trial to trial."""
    rng = np.random.default_rng(seed)
    for load in rng.uniform(0.99 * capacity, 1.05 * capacity, number):
        sent = round(5.0 * load)
        lost = max(0, sent - round(5.0 * capacity * (1.0 + deviation * rng.standard_normal())))
        output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=0)
        yield TrialResult(TrialInput(5.0, load), output)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_capacity_that_varies_leads_no_estimate_astray(seed):
    results = list(trials_of_a_varying_sut(18e6, 0.004, seed, 60))
    varying = estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6, likelihood="varying")
    assert varying.mean == pytest.approx(18e6, rel=0.03)
    assert 0.0 < varying.stdev < 0.02 * 18e6


def test_the_posterior_of_a_function_that_is_wrong_is_found_far_from_where_it_is_looked_for_first():
    loads = np.repeat([17.5964e6, 17.6292e6, 17.662e6, 17.793e6, 18.4999e6], [7, 2, 4, 195, 500])
    singles = [17.1049e6, 17.6947e6, 17.7275e6, 17.9304e6, 17.9448e6, 17.9648e6, 17.9991e6, 18.4577e6, 18.504e6, 30e6]
    measurer = SimulatedMeasurer(SmoothKnee(18e6, 5e4), seed=1)
    trials = [TrialInput(2.0, load) for load in [*loads, *singles]]
    results = [TrialResult(trial, measurer.measure(trial)) for trial in trials]
    varying = estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6, likelihood="varying")
    panels = varying.functions["erf"].posterior.panels
    highest = panels.log_density.max(axis=1)
    for end in (panels.deviation.min(), panels.deviation.max()):
        assert highest[panels.deviation == end].max() < highest.max() - 5.0


CONTRADICTING = [(1.02e6, 51_000), (1.0e6, 120), (1.015e6, 90_000), (1.03e6, 20_000), (0.99e6, 4_000)]


def contradicting():
    """Trials of 5 s that contradict each other: few of them, so that the posterior is rugged."""
    return from_rows([(load, 5.0, float(lost)) for load, lost in CONTRADICTING])


def test_a_rough_posterior_gets_more_nodes():
    question = CriticalLoadQuestion(1e-7, 1e3, 2e6)
    likelihood = VaryingCapacityLikelihood(contradicting())
    model = Model(FUNCTIONS[1], likelihood, Prior(1e6))
    few, error = integrate_varying(model, likelihood, question, EXACT)
    assert error > CERTAIN[0]
    panels, better = integrate_exactly(model, likelihood, question, -np.inf)
    assert better < error
    finest, _ = integrate_varying(model, likelihood, question, Resolution(32, (1, 1)))
    wrong = abs(moments_of(few).log_mass - moments_of(finest).log_mass)
    assert abs(moments_of(panels).log_mass - moments_of(finest).log_mass) < max(0.3 * wrong, 0.02)


def test_less_evidence_than_there_should_be_is_believed_if_finer_nodes_have_the_same():
    question = CriticalLoadQuestion(1e-7, 1e3, 2e6)
    likelihood = VaryingCapacityLikelihood(contradicting())
    model = Model(FUNCTIONS[1], likelihood, Prior(1e6))
    panels, error = integrate_exactly(model, likelihood, question, 0.0)
    assert len(panels.row) > len(integrate_varying(model, likelihood, question, EXACT)[0].row)
    assert error <= CERTAIN[1]


def test_an_integral_that_is_too_rough_is_no_good_model():
    question = CriticalLoadQuestion(1e-7, 1e3, 2e6)
    likelihood = VaryingCapacityLikelihood(contradicting())
    panels, _ = integrate_varying(Model(FUNCTIONS[1], likelihood, Prior(1e6)), likelihood, question, EXACT)
    posterior = Posterior(FUNCTIONS[1], question, panels, likelihood.constant, np.inf)
    misfit = check((posterior, posterior), (posterior, posterior), contradicting(), LikelihoodName.VARYING)
    assert any("too rough for the quadrature" in reason for reason in misfit.reasons)
