"""The common fields of results of all kinds, as in their files in the run directory: format ``lossratio-result/2``.

A failed or irregular test has its own outcome: no number in the file replaces a missing one.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from lossratio.errors import ReportError
from lossratio.results.conditions import Conditions, MaxLoad
from lossratio.results.losses import LossPlaces
from lossratio.results.note import SHOWN, Note, NoteKind, as_text
from lossratio.results.pictures import Picture
from lossratio.results.queue_drops import QueueDrops
from lossratio.results.trials import Trial
from lossratio.results.wording import in_columns, per_interface
from lossratio.values import FRAMES_PER_SECOND, Rate, Record, Unit, UtcTime, refused_in_words

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT: Literal["lossratio-result/2"] = "lossratio-result/2"
"""Format of the files."""
INTERRUPTED = "somebody stopped the run by force"
"""The error of a measurement that was interrupted."""
TERMINATED = "Execution terminated by signal"
"""The error of a measurement that Robot Framework ended after Ctrl-C, or SIGTERM."""


class Outcome(str, Enum):
    """The outcome of a test's measurement."""

    MEASURED = "measured"
    """The measurement is complete, and every goal result is regular."""
    IRREGULAR = "irregular"
    """A goal result is irregular, and states its reason."""
    FAILED = "failed"
    """The measurement failed, and has no numbers; ``error`` holds the reason."""


@refused_in_words(ReportError)
class TestIdentity(Record):
    """The identity of a test."""

    __test__ = False

    name: str = Field(min_length=1)
    """Name of the test."""
    suite: str
    """Its suite: the file in its project, or the suite's ``Id``. It does not depend on what else is run."""
    long_name: str | None = None
    """The name that Robot Framework gave the test in this run; None: a script measured it."""
    documentation: str = ""
    """The test's documentation."""
    tags: tuple[str, ...] = ()
    """The test's tags."""

    @property
    def full_name(self) -> str:
        """Name of the suite and the test, which is the same in each run, and unique within a run."""
        if self.suite:
            return f"{self.suite}.{self.name}"
        return self.name


