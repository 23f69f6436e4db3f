"""A history on disk: a folder of Parquet files, partitioned by testbed and date as in Hive.

Its files are ``testbed=<name>/date=<day>/<digest>.parquet``. Any number of jobs may add files at once: every file
appears as a whole, and its name follows from its content. So adding a run twice changes nothing. Spark, Trino, Athena
and DuckDB read the folder.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from lossratio.errors import ReportError, storing
from lossratio.history.annotations import ANNOTATIONS_NAME, load_same_names
from lossratio.history.devices import in_order, with_lines
from lossratio.history.entries import COLUMNS, Entry
from lossratio.history.names import Names, with_names_now
from lossratio.history.unmeasured import NothingMeasured
from lossratio.input_file import shell_word
from lossratio.plugins import how_to_install
from lossratio.report import NOTHING_MEASURED
from lossratio.results import write_whole
from lossratio.units import and_more, results_counted

_PARTITIONS = ("testbed", "date")
_NEEDED = ("testbed", "test", "quantity", "started", "outcome", "unit", "lower_is_better")
"""Columns that each entry has."""
_DIGEST_LENGTH = 32
_PROBLEMS_SHOWN = 5
_CLOCKS_DIFFER = timedelta(hours=1)
"""A result may be dated this much later than the clock of the machine that reads it."""
_OLDEST_COLUMNS = (
    *("test", "quantity", "started", "value", "outcome", "doubts"),
    *("unit", "aggregate_factor", "measured_as", "device"),
)


@dataclass(frozen=True)
class StoredEntries:
    """Entries read from a history."""

    table: Any
    """A `pyarrow.Table` of the entries, each once, in the order of testbed, test, quantity and time."""
    problems: tuple[str, ...]
    """Files that cannot be read, and why; and how many results are dated in the future."""
    unmeasured: tuple[NothingMeasured, ...] = ()
    """Tests that measured nothing, by testbed, test and time. They are not in the table."""
    names: Names = field(default_factory=Names)
    """The present names of tests, by earlier names."""


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

    def read(self, testbed: str | None = None, *, readings: bool = False) -> StoredEntries:
        """Reads the history of a testbed (None: of all). Readings, most of the data, are only read on request.

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

        dated, problems = _with_days(paths)
        whole, more = _with_schema(dated)
        problems += more
        _check_any(whole, problems)
        duckdb = required("duckdb")
        try:
            table, unusable = _query(whole, testbed, readings=readings)
        except duckdb.Error:
            # So far, only the end of each file was read, because reading whole files each time would take too long.
            whole, more = _without_damage(whole)
            problems += more
            _check_any(whole, problems)
            table, unusable = _query(whole, testbed, readings=readings)

        problems += [
            f"{file} is left out: it has a row without a name or a time, or with an impossible number."
            for file in unusable
        ]
        table, from_future = self._without_future(table)
        problems += from_future
        measured = required("pyarrow.compute").not_equal(table.column("quantity"), NOTHING_MEASURED)
        others = table.filter(required("pyarrow.compute").invert(measured))
        annotations = self.path / ANNOTATIONS_NAME
        same = load_same_names(annotations) if annotations.exists() else ()
        table, names = with_names_now(table.filter(measured), same)

        return StoredEntries(with_lines(table), tuple(problems), tuple(_unmeasured(others)), names)

    def _without_future(self, table: Any) -> tuple[Any, list[str]]:
        """The entries without those that are dated in the future, and a message for each testbed that has some."""
        compute = required("pyarrow.compute")
        latest = datetime.now(timezone.utc) + _CLOCKS_DIFFER
        is_later = compute.greater(table.column("started"), latest)
        later = table.filter(is_later)
        results: dict[str, set[tuple[str, datetime]]] = {}
        for row in later.select(["testbed", "test", "started"]).to_pylist():
            results.setdefault(row["testbed"], set()).add((row["test"], row["started"]))

        problems = []
        for testbed, dated in results.items():
            first = min(started for _, started in dated)
            verb = "is" if len(dated) == 1 else "are"
            folder = self._folder(testbed, first.date().isoformat()).relative_to(self.path)
            # An archive's history is read from a mirror, so the folder is named as it is in the archive.
            problems.append(
                f"{results_counted(len(dated))} of testbed {testbed} {verb} left out, dated in the future: from "
                f"{first:%Y-%m-%d %H:%M} UTC on, in the history's folder {folder}. If the clock of this machine is "
                "right, correct that of the machine that measured, remove the files from the history, and measure "
                "again."
            )
        return table.filter(compute.invert(is_later)), problems

    def _folder(self, testbed: str, day: str) -> Path:
        """The folder of a testbed's entries of one day."""
        return self.path / f"testbed={quote(testbed, safe=' ')}" / f"date={day}"

    def _write(self, testbed: str, day: str, entries: Sequence[Entry]) -> Path:
        names = _schema().names
        rows = [{name: entry.get(name) for name in names} for entry in entries]
        text = json.dumps(rows, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        path = self._folder(testbed, day) / f"{digest}.parquet"
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


def _unmeasured(table: Any) -> Iterator[NothingMeasured]:
    for row in table.select(["testbed", "test", "started", "reason"]).to_pylist():
        yield NothingMeasured(row["testbed"], row["test"], row["started"], row["reason"] or "")


def continued(table: Any, entries: Sequence[Entry]) -> Any:
    """The entries from before a result began, and the result's own, each once even if the history already has it."""
    earlier = table.filter(
        required("pyarrow.compute").less(table.column("started"), entries[0]["started"])
    )
    arrow = required("pyarrow")
    newest = arrow.Table.from_pylist(list(entries), schema=table.schema)
    return in_order(arrow.concat_tables([earlier, newest]))


def _with_days(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files whose folder is named after a day, and messages about the others."""
    dated, problems = [], []

    for file in paths:
        try:
            datetime.strptime(file.parent.name, "date=%Y-%m-%d")
        except ValueError:
            problems.append(
                f"{file} is left out: its folder is not named after a day, as in date=2026-08-01"
            )
        else:
            dated.append(file)

    return dated, problems


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


def _with_schema(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files whose ends are whole and whose columns are ours, and messages about the others."""
    parquet, arrow = required("pyarrow.parquet"), required("pyarrow")
    ours = _schema()
    readable, problems = [], []

    for file in paths:
        try:
            schema = parquet.read_schema(file)
        except (OSError, arrow.ArrowException):
            problems.append(_damaged(file))
            continue

        missing = [name for name in _OLDEST_COLUMNS if name not in schema.names]
        other = [
            field.name
            for field in ours
            if field.name in schema.names
            and schema.field(field.name).type.id not in (field.type.id, arrow.null().id)
        ]
        if missing or other:
            problems.append(
                f"{file} is left out: it was written by a newer version of lossratio, or is not part of a history. "
                f"Its columns {', '.join((*missing, *other))} are missing or of another type."
            )
        else:
            readable.append(file)

    return readable, problems


def _without_damage(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files that can be read to the end, and messages about the others."""
    duckdb = required("duckdb")
    readable, problems = [], []
    for file in paths:
        try:
            _query([file], None, readings=True)
        except duckdb.Error:
            problems.append(_damaged(file))
        else:
            readable.append(file)
    return readable, problems


def _damaged(file: Path) -> str:
    if not file.exists():
        return f"{file} is left out: it is a symbolic link to a file that does not exist"
    if not os.access(file, os.R_OK):
        return f"{file} is left out: you need permission to read it"
    return f"{file} is damaged, and left out: it is not a whole Parquet file of a history"


def _query(paths: Sequence[Path], testbed: str | None, *, readings: bool) -> tuple[Any, list[str]]:
    """The entries in some files, for one testbed if it is not None, and the files that are left out."""
    names = ", ".join(name for name in _schema().names if name != "readings")
    text = files("lossratio.history").joinpath("entries.sql").read_text(encoding="utf-8")
    found, chosen = text.format(names=names).split(";\n")

    with required("duckdb").connect() as connection:
        # DuckDB gives times in this machine's zone, but all our texts state times in UTC.
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("all_columns", _schema().empty_table())
        asked = {"files": [str(path) for path in paths], "testbed": testbed, "readings": readings}
        connection.execute(found, asked)
        unusable = connection.execute(
            "SELECT DISTINCT file FROM found WHERE NOT is_usable ORDER BY file"
        ).fetchall()
        return connection.sql(chosen).to_arrow_table(), [file for (file,) in unusable]


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
    types = {name: _type(kind) for name, (kind, _) in COLUMNS.items() if name not in _PARTITIONS}
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
