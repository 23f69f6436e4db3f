import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lossratio.errors import SearchError
from lossratio.runs.builds import AbRequest, Build, BuildComparison, ComparisonVerdict
from lossratio.runs.builds.outcome import ComparisonResult
from lossratio.runs.builds.words import describe_comparison


def compare(measure, **settings):
    """Compares builds whose throughput is a function of build and number of measurement."""
    comparison = BuildComparison(AbRequest(**settings))
    number = 0
    while (build := comparison.next_build()) is not None:
        comparison.record(measure(build, number))
        number += 1
    return comparison.result()


def noisy(difference, noise, seed):
    rng = np.random.default_rng(seed)
    return lambda build, _: (1.0 + difference * (build is Build.B)) * (1.0 + noise * rng.standard_normal())


def test_builds_are_interleaved_so_that_a_steady_drift_is_no_difference():
    def drifting(build, number):
        return 1e6 * (1.0 - 0.001 * number) * (1.02 if build is Build.B else 1.0)

    assert compare(drifting).difference == pytest.approx(0.02, abs=0.002)


def test_eight_pairs_suffice_where_nothing_is_random():
    result = compare(lambda build, _: 950.0 if build is Build.B else 1000.0)
    assert (result.verdict, result.measurements) == (ComparisonVerdict.SLOWER, 16)
    assert result.interval == pytest.approx((-0.05, -0.05))


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (949.0, ComparisonVerdict.SLOWER),
        (951.0, ComparisonVerdict.SAME),
        (1049.0, ComparisonVerdict.SAME),
        (1051.0, ComparisonVerdict.FASTER),
    ],
)
def test_the_least_change_is_relative_to_the_first_build(value, verdict):
    result = compare(lambda build, _: value if build is Build.B else 1000.0, least_change=0.05)
    assert (result.verdict, result.measurements) == (verdict, 16)


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [(0.0, ComparisonVerdict.SAME), (-0.02, ComparisonVerdict.SLOWER), (0.03, ComparisonVerdict.FASTER)],
)
def test_the_verdict_is_right_in_spite_of_noise(difference, verdict):
    results = [compare(noisy(difference, 0.003, seed)) for seed in range(100)]
    assert sum(result.verdict is verdict for result in results) >= 97
    assert np.mean([result.measurements for result in results]) < 24


@pytest.mark.whole
def test_looking_after_every_pair_raises_no_more_false_alarms_than_was_asked_for():
    results = [compare(noisy(0.0, 0.01, seed), limit=60, least_change=0.001) for seed in range(200)]
    alarms = sum(result.verdict in (ComparisonVerdict.FASTER, ComparisonVerdict.SLOWER) for result in results)
    assert alarms <= 0.05 * len(results) + 3 * math.sqrt(0.05 * 0.95 * len(results))


def stalled(difference, seed):
    """Of a busy machine: one measurement in twenty lost up to 60 %."""
    rng, usual = np.random.default_rng(seed), noisy(difference, 0.03, seed)
    return lambda build, number: usual(build, number) * (rng.uniform(0.4, 0.9) if rng.random() < 0.05 else 1.0)


@pytest.mark.whole
def test_stalls_are_no_difference_and_hide_none():
    same = [compare(stalled(0.0, seed), limit=60, least_change=0.001).verdict for seed in range(200)]
    alarms = sum(verdict in (ComparisonVerdict.FASTER, ComparisonVerdict.SLOWER) for verdict in same)
    assert alarms <= 0.05 * len(same)
    slower = [compare(stalled(-0.05, seed), limit=200) for seed in range(40)]
    assert all(result.verdict is ComparisonVerdict.SLOWER for result in slower)
    assert np.mean([result.measurements for result in slower]) < 100


def test_a_change_that_is_not_clear_at_the_limit_is_undecided():
    result = compare(noisy(0.0, 0.2, seed=1), limit=17)
    assert (result.verdict, result.measurements) == (ComparisonVerdict.UNDECIDED, 16)


def test_a_build_that_forwards_nothing_is_slower():
    result = compare(lambda build, _: 0.0 if build is Build.B else 1000.0)
    assert (result.verdict, result.difference) == (ComparisonVerdict.SLOWER, -1.0)


def test_a_first_build_that_forwards_nothing_is_no_basis_for_a_share():
    with pytest.raises(SearchError, match="Build A forwards nothing"):
        compare(lambda build, _: 1000.0 if build is Build.B else 0.0)


