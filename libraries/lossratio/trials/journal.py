"""The trial journal: each trial is on disk before the next one starts.

A journal is a file of JSON lines: a header with everything needed to repeat the search, then one line per trial, then
one line per addition: what was measured after the search and belongs to its result (latency, telemetry). To continue an
interrupted search, open its journal again and give it to `lossratio.trials.search.run_search`.

A trial is *proved* if a later check found the DUTs as they were set up. The trial's own line says so, or a later line
(of a trial, or of a verification alone). Trials after the last proof are not continued, because it is not known which
DUT they saw. When the journal is opened again, a line *withdraws* them: they stay in it, with the reason, but are not
used.

Late frames of a trial are only seen after its line was written. They have separate lines, which name the trial.

Each line ends with a digest of itself and of the digest before it (`lossratio.trials.digest`). So a journal with a
changed line, or with lines that are missing, duplicated or out of order, is refused. Only the last lines may be
missing.
"""

import fcntl
import itertools
import json
import logging
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BufferedRandom, FileIO
from pathlib import Path
from typing import Any, Literal

from lossratio.errors import SearchError, storing
from lossratio.trials import journal_lines
from lossratio.trials.digest import add_digest
from lossratio.trials.journal_lines import Addition, JournalEntry, Line, Verification, Withdrawal
from lossratio.trials.journal_reading import JournalContents, has_header, read_journal
from lossratio.trials.late import Late, LateFrames
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.values import checked, trials_counted

_LOG = logging.getLogger(__name__)
_UNPROVED = "the run was cut off before the devices were checked"


