"""Comparing builds of a SUT whose measurements are noisy: which of two is faster, and which revision changed it.

Both are ask/tell objects without any I/O: whoever uses them builds, measures and keeps what was measured.
"""

from lossratio.builds.bisection import Bisection, BisectionResult, BisectionVerdict
from lossratio.builds.comparison import Build, BuildComparison, ComparisonResult, ComparisonVerdict

__all__ = [
    "Bisection",
    "BisectionResult",
    "BisectionVerdict",
    "Build",
    "BuildComparison",
    "ComparisonResult",
    "ComparisonVerdict",
]
