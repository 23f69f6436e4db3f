"""Earlier searches of the same test, as hints: read from the directories of runs, or from journals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from lossratio.errors import SearchError
from lossratio.measurements.throughput.evidence import warm_ups_in
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.mlrsearch import MLRsearch
from lossratio.results import Outcome, RunDirectory, Traffic, read_result
from lossratio.trials import TrialResult, read_journal
from lossratio.units import format_frame_rate


@dataclass(frozen=True)
class EarlierSearch:
    """An earlier search of the same test.

    Attributes:
        file: The file that it was read from.
        began: When it began, RFC 3339, UTC.
        trials: Its trials that count, in the order measured.
    """

    file: Path
    began: str
    trials: tuple[TrialResult, ...]


def earlier_searches(
    path: Path, test_name: str, traffic: Traffic, *, besides: Iterable[Path] = ()
) -> tuple[EarlierSearch, ...]:
    """Finds earlier searches of a test with the same traffic.

    Args:
        path: The directory of a run, a folder of such directories, or a journal.
        test_name: Full name of the test.
        traffic: The traffic of the test; searches with other traffic are left out.
        besides: Directories of runs that are left out: that of this run, and that of the run which is continued.

    Returns:
        The searches, oldest first; empty if there are no earlier searches.

    Raises:
        SearchError: If there is nothing at the path, or the journal cannot be read.
        ReportError: If a result file cannot be read.
    """
    if path.is_file():
        searches = [_from_journal(path, traffic)]
    elif path.is_dir():
        left_out = {directory.resolve() for directory in besides}
        runs = [run for run in (path, *sorted(path.iterdir())) if run.is_dir() and run.resolve() not in left_out]
        searches = [_from_run(RunDirectory(run), test_name, traffic) for run in runs]
    else:
        raise SearchError(
            f"There are no hints at {path}: give the directory of an earlier run, a folder of such directories, "
            f"or a journal; or leave hints out."
        )
    return tuple(sorted((search for search in searches if search is not None), key=lambda each: each.began))


def describe_hints(controller: MLRsearch, earlier: Sequence[EarlierSearch]) -> dict[str, JsonValue]:
    """The hints in the form of journal and result; loads in frames per second per interface."""
    return {
        "searches": [{"file": str(search.file), "began": search.began} for search in earlier],
        "start_fps": {str(goal): load for goal, load in controller.hinted_loads.items()},
    }


def remark_on_hints(path: Path, controller: MLRsearch, earlier: Sequence[EarlierSearch]) -> str:
    """The hints in words, for people."""
    if not controller.hinted_loads:
        return f"hints were asked for, but there is no earlier search of this test in {path}"
    starts = ", ".join(f"{goal} at {format_frame_rate(load)}" for goal, load in controller.hinted_loads.items())
    return (
        f"hints from earlier searches ({len(earlier)} in {path}) chose where this search started: {starts}, "
        f"per interface; none of their trials is evidence"
    )


def _from_run(run: RunDirectory, test_name: str, traffic: Traffic) -> EarlierSearch | None:
    file = run.result_path(test_name)
    if not file.is_file():
        journal = run.journal_path(test_name)
        return _from_journal(journal, traffic) if journal.is_file() else None
    result = read_result(file)
    if not isinstance(result, ThroughputResult) or result.outcome is Outcome.FAILED:
        return None
    if result.conditions.traffic != traffic:
        return None
    trials = tuple(trial.as_result() for trial in result.trials if trial.is_evidence)
    return EarlierSearch(file, result.started.isoformat(), trials)


def _from_journal(file: Path, traffic: Traffic) -> EarlierSearch | None:
    contents = read_journal(file)
    settings = contents.search.get("settings") or {}
    if contents.search.get("traffic") != traffic.model_dump(mode="json"):
        return None
    return EarlierSearch(file, contents.created, contents.results[warm_ups_in(settings) :])
