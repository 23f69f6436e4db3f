"""The trial journal: what was measured is on disk before the next trial starts.

A journal is a file of JSON lines: a header with everything needed to repeat the search, then one line per trial. An
interrupted search is continued by opening its journal again and handing it to `lossratio.trial.run_search`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any

from lossratio.errors import SearchError, StorageError
from lossratio.trial import DirectionCounters, TrialInput, TrialOutput, TrialResult

FORMAT = "lossratio-journal/1"


@dataclass(frozen=True)
class JournalEntry:
    """One line of a journal: a result, and why its trial was chosen (if the controller said so)."""

    result: TrialResult
    purpose: str | None = None


@dataclass(frozen=True)
class JournalContents:
    """All that a journal holds.

    Attributes:
        search: What the search was: all inputs of controller and measurer, as given to `Journal.open`.
        created: When the search began, RFC 3339, UTC.
        entries: The trials, in the order in which they were measured.
        intact_bytes: How much of the file is whole lines; the rest was cut off while it was written.
    """

    search: Mapping[str, Any]
    created: str
    entries: tuple[JournalEntry, ...]
    intact_bytes: int

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """The trials' results, in the order in which they were measured."""
        return tuple(entry.result for entry in self.entries)


def read_journal(path: str | Path) -> JournalContents:
    """Reads a journal; a last line that was cut off is left out.

    Raises:
        SearchError: If the file is missing, is no journal, or has a damaged line.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SearchError(f"Cannot read the journal {path}: {error.strerror}.") from error
    intact, newline, _ = data.rpartition(b"\n")
    lines = intact.split(b"\n")
    header = _decode(path, 1, lines[0])
    if header.get("format") != FORMAT or not isinstance(header.get("search"), dict):
        raise SearchError(f"{path} is not a journal of format {FORMAT!r}: its first line is not such a header.")
    entries = tuple(_entry(path, number, line) for number, line in enumerate(lines[1:], start=2))
    return JournalContents(header["search"], header.get("created", ""), entries, len(intact) + len(newline))


class Journal:
    """A journal that is being written. Use `Journal.open`, and close it (or use it as a context manager).

    Attributes:
        path: The file.
        results: What was in the journal when it was opened; `append` adds to it.
    """

    def __init__(self, path: Path, results: list[TrialResult], file: FileIO) -> None:
        self.path = path
        self.results = results
        self._file = file
        self._opened_bytes = path.stat().st_size

    @classmethod
    def open(cls, path: str | Path, search: Mapping[str, Any]) -> Journal:
        """Starts a journal, or continues the one that an interrupted search left.

        Args:
            path: The file. Its directory is made if need be.
            search: Everything needed to repeat the search, as JSON data. A journal is only continued by the same.

        Raises:
            SearchError: If the file is not a journal, or one of another search; the differences are named.
            StorageError: If it cannot be written.
        """
        path = Path(path)
        wanted = json.loads(json.dumps(search))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return cls._continued(path, wanted) if _has_header(path) else cls._begun(path, wanted)
        except OSError as error:
            raise StorageError(
                f"Cannot open the journal {path}: {error.strerror}. Nothing is measured that could not be kept; make "
                "room for it, or choose another output directory."
            ) from error

    @classmethod
    def _begun(cls, path: Path, wanted: Mapping[str, Any]) -> Journal:
        header = {"format": FORMAT, "created": _now(), "search": wanted}
        with cls(path, [], path.open("wb", buffering=0)) as journal:
            journal._write(header)
        return cls(path, [], path.open("ab", buffering=0))

    @classmethod
    def _continued(cls, path: Path, wanted: Mapping[str, Any]) -> Journal:
        contents = read_journal(path)
        if contents.search != wanted:
            differences = ", ".join(_differences(contents.search, wanted))
            raise SearchError(
                f"The journal {path} belongs to another search: {differences}. "
                f"Give the same inputs to continue it, or another file to start anew."
            )
        file = path.open("r+b", buffering=0)
        file.truncate(contents.intact_bytes)
        file.seek(0, os.SEEK_END)
        return cls(path, list(contents.results), file)

    def append(self, result: TrialResult, purpose: str | None = None) -> None:
        """Writes one result and waits until it is on the disk.

        Raises:
            StorageError: If the disk does not take it.
        """
        line: dict[str, Any] = {"input": asdict(result.input), "output": _without_defaults(asdict(result.output))}
        if purpose is not None:
            line["purpose"] = purpose
        line["time"] = _now()
        self._write(line)
        self.results.append(result)

    def withdraw(self) -> None:
        """Takes out again what was appended since it was opened, also when it is closed."""
        os.truncate(self.path, self._opened_bytes)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: Mapping[str, Any]) -> None:
        try:
            line = json.dumps(data).encode() + b"\n"
            while line:
                # A disk that is nearly full takes a part only.
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StorageError(
                f"Cannot write to the journal {self.path}: {error.strerror}. The trials until then are in it; "
                f"make room, and resume the run."
            ) from error


def adopt_journal(earlier: Path, path: Path, search: Mapping[str, Any]) -> None:
    """Makes the trials of one search those of another one, although these differ: only where somebody insists on it.

    Args:
        earlier: The journal there is.
        path: The new one, which may be the same file.
        search: Everything needed to repeat the other search, as JSON data.

    Raises:
        SearchError: If the journal cannot be read.
        StorageError: If the new one cannot be written.
    """
    entries = read_journal(earlier).entries
    unfinished = path.with_name(f".{path.name}.part")
    unfinished.unlink(missing_ok=True)
    with Journal.open(unfinished, search) as journal:
        for entry in entries:
            journal.append(entry.result, entry.purpose)
    unfinished.replace(path)


def _has_header(path: Path) -> bool:
    return path.exists() and b"\n" in path.read_bytes()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _without_defaults(output: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in output.items() if value is not None and value != ()}


def _decode(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(line)
    except ValueError as error:
        raise SearchError(f"{path}, line {number}: not JSON ({error}). The journal is damaged there.") from error
    if not isinstance(decoded, dict):
        raise SearchError(f"{path}, line {number}: not a JSON object. The journal is damaged there.")
    return decoded


def _entry(path: Path, number: int, line: bytes) -> JournalEntry:
    data = _decode(path, number, line)
    try:
        output = dict(data["output"])
        directions = tuple(DirectionCounters(**direction) for direction in output.pop("directions", ()))
        repairs = tuple(output.pop("repairs", ()))
        trial_output = TrialOutput(**output, repairs=repairs, directions=directions)
        result = TrialResult(TrialInput(**data["input"]), trial_output)
    except (KeyError, TypeError, ValueError, SearchError) as error:
        raise SearchError(f"{path}, line {number}: not a trial ({error}). The journal is damaged there.") from error
    return JournalEntry(result, data.get("purpose"))


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = sorted(old.keys() | new.keys())
    return [f"{name} was {old.get(name)!r}, now {new.get(name)!r}" for name in names if old.get(name) != new.get(name)]
