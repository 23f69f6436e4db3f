"""A history on disk: a folder of Parquet files, partitioned by testbed and date as Hive does.

Its files are ``testbed=<name>/date=<day>/<digest>.parquet``. Any number of jobs may add files at once: every file
appears as a whole, and its name follows from its content. So a run that is added twice changes nothing. Spark, Trino,
Athena and DuckDB read the folder.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import quote

from lossratio.errors import ReportError, storing
from lossratio.history.entries import Entry
from lossratio.results import write_whole

_PARTITIONS = ("testbed", "date")
_DIGEST_LENGTH = 32
_OLDEST_COLUMNS = ("test", "quantity", "started", "value", "outcome", "doubts")
_TIMES = "BETWEEN '0002-01-01' AND '9998-12-31'"
_USABLE = f"""
    test IS NOT NULL AND quantity IS NOT NULL AND outcome IS NOT NULL AND coalesce(value, 0) >= 0
    AND started {_TIMES} AND coalesce(run_started, started) {_TIMES}
    AND list_bool_and([isfinite(coalesce(number, 0)) FOR number IN
        [value, lower_bound, upper_bound, seconds, frame_size_bytes, unsent_share]])
    AND len(coalesce(doubts, [])) = list_count(coalesce(doubts, []))
    AND len(coalesce(tags, [])) = list_count(coalesce(tags, []))
    AND coalesce(list_bool_and([point.load || point.direction IS NOT NULL
        AND isfinite(coalesce(point.p50_us, 0) + coalesce(point.p90_us, 0) + coalesce(point.p99_us, 0)
            + coalesce(point.most_us, 0)) FOR point IN latency]), true)
    AND coalesce(list_bool_and([reading.quantity || reading.place || reading.unit IS NOT NULL
        AND coalesce(isfinite(reading.value), false) FOR reading IN readings]), true)
"""
"""Rows that a trend can be computed from: a value or a list may be null, but nothing in a list."""


@dataclass(frozen=True)
class StoredEntries:
    """Entries read from a history."""

    table: Any
    """A `pyarrow.Table` of the entries, each once, by testbed, test, quantity and time."""
    problems: tuple[str, ...]
    """Files that cannot be read, and why."""


@dataclass(frozen=True)
class History:
    """A history of results."""

    path: Path
    """The folder; it is made when entries are added."""

    def add(self, entries: Iterable[Entry]) -> list[Path]:
        """Adds entries; the entries of one testbed and day go into one file.

        Raises:
            StorageError: If the disk does not take the files.
            ReportError: If pyarrow is not installed.
        """
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            groups.setdefault((entry.testbed, entry.started.date().isoformat()), []).append(entry)
        return [self._write(testbed, day, group) for (testbed, day), group in groups.items()]

    def read(self, testbed: str | None = None, since: str | None = None, *, readings: bool = False) -> StoredEntries:
        """Reads the history of a testbed (None: all) since a day; readings, which are most of it, only if asked for.

        Columns that a file of an earlier version lacks are null.

        Raises:
            ReportError: If the folder is no history, or DuckDB or pyarrow is not installed.
        """
        paths = sorted(self.path.glob("testbed=*/date=*/*.parquet"))
        if not paths:
            raise ReportError(
                f"{self.path} is no history: it has no files like testbed=lab/date=2026-08-01/….parquet. "
                f"A first run makes it one: lossratio trend {self.path} --add DIR"
            )
        files, problems = _with_schema(paths)
        duckdb = required("duckdb")
        try:
            table, unusable = _query(files, testbed, since, readings=readings)
        except duckdb.Error:
            # So far only the end of each file was read: to read whole files each time would take too long.
            files, more = _without_damage(files)
            problems += more
            table, unusable = _query(files, testbed, since, readings=readings)
        problems += [
            f"{file} is left out: it has a row without a name or a time, or with a number that no measurement gives."
            for file in unusable
        ]
        return StoredEntries(table, tuple(problems))

    def _write(self, testbed: str, day: str, entries: Sequence[Entry]) -> Path:
        rows = [{name: value for name, value in asdict(entry).items() if name not in _PARTITIONS} for entry in entries]
        text = json.dumps(rows, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        path = self.path / f"testbed={quote(testbed, safe=' ')}" / f"date={day}" / f"{digest}.parquet"
        arrow, parquet = required("pyarrow"), required("pyarrow.parquet")
        data = arrow.BufferOutputStream()
        parquet.write_table(arrow.Table.from_pylist(rows, schema=_schema()), data, compression="zstd")
        way_out = "Make room, and add the run again; entries that are in the history already count once."
        with storing(f"add to the history {self.path}", way_out):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data.getvalue().to_pybytes())
        return path


def continued(table: Any, entries: Sequence[Entry]) -> Any:
    """Entries of a history until a result began, and that result's: one that is in the history already counts once."""
    earlier = table.filter(required("pyarrow.compute").less(table.column("started"), entries[0].started))
    arrow = required("pyarrow")
    newest = arrow.Table.from_pylist([asdict(entry) for entry in entries], schema=table.schema)
    order = [(name, "ascending") for name in ("testbed", "test", "quantity", "started")]
    return arrow.concat_tables([earlier, newest]).sort_by(order)


