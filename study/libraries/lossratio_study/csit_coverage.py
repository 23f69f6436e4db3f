"""The command ``lossratio csit-coverage``: which tests of FD.io CSIT's jobs are in our suites."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path

import click
from robot.running import TestCase

from lossratio.commands import SUITE, LocalPath, argument, command, option
from lossratio.files import SUITES
from lossratio.runs import expanded_tests
from lossratio.values import format_ratio
from lossratio_study.csit_jobs import CsitTest, csit_jobs
from lossratio_study.csit_suites import CsitSuites, nodes_of

_OUR_NAME = re.compile(r"(?P<size>\w+)-(?:(?P<cores>\d+)c-)?(?P<name>.+-\w+)")
_NODES = re.compile(r"-(?P<nodes>\d)n\w?-")
_JOB_FILES = Path("resources/job_specifications")
_OF_THE_TEST = ("frame size", "cores")
"""Aspects of a test whose suite we have, but not with this frame size or number of cores."""

_SuiteKey = tuple[str, str]
"""A tag, and a test's name without frame size and cores."""


class CoverageVerdict(str, Enum):
    """How our suites cover a test of CSIT."""

    SAME = "same"
    """A test with the same frames, set-up and tags."""
    DIFFERS = "differs"
    """A test that differs in its tags, or in what its suite declares."""
    NAME_ONLY = "name only"
    """A test of this name that differs in something that its suite does not declare, or has no readable counterpart."""
    MISSING = "not here"
    """No test of this name."""


@dataclass(frozen=True)
class Judged:
    """A CSIT test compared with ours."""

    verdict: CoverageVerdict
    """How our suites cover it."""
    differences: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The aspects that differ: CSIT's value, and ours."""


@dataclass(frozen=True)
class Coverage:
    """The tests of CSIT's jobs, each beside ours."""

    jobs: Mapping[str, Mapping[CsitTest, Judged]]
    """The tests by name of the job."""
    has_suites: bool
    """Whether CSIT's suites could be read; if not, only names are compared."""


def csit_coverage(directory: Path, suites: tuple[Path, ...], pattern: str) -> Coverage:
    """Expands CSIT's jobs, and compares each of their tests with ours.

    Args:
        directory: A clone of CSIT's repository; or its directory of job files.
        suites: Our suites.
        pattern: Only jobs of this name; ``*`` stands for any characters.

    Raises:
        JobError: If files are not job files of CSIT, or name a test set or group that does not exist; if no job
            matches; if a suite of CSIT cannot be read.
    """
    root = directory
    if not (directory / _JOB_FILES).is_dir():
        # The directory of job files is two levels below the clone; `csit_jobs` refuses any other one.
        root = directory.resolve().parent.parent
    files = directory / _JOB_FILES if root == directory else directory
    jobs = csit_jobs(files, pattern)
    theirs = CsitSuites(root)
    ours = _Ours(suites)

    @cache
    def judged_on(test: CsitTest, nodes: int) -> Judged:
        return _judged(test, nodes, theirs, ours)

    judged = {
        job: {test: judged_on(replace(test, nic="", driver=""), _nodes(job, test.dut)) for test in tests}
        for job, tests in jobs.items()
    }
    return Coverage(judged, bool(theirs))


def describe_coverage(coverage: Coverage) -> str:
    """A table of jobs, and a table of what is missing or differs, both with numbers of tests."""
    shown = list(CoverageVerdict) if coverage.has_suites else [CoverageVerdict.NAME_ONLY, CoverageVerdict.MISSING]
    everything = [judged for tests in coverage.jobs.values() for judged in tests.values()]
    rows = {job: list(tests.values()) for job, tests in coverage.jobs.items()}
    width = max(map(len, rows))

    lines = [f"{'Job':{width}}  Tests" + "".join(f"  {verdict.value:>9}" for verdict in shown)]
    for name, tests in {**rows, "All": everything}.items():
        counts = Counter(one.verdict for one in tests)
        lines.append(f"{name:{width}}  {len(tests):5}" + "".join(f"  {counts[one]:9}" for one in shown))
    if coverage.has_suites:
        same = sum(one.verdict is CoverageVerdict.SAME for one in everything)
        lines.append(f"The same test: {same} of {len(everything)}, {format_ratio(round(same / len(everything), 3))}.")
    else:
        lines.append("Only names were compared: name a clone of CSIT's repository to compare the suites.")

    reasons: Counter[tuple[str, str]] = Counter()
    for judged_tests in coverage.jobs.values():
        for test, judged in judged_tests.items():
            if judged.differences or judged.verdict is CoverageVerdict.MISSING:
                reasons[f"{test.suite}-{test.test_type}", _reason(judged)] += 1

    if reasons:
        title = "Tests  Suite"
        if coverage.has_suites:
            title += ": what differs (CSIT / here)"
        lines += ["", title]
    for (suite, reason), count in sorted(reasons.items(), key=_most_first):
        lines.append(f"{count:5}  {suite}: {reason}")
    return "\n".join(lines)


