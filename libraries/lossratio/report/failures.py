"""Tests that failed or were skipped, each with a line in a file of the run's directory.

A test that measured nothing has no other file.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lossratio.errors import NotMeasuredHereError
from lossratio.results import identity_of, result_stems, suite_identity_of, write_whole
from lossratio.values import FAILURES, in_one_line, tests_counted

CUT_OFF = "cut off"
"""State of a test with a journal and without a result: the run ended in the middle of the test."""
FAILED = "failed"
"""State of a test that failed before it measured anything."""
SKIPPED = "skipped"
"""State of a test that the suite or Robot's options skipped."""
NOT_HERE = "not measured here"
"""State of a test that needs a larger testbed, e.g. more cores."""


@dataclass(frozen=True)
class WithoutResult:
    """A test of a run that has no result."""

    full_name: str
    """The test's identity; if it was cut off and its journal does not describe it, the journal's name without its
    suffix."""
    suite: str
    """The identity of its suite; empty: not known."""
    state: str
    """What became of it: `CUT_OFF`, `FAILED`, `SKIPPED` or `NOT_HERE`."""
    reason: str
    """Why it has no result."""
    time: str | None = None
    """When it failed or was skipped, as in RFC 3339; None: not known."""
    began: str | None = None
    """When it began, likewise."""
    trials: int | None = None
    """Number of proved trials of a test that was cut off; None: it was not cut off."""
    known: tuple[str, ...] = ()
    """The bounds of each goal when a search was cut off, in words. A note about trials that are not proved follows."""

    @property
    def name(self) -> str:
        """Its name in the suite."""
        return self.full_name.removeprefix(f"{self.suite}.")

    @property
    def when(self) -> str:
        """When it ended, in words that follow its state; empty: nothing more is to be said."""
        return " before it measured anything" if self.state == FAILED else ""

    def began_after(self, time: datetime) -> bool:
        """Whether it is known to have begun after a time with a time zone."""
        with suppress(TypeError, ValueError):
            return self.began is not None and datetime.fromisoformat(self.began) > time
        return False


def skips_in_words(tests: Iterable[WithoutResult]) -> Iterator[str]:
    """What happened to which skipped tests, and why: a line for each reason."""
    alike: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        alike.setdefault((test.state, test.reason), []).append(test.full_name)
    for (state, reason), names in alike.items():
        yield in_one_line(f"{tests_counted(len(names))} {state}: {reason} ({', '.join(names)})")


def what_a_skip_is(*, is_misfit: bool) -> str:
    """What happened to a skipped test, in words: only a misfit was not measured *here*."""
    if is_misfit:
        return NOT_HERE
    return SKIPPED


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


def tests_noted_in(directory: Path) -> Iterator[WithoutResult]:
    """The tests that failed, whether or not they measured anything before, and those that were skipped."""
    for test, entry in _last_lines(directory).items():
        state = FAILED
        reason = entry.get("message")
        if reason is None:
            state = what_a_skip_is(is_misfit=entry.get("misfit") is True)
            reason = entry.get("skipped")
        if reason is not None:
            suite = entry.get("suite") or test.rpartition(".")[0]
            time = _text(entry.get("time"))
            began = _text(entry.get("began"))
            yield WithoutResult(test, str(suite), state, str(reason), time, began)


def _text(value: object) -> str | None:
    """A field of the file as text; None: the file does not have it."""
    return None if value is None else str(value)


def misfits_of(directory: Path) -> frozenset[str]:
    """The identities of the tests that need a larger testbed."""
    noted = tests_noted_in(directory)
    return frozenset(test.full_name for test in noted if test.state == NOT_HERE)


def _last_lines(directory: Path) -> dict[str, dict[str, Any]]:
    """The last line of each test, by its full name."""
    return {entry["test"]: entry for entry in noted_failures(directory)}


def _add(directory: Path, entry: dict[str, Any]) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with (directory / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({**entry, "time": now}) + "\n")