def _with_schema(files: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files whose ends are whole and whose columns are ours, and messages about the others."""
    parquet, arrow = required("pyarrow.parquet"), required("pyarrow")
    ours = _schema()
    readable, problems = [], []
    for file in files:
        try:
            schema = parquet.read_schema(file)
        except (OSError, arrow.ArrowException) as error:
            problems.append(_damaged(file, error))
            continue
        missing = [name for name in _OLDEST_COLUMNS if name not in schema.names]
        other = [
            field.name
            for field in ours
            if field.name in schema.names and schema.field(field.name).type.id not in (field.type.id, arrow.null().id)
        ]
        if missing or other:
            problems.append(
                f"{file} is left out: it is of a newer version of lossratio, or no part of a history. Its columns "
                f"{', '.join((*missing, *other))} are missing or of another type."
            )
        else:
            readable.append(file)
    return readable, problems


def _without_damage(files: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files that can be read to the end, and messages about the others."""
    duckdb = required("duckdb")
    readable, problems = [], []
    for file in files:
        try:
            _query([file], None, None, readings=True)
        except duckdb.Error as error:
            problems.append(_damaged(file, error))
        else:
            readable.append(file)
    return readable, problems


def _damaged(file: Path, error: Exception) -> str:
    return f"{file} is damaged, and left out: {' '.join(str(error).split())}"


def _query(files: Sequence[Path], testbed: str | None, since: str | None, *, readings: bool) -> tuple[Any, list[str]]:
    """The entries in some files, of one testbed and since a day if these are not None; and files that are left out.

    Testbed and day are the names of a file's own folders. Folders above may have such names, too, and Hive's own
    reading would take them for columns. A run that was added before it was resumed, and again afterwards, has entries
    in two files: each counts once.
    """
    if not files:
        raise ReportError("No file of the history can be read: all of them are damaged.")
    names = ", ".join(name for name in _schema().names if name != "readings")
    with required("duckdb").connect() as connection:
        connection.register("all_columns", _schema().empty_table())
        connection.execute(
            f"""
            CREATE TEMP TABLE found AS SELECT *, coalesce({_USABLE}, false) AS is_usable FROM (
                SELECT {names}, CASE WHEN $readings THEN readings END AS readings, filename AS file,
                    url_decode(split_part(split_part(filename, '/', -3), '=', 2)) AS testbed,
                    split_part(split_part(filename, '/', -2), '=', 2)::DATE AS date
                FROM (
                    FROM read_parquet($files, union_by_name = true, hive_partitioning = false, filename = true)
                    UNION ALL BY NAME FROM all_columns
                )
            )
            WHERE ($testbed IS NULL OR testbed = $testbed) AND ($since IS NULL OR date >= $since::DATE)
            """,  # noqa: S608  (names and conditions are ours; values are parameters)
            {"files": [str(file) for file in files], "testbed": testbed, "since": since, "readings": readings},
        )
        unusable = connection.execute("SELECT DISTINCT file FROM found WHERE NOT is_usable ORDER BY file").fetchall()
        return connection.sql(
            """
            SELECT * EXCLUDE (file, is_usable) FROM found
            WHERE file NOT IN (SELECT file FROM found WHERE NOT is_usable)
            QUALIFY row_number() OVER (
                PARTITION BY testbed, test, quantity, started
                ORDER BY len(doubts) DESC, len(readings) DESC NULLS LAST, run_started NULLS LAST, run
            ) = 1
            ORDER BY testbed, test, quantity, started
            """
        ).to_arrow_table(), [file for (file,) in unusable]


def required(module: str) -> Any:
    """Imports a module of the extra ``history``, which is large and not always installed: a `ReportError` then."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ReportError(
            f"A history needs the Python package {module.partition('.')[0]!r}. "
            "Install it in a checkout of lossratio with: pip install '.[history]'"
        ) from error


def _schema() -> Any:
    columns = get_type_hints(Entry)
    return required("pyarrow").schema([(name, _type(columns[name])) for name in columns if name not in _PARTITIONS])


def _type(hint: Any) -> Any:
    arrow = required("pyarrow")
    # ``X | None`` is X here, as all columns can be null.
    kind, *others = get_args(hint) or (hint,)
    if others == [...]:
        return arrow.list_(_type(kind))
    if is_dataclass(kind):
        return arrow.struct([(name, _type(each)) for name, each in get_type_hints(kind).items()])
    types = {str: arrow.string(), float: arrow.float64(), bool: arrow.bool_()}
    return arrow.timestamp("us", tz="UTC") if kind is datetime else types[kind]
