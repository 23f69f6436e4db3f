"""The command ``lossratio study``."""

import sys
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import click

from lossratio import arena
from lossratio.commands.parameters import OneOf, command, option
from lossratio.report import replay_page
from lossratio.shipped import names_near

PACKAGES = ("joblib", "pandas", "pyarrow")
"""The packages that only studies need."""
REPLAY_PAGE = "replay.html"
"""Name of the page of searches on recorded trials."""
QUICK_SEEDS, FULL_SEEDS = range(2), range(20)
QUICK_REPEATS, FULL_REPEATS = 2, 3


def _seed_range(ctx: click.Context, param: click.Parameter, value: str | None) -> range | None:
    """The seeds of ``0..19``, or the single one of ``7``; a usage error if there are none."""
    if value is None:
        return None
    first, _, last = value.partition("..")
    if not (first.isdecimal() and (last or first).isdecimal() and int(first) <= int(last or first)):
        raise click.BadParameter(f"{value!r} is no range of seeds such as 0..19.")
    return range(int(first), int(last or first) + 1)


@command()
def study(
    *,
    full: bool = option("More SUTs, searches and overheads: hours on one core."),
    family_set: str = option(
        "Families of SUTs: those that controllers may be tuned on, those for judging them, or those that break the "
        "suppositions of a search.",
        "--families",
        type=OneOf(list(arena.FAMILY_SETS)),
        default="development",
    ),
    replay: Path | None = option(
        "Search on recorded SUTs in place of families: journals of earlier searches, or other records of trials "
        f"(*.jsonl), in this directory and below. {REPLAY_PAGE} among the results shows which goals repeat on them.",
        metavar="DIRECTORY",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
    ),
    families: tuple[str, ...] = option("Only this family; may be given several times.", "--family"),
    seeds: range | None = option(
        "SUTs of each family.  [default: 0..1; with --full 0..19]", metavar="N..M", type=str, callback=_seed_range
    ),
    repeats: int | None = option("Searches on each SUT.  [default: 2; with --full 3]", type=click.IntRange(min=1)),
    goal_sets: tuple[str, ...] = option("Only this goal set.", "--goals", type=OneOf(list(arena.GOAL_SETS))),
    overheads: tuple[str, ...] = option(
        "Seconds that each trial takes besides its traffic, and whether they count.  [default: 0; with --full all]",
        "--overhead",
        type=OneOf(list(arena.OVERHEADS)),
    ),
    algorithms: tuple[str, ...] = option(
        f"Only this algorithm: {', '.join(arena.ALGORITHMS)}, or an object of a module of yours, as module:NAME.  "
        "[default: all of lossratio's]",
        "--algorithm",
        metavar="NAME",
    ),
    changes: tuple[str, ...] = option(
        "Compare searches with hints from earlier nights with those without, after this change of the SUT, in "
        "place of algorithms.",
        "--hints",
        type=OneOf(list(arena.CHANGES)),
    ),
    promises: int | None = option(
        "Measure how often sequential goals have a wrong bound, on so many SUTs for each goal, and nothing else. "
        "The first of --seeds is the first SUT's.",
        metavar="SUTS",
        type=click.IntRange(min=1),
    ),
    results: Path = option(
        "Directory of results. What is finished there is not run again.",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("results/study"),
    ),
    jobs: int = option("Processes; -1: one for each core.", default=-1),
    scheduler: str | None = option("Run on the Dask cluster of this scheduler.", metavar="ADDRESS"),
) -> None:
    """Compare search algorithms side by side on simulated SUTs.

    Each algorithm searches on the same SUTs, of which the truth is known. Without --full it takes about a minute on
    one core.
    """
    if promises is not None:
        click.echo(arena.promise_table(arena.promises_kept(arena.PROMISES, promises, 0 if seeds is None else seeds[0])))
        return
    if missing := [name for name in PACKAGES if util.find_spec(name) is None]:
        raise click.ClickException(
            f"Studies need {', '.join(missing)}, not installed here: pip install '.[bench]' (in a checkout)."
        )
    family_set = family_set if replay is None else str(replay)
    known = arena.families_of(family_set)
    unknown = [name for name in families if name not in known]
    if unknown:
        near = names_near(unknown[0], known)
        raise click.BadParameter(f"The {family_set} families lack {unknown[0]}; they are {near}", param_hint="--family")
    compared = [arena.CHANGES[name] for name in changes]
    of_changes = tuple(name for change in compared for name in (change.with_hints, change.without_hints))
    plan = arena.Study(
        family_set=family_set,
        families=families or tuple(known),
        goal_sets=goal_sets or tuple(arena.GOAL_SETS),
        algorithms=of_changes or _installed(algorithms or tuple(arena.ALGORITHMS)),
        overheads=tuple(arena.OVERHEADS[name] for name in overheads)
        or (tuple(arena.OVERHEADS.values()) if full else (arena.NO_OVERHEAD,)),
        seeds=tuple(seeds or (FULL_SEEDS if full else QUICK_SEEDS)),
        repeats=repeats or (FULL_REPEATS if full else QUICK_REPEATS),
    )
    store = arena.Store(results)
    cells = list(plan.cells())
    if not cells:
        raise click.UsageError("None of these algorithms can search for these goals.")
    progress = click.progressbar(length=len(cells), label="Searching", file=sys.stderr)
    try:
        with progress as bar:
            arena.run_study(cells, store, jobs=jobs, scheduler=scheduler, on_progress=lambda n: bar.update(n - bar.pos))
    finally:
        click.echo(f"Cells finished: {progress.pos} of {len(cells)}, kept in {results}", err=True)
    rows = store.load(cells)
    for title, table in _tables(rows, family_set):
        click.echo(f"\n{title}\n{table}")
    if replay is not None:
        page = results / REPLAY_PAGE
        titles = {name: goal_set.title for name, goal_set in arena.GOAL_SETS.items()}
        page.write_text(replay_page(rows, titles, str(replay)), encoding="utf-8")
        click.echo(f"\nWhich goals repeat on these SUTs, and at what price: {page}")


