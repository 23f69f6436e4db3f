"""A history on disk: a folder of Parquet files, partitioned by testbed and date as in Hive.

Its files are ``testbed=<name>/date=<day>/<digest>.parquet``. Any number of jobs may add files at once: every file
appears as a whole, and its name follows from its content. So adding a run twice changes nothing. Spark, Trino, Athena
and DuckDB read the folder.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from lossratio.errors import ReportError, storing
from lossratio.files import how_to_install, shell_word
from lossratio.report import NOTHING_MEASURED
from lossratio.report.history.entries import COLUMNS, Entry
from lossratio.report.history.result_readings import CLOCKS, OF_NODES
from lossratio.report.history.unmeasured import NothingMeasured
from lossratio.results import write_whole
from lossratio.values import and_more, results_counted

_NEEDED = ("testbed", "test", "quantity", "started", "outcome", "unit", "lower_is_better")
"""Columns that each entry has."""
_DIGEST_LENGTH = 32
_PROBLEMS_SHOWN = 5
_CLOCKS_DIFFER = timedelta(hours=1)
"""A result may be dated this much later than the clock of the machine that reads it."""
TOP_NODES = 8
"""How many graph nodes of a device have readings: those with the most clocks per packet."""


@dataclass(frozen=True)
class StoredEntries:
    """Entries read from a history."""

    table: Any
    """A `pyarrow.Table` of the entries, each once, in the order of testbed, test, quantity and time. Rates are per
    interface, and tests have their present names."""
    readings: Any
    """The same for readings: latency at each load, and numbers of the devices' telemetry; None: nobody asked."""
    problems: tuple[str, ...]
    """Messages about files that cannot be read, and about results that are dated in the future."""
    unmeasured: tuple[NothingMeasured, ...] = ()
    """Tests that measured nothing the last time, by testbed and test. They are not in the table."""


@dataclass(frozen=True)
class Query:
    """What to read from a history."""

    testbed: str | None = None
    """Name of the testbed; None: all."""
    fresh: int | None = None
    """Readings that one of this many newest results has are read, too; None: no readings."""
    same: Mapping[str, str] = field(default_factory=dict)
    """The present names of tests, by their earlier names."""
    added: Sequence[Entry] = ()
    """The entries of a result that follow the history; later entries do not count. Empty: there is none."""


_ALL = Query()


@dataclass(frozen=True)
class History:
    """A history of results."""

    path: Path
    """The folder, which is created when entries are added."""

    def add(self, entries: Iterable[Entry]) -> list[Path]:
        """Adds entries; the entries of one testbed and day go into one file.

        Raises:
            StorageError: If the files cannot be written to the disk.
            ReportError: If an entry has other columns than a history, or lacks one that it needs, or if pyarrow is not
                installed.
        """
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            _check(entry)
            day = entry["started"].date().isoformat()
            groups.setdefault((entry["testbed"], day), []).append(entry)
        return [self._write(testbed, day, group) for (testbed, day), group in groups.items()]

    def testbeds(self) -> list[str]:
        """The names of the testbeds that have results in the history."""
        folders = self.path.glob("testbed=*")
        return sorted(unquote(folder.name.removeprefix("testbed=")) for folder in folders)

    def read(self, query: Query = _ALL) -> StoredEntries:
        """Reads the history.

        Columns that were added after a file was written are null there. Results that are dated in the future
        are left out, because they would stay the newest results, whatever is measured later.

        Raises:
            ReportError: If the folder is not a history, or DuckDB or pyarrow is not installed.
        """
        paths = sorted(self.path.glob("testbed=*/date=*/*.parquet"))
        if not paths:
            raise ReportError(
                f"{self.path} is not a history: it has no files like testbed=lab/date=2026-08-01/….parquet, and "
                "there is no archive there yet. Correct the path, or create a history with a first run: lossratio "
                f"trend {shell_word(self.path)} --add DIR"
            )

        try:
            return _read(paths, query)
        except required("duckdb").Error:
            paths, problems = _readable(paths)
            _check_any(paths, problems)
            stored = _read(paths, query)
            return replace(stored, problems=(*problems, *stored.problems))

    def _write(self, testbed: str, day: str, entries: Sequence[Entry]) -> Path:
        names = _schema().names
        rows = [{name: entry.get(name) for name in names} for entry in entries]
        text = json.dumps(rows, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        path = self.path / _folder(testbed, day) / f"{digest}.parquet"
        arrow, parquet = required("pyarrow"), required("pyarrow.parquet")
        data = arrow.BufferOutputStream()
        parquet.write_table(
            arrow.Table.from_pylist(rows, schema=_schema()), data, compression="zstd"
        )
        way_out = (
            "Free some space, and add the run again. Entries that are already in the history are not "
            "counted twice."
        )

        with storing(f"add to the history {self.path}", way_out):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data.getvalue().to_pybytes())

        return path


def _check(entry: Entry) -> None:
    """Checks the names of an entry's columns: a misspelt one would be a value that is not known."""
    others = [name for name in entry if name not in COLUMNS]
    if others:
        raise ReportError(
            f"An entry of a history has no column {others[0]!r}. Its columns are: {', '.join(COLUMNS)}."
        )
    for name in _NEEDED:
        if entry.get(name) is None:
            raise ReportError(f"An entry of a history needs a value in the column {name!r}.")