class Journal(AbstractContextManager["Journal"]):
    """A journal that is being written. Use `Journal.open`, and close it (or use it as a context manager)."""

    def __init__(
        self, path: Path, file: FileIO, digest: str, contents: JournalContents | None = None
    ) -> None:
        self.path = path
        self.results: list[TrialResult] = [] if contents is None else list(contents.results)
        """The results of the journal's proved trials when it was opened; `append` adds to them."""
        self._file = file
        self._digest = digest
        self._trials = 0 if contents is None else contents.number_of_trials
        self.was_cut_off = contents is not None and any(
            trial.reason == _UNPROVED for trial in contents.withdrawn
        )
        """Whether the run was cut off at least once, before its last trials were proved."""
        self.is_verified: Callable[[], bool] = lambda: True
        """Returns whether the DUTs were found as they were set up after the last trial."""
        self.verify_within: Callable[[float], bool] = lambda _: False
        """Verifies the DUTs if that would be due within this many seconds; returns whether it found them as set up."""

        self.late_frames = LateFrames()
        """Finds the late frames of the appended trials; the measurer reports them there."""

    @classmethod
    @checked(SearchError)
    def open(
        cls, path: str | Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None
    ) -> "Journal":
        """Starts a journal, or continues the journal of an interrupted search, without trials that no check has proved.

        Args:
            path: The file. If its directory is missing, it is created.
            search: Everything needed to repeat the search, as JSON data. A journal is continued only if this is equal.
            about: The test and its conditions, as JSON data, for a result that is made from the journal alone. A
                continued journal keeps its own.

        Raises:
            SearchError: If the file is not a journal, or belongs to another search; the message names the differences.
            StorageError: If it cannot be written.
        """
        path = Path(path)
        with _opening(path):
            if not (path.exists() and has_header(path)):
                return cls._new(path, search, about)
        contents = read_journal(path)
        wanted = json.loads(json.dumps(search))
        if contents.search != wanted:
            raise SearchError(
                f"The journal {path} belongs to another search: {', '.join(_differences(contents.search, wanted))}. "
                "To continue it, use the same inputs. To start a new search, use another file."
            )
        return cls._at_end(path, contents)

    @classmethod
    def begin(
        cls, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None
    ) -> "Journal":
        """Starts a journal as `open` does, and replaces an earlier file.

        Raises:
            SearchError: If another process writes it.
            StorageError: If it cannot be written to the disk.
        """
        with _opening(path):
            return cls._in_place(_locked(path, "ab"), path, search, about)

    @classmethod
    def _new(
        cls, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None
    ) -> "Journal":
        """Starts a journal that did not exist a moment ago."""
        file = _locked(path, "ab")
        if has_header(path):
            file.close()
            raise _written_elsewhere(path)
        return cls._in_place(file, path, search, about)

    @classmethod
    def _in_place(
        cls, file: FileIO, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None
    ) -> "Journal":
        try:
            file.truncate(0)
            journal = cls(path, file, "")
            journal._write(*add_digest(journal_lines.describe_search(search, about)))
        except BaseException:
            file.close()
            raise
        return journal

    @classmethod
    def reopen(cls, path: Path) -> "Journal":
        """Opens the journal of a search that has ended, to add measurements after it.

        Raises:
            SearchError: If it is damaged, or another process writes it.
            StorageError: If it cannot be written.
        """
        return cls._at_end(path, read_journal(path))

    @classmethod
    def withdraw(cls, path: Path, trials: int, reason: str) -> None:
        """Marks the last trials of a closed journal as not used, with the reason. They stay in the journal.

        Args:
            path: The journal's file.
            trials: Number of trials.
            reason: Why they are not used, for readers of the journal.

        Raises:
            SearchError: If fewer of its trials are used, it is damaged, or another process writes it.
            StorageError: If it cannot be written.
        """
        contents = read_journal(path)
        withdrawal = Withdrawal(trials, reason)
        standing = len(contents.entries) + len(contents.unproved)
        if trials > standing:
            way = f"Withdraw at most {standing}." if standing else "There is nothing to withdraw."
            raise SearchError(
                f"{path} uses {trials_counted(standing)}, so {trials} cannot be withdrawn. {way}"
            )
        with cls._at(path, contents) as journal:
            journal._append(withdrawal, "A withdrawal")

    @classmethod
    def prove(cls, path: Path) -> None:
        """Records in a closed journal that the DUTs were as set up after the last trial, unless it is already recorded.

        An interrupt may have cut off the last write, so this reads the file. Errors are those of `open`.
        """
        contents = read_journal(path)
        if not contents.unproved:
            return
        with cls._at(path, contents) as journal:
            journal._append(Verification(journal_lines.now()), "A verification")

    @classmethod
    def _at_end(cls, path: Path, contents: JournalContents) -> "Journal":
        if contents.unproved:
            _LOG.warning(
                "The last %d trials of %s are kept but not used: %s.",
                len(contents.unproved),
                path,
                _UNPROVED,
            )
            cls.withdraw(path, len(contents.unproved), _UNPROVED)
            contents = read_journal(path)
        return cls._at(path, contents)

    @classmethod
    def _at(cls, path: Path, contents: JournalContents) -> "Journal":
        """Opens a journal behind its last whole line, unless another process has written to it since it was read."""
        with _opening(path):
            file = _locked(path, "r+b")
            try:
                if file.seek(0, os.SEEK_END) != contents.file_bytes:
                    raise _written_elsewhere(path)
                file.truncate(contents.intact_bytes)
                file.seek(contents.intact_bytes)
            except BaseException:
                file.close()
                raise
            return cls(path, file, contents.digest, contents)

    @checked(SearchError)
    def append(
        self,
        result: TrialResult,
        purpose: str | None = None,
        rule: str | None = None,
        verified: bool | None = None,
    ) -> None:
        """Writes one result and waits until it is on the disk.

        Raises:
            SearchError: If its numbers contradict each other or have the wrong type, so that it could not be read
            again.
            StorageError: If it cannot be written to the disk.
        """
        if verified is None:
            verified = self.is_verified()
        entry = JournalEntry.of(result, purpose, rule, verified)
        what = f"The measurer's answer at {result.load:.10g} frames/s"
        self._append(entry, what)
        self._trials += 1
        self.results.append(result)
        self.late_frames.keep(result.output.lost_frames or 0, partial(self._add_late, self._trials))

    def prove_before(self, trial: TrialInput) -> None:
        """Checks the DUTs, and thus proves the trials so far, if a check would be due during the next trial.

        Otherwise, short trials would have no proof until a later long trial has ended.

        Raises:
            LossRatioError: If a DUT is not as it was set up.
            StorageError: If it cannot be written to the disk.
        """
        if self.results and self.verify_within(trial.rest + trial.duration):
            self._append(Verification(journal_lines.now()), "A verification")

    def _add_late(self, trial: int, frames: int) -> None:
        self._append(Late(trial, frames), "Late frames of a trial")

    def add(self, addition: Addition) -> None:
        """Writes a measurement that follows the search, and waits until it is on the disk.

        Raises:
            SearchError: If it could not be read again.
            StorageError: If it cannot be written to the disk.
        """
        what = f"What was measured for {addition.part} after the search"
        self._append(addition, what)

    def _append(self, contents: Line, what: str) -> None:
        try:
            line, digest = add_digest(journal_lines.describe_line(contents), self._digest)
            # A continued journal is read in the same way.
            journal_lines.read_line(line, self._digest)
        except (ValueError, TypeError) as error:
            raise SearchError(
                f"{what} cannot be stored: {error}. Correct the measurer; earlier trials are in the journal."
            ) from error
        self._write(line, digest)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, line: bytes, digest: str) -> None:
        way_out = "It has the earlier trials. Free some space, and resume the run."
        with storing(f"write to the journal {self.path}", way_out):
            line += b"\n"
            while line:
                # On a disk that is nearly full, only a part is written.
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
            self._digest = digest


