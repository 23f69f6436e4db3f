"""A/B measurements of builds, and the bisection between them."""

from lossratio.builds.bisection import (
    Bisection,
    BisectionResult,
    BisectionVerdict,
    bisect,
    describe_bisection,
)
from lossratio.builds.comparing import compare_builds
from lossratio.builds.comparison import BuildComparison
from lossratio.builds.measuring import BuildBench, InPlace, Measure, Measured, TrialBench
from lossratio.builds.outcome import AbRequest, Build, ComparisonResult, ComparisonVerdict
from lossratio.builds.record import BuildMeasurement, BuildRecord
from lossratio.builds.revisions import revisions_between, subject_of
from lossratio.builds.words import comparison_comment, describe_comparison
