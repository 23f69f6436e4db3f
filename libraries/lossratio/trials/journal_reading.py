"""Reads trial journals; `lossratio.trials.journal` writes them and describes their lines."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lossratio.errors import DamagedFileError, NewerFileError, SearchError
from lossratio.files import (
    MOST_RECORDED_BYTES,
    kind_of_contents,
    parse_json,
    read_input_file,
    said_if_newer,
    shell_word,
    shown_name,
)
from lossratio.trials import journal_lines
from lossratio.trials.digest import DigestError
from lossratio.trials.journal_lines import Addition, JournalEntry, Line, Withdrawal, WithdrawnTrial
from lossratio.trials.late import Late, with_late_frames
from lossratio.trials.trial import TrialResult

_NAME = journal_lines.FORMAT.partition("/")[0].encode()


class UnknownJournalError(SearchError):
    """A file is intact, but not a journal of a format that can be read here."""


class NewerJournalError(UnknownJournalError, NewerFileError):
    """A newer version wrote the journal."""


class DamagedJournalError(SearchError, DamagedFileError):
    """The file was a journal that this version reads, but is now damaged."""


@dataclass(frozen=True)
class JournalContents:
    """The contents of a journal."""

    search: Mapping[str, Any]
    """All inputs of controller and measurer, as given to `Journal.open`."""
    created: str
    """When the search began, RFC 3339, UTC."""
    entries: tuple[JournalEntry, ...]
    """The proved trials, in the order in which they were measured, with their late frames."""
    intact_bytes: int
    """Bytes of all whole lines. The rest of the file may be a line that was cut off while it was written."""
    file_bytes: int
    """Bytes of the whole file."""
    digest: str
    """Digest of the last whole line."""
    additions: tuple[Addition, ...] = ()
    """What was measured after the search, in the order measured."""
    about: Mapping[str, Any] | None = None
    """The test and the conditions, as given to `Journal.open`; None: nothing was given."""
    unproved: tuple[JournalEntry, ...] = ()
    """The trials after the last proof, in the order in which they were measured, with their late frames."""
    withdrawn: tuple[WithdrawnTrial, ...] = ()
    """The trials that are kept but not used, in the order in which they were measured."""

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """The results of the proved trials as controllers receive them, when late frames are not known yet."""
        return tuple(_as_measured(entry.result) for entry in self.entries)

    @property
    def number_of_trials(self) -> int:
        """Number of all trials of the journal, including those that are not used."""
        return len(self.entries) + len(self.unproved) + len(self.withdrawn)


def read_journal(path: str | Path) -> JournalContents:
    """Reads a journal, leaving out a last line that was cut off.

    Raises:
        UnknownJournalError: If the file is not a journal, or is one of another version.
        SearchError: If the file is missing, or has a damaged line.
    """
    contents, damage = read_good_part(path)
    if damage is not None:
        raise damage
    return contents


def read_good_part(path: str | Path) -> tuple[JournalContents, DamagedJournalError | None]:
    """Reads a journal up to its first damaged line, and returns the error of that line; None: no line is damaged.

    A damaged header is an error, as in `read_journal`. A file that has neither the name of a journal nor a journal's
    format in its first line is not a damaged journal.

    Raises:
        UnknownJournalError: If it is not a journal, or has a format of another version.
        NewerJournalError: If a newer version wrote it, and this version cannot read it.
        SearchError: If it cannot be read, or its header is damaged.
    """
    path = Path(path)
    data = read_input_file(path, SearchError, MOST_RECORDED_BYTES, "the journal")
    first, *lines = data.split(b"\n")
    if path.suffix != ".jsonl" and _NAME not in first:
        raise UnknownJournalError(
            f"{shown_name(path)} is not a journal: it is {kind_of_contents(data)}. "
            "Journals are the files trials/*.jsonl in the directory of a run."
        )
    if not lines:
        raise SearchError(
            f"{path} has no complete line: it is not a journal, or was cut off in its header. Name another file."
        )

    try:
        header, digest = journal_lines.read_header(first)
    except journal_lines.UnknownFormatError as error:
        newer = said_if_newer(path, journal_lines.FORMAT, parse_json(first))
        if newer is not None:
            raise NewerJournalError(newer) from error
        raise UnknownJournalError(
            f"{path}, line 1: {error}. If it belongs to another version of lossratio, use that version; otherwise "
            "it does not belong here."
        ) from error
    except ValueError as error:
        raise _damage(path, 1, error) from error

    intact = len(first) + 1
    reading = _Reading()
    damage = None

    for number, line in enumerate(lines, start=2):
        try:
            if number == len(lines) + 1 and not journal_lines.is_whole(line):
                break
            read, of_line = journal_lines.read_line(line, digest)
            reading.take(read)
        except ValueError as error:
            newer = said_if_newer(path, header["format"], header)
            is_intact = not any(isinstance(one, DigestError) for one in (error, error.__cause__))
            if newer is not None and is_intact:
                raise NewerJournalError(f"{newer} Its line {number}: {error}.") from error
            damage = _damage(path, number, error)
            break

        digest = of_line
        intact += len(line) + 1

    contents = JournalContents(
        header["search"],
        header["created"],
        reading.entries(reading.proved),
        intact,
        len(data),
        digest,
        tuple(reading.additions),
        header.get("about"),
        reading.entries(reading.unproved),
        reading.withdrawn(),
    )
    return contents, damage


class _Reading:
    """What the lines of a journal have said so far. Trials are numbered among all trials, from 0."""

    def __init__(self) -> None:
        self.proved: list[int] = []
        self.unproved: list[int] = []
        self.additions: list[Addition] = []
        self._trials: list[JournalEntry] = []
        self._late: Counter[int] = Counter()
        self._reasons: dict[int, str] = {}

    def take(self, line: Line) -> None:
        """Reads the next line. Raises ValueError if it is about trials that do not exist."""
        if isinstance(line, JournalEntry):
            self.unproved.append(len(self._trials))
            self._trials.append(line)
            if line.verified:
                self._prove()

        elif isinstance(line, Late):
            if not 1 <= line.trial <= len(self._trials):
                raise ValueError(
                    f"it counts late frames of trial {line.trial}, but the last trial before it is number "
                    f"{len(self._trials)}"
                )
            self._late[line.trial - 1] += line.frames
        elif isinstance(line, Withdrawal):
            self._withdraw(line)
        else:
            # Measurements after a search are written after the DUTs have been verified again.
            if isinstance(line, Addition):
                self.additions.append(line)
            self._prove()

    def entries(self, places: Iterable[int]) -> tuple[JournalEntry, ...]:
        """Trials with their late frames."""
        return tuple(self._entry(place) for place in places)

    def withdrawn(self) -> tuple[WithdrawnTrial, ...]:
        """The trials that are not used."""
        return tuple(
            WithdrawnTrial(self._entry(place), self._reasons[place])
            for place in sorted(self._reasons)
        )

    def _prove(self) -> None:
        self.proved += self.unproved
        self.unproved = []

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        standing = [*self.proved, *self.unproved]
        if withdrawal.trials > len(standing):
            raise ValueError(
                f"{withdrawal.trials} trials are withdrawn, but only {len(standing)} came before"
            )
        self._reasons.update(dict.fromkeys(standing[-withdrawal.trials :], withdrawal.reason))
        self.proved = [place for place in self.proved if place not in self._reasons]
        self.unproved = [place for place in self.unproved if place not in self._reasons]

    def _entry(self, place: int) -> JournalEntry:
        entry = self._trials[place]
        return replace(entry, output=with_late_frames(entry.output, self._late[place]))


def has_header(path: Path) -> bool:
    """Whether the header of a journal is complete; otherwise, its test starts over, without a repair."""
    return b"\n" in read_input_file(path, SearchError, MOST_RECORDED_BYTES, "the journal")


def _damage(path: Path, number: int, problem: ValueError) -> DamagedJournalError:
    if number > 1:
        purpose = "save the trials before that line"
    else:
        purpose = "set it aside, and start its test over"

    return DamagedJournalError(
        f"{path}, line {number}: {problem}. The journal is damaged there.",
        f"To {purpose}: lossratio archive repair {shell_word(path)}",
    )


def _as_measured(result: TrialResult) -> TrialResult:
    """The result as it was when its trial had ended."""
    if result.output.late_frames is None:
        return result
    return replace(result, output=replace(result.output, late_frames=None))
