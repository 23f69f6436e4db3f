"""Whether two sets of results differ, and by how much: the statistics of a comparison.

Only the numbers of results select the statistical test, never their values:

* five or more on both sides: Mann-Whitney's rank test, as rates of software are seldom normally distributed,
* two or more on both sides: Welch's t test,
* one on one side, three or more on the other: Student's t test with the larger side's spread,
* fewer: no test, as nothing distinguishes a change from the spread of repeated runs.
"""

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RANK_TEST_LEAST = 5
"""Least number of results on both sides for a comparison of ranks."""

ONE_SIDED_LEAST = 3
"""Least number of results on one side if the other side has only one; their spread stands for both sides."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Sample:
    """Results of repeated runs of one test."""

    values: tuple[float, ...]
    """The values, in any unit."""

    @property
    def mean(self) -> float:
        """Mean of the values; NaN if there are no values."""
        return statistics.fmean(self.values) if self.values else math.nan

    @property
    def stdev(self) -> float | None:
        """Sample standard deviation; None: fewer than two values."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Difference:
    """The difference of two samples."""

    change: float
    """Difference of the means over the mean before; infinite if only the mean before is zero."""
    interval: tuple[float, float] | None
    """Confidence interval (95 %) of the change; None: too few values, or the mean before is zero."""
    test: str | None
    """Name of the statistical test; None: too few values for a test."""
    p_value: float | None
    """Probability of a difference at least as large if nothing had changed; None: too few values for a test."""


def difference(before: Sample, after: Sample) -> Difference:
    """Compares two samples, neither of which may be empty."""
    change = _relative(after.mean - before.mean, before.mean)
    sizes = sorted((len(before.values), len(after.values)))
    if sizes[0] >= RANK_TEST_LEAST:
        # Imported here and below because importing scipy.stats takes a second, and most reports do not need it.
        from scipy import stats

        ranked = stats.mannwhitneyu(before.values, after.values, alternative="two-sided")
        test, p_value = "Mann-Whitney", float(ranked.pvalue)
    elif sizes[0] >= 2:
        test, p_value = "Welch", _t_test(before, after, equal_variances=False)
    elif sizes[1] >= ONE_SIDED_LEAST:
        test, p_value = "Student", _t_test(before, after, equal_variances=True)
    else:
        return Difference(change, None, None, None)
    return Difference(change, _interval(before, after), test, p_value)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts the probabilities of many tests, so that few of the significant differences are wrong.

    Benjamini and Hochberg's procedure: of all tests with an adjusted probability below 0.05, at most 5 % are expected
    to be wrong.
    """
    from scipy import stats

    return [float(value) for value in stats.false_discovery_control(p_values)] if p_values else []


def _relative(change: float, before: float) -> float:
    if before == 0.0:
        return 0.0 if change == 0.0 else math.copysign(math.inf, change)
    return change / abs(before)


def _t_test(before: Sample, after: Sample, *, equal_variances: bool) -> float:
    if not _have_spread(before, after):
        # Without spread, every difference is significant, and the t statistic would divide by zero.
        return 1.0 if before.mean == after.mean else 0.0
    return float(_tested(before, after, equal_variances).pvalue)


def _tested(one: Sample, other: Sample, equal_variances: bool) -> Any:
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns if all values of one side are equal. Policed rates often are, and the test is precise enough.
        warnings.simplefilter("ignore", RuntimeWarning)
        return stats.ttest_ind(one.values, other.values, equal_var=equal_variances)


def _have_spread(*samples: Sample) -> bool:
    """Whether repeated values differ by more than rounding errors."""
    return any((sample.stdev or 0.0) > _ROUNDING * abs(sample.mean) for sample in samples)


def _interval(before: Sample, after: Sample) -> tuple[float, float] | None:
    """The t test's confidence interval of the difference of the means, relative to the mean before."""
    if before.mean == 0.0:
        return None
    if not _have_spread(before, after):
        change = _relative(after.mean - before.mean, before.mean)
        return change, change
    equal_variances = min(len(before.values), len(after.values)) < 2
    interval = _tested(after, before, equal_variances).confidence_interval(0.95)
    return float(interval.low) / abs(before.mean), float(interval.high) / abs(before.mean)
