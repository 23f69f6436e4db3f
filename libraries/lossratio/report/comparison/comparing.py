"""Pairs the results of two sets of runs by test and quantity, and has each pair judged."""

from collections.abc import Iterator, Mapping, Sequence

from lossratio import results
from lossratio.checked_arguments import NotNegative, checked
from lossratio.errors import ReportError
from lossratio.report.comparison.findings import compared_findings
from lossratio.report.comparison.quantity import ComparedQuantity, Comparison
from lossratio.report.comparison.verdicts import judged
from lossratio.report.run import Run
from lossratio.units import and_more

LEAST_CHANGE = 0.01
"""Smaller relative changes do not count. The distance between the bounds of one search is half of this value."""
_MOST_PAIRS = 3
_NOT_IN_A, _NOT_IN_B = "not in A", "not in B"


@checked(ReportError)
def compare(
    before: Sequence[Run], after: Sequence[Run], *, least_change: NotNegative = LEAST_CHANGE
) -> Comparison:
    """Compares two sets of runs: older and newer runs.

    Args:
        before: The older runs.
        after: The newer runs.
        least_change: Smaller changes, relative to the earlier value, do not count.

    Raises:
        ReportError: If an argument makes no sense, or the runs are from different testbeds, have no results, or have no
            test in common.
    """
    runs = (*before, *after)
    testbed = _testbed_of(runs)
    compared = list(_compared(before, after))
    if all(one.note in (_NOT_IN_A, _NOT_IN_B) for one in compared):
        raise ReportError(
            f"There is nothing to compare: the runs have no test in common.{_likely_pairs(compared)}"
        )
    return Comparison(testbed, tuple(judged(compared, least_change)), tuple(_problems(runs)))


def _likely_pairs(compared: Sequence[ComparedQuantity]) -> str:
    """Tests of different names that measure the same, and how to compare them, after a blank; empty: there are none."""
    by_meaning: dict[str, str] = {}
    for one in compared:
        for finding in one.findings_before:
            by_meaning.setdefault(results.digest_of(finding), one.test)

    pairs: dict[str, None] = {}
    for one in compared:
        for finding in one.findings_after:
            alike = by_meaning.get(results.digest_of(finding))
            if alike is not None:
                pairs[f"{alike} in A and {one.test} in B"] = None
    if not pairs:
        return ""
    shown = ", ".join(list(pairs)[:_MOST_PAIRS])
    more = and_more(max(0, len(pairs) - _MOST_PAIRS))
    return (
        f" These measure the same: {shown}{more}. Give both suites the same Id and both tests the same name, and "
        "measure again."
    )


def _testbed_of(runs: Sequence[Run]) -> str:
    testbeds = {result.conditions.testbed.name for run in runs for result in run.results}
    if not testbeds:
        raise ReportError(
            "There are no results to compare. 'lossratio report DIR' shows why nothing was measured."
        )
    if len(testbeds) != 1:
        named = ", ".join(sorted(testbeds))
        raise ReportError(
            "Only results from one testbed can be compared, because even identical testbeds "
            f"differ. These come from: {named}. Name runs from one testbed."
        )
    return testbeds.pop()


def _problems(runs: Sequence[Run]) -> Iterator[str]:
    """What is missing in some runs, with their paths."""
    for run in runs:
        # Messages about files already contain their paths.
        yield from run.problems
        yield from (
            f"{run.path}: {' '.join(lack.split())}" for lack in run.lacks[len(run.problems) :]
        )


def _compared(before: Sequence[Run], after: Sequence[Run]) -> Iterator[ComparedQuantity]:
    """The quantities of all tests, each with its findings of both sides, without verdicts."""
    new_results = _results(after)
    old_results = _without_themselves(_results(before), new_results)
    rows: dict[int, list[results.Finding]] = {}
    for run in (*before, *after):
        of_run: dict[int, list[results.Finding]] = {}
        for row in run.rows:
            of_run.setdefault(id(row.result), []).append(row)
        rows |= of_run

    old, new = results.apart_by_device(
        _by_quantity(old_results, rows), _by_quantity(new_results, rows)
    )

    empty_in_a = _unmeasured(before, "A")
    empty_in_b = _unmeasured(after, "B")
    for number, key in enumerate(dict.fromkeys((*old, *new)), start=1):
        test, _ = key
        absent = (empty_in_a.get(test, _NOT_IN_A), empty_in_b.get(test, _NOT_IN_B))
        yield compared_findings(number, key, old.get(key, []), new.get(key, []), absent)


def _results(runs: Sequence[Run]) -> list[results.TestResult]:
    """The results of the runs without repetitions: a copy of a run and the resumed run share most of their results."""
    by_test: dict[str, list[results.TestResult]] = {}
    for result in (result for run in runs for result in run.results):
        of_test = by_test.setdefault(result.test.full_name, [])
        if result not in of_test:
            of_test.append(result)
    return [result for of_test in by_test.values() for result in of_test]


def _without_themselves(
    old: Sequence[results.TestResult], new: Sequence[results.TestResult]
) -> list[results.TestResult]:
    """The old results without those that would be compared with themselves, if their test has other results."""
    rest = [result for result in old if result not in new]
    tests_with_others = {result.test.full_name for result in rest}
    return [
        result for result in old if result in rest or result.test.full_name not in tests_with_others
    ]


def _by_quantity(
    measured: Sequence[results.TestResult], rows: Mapping[int, Sequence[results.Finding]]
) -> dict[tuple[str, str], list[results.Finding]]:
    """The rows of results by test and quantity; `rows` has them by the identity of their result."""
    by_quantity: dict[tuple[str, str], list[results.Finding]] = {}
    for result in measured:
        for row in rows.get(id(result), ()):
            by_quantity.setdefault((result.test.full_name, row.quantity), []).append(row)
    return by_quantity


def _unmeasured(runs: Sequence[Run], side: str) -> dict[str, str]:
    """Why a side has no result of some tests, by their full names."""
    skipped = {
        test.full_name: f"{alike.what} in {side}"
        for run in runs
        for alike in run.skipped
        for test in alike.tests
    }
    return skipped | {
        test.name: f"{side} measured nothing" for run in runs for test in run.unmeasured
    }
