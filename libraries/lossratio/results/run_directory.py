"""The directory of a run: one journal and one result file per test.

``trials/<test>.jsonl`` grows while a test runs; ``results/<test>.json`` appears, complete, when the test is over.
"""

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError

from lossratio.errors import (
    DamagedFileError,
    NewerFileError,
    ReportError,
    SearchError,
    StorageError,
    storing,
)
from lossratio.files import (
    MOST_RECORDED_BYTES,
    as_path,
    parse_json,
    read_input_file,
    said_if_newer,
    shell_word,
    shown_name,
)
from lossratio.results.contradictions import contradictions_of
from lossratio.results.kinds import kind_in
from lossratio.results.model import FORMAT, TestResult
from lossratio.trials import DigestError, add_digest, is_being_written, lock, take_digest
from lossratio.values import in_words

_LONGEST_NAME = 120
_MOST_RESULTS = 1000
_MOST_PROBLEMS = 10
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9. -]*")
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.-]+")


class DamagedResultError(ReportError, DamagedFileError):
    """The file was a result in a format that this version reads, but is now damaged."""


class _NewerResultError(ReportError, NewerFileError):
    """A newer version wrote the result."""


@dataclass(frozen=True)
class Claim:
    """A test that one process measures into a directory, until it is released, or the process ends."""

    path: Path
    """The file that is locked."""
    file: int
    """Its descriptor."""

    def release(self) -> None:
        """Releases the test, so that other processes can measure it."""
        self.path.unlink(missing_ok=True)
        os.close(self.file)


