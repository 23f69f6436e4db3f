import multiprocessing
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from at_least_one import at_least_one
from history_examples import START, entry

from lossratio.errors import ReportError, StorageError
from lossratio.report.history import store
from lossratio.report.history.series import series_of
from lossratio.report.history.store import History, Query
from lossratio.results import LatencyPoint


def rows(history, **query):
    table = history.read(Query(**query)).table
    return list(
        zip(*(table.column(name).to_pylist() for name in ("testbed", "test", "quantity", "value")), strict=True)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"valeu": 1e6}, "no column 'valeu'. Its columns are: testbed, test,"), ({"unit": None}, "the column 'unit'")],
)
def test_an_entry_with_a_misspelt_column_or_without_a_needed_one_is_refused(tmp_path, changes, message):
    with pytest.raises(ReportError, match=message):
        History(tmp_path).add([{**entry(0, 1e6), **changes}])
    assert not list(tmp_path.iterdir())


@pytest.mark.whole
def test_added_entries_are_read_back_in_order(tmp_path):
    history = History(tmp_path / "history")
    history.add([entry(1, 2e6), entry(0, 1e6), entry(0, 3e6, quantity="MRR"), entry(0, 4e6, testbed="lab-2")])
    assert rows(history) == [
        ("lab-1", "Suite.64B-ndrpdr", "MRR", 3e6),
        ("lab-1", "Suite.64B-ndrpdr", "NDR", 1e6),
        ("lab-1", "Suite.64B-ndrpdr", "NDR", 2e6),
        ("lab-2", "Suite.64B-ndrpdr", "NDR", 4e6),
    ]
    assert rows(history, testbed="lab-2") == rows(history)[3:]


@pytest.mark.whole
def test_results_dated_in_the_future_are_said_and_do_not_stay_the_newest(tmp_path):
    history = History(tmp_path / "history")
    in_future = {**entry(0, 1e6), "started": datetime.now(timezone.utc) + timedelta(days=30)}
    history.add([entry(0, 2e6), entry(1, 3e6), in_future, {**in_future, "quantity": "PDR"}])
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [2e6, 3e6]
    (problem,) = stored.problems
    day = in_future["started"].date().isoformat()
    assert problem.startswith(f"1 result of testbed lab-1 is left out because of a date in the future (from {day} ")
    assert f"in the history's folder testbed=lab-1/date={day}. If the clock of this machine is right, " in problem
    assert str(tmp_path) not in problem
    # The clocks of two machines may differ a little.
    soon = {**entry(0, 4e6), "started": datetime.now(timezone.utc) + timedelta(minutes=10)}
    history.add([soon])
    assert history.read().table.column("value").to_pylist()[-1] == 4e6


@pytest.mark.whole
def test_times_are_in_utc_wherever_the_history_is_read(tmp_path):
    History(tmp_path).add([entry(0, 1e6)])
    script = (
        "import sys; from pathlib import Path; from lossratio.report.history import History\n"
        "print(History(Path(sys.argv[1])).read().table.column('started').to_pylist()[0].isoformat())"
    )
    # DuckDB asks for the machine's zone once in a process.
    command, elsewhere = [sys.executable, "-c", script, str(tmp_path)], {**os.environ, "TZ": "America/Los_Angeles"}
    read = subprocess.run(command, env=elsewhere, capture_output=True, text=True, check=True)
    assert read.stdout == f"{START.isoformat()}\n"


def test_the_folder_is_partitioned_by_testbed_and_date_for_any_reader(tmp_path):
    (path,) = History(tmp_path).add([entry(0, 1e6, doubts=["drift"])])
    assert path.relative_to(tmp_path).parts[:2] == ("testbed=lab-1", "date=2026-01-01")
    query = "SELECT testbed, date, doubts FROM read_parquet($files)"
    rows_read = duckdb.sql(query, params={"files": f"{tmp_path}/**/*.parquet"}).fetchall()
    assert [(row[0], str(row[1]), row[2]) for row in rows_read] == [("lab-1", "2026-01-01", ["drift"])]
    assert pq.read_table(tmp_path).column("testbed").to_pylist() == ["lab-1"]


@pytest.mark.parametrize("testbed", ["7", "lab/../1 äü", "a=b", "2026-01-01", "a b", "50%25"])
def test_any_name_of_a_testbed_comes_back_as_it_was(tmp_path, testbed):
    history = History(tmp_path)
    history.add([entry(0, 1e6, testbed=testbed)])
    assert rows(history) == [(testbed, "Suite.64B-ndrpdr", "NDR", 1e6)]


