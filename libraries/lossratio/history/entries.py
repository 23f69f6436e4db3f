"""The rows that a history keeps of a result: one for each quantity, with all that shows and explains a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from lossratio.report import Run
from lossratio.results import Finding, digest_of, findings_of, number_of
from lossratio.units import FRAMES_PER_SECOND


@dataclass(frozen=True)
class Entry:
    """One quantity of one test of one run.

    Attributes:
        testbed: Name of the testbed. Equal testbeds differ, so each has trends of its own.
        test: Full name of the test.
        quantity: Name of the goal, or MRR.
        started: When the test began; with a time zone.
        seconds: How long the test took.
        value: The value in the unit; a rate is an aggregate; None: there is none.
        lower_bound: Relevant lower bound, likewise.
        upper_bound: Relevant upper bound, likewise.
        outcome: ``measured``, ``irregular`` or ``failed``.
        reason: Why it is irregular or failed; None: it was measured.
        doubts: Kinds of doubts about the result.
        lossratio_version: Version of lossratio that measured it.
        measured_as: Distinguishes values of other traffic, paths or goals with the same name of test; None: not known,
            as the result was added by an earlier version.
        unit: Name of the unit of the value and the bounds.
        lower_is_better: Whether the lower of two values is the better one.
    """

    testbed: str
    test: str
    quantity: str
    started: datetime
    seconds: float
    value: float | None
    lower_bound: float | None
    upper_bound: float | None
    outcome: str
    reason: str | None
    doubts: tuple[str, ...]
    lossratio_version: str
    measured_as: str | None = None
    unit: str = FRAMES_PER_SECOND.name
    lower_is_better: bool = FRAMES_PER_SECOND.lower_is_better


def entries_of(run: Run) -> Iterator[Entry]:
    """The entries of a run, in the order of its tests; tests that were cut off have none."""
    for finding in findings_of(run.results):
        yield _entry(finding, tuple(doubt.kind.value for doubt in run.doubts[finding.place - 1]))


def _entry(finding: Finding, doubts: tuple[str, ...]) -> Entry:
    result = finding.result
    return Entry(
        testbed=result.conditions.testbed.name,
        test=result.test.full_name,
        quantity=finding.quantity,
        started=result.started,
        seconds=(result.ended - result.started).total_seconds(),
        value=number_of(finding.value),
        lower_bound=number_of(finding.lower_bound),
        upper_bound=number_of(finding.upper_bound),
        outcome=finding.outcome.value,
        reason=finding.reason,
        doubts=doubts,
        lossratio_version=result.conditions.controller.lossratio_version,
        measured_as=digest_of(finding),
        unit=finding.unit.name,
        lower_is_better=finding.unit.lower_is_better,
    )
