"""The integral over a capacity that varies, beside a brute force, on short lists of trials."""

import json
from pathlib import Path

import numpy as np
import pytest
from soak_trials import counts_of

from lossratio.plrsearch import PLRsearch
from lossratio.plrsearch.likelihood import Model, Prior, VaryingCapacityLikelihood
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.model.functions import STRETCH
from lossratio.plrsearch.quadrature import posteriors
from lossratio.plrsearch.quadrature.sampling import sampled
from lossratio.simulation import SimulatedMeasurer
from lossratio.simulation.sut import SutWithoutMemory
from lossratio.trials.trial import run_search

STORE = Path(__file__).parent / "data" / "brute-force.jsonl"
LISTS = [json.loads(line) for line in STORE.read_text().splitlines()]
CERTAIN = 0.05
ERROR_OF_A_TRIAL = 0.01
"""About the relative error of a trial's probability, which the integral over its own capacity has by contract."""


def trials_and_question(entry):
    return counts_of([tuple(row) for row in entry["load, exposure, lost"]]), CriticalLoadQuestion(*entry["question"])


@pytest.mark.parametrize("entry", LISTS, ids=[entry["list"].removesuffix(" of up to 10") for entry in LISTS])
def test_a_brute_force_confirms_the_estimate(entry):
    counts, question = trials_and_question(entry)
    for posterior in posteriors(counts, question, LikelihoodName.VARYING):
        known = entry["functions"][posterior.function.name]
        away = abs(posterior.moments.mean - known["mean"]) / max(known["stdev"], 1e-9 * question.max_load)
        assert away < 0.02
        assert posterior.error < CERTAIN
        assert abs(posterior.log_evidence - known["log_evidence"]) < 0.02 + ERROR_OF_A_TRIAL * len(counts)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
@pytest.mark.parametrize("deviation", [1e-5, 4e-3])
def test_more_points_change_nothing_where_trials_are_many(function, deviation):
    rng = np.random.default_rng(1)
    loads = np.where(rng.random(80) < 0.3, 18.9e6, rng.choice(np.linspace(17.6e6, 18.2e6, 20), 80))
    rates = np.exp(STRETCH.log_loss_rate(loads, 18e6 * (1.0 + deviation * rng.standard_normal(80)), np.array(5e4)))
    counts = counts_of(list(zip(loads, np.full(80, 2.0), rng.poisson(2.0 * rates).astype(float), strict=True)))
    question = CriticalLoadQuestion(1e-7, 1e4, 30e6)
    model = Model(function, VaryingCapacityLikelihood(counts), Prior(15e6))
    ((one,), (other,)) = (sampled([model], question, number) for number in (1500, 8000))
    assert abs(one.moments.mean - other.moments.mean) < 0.03 * other.moments.stdev
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=0.03)
    assert max(one.error, other.error) < CERTAIN


def test_too_little_effort_states_a_large_error():
    counts, question = trials_and_question(LISTS[0])
    model = Model(STRETCH, VaryingCapacityLikelihood(counts), Prior(question.max_load / 2.0))
    assert sampled([model], question, 6)[0].error > CERTAIN


@pytest.mark.long
def test_trials_that_count_half_show_less():
    counts = counts_of([(load, 2.0, 2.0 * (load - 17.9e6)) for load in np.linspace(18e6, 18.5e6, 30)])
    question = CriticalLoadQuestion(1e-7, 1e4, 30e6)
    whole, half = (posteriors(counts, question, LikelihoodName.VARYING, share=share)[0] for share in (1.0, 0.5))
    widths = [np.sqrt(np.cov(np.log(known.deviation), aweights=known.mass)) for known in (whole, half)]
    assert widths[1] > 1.1 * widths[0]


class EarlyDrop(SutWithoutMemory):
    """From 1 % below the capacity on the loss ratio grows with the square of the load."""

    def loss_ratio(self, load):
        return min(1.0, max(0.0, load / 18e6 - 0.99) ** 2 + max(0.0, 1.0 - 18e6 / load))

    def truth(self, **_):
        return 18e6 * (0.99 + 1e-7**0.5)

    def _lost_frames(self, traffic, rng):
        return int(rng.binomial(traffic.frames, self.loss_ratio(traffic.load)))


def test_a_minute_finds_a_knee_that_neither_function_has():
    search = PLRsearch(1e-7, min_load=1e4, max_load=30e6, timeout=60.0)
    found = run_search(search, SimulatedMeasurer(EarlyDrop(), seed=310000, overhead=0.5))
    assert found.median == pytest.approx(EarlyDrop().truth(), rel=2e-3)
