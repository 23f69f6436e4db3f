"""Runs as JUnit XML, which CI systems show as tests.

A failed measurement is an ``error``. An irregular measurement is ``skipped``, with its reason: it neither passed nor
failed. A test that was not measured here, e.g. because the testbed is too small for it, is also ``skipped``. A test
that measured but still failed is a ``failure``: it may require more than it measured, or a result without doubts. A
test that failed before it measured anything, a test that was cut off and an unreadable file are also an ``error``, so
that an incomplete run is never mistaken for a complete one.

A test has the same class and name in each run, whatever happened to it, because CI systems identify it by these.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from lossratio.report.failures import CUT_OFF, FAILED
from lossratio.report.formats import ReportFormat
from lossratio.report.run import Run
from lossratio.report.verdict import Verdict
from lossratio.results import SHOWN, Finding, Outcome, TestResult, aggregate_of, as_text
from lossratio.values import printable


@dataclass(frozen=True)
class Case:
    """A test case of a JUnit file."""

    suite: str
    """Name of the suite."""
    name: str
    """Name of the test."""
    seconds: float = 0.0
    """Duration of the measurement, in seconds."""
    state: str = "passed"
    """``passed``, ``failure``, ``error`` or ``skipped``."""
    message: str = ""
    """Why the test did not pass."""
    output: str = ""
    """Further text."""
    properties: tuple[tuple[str, str], ...] = ()
    """Pairs of name and value, e.g. rates."""


def junit_report(runs: Sequence[Run]) -> str:
    """Makes a JUnit file of the runs, with a suite for each run."""
    return junit_xml({run.path.resolve().name: list(_cases(run)) for run in runs})


def _cases(run: Run) -> Iterator[Case]:
    by_number: dict[int, list[Finding]] = {}
    for row in run.rows:
        by_number.setdefault(row.number, []).append(row)
    for number, (result, notes) in enumerate(zip(run.results, run.notes, strict=True), start=1):
        said = as_text([note for note in notes if note.weight in SHOWN])
        yield _case(result, by_number.get(number, []), said, run.failure_in_spite_of(result))

    for test in run.without_result:
        state = "error" if test.state in (CUT_OFF, FAILED) else "skipped"
        yield Case(test.suite or test.state, test.name, state=state, message=test.reason)

    for number, problem in enumerate(run.problems, start=1):
        yield Case("not readable", f"file {number}", state="error", message=problem)


def junit_xml(suites: dict[str, list[Case]]) -> str:
    """Makes a JUnit file."""
    root = Element("testsuites")
    for name, cases in suites.items():
        counts = Counter(case.state for case in cases)
        seconds = sum(case.seconds for case in cases)
        suite = SubElement(
            root,
            "testsuite",
            name=printable(name),
            tests=str(len(cases)),
            failures=str(counts["failure"]),
            errors=str(counts["error"]),
            skipped=str(counts["skipped"]),
            time=f"{seconds:.3f}",
        )
        for case in cases:
            test = {
                "classname": printable(case.suite),
                "name": printable(case.name),
                "time": f"{case.seconds:.3f}",
            }
            element = SubElement(suite, "testcase", test)
            if case.properties:
                properties = SubElement(element, "properties")
                for quantity, value in case.properties:
                    SubElement(
                        properties, "property", name=printable(quantity), value=printable(value)
                    )

            if case.state != "passed":
                SubElement(element, case.state, message=printable(case.message))
            if case.output:
                SubElement(element, "system-out").text = printable(case.output)

    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def judged_case(suite: str, name: str, verdict: Verdict, text: str, stream: str | None) -> Case:
    """The case of a quantity that was compared with others.

    Args:
        suite: Name of the suite.
        name: Name of the case.
        verdict: The verdict.
        text: The verdict with its reasons.
        stream: The stream that the quantity belongs to; None: all frames.
    """
    case = Case(suite, name, state=verdict.state, message=text, output=text)
    if stream is None:
        return case
    return replace(case, properties=(("stream", stream),))


_STATES = {Outcome.MEASURED: "passed", Outcome.IRREGULAR: "skipped", Outcome.FAILED: "error"}


def _case(result: TestResult, rows: Sequence[Finding], said: str, failure: str | None) -> Case:
    """The case of a result, with its rows."""
    properties = []
    if result.conditions.measured_on is not None:
        properties.append(("device", result.conditions.measured_on))
    for row in rows:
        value = aggregate_of(row.value)
        scale = "" if row.rate is None else "aggregate "
        if value is not None:
            properties.append((f"{row.quantity} {scale}{row.unit.name}", repr(value)))
    for row in rows:
        if row.stream is not None:
            properties.append((f"{row.quantity} stream", row.stream))

    state = _STATES[result.outcome]
    reasons = (f"{row.quantity}: {row.reason}" for row in rows if row.reason is not None)
    why = result.error or "; ".join(reasons)
    if failure is not None:
        state = "failure"
        why = failure

    return Case(
        suite=result.test.suite,
        name=result.test.name,
        seconds=result.took_s,
        state=state,
        message=why,
        output=said,
        properties=tuple(properties),
    )


JUNIT = ReportFormat("lossratio.junit.xml", junit_report)
"""Test cases with their states, for CI systems."""
