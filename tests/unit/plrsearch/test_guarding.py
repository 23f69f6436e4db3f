"""Which trials guard the load that is about to be reported."""

import numpy as np
import pytest

from lossratio.plrsearch.guarding import Guarding
from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName, from_rows
from lossratio.plrsearch.quadrature import posteriors
from lossratio.plrsearch.variation import variation_of

QUESTION = CriticalLoadQuestion(1e-7, 1e4, 30e6)


def guarding_after(rows, *, by_shapes):
    guarding = Guarding(QUESTION, by_shapes=by_shapes)
    for row in rows:
        guarding.record(row)
    return guarding


def test_guard_trials_are_where_slow_trials_put_the_load():
    rng = np.random.default_rng(1)
    capacities = 18e6 * (1.0 + 0.002 * rng.standard_normal(200) - 0.05 * (rng.random(200) < 0.05))
    loads = np.tile([17.6e6, 18.4e6], 100)
    lost = np.round(2.0 * np.maximum(loads - capacities, 0.0))
    rows = list(zip(loads, np.full(200, 2.0), lost, strict=True))
    known = posteriors(from_rows(rows), QUESTION, LikelihoodName.VARYING)
    guarded = []
    for by_shapes in (False, True):
        guarding = guarding_after(rows, by_shapes=by_shapes)
        assert guarding.wanted(known) <= guarding.load
        guarded.append(guarding.load)
    shapes = variation_of(tuple(known), from_rows(rows), QUESTION)
    assert guarded[1] == pytest.approx(shapes.loads.mean)
    assert guarded[0] != pytest.approx(shapes.loads.mean, rel=1e-3)


def test_trials_that_guard_no_more_are_replaced():
    loads = np.linspace(17.7e6, 18.3e6, 40)
    lost = 2.0 * np.exp(FUNCTIONS[0].log_loss_rate(loads, np.array(18e6), np.array(5e4)))
    rows = list(zip(loads, np.full(40, 2.0), np.round(lost), strict=True))
    known = posteriors(from_rows(rows), QUESTION, LikelihoodName.POISSON)
    guarding = guarding_after(rows, by_shapes=False)
    first = guarding.wanted(known)
    assert 0.95 * guarding.load < first <= guarding.load
    for load, more in ((guarding.load * 1.001, True), (first, False)):
        for _ in range(10):
            guarding.record((load, 2.0, 0.0))
        assert (guarding.wanted(known) is not None) == more
