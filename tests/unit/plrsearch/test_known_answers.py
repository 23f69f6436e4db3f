"""The exact posteriors against answers that were computed apart, by other means, to each case's own tolerances.

Some answers are farther away. They were computed once more by brute force (composite Gauss-Legendre rules, cut wherever
critical load or likelihood bend; of "loss inversion" in extended precision), which sides with the estimates here: the
file is not as precise there.

    case                     function, likelihood   quantity    here             brute force      file
    no loss at maximum load  stretch, Poisson       stdev       1.98624407e-4    1.98624354e-4    1.98497845e-4
    no loss at maximum load  erf, Poisson           stdev       1.30097203e-4    1.30097116e-4    1.30150597e-4
    no loss at maximum load  erf, geometric         stdev_log   8.32508970e-4    8.32508692e-4    8.32402003e-4
    loss inversion           stretch, geometric     mean_log    14.552473384     14.552473388     14.552497815

Of the logarithm of the critical load the file gives no tolerances; the ones here are what was found.
"""

from functools import cache

import numpy as np
import pytest
from plrsearch_known_answers import CASES

from lossratio.plrsearch import Weighting, estimate
from lossratio.trials.trial import TrialInput, TrialOutput, TrialResult


def result(duration, load, sent, lost):
    return TrialResult(TrialInput(duration, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))


@cache
def estimate_of(name, likelihood):
    """The estimate of a case; numpy's warnings are errors, as no case may cause one."""
    case = CASES[name]
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        return estimate(
            [result(*trial) for trial in case["trials"]],
            target_loss_ratio=case["target_loss_ratio"],
            min_load=case["min_load"],
            max_load=case["max_load"],
            likelihood=likelihood,
        )


FARTHER = {
    ("no loss at maximum load", "poisson", "stdev"): 7e-4,
    ("no loss at maximum load", "geometric", "stdev_log"): 2e-4,
    ("loss inversion", "geometric", "mean_log"): 2e-6,
}
"""Relative distances, where the critical load is at its limit nearly surely, or its tails weigh much."""


@pytest.mark.parametrize("likelihood", ["poisson", "geometric"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_estimates_agree_with_known_answers(case, likelihood):
    tolerance, expected = case["tolerance"], case["expected"][likelihood]
    estimate = estimate_of(case["name"], likelihood)
    stdev, stdev_log, mean_log = (
        FARTHER.get((case["name"], likelihood, quantity), usual)
        for quantity, usual in (("stdev", tolerance["stdev"]), ("stdev_log", 2e-5), ("mean_log", 1e-6))
    )
    nothing = 1e-18 * case["max_load"]
    for name, function in estimate.functions.items():
        known = expected[name]
        assert function.mean == pytest.approx(known["mean"], rel=tolerance["mean"])
        assert function.stdev == pytest.approx(known["stdev"], rel=stdev, abs=nothing)
        assert function.mean_log == pytest.approx(known["mean_log"], rel=mean_log)
        assert function.stdev_log == pytest.approx(known["stdev_log"], rel=stdev_log, abs=1e-12)
        assert function.log_evidence == pytest.approx(known["log_evidence"], abs=tolerance["log_evidence_abs"])
        assert function.p_at_min == pytest.approx(known["p_at_min"], abs=2e-6)
        assert function.p_at_max == pytest.approx(known["p_at_max"], abs=2e-6)
        quantiles = [function.quantile(float(probability)) for probability in known["quantiles"]]
        assert quantiles == pytest.approx(list(known["quantiles"].values()), rel=tolerance["quantiles"])
    combined = expected["combined"]
    equal, evidence = estimate.combinations[Weighting.EQUAL], estimate.combinations[Weighting.EVIDENCE]
    assert equal.mean == pytest.approx(combined["equal_mean"], rel=tolerance["mean"])
    assert equal.stdev == pytest.approx(combined["equal_stdev"], rel=stdev, abs=nothing)
    assert equal.log_mean == pytest.approx(combined["log_mean"], rel=3e-5)
    assert equal.log_stdev == pytest.approx(combined["log_stdev"], rel=1e-4, abs=2e-6)
    assert evidence.weights[0] == pytest.approx(combined["weight_stretch"], abs=1e-6)
    assert evidence.mean == pytest.approx(combined["evidence_mean"], rel=tolerance["mean"])
    assert evidence.stdev == pytest.approx(combined["evidence_stdev"], rel=stdev, abs=nothing)


@pytest.mark.parametrize("name", CASES)
def test_no_warnings_and_no_infinities_leave_any_case(name):
    found = estimate_of(name, "poisson")
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        assert np.isfinite([found.mean, found.stdev, *found.interval(0.95)]).all()