def _check_any(readable: Sequence[Path], problems: Sequence[str]) -> None:
    """Checks that a history has a file that can be read.

    Raises:
        ReportError: If it has none; the message has the first problems.
    """
    if not readable:
        shown = "".join(f"\n  {problem}" for problem in problems[:_PROBLEMS_SHOWN])
        others = and_more(max(0, len(problems) - _PROBLEMS_SHOWN))
        raise ReportError(
            f"No file of the history can be read:{shown}{others}\nRestore these "
            "files from a copy, or move them away and add the runs again: lossratio trend HISTORY --add DIR"
        )


def _readable(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files that can be read to the end, and messages about the others.

    It reads each file separately, which takes too long for a history without damaged files.
    """
    readable: list[Path] = []
    problems: list[str] = []
    for file in paths:
        try:
            _read([file], Query(fresh=1))
        except required("duckdb").Error:
            problems.append(f"{file} is left out: {_damage(file)}")
        else:
            readable.append(file)
    return readable, problems


def _damage(file: Path) -> str:
    """Why a file cannot be read, in words."""
    if not file.exists():
        return "it is a symbolic link to a file that does not exist"
    if not os.access(file, os.R_OK):
        return "you need permission to read it"
    return "it is damaged, or a newer version of lossratio wrote it"


def _read(paths: Sequence[Path], query: Query) -> StoredEntries:
    """The entries in some files."""
    arrow = required("pyarrow")
    schema = _schema()
    columns = ", ".join(name for name in schema.names if name != "readings")
    text = files("lossratio.report.history").joinpath("entries.sql").read_text(encoding="utf-8")
    empty, found, unusable, from_future, entries, unmeasured, chosen, readings = text.format(
        columns=columns
    ).split(";\n")

    latest = datetime.now(timezone.utc) + _CLOCKS_DIFFER
    if query.added:
        latest = query.added[0]["started"] - timedelta.resolution
    added = arrow.Table.from_pylist(
        list(query.added), schema=schema.append(arrow.field("testbed", arrow.string()))
    )
    names = [arrow.array(list(part), arrow.string()) for part in (query.same, query.same.values())]
    nothing = {"nothing_measured": NOTHING_MEASURED}
    asked = {"testbed": query.testbed, "readings": query.fresh is not None}
    followed = {
        "fresh": query.fresh,
        "clocks": CLOCKS,
        "of_nodes": sorted(OF_NODES),
        "top_nodes": TOP_NODES,
    }

    with required("duckdb").connect() as connection:
        # DuckDB gives times in this machine's zone, but all our texts state times in UTC.
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET VARIABLE latest = TIMESTAMPTZ '{latest.isoformat()}'")
        connection.register("added", added)
        connection.register("same", arrow.table(names, ["earlier", "now"]))
        connection.execute(empty)
        connection.execute(found, {"files": [str(path) for path in paths], **asked})
        problems = [
            f"{file} is left out: it has a row without a name, a time or a unit, or with an impossible number."
            for (file,) in connection.execute(unusable).fetchall()
        ]
        later = connection.execute(from_future).fetchall()
        problems += [_future_in_words(*row) for row in later]
        connection.execute(entries)
        failed = connection.execute(unmeasured, nothing).fetchall()
        table = connection.sql(chosen, params=nothing).to_arrow_table()
        followed_table = None
        if query.fresh is not None:
            followed_table = connection.sql(readings, params=nothing | followed).to_arrow_table()

    tests = tuple(NothingMeasured(*row) for row in failed)
    return StoredEntries(table, followed_table, tuple(problems), tests)


def _future_in_words(testbed: str, count: int, first: str) -> str:
    """A message about the results of a testbed that are dated in the future.

    Args:
        testbed: The testbed.
        count: The number of its results.
        first: The first of their times, e.g. ``2026-08-01 14:00``.
    """
    verb = "is" if count == 1 else "are"
    # An archive's history is read from a mirror, so the folder is named as it is in the archive.
    folder = _folder(testbed, first[:10])
    return (
        f"{results_counted(count)} of testbed {testbed} {verb} left out because of a date in the future (from {first} "
        f"UTC on). The files are in the history's folder {folder}. If the clock of this machine is right, correct the "
        "clock of the machine that measured, remove the files from the history, and measure again."
    )


def _folder(testbed: str, day: str) -> Path:
    """The folder of a testbed's entries of one day, in a history."""
    return Path(f"testbed={quote(testbed, safe=' ')}", f"date={day}")


def required(module: str) -> Any:
    """Imports a module of the extra ``history``, which is large and not always installed.

    Raises:
        ReportError: If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ReportError(
            f"A history needs the Python package {module.partition('.')[0]!r}. "
            f"Install it with {how_to_install('history')}."
        ) from error


def _schema() -> Any:
    """The columns of files, as Arrow describes them; a folder has the name of the testbed."""
    types = {name: _type(kind) for name, (kind, _) in COLUMNS.items() if name != "testbed"}
    return required("pyarrow").schema(types)


def _type(kind: Any) -> Any:
    """The type of a column: a Python type, a list with one of its items, or a mapping of a record's fields."""
    arrow = required("pyarrow")
    if isinstance(kind, list):
        return arrow.list_(_type(kind[0]))
    if isinstance(kind, dict):
        return arrow.struct({name: _type(each) for name, each in kind.items()})
    types = {
        str: arrow.string(),
        float: arrow.float64(),
        bool: arrow.bool_(),
        datetime: arrow.timestamp("us", tz="UTC"),
    }
    return types[kind]
