"""Two builds on one testbed, interleaved until every test's verdict is clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lossratio.builds.comparison import Build, BuildComparison, ComparisonResult, ComparisonVerdict
from lossratio.builds.record import BuildRecord
from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus

MeasureBuild = Callable[[Build, BuildRecord], Mapping[str, float]]


@dataclass(frozen=True)
class AbRequest:
    """What is asked for.

    Attributes:
        least_change: The smallest relative difference that matters.
        limit: The most measurements, of both builds together.
    """

    least_change: float
    limit: int


def compare_builds(
    request: AbRequest, record: BuildRecord, measure: MeasureBuild, tell: Callable[[str], None]
) -> dict[str, ComparisonResult]:
    """Measures two builds in turns, and compares each test; what was measured before the record was opened counts.

    Args:
        request: What is asked for.
        record: What was measured so far.
        measure: Sets a build up, and measures it.
        tell: Told about every measurement, in a line.

    Raises:
        BuildError: If a build cannot be measured, or not with the same tests each time.
    """
    comparisons: dict[str, BuildComparison] = {}
    step = 0
    while (build := _next(comparisons, step)) is not None:
        if step == len(record.measurements):
            record.add(build.value, measure(build, record), record.next_directory(build.value))
        values = record.measurements[step].values or {}
        if step == 0:
            comparisons = {
                name: BuildComparison(least_change=request.least_change, limit=request.limit) for name in values
            }
        if values.keys() != comparisons.keys():
            missing = ", ".join(sorted(values.keys() ^ comparisons.keys()))
            raise BuildError(
                f"Measurement {step + 1}, of build {build.value}, has other tests: {missing}.", ExitStatus.FAILED
            )
        for name, comparison in comparisons.items():
            if comparison.next_build() is not None:
                comparison.record(values[name])
        step += 1
        tell(f"{step:>3}  {build.value}  " + "  ".join(f"{value:,.0f} fps" for value in values.values()))
    return {name: comparison.result() for name, comparison in comparisons.items()}


def describe_comparison(name: str, result: ComparisonResult) -> str:
    """A verdict in a line."""
    difference = "" if result.difference is None else f" by {result.difference:+.2%}"
    low, high = result.interval
    interval = "" if low == -high else f" (between {low:+.2%} and {high:+.2%})"
    told = {
        ComparisonVerdict.SAME: "B is the same as A",
        ComparisonVerdict.UNDECIDED: "undecided: B differs from A",
    }.get(result.verdict, f"B is {result.verdict.value} than A")
    return f"{name}: {told}{difference}{interval}, after {result.measurements} measurements."


def _next(comparisons: Mapping[str, BuildComparison], step: int) -> Build | None:
    """What to measure: all comparisons that are not over want the same."""
    if step == 0:
        return BuildComparison().next_build()
    return next((build for each in comparisons.values() if (build := each.next_build()) is not None), None)
