"""A run as it is found on the disk: results that can be read, and what is missing, cut off or damaged beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lossratio.errors import ReportError, SearchError
from lossratio.results import Doubt, TestResult, doubts_of, kind_of_journal, read_result
from lossratio.trials import read_journal
from lossratio.units import format_frame_rate, format_ratio


@dataclass(frozen=True)
class CutOff:
    """A test that has a journal and no result: its run ended in the middle of it.

    Attributes:
        name: Name of the journal, without its suffix: the test's full name, made safe for files.
        began: When it began, RFC 3339.
        trials: How many trials the journal has.
        bounds: What was known about each goal, in words; empty if it was no search.
        last: The last trial, in words; None: there is none.
    """

    name: str
    began: str
    trials: int
    bounds: tuple[str, ...]
    last: str | None


@dataclass(frozen=True)
class Run:
    """What the directory of a run holds.

    Attributes:
        path: The directory.
        results: The results that can be read, in the order in which their tests began.
        cut_off: Tests that were never finished.
        problems: What could not be read, each with its file.
    """

    path: Path
    results: tuple[TestResult, ...]
    cut_off: tuple[CutOff, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.cut_off and not self.problems

    @cached_property
    def doubts(self) -> tuple[tuple[Doubt, ...], ...]:
        """The doubts about each result."""
        return tuple(doubts_of(self.results))


def read_run(path: Path) -> Run:
    """Reads the directory of a run as far as it goes.

    Args:
        path: The directory.

    Raises:
        ReportError: If it is no run directory, or nothing in it can be read.
    """
    if not _is_run(path):
        raise ReportError(f"{path} is not the directory of a run: there is no directory 'results' or 'trials' in it.")
    results: list[TestResult] = []
    problems: list[str] = []
    for file in sorted((path / "results").glob("*.json")):
        try:
            results.append(read_result(file))
        except ReportError as error:
            problems.append(str(error))
    cut_off: list[CutOff] = []
    for journal in sorted((path / "trials").glob("*.jsonl")):
        if not (path / "results" / f"{journal.stem}.json").exists():
            try:
                cut_off.append(_cut_off(journal))
            except SearchError as error:
                problems.append(str(error))
    if not results and not cut_off:
        told = " ".join(problems) or "There are no results and no journals in it."
        raise ReportError(f"There is nothing to report in {path}. {told}")
    results.sort(key=lambda result: (result.started, result.test.full_name))
    return Run(path, tuple(results), tuple(cut_off), tuple(problems))


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Reads several runs, each as `read_run` does.

    Raises:
        ReportError: If one is no run directory.
    """
    return [read_run(path) for path in paths]


def runs_in(path: Path) -> list[Path]:
    """The directories of runs that a path stands for: itself, or those in it, by name.

    Raises:
        ReportError: If there are none.
    """
    if _is_run(path):
        return [path]
    found = sorted(each for each in path.iterdir() if _is_run(each)) if path.is_dir() else []
    if not found:
        raise ReportError(
            f"{path} is not the directory of a run, nor a folder of such: there is no directory 'results' or 'trials' "
            f"in it, or one level below."
        )
    return found


def _is_run(path: Path) -> bool:
    return any((path / name).is_dir() for name in ("results", "trials"))


def _cut_off(path: Path) -> CutOff:
    journal = read_journal(path)
    kind = kind_of_journal(journal)
    known = () if kind is None else tuple(kind.known_so_far(journal))
    last = None
    if journal.results:
        result = journal.results[-1]
        last = f"{format_frame_rate(result.load)} for {result.duration:g} s, loss {format_ratio(result.loss_ratio)}"
    return CutOff(path.stem, journal.created, len(journal.entries), known, last)
