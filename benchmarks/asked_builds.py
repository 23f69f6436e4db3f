"""Asks whether builds are as before instead of searching them: what the answers find, and what they cost.

python benchmarks/asked_builds.py DIRECTORY --first 2 --every 6 --keep tests.jsonl

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`): one file is one test. Each test is
first searched five times in a row, with hints from the earlier searches. Then the test's SUT is searched, searched with
hints, and asked, some times each, both as it was and slower. Bisections and comparisons draw from these at random.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from as_before import GOALS, NIGHTS, QUESTION_STREAM, earlier_nights, evidence, of_record
from pydantic import BaseModel

from lossratio.builds import (
    AbRequest,
    AsBefore,
    Bisection,
    BuildMeasurement,
    BuildRecord,
    Measure,
    Measured,
    Wanted,
    bisect,
    compare_builds,
)
from lossratio.measurements.throughput.nightly import SEARCH_EVERY, Tonight, replayed_changes, why_too_often_wrong
from lossratio.mlrsearch import NDR, Answer, LoadGrid, Question, SearchGoalWarning
from lossratio.results import Ends, LoadOrigin, QuestionBefore
from lossratio.testbed import LoadRange
from lossratio_study.algorithms import search_with_ours
from lossratio_study.nights import scaled
from lossratio_study.study import NO_OVERHEAD

SLOWER = (0.0, 0.02, 0.04)
TIMES = 6
"""Searches and questions of each kind."""
REVISIONS = 64


class Once(BaseModel):
    """One measurement of a test."""

    value: float | None
    """NDR, frames per second; None: as before, so there was no search."""
    seconds: float
    """Its time."""
    is_changed: bool = False
    """Whether a question was answered by *changed*."""


class Test(BaseModel):
    """The measurements of a test, by how much slower the SUT was."""

    name: str
    values: tuple[float, ...]
    """NDR of the five earlier searches."""
    unchanged: float
    missed: tuple[tuple[float, float], ...]
    why_not_asked: str | None
    searched: dict[float, list[Once]]
    """Searches without hints."""
    hinted: dict[float, list[Once]]
    """Searches with hints from the five."""
    asked: dict[float, list[Once]]
    """Questions, with the searches after them."""

    @property
    def answer(self) -> AsBefore:
        """The answer *as before*."""
        return AsBefore(self.values, self.unchanged, self.missed)

    def has_values(self, slower: float) -> bool:
        """Whether each search has a value; without one, not even the smallest recorded load passed."""
        return all(once.value is not None for kind in (0.0, slower) for once in self.searched[kind])

    @property
    def seconds(self) -> float:
        """Mean time of a search without hints of the unchanged SUT."""
        return float(np.mean([once.seconds for once in self.searched[0.0]]))


@click.command(help=__doc__)
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--first", default=0, show_default=True, help="The first record.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth record.")
@click.option("--keep", type=click.Path(path_type=Path), required=True, help="Measured tests, which are not repeated.")
@click.option("--repetitions", default=20, show_default=True, help="Bisections and comparisons of each test.")
def main(directory: Path, first: int, every: int, keep: Path, repetitions: int) -> None:
    """Prints the tables."""
    warnings.simplefilter("ignore", SearchGoalWarning)
    tests = [Test.model_validate_json(line) for line in (keep.read_text().splitlines() if keep.exists() else ())]
    for file in sorted(directory.glob("*.jsonl"))[first::every]:
        if file.stem not in {test.name for test in tests} and (test := measured(file)) is not None:
            tests.append(test)
            with keep.open("a") as kept:
                kept.write(test.model_dump_json() + "\n")

    asked = [test for test in tests if test.why_not_asked is None]
    click.echo(f"{len(tests)} tests, of which {len(asked)} are asked")
    times(asked)
    bisections(asked, repetitions)
    comparisons(asked, repetitions)


def measured(file: Path) -> Test | None:
    """Measures a test; None: a search found no bounds."""
    subject = of_record(file, "interpolated")
    goals = GOALS["NDR, PDR"]
    found = earlier_nights(subject, "NDR, PDR")
    if found is None:
        return None
    grid = LoadGrid(subject.min_load, subject.max_load, min(goal.width for goal in goals))
    earlier = evidence(found[:NIGHTS])
    trials = [trial for night in earlier for trial in night]
    if Question(goals, grid, trials).answer is not None:
        return None

    loads = LoadRange(subject.min_load, subject.max_load, LoadOrigin.GIVEN)
    replays = tuple(replayed_changes(earlier, Tonight(goals, loads, {}, False, SEARCH_EVERY)))
    values = tuple(float(night.result[NDR].conditional_throughput or 0.0) for night in found[:NIGHTS])
    counts = tuple((replayed.change_ratio, replayed.questions, replayed.as_before) for replayed in replays)
    answer = AsBefore.after(QuestionBefore(None, values, counts))
    hints = [night.trials for night in found[:NIGHTS]]

    def once(slower: float, number: int, *, asks: bool = False, **settings: Any) -> Once:
        tonight = scaled(subject, 1.0 - slower)
        measurer = tonight.measurer(NO_OVERHEAD, number, QUESTION_STREAM)
        question = Question(goals, grid, trials) if asks else None
        outcome = search_with_ours(goals, tonight, measurer, question=question, **settings)
        value = outcome.result[NDR].conditional_throughput
        return Once(
            value=None if value is None else float(value),
            seconds=outcome.result.elapsed,
            is_changed=question is not None and question.answer is Answer.CHANGED,
        )

    def some(start: int, **settings: Any) -> dict[float, list[Once]]:
        return {slower: [once(slower, start + number, **settings) for number in range(TIMES)] for slower in SLOWER}

    # Record: the test.
    return Test(
        name=file.stem,
        values=values,
        unchanged=answer.unchanged,
        missed=answer.missed,
        why_not_asked=why_too_often_wrong(replays),
        searched=some(0),
        hinted=some(100, hints=hints),
        asked=some(200, hints=hints, asks=True),
    )


class InMemory(BuildRecord):
    """A record of measurements that is not on disk."""

    def __init__(self) -> None:
        self.measurements: list[BuildMeasurement] = []

    def measurement(
        self,
        step: int,
        build: str,
        measure: Measure,
        wanted: Wanted = Wanted(),  # noqa: B008 (it is frozen)
    ) -> BuildMeasurement:
        """Measures."""
        self.measurements.append(BuildMeasurement.of(build, measure(build, Path(), wanted), ""))
        return self.measurements[step]


class Builds:
    """Builds of a test: how long their measurements take."""

    def __init__(self, test: Test, slower: Callable[[str], float], rng: np.random.Generator) -> None:
        self._test, self._slower, self._rng = test, slower, rng
        self.seconds: list[float] = []

    def measure(self, build: str, directory: Path, wanted: Wanted) -> Measured:
        """Draws a measurement."""
        kind = self._test.asked if wanted.asks else self._test.searched
        drawn = kind[self._slower(build)]
        once = drawn[int(self._rng.integers(len(drawn)))]
        self.seconds.append(once.seconds)
        if once.value is None:
            return Measured({}, as_before={"T NDR": self._test.answer}, tests={"T NDR": "T"})
        return Measured({"T NDR": Ends(once.value, once.value, 0.0)}, tests={"T NDR": "T"} if wanted.asks else {})

    @property
    def searches(self) -> float:
        """The time of all measurements together, in searches."""
        return sum(self.seconds) / self._test.seconds


def times(tests: Sequence[Test]) -> None:
    """Prints how long a question about a build takes, with the search that may follow."""
    click.echo("time of a build in searches without hints: searched with hints; asked; and as before")
    for slower in SLOWER:
        ends = [
            (hinted.seconds / test.seconds, asked.seconds / test.seconds, asked.value is None and not asked.is_changed)
            for test in tests
            for hinted, asked in zip(test.hinted[slower], test.asked[slower], strict=True)
        ]
        _print(f"{slower:>9.0%}", ends)


def _with_and_without(
    tests: Sequence[Test], changes: Sequence[float], repetitions: int, measured: Callable[..., tuple[float, ...]]
) -> None:
    """Prints a row for each change, with questions and without."""
    for slower in changes:
        for asks in (False, True):
            ends = [
                measured(test, slower, np.random.default_rng((number, place)), asks=asks)
                for number, test in enumerate(tests)
                if test.has_values(slower)
                for place in range(repetitions)
            ]
            _print(f"{slower:>9.0%}{asks!s:>8}", ends)


def bisections(tests: Sequence[Test], repetitions: int) -> None:
    """Prints how often bisections among revisions are right, and what they cost."""
    click.echo(f"\nbisections among {REVISIONS} revisions; times in searches")
    click.echo("   slower    asks     right     measurements      time   a build")
    _with_and_without(tests, SLOWER[1:], repetitions, _bisected)


def _bisected(test: Test, slower: float, rng: np.random.Generator, *, asks: bool) -> tuple[float, ...]:
    first = int(rng.integers(1, REVISIONS + 1))
    builds = Builds(test, lambda build: slower if int(build) >= first else 0.0, rng)
    search = Bisection([str(number) for number in range(REVISIONS + 1)])
    result = bisect(search, InMemory(), builds.measure, lambda line: None, asks=asks)
    is_right = result.candidates == (str(first),)
    return is_right, result.measurements, builds.searches, builds.searches / len(builds.seconds)


def comparisons(tests: Sequence[Test], repetitions: int) -> None:
    """Prints the verdicts of comparisons, and what they cost."""
    click.echo("\ncomparisons with a least change of 2 %; times in searches; same, slower, undecided")
    click.echo("   slower    asks      same        slower       undecided    measurements      time   a build")
    _with_and_without(tests, SLOWER, repetitions, _compared)


def _compared(test: Test, slower: float, rng: np.random.Generator, *, asks: bool) -> tuple[float, ...]:
    builds = Builds(test, lambda build: slower if build == "B" else 0.0, rng)
    results = compare_builds(AbRequest(0.02), InMemory(), builds.measure, lambda line: None, asks=asks)
    (result,) = results.values()
    verdicts = [result.verdict == verdict for verdict in ("same", "slower", "undecided")]
    count = len(builds.seconds)
    return *verdicts, count, builds.searches, builds.searches / count


def _print(head: str, ends: Sequence[tuple[float, ...]]) -> None:
    columns = np.array(ends, dtype=np.float64)
    errors = columns.std(axis=0) / np.sqrt(len(columns))
    cells = (f"{mean:>9.3f} ±{error:.3f}" for mean, error in zip(columns.mean(axis=0), errors, strict=True))
    click.echo(head + "".join(cells))


if __name__ == "__main__":
    main()
