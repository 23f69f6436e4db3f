"""Formats runs as text for programs and for people: JSON, CSV and Markdown.

The overview of a run has one row for each goal of each test, in words.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lossratio.records import Rate
from lossratio.report.run import Run
from lossratio.results import (
    Finding,
    Outcome,
    TestResult,
    Traffic,
    findings_of,
    format_frames_per_second,
    integrity_of,
    number_of,
    view_of,
)
from lossratio.units import Unit, format_bit_rate, format_ratio

NOTHING = "–"
"""The text for a missing value."""

REPORT_FORMAT = "lossratio-report/1"
"""Format of the JSON report."""

_INTEGRITY = ("arrived", "examined", "duplicated", "corrupted", "wrong_length", "misdelivered", "reordered")
"""Attributes of `lossratio.results.frame_integrity.FrameIntegrity` with a column of their own."""

_VALUE = "conditional throughput (or other value)"

_COLUMNS: dict[str, str] = {
    "test": "test",
    "frame size": "frame_size",
    "goal": "goal",
    "result": "state",
    "lower bound": "lower_bound",
    "upper bound": "upper_bound",
    _VALUE: "value",
    "aggregate": "aggregate",
    "bandwidth": "bandwidth",
    "of theoretical maximum": "share",
    "trials": "trials",
    "time": "duration",
}


@dataclass(frozen=True)
class OverviewRow:
    """One row: the values of one goal of one test, or of its MRR, as texts; `NOTHING` for a missing value.

    Attributes:
        place: Position of the row's result among the results, from 1.
        test: Name of the test.
        frame_size: Sizes of the frames, in bytes.
        goal: Name of the goal, or ``MRR``.
        outcome: Whether the quantity was measured, is irregular, or failed.
        state: The outcome in words, with the reason.
        lower_bound: Relevant lower bound, per interface.
        upper_bound: Relevant upper bound, per interface.
        value: Conditional throughput (of MRR: the mean with its standard deviation), per interface; or the value in
            another unit.
        aggregate: The rate as an aggregate, with the factor between both.
        bandwidth: The rate as aggregate bandwidth on the wire.
        share: The rate as a share of the link limit (what the links can carry).
        trials: Number of trials of the test.
        duration: Time of all trials together, on the measurer's clock.
    """

    place: int
    test: str
    frame_size: str
    goal: str
    outcome: Outcome
    state: str
    lower_bound: str
    upper_bound: str
    value: str
    aggregate: str
    bandwidth: str
    share: str
    trials: str
    duration: str


def overview(results: Iterable[TestResult]) -> list[OverviewRow]:
    """Makes the rows of all results, in the order of the results."""
    return [_row(finding) for finding in findings_of(results)]


def describe_frame_size(traffic: Traffic) -> str:
    """Formats the sizes of the frames, e.g. ``64 B``, or ``64, 570, 1518 B (353.83 B on average)``."""
    sizes = ", ".join(str(size.size_bytes) for size in traffic.frame_sizes)
    average = f" ({traffic.average_frame_size_bytes:.2f} B on average)" if len(traffic.frame_sizes) > 1 else ""
    return f"{sizes} B{average}"


def _row(finding: Finding) -> OverviewRow:
    result, deviation = finding.result, finding.deviation
    rate = finding.value if isinstance(finding.value, Rate) else None
    factor = result.conditions.load.aggregate_factor
    share = finding.theoretical_share
    return OverviewRow(
        place=finding.place,
        test=result.test.name,
        frame_size=describe_frame_size(result.conditions.traffic),
        goal=finding.quantity,
        outcome=finding.outcome,
        state=_state(finding),
        lower_bound=_in_words(finding.lower_bound, finding.unit),
        upper_bound=_in_words(finding.upper_bound, finding.unit),
        value=_in_words(finding.value, finding.unit)
        + ("" if deviation is None else f" ± {_in_words(deviation, finding.unit)}"),
        aggregate=NOTHING if rate is None else f"{format_frames_per_second(rate.aggregate_fps)} (x {factor:g})",
        bandwidth=NOTHING if rate is None else format_bit_rate(rate.aggregate_l1_bps),
        share=NOTHING if share is None else format_ratio(share),
        trials=str(len(result.trials)),
        duration=f"{sum(trial.elapsed_s for trial in result.trials):.1f} s",
    )


def _state(finding: Finding) -> str:
    if finding.outcome is Outcome.FAILED:
        return "failed: no result"
    if finding.outcome is Outcome.IRREGULAR:
        return "irregular" if finding.reason is None else f"irregular: {finding.reason}"
    return view_of(finding.result).in_order


def _in_words(value: Rate | float | None, unit: Unit) -> str:
    """A value with its unit; of a rate the value per interface."""
    if isinstance(value, Rate):
        return format_frames_per_second(value.per_interface_fps)
    return NOTHING if value is None else unit.format(value)


def json_report(runs: Sequence[Run]) -> str:
    """Makes a JSON report: whole results with their doubts, tests that were cut off, and problems."""
    data = {
        "format": REPORT_FORMAT,
        "runs": [
            {
                "run": run.path.resolve().name,
                "results": [
                    {"result": result.model_dump(mode="json"), "doubts": [asdict(doubt) for doubt in doubts]}
                    for result, doubts in zip(run.results, run.doubts, strict=True)
                ],
                "cut_off": [asdict(test) for test in run.cut_off],
                "problems": list(run.problems),
            }
            for run in runs
        ],
    }
    return json.dumps(data, indent=1) + "\n"


def csv_report(runs: Sequence[Run]) -> str:
    """Makes a CSV table with a row for each finding. The header has the units; a missing value is an empty field."""
    file = io.StringIO()
    rows = [row for run in runs for row in _csv_rows(run)]
    writer = csv.DictWriter(file, fieldnames=_csv_fields(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def markdown_report(runs: Sequence[Run]) -> str:
    """Makes the overview of each run as a Markdown table, with doubts, tests that were cut off, and problems."""
    return "\n".join(line for run in runs for line in _markdown_lines(run)) + "\n"


def _csv_rows(run: Run) -> Iterator[dict[str, Any]]:
    for finding in findings_of(run.results):
        yield _csv_row(run, finding)
    for test in run.cut_off:
        yield {"run": run.path.resolve().name, "test": test.name, "outcome": "cut off", "trials": test.trials}


def _csv_row(run: Run, finding: Finding) -> dict[str, Any]:
    result = finding.result
    return {
        "run": run.path.resolve().name,
        "suite": result.test.suite,
        "test": result.test.name,
        "testbed": result.conditions.testbed.name,
        "started": result.started.isoformat(),
        "kind": result.kind,
        "goal": finding.quantity,
        "outcome": finding.outcome.value,
        "reason": finding.reason,
        "average_frame_size_bytes": result.conditions.traffic.average_frame_size_bytes,
        **_rates(finding),
        "aggregate_factor": result.conditions.load.aggregate_factor,
        "theoretical_maximum_ratio": finding.theoretical_share,
        **_integrity_row(result),
        "trials": len(result.trials),
        "trials_elapsed_s": sum(trial.elapsed_s for trial in result.trials),
        "doubts": "; ".join(doubt.kind.value for doubt in run.doubts[finding.place - 1]),
        "unit": finding.unit.name if finding.has_value else None,
        **{name: number_of(value) for name, value in _values(finding).items()},
    }


def _values(finding: Finding) -> dict[str, Rate | float | None]:
    """The values of a finding, by their columns."""
    return {
        "lower_bound": finding.lower_bound,
        "upper_bound": finding.upper_bound,
        "value": finding.value,
        "stdev": finding.deviation,
    }


def _rates(finding: Finding) -> dict[str, float]:
    """The columns of a finding in frames per second; empty if it has another unit."""
    rates = {name: value for name, value in _values(finding).items() if isinstance(value, Rate)}
    columns = {f"{name}_per_interface_fps": rate.per_interface_fps for name, rate in rates.items()}
    if "value" in rates:
        columns["value_aggregate_fps"] = rates["value"].aggregate_fps
        columns["value_aggregate_l1_bps"] = rates["value"].aggregate_l1_bps
    return columns


def _integrity_row(result: TestResult) -> dict[str, int]:
    """The columns of frame integrity; empty if no frame was examined."""
    integrity = integrity_of(result)
    return {} if integrity is None else {f"{name}_frames": getattr(integrity, name) for name in _INTEGRITY}


def _csv_fields() -> list[str]:
    return [
        *("run", "suite", "test", "testbed", "started", "kind", "goal", "outcome", "reason"),
        *("average_frame_size_bytes", "lower_bound_per_interface_fps", "upper_bound_per_interface_fps"),
        *("value_per_interface_fps", "stdev_per_interface_fps", "aggregate_factor", "value_aggregate_fps"),
        *("value_aggregate_l1_bps", "theoretical_maximum_ratio"),
        *(f"{name}_frames" for name in _INTEGRITY),
        *("trials", "trials_elapsed_s", "doubts"),
        *("unit", "lower_bound", "upper_bound", "value", "stdev"),
    ]


def _markdown_lines(run: Run) -> Iterator[str]:
    yield f"# {markdown_cell(run.path.resolve().name)}"
    yield ""
    for test in run.cut_off:
        last = "" if test.last is None else f"; the last one: {test.last}"
        yield f"- **cut off**: {markdown_cell(test.name)} after {test.trials} trials{last}"
        yield from (f"  - {bounds}" for bounds in test.bounds)
    yield from (f"- **not readable**: {markdown_cell(problem)}" for problem in run.problems)
    for result, doubts in zip(run.results, run.doubts, strict=True):
        yield from (f"- **doubt** about {markdown_cell(result.test.name)}: {doubt}" for doubt in doubts)
    yield ""
    rows = ([str(_value(row, field)) for field in _COLUMNS.values()] for row in overview(run.results))
    head = _value_head(run.results)
    yield from markdown_table([head if name == _VALUE else name for name in _COLUMNS], rows)
    yield ""
    simulated = sorted(
        {result.conditions.testbed.in_words for result in run.results if result.conditions.testbed.is_simulated}
    )
    yield (
        "Loads and rates are per transmitting interface; the aggregate is that times its factor. Bandwidth is "
        "that of the aggregate on the wire (layer 1)."
        + methods_in_words(run.results)
        + "".join(f" Testbed {name}." for name in simulated)
    )
    yield ""


def value_names(results: Sequence[TestResult]) -> str:
    """What the value of each kind of result is."""
    names = sorted({name for result in results if (name := view_of(result).value_name) is not None})
    return f"the {' or the '.join(names)}" if names else "the value of the kind of measurement"


def _value_head(results: Sequence[TestResult]) -> str:
    """The head of the column of values: their name, if all are critical loads or the like."""
    names = {view_of(result).value_name for result in results}
    name = names.pop() if len(names) == 1 else None
    return name if name is not None and name not in _VALUE else _VALUE


def methods_in_words(results: Sequence[TestResult]) -> str:
    """A sentence that names the methods of the results, with a space before it; empty if there are none."""
    methods = sorted({method for result in results if (method := view_of(result).method) is not None})
    return f" Method: {', '.join(methods)}." if methods else ""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Formats a table as lines of Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(markdown_cell(cell) for cell in row) + " |"


def _value(row: OverviewRow, field: str) -> object:
    return getattr(row, field)


def markdown_cell(text: str) -> str:
    """Text as a cell of a Markdown table, in one line."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").split())