@pytest.mark.whole
def test_a_file_of_a_newer_version_is_named_and_the_rest_is_read(tmp_path):
    history = History(tmp_path)
    history.add([entry(0, 1e6)])
    newer = tmp_path / "testbed=lab-1" / "date=2026-01-02" / "newer.parquet"
    newer.parent.mkdir()
    (row,) = history.read().table.drop(["testbed"]).to_pylist()
    pq.write_table(pa.Table.from_pylist([{**row, "value": "1.0 Mfps", "colour": "red"}]), newer)
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [1e6]
    (problem,) = stored.problems
    assert "newer.parquet is left out: it is damaged, or a newer version of lossratio wrote it" in problem


@pytest.mark.whole
def test_an_entry_of_an_earlier_version_gives_way_to_the_same_one_with_more_columns(tmp_path):
    history = History(tmp_path)
    (path,) = history.add([{**entry(0, 1e6), "run": "nightly", "run_started": START}])
    with_run = pq.ParquetFile(path).read()
    pq.write_table(with_run.drop(["run", "run_started", "tags", "latency", "build"]), path.with_name("0.parquet"))
    pq.write_table(with_run.drop(["run", "run_started", "tags", "latency", "build"]), path.with_name("z.parquet"))
    assert history.read().table.column("run").to_pylist() == ["nightly"]
    path.unlink()
    assert history.read().table.column("run").to_pylist() == [None]


@pytest.mark.whole
def test_a_copy_of_a_run_counts_once_and_always_the_same_one(tmp_path):
    for names in (("a", "b"), ("b", "a")):
        history = History(tmp_path / names[0])
        for name in at_least_one(names):
            history.add([{**entry(0, 1e6), "run": name, "run_started": START}])
        assert history.read().table.column("run").to_pylist() == ["a"]


def test_adding_a_run_twice_changes_nothing(tmp_path):
    history = History(tmp_path)
    assert history.add([entry(0, 1e6), entry(1, 1e6)]) == history.add([entry(0, 1e6), entry(1, 1e6)])
    assert len(rows(history)) == 2


def test_results_without_a_value_are_kept(tmp_path):
    history = History(tmp_path)
    history.add([entry(0, None, outcome="failed")])
    table = history.read().table
    assert table.column("value").to_pylist() == [None]
    assert table.column("reason").to_pylist() == ["a reason"]


def add_days(path, first):
    for day in range(first, first + 20):
        History(path).add([entry(day, 1e6 + day), entry(day, 2e6 + day, quantity="MRR")])


