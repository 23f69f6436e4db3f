"""The attempts at a run: the output of each is kept as far as it is whole, and all become one result."""

import io
import xml.parsers.expat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import ExecutionResult, ResultWriter, SuiteVisitor
from robot.errors import DataError
from robot.result import Result, TestSuite

from lossratio.errors import storing
from lossratio.exit_status import FailureKind
from lossratio.results import write_whole
from lossratio.runs.record import ResumeError
from lossratio.runs.verdicts import FailureRecord, TestVerdict

_OUTPUT = "output.xml"


@dataclass(frozen=True)
class Attempts:
    """The outputs of all attempts at a run, in the run's directory."""

    directory: Path
    """The run's directory. While an attempt runs, ``output.xml`` is its own, and afterwards of all attempts. Outputs
    of earlier attempts are below ``attempts``."""

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The outputs of earlier attempts, oldest first."""
        return tuple(sorted((self.directory / "attempts").glob("*.xml")))

    def keep_newest(self) -> None:
        """Keeps the output of the newest attempt, as far as it is whole, before another attempt begins."""
        whole = salvage(self.directory / _OUTPUT)
        if whole is None:
            return
        folder = self.directory / "attempts"
        with storing(f"write to {folder}", "Nothing is lost; make room, and resume the run again."):
            folder.mkdir(exist_ok=True)
            write_whole(folder / f"{len(self.outputs) + 1:03}.xml", whole)

    def verdicts(self) -> tuple[TestVerdict, ...]:
        """The verdict of each test in the earlier attempts."""
        return verdicts_of(merged(self.outputs), FailureRecord(self.directory).read()) if self.outputs else ()


class OnlyRest(SuiteVisitor):  # type: ignore[misc]
    """Leaves out the tests that are finished. Robot Framework calls it before a run."""

    def __init__(self, finished: Collection[str]) -> None:
        self._finished = frozenset(finished)

    def start_suite(self, suite: Any) -> None:
        """Leaves out finished tests of a suite."""
        suite.tests = [test for test in suite.tests if test.full_name not in self._finished]

    def end_suite(self, suite: Any) -> None:
        """Leaves out suites without tests."""
        suite.suites = [child for child in suite.suites if child.has_tests]

    def visit_test(self, test: Any) -> None:
        """Changes nothing: tests stay as they are."""


def merged(outputs: Sequence[Path]) -> Result:
    """The result of several attempts, oldest first: each test as it went the last time."""
    first, *rest = (_read(output) for output in outputs)
    for later in rest:
        _merge(first.suite, later.suite)
        first.errors.messages.extend(later.errors.messages)
    return first


def verdicts_of(result: Result, kinds: Mapping[str, FailureKind]) -> tuple[TestVerdict, ...]:
    """The verdict of each test."""
    unknown = FailureKind.NO_VERDICT
    failures = ((test, kinds.get(test.full_name, unknown) if test.failed else None) for test in result.suite.all_tests)
    return tuple(TestVerdict(test.full_name, test.status, test.message, failure) for test, failure in failures)


def write_result(result: Result, directory: Path, options: Mapping[str, Any]) -> None:
    """Writes output, log and report, as of one run. A file appears only when it is complete."""
    whole = directory / "merged.xml"
    files = {"log": "log.html", "report": "report.html", "xunit": "NONE"}
    chosen = {name: options.get(name, default) for name, default in files.items()}
    way_out = f"Make room, and continue with: lossratio run --resume {directory}"
    try:
        with storing(f"write output.xml, log.html and report.html in {directory}", way_out):
            result.save(whole)
            whole.replace(directory / "output.xml")
            writer = ResultWriter(str(directory / "output.xml"))
            writer.write_results(outputdir=str(directory), stdout=io.StringIO(), **chosen)
    finally:
        whole.unlink(missing_ok=True)


def _read(output: Path) -> Result:
    try:
        return ExecutionResult(str(output))
    except DataError as error:
        raise ResumeError(f"{output} cannot be read: {error.message}") from error


def _merge(ours: TestSuite, later: TestSuite) -> None:
    """Takes over the tests that a later attempt at the same suite ran."""
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
    opened: list[str] = []
    # The position of the end of the last whole element, in bytes, and the number of suites around it.
    kept: list[tuple[int, int]] = []
    parser = xml.parsers.expat.ParserCreate()

    def end(name: str) -> None:
        opened.pop()
        if name in ("test", "suite", "kw") and opened and opened[-1] == "suite":
            # The parser is at the start of the end tag, which Robot Framework writes without any space.
            kept[:] = [(parser.CurrentByteIndex + len(f"</{name}>"), opened.count("suite"))]

    parser.StartElementHandler = lambda name, attributes: opened.append(name)
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except xml.parsers.expat.ExpatError:
        closing = b'<status status="FAIL">The run was cut off.</status>\n</suite>\n'
        return next((data[:position] + b"\n" + closing * suites + b"</robot>\n" for position, suites in kept), None)
    return data
