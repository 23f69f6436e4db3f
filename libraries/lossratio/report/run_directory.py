"""The directory of a run: one journal and one result file per test.

``trials/<test>.jsonl`` grows while a test runs; ``results/<test>.json`` appears whole when it is over.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from lossratio.errors import ReportError, StorageError
from lossratio.report.model import FORMAT, RESULT, Result

_LONGEST_NAME = 120
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9. -]*")
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class RunDirectory:
    """The directory of a run.

    Attributes:
        path: The directory; it is made when something is written into it.
    """

    path: Path

    @property
    def has_files(self) -> bool:
        """Whether it has results or journals."""
        return any((self.path / name).is_dir() for name in ("results", "trials"))

    def journal_path(self, test_name: str) -> Path:
        """Where a test's journal belongs.

        Args:
            test_name: The test's full name, as in `TestIdentity.full_name`.
        """
        return self.path / "trials" / f"{file_stem(test_name)}.jsonl"

    def result_path(self, test_name: str) -> Path:
        """Where a test's result belongs.

        Args:
            test_name: The test's full name, as in `TestIdentity.full_name`.
        """
        return self.path / "results" / f"{file_stem(test_name)}.json"

    def write(self, result: Result) -> Path:
        """Writes a test's result; an earlier one of the same test is replaced as a whole, or not at all.

        Returns:
            The file.

        Raises:
            StorageError: If it cannot be written.
        """
        path = self.result_path(result.test.full_name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, RESULT.dump_json(result, indent=1) + b"\n")
        except OSError as error:
            raise StorageError(
                f"Cannot write the result of {result.test.full_name} to {path}: {error.strerror}. "
                f"Its trials are in the journal, {self.journal_path(result.test.full_name)}."
            ) from error
        return path

    def discard(self, test_name: str) -> None:
        """Takes away what an earlier run left of a test that is measured anew, so that nobody takes it for this run's.

        Raises:
            StorageError: If it cannot be taken away.
        """
        for path in (self.result_path(test_name), self.journal_path(test_name)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"Cannot clear {path} of what an earlier run left: {error.strerror}.") from error

    def results(self) -> tuple[Result, ...]:
        """Reads the results of all tests, in the order in which the tests began.

        Raises:
            ReportError: If this is no run directory, or one of its result files cannot be used.
        """
        if not (self.path / "results").is_dir():
            raise ReportError(f"{self.path} is not the directory of a run: there is no directory 'results' in it.")
        results = (read_result(path) for path in sorted((self.path / "results").glob("*.json")))
        return tuple(sorted(results, key=lambda result: (result.started, result.test.full_name)))


def read_result(path: str | Path) -> Result:
    """Reads a result file.

    Raises:
        ReportError: If it is missing, damaged, no result, or of a version that is newer than this one.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReportError(f"Cannot read the result {path}: {error.strerror}.") from error
    try:
        return RESULT.validate_json(data)
    except ValidationError as error:
        _check_format(path, data)
        problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ReportError(f"{path} is not a result of format {FORMAT!r}: {problems}.") from error


def file_stem(name: str) -> str:
    """A name for files that is safe everywhere, readable, and never the same for two names.

    A name of letters, digits, dots, dashes and spaces is kept, with ``_`` for the spaces. Any other one is kept
    as far as it is safe, with a digest of the whole name after a ``~``, which no kept name has.
    """
    if _SAFE.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return name.replace(" ", "_")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_UNSAFE_CHARACTERS.sub('_', name)[:_LONGEST_NAME].strip('._-')}~{digest}"


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that appears, or replaces an earlier one, as a whole or not at all.

    Raises:
        OSError: If it cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        # An interrupt, too, leaves no part of a file behind; it goes on.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _check_format(path: Path, text: bytes) -> None:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ReportError(f"{path} is damaged: it is not JSON ({error}). Run its test again.") from error
    given = data.get("format") if isinstance(data, dict) else None
    family = FORMAT.rpartition("/")[0] + "/"
    if given == FORMAT:
        return
    if isinstance(given, str) and given.startswith(family) and given.removeprefix(family).isdecimal():
        raise ReportError(
            f"{path} has the format {given!r}, and this version of lossratio reads {FORMAT!r}. "
            f"Use the version that wrote it, or a newer one."
        )
    raise ReportError(f"{path} is not a result: its 'format' is {given!r}, not {FORMAT!r}.")
