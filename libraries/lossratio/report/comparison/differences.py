"""The difference of two samples of values, and whether chance explains it."""

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lossratio import results
from lossratio.values import Unit

RANK_TEST_LEAST = 5
"""Minimum number of results on both sides for a comparison of ranks."""
ONE_SIDED_LEAST = 3
"""Minimum number of results on one side if the other side has only one. Their spread represents both sides."""
SIGNIFICANCE = 0.05
"""Adjusted probability below which a difference counts as real."""
NO_SPREAD = "no spread"
"""In the place of a test's name: the values of each side are all equal."""


@dataclass(frozen=True)
class Sample:
    """Results of repeated runs of one test."""

    values: tuple[float, ...]
    """The values, in any unit."""

    @property
    def mean(self) -> float:
        """Mean of the values; NaN if there are no values."""
        if self.values:
            return statistics.fmean(self.values)
        return math.nan

    @property
    def stdev(self) -> float | None:
        """Sample standard deviation; None: fewer than two values."""
        if len(self.values) > 1:
            return statistics.stdev(self.values)
        return None


@dataclass(frozen=True)
class Difference:
    """The difference of two samples."""

    change: float
    """Difference of the means, relative to the mean before; infinite if only the mean before is zero."""
    interval: tuple[float, float] | None
    """Confidence interval (95 %) of the relative change; None: too few values, no spread, or a mean of zero before."""
    test: str | None
    """Name of the statistical test; ``no spread``: the values of each side are all equal, so no test was made; None:
    too few values for a test."""
    p_value: float | None
    """Probability of a difference at least as large if nothing had changed; without spread, 1 for equal sides,
    otherwise 0; None: too few values for a test."""
    is_least: bool = False
    """Whether the larger values are only lower bounds, so that the change may be larger. Then there is no interval."""


def difference(before: Sample, after: Sample) -> Difference:
    """Compares two samples, neither of which may be empty.

    Only the numbers of results select the statistical test, never the values:

    * five or more on both sides: Mann-Whitney's rank test, because rates of software are rarely normally distributed,
    * two or more on both sides: Welch's t test,
    * one on one side, three or more on the other: Student's t test with the larger side's spread,
    * fewer: no test, because nothing distinguishes a change from the spread of repeated runs.
    """
    change = _relative(after.mean - before.mean, before.mean)
    fewer, more = sorted((len(before.values), len(after.values)))
    if fewer >= RANK_TEST_LEAST:
        test = "Mann-Whitney"
        # Imported here and below because importing scipy.stats takes a second, and most reports do not need it.
        from scipy import stats

        p_value = float(stats.mannwhitneyu(before.values, after.values).pvalue)
    elif fewer >= 2:
        test = "Welch"
        p_value = _t_test(before, after, equal_variances=False)
    elif more >= ONE_SIDED_LEAST:
        test = "Student"
        p_value = _t_test(before, after, equal_variances=True)
    else:
        return Difference(change, None, None, None)

    if fewer < RANK_TEST_LEAST and not _have_spread(before, after):
        test = NO_SPREAD

    return Difference(change, _interval(before, after), test, p_value)


def difference_at_most(
    before: Sequence[results.Ends], after: Sequence[results.Ends], unit: Unit, plain: Difference
) -> Difference | None:
    """The difference of the upper ends of values, if frames are missing that the SUT did not lose; None: not known.

    Args:
        before: The ranges of the values before.
        after: The ranges of the values after.
        unit: The unit of the values.
        plain: The difference of the values as they are.
    """
    if all(one.least == one.most for one in (*before, *after)):
        return plain

    most_before = results.at_most(before, unit)
    most_after = results.at_most(after, unit)
    if not most_before or not most_after:
        return None

    # A value that is only a lower bound may be larger, and so may its distance from known values.
    before_has_no_end = any(map(math.isinf, most_before))
    after_has_no_end = any(map(math.isinf, most_after))
    if before_has_no_end and after_has_no_end:
        return None
    if before_has_no_end:
        return replace(plain, change=-math.inf)
    if after_has_no_end:
        return replace(plain, change=math.inf)

    return difference(Sample(tuple(most_before)), Sample(tuple(most_after)))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts the probabilities of many tests, so that few of the significant differences are wrong.

    Benjamini and Hochberg's procedure: of all tests with an adjusted probability below 0.05, at most 5 % are expected
    to be wrong.
    """
    from scipy import stats

    if p_values:
        return [float(value) for value in stats.false_discovery_control(p_values)]
    return []


def real_change(found: Difference | None, least_change: float) -> float | None:
    """A change that is large enough to matter and that chance does not explain; None: there is none, or not known.

    Args:
        found: The difference of two samples; None: there is none.
        least_change: Smaller changes, relative to the mean before, do not matter.
    """
    if (
        found is None
        or found.p_value is None
        or found.p_value >= SIGNIFICANCE
        or abs(found.change) < least_change
    ):
        return None
    return found.change


def _relative(change: float, before: float) -> float:
    if before == 0.0:
        if change == 0.0:
            return 0.0
        return math.copysign(math.inf, change)
    return change / abs(before)


def _t_test(before: Sample, after: Sample, *, equal_variances: bool) -> float:
    if not _have_spread(before, after):
        # Without spread, every difference is significant, and the t statistic would divide by zero.
        if before.mean == after.mean:
            return 1.0
        return 0.0
    return float(_tested(before, after, equal_variances).pvalue)


def _interval(before: Sample, after: Sample) -> tuple[float, float] | None:
    """The t test's confidence interval of the difference of the means, relative to the mean before."""
    if before.mean == 0.0 or not _have_spread(before, after):
        return None
    equal_variances = min(len(before.values), len(after.values)) < 2
    interval = _tested(after, before, equal_variances).confidence_interval(0.95)
    low, high = (float(end) / abs(before.mean) for end in (interval.low, interval.high))
    # No value falls by more than all of it.
    return max(-1.0, low), max(-1.0, high)


def _tested(one: Sample, other: Sample, equal_variances: bool) -> Any:
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns if all values of one side are equal. Policed rates often are, and the test is precise enough.
        warnings.simplefilter("ignore", RuntimeWarning)
        return stats.ttest_ind(one.values, other.values, equal_var=equal_variances)


def _have_spread(*samples: Sample) -> bool:
    return any((sample.stdev or 0.0) > results.ROUNDING * abs(sample.mean) for sample in samples)