@dataclass(frozen=True)
class RunDirectory:
    """The directory of a run."""

    path: Path
    """The directory; it is created with the first file."""

    def __post_init__(self) -> None:
        # A script may give the path as a text.
        path = as_path(StorageError, "The directory of a run", self.path)
        object.__setattr__(self, "path", path)

    @property
    def has_files(self) -> bool:
        """Whether the directory has results or journals."""
        return any((self.path / name).is_dir() for name in ("results", "trials"))

    def journal_path(self, test_name: str) -> Path:
        """The path of a test's journal."""
        return self.path / "trials" / f"{file_stem(test_name)}.jsonl"

    def result_path(self, test_name: str) -> Path:
        """The path of a test's result."""
        return self.path / "results" / f"{file_stem(test_name)}.json"

    def write(self, result: TestResult) -> Path:
        """Writes a test's result as a whole or not at all; returns the file.

        The file replaces an earlier result of the same measurement. A result of another measurement, e.g. of a test
        with this name in another process, is moved to ``earlier``.

        Raises:
            StorageError: If the file cannot be written.
        """
        name = result.test.full_name
        path = self.result_path(name)
        way_out = (
            f"Its trials are in the journal {self.journal_path(name)}. Free some space, and "
            "resume the run."
        )
        with storing(f"write the result of {name} to {path}", way_out):
            path.parent.mkdir(parents=True, exist_ok=True)
            data = encode_result(result)
            while not _is_written(path, data):
                # If two processes do this, the faster one moves the file.
                with contextlib.suppress(FileNotFoundError):
                    _move(path, self.path / "earlier")
        return path

    def claim(self, test_name: str) -> Claim:
        """Keeps other processes from measuring a test into this directory, also between measurements.

        Raises:
            SearchError: If another process measures the test into this directory in its run.
            StorageError: If the claim cannot be written.
        """
        path = self.path / f".{file_stem(test_name)}.lock"
        with storing(f"write to {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            while True:
                file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
                try:
                    lock(file, path)
                except BlockingIOError:
                    os.close(file)
                    raise self._measured_elsewhere(test_name) from None

                # A file whose claim was released in the meantime keeps nobody out.
                if os.fstat(file).st_nlink:
                    return Claim(path, file)
                os.close(file)

    def _measured_elsewhere(self, test_name: str) -> SearchError:
        return SearchError(
            f"Another process is writing the results of {test_name} to {self.path}. Give each run "
            "its own directory: --outputdir DIR."
        )

    def keep_earlier(self, test_name: str) -> None:
        """Moves the files of a test that is measured again to ``earlier``, so that nobody mistakes them for new files.

        Raises:
            SearchError: If another process measures the test into this directory now.
            StorageError: If a file cannot be moved.
        """
        journal = self.journal_path(test_name)
        if is_being_written(journal):
            raise self._measured_elsewhere(test_name)
        for path in (self.result_path(test_name), journal):
            if path.exists():
                with storing(f"move {path}, which an earlier run left"):
                    _move(path, self.path / "earlier")

    def results(self) -> tuple[TestResult, ...]:
        """Reads the results of all tests, in the order in which the tests began.

        Raises:
            ReportError: If this is not the directory of a run, or a result file cannot be used.
        """
        if not (self.path / "results").is_dir():
            raise ReportError(
                f"{self.path} is not the directory of a run: it has no directory 'results'. Name the directory "
                "that 'lossratio run' wrote."
            )
        results = (read_result(path) for path in sorted((self.path / "results").glob("*.json")))
        return tuple(sorted(results, key=attrgetter("started", "test.full_name")))


_BEGAN = re.compile(rb'^ "started": .*$', re.MULTILINE)
"""The line of a result that distinguishes measurements of one test."""


def _is_written(path: Path, data: bytes) -> bool:
    """Writes a result, unless the file has the result of another measurement. Returns whether it was written."""
    try:
        _create(path, data)
    except FileExistsError:
        began = _BEGAN.search(data)
        try:
            is_own = began is not None and began[0] in path.read_bytes()
        except FileNotFoundError:
            return False
        if is_own:
            write_whole(path, data)
        return is_own

    return True


def _create(path: Path, data: bytes) -> None:
    """Writes a new file as a whole.

    Raises:
        OSError: If the file already exists, or cannot be written.
    """
    whole = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write_whole(whole, data)
        try:
            os.link(whole, path)
        except FileExistsError:
            raise
        except OSError:
            # Not every file system has links.
            if path.exists():
                raise FileExistsError(path) from None
            whole.replace(path)
    finally:
        whole.unlink(missing_ok=True)


def _move(path: Path, folder: Path) -> None:
    """Moves a file into a folder, under the first free name with a number."""
    folder.mkdir(exist_ok=True)
    numbered = (folder / f"{path.stem}.{number}{path.suffix}" for number in count(1))
    path.rename(next(place for place in numbered if not place.exists()))


def encode_result(result: TestResult) -> bytes:
    """Encodes a result for its file: JSON, with the digest at the end."""
    return add_digest(result.model_dump_json(indent=1).encode())[0] + b"\n"


def read_result(path: str | Path) -> TestResult:
    """Reads a result file, and checks its digest and whether its numbers contradict each other.

    Raises:
        DamagedResultError: If the file is damaged, or contradicts itself.
        ReportError: If the file is missing, is not a result, is from a newer version, or is of a kind whose package is
            missing or broken.
    """
    path = as_path(ReportError, "A result", path)
    data = read_input_file(path, ReportError, MOST_RECORDED_BYTES, "the result")
    place: tuple[str, ...] = ()

    try:
        text = take_digest(data.removesuffix(b"\n"))[0]
        kind = kind_in(text)
        place = (kind.name,)
        result: TestResult = kind.parse(text)
    except DigestError as error:
        _check_format(path, data)
        raise _damaged(path, f"{error}: the file was changed after it was written") from error
    except ReportError as error:
        _refuse_newer(path, data, f"{error}")
        raise ReportError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        _check_format(path, data)
        errors = error.errors()
        problems = "; ".join(
            f"{'.'.join(map(shown_name, (*place, *details['loc'])))}: {in_words(details)}"
            for details in errors[:_MOST_PROBLEMS]
        )
        problems += (
            f"; and {len(errors) - _MOST_PROBLEMS} more" if len(errors) > _MOST_PROBLEMS else ""
        )
        _refuse_newer(path, data, f"{problems}.")
        raise DamagedResultError(
            f"{path} is not a result of format {FORMAT!r}: {problems}."
        ) from error

    wrong = list(islice(contradictions_of(result), _MOST_PROBLEMS))
    if wrong:
        version = result.conditions.controller.lossratio_version
        raise _damaged(path, f"{'; '.join(wrong)} (measured by lossratio {version})")
    return result


def file_stem(name: str) -> str:
    """Makes a file name that is safe on any file system, readable, and different for different names.

    A name of letters, digits, dots, dashes and spaces is kept, with ``_`` for the spaces. In any other name,
    ``_`` replaces unsafe characters, and the name may be cut. A ``~``, which no kept name contains, and a digest of the
    whole name follow.
    """
    if _SAFE.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return name.replace(" ", "_")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_UNSAFE_CHARACTERS.sub('_', name)[:_LONGEST_NAME].strip('._-')}~{digest}"


