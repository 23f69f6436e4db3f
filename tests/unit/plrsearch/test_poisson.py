"""PLRsearch's posterior as its draft has it, against answers that were computed apart, by other means."""

from functools import cache

import numpy as np
import pytest
from plrsearch_known_answers import CASES

from lossratio.plrsearch import LikelihoodName, PoissonEstimate, load_by_counts
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

NEARLY_ALL_AT_A_LIMIT = {"no loss at maximum load", "total loss"}
"""Cases whose deviation is a rounding error of the limit."""
OF_THE_PRIOR = {"no trials: the prior itself", "one trial without loss", "loss inversion"}
"""Cases that the prior decides: their posterior reaches over many orders of magnitude, and bends at the limits."""
PARTS_OF_A_DEVIATION = dict.fromkeys(OF_THE_PRIOR, 0.03)
"""How far a mean may be off, in standard deviations; one millionth in other cases."""


def result(duration, load, sent, lost):
    return TrialResult(TrialInput(duration, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))


@cache
def estimate_of(name):
    """The estimate of a case; numpy's warnings are errors, as no case may cause one."""
    case = CASES[name]
    limits = {key: case[key] for key in ("target_loss_ratio", "min_load", "max_load")}
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        trials = [result(*trial) for trial in case["trials"]]
        model = load_by_counts(trials, **limits, likelihood=LikelihoodName.POISSON).model
    assert isinstance(model, PoissonEstimate)
    return model


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_estimates_agree_with_known_answers(case):
    name, found = case["name"], estimate_of(case["name"])
    allowed = PARTS_OF_A_DEVIATION.get(name, 2e-5)
    for function in found.functions:
        known = case["expected"]["poisson"][function.function.name]
        assert function.mean == pytest.approx(known["mean"], rel=1e-9, abs=allowed * known["stdev"])
        if name in NEARLY_ALL_AT_A_LIMIT:
            assert function.stdev < 1e-4 * known["mean"]
            continue
        assert function.stdev == pytest.approx(known["stdev"], rel=max(allowed, 4e-5))
        if name in OF_THE_PRIOR:
            continue
        for probability, load in known["quantiles"].items():
            # A quantile is found within an eighth of a standard deviation, also where there are few distinct loads.
            assert function.quantile(float(probability)) == pytest.approx(load, abs=0.08 * known["stdev"])


@pytest.mark.whole
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_both_functions_have_half_the_weight(case):
    found, known = estimate_of(case["name"]), case["expected"]["poisson"]["combined"]
    allowed = PARTS_OF_A_DEVIATION.get(case["name"], 1e-4)
    assert found.mean == pytest.approx(known["equal_mean"], rel=1e-9, abs=allowed * found.stdev)
    low, high = found.interval(0.95)
    assert case["min_load"] <= low <= high <= case["max_load"]
    if case["min_load"] * 1.01 < low and high < 0.99 * case["max_load"]:
        assert found.below(high) - found.below(low) == pytest.approx(0.95, abs=1e-3)


@pytest.mark.whole
def test_the_likeliest_curve_loses_about_what_was_lost():
    case = CASES["forty trials, stretch-shaped SUT"]
    stretch = estimate_of(case["name"]).functions[0]
    for _, load, sent, lost in case["trials"]:
        if lost > 100:
            assert stretch.loss_ratio([load])[0] == pytest.approx(lost / sent, rel=0.5)
