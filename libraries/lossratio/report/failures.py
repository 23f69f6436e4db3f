"""Tests that failed or were skipped, a line each in a file of the run's directory.

A test that measured nothing has no other file.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lossratio.exit_status import FAILURES
from lossratio.results import identity_of, suite_identity_of


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
    """Time when it failed, as in RFC 3339; None: not known, as an earlier version noted it."""

    @property
    def test(self) -> str:
        """Its name in the suite."""
        return self.name.removeprefix(f"{self.suite}.")


@dataclass(frozen=True)
class Skipped:
    """Tests that were not measured here, for one reason: e.g. the testbed has too few cores for them."""

    reason: str
    """The reason."""
    tests: tuple[SkippedTest, ...]
    """The tests that it holds for."""


def note_failure(directory: Path, test: str, message: str | None, **more: Any) -> None:
    """Notes why a test failed (None: it passed after all), and more about it, such as the full name of its suite.

    Raises:
        OSError: If the disk does not take the line.
    """
    _add(directory, {"test": test, "message": message, **more})


def note_skip(directory: Path, test: Any) -> None:
    """Notes a test of Robot Framework's result that was skipped. Raises OSError if the disk does not take the line."""
    suite = suite_identity_of(test.parent)
    _add(directory, {"test": identity_of(test), "message": None, "skipped": reason_of_skip(test), "suite": suite})


def reason_of_skip(test: Any) -> str:
    """Why Robot Framework skipped a test. Where the set-up of a suite did so, its message stands for all tests."""
    suite = test.parent
    while suite is not None:
        if suite.has_setup and suite.setup.skipped:
            return str(suite.setup.message)
        suite = suite.parent
    return str(test.message)


def noted_failures(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of the file. One that was cut off is left out."""
    path = directory / FAILURES
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, LookupError):
            entry = json.loads(line)
            yield {**entry, "test": str(entry["test"])}


def failures_of(directory: Path) -> Iterator[Unmeasured]:
    """The tests that failed, whether or not they measured anything before."""
    for test, entry in _last_lines(directory).items():
        if entry.get("message") is not None:
            # Earlier versions noted neither suite nor time.
            suite = entry.get("suite") or test.rpartition(".")[0]
            failed = entry.get("time")
            yield Unmeasured(test, str(entry["message"]), str(suite), None if failed is None else str(failed))


def skips_of(directory: Path) -> Iterator[tuple[SkippedTest, str]]:
    """The tests that were skipped, each with the reason."""
    for test, entry in _last_lines(directory).items():
        if entry.get("skipped") is not None:
            suite = str(entry.get("suite"))
            yield SkippedTest(suite, test.removeprefix(f"{suite}.")), str(entry["skipped"])


def _last_lines(directory: Path) -> dict[str, dict[str, Any]]:
    """The last line of each test, by its full name."""
    return {entry["test"]: entry for entry in noted_failures(directory)}


def _add(directory: Path, entry: dict[str, Any]) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with (directory / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**entry, "time": now}) + "\n")
