"""Studies that run: cells, their files, interruption, Dask."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys

import pytest
from study_examples import small_study

from lossratio_study.algorithms import ALGORITHMS, OURS
from lossratio_study.families import FAMILIES
from lossratio_study.search import GOAL_SETS
from lossratio_study.study import OVERHEADS, SEEDS_PER_CELL, Cell, Store, code_digest, run_study

pytestmark = pytest.mark.whole

WORKERS = 2
LIMIT = 300
"""Seconds in which a cluster begins or ends, however busy the machine is."""


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Looks when a test runs, as each process collects these tests, and loading takes a second."""
    for package in ("joblib", "pandas", "pyarrow"):
        pytest.importorskip(package)


def numbers(frame):
    """All columns that a second run must repeat, in an order of their own."""
    kept = frame.drop(columns=["controller_seconds"])
    return kept.sort_values(["algorithm", "goal_set", "family", "seed", "repeat", "goal_number"]).reset_index(drop=True)


def test_a_study_is_everything_with_everything_that_applies():
    study = small_study(
        families=tuple(FAMILIES),
        goal_sets=tuple(GOAL_SETS),
        algorithms=tuple(ALGORITHMS),
        overheads=tuple(OVERHEADS.values()),
        seeds=tuple(range(2 * SEEDS_PER_CELL + 1)),
    )
    cells = list(study.cells())
    assert len(set(cells)) == len(cells)
    algorithms = {"G1": 4, "G2": 3, "G3": 3, "G4": 4, "G5": 4, "G6": 3}
    overheads = dict.fromkeys(GOAL_SETS, 5) | {"G3": 3}
    for name in GOAL_SETS:
        count = sum(cell.goal_set == name for cell in cells)
        assert count == len(FAMILIES) * algorithms[name] * overheads[name] * 3
    assert {seed for cell in cells for seed in cell.seeds} == set(study.seeds)


@pytest.mark.whole
def test_a_finished_cell_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path)
    (cell,) = small_study(families=("jitter",), goal_sets=("G1",)).cells()
    rows = cell.rows()
    assert not store.has(cell)
    store.save(cell, rows)
    assert store.has(cell)
    loaded = store.load([cell])
    assert list(loaded.elapsed) == [row.elapsed for row in rows]
    assert list(loaded.goal) == ["NDR", "PDR"] * 2
    assert list(tmp_path.rglob("*.part")) == []


def test_half_a_file_is_no_finished_cell(tmp_path, monkeypatch):
    from pyarrow import parquet

    store = Store(tmp_path)
    (cell,) = small_study(families=("jitter",)).cells()

    def killed(table, path):
        path.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet, "write_table", killed)
    with pytest.raises(KeyboardInterrupt):
        store.save(cell, cell.rows())
    assert not store.has(cell)


def test_finished_cells_of_a_killed_study_are_not_run_again(tmp_path):
    store = Store(tmp_path)
    cells = list(small_study().cells())

    def kill(done):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(cells, store, jobs=1, on_progress=kill)
    (finished,) = [cell for cell in cells if store.has(cell)]
    before = store.path(finished).stat()
    progress = []
    run_study(cells, store, jobs=1, on_progress=progress.append)
    assert progress == [1, 2]
    after = store.path(finished).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert set(store.load(cells).family) == {"sharp knee", "jitter"}


def test_files_are_distinguished_by_everything_that_changes_their_numbers(tmp_path):
    store = Store(tmp_path)
    studies = [
        small_study(families=("jitter",)),
        small_study(families=("jitter",), repeats=2),
        small_study(families=("jitter",), seeds=(0,)),
        small_study(families=("jitter",), overheads=(OVERHEADS["0.5"],)),
        small_study(families=("jitter",), overheads=(OVERHEADS["0.5-counted"],)),
        small_study(families=("jitter",), goal_sets=("G1",)),
        small_study(family_set="held-out", families=("cliff",)),
    ]
    paths = {store.path(cell) for study in studies for cell in study.cells()}
    assert len(paths) == len(studies)


def test_a_digest_shows_that_code_has_changed(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text("1")
    (tmp_path / "two.py").write_text("2")
    paths = (tmp_path / "room", tmp_path / "two.py")
    before = code_digest(paths)
    code_digest.cache_clear()
    assert code_digest(paths) == before
    (tmp_path / "room" / "one.py").write_text("3")
    code_digest.cache_clear()
    assert code_digest(paths) != before


def test_searches_repeat_exactly(tmp_path):
    (cell,) = small_study(families=("jitter",), repeats=2).cells()
    one, two = ([(row.lower, row.elapsed, row.certificate) for row in cell.rows()] for _ in range(2))
    assert str(one) == str(two)


@pytest.fixture
def scheduler(tmp_path, monkeypatch):
    """The address of a scheduler of Dask with two workers, each a program of its own as the how-to starts them."""
    from distributed import Client

    with contextlib.ExitStack() as running:
        file = tmp_path / "scheduler.json"

        def start(*command):
            program = subprocess.Popen([sys.executable, "-m", "dask", *command, "--scheduler-file", str(file)])
            running.callback(program.wait, LIMIT)
            running.callback(program.terminate)

        # Workers of a checkout that is not installed find its packages, too.
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        for _ in range(WORKERS):
            start("worker", "--nthreads", "1", "--no-dashboard", "--no-nanny")
        with Client(scheduler_file=str(file), timeout=LIMIT) as client:
            client.wait_for_workers(WORKERS, timeout=LIMIT)
            address = client.scheduler.address
        yield address


def test_a_dask_cluster_of_two_workers_gives_the_same_numbers(tmp_path, scheduler, monkeypatch):
    cells = list(small_study(algorithms=(OURS,)).cells())
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    run_study(cells, here, jobs=1)

    def refuse(cell):
        raise AssertionError(f"{cell} is searched here, and not on a worker")

    monkeypatch.setattr(Cell, "rows", refuse)
    run_study(cells, there, jobs=-1, scheduler=scheduler)
    assert numbers(here.load(cells)).equals(numbers(there.load(cells)))


def test_failed_searches_do_not_stop_a_study(tmp_path):
    store = Store(tmp_path)
    cells = list(small_study(families=("sharp knee",)).cells())
    run_study(cells, store, jobs=1)
    assert not store.load(cells).elapsed.map(math.isnan).any()
