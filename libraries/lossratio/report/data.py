"""Formats runs as text for programs: JSON and CSV."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from lossratio.report.failures import FAILED
from lossratio.report.formats import ReportFormat
from lossratio.report.overview import AVERAGE_SIZE, number_of_trials, of_rate, trials_s
from lossratio.report.run import Run
from lossratio.results import Finding, aggregate_field, integrity_of
from lossratio.values import printable

REPORT_FORMAT = "lossratio-report/2"
"""Format of the JSON report."""
_INTEGRITY = (
    "arrived",
    "examined",
    "duplicated",
    "corrupted",
    "wrong_length",
    "misdelivered",
    "reordered",
)
"""Attributes of `lossratio.results.frame_integrity.FrameIntegrity` that have their own column."""
_FORMULAS = ("=", "+", "-", "@", "|", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\uff5c")
"""A spreadsheet would evaluate a name that begins with one of these, of usual or full width."""


def json_report(runs: Sequence[Run]) -> str:
    """Makes a JSON report: whole results with their notes, tests without a result, and problems."""
    data = {"format": REPORT_FORMAT, "runs": [_as_json(run) for run in runs]}
    return json.dumps(data, indent=1) + "\n"


def _as_json(run: Run) -> dict[str, Any]:
    results = []
    for result, notes in zip(run.results, run.notes, strict=True):
        fields = {
            "result": result.model_dump(mode="json"),
            "notes": [note.model_dump(mode="json") for note in notes],
            "failure": run.failure_of(result),
        }
        results.append(fields)

    return {
        "run": run.path.resolve().name,
        "results": results,
        "without_result": [asdict(test) for test in run.without_result],
        "problems": list(run.problems),
    }


def csv_report(runs: Sequence[Run]) -> str:
    """Makes a CSV table with a row for each finding. The header has the units; a missing value is an empty field."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(_COLUMNS), lineterminator="\n")
    writer.writeheader()
    for run in runs:
        for cells in _csv_rows(run):
            writer.writerow({column: _plain(cell) for column, cell in cells.items()})
    return file.getvalue()


def _csv_rows(run: Run) -> Iterator[dict[str, object]]:
    """The cells of each finding, and of each test that has no result, by column."""
    name = run.path.resolve().name
    for row in run.rows:
        yield {column: value(row) for column, value in _COLUMNS.items()}
    for test in run.without_result:
        yield {
            "run": name,
            "suite": test.suite,
            "test": test.name,
            "outcome": test.state,
            "reason": test.reason,
            "trials": test.trials,
            "test_failure": test.reason if test.state == FAILED else None,
        }


def _plain(cell: object) -> object:
    """A cell without control characters, which may break a row; numbers are unchanged."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell.replace("\r", "\n"))
    if text.lstrip().startswith(_FORMULAS):
        return f"'{text}"
    return text


def _integrity(name: str) -> Callable[[Finding], object]:
    """A column of frame integrity; empty if no frame was examined."""

    def read(row: Finding) -> object:
        return getattr(integrity_of(row.result), name, None)

    return read


def _started(row: Finding) -> str:
    """When the test started, as a date and time of ISO 8601."""
    return row.result.started.isoformat()


def _doubts(row: Finding) -> str:
    return "; ".join(row.kinds_of_doubts)


def _unit(row: Finding) -> str | None:
    """Name of the value's unit; None: the finding has no value."""
    if row.has_value:
        return row.unit.name
    return None


# Table: the columns of CSV, which programs read: names with units, and plain numbers.
_COLUMNS: dict[str, Callable[[Finding], object]] = {
    "run": attrgetter("run_name"),
    "suite": attrgetter("result.test.suite"),
    "test": attrgetter("result.test.name"),
    "testbed": attrgetter("result.conditions.testbed.name"),
    "started": _started,
    "kind": attrgetter("result.kind"),
    "goal": attrgetter("quantity"),
    "stream": attrgetter("stream"),
    "outcome": attrgetter("outcome.value"),
    "reason": attrgetter("reason"),
    "average_frame_size_bytes": AVERAGE_SIZE,
    "lower_bound_per_interface_fps": of_rate("per_interface_fps", "lower_bound"),
    "upper_bound_per_interface_fps": of_rate("per_interface_fps", "upper_bound"),
    "value_per_interface_fps": of_rate("per_interface_fps"),
    "stdev_per_interface_fps": of_rate("per_interface_fps", "deviation"),
    "aggregate_factor": attrgetter("result.conditions.load.aggregate_factor"),
    "value_aggregate_fps": of_rate("aggregate_fps"),
    "value_aggregate_l1_bps": of_rate("aggregate_l1_bps"),
    "theoretical_maximum_ratio": attrgetter("theoretical_share"),
    **{f"{name}_frames": _integrity(name) for name in _INTEGRITY},
    "trials": number_of_trials,
    "trials_elapsed_s": trials_s,
    "doubts": _doubts,
    "unit": _unit,
    "lower_bound": aggregate_field("lower_bound"),
    "upper_bound": aggregate_field("upper_bound"),
    "value": aggregate_field("value"),
    "stdev": aggregate_field("deviation"),
    "test_failure": attrgetter("failure"),
    "queue_drops": attrgetter("result.queues_in_words"),
}

JSON = ReportFormat("lossratio.json", json_report)
"""All results, for programs."""
CSV = ReportFormat("lossratio.csv", csv_report)
"""A row for each goal of each test, for spreadsheets."""
