from __future__ import annotations

import numpy as np
import pytest

from lossratio.plrsearch import estimate
from lossratio.trial import TrialInput, TrialOutput, TrialResult


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
    found = estimate(results, target_loss_ratio=1e-7, min_load=1e4, max_load=30e6, likelihood="varying")
    assert found.mean == pytest.approx(18e6, rel=0.03)
    assert 0.0 < found.stdev < 0.02 * 18e6