def adopt_journal(
    earlier: Path, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None = None
) -> None:
    """Uses the trials of one search for another search although the searches differ, if the user requests that.

    Only proved trials within the load limits of the other search are used. No trials are used if the first ones would
    get another meaning: if the warm-up differs, or if the trials are planned (for a maximum receive rate or a frame
    loss rate) and the plan differs. Additions belong to the result of the earlier search, and are not used. If a
    journal is replaced and anything in it is left out, a copy is kept beside it, with ``.before-force`` and a number
    after its name.

    Raises:
        SearchError: If the earlier journal cannot be read, or another process writes the journal to replace.
        StorageError: If the new journal cannot be written.
    """
    with _reserved(path):
        _adopt(earlier, path, search, about)


def _adopt(
    earlier: Path, path: Path, search: Mapping[str, Any], about: Mapping[str, Any] | None
) -> None:
    """See `adopt_journal`."""
    entries: Sequence[JournalEntry] = ()
    if earlier.exists() and has_header(earlier):
        contents = read_journal(earlier)
        if _first_trials(contents.search) == _first_trials(search):
            least = search.get("min_load_fps", 0.0)
            most = search.get("max_load_fps", math.inf)
            entries = [entry for entry in contents.entries if least <= entry.result.load <= most]

        left_out = contents.additions or contents.unproved or contents.withdrawn
        is_whole_copy = len(entries) == len(contents.entries) and not left_out
        if earlier.resolve() == path.resolve() and not is_whole_copy:
            names = (
                path.with_name(f"{path.name}.before-force-{number}")
                for number in itertools.count(1)
            )
            with storing(f"keep a copy of the journal {path}", "It was not changed."):
                shutil.copyfile(path, next(name for name in names if not name.exists()))

    unfinished = path.with_name(f".{path.name}.part")
    with Journal.begin(unfinished, search, about) as journal:
        for entry in entries:
            journal.append(entry.result, entry.purpose, entry.rule)

    unfinished.replace(path)


def _first_trials(search: Mapping[str, Any]) -> tuple[Any, ...]:
    """The inputs on which the meaning of the first trials depends; empty if the first trials are like any others."""
    settings = search.get("settings") or {}
    if "min_load_fps" not in search:
        plan = {
            name: value for name, value in settings.items() if name not in ("trials", "repeats")
        }
        return (
            *(search.get(name) for name in ("algorithm", "max_load_fps", "throughput_fps")),
            plan,
        )
    warm_up = settings.get("warm_up_duration_s")
    if warm_up is None:
        return ()
    return (warm_up, search["max_load_fps"])


def is_being_written(path: Path) -> bool:
    """Whether another process, or an open journal of this one, writes a journal now."""
    try:
        with path.open("r+b") as file:
            lock(file, path)
    except BlockingIOError:
        return True
    except OSError:
        # There is no such file, or it must not be written.
        return False
    return False


def lock(file: FileIO | BufferedRandom | int, path: Path) -> None:
    """Locks an open file for this process alone, until it is closed. Some file systems have no locks.

    Args:
        file: The file, or its descriptor.
        path: Its path.

    Raises:
        BlockingIOError: If another process, or another open file of this one, has the lock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        _LOG.debug("%s cannot be locked.", path)


def _locked(path: Path, mode: Literal["ab", "r+b"]) -> FileIO:
    """Opens a journal for this process alone, until it is closed. Raises SearchError if another process writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open(mode, buffering=0)
    try:
        lock(file, path)
    except BlockingIOError as error:
        file.close()
        raise _written_elsewhere(path) from error
    return file


@contextmanager
def _reserved(path: Path) -> Iterator[None]:
    """Keeps other processes from writing a journal, if there is one. Raises SearchError if another one writes it."""
    if not path.exists():
        yield
        return
    with _opening(path):
        file = _locked(path, "r+b")
    with file:
        yield


def _written_elsewhere(path: Path) -> SearchError:
    return SearchError(
        f"Another process is writing the journal {path}. Give each run its own directory: --outputdir DIR."
    )


def _opening(path: Path) -> AbstractContextManager[None]:
    way_out = "lossratio does not measure what it cannot store. Free some space, or choose another output directory."
    return storing(f"open the journal {path}", way_out)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = sorted(old.keys() | new.keys())
    return [
        f"{name} was {old.get(name)!r}, now {new.get(name)!r}"
        for name in names
        if old.get(name) != new.get(name)
    ]
