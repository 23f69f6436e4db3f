"""Compares our search with MLRsearch 1.2.1 on recorded trials: how long each takes, for goals whose trials are alike.

python benchmarks/replay_searches.py DIRECTORY --between interpolated --between either

`lossratio.simulation.Recorded` says what is in the directory's files (`*.jsonl`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from lossratio.mlrsearch import NDR, PDR, SearchGoal, SearchGoalWarning
from lossratio.simulation import Recorded
from lossratio_study.algorithms import ALGORITHMS, OURS
from lossratio_study.checker import faults
from lossratio_study.outcome import Outcome
from lossratio_study.peer import PEER_VERSION
from lossratio_study.study import NO_OVERHEAD
from lossratio_study.suts import Subject

PEER = f"MLRsearch {PEER_VERSION}"

GOALS = {
    "NDR": (NDR,),
    "PDR": (PDR,),
    "NDR, PDR": (NDR, PDR),
    "quick NDR": (SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01, 1.0),),
    "one trial": (replace(NDR, exceed_ratio=0.0, duration_sum=1.0),),
}
"""Sets of goals, by name."""


@click.command(help=__doc__)
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--between", multiple=True, default=("interpolated",), help="The loss between recorded loads.")
@click.option("--goals", multiple=True, type=click.Choice(list(GOALS)), help="Only these goals.")
@click.option("--every", default=1, show_default=True, help="Only each so-manieth file.")
@click.option("--seeds", default=2, show_default=True, help="Searches on each record.")
def main(directory: Path, between: Sequence[str], goals: Sequence[str], every: int, seeds: int) -> None:
    """Prints a table for each way between loads."""
    files = sorted(directory.glob("*.jsonl"))[::every]
    for way in between:
        click.echo(f"{len(files)} records, {seeds} searches on each, {way}: seconds divided by those of {PEER}")
        heads = ("geo. mean", "95 %", "worst", "ours", "peer's", "lucky", "its", "ms", "most ms", "faults")
        click.echo(f"{'':>10}" + "".join(f"{head:>10}" for head in heads))
        for name in goals or GOALS:
            click.echo(_line(name, [_subject(file, seed, way) for file in files for seed in range(seeds)]))


def _subject(file: Path, seed: int, between: str) -> Subject:
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
        return ALGORITHMS[algorithm].search(GOALS[name], subject, subject.measurer(NO_OVERHEAD, 0))


def _is_lucky(outcome: Outcome, subject: Subject) -> bool:
    """Whether a lower bound is above a recorded load of which nearly all trials are too lossy."""
    assert isinstance(subject.sut, Recorded)
    return any(
        (result.relevant_lower_bound or 0.0) > load
        for goal, result in outcome.result.items()
        for load, share in subject.sut.lossy(goal.loss_ratio).items()
        if share >= 0.95
    )


if __name__ == "__main__":
    main()
