"""What results of all kinds have in common, as the file in the run directory holds it: format ``lossratio-result/2``.

What only one kind of measurement has is in its class, which `lossratio.results.kinds` finds by the ``kind`` in the
file. A failed or irregular test is an outcome of its own: nothing in the file stands in for a number that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Record, UtcTime
from lossratio.results.conditions import Conditions, MaxLoad
from lossratio.results.trials import Trial

FORMAT: Literal["lossratio-result/2"] = "lossratio-result/2"
"""Format of the files that this version writes."""

WITHOUT_DIGEST: Literal["lossratio-result/1"] = "lossratio-result/1"
"""Format of the files that versions before wrote: without a digest, and besides that the same."""


class Outcome(str, Enum):
    """What became of a test's measurement."""

    MEASURED = "measured"
    """Everything that was asked for was found."""
    IRREGULAR = "irregular"
    """A goal result is irregular; its reason is with it."""
    FAILED = "failed"
    """The measurement failed, and has no result; ``error`` says why."""


class TestIdentity(Record):
    """Which test it was."""

    __test__ = False

    name: str = Field(min_length=1)
    """Name of the test."""
    suite: str
    """Full name of its suite."""
    documentation: str = ""
    """The test's documentation."""
    tags: tuple[str, ...] = ()
    """The test's tags."""

    @property
    def full_name(self) -> str:
        """Name of the test with its suite's, which is unique within a run."""
        return f"{self.suite}.{self.name}" if self.suite else self.name


class TestResult(Record):
    """What results of all kinds have in common."""

    __test__ = False

    if TYPE_CHECKING:
        # Each kind has these fields, and declares them itself: so they keep their place in its files.
        kind: str
        max_load: MaxLoad

    format: Literal["lossratio-result/1", "lossratio-result/2"] = FORMAT
    """Format of the file."""
    test: TestIdentity
    """Which test it was."""
    started: UtcTime
    """When it began."""
    ended: UtcTime
    """When it ended."""
    outcome: Outcome
    """What became of it: ``measured``, ``irregular`` or ``failed``."""
    error: str | None
    """Why the measurement failed; null if it did not."""
    remarks: tuple[str, ...]
    """What a reader of the numbers should know besides, such as warnings about the goals."""
    conditions: Conditions
    """What was measured, where and how."""
    trials: tuple[Trial, ...]
    """Every trial, in the order of measuring."""
    late_frames: FrameCount | None = None
    """Frames of the last trial that came back after its wait for frames in flight, and count as lost; null: not known.
    Those of the others are with the trial after them."""
    guilty: Literal["TG", "wire", "DUT"] | None = None
    """Whose fault it is that the measurement failed, where that is known."""

    @model_validator(mode="after")
    def _a_failure_has_an_error(self) -> TestResult:
        if (self.outcome is Outcome.FAILED) != (self.error is not None):
            raise ValueError("a failed measurement has an error, and no other has one")
        if self.ended < self.started:
            raise ValueError("a test cannot end before it starts")
        return self


@dataclass(frozen=True)
class TestRun:
    """Which test was run, when, and under what conditions.

    Attributes:
        test: Which test it was.
        started: When it began; with a time zone.
        ended: When it ended; with a time zone.
        conditions: What was measured, where and how.
        remarks: What a reader of the numbers should know besides.
        error: Why the measurement failed; None if it did not.
        late_frames: Frames of the last trial that came back too late; None: not known.
        guilty: Whose fault it is that the measurement failed, if it did: ``TG``, ``wire`` or ``DUT``; None: not known.
    """

    __test__ = False

    test: TestIdentity
    started: datetime
    ended: datetime
    conditions: Conditions
    remarks: tuple[str, ...] = ()
    error: str | None = None
    late_frames: int | None = None
    guilty: str | None = None

    def stated(self, *more_remarks: str) -> dict[str, Any]:
        """What results of all kinds say about their test, as the fields of `lossratio.results.model.TestResult`."""
        return {
            "test": self.test,
            "started": self.started,
            "ended": self.ended,
            "error": self.error,
            "remarks": (*self.remarks, *more_remarks),
            "conditions": self.conditions,
            "late_frames": self.late_frames,
            "guilty": self.guilty,
        }
