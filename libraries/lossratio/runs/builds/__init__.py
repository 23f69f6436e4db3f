"""A/B measurements of builds, and the bisection between them."""

from lossratio.runs.builds.bisection import (
    Bisection,
    BisectionResult,
    BisectionVerdict,
    bisect,
    describe_bisection,
)
from lossratio.runs.builds.comparing import compare_builds
from lossratio.runs.builds.comparison import BuildComparison
from lossratio.runs.builds.measuring import BuildBench, InPlace, Measure, Measured, TrialBench
from lossratio.runs.builds.outcome import AbRequest, Build, ComparisonResult, ComparisonVerdict
from lossratio.runs.builds.record import BuildMeasurement, BuildRecord
from lossratio.runs.builds.revisions import revisions_between, subject_of
from lossratio.runs.builds.words import comparison_comment, describe_comparison
