"""A study: its cells, the store of their results, and their run on this machine or on a Dask cluster.

A cell is a set of searches that are run together. Each finished cell has a Parquet file of its own, so that a killed
study continues with the unfinished cells. The file's name has a digest of all code that the cell's numbers depend on,
so that after a change of one algorithm, only the cells of this algorithm are run again.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from lossratio.errors import ReportError, SearchError
from lossratio.files import shown_name
from lossratio.values import shortened
from lossratio_study.families import FAMILIES, HARD_FAMILIES, HELD_OUT_FAMILIES
from lossratio_study.search import GOAL_SETS, GoalSet, Row, search_rows
from lossratio_study.suts import NO_OVERHEAD, Family, Overhead, recorded_families
from lossratio_study.systems import EVERYBODYS_CODE, algorithm_named, code_of

FAMILY_SETS = {"development": FAMILIES, "held-out": HELD_OUT_FAMILIES, "hard": HARD_FAMILIES}
"""Families for improving controllers, families for judging controllers, and families for which no search is made."""


def families_of(family_set: str) -> Mapping[str, Family]:
    """The families of a set by name; the families of a directory of records are its files, see `recorded_families`."""
    if family_set in FAMILY_SETS:
        return FAMILY_SETS[family_set]
    return recorded_families(Path(family_set))


SEEDS_PER_CELL = 5

OVERHEADS: Mapping[str, Overhead] = {
    str(overhead): overhead
    for overhead in (NO_OVERHEAD, Overhead(0.02), Overhead(0.02, True), Overhead(0.5), Overhead(0.5, True))
}
"""Overheads by name."""


@dataclass(frozen=True)
class Cell:
    """Searches that are run together."""

    family_set: str
    """Name of the set of families, or a directory of records."""
    family: str
    """Name of the family."""
    goal_set: str
    """Name of the goal set."""
    overhead: Overhead
    """The overhead of each trial."""
    algorithm: str
    """Name of the algorithm, see `algorithm_named`."""
    seeds: tuple[int, ...]
    """Seeds of the SUTs."""
    repeats: int
    """Searches on each SUT."""

    def rows(self) -> list[Row]:
        """Runs the searches."""
        family = families_of(self.family_set)[self.family]
        algorithm = algorithm_named(self.algorithm)
        goals = GOAL_SETS[self.goal_set]

        rows: list[Row] = []
        for seed in self.seeds:
            subject = family.subject(seed)
            for repeat in range(self.repeats):
                rows.extend(search_rows(goals, subject, self.overhead, algorithm, repeat))
        return rows


@dataclass(frozen=True)
class Study:
    """Algorithms that are compared on families, goal sets and overheads, in all combinations."""

    family_set: str
    """Name of a set of families, or a directory of records."""
    families: tuple[str, ...]
    """Names of families in it."""
    goal_sets: tuple[str, ...]
    """Names of goal sets."""
    algorithms: tuple[str, ...]
    """Names of algorithms. Each takes part in searches to which it applies."""
    overheads: tuple[Overhead, ...]
    """The overheads of trials."""
    seeds: tuple[int, ...]
    """Seeds of the SUTs of each family."""
    repeats: int
    """Searches of each algorithm on each SUT."""

    def cells(self) -> Iterator[Cell]:
        """All cells of the study."""
        blocks = [self.seeds[start : start + SEEDS_PER_CELL] for start in range(0, len(self.seeds), SEEDS_PER_CELL)]
        for goal_set in (GOAL_SETS[name] for name in self.goal_sets):
            for overhead, algorithm in self._searches(goal_set):
                for family in self.families:
                    for seeds in blocks:
                        yield Cell(self.family_set, family, goal_set.name, overhead, algorithm, seeds, self.repeats)

    def _searches(self, goal_set: GoalSet) -> Iterator[tuple[Overhead, str]]:
        """The overheads with the names of the algorithms that search with them, for a set of goals."""
        known = {name: algorithm_named(name) for name in self.algorithms}
        taking_part = {name: one for name, one in known.items() if one.applies(goal_set.goals)}
        for overhead in self.overheads:
            if overhead.counted and not goal_set.countable_overhead:
                continue
            for name, algorithm in taking_part.items():
                if algorithm.overhead is None:
                    yield overhead, name
        for name, algorithm in taking_part.items():
            if algorithm.overhead is not None:
                yield algorithm.overhead, name


@dataclass(frozen=True)
class Store:
    """A directory of results."""

    directory: Path

    def path(self, cell: Cell) -> Path:
        """The file of a cell's rows."""
        seeds = f"seeds-{'-'.join(str(seed) for seed in cell.seeds)}-repeats-{cell.repeats}"
        code = code_digest((*EVERYBODYS_CODE, *code_of(cell.algorithm)))
        name = f"{seeds}-{code}.parquet"
        if cell.family_set not in FAMILY_SETS:
            record = code_digest(_files_of(cell))
            name = f"{record}-{name}"
        folders = (cell.family_set, cell.goal_set, f"overhead-{cell.overhead}", cell.algorithm, cell.family)
        return self.directory.joinpath(*(folder.replace(" ", "-").replace("/", "-") for folder in folders), name)

    def has(self, cell: Cell) -> bool:
        """Whether a cell is finished."""
        return self.path(cell).is_file()

    def save(self, cell: Cell, rows: Iterable[Row]) -> None:
        """Stores a finished cell. The file appears only when it is complete."""
        write_rows(rows, self.path(cell))

    def load(self, cells: Iterable[Cell]) -> Any:
        """The rows of the cells, as a data frame with `Row`'s columns."""
        from pandas import concat

        return concat([_frame_in(self.path(cell)) for cell in cells], ignore_index=True)


