"""What less evidence costs: searches on recorded trials beside MLRsearch 1.2.1 with CSIT's goals.

python benchmarks/evidence.py DIRECTORY --write

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`). Each search asks its default
questions, including the one after a rest. `--write` puts the tables into benchmarks/records/evidence.md.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

from lossratio.measurements.throughput.goals import HALF_NDR, HALF_PDR
from lossratio.mlrsearch import NDR, PDR, IrregularReason, SearchGoal, SearchGoalWarning, zone_in
from lossratio.simulation import Recorded
from lossratio_study.algorithms import ALGORITHMS, PEER, search_with_ours
from lossratio_study.outcome import Outcome
from lossratio_study.study import NO_OVERHEAD
from lossratio_study.suts import Subject

RECORD = Path(__file__).parent / "records" / "evidence.md"
CSIT = (NDR, PDR)
GOALS: dict[str, tuple[SearchGoal, ...]] = {"CSIT's": CSIT, "half of it": (HALF_NDR, HALF_PDR)}
"""Goals of a loss ratio of 0 and one of 0.5 %, by their rows in the table."""

_TABLES = re.compile(r"(?<=<!-- tables -->\n).*?(?=<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Search:
    """One search, and one of MLRsearch 1.2.1 with CSIT's goals on the same SUT."""

    record: str
    """The record that is the SUT."""
    share: float
    """The search's time as a share of the other's."""
    deviations: tuple[float, ...]
    """Distance of each lower bound from the median one of MLRsearch 1.2.1 on this record, as a share of the median."""


@click.command(help=__doc__)
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--every", default=4, show_default=True, help="Only each so-manieth file.")
@click.option("--seeds", default=2, show_default=True, help="Searches on each record.")
@click.option("--write", is_flag=True, help="Put the tables into the record.")
def main(directory: Path, every: int, seeds: int, write: bool) -> None:
    """Prints both tables."""
    files = sorted(directory.glob("*.jsonl"))[::every]
    subjects = [_subject(file, seed) for file in files for seed in range(seeds)]
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
    for name, goals in GOALS.items():
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


def _times(searches: Sequence[Search]) -> str:
    """The number of searches, the geometric mean of times with its standard error over records, and the worst time."""
    by_record = {
        record: np.mean([np.log(search.share) for search in searches if search.record == record])
        for record in {search.record for search in searches}
    }
    logarithms = np.array([*by_record.values()])
    mean = float(np.exp(logarithms.mean()))
    error = mean * float(logarithms.std(ddof=1)) / len(logarithms) ** 0.5
    return f"{len(searches)} | {mean:.2f} ± {error:.2f} | {max(search.share for search in searches):.1f}"


def _compared(subject: Subject, goals: tuple[SearchGoal, ...], subjects: Sequence[Subject], **settings: Any) -> Search:
    outcome = _ours(subject, goals, **settings)
    peers = CSIT if len(goals) > 1 else (PDR,)
    share = outcome.result.elapsed / _peer(subject, peers).result.elapsed
    deviations = []
    for goal, result in outcome.result.items():
        usual = _median_bound(subject.family, goal.loss_ratio, peers, tuple(subjects))
        if usual and result.relevant_lower_bound is not None:
            deviations.append(abs(result.relevant_lower_bound / usual - 1.0))
    return Search(subject.family, share, tuple(deviations))


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


def _subject(file: Path, seed: int) -> Subject:
    sut = Recorded(file, "interpolated")
    loads = sut.loads()
    return Subject(file.stem, seed, sut, loads[0], loads[-1])


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
