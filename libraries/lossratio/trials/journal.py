"""The trial journal: each trial is on disk before the next one starts.

A journal is a file of JSON lines: a header with everything needed to repeat the search, then one line per trial, then
one line per addition: what was measured after the search and belongs to its result (latency, telemetry). To continue an
interrupted search, open its journal again and give it to `lossratio.trials.trial.run_search`.

A trial is *proved* if the DUTs were found as they were set up after it: its own line says so, or a later one (of a
trial, or of a verification alone). Trials behind the last proof are not continued, as nobody knows which DUT they saw.

Each line ends with a digest of itself and of the digest before it (`lossratio.trials.digest`). So a journal with a
changed line, or with lines that are missing, doubled or out of order, is refused. Only the last lines may be missing.
"""

import itertools
import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from lossratio.errors import SearchError, storing
from lossratio.input_file import MOST_RECORDED_BYTES, read_input_file
from lossratio.trials import journal_lines
from lossratio.trials.digest import add_digest
from lossratio.trials.journal_lines import Addition, JournalEntry
from lossratio.trials.trial import TrialResult

_LOG = logging.getLogger(__name__)


class UnknownJournalError(SearchError):
    """A file is intact, but not a journal of a format that can be read here."""


@dataclass(frozen=True)
class JournalContents:
    """The contents of a journal."""

    search: Mapping[str, Any]
    """All inputs of controller and measurer, as given to `Journal.open`."""
    created: str
    """When the search began, RFC 3339, UTC."""
    entries: tuple[JournalEntry, ...]
    """The proved trials, in the order in which they were measured."""
    proved_bytes: int
    """Bytes of the lines until the last proof. The rest of the file are trials that nothing proves, and perhaps a line
    that was cut off while it was written."""
    digest: str
    """Digest of the last one of these lines."""
    additions: tuple[Addition, ...] = ()
    """What was measured after the search, in the order measured."""
    about: Mapping[str, Any] | None = None
    """The test and the conditions, as given to `Journal.open`; None: nothing was given."""
    unproved: tuple[JournalEntry, ...] = ()
    """The trials behind the last proof, in the order in which they were measured."""
    intact_bytes: int = 0
    """Bytes of all whole lines."""
    last_digest: str = ""
    """Digest of the last whole line."""

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """The results of the proved trials, in the order in which they were measured."""
        return tuple(entry.result for entry in self.entries)


def read_journal(path: str | Path) -> JournalContents:
    """Reads a journal; a last line that was cut off is left out.

    Raises:
        UnknownJournalError: If the file is not a journal, or is one of another version.
        SearchError: If the file is missing, or has a damaged line.
    """
    contents, damage = read_good_part(path)
    if damage is not None:
        raise damage
    return contents


def read_good_part(path: str | Path) -> tuple[JournalContents, SearchError | None]:
    """Reads a journal up to its first damaged line, and returns the error of that line; None: no line is damaged.

    A header that is damaged is an error as in `read_journal`.
    """
    path = Path(path)
    first, *lines = read_input_file(path, SearchError, MOST_RECORDED_BYTES, "the journal").split(b"\n")
    if not lines:
        raise SearchError(f"{path} is not a journal, or was cut off in its header: it has no whole line.")
    try:
        header, digest = journal_lines.read_header(first)
    except journal_lines.UnknownFormatError as error:
        raise UnknownJournalError(
            f"{path}, line 1: {error}. If it is of another version, use that; otherwise it does not belong here."
        ) from error
    except ValueError as error:
        raise _damage(path, 1, error) from error
    intact = proved = len(first) + 1
    proof = digest
    entries: list[JournalEntry] = []
    unproved: list[JournalEntry] = []
    additions: list[Addition] = []
    damage = None
    for number, line in enumerate(lines, start=2):
        try:
            if number == len(lines) + 1 and not journal_lines.is_whole(line):
                break
            read, digest = journal_lines.read_line(line, digest)
        except ValueError as error:
            damage = _damage(path, number, error)
            break
        intact += len(line) + 1
        if isinstance(read, JournalEntry):
            unproved.append(read)
            if not read.verified:
                continue
        elif isinstance(read, Addition):
            # What is measured after a search is written when the DUTs have been verified once more.
            additions.append(read)
        entries += unproved
        unproved.clear()
        proved, proof = intact, digest
    contents = JournalContents(
        header["search"],
        header["created"],
        tuple(entries),
        proved,
        proof,
        tuple(additions),
        header.get("about"),
        tuple(unproved),
        intact,
        digest,
    )
    return contents, damage


