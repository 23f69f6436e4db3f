"""The command ``lossratio-study``, which is also ``lossratio study``."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from lossratio.commands import FRAME_RATE, TESTBED, LocalPath, OneOf, WholeNumber, command, option, run_command
from lossratio.files import shown_name
from lossratio.values import names_near, shown_value
from lossratio_study import figures, peer, tables
from lossratio_study.algorithms import ALGORITHMS, OURS, PEER
from lossratio_study.nights import CHANGES, HINT_ALGORITHMS
from lossratio_study.page import replay_page
from lossratio_study.promises import PROMISES, promises_kept
from lossratio_study.search import GOAL_SETS, Row
from lossratio_study.study import (
    FAMILY_SETS,
    OVERHEADS,
    Cell,
    Store,
    Study,
    families_of,
    frame_of,
    run_study,
    write_rows,
)
from lossratio_study.suts import NO_OVERHEAD
from lossratio_study.systems import SYSTEMS, algorithm_named
from lossratio_study.testbed import Place, searches_on_testbed

_SEED_DIGITS = 6
_SEEDS = re.compile(rf"([0-9]{{1,{_SEED_DIGITS}}})(?:\.\.([0-9]{{0,{_SEED_DIGITS}}}))?")
REPLAY_PAGE = "replay.html"
"""Name of the page of searches on recorded trials."""
QUICK_SEEDS = range(2)
FULL_SEEDS = range(20)
QUICK_REPEATS = 2
FULL_REPEATS = 3


def _seed_range(ctx: click.Context, param: click.Parameter, value: str | None) -> range | None:
    """The seeds of ``0..19``, or the single seed of ``7``; a usage error if there are none."""
    if value is None:
        return None
    found = _SEEDS.fullmatch(value)
    if found is None or int(found[1]) > int(found[2] or found[1]):
        raise click.BadParameter(
            f"{shown_value(value)} is not a range of seeds such as 0..19, with at most {_SEED_DIGITS} digits each."
        )
    return range(int(found[1]), int(found[2] or found[1]) + 1)


@dataclass(frozen=True)
class _OnTestbed:
    """The options of searches on a testbed."""

    testbed: Path | None = option(
        f"Search on a testbed instead of models. This needs --goals. {TESTBED}", metavar="FILE|NAME"
    )
    dut: str | None = option("Kind of the testbed's DUTs. Without this option, they stay as they are.", metavar="KIND")
    options: tuple[str, ...] = option("An option of that kind.", "--option", metavar="NAME=VALUE")
    profile: str = option("The traffic profile on the testbed.", default="ethip4-udp", metavar="NAME|FILE")
    frame_size: str = option("Size of its frames, or the name of a mix.", default="64B", metavar="SIZE|MIX")
    min_load: float | None = option("Smallest load, e.g. '10 kfps'.", metavar="RATE", type=FRAME_RATE)
    max_load: float | None = option("Largest load, e.g. '1 Mfps'.", metavar="RATE", type=FRAME_RATE)

    def place(self, testbed: Path) -> Place:
        """The testbed with its DUT and traffic; a usage error for an option without a value."""
        wrong = [text for text in self.options if "=" not in text]
        if wrong:
            raise click.UsageError(f"--option {wrong[0]}: write it as NAME=VALUE.")
        options = dict(text.split("=", 1) for text in self.options)
        return Place(testbed, self.dut, options, self.profile, self.frame_size, self.min_load, self.max_load)


@command()
def study(
    *,
    systems: bool = option("Only list the algorithms, with the goals and the source of each."),
    full: bool = option("More SUTs, searches and overheads: hours on one core."),
    family_set: str = option(
        "Families of SUTs: for tuning controllers, for judging them, or those that break the assumptions of a search.",
        "--families",
        type=OneOf(list(FAMILY_SETS)),
        default="development",
    ),
    replay: Path | None = option(
        "Search on recorded SUTs instead of families: journals of earlier searches, or other records of trials "
        f"(*.jsonl), in this directory and below. The page {REPLAY_PAGE} shows which goals repeat on them.",
        metavar="DIR",
        type=LocalPath(path_type=Path, exists=True, file_okay=False),
    ),
    on_testbed: _OnTestbed,
    families: tuple[str, ...] = option(
        "Only this family; you can give this option several times.", "--family", metavar="NAME"
    ),
    seeds: range | None = option(
        "SUTs of each family.  [default: 0..1; with --full 0..19]", metavar="N..M", type=str, callback=_seed_range
    ),
    repeats: int | None = option(
        "Searches on each SUT.  [default: 2; with --full 3; on a testbed 1]", type=WholeNumber(min=1)
    ),
    goal_sets: tuple[str, ...] = option("Only this goal set.", "--goals", type=OneOf(list(GOAL_SETS))),
    overheads: tuple[str, ...] = option(
        "Seconds that each trial takes besides its traffic, and whether they count.  [default: 0; with --full all]",
        "--overhead",
        type=OneOf(list(OVERHEADS)),
    ),
    algorithms: tuple[str, ...] = option(
        f"Only this algorithm: {'; '.join(SYSTEMS)}; or an object of a module of yours, as module:NAME.  "
        f"[default: {'; '.join(ALGORITHMS)}]",
        "--algorithm",
        metavar="NAME",
    ),
    changes: tuple[str, ...] = option(
        "Instead of algorithms, compare searches with and without hints from earlier nights, after this change of the "
        "SUT.",
        "--hints",
        type=OneOf(list(CHANGES)),
    ),
    promises: int | None = option(
        "Only measure how often sequential goals have a wrong bound, on this number of SUTs for each goal. The first "
        "SUT has the first of --seeds.",
        metavar="SUTS",
        type=WholeNumber(min=1),
    ),
    results: Path = option(
        "Directory for the results. Finished cells in it are not run again.",
        metavar="DIR",
        type=LocalPath(path_type=Path, file_okay=False),
        default=Path("results/study"),
    ),
    jobs: int = option("Processes; -1: one for each core.", type=WholeNumber(min=-1), default=-1),
    scheduler: str | None = option("Run on the Dask cluster of this scheduler.", metavar="ADDRESS"),
) -> None:
    """Compare search algorithms side by side on simulated SUTs.

    All algorithms search on the same SUTs, whose true values are known. Without --full, this takes a minute or two on
    one core. --replay searches on recorded trials, and --testbed on a testbed.
    """
    if jobs == 0:
        raise click.UsageError("--jobs 0 is not possible. Give a number of processes, or -1 for one on each core.")
    if systems:
        click.echo(tables.system_table(SYSTEMS.values(), tuple(GOAL_SETS.values())))
        return
    if promises is not None:
        first_seed = 0 if seeds is None else seeds[0]
        click.echo(tables.promise_table(promises_kept(PROMISES, promises, first_seed)))
        return
    from lossratio.files import check_directory

    check_directory(results, "--results")
    if on_testbed.testbed is not None:
        of_models: dict[str, object] = {"--replay": replay, "--family": families, "--seeds": seeds, "--full": full}
        of_models |= {"--overhead": overheads, "--hints": changes, "--scheduler": scheduler}
        _refuse_on_testbed(of_models)
        if not goal_sets:
            raise click.UsageError(f"On a testbed, choose what to search for with --goals: {', '.join(GOAL_SETS)}.")
        chosen = _installed(algorithms or tuple(ALGORITHMS))
        _study_testbed(on_testbed.place(on_testbed.testbed), goal_sets, chosen, repeats or 1, results)
        return

    if replay is not None:
        family_set = str(replay)
    known = families_of(family_set)
    _refuse_unknown(families, known, family_set)
    compared = [CHANGES[name] for name in changes]
    of_changes = tuple(name for change in compared for name in (change.with_hints, change.without_hints))
    usual_overheads = tuple(OVERHEADS.values()) if full else (NO_OVERHEAD,)
    usual_seeds = FULL_SEEDS if full else QUICK_SEEDS
    usual_repeats = FULL_REPEATS if full else QUICK_REPEATS

    # Record: the requested values, or else the usual ones.
    plan = Study(
        family_set=family_set,
        families=families or tuple(known),
        goal_sets=goal_sets or tuple(GOAL_SETS),
        algorithms=of_changes or _installed(algorithms or tuple(ALGORITHMS)),
        overheads=tuple(OVERHEADS[name] for name in overheads) or usual_overheads,
        seeds=tuple(seeds or usual_seeds),
        repeats=repeats or usual_repeats,
    )

    store = Store(results)
    cells = list(plan.cells())
    _run(cells, store, jobs, scheduler)

    rows = store.load(cells)
    for title, table in _tables(rows, family_set):
        click.echo(f"\n{title}\n{table}")
    if replay is not None:
        page = results / REPLAY_PAGE
        titles = {name: goal_set.title for name, goal_set in GOAL_SETS.items()}
        suts = {name: family.record for name, family in known.items() if family.record is not None}
        page.write_text(replay_page(rows, titles, str(replay), suts), encoding="utf-8")
        click.echo(f"\nWhich goals repeat on these SUTs, and at what price: {page}")


def _refuse_on_testbed(of_models: Mapping[str, object]) -> None:
    given = [name for name, value in of_models.items() if value]
    if given:
        raise click.UsageError(f"Leave out {', '.join(given)}: --testbed has no models of SUTs.")


def _refuse_unknown(families: Iterable[str], known: Iterable[str], family_set: str) -> None:
    unknown = [name for name in families if name not in known]
    if unknown:
        near = names_near(unknown[0], known)
        raise click.BadParameter(
            f"The {family_set} families do not include {shown_name(unknown[0])}. They are {near}", param_hint="--family"
        )


def _run(cells: Sequence[Cell], store: Store, jobs: int, scheduler: str | None) -> None:
    """Runs the cells with a progress bar, and says how many are kept, even after an interrupt."""
    if not cells:
        raise click.UsageError("None of these algorithms can search for these goals.")
    progress = click.progressbar(length=len(cells), label="Searching", file=sys.stderr)

    def show(done: int) -> None:
        progress.update(done - progress.pos)

    try:
        with progress:
            run_study(cells, store, jobs=jobs, scheduler=scheduler, on_progress=show)
    finally:
        click.echo(f"Cells finished: {progress.pos} of {len(cells)}, kept in {store.directory}", err=True)


def _study_testbed(
    place: Place, goal_sets: tuple[str, ...], algorithms: tuple[str, ...], repeats: int, results: Path
) -> None:
    """Searches on a testbed, into a directory of its own. After an error, the findings so far are shown, too."""
    directory = results / f"testbed-{datetime.now(timezone.utc):%Y%m%d-%H%M%S-%f}"
    chosen = [algorithm_named(name) for name in algorithms]
    sets = [GOAL_SETS[name] for name in goal_sets]
    found: list[Row] = []
    try:
        for row in searches_on_testbed(place, sets, chosen, repeats, directory / "trials"):
            found.append(row)
            bounds = f"{row.lower:.0f} to {row.upper:.0f} frames/s"
            click.echo(f"{row.goal_set}, {row.goal}, {row.algorithm}: {bounds} in {row.elapsed:.0f} s", err=True)
    finally:
        if found:
            _show_searches(found, place, directory)


def _show_searches(found: Sequence[Row], place: Place, directory: Path) -> None:
    write_rows(found, directory / "rows.parquet")
    table = tables.bounds_table(frame_of(found))
    click.echo(f"Searches on {place.topology}; loads in frames/s per interface\n{table}")
    for fault in dict.fromkeys(f"{row.algorithm}: {row.faults}" for row in found if row.faults):
        click.echo(f"Fault of {fault}")
    again = f"Search on these trials again: --replay {directory / 'trials'}"
    click.echo(f"\nTrials and numbers: {directory}. {again}")


def _installed(algorithms: tuple[str, ...]) -> tuple[str, ...]:
    missing = peer.why_not_installed()
    if missing is None or PEER not in algorithms:
        return algorithms
    click.echo(f"{PEER} is skipped: {missing}", err=True)
    return tuple(name for name in algorithms if name != PEER)


def _tables(rows: Any, family_set: str) -> Iterator[tuple[str, str]]:
    if family_set not in FAMILY_SETS:
        yield "Searches on recorded trials; loads in frames/s", tables.bounds_table(rows)
        return

    groups = {name: family.group for name, family in FAMILY_SETS[family_set].items()}
    free = figures.at_overhead(rows, 0.0, counted=False)
    if len(free):
        yield "Mean seconds of a search on quiet / jittery / mixed SUTs, overhead 0", tables.group_table(free, groups)
    for (overhead, counted), chosen in rows.groupby(["overhead", "counted"]):
        which = f"{overhead:g} s, counted" if counted else f"{overhead:g} s"
        title = f"Overhead {which}: searches (mean, median, 95th percentile)"
        yield title, tables.algorithm_table(chosen)

    if set(rows.algorithm) <= set(HINT_ALGORITHMS):
        if len(free):
            yield from tables.hint_family_tables(free)
        yield "With hints from earlier nights beside without", tables.figure_table(figures.hint_figures(free))
        return

    if not {OURS, PEER} <= set(rows.algorithm.unique()):
        return
    if len(free):
        yield from tables.family_tables(free)
    click.echo("Measuring the time per decision in a search of 1,000 trials: this takes seconds.", err=True)
    growth = figures.decision_time_growth()
    yield f"{OURS} beside {PEER}", tables.figure_table(figures.figures(rows, growth))


def main() -> None:
    """Runs the command. An error becomes one message and the matching exit status."""
    run_command(study)
