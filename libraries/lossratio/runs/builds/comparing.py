"""Measures two builds alternately until the verdict on every test is clear, and no longer."""

from collections.abc import Callable, Iterable

from lossratio.errors import BuildError
from lossratio.runs.builds.comparison import BothEnds
from lossratio.runs.builds.measuring import NOTHING, Measure
from lossratio.runs.builds.outcome import AbRequest, Build, ComparisonResult
from lossratio.runs.builds.record import BuildRecord
from lossratio.values import ExitStatus


def compare_builds(
    request: AbRequest, record: BuildRecord, measure: Measure, show: Callable[[str], None]
) -> dict[str, ComparisonResult]:
    """Measures two builds alternately, and compares each test. Measurements that are already in the record count.

    Args:
        request: When the comparison ends.
        record: What was measured until now.
        measure: Measures a build.
        show: Called with a line of text for each measurement.

    Raises:
        BuildError: If a build cannot be measured, or its tests are not the same each time.
        SearchError: If the request is out of range.
    """
    # The first measurement shows which tests there are.
    comparisons = {"": BothEnds(request)}
    step = 0
    while build := _next_of(comparisons.values()):
        measured = record.measurement(step, build.value, measure).measured or NOTHING
        values = measured.values
        if step == 0:
            comparisons = {name: BothEnds(request) for name in values}
        if values.keys() != comparisons.keys():
            missing = ", ".join(sorted(values.keys() ^ comparisons.keys()))
            raise BuildError(
                f"Measurement {step + 1}, of build {build.value}, does not have the tests of the first one. These are "
                f"in only one of the two: {missing}. Run the same tests with both builds.",
                ExitStatus.FAILED,
            )

        for name, comparison in comparisons.items():
            comparison.record(values[name])
        step += 1
        rates = "  ".join(f"{value.least:,.0f} fps" for value in values.values())
        show(f"{step:>3}  {build.value}  {rates}")

    return {name: comparison.result() for name, comparison in comparisons.items()}


def _next_of(comparisons: Iterable[BothEnds]) -> Build | None:
    """The build that all unfinished comparisons name; None: all comparisons have ended."""
    return next(filter(None, (comparison.next_build() for comparison in comparisons)), None)
