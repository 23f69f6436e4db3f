"""Which trials guard the load that is about to be reported."""

import numpy as np
from soak_trials import counts_of

from lossratio.plrsearch.model import FUNCTIONS, CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.selection import Guarding
from lossratio.plrsearch.variation import described

QUESTION = CriticalLoadQuestion(1e-7, 1e4, 30e6)


def test_trials_that_guard_no_more_are_replaced():
    loads = np.linspace(17.7e6, 18.3e6, 40)
    lost = 2.0 * np.exp(FUNCTIONS[0].log_loss_rate(loads, np.array(18e6), np.array(5e4)))
    rows = list(zip(loads, np.full(40, 2.0), np.round(lost), strict=True))
    known = described(counts_of(rows), QUESTION, LikelihoodName.POISSON)
    guarding = Guarding(QUESTION)
    for load in loads:
        guarding.record(load)
    first = guarding.wanted(known)
    assert 0.95 * guarding.load < first <= guarding.load
    for load, more in ((guarding.load * 1.001, True), (first, False)):
        for _ in range(10):
            guarding.record(load)
        assert (guarding.wanted(known) is not None) == more
