"""Known changes: each explains a step in a trend, which then raises no alarm."""

import json
import os
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from lossratio.errors import ReportError, storing
from lossratio.files import load_yaml_file
from lossratio.report.history.series import SeriesKey
from lossratio.values import FileModel, resolved

ANNOTATIONS_NAME = "annotations.yaml"
"""Name of the file of known changes in a history's folder."""


def _not_number(value: object) -> object:
    # pydantic would read it as seconds since 1970.
    if isinstance(resolved(value), int | float):
        raise ValueError(f"must be a day, such as 2026-08-01, not {value}")
    return value


class KnownChange(FileModel):
    """A change of the testbed or the SUT whose reason is known."""

    date: Annotated[date, BeforeValidator(_not_number)]
    """The day of the change, UTC."""
    note: str = Field(min_length=1)
    """The reason, which says what was changed."""
    by: str | None = None
    """Who states it."""
    keeps_open: bool = False
    """Whether alarms remain open: the note says who looks at them, or what a bisection found, but explains nothing."""
    testbed: str = "*"
    """Testbeds that the change concerns: a name, or a pattern with ``*``."""
    test: str = "*"
    """Tests that the change concerns: a full name, or a pattern with ``*``."""
    quantity: str = "*"
    """Quantities that the change concerns, e.g. ``NDR``: a name, or a pattern with ``*``."""
    device: str = "*"
    """Devices with their options that the change concerns: words, or a pattern such as ``linux_router, police=*``."""

    @classmethod
    def of(
        cls, key: SeriesKey, began: datetime, note: str, by: str, *, keeps_open: bool = False
    ) -> "KnownChange":
        """The reason for a change in one series only, or a note about it."""
        names = {name: escape(text) for name, text in key.names.items()}
        return cls(date=began.date(), note=note, by=by, keeps_open=keeps_open, **names)

    def __str__(self) -> str:
        if self.by is None:
            return self.note
        return f"{self.note} ({self.by})"

    def concerns(self, key: SeriesKey) -> bool:
        """Whether the change concerns a series."""
        return key.fits(self)

    def explains(self, key: SeriesKey, before: datetime, after: datetime) -> bool:
        """Whether the change explains a step of a series between two results, which then needs no further attention."""
        is_near = before.date() <= self.date <= after.date() + timedelta(days=1)
        return is_near and not self.keeps_open and self.concerns(key)


class KnownChanges(FileModel):
    """A file of known changes."""

    changes: tuple[KnownChange, ...] = ()
    """The changes."""
    same: tuple[tuple[str, str], ...] = ()
    """Pairs of full names of tests: the name before it was renamed or its file was moved, and the present name."""

    @property
    def names(self) -> dict[str, str]:
        """The present names of tests, by their earlier names; a test may have been renamed more than once."""
        next_names = dict(self.same)
        names = {}
        for earlier in next_names:
            seen = [earlier]
            while next_names.get(seen[-1], earlier) not in seen:
                seen.append(next_names[seen[-1]])
            names[earlier] = seen[-1]
        return names

    @property
    def followed(self) -> tuple[KnownChange, ...]:
        """The changes; those of earlier names are repeated with the present names."""
        more = [
            change.model_copy(update={"test": escape(name)})
            for earlier, name in self.names.items()
            for change in self.changes
            if fnmatchcase(earlier, change.test) and not fnmatchcase(name, change.test)
        ]
        return (*self.changes, *more)


def load_known_changes(path: Path) -> KnownChanges:
    """Reads a file of known changes.

    Raises:
        ReportError: If the file cannot be used; with line and field of each problem.
    """
    return load_yaml_file(path, KnownChanges, ReportError)


def add_known_changes(path: Path, changes: Sequence[KnownChange]) -> None:
    """Adds known changes at the end of a file, and keeps its other lines and comments. A missing file is created.

    Raises:
        ReportError: If the form of the file allows no additions at its end. The file is not changed.
        StorageError: If the file cannot be written.
    """
    before = load_known_changes(path).changes if path.exists() else ()
    with storing(f"write {path}"):
        text = path.read_text(encoding="utf-8") if before else "changes:\n"
        indent = re.search(r"^( *)- ", text, re.MULTILINE)
        written = [change.model_dump(mode="json", exclude_defaults=True) for change in changes]
        begin = f"{indent[1] if indent else '  '}- "
        lines = [f"{begin}{json.dumps(fields, ensure_ascii=False)}\n" for fields in written]
        part = path.with_name(f".{path.name}.{os.getpid()}.part")

        try:
            part.write_text(
                "".join([text if text.endswith("\n") else f"{text}\n", *lines]), encoding="utf-8"
            )
            try:
                is_whole = load_known_changes(part).changes == (*before, *changes)
            except ReportError:
                is_whole = False
            if not is_whole:
                raise ReportError(
                    f"{path} does not end with a list of changes. Add this entry by hand:\n{''.join(lines)}"
                )
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