def _installed(algorithms: tuple[str, ...]) -> tuple[str, ...]:
    missing = arena.why_not_installed()
    if missing is None or arena.PEER not in algorithms:
        return algorithms
    click.echo(f"{arena.PEER} is skipped: {missing}", err=True)
    return tuple(name for name in algorithms if name != arena.PEER)


def _tables(rows: Any, family_set: str) -> Iterator[tuple[str, str]]:
    if family_set not in arena.FAMILY_SETS:
        yield "Searches on recorded trials; loads in frames/s", arena.bounds_table(rows)
        return
    groups = {name: family.group for name, family in arena.FAMILY_SETS[family_set].items()}
    free = arena.at_overhead(rows, 0.0, counted=False)
    if len(free):
        yield "Mean seconds of a search on quiet / jittery / mixed SUTs, overhead 0", arena.group_table(free, groups)
    for (overhead, counted), chosen in rows.groupby(["overhead", "counted"]):
        title = f"Overhead {overhead:g} s{', counted' if counted else ''}: searches (mean, median, 95th percentile)"
        yield title, arena.algorithm_table(chosen)
    if set(rows.algorithm) <= set(arena.HINT_ALGORITHMS):
        if len(free):
            yield from arena.hint_family_tables(free)
        yield "With hints from earlier nights beside without", arena.figure_table(arena.hint_figures(free))
        return
    if not {arena.OURS, arena.PEER} <= set(rows.algorithm.unique()):
        return
    if len(free):
        yield from arena.family_tables(free)
    click.echo("Measuring the time per decision in a search of 1,000 trials: this takes seconds.", err=True)
    growth = arena.decision_time_growth()
    yield f"{arena.OURS} beside {arena.PEER}", arena.figure_table(arena.figures(rows, growth))