def _frame_in(path: Path) -> Any:
    """The rows of a file, as a data frame."""
    from pandas import read_parquet
    from pyarrow import ArrowException

    try:
        frame = read_parquet(path)
    except (ArrowException, ValueError) as error:
        raise ReportError(f"{path} is damaged. Remove this file to search again.") from error
    missing = {field.name for field in fields(Row)}.difference(frame.columns)
    if missing:
        raise ReportError(f"{path} lacks {', '.join(sorted(missing))}. Remove this file to search again.")
    return frame


def _files_of(cell: Cell) -> tuple[Path, ...]:
    """The files of the record that a cell searches on."""
    record = families_of(cell.family_set)[cell.family].record
    assert record is not None  # noqa: S101 (families that are no set by name are records)
    return record.files


@cache
def code_digest(paths: tuple[Path, ...]) -> str:
    """A short digest of files, and of all Python files in directories."""
    digest = hashlib.sha256()
    for path in paths:
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Writes rows as a Parquet file, which appears only when it is complete."""
    from pyarrow import Table, parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    parquet.write_table(Table.from_pylist([asdict(row) for row in rows]), unfinished)
    unfinished.replace(path)


def frame_of(rows: Iterable[Row]) -> Any:
    """Rows as a data frame with `Row`'s columns."""
    from pandas import DataFrame

    return DataFrame([asdict(row) for row in rows])


def _say_nothing(done: int) -> None:
    """Ignores the progress, if nobody asked for it."""


def run_study(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int,
    scheduler: str | None = None,
    on_progress: Callable[[int], None] = _say_nothing,
) -> None:
    """Runs the unfinished cells, and stores each one as soon as it is finished.

    `jobs` is the number of processes; -1 is one for each core. With the address of a Dask scheduler, its workers run
    the cells, and need lossratio (without Dask, SearchError is raised). `on_progress` gets the number of finished
    cells, at the beginning and after each cell.
    """
    from joblib import Parallel, delayed

    missing = [cell for cell in cells if not store.has(cell)]
    done = len(cells) - len(missing)
    on_progress(done)

    with _backend(scheduler):
        finished = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
            delayed(_run)(cell) for cell in missing
        )
        try:
            for cell, rows in finished:
                store.save(cell, rows)
                done += 1
                on_progress(done)
        finally:
            # After Ctrl-C, joblib would warn of the cells that it gives up.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                finished.close()


def _run(cell: Cell) -> tuple[Cell, list[Row]]:
    return cell, cell.rows()


@contextmanager
def _backend(scheduler: str | None) -> Iterator[None]:
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise SearchError(
            "--scheduler needs Dask, which is not installed: pip install 'lossratio-study[cluster]' "
            "(in a clone: pip install './study[cluster]'). "
            "Without --scheduler the study runs on this machine's cores."
        ) from None
    from joblib import parallel_config

    connect: Callable[[str], AbstractContextManager[object]] = Client
    try:
        client = connect(scheduler)
    except (OSError, ValueError, TypeError, ImportError) as error:
        said = " ".join(str(error).split())
        raise SearchError(
            f"The Dask scheduler {shown_name(scheduler)} cannot be reached: {shortened(said)}. Give the address that "
            "it shows when it starts, e.g. tcp://10.0.0.1:8786."
        ) from error
    with client, parallel_config(backend="dask"):
        yield
