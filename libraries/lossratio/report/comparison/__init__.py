"""Compares two sets of runs of the same tests: regressions, progressions and undecided; as a table, or JUnit cases."""

from lossratio.report.comparison.comparing import LEAST_CHANGE, compare
from lossratio.report.comparison.differences import (
    ONE_SIDED_LEAST,
    RANK_TEST_LEAST,
    SIGNIFICANCE,
    Difference,
    Sample,
    adjusted,
    difference,
    difference_at_most,
    real_change,
)
from lossratio.report.comparison.quantity import SEEMING, ComparedQuantity, Comparison
from lossratio.report.comparison.words import (
    comparison_cases,
    comparison_markdown,
    comparison_table,
    describe_quantity,
    quantity_in_words,
    sentence_of,
    summary_of,
)
from lossratio.report.verdict import Verdict
