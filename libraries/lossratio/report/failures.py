"""Tests that failed or were skipped, each with a line in a file of the run's directory.

A test that measured nothing has no other file.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lossratio.errors import NotMeasuredHereError
from lossratio.exit_status import FAILURES
from lossratio.results import identity_of, result_stems, suite_identity_of, write_whole
from lossratio.units import tests_counted


@dataclass(frozen=True)
class SkippedTest:
    """A test that Robot Framework skipped."""

    suite: str
    """The identity of its suite."""
    name: str
    """Its name in the suite."""

    @property
    def full_name(self) -> str:
        """Its identity."""
        return f"{self.suite}.{self.name}"


@dataclass(frozen=True)
class Unmeasured:
    """A test that failed before it measured anything."""

    name: str
    """The test's identity."""
    error: str
    """Robot Framework's message."""
    suite: str
    """The identity of its suite."""
    failed: str | None
    """Time when it failed, as in RFC 3339; None: not known."""
    began: str | None = None
    """Time when it began, as in RFC 3339; None: not known."""

    def began_after(self, time: datetime) -> bool:
        """Whether it is known to have begun after a time with a time zone."""
        with suppress(TypeError, ValueError):
            return self.began is not None and datetime.fromisoformat(self.began) > time
        return False

    @property
    def test(self) -> str:
        """Its name in the suite."""
        return self.name.removeprefix(f"{self.suite}.")


@dataclass(frozen=True)
class Skipped:
    """Tests that were skipped for one reason."""

    reason: str
    """The reason."""
    tests: tuple[SkippedTest, ...]
    """The tests that were skipped."""
    is_misfit: bool
    """Whether the testbed is too small for them, e.g. has too few cores; otherwise, the suite or Robot's options
    skipped them."""

    @property
    def what(self) -> str:
        """What happened to them, in words."""
        return what_a_skip_is(is_misfit=self.is_misfit)

    @property
    def in_words(self) -> str:
        """What happened to which tests, and why, in one line."""
        names = ", ".join(test.full_name for test in self.tests)
        reason = " ".join(self.reason.split())
        return f"{tests_counted(len(self.tests))} {self.what}: {reason} ({names})"


def what_a_skip_is(*, is_misfit: bool) -> str:
    """What happened to a skipped test, in words: only a misfit was not measured *here*."""
    if is_misfit:
        return NOT_HERE
    return "skipped"


NOT_HERE = "not measured here"
"""What happened to a test that needs a larger testbed."""


class Misfits:
    """The tests that need a larger testbed. A listener calls `look_at` for each keyword that skips a test.

    Robot Framework only keeps the message of a skip, and a suite can skip tests for any reason.
    """

    def __init__(self) -> None:
        self._messages: set[str] = set()

    def look_at(self, keyword: Any) -> None:
        """Checks the exception that passes through a keyword, when the listener is notified of the keyword's end."""
        error = sys.exc_info()[1]
        if keyword.status == "SKIP" and isinstance(error, NotMeasuredHereError):
            self._messages.add(str(error))

    def has(self, test: Any) -> bool:
        """Whether a test was skipped because the testbed was too small."""
        reason = reason_of_skip(test)
        return any(message in reason for message in self._messages)


def note_failure(directory: Path, test: str, message: str | None, **more: Any) -> None:
    """Notes why a test failed (None: it passed after all), and further facts, such as those of `facts_of`.

    Raises:
        OSError: If the disk does not take the line.
    """
    _add(directory, {"test": test, "message": message, **more})


def facts_of(test: Any) -> dict[str, str]:
    """The full name of the suite of a test of Robot Framework's result, and the time when the test began."""
    began = test.start_time.astimezone(timezone.utc).isoformat()
    return {"suite": suite_identity_of(test.parent), "began": began}


def forget_failure(directory: Path, test: str) -> None:
    """Notes that a test passed this time, if an earlier failure of it is noted.

    Raises:
        OSError: If the disk does not take the line.
    """
    if any(entry["test"] == test for entry in noted_failures(directory)):
        note_failure(directory, test, None)


def begin_failures(directory: Path) -> None:
    """Begins the file of a new run. If the directory has results of an earlier run, it keeps why their tests failed.

    Reports still show these results. The kinds of these failures are not kept, because they say nothing about the new
    run.

    Raises:
        OSError: If the file cannot be replaced.
    """
    path = directory / FAILURES
    if not path.exists():
        return
    stems = {file.stem for file in (directory / "results").glob("*.json")}
    kept = [
        {key: value for key, value in entry.items() if key != "failure"}
        for test, entry in _last_lines(directory).items()
        if entry.get("message") is not None and not stems.isdisjoint(result_stems(test))
    ]
    if kept:
        write_whole(path, "".join(f"{json.dumps(entry)}\n" for entry in kept).encode())
    else:
        path.unlink()


def note_skip(directory: Path, test: Any, *, is_misfit: bool) -> None:
    """Notes a skipped test of Robot Framework's result, and whether the testbed is too small for it.

    Raises:
        OSError: If the disk does not take the line.
    """
    entry = {
        "test": identity_of(test),
        "message": None,
        "skipped": reason_of_skip(test),
        "misfit": is_misfit,
        "suite": suite_identity_of(test.parent),
    }
    _add(directory, entry)


def reason_of_skip(test: Any) -> str:
    """Why Robot Framework skipped a test. If the set-up of a suite did so, its message applies to all tests."""
    suite = test.parent
    while suite is not None:
        if suite.has_setup and suite.setup.skipped:
            return str(suite.setup.message)
        suite = suite.parent
    return str(test.message)


def noted_failures(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of the file. A line that was cut off is left out."""
    path = directory / FAILURES
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, LookupError):
            entry = json.loads(line)
            yield {**entry, "test": str(entry["test"])}


def failures_of(directory: Path) -> Iterator[Unmeasured]:
    """The tests that failed, whether or not they measured anything before."""
    for test, entry in _last_lines(directory).items():
        if entry.get("message") is not None:
            suite = entry.get("suite") or test.rpartition(".")[0]
            failed = _text(entry.get("time"))
            began = _text(entry.get("began"))
            yield Unmeasured(test, str(entry["message"]), str(suite), failed, began)


def _text(value: object) -> str | None:
    """A field of the file as text; None: the file does not have it."""
    return None if value is None else str(value)


def skips_of(directory: Path) -> Iterator[tuple[SkippedTest, str, bool]]:
    """The tests that were skipped, each with the reason, and whether the testbed is too small for it."""
    for test, entry in _last_lines(directory).items():
        if entry.get("skipped") is not None:
            suite = str(entry.get("suite"))
            skipped = SkippedTest(suite, test.removeprefix(f"{suite}."))
            yield skipped, str(entry["skipped"]), entry.get("misfit") is True


def misfits_of(directory: Path) -> frozenset[str]:
    """The identities of the tests that need a larger testbed."""
    return frozenset(test.full_name for test, _, is_misfit in skips_of(directory) if is_misfit)


def _last_lines(directory: Path) -> dict[str, dict[str, Any]]:
    """The last line of each test, by its full name."""
    return {entry["test"]: entry for entry in noted_failures(directory)}


def _add(directory: Path, entry: dict[str, Any]) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with (directory / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**entry, "time": now}) + "\n")
