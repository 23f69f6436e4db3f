"""Whether a change of the search changes searches: some 3,500 simulated ones, and a digest of the trials of each.

Run it before the change and after it; the second run reports each search that is no longer the same, trial by trial:

python benchmarks/search_digests.py before.tsv
python benchmarks/search_digests.py after.tsv --beside before.tsv

All goal sets and all families of `lossratio study` take part, without hints, with hints from earlier nights on the same
SUT, with hints that are nonsense, and as FD.io CSIT searches: a warm-up, failing fast.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from joblib import Parallel, delayed

from lossratio.mlrsearch import SearchGoalWarning
from lossratio_study.algorithms import OURS
from lossratio_study.csit import AS_CSIT
from lossratio_study.nights import CHANGES
from lossratio_study.outcome import Outcome
from lossratio_study.search import GOAL_SETS, SEARCH_STREAM
from lossratio_study.study import FAMILY_SETS, NO_OVERHEAD, algorithm_named
from lossratio_study.suts import Family

WITH_HINTS = (CHANGES["unchanged"].with_hints, CHANGES["nonsense"].with_hints)


SEARCHES = tuple(map(algorithm_named, (OURS, *WITH_HINTS, AS_CSIT.name)))


@dataclass(frozen=True)
class Search:
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
    def parse(cls, line: str) -> Search:
        """The search of a line of a file."""
        name, trials, seconds, digest = line.split("\t")
        return cls(name, int(trials), float(seconds), digest)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--beside",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="File of an earlier run, with the same options.",
)
@click.option("--seeds", default=4, show_default=True, help="SUTs of each family.")
@click.option("--first-seed", default=0, show_default=True)
@click.option("--jobs", default=1, show_default=True, help="Processes; -1: one for each core.")
def main(file: Path, beside: Path | None, seeds: int, first_seed: int, jobs: int) -> None:
    """Writes the digests of many searches to FILE, one line for each."""
    families = [family for name in ("development", "held-out") for family in FAMILY_SETS[name].values()]
    parts = Parallel(n_jobs=jobs)(
        delayed(searches_of)(family, seed) for family in families for seed in range(first_seed, first_seed + seeds)
    )
    searches = [search for part in parts for search in part]
    file.write_text("".join(f"{search}\n" for search in searches))
    click.echo(f"{len(searches)} searches: {file}")
    if beside is not None:
        earlier = map(Search.parse, beside.read_text().splitlines())
        compare({search.name: search for search in earlier}, searches)


def searches_of(family: Family, seed: int) -> list[Search]:
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
            searches.append(Search(title, len(outcome.trials), outcome.result.elapsed, digest(outcome)))
    return searches


def digest(outcome: Outcome) -> str:
    """A digest of all trials in their order, and of the results."""
    lines = [f"{trial.duration!r} {trial.load!r} {trial.loss_ratio!r}" for trial in outcome.trials]
    lines += [repr(goal_result) for goal_result in outcome.result.values()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def compare(earlier: Mapping[str, Search], searches: list[Search]) -> None:
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


def _differing(earlier: Mapping[str, Search], searches: list[Search]) -> Iterator[tuple[Search, Search]]:
    for search in searches:
        if search.name not in earlier:
            raise click.ClickException(
                f"The earlier run has no search {search.name!r}: run both with the same options."
            )
        if earlier[search.name].digest != search.digest:
            yield earlier[search.name], search


if __name__ == "__main__":
    main()