@pytest.mark.whole
def test_two_jobs_add_at_once_and_nothing_is_lost(tmp_path):
    context = multiprocessing.get_context("fork")
    # Days 10 to 19 are added by both: the same files under the same names.
    jobs = [context.Process(target=add_days, args=(tmp_path, first)) for first in (0, 10)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(rows(History(tmp_path))) == 60
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.whole
def test_damaged_files_are_named_and_the_rest_is_read(tmp_path):
    history = History(tmp_path)
    first, second = history.add([entry(0, 1e6), entry(1, 2e6)])
    os.truncate(first, first.stat().st_size // 2)
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [2e6]
    assert [first.name in problem and "damaged" in problem for problem in stored.problems] == [True]
    second.write_bytes(b"")
    with pytest.raises(ReportError, match=r"No file of the history can be read:(?s:.*)Restore these files") as caught:
        history.read()
    assert all(f"{file} is left out: it is damaged" in str(caught.value) for file in (first, second))


def test_a_link_to_a_file_that_is_missing_is_named_with_the_reason(tmp_path):
    history = History(tmp_path)
    (file,) = history.add([entry(0, 1e6)])
    link = file.with_name("link.parquet")
    link.symlink_to("missing")
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [1e6]
    assert stored.problems == (f"{link} is left out: it is a symbolic link to a file that does not exist",)


@pytest.mark.whole
def test_a_file_with_damaged_pages_is_named_and_the_rest_is_read(tmp_path):
    history = History(tmp_path)
    path, _ = history.add([entry(0, 1e6), entry(1, 2e6)])
    data = bytearray(path.read_bytes())
    data[8:60] = b"\xff" * 52
    path.write_bytes(bytes(data))
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [2e6]
    assert [path.name in problem for problem in stored.problems] == [True]


def test_a_folder_that_is_no_history_is_refused(tmp_path):
    with pytest.raises(ReportError, match="is not a history"):
        History(tmp_path).read()


def test_a_history_that_cannot_be_written_is_an_error_that_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"Cannot add to the history .*file"):
        History(tmp_path / "file").add([entry(0, 1e6)])


def test_a_missing_package_is_named_with_what_to_do():
    with pytest.raises(ReportError, match="needs the Python package 'no_such_thing'") as error:
        store.required("no_such_thing.parquet")
    assert "pip install 'robotframework-lossratio[history]' (in a clone: pip install '.[history]')" in str(error.value)


@pytest.mark.whole
def test_a_run_that_is_added_before_and_after_it_is_resumed_counts_once(tmp_path):
    history = History(tmp_path)
    history.add([entry(0, 1e6)])
    history.add([entry(0, 1e6, doubts=["drift"]), entry(0, 3e6, quantity="MRR")])
    assert [row[2:] for row in rows(history)] == [("MRR", 3e6), ("NDR", 1e6)]
    assert history.read().table.column("doubts").to_pylist() == [[], ["drift"]]


def test_a_column_that_later_versions_added_is_null_in_files_of_this_one(tmp_path):
    history = History(tmp_path)
    (old,) = history.add([entry(0, 1e6)])
    pq.write_table(pq.read_table(old, partitioning=None).drop_columns(["most", "stream"]), old)
    history.add([{**entry(1, 1e6), "stream": "voice"}])
    assert history.read().table.column("stream").to_pylist() == [None, "voice"]


def test_rates_of_a_series_are_per_interface_and_those_of_files_aggregates(tmp_path):
    history = History(tmp_path)
    history.add([{**entry(day, 2e6), "aggregate_factor": 2.0, "most": 4e6} for day in range(3)])
    history.add([{**entry(3, 5.0, quantity="recovery"), "unit": "s", "aggregate_factor": None}])
    stored = pq.read_table(tmp_path).sort_by("started")
    assert stored.column("value").to_pylist() == [2e6] * 3 + [5.0]
    stored = history.read().table
    assert stored.column("value").to_pylist() == [1e6] * 3 + [5.0]
    rates, seconds = series_of(stored, 9)
    assert ([*rates.values], rates.bounds_of(0)) == ([1e6] * 3, pytest.approx((1e6, 1.005e6)))
    assert rates.ends_of(2).most == 2e6
    assert [*seconds.values] == [5.0]


@pytest.mark.whole
def test_a_factor_so_small_that_a_rate_per_interface_would_be_infinite_is_an_impossible_number(tmp_path):
    history = History(tmp_path)
    history.add([entry(0, 1e6)])
    history.add([{**entry(1, 1e6), "aggregate_factor": 1e-305}])
    stored = history.read()
    assert stored.table.column("value").to_pylist() == [1e6]
    (problem,) = stored.problems
    assert problem.endswith("or with an impossible number.")


@pytest.mark.whole
@pytest.mark.parametrize("above", ["testbed=west", "value=1", "test=x/outcome=failed", "date=2020-01-01", "a=b"])
def test_the_names_of_folders_above_a_history_are_no_columns(tmp_path, above):
    inside, outside = History(tmp_path / above), History(tmp_path / "history")
    for history in (inside, outside):
        history.add([entry(0, 1e6), entry(1, 2e6, testbed="50%=a/b")])
    assert inside.read().table.equals(outside.read().table)
    assert rows(inside, testbed="50%=a/b") == [("50%=a/b", "Suite.64B-ndrpdr", "NDR", 2e6)]


@pytest.mark.parametrize(
    "unusable",
    [
        {"test": None},
        {"quantity": None},
        {"started": None},
        {"outcome": None},
        {"unit": None},
        {"started": -(2**62)},
        {"value": float("inf")},
        {"value": -1.0},
        {"upper_bound": float("-inf")},
        {"seconds": float("inf")},
        {"frame_size_bytes": float("inf")},
        {"doubts": [None]},
        {"tags": [None]},
        {"latency": [None]},
        {"readings": [{"quantity": "q", "place": "p", "unit": "u", "value": float("inf")}]},
    ],
)
def test_a_file_with_a_row_that_no_trend_can_take_is_named_and_left_out(tmp_path, unusable):
    history = History(tmp_path)
    few_frames = LatencyPoint("50 % of PDR", "west>east", None, None, None, 30.0)
    history.add([{**entry(0, 1e6), "latency": [vars(few_frames)]}])
    (bad,) = history.add([entry(1, 2e6), entry(1, 3e6, quantity="MRR")])
    table = pq.read_table(bad, partitioning=None)
    for name, value in unusable.items():
        position, column = table.schema.get_field_index(name), table.column(name)
        changed = pa.array([value, *column.to_pylist()[1:]], column.type)
        table = table.set_column(position, table.schema.field(name), changed)
    pq.write_table(table, bad)
    stored = history.read(Query(fresh=5))
    assert stored.table.column("value").to_pylist() == [1e6]
    assert [bad.name in problem for problem in stored.problems] == [True]
