"""Measures two builds alternately until the verdict on every test is clear, and no longer."""

import math
from collections.abc import Callable, Iterable

from lossratio.builds.asking import WHOLE, AsBefore, Wanted
from lossratio.builds.comparison import BLOCK, BothEnds
from lossratio.builds.measuring import NOTHING, Measure
from lossratio.builds.outcome import AbRequest, Build, ComparisonResult, ComparisonVerdict
from lossratio.builds.record import BuildRecord
from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus


def compare_builds(
    request: AbRequest,
    record: BuildRecord,
    measure: Measure,
    show: Callable[[str], None],
    *,
    asks: bool = False,
) -> dict[str, ComparisonResult]:
    """Measures two builds alternately, and compares each test. Measurements that are already in the record count.

    Args:
        request: When the comparison ends.
        record: What was measured until now.
        measure: Measures a build.
        show: Called with a line of text for each measurement.
        asks: Whether the builds are first asked whether they are as in earlier searches. Searches then compare only the
            tests in which a build is not as before.

    Raises:
        BuildError: If a build cannot be measured, or its tests are not the same each time.
        SearchError: If the request is out of range.
    """
    same: dict[str, ComparisonResult] = {}
    wanted = WHOLE
    step = 0
    if asks:
        same, rest, step = _ask(request, record, measure, show)
        if not rest:
            return same
        wanted = Wanted(tests=rest)

    # The first measurement shows which tests there are.
    comparisons = {"": BothEnds(request)}
    first = step
    while build := _next_of(comparisons.values()):
        measured = record.measurement(step, build.value, measure, wanted).measured or NOTHING
        values = measured.values
        if step == first:
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

    compared = {name: comparison.result() for name, comparison in comparisons.items()}
    return {**same, **compared}


def _next_of(comparisons: Iterable[BothEnds]) -> Build | None:
    """The build that all unfinished comparisons name; None: all comparisons have ended."""
    for comparison in comparisons:
        build = comparison.next_build()
        if build is not None:
            return build
    return None


def _ask(
    request: AbRequest, record: BuildRecord, measure: Measure, show: Callable[[str], None]
) -> tuple[dict[str, ComparisonResult], tuple[str, ...], int]:
    """Asks both builds, in one block of alternating measurements, whether they are as before.

    Returns:
        The comparisons of the tests in which both builds were as before each time, the full names of the other tests,
        and the number of measurements.
    """
    answers: dict[str, list[AsBefore]] = {}
    # The tests that were as before so far, and the others.
    asked: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    tests: dict[str, str] = {}
    step = 0
    for step, build in enumerate(BLOCK, start=1):
        wanted = Wanted(asks=True, tests=asked)
        measured = record.measurement(step - 1, build.value, measure, wanted).measured or NOTHING
        tests.update(measured.tests)
        for name, answer in measured.as_before.items():
            answers.setdefault(name, []).append(answer)

        as_before = {
            tests[name]
            for name, answer in measured.as_before.items()
            if answer.probability(request.least_change) <= 1.0 - request.certainty
        }
        as_before -= {tests[name] for name in measured.values}
        asked = tuple(sorted(as_before))
        rest = tuple(sorted({*tests.values()} - as_before))
        show(f"{step:>3}  {build.value}  {len(asked)} of {len(asked) + len(rest)} tests as before")
        if not asked:
            break

    # Record: the comparisons that are over.
    same = {
        name: ComparisonResult(
            ComparisonVerdict.SAME,
            None,
            (-math.inf, math.inf),
            step,
            missed=max(answer.probability(request.least_change) for answer in given),
        )
        for name, given in answers.items()
        if tests[name] in asked
    }
    return same, rest, step
