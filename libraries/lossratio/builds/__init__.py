"""A/B measurements of builds, and the bisection between them."""

from lossratio.builds.ab import AbRequest, compare_builds, describe_comparison
from lossratio.builds.bisection import Bisection, BisectionResult, BisectionVerdict
from lossratio.builds.comparison import Build, BuildComparison, ComparisonResult, ComparisonVerdict
from lossratio.builds.measuring import BuildBench, set_up_build
from lossratio.builds.record import BuildRecord
from lossratio.builds.revisions import bisect, describe_bisection, revisions_between, subject_of

__all__ = [
    "AbRequest",
    "Bisection",
    "BisectionResult",
    "BisectionVerdict",
    "Build",
    "BuildBench",
    "BuildComparison",
    "BuildRecord",
    "ComparisonResult",
    "ComparisonVerdict",
    "bisect",
    "compare_builds",
    "describe_bisection",
    "describe_comparison",
    "revisions_between",
    "set_up_build",
    "subject_of",
]
