"""Results on disk: one Parquet file for each finished cell, so that a killed study goes on where it was.

A file's name has a digest of all code that the cell's numbers depend on. After a change of one algorithm, its cells are
run again, and those of the others are not.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import lossratio
from lossratio.arena.algorithms import OURS, PEER
from lossratio.arena.nights import HINT_ALGORITHMS
from lossratio.arena.plan import Cell
from lossratio.arena.search import Row

PACKAGE = Path(lossratio.__file__).parent

EVERYBODYS_CODE = (
    "trial.py",
    "counters.py",
    "simulation",
    "baselines/certificate.py",
    "baselines/checker.py",
    *(
        f"study/{name}.py"
        for name in ("algorithms", "families", "goal_sets", "held_out", "outcome", "search", "series", "shapes", "suts")
    ),
)


@dataclass(frozen=True)
class Store:
    """A directory of results."""

    directory: Path

    def path(self, cell: Cell) -> Path:
        """Where a cell's rows are, or will be."""
        seeds = f"seeds-{'-'.join(str(seed) for seed in cell.seeds)}-repeats-{cell.repeats}"
        name = f"{seeds}-{code_digest(PACKAGE, _code(cell.algorithm))}.parquet"
        folders = (cell.family_set, cell.goal_set, f"overhead-{cell.overhead}", cell.algorithm, cell.family)
        return self.directory.joinpath(*(folder.replace(" ", "-") for folder in folders), name)

    def has(self, cell: Cell) -> bool:
        """Whether a cell is finished."""
        return self.path(cell).exists()

    def save(self, cell: Cell, rows: Iterable[Row]) -> None:
        """Keeps a finished cell; half a file is never seen."""
        from pyarrow import Table, parquet

        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        all_rows = [asdict(row) for row in rows]
        columns = {field.name: [row[field.name] for row in all_rows] for field in fields(Row)}
        parquet.write_table(Table.from_pydict(columns), unfinished)
        unfinished.replace(path)

    def load(self, cells: Iterable[Cell]) -> Any:
        """The rows of the cells, as a data frame with `Row`'s columns."""
        from pandas import concat, read_parquet

        return concat([read_parquet(self.path(cell)) for cell in cells], ignore_index=True)


def _code(algorithm: str) -> tuple[str, ...]:
    if algorithm == PEER:
        return *EVERYBODYS_CODE, "study/peer.py"
    if algorithm in HINT_ALGORITHMS:
        return *EVERYBODYS_CODE, "mlrsearch", "study/nights.py", "study/scaled.py"
    return *EVERYBODYS_CODE, "mlrsearch" if algorithm == OURS else "baselines"


@cache
def code_digest(root: Path, names: tuple[str, ...]) -> str:
    """A short digest of Python files, and of all those in directories; the names are relative to the root."""
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