@given(st.lists(st.floats(0.5, 1.5), min_size=8, max_size=24))
def test_the_unit_of_the_throughput_does_not_matter(values):
    def run(scale):
        comparison = BuildComparison(AbRequest(limit=24))
        for value in values:
            if comparison.next_build() is not None:
                comparison.record(value * scale)
        return comparison.result()

    assert run(1.0).interval == pytest.approx(run(2.0**20).interval)


def test_a_limit_that_is_too_low_is_an_error():
    with pytest.raises(SearchError, match="needs at least 16 measurements, not 15"):
        BuildComparison(AbRequest(limit=15))


def test_a_comparison_that_has_ended_takes_no_measurement():
    comparison = BuildComparison(AbRequest(limit=16))
    for _ in range(16):
        comparison.record(1.0)
    with pytest.raises(SearchError, match="comparison has ended"):
        comparison.record(1.0)


@pytest.mark.whole
def test_pairs_are_called_different_no_more_often_than_promised_whatever_the_noise():
    """Stalls that take half of the throughput, and a machine that gets slower and slower."""
    wrong, outside = 0, 0
    for seed in range(200):
        random = Random(seed)
        noise = [0.04 * random.gauss(0, 1) - 0.5 * (random.random() < 0.1) - 0.002 * place for place in range(120)]
        result = compare(lambda _, number, noise=noise: 1.0 + noise[number], limit=120)
        wrong += result.verdict in (ComparisonVerdict.FASTER, ComparisonVerdict.SLOWER)
        outside += not result.interval[0] <= 0.0 <= result.interval[1]
    # One of twenty is promised at most, 3 and 10; 8 and 19 come once in a hundred such tests.
    assert wrong <= 18
    assert outside <= 18


@pytest.mark.whole
def test_pairs_find_a_small_difference_behind_noise_and_stalls():
    found = 0
    for seed in range(20):
        random = Random(seed)
        noise = [0.02 * random.gauss(0, 1) - 0.3 * (random.random() < 0.03) for _ in range(400)]
        result = compare(
            lambda build, number, noise=noise: (1.0 - 0.01 * (build is Build.B)) * (1.0 + noise[number]), limit=400
        )
        found += result.verdict is ComparisonVerdict.SLOWER
    assert found >= 12


def test_the_order_of_pairs_is_drawn_and_the_same_when_it_is_drawn_again():
    orders = []
    for _ in range(2):
        comparison = BuildComparison(AbRequest(limit=400))
        order = []
        for number in range(100):
            order.append(comparison.next_build())
            comparison.record(1.0 + 0.3 * (number % 3))
        orders.append(order)
    assert orders[0] == orders[1]
    firsts = orders[0][::2]
    assert 15 <= firsts.count(Build.A) <= 35
    assert all(one is not other for one, other in zip(firsts, orders[0][1::2], strict=True))


def test_an_interval_around_zero_is_shown():
    result = ComparisonResult(ComparisonVerdict.SAME, 0.0, (-0.004, 0.004), 8)
    assert "(change between -0.40 % and +0.40 %)" in describe_comparison("64B NDR", result)


def test_values_without_spread_have_no_interval():
    same = ComparisonResult(ComparisonVerdict.SAME, 0.0, (0.0, 0.0), 8)
    assert describe_comparison("64B NDR", same) == (
        "64B NDR: B is the same as A: it differs by +0.00 % (no interval: the values do not vary), "
        "after 8 measurements."
    )
    slower = ComparisonResult(ComparisonVerdict.SLOWER, -0.0667, (-0.0667, -0.0667), 8)
    assert "B is slower than A by 6.67 % (no interval:" in describe_comparison("64B NDR", slower)
    faster = ComparisonResult(ComparisonVerdict.FASTER, 0.0667, (0.0667, 0.0667), 8)
    assert "B is faster than A by 6.67 % (no interval:" in describe_comparison("64B NDR", faster)
    from_zero = ComparisonResult(ComparisonVerdict.FASTER, math.inf, (0.1, math.inf), 8)
    assert "B is faster than A, which passes nothing, after" in describe_comparison("64B NDR", from_zero)


def test_an_interval_without_an_end_is_not_shown():
    comparison = BuildComparison(AbRequest())
    for value in (1.0, 2.0, 3.0, 4.0):
        comparison.record(value)
    result = comparison.result()
    assert math.isinf(result.interval[1])
    assert "between" not in describe_comparison("64B NDR", result)