class Journal(AbstractContextManager["Journal"]):
    """A journal that is being written. Use `Journal.open`, and close it (or use it as a context manager)."""

    def __init__(self, path: Path, results: list[TrialResult], file: FileIO, digest: str) -> None:
        self.path = path
        self.results = results
        """The results of the journal's proved trials when it was opened; `append` adds to them."""
        self._file = file
        self._digest = digest
        self._sizes = [path.stat().st_size]
        self.is_verified: Callable[[], bool] = lambda: True
        """Returns whether the DUTs were found as they were set up after the last trial."""

    @classmethod
    def open(cls, path: str | Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> "Journal":
        """Starts a journal, or continues the journal of an interrupted search, without the trials that nothing proves.

        Args:
            path: The file. Its directory is made if it is missing.
            search: Everything needed to repeat the search, as JSON data. A journal is continued only if this is equal.
            about: The test and its conditions, as JSON data, for a result that is made from the journal alone. A
                journal that is continued keeps its own.

        Raises:
            SearchError: If the file is not a journal, or is one of another search; names the differences.
            StorageError: If it cannot be written.
        """
        path = Path(path)
        with _opening(path):
            if not (path.exists() and has_header(path)):
                return cls.begin(path, search, about)
        contents, wanted = read_journal(path), json.loads(json.dumps(search))
        if contents.search != wanted:
            raise SearchError(
                f"The journal {path} belongs to another search: {', '.join(_differences(contents.search, wanted))}. "
                f"Give the same inputs to continue it, or another file to start anew."
            )
        return cls._at_end(path, contents)

    @classmethod
    def begin(cls, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> "Journal":
        """Starts a journal as `open` does, in place of an earlier file. Raises StorageError if it cannot."""
        with _opening(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with cls(path, [], path.open("wb", buffering=0), "") as journal:
                journal._write(*add_digest(journal_lines.describe_search(search, about)))
            return cls(path, [], path.open("ab", buffering=0), journal._digest)

    @classmethod
    def reopen(cls, path: Path) -> "Journal":
        """Opens the journal of a search that has ended, for what is measured after it; errors are those of `open`."""
        return cls._at_end(path, read_journal(path))

    def withdraw(self, keep: int) -> None:
        """Removes trials that were appended since the journal was opened, behind the first ones that it keeps."""
        os.truncate(self.path, self._sizes[min(keep, len(self._sizes) - 1)])

    @classmethod
    def prove(cls, path: Path) -> None:
        """Writes into a closed journal that the DUTs were as set up after the last trial, unless it says so.

        An interrupt may have ended the last write at any place. So the file shows what is there, and no open journal.
        Errors are those of `open`.
        """
        contents = read_journal(path)
        if not contents.unproved:
            return
        with cls._at(path, [], contents.intact_bytes, contents.last_digest) as journal:
            journal._write(*add_digest(journal_lines.describe_verification(), journal._digest))

    @classmethod
    def _at_end(cls, path: Path, contents: JournalContents) -> "Journal":
        if contents.unproved:
            _LOG.warning(
                "The last %d trials of %s are not used: the run was cut off before anybody looked whether the devices "
                "were still as they were set up.",
                len(contents.unproved),
                path,
            )
        return cls._at(path, list(contents.results), contents.proved_bytes, contents.digest)

    @classmethod
    def _at(cls, path: Path, results: list[TrialResult], size: int, digest: str) -> "Journal":
        with _opening(path):
            file = path.open("r+b", buffering=0)
            file.truncate(size)
            file.seek(0, os.SEEK_END)
            return cls(path, results, file, digest)

    def append(
        self, result: TrialResult, purpose: str | None = None, rule: str | None = None, verified: bool | None = None
    ) -> None:
        """Writes one result and waits until it is on the disk.

        Raises:
            SearchError: If its numbers contradict each other or are of other types, so that it could not be read again.
            StorageError: If it cannot be written to the disk.
        """
        entry = JournalEntry(result, purpose, rule, self.is_verified() if verified is None else verified)
        what = f"The measurer's answer at {result.load:.10g} frames/s"
        self._append(lambda: journal_lines.describe_trial(entry), what)
        self._sizes.append(self.path.stat().st_size)
        self.results.append(result)

    def add(self, addition: Addition) -> None:
        """Writes what was measured after the search, and waits until it is on the disk; errors are as of `append`."""
        what = f"What was measured for {addition.part} after the search"
        self._append(lambda: journal_lines.describe_addition(addition), what)

    def _append(self, describe: Callable[[], bytes], what: str) -> None:
        try:
            line, digest = add_digest(describe(), self._digest)
            # The journal is read in the same way when it is continued.
            journal_lines.read_line(line, self._digest)
        except (ValueError, TypeError) as error:
            raise SearchError(
                f"{what} cannot be kept: {error}. Correct the measurer; the trials before are in the journal."
            ) from error
        self._write(line, digest)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, line: bytes, digest: str) -> None:
        way_out = "The trials until then are in it; make room, and resume the run."
        with storing(f"write to the journal {self.path}", way_out):
            line += b"\n"
            while line:
                # On a disk that is nearly full only a part is written.
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
            self._digest = digest


def adopt_journal(earlier: Path, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> None:
    """Uses the trials of one search for another search, although the searches differ: for a user who asks for that.

    Only proved trials within the load limits of the other search are used. None are used where the first trials would
    get another meaning: where the warm-up differs, or where the trials are planned (for a maximum receive rate, a frame
    loss rate) and the plan differs. Additions belong to the result of the earlier search, and none is used. If a
    journal is replaced and anything of it is left out, a copy of the journal is kept beside it, with ``.before-force``
    and a number after its name.

    Raises:
        SearchError: If the earlier journal cannot be read.
        StorageError: If the new journal cannot be written.
    """
    entries: Sequence[JournalEntry] = ()
    if earlier.exists() and has_header(earlier):
        contents = read_journal(earlier)
        if _first_trials(contents.search) == _first_trials(search):
            least, most = search.get("min_load_fps", 0.0), search.get("max_load_fps", math.inf)
            entries = [entry for entry in contents.entries if least <= entry.result.load <= most]
        is_whole_copy = len(entries) == len(contents.entries) and not (contents.additions or contents.unproved)
        if earlier.resolve() == path.resolve() and not is_whole_copy:
            names = (path.with_name(f"{path.name}.before-force-{number}") for number in itertools.count(1))
            with storing(f"keep a copy of the journal {path}", "It was not changed."):
                shutil.copyfile(path, next(name for name in names if not name.exists()))
    unfinished = path.with_name(f".{path.name}.part")
    with Journal.begin(unfinished, search, about) as journal:
        for entry in entries:
            journal.append(entry.result, entry.purpose, entry.rule)
    unfinished.replace(path)


def _first_trials(search: Mapping[str, Any]) -> tuple[Any, ...]:
    """The inputs on which the meaning of the first trials depends; empty where the first trials are as any others."""
    settings = search.get("settings") or {}
    if "min_load_fps" not in search:
        plan = {name: value for name, value in settings.items() if name not in ("trials", "repeats")}
        return (*(search.get(name) for name in ("algorithm", "max_load_fps", "throughput_fps")), plan)
    warm_up = settings.get("warm_up_duration_s")
    return () if warm_up is None else (warm_up, search["max_load_fps"])


def _opening(path: Path) -> AbstractContextManager[None]:
    way_out = "Nothing is measured that could not be kept; make room for it, or choose another output directory."
    return storing(f"open the journal {path}", way_out)


def _damage(path: Path, number: int, problem: ValueError) -> SearchError:
    saved = "saves the trials before that line" if number > 1 else "sets it aside, so that its test begins anew"
    return SearchError(
        f"{path}, line {number}: {problem}. The journal is damaged there; 'lossratio repair {path}' {saved}."
    )


def has_header(path: Path) -> bool:
    """Whether the header of a journal is whole; otherwise its test begins again, without a repair."""
    return b"\n" in read_input_file(path, SearchError, MOST_RECORDED_BYTES, "the journal")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = sorted(old.keys() | new.keys())
    return [f"{name} was {old.get(name)!r}, now {new.get(name)!r}" for name in names if old.get(name) != new.get(name)]
