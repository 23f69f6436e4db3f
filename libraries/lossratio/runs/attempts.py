"""The attempts at a run: what earlier ones left behind is kept apart, and put together with the newest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import SuiteVisitor

from lossratio.errors import StorageError
from lossratio.results import write_whole
from lossratio.runs.failures import FailureRecord
from lossratio.runs.merging import merged, verdicts_of
from lossratio.runs.salvage import salvage
from lossratio.runs.verdicts import TestVerdict

_OUTPUT = "output.xml"


@dataclass(frozen=True)
class Attempts:
    """The outputs of all attempts at a run, in its directory.

    Attributes:
        directory: The run's directory. ``output.xml`` there is that of the newest attempt while it runs, and of all of
            them afterwards; earlier ones are below ``attempts``.
    """

    directory: Path

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Outputs that are kept, oldest first."""
        return tuple(sorted((self.directory / "attempts").glob("*.xml")))

    def keep_newest(self) -> None:
        """Keeps what there is of the newest attempt, before another one begins.

        Raises:
            StorageError: If that is not possible.
        """
        whole = salvage(self.directory / _OUTPUT)
        if whole is None:
            return
        folder = self.directory / "attempts"
        try:
            folder.mkdir(exist_ok=True)
            write_whole(folder / f"{len(self.outputs) + 1:03}.xml", whole)
        except OSError as error:
            raise StorageError(
                f"Cannot write to {folder}: {error.strerror}. Nothing is lost; make room, and resume the run again."
            ) from error

    def verdicts(self) -> tuple[TestVerdict, ...]:
        """What became of each test in the attempts that are kept."""
        return verdicts_of(merged(self.outputs), FailureRecord(self.directory).read()) if self.outputs else ()


class OnlyRest(SuiteVisitor):  # type: ignore[misc]
    """Leaves tests out that need not be run again; Robot Framework calls it before a run.

    Args:
        finished: Full names of these tests.
    """

    def __init__(self, finished: Collection[str]) -> None:
        self._finished = frozenset(finished)

    def start_suite(self, suite: Any) -> None:
        """Leaves tests of a suite out."""
        suite.tests = [test for test in suite.tests if test.full_name not in self._finished]

    def end_suite(self, suite: Any) -> None:
        """Leaves suites out that have nothing left to run."""
        suite.suites = [each for each in suite.suites if each.has_tests]

    def visit_test(self, test: Any) -> None:
        """There is nothing to change inside of tests."""
