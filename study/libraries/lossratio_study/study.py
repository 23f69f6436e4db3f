"""A study: its cells, the store of their results, and their run on this machine or on a Dask cluster.

A cell is a set of searches that are run together. Each finished cell has a Parquet file of its own, so that a killed
study continues with the unfinished cells. The file's name has a digest of all code that the cell's numbers depend on:
after a change of one algorithm only the cells of that algorithm are run again.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from inspect import getfile
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import lossratio
from lossratio.arena.algorithms import ALGORITHMS, EARLY, OURS, PEER, SEQUENTIAL, Algorithm
from lossratio.arena.families import FAMILIES, HARD_FAMILIES, HELD_OUT_FAMILIES
from lossratio.arena.nights import HINT_ALGORITHMS
from lossratio.arena.search import GOAL_SETS, Row, search_rows
from lossratio.arena.suts import Family, Overhead, recorded_families
from lossratio.errors import SearchError

FAMILY_SETS = {"development": FAMILIES, "held-out": HELD_OUT_FAMILIES, "hard": HARD_FAMILIES}
"""Families to improve controllers on, families to judge controllers by, and families that no search is made for."""


def families_of(family_set: str) -> Mapping[str, Family]:
    """The families of a set by name; the families of a directory of records are its files, see `recorded_families`."""
    return FAMILY_SETS[family_set] if family_set in FAMILY_SETS else recorded_families(Path(family_set))


def algorithm_named(name: str) -> Algorithm:
    """An algorithm of lossratio's, or of a module, ``module:NAME``. SearchError names those that there are."""
    try:
        found = {**ALGORITHMS, **HINT_ALGORITHMS}[name] if ":" not in name else resolve_name(name)
    except (LookupError, ImportError, AttributeError, ValueError) as cause:
        there = ", ".join(map(repr, ALGORITHMS))
        raise SearchError(
            f"{name!r} is no algorithm ({cause}). There are {there}, and module:NAME for an object of a module "
            "of yours, which Python must find (PYTHONPATH)."
        ) from cause
    if not isinstance(found, Algorithm):
        raise SearchError(f"{name} is no lossratio.arena.Algorithm, but {type(found).__name__}.")
    return found


SEEDS_PER_CELL = 5
NO_OVERHEAD = Overhead(0.0)

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
        return [
            row
            for subject in [family.subject(seed) for seed in self.seeds]
            for repeat in range(self.repeats)
            for row in search_rows(
                GOAL_SETS[self.goal_set], subject, self.overhead, algorithm_named(self.algorithm), repeat
            )
        ]


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
    """Names of algorithms; each takes part where it applies."""
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
            for overhead in self.overheads:
                if overhead.counted and not goal_set.countable_overhead:
                    continue
                for algorithm in self.algorithms:
                    if not algorithm_named(algorithm).applies(goal_set.goals):
                        continue
                    for family in self.families:
                        for seeds in blocks:
                            yield Cell(self.family_set, family, goal_set.name, overhead, algorithm, seeds, self.repeats)


PACKAGE = Path(lossratio.__file__).parent

EVERYBODYS_CODE = (
    "trials/trial.py",
    "trials/counters.py",
    "simulation",
    "arena/checker.py",
    *(f"arena/{name}.py" for name in ("algorithms", "families", "outcome", "search", "suts")),
)
"""Code that the numbers of every algorithm depend on: files and folders of the package."""


@dataclass(frozen=True)
class Store:
    """A directory of results."""

    directory: Path

    def path(self, cell: Cell) -> Path:
        """The file of a cell's rows."""
        seeds = f"seeds-{'-'.join(str(seed) for seed in cell.seeds)}-repeats-{cell.repeats}"
        name = f"{seeds}-{code_digest(PACKAGE, _code(cell.algorithm))}.parquet"
        if cell.family_set not in FAMILY_SETS:
            name = f"{code_digest(Path(cell.family_set), (cell.family,))}-{name}"
        folders = (cell.family_set, cell.goal_set, f"overhead-{cell.overhead}", cell.algorithm, cell.family)
        return self.directory.joinpath(*(folder.replace(" ", "-").replace("/", "-") for folder in folders), name)

    def has(self, cell: Cell) -> bool:
        """Whether a cell is finished."""
        return self.path(cell).exists()

    def save(self, cell: Cell, rows: Iterable[Row]) -> None:
        """Stores a finished cell. The file appears only when it is complete."""
        from pyarrow import Table, parquet

        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        parquet.write_table(Table.from_pylist([asdict(row) for row in rows]), unfinished)
        unfinished.replace(path)

    def load(self, cells: Iterable[Cell]) -> Any:
        """The rows of the cells, as a data frame with `Row`'s columns."""
        from pandas import concat, read_parquet

        return concat([read_parquet(self.path(cell)) for cell in cells], ignore_index=True)


def _code(algorithm: str) -> tuple[str, ...]:
    if algorithm == PEER:
        return *EVERYBODYS_CODE, "arena/peer.py"
    if algorithm in HINT_ALGORITHMS:
        return *EVERYBODYS_CODE, "mlrsearch", "arena/nights.py"
    if algorithm in (OURS, EARLY, SEQUENTIAL):
        return *EVERYBODYS_CODE, "mlrsearch"
    file = Path(getfile(import_module(algorithm.partition(":")[0])))
    return *EVERYBODYS_CODE, "mlrsearch", str(file.parent if file.name == "__init__.py" else file)


@cache
def code_digest(root: Path, names: tuple[str, ...]) -> str:
    """A short digest of Python files, and of all Python files in directories. The names are relative to the root."""
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def run_study(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int,
    scheduler: str | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Runs the unfinished cells, and stores each one as soon as it is finished.

    So many `jobs` are processes, and -1 is one for each core; with the address of a Dask scheduler, its workers run the
    cells, and need lossratio (without Dask, SearchError is raised). `on_progress` gets the number of finished cells, at
    first and after each one.
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
            "--scheduler needs Dask, which is not installed: pip install '.[cluster]' (in a checkout). "
            "Without --scheduler the study runs on this machine's cores."
        ) from None
    from joblib import parallel_config

    connect: Callable[[str], AbstractContextManager[object]] = Client
    with connect(scheduler), parallel_config(backend="dask"):
        yield