def result_name(test_name: str, number: int) -> str:
    """The name of a test's first, second or later result."""
    if number == 1:
        return test_name
    return f"{test_name} ({number})"


def search_name(name: str) -> str:
    """The name of the search before a measurement, if that search has its own result."""
    return f"{name} search"


def result_stems(test_name: str) -> Iterator[str]:
    """The file names of a test's results, up to the largest number of results that a test can have."""
    for number in range(1, _MOST_RESULTS + 1):
        name = result_name(test_name, number)
        yield file_stem(name)
        yield file_stem(search_name(name))


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file as a whole or not at all, replacing an earlier one. A link stays, and so does a device or a pipe.

    The user's umask decides who may read a new file. A replaced file keeps its permissions.

    Raises:
        OSError: If it cannot be written.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        # Opening a pipe that nobody reads would wait for ever.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb") as device:
            os.set_blocking(device.fileno(), True)
            device.write(data)
        return

    temporary = path.parent / f".{secrets.token_hex(8)}.part"
    try:
        with temporary.open("xb") as file:
            if path.is_file():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        # After success this name is gone; after a full disk or an interrupt it is an incomplete file.
        temporary.unlink(missing_ok=True)


def _check_format(path: Path, text: bytes) -> None:
    """Checks that a result file has the format that this version reads.

    Raises:
        ReportError: If it has not.
    """
    try:
        data = parse_json(text)
    except ValueError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error

    file_format = data.get("format") if isinstance(data, dict) else None
    if file_format == FORMAT:
        return

    if isinstance(file_format, str):
        with contextlib.suppress(DigestError):
            take_digest(text.replace(file_format.encode(), FORMAT.encode(), 1).removesuffix(b"\n"))
            raise _damaged(
                path, f"its 'format' is {file_format!r}, but its digest belongs to {FORMAT!r}"
            )

    _refuse_newer(path, text)
    if (path.parent.parent / "trials" / f"{path.stem}.jsonl").exists():
        raise _damaged(
            path, f"its 'format' is {file_format!r}, but its journal shows that it was a result"
        )
    raise ReportError(f"{path} is not a result: its 'format' is {file_format!r}, not {FORMAT!r}.")


def _refuse_newer(path: Path, text: bytes, problem: str = "") -> None:
    """Raises an error about an intact result that a newer version wrote, with the problem that this version has."""
    newer = None
    with contextlib.suppress(ValueError):
        newer = said_if_newer(path, FORMAT, parse_json(text))
    if newer is not None:
        raise _NewerResultError(f"{newer} {problem}".rstrip())


def _damaged(path: Path, problem: str) -> DamagedResultError:
    return DamagedResultError(
        f"{path} is damaged: {problem}.",
        f"To save what is valid: lossratio archive repair {shell_word(path)}",
    )
