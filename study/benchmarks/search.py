"""Searches: whether a change of the code changes them, how long they take on recorded trials, what evidence costs.

    python study/benchmarks/search.py digests before.tsv
    python study/benchmarks/search.py digests after.tsv --beside before.tsv
    python study/benchmarks/search.py replay DIRECTORY --between interpolated --between either
    python study/benchmarks/search.py evidence DIRECTORY --write

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`).
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from joblib import Parallel, delayed

from lossratio.measurements.throughput.goals import HALF_NDR, HALF_PDR
from lossratio.mlrsearch import NDR, PDR, IrregularReason, SearchGoal, SearchGoalWarning, zone_in
from lossratio.simulation import Recorded
from lossratio_study.algorithms import ALGORITHMS, OURS, PEER, search_with_ours
from lossratio_study.checker import faults
from lossratio_study.csit import AS_CSIT
from lossratio_study.nights import CHANGES
from lossratio_study.outcome import Outcome
from lossratio_study.search import GOAL_SETS, SEARCH_STREAM
from lossratio_study.study import FAMILY_SETS, NO_OVERHEAD, algorithm_named
from lossratio_study.suts import Family, Subject


@click.group(help=__doc__)
def main() -> None:
    """Searches, simulated and on recorded trials."""


WITH_HINTS = (CHANGES["unchanged"].with_hints, CHANGES["nonsense"].with_hints)
SEARCHES = tuple(map(algorithm_named, (OURS, *WITH_HINTS, AS_CSIT.name)))


@dataclass(frozen=True)
class Digested:
    """The identity and outcome of one search."""

    name: str
    """Goal set, family, seed and algorithm."""
    trials: int
    """How many trials it took."""
    seconds: float
    """How long these took, on the virtual clock."""
    digest: str
    """A digest of the input and the loss of each trial in their order, and of the results."""

    def __str__(self) -> str:
        return f"{self.name}\t{self.trials}\t{self.seconds!r}\t{self.digest}"

    @classmethod
    def parse(cls, line: str) -> Digested:
        """The search of a line of a file."""
        name, trials, seconds, digest = line.split("\t")
        return cls(name, int(trials), float(seconds), digest)


@main.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--beside",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File of an earlier run, with the same options.",
)
@click.option("--seeds", default=4, show_default=True, help="SUTs of each family.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--jobs", default=1, show_default=True, help="Processes; -1: one for each core.")
@click.option("--only", default="", help="Families with these letters in their names.")
def digests(file: Path, beside: Path | None, seeds: int, first_seed: int, jobs: int, only: str) -> None:
    """Writes digests of some 3,500 simulated searches to FILE: does a change of the search change them?

    Run it before the change and after it; the second run reports each search that is no longer the same, trial by
    trial.

    All goal sets and all families of `lossratio study` take part, without hints, with hints from earlier nights on the
    same SUT, with hints that are nonsense, and as FD.io CSIT searches: a warm-up, failing fast.
    """
    families = [
        family
        for set_name in ("development", "held-out")
        for name, family in FAMILY_SETS[set_name].items()
        if only in name
    ]
    parts = Parallel(n_jobs=jobs)(
        delayed(searches_of)(family, seed) for family in families for seed in range(first_seed, first_seed + seeds)
    )
    searches = [search for part in parts for search in part]
    file.write_text("".join(f"{search}\n" for search in searches))
    click.echo(f"{len(searches)} searches: {file}")
    if beside is not None:
        earlier = map(Digested.parse, beside.read_text().splitlines())
        compare({search.name: search for search in earlier}, searches)


def searches_of(family: Family, seed: int) -> list[Digested]:
    """All searches on one SUT."""
    subject = family.subject(seed)
    searches = []
    for goal_set in GOAL_SETS.values():
        for algorithm in SEARCHES:
            measurer = algorithm.tonight(subject).measurer(NO_OVERHEAD, 0, SEARCH_STREAM)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SearchGoalWarning)
                outcome = algorithm.search(goal_set.goals, subject, measurer)
            title = f"{goal_set.name}, {family.name}, seed {seed}, {algorithm.name}"
            searches.append(Digested(title, len(outcome.trials), outcome.result.elapsed, digest_of(outcome)))
    return searches


def digest_of(outcome: Outcome) -> str:
    """A digest of all trials in their order, and of the results."""
    lines = [f"{trial.duration!r} {trial.load!r} {trial.loss_ratio!r}" for trial in outcome.trials]
    lines += [repr(goal_result) for goal_result in outcome.result.values()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def compare(earlier: Mapping[str, Digested], searches: list[Digested]) -> None:
    """Prints which searches differ, and the sums for each goal set."""
    for before, after in _differing(earlier, searches):
        took = f"{before.trials} trials in {before.seconds:.0f} s before, {after.trials} in {after.seconds:.0f} s now"
        click.echo(f"{after.name}: {took}")
    for name in GOAL_SETS:
        mine = [search for search in searches if search.name.startswith(f"{name},")]
        changed = list(_differing(earlier, mine))
        seconds = sum(after.seconds for _, after in changed) / (sum(before.seconds for before, _ in changed) or 1.0)
        share = f", which take {seconds:.3f} of their time" if changed else ""
        click.echo(f"{name}: {len(changed)} of {len(mine)} searches differ{share}")


def _differing(earlier: Mapping[str, Digested], searches: list[Digested]) -> Iterator[tuple[Digested, Digested]]:
    for search in searches:
        if search.name not in earlier:
            raise click.ClickException(
                f"The earlier run has no search {search.name!r}: run both with the same options."
            )
        if earlier[search.name].digest != search.digest:
            yield earlier[search.name], search


ALIKE = {
    "NDR": (NDR,),
    "PDR": (PDR,),
    "NDR, PDR": (NDR, PDR),
    "quick NDR": (SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, 1.0),),
    "one trial": (replace(NDR, exceed_ratio=0.0, duration_sum=1.0),),
}
"""Sets of goals, by name."""


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--between", multiple=True, default=("interpolated",), help="The loss between recorded loads.")
@click.option("--goals", multiple=True, type=click.Choice(list(ALIKE)), help="Only these goals.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth file.")
@click.option("--seeds", default=2, show_default=True, help="Searches on each record.")
def replay(directory: Path, between: Sequence[str], goals: Sequence[str], every: int, seeds: int) -> None:
    """Compares our search with MLRsearch 1.2.1: how long each takes, for goals whose trials are alike."""
    files = sorted(directory.glob("*.jsonl"))[::every]
    for way in between:
        click.echo(f"{len(files)} records, {seeds} searches on each, {way}: seconds divided by those of {PEER}")
        heads = ("geo. mean", "95 %", "worst", "ours", "peer's", "lucky", "its", "ms", "most ms", "faults")
        click.echo(f"{'':>10}" + "".join(f"{head:>10}" for head in heads))
        for name in goals or ALIKE:
            click.echo(_line(name, [subject_of(file, seed, way) for file in files for seed in range(seeds)]))


def subject_of(file: Path, seed: int, between: str) -> Subject:
    """The SUT of a record."""
    sut = Recorded(file, between)  # type: ignore[arg-type]
    loads = sut.loads()
    return Subject(file.stem, seed, sut, loads[0], loads[-1])


def _line(name: str, subjects: Sequence[Subject]) -> str:
    pairs = [tuple(_search(name, algorithm, subject) for algorithm in (OURS, PEER)) for subject in subjects]
    ratios = np.array([ours.result.elapsed / its.result.elapsed for ours, its in pairs])
    worst = pairs[int(ratios.argmax())]
    lucky = [sum(map(_is_lucky, searches, subjects)) for searches in zip(*pairs, strict=True)]
    decisions = [ours.controller_seconds / len(ours.trials) * 1000.0 for ours, _ in pairs]
    faulty = sum(
        bool(faults(ours.result, ours.trials, min_load=subject.min_load, max_load=subject.max_load))
        for (ours, _), subject in zip(pairs, subjects, strict=True)
    )
    cells = (
        f"{math.exp(np.log(ratios).mean()):.3f}",
        f"{np.quantile(ratios, 0.95):.2f}",
        f"{ratios.max():.2f}",
        *(str(len(outcome.trials)) for outcome in worst),
        *map(str, lucky),
        f"{np.mean(decisions):.1f}",
        f"{max(decisions):.1f}",
        str(faulty),
    )
    return f"{name:>10}" + "".join(f"{cell:>10}" for cell in cells)


def _search(name: str, algorithm: str, subject: Subject) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchGoalWarning)
        return ALGORITHMS[algorithm].search(ALIKE[name], subject, subject.measurer(NO_OVERHEAD, 0))


def _is_lucky(outcome: Outcome, subject: Subject) -> bool:
    """Whether a lower bound is above a recorded load of which nearly all trials are too lossy."""
    assert isinstance(subject.sut, Recorded)
    return any(
        (result.relevant_lower_bound or 0.0) > load
        for goal, result in outcome.result.items()
        for load, share in subject.sut.lossy(goal.loss_ratio).items()
        if share >= 0.95
    )


RECORD = Path(__file__).parents[2] / "benchmarks" / "records" / "evidence.md"
CSIT = (NDR, PDR)
LESS_EVIDENCE: dict[str, tuple[SearchGoal, ...]] = {"CSIT's": CSIT, "half of it": (HALF_NDR, HALF_PDR)}
"""Goals of a loss ratio of 0 and one of 0.5 %, by their rows in the table."""

_TABLES = re.compile(r"(?<=<!-- tables -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Compared:
    """One search, and one of MLRsearch 1.2.1 with CSIT's goals on the same SUT."""

    record: str
    """The record that is the SUT."""
    share: float
    """The search's time as a share of the other's."""
    deviations: tuple[float, ...]
    """Distance of each lower bound from the median one of MLRsearch 1.2.1 on this record, as a share of the median."""


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--every", default=4, show_default=True, help="Only each so-manieth file.")
@click.option("--seeds", default=2, show_default=True, help="Searches on each record.")
@click.option("--write", is_flag=True, help="Put the tables into the record.")
def evidence(directory: Path, every: int, seeds: int, write: bool) -> None:
    """Measures what less evidence costs, on recorded trials, beside MLRsearch 1.2.1 with CSIT's goals.

    Each search asks its default questions, including the one after a rest. `--write` puts the tables into
    benchmarks/records/evidence.md.
    """
    files = sorted(directory.glob("*.jsonl"))[::every]
    subjects = [subject_of(file, seed, "interpolated") for file in files for seed in range(seeds)]
    tables = "\n".join([*_table_of_goals(subjects), "", *_table_of_coins(subjects)]) + "\n"
    click.echo(tables)
    if write:
        RECORD.write_text(_TABLES.sub(tables, RECORD.read_text(encoding="utf-8")), encoding="utf-8")


