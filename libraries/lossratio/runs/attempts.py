"""The attempts of a run: their outputs, the result of all of them, and the tests that are finished."""

import io
import xml.parsers.expat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultWriter
from robot.errors import DataError
from robot.result import Result, TestSuite

from lossratio.errors import storing
from lossratio.report import misfits_of
from lossratio.results import (
    identity_of,
    result_stems,
    results_lost,
    results_set_aside,
    write_whole,
)
from lossratio.runs.record import MAKE_ROOM, ResumeError
from lossratio.runs.robot_run import way_to_continue
from lossratio.runs.verdicts import TestVerdict, kinds_of_failures, verdict_of
from lossratio.values import FailureKind

OUTPUT = "output.xml"
"""While an attempt runs, this is the attempt's own output; afterwards, it is the output of all attempts."""
_ATTEMPTS = "attempts"
"""Folder below the directory of a run with the outputs of earlier attempts."""


def outputs_of_attempts(directory: Path) -> tuple[Path, ...]:
    """The outputs of earlier attempts, oldest first."""
    return tuple(sorted((directory / _ATTEMPTS).glob("*.xml")))


def keep_newest(directory: Path) -> None:
    """Keeps the output of the newest attempt, as far as it is complete, before another attempt begins."""
    whole = salvage(directory / OUTPUT)
    if whole is None:
        return

    folder = directory / _ATTEMPTS
    with storing(f"write to {folder}", MAKE_ROOM):
        folder.mkdir(exist_ok=True)
        write_whole(folder / f"{len(outputs_of_attempts(directory)) + 1:03}.xml", whole)


def finished_in(directory: Path) -> Iterator[str]:
    """The names of the tests that earlier attempts finished, and whose results are there."""
    outputs = outputs_of_attempts(directory)
    if not outputs:
        return

    set_aside = results_set_aside(directory)
    lost = results_lost(directory)
    for verdict in verdicts_of(merged(outputs), directory):
        gone = set_aside
        if verdict.status == "PASS":
            # A failed test may have no result; a passed test has the results of its journals.
            gone = set_aside | lost
        if verdict.is_final and gone.isdisjoint(result_stems(verdict.name)):
            yield verdict.name


def merged(outputs: Sequence[Path]) -> Result:
    """The combined result of several attempts, oldest first: each test with its last outcome."""
    first, *rest = (_read(output) for output in outputs)
    for later in rest:
        _merge(first.suite, later.suite)
        first.errors.messages.extend(later.errors.messages)
    return first


def verdicts_of(result: Result, directory: Path) -> tuple[TestVerdict, ...]:
    """The verdict of each test, with what is noted about it in the run's directory."""
    kinds = kinds_of_failures(directory)
    misfits = misfits_of(directory)
    verdicts = []
    for test in result.suite.all_tests:
        identity = identity_of(test)
        failure = None
        if test.failed:
            failure = kinds.get(identity, FailureKind.NO_VERDICT)
        verdicts.append(verdict_of(test, failure, is_misfit=identity in misfits))

    return tuple(verdicts)


def write_result(result: Result, directory: Path, options: Mapping[str, Any]) -> None:
    """Writes output, log and report, as for a single run. A file only appears when it is complete."""
    whole = directory / "merged.xml"
    files = {"log": "log.html", "report": "report.html", "xunit": "NONE"}
    chosen = {name: options.get(name, default) for name, default in files.items()}
    way_out = way_to_continue(directory)
    try:
        with storing(f"write output.xml, log.html and report.html in {directory}", way_out):
            result.save(whole)
            whole.replace(directory / OUTPUT)
            writer = ResultWriter(str(directory / OUTPUT))
            writer.write_results(outputdir=str(directory), stdout=io.StringIO(), **chosen)
    finally:
        whole.unlink(missing_ok=True)


def _read(output: Path) -> Result:
    """Robot Framework's result in an output."""
    try:
        return ExecutionResult(str(output))
    except DataError as error:
        raise ResumeError(f"{output} cannot be read: {error.message}") from error


def _merge(ours: TestSuite, later: TestSuite) -> None:
    """Takes over the tests that a later attempt of the same suite ran."""
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

    by_name = {suite.name: suite for suite in ours.suites}
    for suite in list(later.suites):
        if suite.name in by_name:
            _merge(by_name[suite.name], suite)
        else:
            ours.suites.append(suite)


def salvage(path: Path) -> bytes | None:
    """The part of an output that Robot Framework can read, if the output was cut off; None: there is nothing to keep.

    It goes up to the last finished test (or set-up), with its suites closed as failed.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None

    parser = xml.parsers.expat.ParserCreate()
    opened: list[str] = []
    # The position of the end of the last complete element, in bytes, and the number of suites around it.
    kept: list[tuple[int, int]] = []

    def start(name: str, attributes: Mapping[str, str]) -> None:
        opened.append(name)

    def end(name: str) -> None:
        opened.pop()
        if name in ("test", "suite", "kw") and opened and opened[-1] == "suite":
            # The parser is at the start of the end tag, which Robot Framework writes without any space.
            kept[:] = [(parser.CurrentByteIndex + len(f"</{name}>"), opened.count("suite"))]

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except xml.parsers.expat.ExpatError:
        if not kept:
            return None
        position, suites = kept[0]
        closing = b'<status status="FAIL">The run was cut off.</status>\n</suite>\n'
        return data[:position] + b"\n" + closing * suites + b"</robot>\n"
    return data
