"""Coarser targets that a search is given."""

from __future__ import annotations

import pytest
from mlrsearch_suts import drive, knee, measured, noisy

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, CoarseTarget, MLRsearch

MIN, MAX = 9001.0, 14_880_952.0
WIDE = (CoarseTarget(1.0, widths=4), CoarseTarget(4.58, widths=2))


@pytest.mark.parametrize("coarse", [(), WIDE, WIDE[::-1], (CoarseTarget(1.0),), (CoarseTarget(3.0, widths=100),)])
@pytest.mark.parametrize("goals", [[NDR, PDR], [RFC2544], [TST009]], ids=["CSIT", "RFC 2544", "TST009"])
def test_any_coarser_targets_lead_to_the_same_bounds_on_a_quiet_sut(goals, coarse):
    results, usual = (
        drive(MLRsearch(goals, MIN, MAX, coarse_targets=coarse_targets), knee(1_234_567.0), 1000)
        for coarse_targets in (coarse, None)
    )
    assert dict(results) == dict(usual)


@pytest.mark.parametrize("seed", range(5))
def test_wide_coarser_targets_end_with_regular_results_on_a_noisy_sut(seed):
    result = drive(MLRsearch([NDR, PDR], MIN, MAX, coarse_targets=WIDE), noisy(1e6, 0.01, seed), 1000)
    assert all(goal_result.regular for goal_result in result.values())


def test_the_purpose_of_a_trial_between_wide_bounds_leaves_open_which_of_them_it_proves():
    controller, sut, purposes = MLRsearch([NDR], MIN, MAX, coarse_targets=WIDE), noisy(1e6, 0.01, 1), set()
    while (trial := controller.next_trial()) is not None:
        purposes.add(str(controller.purpose))
        controller.record(measured(trial.load, trial.duration, sut(trial.load, trial.duration)))
    assert "NDR: prove a bound in 21 s; either is possible" in purposes


@pytest.mark.parametrize("values", [{"duration_sum": 0.0}, {"duration_sum": 1.0, "widths": 0}])
def test_targets_that_make_no_sense_are_refused(values):
    with pytest.raises(SearchError, match="coarse target"):
        CoarseTarget(**values)