class TestResult(Record):
    """The common fields of results of all kinds."""

    __test__ = False

    if TYPE_CHECKING:
        # Each kind declares these two fields itself, so that they keep their position in its files.
        kind: str
        """The kind of the result."""
        max_load: MaxLoad
        """The largest load of its trials."""

    found: ClassVar[str | None] = None
    """The field with the record that has all numbers; None: they are in several fields."""
    shown_by: ClassVar[Callable[[], Any] | None] = None
    """The view of results of this class, set by the kind when it is created."""
    unit: ClassVar[Unit] = FRAMES_PER_SECOND
    """The unit of its loads."""
    has_goals: ClassVar[bool] = False
    """Whether it comes from a search for goals, each of which may have a conditional throughput."""
    format: Literal["lossratio-result/2"] = FORMAT
    """Format of the file."""
    test: TestIdentity
    """The identity of the test."""
    started: UtcTime
    """Time when the measurement began; after a resume, the time of the resume."""
    ended: UtcTime
    """Time when the measurement ended. Latency and telemetry after a search are included; a pause before them is
    not."""
    outcome: Outcome
    """The outcome of the test: ``measured``, ``irregular`` or ``failed``."""
    error: str | None
    """Why the measurement failed; null if it did not fail."""
    remarks: tuple[Note, ...]
    """What the measurement itself noted, such as warnings about the goals."""
    conditions: Conditions
    """The conditions of the measurement."""
    trials: tuple[Trial, ...]
    """All trials, in the order in which they were measured."""
    guilty: Literal["TG", "wire", "DUT"] | None = None
    """The part of the testbed that made the measurement fail; null: not known."""
    loss_places: LossPlaces | None = None
    """What the lost frames have in common; null: no frame was lost, or it is not known which frames were lost."""
    queue_drops: QueueDrops | None = None
    """What the receive queues of the DUTs dropped; null: no frame was lost, or the devices do not count the frames that
    each queue drops."""

    def written(self, *loads: float) -> str:
        """A load of its trials, or two, in words: ``100.00 kfps per interface``, or ``100 connections/s``.

        Args:
            loads: In frames per second per interface, or in connections per second.
        """
        if self.unit is FRAMES_PER_SECOND:
            return per_interface(*loads)
        return " to ".join(dict.fromkeys(map(self.unit.format, loads)))

    @property
    def evidence(self) -> list[Trial]:
        """The trials that count."""
        return [trial for trial in self.trials if trial.is_evidence]

    def evidence_at(self, load: Rate) -> list[Trial]:
        """The trials at a load that count.

        Args:
            load: The load.
        """
        fps = load.per_interface_fps
        return [trial for trial in self.evidence if trial.load_per_interface_fps == fps]

    @property
    def queues_in_words(self) -> str | None:
        """Which receive queues dropped the lost frames, in words; None: no counters prove anything about that."""
        if self.queue_drops is None:
            return None
        return self.queue_drops.sentence

    @property
    def passed_before(self) -> str | None:
        """What the device passed before the first trial until it lost frames, in words; None: it is not known."""
        passed = (note.text for note in self.remarks if note.kind is NoteKind.PASSED)
        return next(passed, None)

    @property
    def took_s(self) -> float:
        """Seconds from the beginning of the measurement to its end; after a resume, the seconds since then."""
        return (self.ended - self.started).total_seconds()

    def view(self) -> Any:
        """The view of its kind, a `lossratio.results.View`.

        Raises:
            ReportError: If its class belongs to no kind, or the view cannot be imported.
        """
        shown_by = type(self).shown_by
        if shown_by is None:
            raise ReportError(
                f"Cannot show a {type(self).__name__}: no kind of measurement has results of this "
                "class."
            )
        return shown_by()

    def __repr__(self) -> str:
        findings = self.view().quantities(self)
        values = ", ".join(f"{finding.quantity} {finding.in_short}" for finding in findings)
        return f"<{type(self).__name__} {self.test.name}: {values}>"

    def __str__(self) -> str:
        """The lines that the console shows, as if this were the only result of a run."""
        return in_columns(as_text(self.view().notes(self, [self], *SHOWN)))

    def _repr_html_(self) -> str:
        """What notebooks show: the name of the test, and the lines of the console."""
        return f"<h4>{html.escape(self.test.name)}</h4><pre>{html.escape(str(self))}</pre>"

    def plot(self, title: str | None = None) -> Picture:
        """A picture of the result, which notebooks show; its text is `svg`.

        Args:
            title: Title of the picture; None: the first one.

        Raises:
            ReportError: If there is no such picture; the message names the existing ones.
        """
        drawn = (picture for picture in self.view().pictures(self) if picture.svg)
        pictures: dict[str, Picture] = {picture.title: picture for picture in drawn}
        if title is None and pictures:
            return next(iter(pictures.values()))
        if not pictures:
            raise ReportError(f"{self.test.full_name} has no pictures.")
        if title not in pictures:
            raise ReportError(
                f"{self.test.full_name} has no picture {title!r}. Its pictures: {', '.join(pictures)}."
            )
        return pictures[title]

    def to_frame(self) -> DataFrame:
        """The trials as a pandas data frame, one row for each; its columns are the fields of `Trial` with one value.

        Raises:
            ReportError: If pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ReportError(
                "A data frame needs pandas: pip install pandas. Without it, the trials are in 'trials'."
            ) from error

        rows = (trial.model_dump() for trial in self.trials)
        return pandas.DataFrame(
            [
                {
                    name: value
                    for name, value in row.items()
                    if not isinstance(value, tuple | list | dict)
                }
                for row in rows
            ]
        )

    @model_validator(mode="after")
    def _a_failure_has_an_error(self) -> TestResult:
        if (self.outcome is Outcome.FAILED) != (self.error is not None):
            raise ValueError("a measurement has an error if and only if it failed")
        if self.ended < self.started:
            raise ValueError("a test cannot end before it starts")
        return self


@dataclass(frozen=True)
class TestRun:
    """The frame of a result: the test, its times and its conditions."""

    __test__ = False

    test: TestIdentity
    """The identity of the test."""
    started: datetime
    """Time when the measurement began, with a time zone."""
    ended: datetime
    """Time when the measurement ended, with a time zone."""
    conditions: Conditions
    """The conditions of the measurement."""
    remarks: tuple[Note, ...] = ()
    """What the measurement itself noted."""
    error: str | None = None
    """Why the measurement failed; None if it did not fail."""
    guilty: str | None = None
    """The part that made the measurement fail: ``TG``, ``wire`` or ``DUT``; None: not known, or no failure."""

    def stated(self) -> dict[str, Any]:
        """The fields of `lossratio.results.model.TestResult` that describe the test, for results of all kinds."""
        return dict(vars(self))
