"""A run as it is on the disk: readable results, tests that were cut off, and unreadable files."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path

from pydantic import ValidationError

from lossratio.errors import ReportError, SearchError
from lossratio.files import as_path
from lossratio.report.failures import (
    CUT_OFF,
    FAILED,
    NOT_HERE,
    SKIPPED,
    WithoutResult,
    tests_noted_in,
)
from lossratio.results import (
    Finding,
    Note,
    Outcome,
    RunDirectory,
    TestIdentity,
    TestResult,
    Weight,
    findings_of,
    format_loss,
    kind_of_journal,
    notes_of,
    read_result,
    result_stems,
    withdrawn_in_words,
)
from lossratio.trials import JournalContents, missing_frames, read_journal
from lossratio.values import (
    FAILURES,
    and_more,
    counted,
    format_frame_rate,
    in_one_line,
    trials_counted,
)

NOTHING_MEASURED = "nothing measured"
"""Stands for the quantities of a test that failed before it measured anything, because they are not known."""
RECORD = "run.json"
"""Name of the record of a run in its directory, if ``lossratio run`` began it."""


_MISSING = {CUT_OFF: "was cut off", FAILED: "failed"}
"""What became of a test that is missing, in words."""


@dataclass(frozen=True)
class Run:
    """The contents of a run's directory."""

    path: Path
    """The directory."""
    results: tuple[TestResult, ...]
    """The readable results, in the order in which their tests began."""
    without_result: tuple[WithoutResult, ...] = ()
    """The tests that have no result."""
    problems: tuple[str, ...] = ()
    """Messages about files that could not be read."""
    recorded_testbed: str | None = None
    """Name of the testbed in the record of a run by ``lossratio run``; None: there is no such record."""
    failures: Mapping[str, WithoutResult] = field(default_factory=dict)
    """The tests that failed, by their names, including tests that had measured before, e.g. less than they require."""

    def failure_of(self, result: TestResult) -> str | None:
        """Why the test of a result failed; None: it passed, or was skipped."""
        failure = self.failures.get(result.test.full_name)
        if failure is None and result.test.long_name is not None:
            failure = self.failures.get(result.test.long_name)
        if failure is None:
            return None
        if failure.began_after(result.ended):
            return f"it ran again later, and failed before it measured this: {failure.reason}"
        return failure.reason

    def failure_in_spite_of(self, result: TestResult) -> str | None:
        """Why a test failed although it has a result; None: it did not fail, or nothing was measured."""
        if result.outcome is Outcome.FAILED:
            return None
        return self.failure_of(result)

    def having(self, *states: str) -> tuple[WithoutResult, ...]:
        """The tests without a result that are in one of some states."""
        return tuple(test for test in self.without_result if test.state in states)

    @property
    def skipped(self) -> tuple[WithoutResult, ...]:
        """Tests that were skipped. Nothing is missing: the testbed may be too small for them."""
        return self.having(SKIPPED, NOT_HERE)

    @property
    def lacks(self) -> tuple[str, ...]:
        """What is missing: messages about files that could not be read, and tests that did not finish."""
        missing = self.having(*_MISSING)
        said = (
            in_one_line(f"{test.full_name} {_MISSING[test.state]}{test.when}: {test.reason}")
            for test in missing
        )
        return (*self.problems, *said)

    @property
    def testbed(self) -> str | None:
        """Name of its testbed; None: not known, or there are several."""
        names = {result.conditions.testbed.name for result in self.results}
        if not names:
            return self.recorded_testbed
        if len(names) == 1:
            return names.pop()
        return None

    @cached_property
    def notes(self) -> tuple[tuple[Note, ...], ...]:
        """What each result says besides its numbers."""
        return tuple(notes_of(result, self.results) for result in self.results)

    @cached_property
    def doubts(self) -> tuple[tuple[Note, ...], ...]:
        """The doubts about each result."""
        return tuple(
            tuple(note for note in notes if note.weight is Weight.DOUBT) for notes in self.notes
        )

    def _doubts_about(self, number: int) -> tuple[Note, ...]:
        """The doubts about a result, by its position from 1."""
        return self.doubts[number - 1]

    @cached_property
    def rows(self) -> tuple[Finding, ...]:
        """A row for each quantity of each result, in the order of the results.

        All tables, comparisons, trends and exports have these rows.
        """
        names = Counter(result.test.name for result in self.results)
        rows = []
        for finding in findings_of(self.results):
            row = replace(
                finding,
                run=self.path,
                find_doubts=partial(self._doubts_about, finding.number),
                failure=self.failure_in_spite_of(finding.result),
                is_namesake=names[finding.result.test.name] > 1,
            )
            rows.append(row)
        return tuple(rows)


def is_run(path: Path) -> bool:
    """Whether a directory belongs to a run: it has results, journals, or a record of tests that have neither.

    A parallel runner (pabot) leaves such a directory for each of its processes within the run's directory.
    """
    return bool(_parts_of(path))


def _parts_of(path: Path) -> list[Path]:
    """The directories of a run's processes: usually a single one, the run's own."""
    places = [path, *sorted((path / _PARALLEL).glob("*"))]
    return [place for place in places if _has_files(place)]


def _has_files(path: Path) -> bool:
    """Whether a directory has files of a run. Its folder `results` may hold whole runs instead."""
    if (path / FAILURES).exists():
        return True
    return RunDirectory(path).has_files and not _runs_in_results(path)


def _runs_in_results(path: Path) -> list[Path]:
    """The run directories that a folder `results` holds, where `lossratio run` puts them, or that it is itself."""
    results = path / "results"
    if not results.is_dir():
        return []
    places = [results, *sorted(child for child in results.iterdir() if child.is_dir())]
    return [place for place in places if RunDirectory(place).has_files]


