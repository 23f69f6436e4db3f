import pytest

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, GoalResult, IrregularReason, SearchGoal, SearchResult
from lossratio.simulation import ConstantLoss, Overload, PerformanceSpectrum, RareStalls, SharpKnee, SimulatedMeasurer
from lossratio_study.search import Certificate, certificate


def said(*goal_results):
    return SearchResult(goal_results, finished=True, elapsed=0.0, trials=0)


def regular(goal, lower, upper):
    return GoalResult(goal, True, lower, upper, lower)


def of(sut, **arguments):
    return lambda seed: SimulatedMeasurer(sut, seed=seed, **arguments)


QUIET = SharpKnee(capacity=500e3)


@pytest.mark.parametrize(
    ("goal", "elapsed", "trials"),
    [
        (NDR, 22.0, 22),
        # One full-length trial shows the lower bound, one short trial the upper one.
        (RFC2544, 61.0, 2),
        # A lossless minute is the lower bound; 61 lossy seconds are sooner done than two lossy minutes.
        (TST009, 121.0, 62),
        (SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01), 6.0, 6),
    ],
)
def test_a_quiet_sut_is_proved_in_the_least_time_that_the_goal_allows(goal, elapsed, trials):
    assert certificate(said(regular(goal, 499e3, 501e3)), of(QUIET)) == Certificate(elapsed, trials, proved=True)


def test_a_load_that_bounds_two_goals_is_measured_once():
    result = said(regular(NDR, 499e3, 501e3), regular(PDR, 501e3, 503e3))
    assert certificate(result, of(QUIET)) == Certificate(33.0, 33, proved=True)


def test_a_collapse_lets_both_goals_share_their_bounds():
    sut = SharpKnee(capacity=500e3, overload=Overload(dip=0.05))
    result = said(regular(NDR, 499e3, 501e3), regular(PDR, 499e3, 501e3))
    assert certificate(result, of(sut)) == Certificate(22.0, 22, proved=True)


def test_overhead_costs_time_and_saves_trials_where_it_counts():
    result = said(regular(NDR, 499e3, 501e3))
    assert certificate(result, of(QUIET, overhead=0.5)) == Certificate(33.0, 22, proved=True)
    counted = certificate(result, of(QUIET, overhead=0.5, count_overhead=True))
    assert counted == Certificate(7 * 1.5 + 8 * 1.5, 15, proved=True)


def test_an_irregular_results_one_bound_is_proved_alone():
    at_max = GoalResult(NDR, False, 1e6, 1e6, 1e6, IrregularReason.MAX_LOAD_IS_LOWER_BOUND)
    assert certificate(said(at_max), of(ConstantLoss())) == Certificate(11.0, 11, proved=True)
    at_min = GoalResult(RFC2544, False, None, 1e3, None, IrregularReason.MIN_LOAD_IS_UPPER_BOUND)
    assert certificate(said(at_min), of(ConstantLoss(loss_ratio=0.1))) == Certificate(1.0, 1, proved=True)


@pytest.mark.whole
def test_long_trials_prove_a_bound_that_short_ones_cannot_show():
    # Stalls are as good as certain in a minute, and rare in a second.
    sut = RareStalls(capacity=1e6, interval=4.0, stall=0.01)
    assert certificate(said(regular(TST009, 1e3, 2e3)), of(sut)).proved is False
    upper = GoalResult(TST009, False, None, 2e3, None, IrregularReason.STOPPED_EARLY)
    assert certificate(said(upper), of(sut)) == Certificate(120.0, 2, proved=True)


@pytest.mark.whole
def test_noise_makes_a_proof_longer_but_never_much_longer_than_the_duration_sums():
    sut = PerformanceSpectrum(capacity=500e3, jitter=0.005)
    result = said(regular(NDR, 499e3, 501e3))
    results = [certificate(result, lambda seed, base=100 * base: of(sut)(base + seed)) for base in range(20)]
    assert sum(proof.elapsed for proof in results) / len(results) > 22.0
    assert max(proof.elapsed for proof in results) <= 42.0


def test_a_wrong_result_is_not_proved():
    assert not certificate(said(regular(NDR, 501e3, 503e3)), of(QUIET)).proved
    assert not certificate(said(regular(NDR, 497e3, 499e3)), of(QUIET)).proved


def test_the_same_seeds_give_the_same_certificate():
    sut = PerformanceSpectrum(capacity=500e3, jitter=0.01)
    result = said(regular(NDR, 499e3, 501e3), regular(PDR, 501e3, 503e3))
    assert certificate(result, of(sut)) == certificate(result, of(sut))
