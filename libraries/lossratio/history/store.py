"""A history on disk: a folder of Parquet files, partitioned by testbed and date as Hive does.

Its files are ``testbed=<name>/date=<day>/<digest>.parquet``. Any number of jobs may add files at once: every file
appears as a whole, and its name follows from its content. So a run that is added twice changes nothing. Spark, Trino,
Athena and DuckDB read the folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lossratio.errors import ReportError, StorageError
from lossratio.history.entries import Entry
from lossratio.results import write_whole

_PARTITIONS = ("testbed", "date")
_DIGEST_LENGTH = 32
_OLDEST_COLUMNS = ("test", "quantity", "started", "value", "outcome", "doubts")
_READING = ("quantity", "place", "value", "unit")
_LATENCY = ("load", "direction", "p50_us", "p90_us", "p99_us", "most_us")


@dataclass(frozen=True)
class StoredEntries:
    """Entries read from a history.

    Attributes:
        table: A `pyarrow.Table` of the entries, each once, by testbed, test, quantity and time.
        problems: Files that cannot be read, and why.
    """

    table: Any
    problems: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """A history of results.

    Attributes:
        path: The folder; it is made when entries are added.
    """

    path: Path

    def add(self, entries: Iterable[Entry]) -> list[Path]:
        """Adds entries; those of one testbed and day go into one file.

        Returns:
            The files, also those that existed before.

        Raises:
            StorageError: If the disk does not take the files.
            ReportError: If pyarrow is not installed.
        """
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            groups.setdefault((entry.testbed, entry.started.date().isoformat()), []).append(entry)
        return [self._write(testbed, day, group) for (testbed, day), group in groups.items()]

    def read(self, testbed: str | None = None, since: str | None = None, *, readings: bool = False) -> StoredEntries:
        """Reads the history.

        Args:
            testbed: Name of the testbed to read; None: all.
            since: The first day to read, as ``YYYY-MM-DD``; None: all.
            readings: Whether readings are read, which are most of what a history holds; else they are null.

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
            table = _query(files, testbed, since, readings=readings)
        except duckdb.Error:
            # So far only the end of each file was read: to read whole files each time would take too long.
            files, more = _without_damage(files)
            problems += more
            table = _query(files, testbed, since, readings=readings)
        return StoredEntries(table, tuple(problems))

    def _write(self, testbed: str, day: str, entries: Sequence[Entry]) -> Path:
        rows = [{name: value for name, value in asdict(entry).items() if name not in _PARTITIONS} for entry in entries]
        text = json.dumps(rows, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        path = self.path / f"testbed={quote(testbed, safe=' ')}" / f"date={day}" / f"{digest}.parquet"
        data = _parquet(rows)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
        except OSError as error:
            raise StorageError(
                f"Cannot add to the history {self.path}: {error.strerror} ({path}). Make room, and add the run again; "
                "entries that are in the history already count once."
            ) from error
        return path


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


def _query(files: Sequence[Path], testbed: str | None, since: str | None, *, readings: bool) -> Any:
    """The entries in some files, of one testbed and since a day if these are not None.

    A run that was added before it was resumed, and again afterwards, has entries in two files: each counts once.
    """
    if not files:
        raise ReportError("No file of the history can be read: all of them are damaged.")
    with required("duckdb").connect() as connection:
        connection.register("all_columns", _schema().empty_table())
        query = connection.sql(
            """
            SELECT * REPLACE (CASE WHEN $readings THEN readings END AS readings) FROM (
                SELECT * FROM read_parquet(
                    $files, union_by_name = true, hive_partitioning = true,
                    hive_types = {"testbed": VARCHAR, 'date': DATE}
                )
                UNION ALL BY NAME SELECT * FROM all_columns
            )
            WHERE ($testbed IS NULL OR testbed = $testbed) AND ($since IS NULL OR date >= $since::DATE)
            QUALIFY row_number() OVER (
                PARTITION BY testbed, test, quantity, started
                ORDER BY len(doubts) DESC, CASE WHEN $readings THEN len(readings) END DESC NULLS LAST,
                    run_started NULLS LAST, run
            ) = 1
            ORDER BY testbed, test, quantity, started
            """,
            params={
                "files": [str(file) for file in files],
                "testbed": testbed,
                "since": since,
                "readings": readings,
            },
        )
        return query.to_arrow_table()


def required(module: str) -> Any:
    """Imports a module of the extra ``history``, which is large and not always installed.

    Raises:
        ReportError: If the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ReportError(
            f"A history needs the Python package {module.partition('.')[0]!r}. "
            "Install it in a checkout of lossratio with: pip install '.[history]'"
        ) from error


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    arrow, parquet = required("pyarrow"), required("pyarrow.parquet")
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist(list(rows), schema=_schema()), sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def _schema() -> Any:
    """The columns of a file."""
    arrow = required("pyarrow")
    text, number = arrow.string(), arrow.float64()
    texts, numbers = dict.fromkeys(_LATENCY[:2], text), dict.fromkeys(_LATENCY[2:], number)
    return arrow.schema(
        [
            ("test", arrow.string()),
            ("quantity", arrow.string()),
            ("started", arrow.timestamp("us", tz="UTC")),
            ("seconds", arrow.float64()),
            ("value", arrow.float64()),
            ("lower_bound", arrow.float64()),
            ("upper_bound", arrow.float64()),
            ("outcome", arrow.string()),
            ("reason", arrow.string()),
            ("doubts", arrow.list_(arrow.string())),
            ("lossratio_version", arrow.string()),
            ("measured_as", arrow.string()),
            ("unit", arrow.string()),
            ("lower_is_better", arrow.bool_()),
            ("generator", arrow.string()),
            ("run", arrow.string()),
            ("run_started", arrow.timestamp("us", tz="UTC")),
            ("tags", arrow.list_(arrow.string())),
            ("frame_size_bytes", arrow.float64()),
            ("build", arrow.string()),
            ("latency", arrow.list_(arrow.struct([*texts.items(), *numbers.items()]))),
            ("readings", arrow.list_(arrow.struct([(name, number if name == "value" else text) for name in _READING]))),
        ]
    )
