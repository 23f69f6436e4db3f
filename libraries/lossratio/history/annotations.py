"""Known changes: each explains a step in a trend, which then raises no alarm."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from lossratio.errors import ReportError
from lossratio.history.entries import SeriesKey
from lossratio.yaml_file import load_yaml_file

ANNOTATIONS_NAME = "annotations.yaml"
"""Name of the file of known changes in a history's folder."""


class KnownChange(BaseModel):
    """A change of the testbed or the SUT whose reason is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: date
    """The day of the change, UTC."""
    note: str = Field(min_length=1)
    """The reason: what was changed."""
    testbed: str = "*"
    """Testbeds that the change concerns: a name, or a pattern with ``*``."""
    test: str = "*"
    """Full names of tests that the change concerns, likewise."""
    quantity: str = "*"
    """Quantities that the change concerns, e.g. ``NDR``, likewise."""

    def concerns(self, key: SeriesKey) -> bool:
        """Whether the change concerns a series."""
        pairs = ((key.testbed, self.testbed), (key.test, self.test), (key.quantity, self.quantity))
        return all(fnmatchcase(name, pattern) for name, pattern in pairs)

    def explains(self, key: SeriesKey, before: datetime, after: datetime) -> bool:
        """Whether the change explains a step of a series.

        Args:
            key: The series.
            before: When the last value before the step was measured.
            after: When the first value after it was measured.
        """
        return self.concerns(key) and before.date() <= self.date <= after.date() + timedelta(days=1)


class KnownChanges(BaseModel):
    """A file of known changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    changes: tuple[KnownChange, ...]
    """The changes."""


def load_known_changes(path: Path) -> tuple[KnownChange, ...]:
    """Reads a file of known changes.

    Raises:
        ReportError: If the file cannot be read, or a value in it is wrong; with line and field.
    """
    return load_yaml_file(path, KnownChanges, ReportError).changes
