"""Tests that failed before they measured anything, as a history knows them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from lossratio.report import CUT_OFF, FAILED, NOTHING_MEASURED, Run, skips_in_words
from lossratio.values import in_one_line


@dataclass(frozen=True)
class NothingMeasured:
    """A test that failed before it measured anything. It is in no series because its quantities are not known."""

    testbed: str
    """Name of the testbed."""
    test: str
    """Full name of the test."""
    time: datetime
    """When it failed; with a time zone."""
    reason: str
    """Why it failed, in one line."""


def nothing_measured(run: Run) -> Iterator[NothingMeasured]:
    """The tests of a run that measured nothing, if its testbed and their times are known."""
    for test in run.having(FAILED):
        if run.testbed is not None and test.time is not None:
            with suppress(ValueError):
                time = datetime.fromisoformat(test.time)
                reason = in_one_line(test.reason)
                yield NothingMeasured(run.testbed, test.full_name, time, reason)


def describe_nothing_measured(tests: Iterable[NothingMeasured]) -> Iterator[str]:
    """The tests in words: a line for each reason on a testbed."""
    alike: dict[tuple[str, str], list[NothingMeasured]] = {}
    for test in tests:
        alike.setdefault((test.testbed, test.reason), []).append(test)
    for (testbed, reason), group in alike.items():
        last = max(test.time for test in group)
        names = ", ".join(test.test for test in group)
        yield f"{NOTHING_MEASURED} on {testbed}, {last:%Y-%m-%d %H:%M} UTC: {names}: {reason}"


def left_out_of(run: Run) -> Iterator[str]:
    """Messages about the tests of a run that have no entries."""
    for test in run.having(CUT_OFF):
        yield f"{run.path}: {test.full_name} was cut off and is not added."
    yield from (f"{run.path}: not added: {line}" for line in skips_in_words(run.skipped))
    added = {test.test for test in nothing_measured(run)}
    for test in run.having(FAILED):
        if test.full_name not in added:
            yield (
                f"{run.path}: {test.full_name} measured nothing and is not added: its testbed or its time is not known."
            )
