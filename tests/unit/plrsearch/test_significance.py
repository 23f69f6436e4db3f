import numpy as np
import pytest
from scipy import stats

from lossratio.plrsearch.estimate.significance import excess_kurtosis, rank_correlation, skewness

RNG = np.random.default_rng(1)
SAMPLES = {
    "normal": RNG.normal(size=200),
    "skewed": RNG.exponential(size=50),
    "heavy tails": RNG.standard_t(2, size=500),
    "two bands": np.repeat([-1.0, 1.0], 20) + 0.1 * RNG.normal(size=40),
    "few, with ties": np.round(RNG.normal(size=20)),
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_findings_are_those_of_scipy(sample):
    skew, kurtosis, order = skewness(sample), excess_kurtosis(sample), rank_correlation(sample[1:], sample[:-1])
    known_skew, known_kurtosis = stats.skewtest(sample), stats.kurtosistest(sample)
    known_order = stats.spearmanr(sample[1:], sample[:-1])
    assert skew.value == pytest.approx(stats.skew(sample))
    assert skew.probability == pytest.approx(known_skew.pvalue)
    assert kurtosis.value == pytest.approx(stats.kurtosis(sample))
    assert kurtosis.probability == pytest.approx(known_kurtosis.pvalue)
    assert (skew.above, kurtosis.above) == (known_skew.statistic > 0.0, known_kurtosis.statistic > 0.0)
    assert (order.value, order.probability) == pytest.approx((known_order.statistic, known_order.pvalue))


def test_a_perfect_order_is_as_improbable_as_can_be():
    assert rank_correlation(np.arange(30.0), -(np.arange(30.0) ** 3)).probability < 1e-100
