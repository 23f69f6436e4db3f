"""The command that runs a study and prints its tables."""

from __future__ import annotations

from pathlib import Path

import click

from lossratio.errors import SearchError
from lossratio.study.algorithms import ALGORITHMS, PEER
from lossratio.study.goal_sets import GOAL_SETS
from lossratio.study.peer import why_not_installed
from lossratio.study.plan import ALL_OVERHEADS, FAMILY_SETS, NO_OVERHEAD, Study
from lossratio.study.runner import run_study
from lossratio.study.store import Store
from lossratio.study.tables import study_tables

QUICK_SEEDS, FULL_SEEDS = "0..1", "0..19"
QUICK_REPEATS, FULL_REPEATS = 2, 3


@click.command()
@click.option("--full", is_flag=True, help="More SUTs and searches, all overheads; hours on one core.")
@click.option("--families", type=click.Choice(list(FAMILY_SETS)), default="development", show_default=True)
@click.option("--seeds", metavar="N..M", help=f"SUTs of each family.  [default: {QUICK_SEEDS}; full: {FULL_SEEDS}]")
@click.option("--repeats", type=click.IntRange(min=1), help="Searches of each algorithm on each SUT.")
@click.option("--goals", "goal_sets", type=click.Choice(list(GOAL_SETS)), multiple=True, help="Goal sets; all.")
@click.option("--algorithm", "algorithms", type=click.Choice(list(ALGORITHMS)), multiple=True, help="All that apply.")
@click.option("--results", type=click.Path(path_type=Path), default=Path("results/study"), show_default=True,
              help="Directory of results; what is finished there is not run again.")  # fmt: skip
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1: one for each core.")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler.")
def study(
    full: bool,
    families: str,
    seeds: str | None,
    repeats: int | None,
    goal_sets: tuple[str, ...],
    algorithms: tuple[str, ...],
    results: Path,
    jobs: int,
    scheduler: str | None,
) -> None:
    """Compare search algorithms side by side on simulated SUTs.

    Without --full it takes about a minute on one core.
    """
    taking_part = algorithms or tuple(ALGORITHMS)
    missing = why_not_installed()
    if PEER in taking_part and missing is not None:
        click.echo(f"{PEER} is skipped: {missing}", err=True)
        taking_part = tuple(name for name in taking_part if name != PEER)
    plan = Study(
        families,
        goal_sets or tuple(GOAL_SETS),
        taking_part,
        ALL_OVERHEADS if full else (NO_OVERHEAD,),
        _seeds(seeds or (FULL_SEEDS if full else QUICK_SEEDS)),
        repeats or (FULL_REPEATS if full else QUICK_REPEATS),
    )
    store = Store(results)
    run_study(plan, store, jobs=jobs, scheduler=scheduler, on_cell=_show_progress)
    click.echo(err=True)
    groups = {name: family.group for name, family in FAMILY_SETS[families].items()}
    for table in study_tables(store.load(plan.cells()), groups):
        click.echo(f"\n{table}")


def _show_progress(done: int, of: int) -> None:
    click.echo(f"\r{done} of {of} cells", nl=False, err=True)


def _seeds(text: str) -> tuple[int, ...]:
    """The seeds of ``N..M``, or the one of ``N``.

    Raises:
        SearchError: If it is neither.
    """
    first, _, last = text.partition("..")
    try:
        seeds = tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        seeds = ()
    if not seeds or seeds[0] < 0:
        raise SearchError(f"--seeds takes a range such as 0..19, not {text!r}.")
    return seeds
