"""Runs a study's cells: on the cores of this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from lossratio.arena.plan import Cell
from lossratio.arena.search import Row
from lossratio.arena.store import Store
from lossratio.errors import SearchError


def run_study(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int,
    scheduler: str | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Runs what is not finished yet, and keeps each cell as soon as it is.

    Args:
        cells: What to run.
        store: Where results are, and go.
        jobs: Processes; -1: as many as there are cores.
        scheduler: Address of a Dask scheduler, whose workers then do the work; they need lossratio.
        on_progress: Told how many cells are finished: at first, and after each.

    Raises:
        SearchError: If a scheduler is given, and Dask is not installed.
    """
    from joblib import Parallel, delayed

    missing = [cell for cell in cells if not store.has(cell)]
    done = len(cells) - len(missing)
    on_progress(done)
    with _backend(scheduler):
        finished = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(
            delayed(_run)(cell) for cell in missing
        )
        for cell, rows in finished:
            store.save(cell, rows)
            done += 1
            on_progress(done)


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
            "--scheduler needs Dask, which is not installed: pip install 'robotframework-lossratio[cluster]'. "
            "Without --scheduler the study runs on this machine's cores."
        ) from None
    from joblib import parallel_config

    connect: Callable[[str], AbstractContextManager[object]] = Client
    with connect(scheduler), parallel_config(backend="dask"):
        yield