def _table_of_goals(subjects: Sequence[Subject]) -> Iterator[str]:
    yield (
        "| goals | searches | time divided by 1.2.1's | worst | half of the bounds deviate by at most "
        "| nine of ten bounds deviate by at most |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, goals in LESS_EVIDENCE.items():
        searches = [_compared(subject, goals, subjects) for subject in subjects]
        deviations = [deviation for search in searches for deviation in search.deviations]
        half, most = np.quantile(deviations, (0.5, 0.9))
        yield f"| {name} | {_times(searches)} | {100.0 * half:.2f} % | {100.0 * most:.1f} % |"


def _table_of_coins(subjects: Sequence[Subject]) -> Iterator[str]:
    """Searches for PDR, on the records on which `end_at_coin` ends one."""
    whole = [_compared(subject, (PDR,), subjects) for subject in subjects]
    short = [_compared(subject, (PDR,), subjects, end_at_coin=True) for subject in subjects]
    zones = [_zone_at_the_end(_ours(subject, (PDR,), end_at_coin=True), subject) for subject in subjects]
    with_zone = {subject.family for subject, zone in zip(subjects, zones, strict=True) if zone is not None}
    chosen = [number for number, subject in enumerate(subjects) if subject.family in with_zone]
    right = sum(_is_within(zone, _ours(subject, (PDR,))) for subject, zone in zip(subjects, zones, strict=True) if zone)

    yield "| PDR | searches | time divided by 1.2.1's | worst |"
    yield "| --- | --- | --- | --- |"
    yield f"| to the end | {_times([whole[number] for number in chosen])} |"
    yield f"| `end_at_coin` | {_times([short[number] for number in chosen])} |"
    yield ""
    ended = sum(zone is not None for zone in zones)
    yield (
        f"Of the searches with `end_at_coin`, {ended} ended with a zone, on {len(with_zone)} of "
        f"{len({subject.family for subject in subjects})} records. In {right} of these {ended}, the bound of a whole "
        "search is in the zone, to within the goal's width."
    )


def _times(searches: Sequence[Compared]) -> str:
    """The number of searches, the geometric mean of times with its standard error over records, and the worst time."""
    by_record = {
        record: np.mean([np.log(search.share) for search in searches if search.record == record])
        for record in {search.record for search in searches}
    }
    if len(by_record) < 2:
        return f"{len(searches)} | too few records | "
    logarithms = np.array([*by_record.values()])
    mean = float(np.exp(logarithms.mean()))
    error = mean * float(logarithms.std(ddof=1)) / len(logarithms) ** 0.5
    return f"{len(searches)} | {mean:.2f} ± {error:.2f} | {max(search.share for search in searches):.1f}"


def _compared(
    subject: Subject, goals: tuple[SearchGoal, ...], subjects: Sequence[Subject], **settings: Any
) -> Compared:
    outcome = _ours(subject, goals, **settings)
    peers = CSIT if len(goals) > 1 else (PDR,)
    share = outcome.result.elapsed / _peer(subject, peers).result.elapsed
    deviations = []
    for goal, result in outcome.result.items():
        usual = _median_bound(subject.family, goal.loss_ratio, peers, tuple(subjects))
        if usual and result.relevant_lower_bound is not None:
            deviations.append(abs(result.relevant_lower_bound / usual - 1.0))
    return Compared(subject.family, share, tuple(deviations))


@cache
def _median_bound(
    record: str, loss_ratio: float, goals: tuple[SearchGoal, ...], subjects: tuple[Subject, ...]
) -> float:
    """The median lower bound of MLRsearch 1.2.1 on a record, in frames per second; 0: it has none."""
    bounds = [
        result.relevant_lower_bound
        for subject in subjects
        if subject.family == record
        for goal, result in _peer(subject, goals).result.items()
        if goal.loss_ratio == loss_ratio and result.relevant_lower_bound is not None
    ]
    return float(np.median(bounds)) if bounds else 0.0


def _zone_at_the_end(outcome: Outcome, subject: Subject) -> tuple[float, float] | None:
    """The zone with which a search for PDR ended; None: it has its bounds."""
    if outcome.result[PDR].reason is not IrregularReason.COIN:
        return None
    zone = zone_in(PDR, outcome.trials, subject.min_load, subject.max_load)
    return zone.loads if zone is not None else None


def _is_within(zone: tuple[float, float], whole: Outcome) -> bool:
    bound = whole.result[PDR].relevant_lower_bound
    return bound is not None and zone[0] * (1.0 - PDR.width) <= bound <= zone[1] * (1.0 + PDR.width)


def _ours(subject: Subject, goals: tuple[SearchGoal, ...], **settings: Any) -> Outcome:
    return _searched(subject, goals, tuple(settings.items()))


def _peer(subject: Subject, goals: tuple[SearchGoal, ...]) -> Outcome:
    return _searched(subject, goals, None)


@cache
def _searched(subject: Subject, goals: tuple[SearchGoal, ...], settings: tuple[tuple[str, Any], ...] | None) -> Outcome:
    """A search: ours with these settings; with None, the one of MLRsearch 1.2.1."""
    measurer = subject.measurer(NO_OVERHEAD, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchGoalWarning)
        if settings is None:
            return ALGORITHMS[PEER].search(goals, subject, measurer)
        return search_with_ours(goals, subject, measurer, **dict(settings))


if __name__ == "__main__":
    main()
