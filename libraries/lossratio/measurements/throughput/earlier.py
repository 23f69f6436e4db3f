"""Earlier searches of the same test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from lossratio.errors import SearchError
from lossratio.measurements.throughput.result import ThroughputResult
from lossratio.measurements.throughput.settings import warm_ups_in
from lossratio.results import Device, Outcome, RunDirectory, TestIdentity, Traffic, read_result
from lossratio.trials import TrialResult, read_journal


@dataclass(frozen=True)
class EarlierSearch:
    """An earlier search of the same test."""

    file: Path
    """The file that it was read from."""
    began: str
    """When it began, RFC 3339, UTC."""
    trials: tuple[TrialResult, ...]
    """Its trials that count, in the order measured."""
    result: ThroughputResult | None = None
    """Its result; None: there is only its journal."""

    @property
    def is_as_before(self) -> bool:
        """Whether the SUT was as before, so that there was no search."""
        return self.result is not None and self.result.is_as_before


def earlier_searches(
    path: Path,
    test: TestIdentity,
    traffic: Traffic,
    device: Device | None = None,
    *,
    besides: Iterable[Path] = (),
) -> tuple[EarlierSearch, ...]:
    """Finds earlier searches of a test with the same traffic, oldest first, outside of the directories of some runs.

    Searches on another device are left out. A journal whose own path is
    given may be of any device. The path is the directory of a run, a folder of such directories, or a journal.

    Raises:
        SearchError: If there is nothing, or a journal cannot be read.
        ReportError: If a result file cannot be read.
    """
    if not (path.is_file() or path.is_dir()):
        raise SearchError(
            f"There are no hints at {path}. Name the directory of an earlier run, a folder of such directories or a "
            "journal, or leave hints out."
        )
    if path.is_file():
        searches = [_from_journal(path, traffic)]
    else:
        left_out = {directory.resolve() for directory in besides}
        searches = [
            _from_run(RunDirectory(run), test, traffic, device)
            for run in (path, *sorted(path.iterdir()))
            if run.is_dir() and run.resolve() not in left_out
        ]

    found = [search for search in searches if search is not None]
    return tuple(sorted(found, key=attrgetter("began")))


def _from_run(
    run: RunDirectory, test: TestIdentity, traffic: Traffic, device: Device | None
) -> EarlierSearch | None:
    """The search of a test in a run; None: there is none, it failed, or it was another search."""
    file = run.result_path(test.full_name)
    if not file.is_file():
        journal = run.journal_path(test.full_name)
        if journal.is_file():
            return _from_journal(journal, traffic, device)
        return None

    result = read_result(file)
    if not isinstance(result, ThroughputResult) or result.outcome is Outcome.FAILED:
        return None
    if result.conditions.traffic != traffic:
        return None
    if device is not None and result.conditions.device not in (None, device):
        return None

    trials = tuple(trial.as_result() for trial in result.evidence)
    return EarlierSearch(file, result.started.isoformat(), trials, result)


def _from_journal(
    file: Path, traffic: Traffic, device: Device | None = None
) -> EarlierSearch | None:
    """The search of a journal; None: it is of other traffic, or of another device."""
    contents = read_journal(file)
    if contents.search.get("traffic") != traffic.model_dump(mode="json"):
        return None

    conditions = (contents.about or {}).get("conditions") or {}
    of_device = conditions.get("device")
    if device is not None and of_device not in (None, device.model_dump(mode="json")):
        return None

    warm_ups = warm_ups_in(contents.search.get("settings") or {})
    return EarlierSearch(file, contents.created, contents.results[warm_ups:])
