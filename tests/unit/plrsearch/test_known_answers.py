"""The exact posteriors against answers that were computed apart, by other means, to each case's own tolerances.

Of the logarithm of the critical load the file gives no tolerances; the ones here are what was found. Standard
deviations of both functions together are mixed from the file's functions: of two cases the file has older ones.
"""

import math
from functools import cache

import numpy as np
import pytest
from plrsearch_known_answers import CASES

from lossratio.plrsearch import Weighting, estimate
from lossratio.plrsearch.quadrature.panels import mean_and_variance
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


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


STDEV_LOG = {"no loss at maximum load": 2e-4}
"""Relative distances of the logarithm's standard deviation that are larger: of what the file has not computed anew."""


def of_log(function):
    """Mean and standard deviation of the critical load's logarithm."""
    mean, variance = mean_and_variance(np.log(function.critical_load), function.mass)
    return {"mean": mean, "stdev": math.sqrt(variance)}


def mixed_stdev(functions, weight):
    """Standard deviation of two functions together, the first with this weight."""
    first, second = functions["stretch"], functions["erf"]
    own = weight * first["stdev"] ** 2 + (1.0 - weight) * second["stdev"] ** 2
    return math.sqrt(own + weight * (1.0 - weight) * (first["mean"] - second["mean"]) ** 2)


@pytest.mark.whole
@pytest.mark.parametrize("likelihood", ["poisson", "geometric"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_estimates_agree_with_known_answers(case, likelihood):
    tolerance, expected = case["tolerance"], case["expected"][likelihood]
    estimate = estimate_of(case["name"], likelihood)
    nothing = 1e-18 * case["max_load"]
    for name, function in estimate.functions.items():
        known = expected[name]
        assert function.mean == pytest.approx(known["mean"], rel=tolerance["mean"])
        assert function.stdev == pytest.approx(known["stdev"], rel=tolerance["stdev"], abs=nothing)
        log = of_log(function)
        assert log["mean"] == pytest.approx(known["mean_log"], rel=1e-6)
        assert log["stdev"] == pytest.approx(known["stdev_log"], rel=STDEV_LOG.get(case["name"], 2e-5), abs=1e-12)
        assert function.log_evidence == pytest.approx(known["log_evidence"], abs=tolerance["log_evidence_abs"])
        assert function.p_at_min == pytest.approx(known["p_at_min"], abs=2e-6)
        assert function.p_at_max == pytest.approx(known["p_at_max"], abs=2e-6)
        quantiles = [function.quantile(float(probability)) for probability in known["quantiles"]]
        assert quantiles == pytest.approx(list(known["quantiles"].values()), rel=tolerance["quantiles"])
    combined = expected["combined"]
    equal, evidence = map(estimate.description.mixed, (Weighting.EQUAL, Weighting.EVIDENCE))
    assert equal.mean == pytest.approx(combined["equal_mean"], rel=tolerance["mean"])
    assert equal.stdev == pytest.approx(mixed_stdev(expected, 0.5), rel=tolerance["stdev"], abs=nothing)
    # As FD.io CSIT reports it: the middle of exp(mean of log -/+ stdev of log), and half the distance of these.
    logs = {name: of_log(own) for name, own in estimate.functions.items()}
    mean_log = 0.5 * sum(own["mean"] for own in logs.values())
    low, high = (math.exp(mean_log + sign * mixed_stdev(logs, 0.5)) for sign in (-1.0, 1.0))
    assert 0.5 * (low + high) == pytest.approx(combined["log_mean"], rel=3e-5)
    assert 0.5 * (high - low) == pytest.approx(combined["log_stdev"], rel=1e-4, abs=2e-6)
    assert estimate.weights[0] == pytest.approx(combined["weight_stretch"], abs=1e-6)
    assert evidence.mean == pytest.approx(combined["evidence_mean"], rel=tolerance["mean"])
    weight = combined["weight_stretch"]
    assert evidence.stdev == pytest.approx(mixed_stdev(expected, weight), rel=tolerance["stdev"], abs=nothing)


@pytest.mark.whole
@pytest.mark.parametrize("name", CASES)
def test_no_warnings_and_no_infinities_leave_any_case(name):
    found = estimate_of(name, "poisson")
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        assert np.isfinite([found.mean, found.stdev, *found.interval(0.95)]).all()