def _runs_below(path: Path) -> list[Path]:
    """The run directories in a directory, or in its folder `results`."""
    runs = sorted(child for child in path.glob("*") if child.is_dir() and is_run(child))
    return runs or _runs_in_results(path)


_MOST_NAMED = 3
"""Maximum number of things that an error names."""
_PARALLEL = "pabot_results"
"""Folder of a run with the directories of the processes of a parallel runner."""


def read_run(path: str | Path) -> Run:
    """Reads all readable files in the directory of a run.

    Raises:
        ReportError: If it is not the directory of a run.
    """
    path = as_path(ReportError, "The directory of a run", path)
    parts = _parts_of(path)
    if not parts:
        raise _no_run(path)
    return _read(path, parts)


def first_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return f"{', '.join(names[:_MOST_NAMED])}{and_more(len(names[_MOST_NAMED:]))}"


def _no_run(path: Path) -> ReportError:
    """Says why a path is not the directory of a run, and which one to name."""
    below = _runs_below(path)
    if below:
        named = first_of(list(map(str, below)))
        return ReportError(
            f"{path} is not the directory of a run. Name one that is in it: {named}."
        )
    if path.is_dir():
        why = "it has no directory 'results' or 'trials', and neither has any folder in it"
    elif path.exists():
        why = "it is a file"
    else:
        why = "there is no such directory"

    return ReportError(
        f"{path} is not the directory of a run: {why}. Name the directory that 'lossratio run' wrote."
    )


def _read(path: Path, parts: Sequence[Path]) -> Run:
    """The run whose processes left some directories."""
    results, problems = _results_in(parts)
    cut_off, damaged = _cut_off_in(parts)
    problems += damaged

    stems = {
        file.stem for name in ("results", "trials") for file in _files_in(parts, name, "*.json*")
    }
    noted = [test for part in parts for test in tests_noted_in(part)]
    unmeasured = [test for test in noted if stems.isdisjoint(result_stems(test.full_name))]
    if not (results or cut_off or unmeasured):
        reasons = " ".join(problems) or "it has no results and no journals."
        raise ReportError(f"Nothing to report in {path}: {reasons}")

    results.sort(key=attrgetter("started", "test.full_name"))
    recorded = (_recorded_testbed(part) for part in parts)
    return Run(
        path,
        tuple(results),
        (*cut_off, *unmeasured),
        tuple(problems),
        next((name for name in recorded if name is not None), None),
        {test.full_name: test for test in noted if test.state == FAILED},
    )


def _files_in(parts: Sequence[Path], folder: str, pattern: str) -> Iterator[Path]:
    for part in parts:
        yield from sorted((part / folder).glob(pattern))


def _results_in(parts: Sequence[Path]) -> tuple[list[TestResult], list[str]]:
    """The results in some directories, and messages about those that cannot be read."""
    results: list[TestResult] = []
    problems: list[str] = []
    for file in _files_in(parts, "results", "*.json"):
        try:
            results.append(read_result(file))
        except ReportError as error:
            problems.append(str(error))
    return results, problems


def _cut_off_in(parts: Sequence[Path]) -> tuple[list[WithoutResult], list[str]]:
    """The tests in some directories with a journal and no result, and messages about journals that cannot be read."""
    cut_off: list[WithoutResult] = []
    problems: list[str] = []
    for journal in _files_in(parts, "trials", "*.jsonl"):
        try:
            contents = read_journal(journal)
        except SearchError as error:
            problems.append(str(error))
            continue

        if not (journal.parents[1] / "results" / f"{journal.stem}.json").exists():
            cut_off.append(_cut_off(journal.stem, contents))
    return cut_off, problems


def _cut_off(stem: str, contents: JournalContents) -> WithoutResult:
    """What is known of a test that was cut off.

    Args:
        stem: The name of its journal, without the suffix.
        contents: The journal.
    """
    kind = kind_of_journal(contents)
    known: list[str] = []
    if kind is not None:
        known += kind.known_so_far(contents)
    if contents.unproved:
        rest = counted(len(contents.unproved), "further trial")
        known.append(f"not counted: {rest}, after which the devices were not checked")
    known += withdrawn_in_words(contents)

    full_name = stem
    suite = ""
    described = (contents.about or {}).get("test")
    # A journal of another version may describe its test in another form.
    with suppress(ValidationError):
        test = TestIdentity.model_validate_json(json.dumps(described), strict=True)
        full_name = test.full_name
        suite = test.suite

    trials = len(contents.entries)
    reason = f"the run ended after {trials_counted(trials)} of it{_last_trial_in(contents)}"
    return WithoutResult(
        full_name, suite, CUT_OFF, reason, began=contents.created, trials=trials, known=tuple(known)
    )


def _last_trial_in(journal: JournalContents) -> str:
    """The last trial of a journal in words, for the end of a phrase; empty: it has no trial."""
    if not journal.results:
        return ""
    result = journal.results[-1]
    loss = format_loss(result.loss_ratio, result.output.decided_after)
    missing = missing_frames(result.output)
    if missing is not None and missing.not_lost:
        loss += f" ({missing.not_lost})"
    return (
        f"; the last one: {format_frame_rate(result.load)} for {result.duration:g} s, loss {loss}"
    )


def _recorded_testbed(path: Path) -> str | None:
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads((path / RECORD).read_bytes())["topology"]["name"])
    return None


def runs_in(path: str | Path) -> list[Path]:
    """The run directories of a path: the path itself, or the run directories in it, sorted by name.

    Raises:
        ReportError: If there is no run directory.
    """
    path = as_path(ReportError, "The directory of runs", path)
    if is_run(path):
        return [path]
    runs = _runs_below(path)
    if not runs:
        raise _no_run(path)
    return runs
