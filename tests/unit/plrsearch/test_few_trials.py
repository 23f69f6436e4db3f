"""Estimates of few trials whose capacity varies, beside a brute force (`benchmarks/soak_brute_force.py`)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lossratio.plrsearch.likelihood import Model, Prior, VaryingCapacityLikelihood
from lossratio.plrsearch.likelihood.constant_capacity import Parameters
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName, from_rows
from lossratio.plrsearch.model.functions import STRETCH
from lossratio.plrsearch.quadrature import posteriors
from lossratio.plrsearch.quadrature.few_trials import EXACT, integrate_few, integrated
from lossratio.plrsearch.quadrature.panels import moments_of
from lossratio.plrsearch.quadrature.support import deviation_bounds

STORE = Path(__file__).parent / "data" / "brute-force.jsonl"
LISTS = [json.loads(line) for line in STORE.read_text().splitlines()]
CERTAIN = 0.05
ERROR_OF_A_TRIAL = 0.01
"""About the relative error of a trial's probability, which the integral over its own capacity has by contract."""


def trials_and_question(entry):
    return from_rows([tuple(row) for row in entry["load, exposure, lost"]]), CriticalLoadQuestion(*entry["question"])


@pytest.mark.parametrize("entry", LISTS, ids=[entry["list"].split()[0] for entry in LISTS])
def test_a_brute_force_confirms_estimate_and_certificate(entry):
    counts, question = trials_and_question(entry)
    best = max(known["log_evidence"] for known in entry["functions"].values())
    for posterior in posteriors(counts, question, LikelihoodName.VARYING):
        known = entry["functions"][posterior.function.name]
        if known["log_evidence"] < best - 6.0:
            continue
        away = abs(posterior.moments.mean - known["mean"]) / max(known["stdev"], 1e-9 * question.max_load)
        assert posterior.error < CERTAIN
        assert away < 0.02 <= posterior.error
        assert abs(posterior.log_evidence - known["log_evidence"]) < posterior.error + ERROR_OF_A_TRIAL * len(counts)


@pytest.mark.parametrize("number", [0, 3, 9])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_a_finer_integral_confirms_the_stated_error(function, number):
    (entry,) = (entry for entry in LISTS if entry["list"].split()[0] == str(number))
    counts, question = trials_and_question(entry)
    likelihood = VaryingCapacityLikelihood(counts)
    model, bounds = Model(function, likelihood, Prior(question.max_load / 2.0)), deviation_bounds(likelihood.groups)
    panels, error = integrated(model, question, bounds, EXACT)
    finer = replace(
        EXACT, panels=0.1 * EXACT.panels, inner=0.1 * EXACT.inner, outer=0.1 * EXACT.outer, slices=25, spreads=49
    )
    known = moments_of(integrated(model, question, bounds, finer)[0])
    found = moments_of(panels)
    assert abs(found.mean - known.mean) / known.stdev < error
    assert abs(found.stdev / known.stdev - 1.0) < error
    assert abs(found.log_mass - known.log_mass) < error < CERTAIN


def two_explained_exactly():
    """Two trials with loss, and their model: one pair of m and a explains both exactly."""
    counts, question = trials_and_question(LISTS[0])
    likelihood = VaryingCapacityLikelihood(counts)
    model = Model(STRETCH, likelihood, Prior(question.max_load / 2.0))
    return model, question, deviation_bounds(likelihood.groups)


def test_less_mass_than_there_should_be_is_believed_if_a_closer_look_finds_the_same():
    model, question, bounds = two_explained_exactly()
    _, error = integrate_few(model, question, bounds, np.inf)
    assert error < CERTAIN


def test_too_little_effort_states_a_large_error():
    model, question, bounds = two_explained_exactly()
    rough = replace(EXACT, panels=1.0, inner=10.0, outer=10.0)
    panels, error = integrated(model, question, bounds, rough)
    known = moments_of(integrated(model, question, bounds, EXACT)[0])
    assert abs(moments_of(panels).log_mass - known.log_mass) < error
    assert error > CERTAIN


def test_blocks_that_end_too_early_are_extended():
    """Without it, this list loses 0.13 nats with so coarse a look."""
    (entry,) = (entry for entry in LISTS if entry["list"].split()[0] == "3")
    counts, question = trials_and_question(entry)
    likelihood = VaryingCapacityLikelihood(counts)
    model, bounds = Model(STRETCH, likelihood, Prior(question.max_load / 2.0)), deviation_bounds(likelihood.groups)
    panels, error = integrated(model, question, bounds, replace(EXACT, slices=5, spreads=9))
    found, known = moments_of(panels), moments_of(integrated(model, question, bounds, EXACT)[0])
    assert abs(found.mean - known.mean) / known.stdev < error < CERTAIN
    assert abs(found.log_mass - known.log_mass) < error


def test_a_step_far_below_the_capacity_is_no_sharper_than_the_normal_density():
    """Rounding errors far below a step once made rows look so sharp that their maxima were never found."""
    likelihood = VaryingCapacityLikelihood(from_rows([(8.7e7, 1.2, 0.0)]))
    deviation = 187.0
    at = Parameters(np.full((1, 1, 1), 4.9e7), np.full((1, 1, 1), 6.0), np.full((1, 1, 1), deviation))
    score = likelihood.score(STRETCH, at)
    assert 0.0 < score.information[0, 0] <= deviation**-2 * (1.0 + 1e-12)
    assert score.slope[0, 0] == pytest.approx((8.7e7 - 4.9e7) / deviation**2, rel=1e-3)
