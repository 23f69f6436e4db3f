"""Puts the outputs of several attempts at one run together: each test as it went the last time."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultWriter
from robot.errors import DataError
from robot.result import Result, TestSuite

from lossratio.errors import StorageError
from lossratio.exit_status import FailureKind
from lossratio.runs.record import ResumeError
from lossratio.runs.verdicts import TestVerdict


def merged(outputs: Sequence[Path]) -> Result:
    """The result of several attempts.

    Args:
        outputs: Their outputs, in the order in which they were made; at least one.

    Raises:
        ResumeError: If one cannot be read.
    """
    first, *rest = (_read(output) for output in outputs)
    for later in rest:
        _merge(first.suite, later.suite)
        first.errors.messages.extend(later.errors.messages)
    return first


def verdicts_of(result: Result, kinds: Mapping[str, FailureKind]) -> tuple[TestVerdict, ...]:
    """What became of each test.

    Args:
        result: The result of a run.
        kinds: Why tests failed, by their full names, as its directory records it.
    """
    return tuple(
        TestVerdict(
            test.full_name,
            test.status,
            test.message,
            kinds.get(test.full_name, FailureKind.NO_VERDICT) if test.status == "FAIL" else None,
        )
        for test in result.suite.all_tests
    )


def write_result(result: Result, directory: Path, options: Mapping[str, Any]) -> None:
    """Writes output, log and report as one run's; each appears as a whole.

    Args:
        result: The result.
        directory: Where to.
        options: Robot Framework's options of the run, of which those about log, report and xUnit count here.

    Raises:
        StorageError: If the disk does not take them.
    """
    whole = directory / "merged.xml"
    files = {"log": "log.html", "report": "report.html", "xunit": "NONE"}
    chosen = {name: options.get(name, default) for name, default in files.items()}
    try:
        result.save(whole)
        whole.replace(directory / "output.xml")
        writer = ResultWriter(str(directory / "output.xml"))
        writer.write_results(outputdir=str(directory), stdout=io.StringIO(), **chosen)
    except OSError as error:
        raise StorageError(
            f"Cannot write output.xml, log.html and report.html in {directory}: {error.strerror}. Make room, and go on "
            f"with: lossratio run --resume {directory}"
        ) from error
    finally:
        whole.unlink(missing_ok=True)


def _read(output: Path) -> Result:
    try:
        return ExecutionResult(str(output))
    except DataError as error:
        raise ResumeError(f"{output} cannot be read: {error.message}") from error


def _merge(ours: TestSuite, later: TestSuite) -> None:
    """Takes over what another attempt at the same suite ran."""
    ours.message = later.message
    if later.has_setup:
        ours.setup = later.setup
    if later.has_teardown:
        ours.teardown = later.teardown
    if ours.end_time and later.end_time:
        ours.elapsed_time = ours.elapsed_time + later.elapsed_time
        ours.end_time = later.end_time
    tests = {test.name: number for number, test in enumerate(ours.tests)}
    for test in later.tests:
        if test.name in tests:
            ours.tests[tests[test.name]] = test
        else:
            ours.tests.append(test)
    for suite, same in _pairs(ours, later):
        if same is None:
            ours.suites.append(suite)
        else:
            _merge(same, suite)


def _pairs(ours: TestSuite, later: TestSuite) -> Iterator[tuple[TestSuite, TestSuite | None]]:
    by_name = {suite.name: suite for suite in ours.suites}
    for suite in list(later.suites):
        yield suite, by_name.get(suite.name)
