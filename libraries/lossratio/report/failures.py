"""Failures of tests, a line each in a file of the run's directory: a test that measured nothing has no other file."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lossratio.exit_status import FAILURES


def note_failure(directory: Path, test: str, message: str | None, **more: Any) -> None:
    """Notes why a test failed (None: it passed after all). Raises OSError if the disk does not take the line."""
    with (directory / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "message": message, **more}) + "\n")


def noted_failures(directory: Path) -> Iterator[dict[str, Any]]:
    """The lines of the file. One that was cut off is left out."""
    path = directory / FAILURES
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError, TypeError, LookupError):
            entry = json.loads(line)
            yield {**entry, "test": str(entry["test"])}


def messages_of(directory: Path) -> dict[str, str]:
    """Messages of the tests that failed, by full name."""
    last = {entry["test"]: entry.get("message") for entry in noted_failures(directory)}
    return {test: str(message) for test, message in last.items() if message is not None}