class _Ours:
    """Our tests by the names that CSIT gives them."""

    def __init__(self, suites: tuple[Path, ...]) -> None:
        self._tests: dict[_SuiteKey, dict[int | None, dict[tuple[str, str], TestCase]]] = {}
        for test in expanded_tests(suites):
            if match := _OUR_NAME.fullmatch(test.name):
                point = (match["size"].lower(), match["cores"] or "1")
                for key in _names(test, match["name"]):
                    by_nodes = self._tests.setdefault(key, {})
                    by_nodes.setdefault(nodes_of(test), {})[point] = test

    def of(self, test: CsitTest, nodes: int) -> tuple[TestCase | None, tuple[str, ...]]:
        """Our test (None if no suite has its name), and what it lacks: frame size, cores.

        Suites for different numbers of nodes may share a name, as CSIT's do.
        """
        by_nodes = self._tests.get((test.dut, f"{test.suite}-{test.test_type}"), {})
        others = next(iter(by_nodes.values()), {})
        tests = by_nodes.get(nodes, by_nodes.get(None, others))
        point = (test.size, "1" if test.cores == "-" else test.cores)
        if point in tests:
            return tests[point], ()

        lacking = tuple(
            aspect
            for number, aspect in enumerate(_OF_THE_TEST)
            if point[number] not in {ours[number] for ours in tests}
        )
        return next(iter(tests.values()), None), lacking


def _names(test: TestCase, name: str) -> Iterator[_SuiteKey]:
    for tag in test.tags:
        yield str(tag), name
    # Each suite has a twin without DUTs: see `lossratio.keywords.Catalogue`.
    yield "trex", "-tg-".join(name.rsplit("-", 1))


def _judged(test: CsitTest, nodes: int, theirs: CsitSuites, ours: _Ours) -> Judged:
    own, lacking = ours.of(test, nodes)
    if own is None:
        return Judged(CoverageVerdict.MISSING)
    described = theirs.of(test.dut, nodes, test.suite)
    if described is None:
        return Judged(CoverageVerdict.NAME_ONLY)

    beside = theirs.ours(own, nodes)
    found = described.differences(beside)
    wanted = {"frame size": test.frame_size, "cores": test.cores}
    found |= {aspect: (wanted[aspect], "no") for aspect in lacking}
    if not found:
        return Judged(CoverageVerdict.SAME)
    declared = found.keys() <= {*beside.declared, "tags"}
    if declared:
        return Judged(CoverageVerdict.DIFFERS, found)
    return Judged(CoverageVerdict.NAME_ONLY, found)


def _nodes(job: str, dut: str) -> int:
    """The number of nodes of a job's testbed, such as ``2n-icx``; 1 if the TG tests itself."""
    if dut == "trex":
        return 1
    match = _NODES.search(f"{job}-")
    if match is None:
        return 2
    return int(match["nodes"])


def _reason(judged: Judged) -> str:
    parts = (f"{aspect}: {theirs} / {ours}" for aspect, (theirs, ours) in judged.differences.items())
    return "; ".join(parts) or judged.verdict.value


def _most_first(item: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    reason, count = item
    return -count, reason


@command("csit-coverage")
def csit_coverage_command(
    directory: Path = argument("DIRECTORY", type=LocalPath(path_type=Path, exists=True, file_okay=False)),
    suites: tuple[Path, ...] = argument("[SUITE...]", type=SUITE),
    *,
    jobs: str = option(
        "Only jobs with this name; * stands for any characters.", "--job", default="*", metavar="PATTERN"
    ),
    ids: bool = option(
        "Print the id of each of CSIT's tests, with = if lossratio has the same test, ~ if its test differs, ? if only "
        "the name is the same, and - if it has no such test."
    ),
) -> None:
    """Compare the tests of FD.io CSIT's jobs with lossratio's suites.

    DIRECTORY is a clone of CSIT's repository. Without SUITE, the command compares the suites that come with lossratio.
    """
    chosen = suites or tuple(map(SUITES.own_path, SUITES.names()))
    coverage = csit_coverage(directory, chosen, jobs)
    if not ids:
        click.echo(describe_coverage(coverage))
        return
    signs = dict(zip(CoverageVerdict, "=~?-", strict=True))
    for job, tests in coverage.jobs.items():
        for test, judged in tests.items():
            click.echo(f"{signs[judged.verdict]} {job} {test.id}")
