"""Pairs the results of two sets of runs by test and quantity, and has each pair judged."""

from collections.abc import Iterator, Sequence

from lossratio import results
from lossratio.errors import ReportError
from lossratio.report.comparison.findings import compared_findings
from lossratio.report.comparison.quantity import ComparedQuantity, Comparison
from lossratio.report.comparison.verdicts import judged
from lossratio.report.failures import FAILED
from lossratio.report.run import Run, first_of
from lossratio.values import NotNegative, checked

LEAST_CHANGE = 0.01
"""Smaller relative changes do not count. The distance between the bounds of one search is half of this value."""
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
    named = first_of(list(pairs))
    return (
        f" These measure the same thing: {named}. Give both suites the same Id and both tests the same name, and "
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
        yield from (f"{run.path}: {lack}" for lack in run.lacks[len(run.problems) :])


def _compared(before: Sequence[Run], after: Sequence[Run]) -> Iterator[ComparedQuantity]:
    """The quantities of all tests, each with its findings of both sides, without verdicts."""
    new_rows = _rows(after)
    old_rows = _without_themselves(_rows(before), new_rows)
    old, new = results.apart_by_device(_by_quantity(old_rows), _by_quantity(new_rows))
    empty_in_a = _unmeasured(before, "A")
    empty_in_b = _unmeasured(after, "B")
    for number, key in enumerate(dict.fromkeys((*old, *new)), start=1):
        test, _ = key
        absent = (empty_in_a.get(test, _NOT_IN_A), empty_in_b.get(test, _NOT_IN_B))
        yield compared_findings(number, key, old.get(key, []), new.get(key, []), absent)


def _rows(runs: Sequence[Run]) -> list[results.Finding]:
    """The rows of the runs without repetitions: a copy of a run and the resumed run share most of their results."""
    rows: list[results.Finding] = []
    known: dict[str, list[results.TestResult]] = {}
    for run in runs:
        rows += (
            row for row in run.rows if row.result not in known.get(row.result.test.full_name, ())
        )
        for result in run.results:
            known.setdefault(result.test.full_name, []).append(result)
    return rows


def _without_themselves(
    old: Sequence[results.Finding], new: Sequence[results.Finding]
) -> list[results.Finding]:
    """The old rows without those that would be compared with themselves, if their test has other results."""
    measured: dict[str, list[results.TestResult]] = {}
    for row in new:
        measured.setdefault(row.result.test.full_name, []).append(row.result)

    def is_other(row: results.Finding) -> bool:
        return row.result not in measured.get(row.result.test.full_name, ())

    tests_with_others = {row.result.test.full_name for row in filter(is_other, old)}
    return [
        row for row in old if is_other(row) or row.result.test.full_name not in tests_with_others
    ]


def _by_quantity(rows: Sequence[results.Finding]) -> dict[tuple[str, str], list[results.Finding]]:
    """The rows by test and quantity."""
    by_quantity: dict[tuple[str, str], list[results.Finding]] = {}
    for row in rows:
        by_quantity.setdefault((row.result.test.full_name, row.quantity), []).append(row)
    return by_quantity


def _unmeasured(runs: Sequence[Run], side: str) -> dict[str, str]:
    """Why a side has no result of some tests, by their full names."""
    skipped = {test.full_name: f"{test.state} in {side}" for run in runs for test in run.skipped}
    failed = (test.full_name for run in runs for test in run.having(FAILED))
    return skipped | dict.fromkeys(failed, f"{side} measured nothing")
