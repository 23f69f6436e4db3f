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
from lossratio.trials import run_search

STORE = Path(__file__).parent / "data" / "brute-force.jsonl"
LISTS = [json.loads(line) for line in STORE.read_text().splitlines()]
CERTAIN = 0.05
ERROR_OF_A_TRIAL = 0.01
"""About the relative error of a trial's probability, which the integral over its own capacity has by contract."""


def trials_and_question(entry):
    return counts_of([tuple(row) for row in entry["load, exposure, lost"]]), CriticalLoadQuestion(*entry["question"])


@pytest.mark.whole
@pytest.mark.parametrize("entry", LISTS, ids=[entry["list"].removesuffix(" of up to 10") for entry in LISTS])
def test_a_brute_force_confirms_the_estimate(entry):
    counts, question = trials_and_question(entry)
    for posterior in posteriors(counts, question, LikelihoodName.VARYING):
        known = entry["functions"][posterior.name]
        away = abs(posterior.mean - known["mean"]) / max(known["stdev"], 1e-9 * question.max_load)
        assert away < 0.02
        assert posterior.error < CERTAIN
        assert abs(posterior.log_evidence - known["log_evidence"]) < 0.02 + ERROR_OF_A_TRIAL * len(counts)


@pytest.mark.whole
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
    assert abs(one.mean - other.mean) < 0.03 * other.stdev
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=0.03)
    assert max(one.error, other.error) < CERTAIN


def test_too_little_effort_states_a_large_error():
    counts, question = trials_and_question(LISTS[0])
    model = Model(STRETCH, VaryingCapacityLikelihood(counts), Prior(question.max_load / 2.0))
    assert sampled([model], question, 6)[0].error > CERTAIN


CONTRADICTORY = [
    (217059.0, 10.0, 0.0),
    (151.726, 2.0, 94.0),
    (79467.2, 10.0, 0.0),
    (41365.1, 5.1, 0.0),
    (133027.0, 1.0, 0.0),
    (8954.65, 1.0, 3094.0),
    (6932.13, 10.0, 31995.0),
    (2912.69, 10.0, 0.0),
]
"""More is lost at low loads than at high ones."""


@pytest.mark.whole
def test_a_capacity_that_may_vary_explains_contradictory_trials_no_worse_than_one_that_does_not():
    counts, question = counts_of(CONTRADICTORY), CriticalLoadQuestion(1.3e-6, 75.7, 2440107.0)
    varying, constant = (
        max(known.log_evidence for known in posteriors(counts, question, likelihood))
        for likelihood in (LikelihoodName.VARYING, LikelihoodName.POISSON)
    )
    assert varying > constant - 10.0


@pytest.mark.whole
def test_a_knee_as_wide_as_the_capacity_is_integrated_exactly():
    loads = [3842, 3982, 3703, 3797, 3769, 3815, 3777, 3783, 3782, 3790, 3756, 3725, 3738, 3752, 3718, 3798, 3736, 3816]
    seconds = [5.1, 1.0, 2.0, 2.0, 5.1, 10.0, 5.1, 5.1, 1.0, 1.0, 10.0, 5.1, 1.0, 2.0, 2.0, 5.1, 5.1, 1.0]
    lost = [2871, 618, 900, 1040, 2556, 5338, 2637, 2635, 544, 511, 5028, 2442, 469, 1083, 977, 2671, 2476, 555]
    question = CriticalLoadQuestion(2.5e-3, 0.234, 12725.6)
    counts = counts_of(list(zip(loads, seconds, lost, strict=True)))
    known, constant = (
        posteriors(counts, question, likelihood)[1] for likelihood in (LikelihoodName.VARYING, LikelihoodName.POISSON)
    )
    assert known.error < CERTAIN
    assert known.mean == pytest.approx(constant.mean, abs=0.1 * constant.stdev)


class EarlyDrop(SutWithoutMemory):
    """From 1 % below the capacity on the loss ratio grows with the square of the load."""

    def loss_ratio(self, load):
        return min(1.0, max(0.0, load / 18e6 - 0.99) ** 2 + max(0.0, 1.0 - 18e6 / load))

    def truth(self, **_):
        return 18e6 * (0.99 + 1e-7**0.5)

    def _lost_frames(self, traffic, rng):
        return int(rng.binomial(traffic.frames, self.loss_ratio(traffic.load)))


@pytest.mark.whole
def test_a_minute_finds_a_knee_that_neither_function_has():
    search = PLRsearch(1e-7, min_load=1e4, max_load=30e6, timeout=60.0)
    found = run_search(search, SimulatedMeasurer(EarlyDrop(), seed=310000, overhead=0.5))
    low, high = found.interval(0.95)
    assert low <= EarlyDrop().truth() <= high
    assert 0.9 * EarlyDrop().truth() < found.stated < 1.001 * EarlyDrop().truth()
