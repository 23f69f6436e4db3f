"""The entries that a history keeps of a run: its rows, each with everything that shows and explains a change.

An entry has the columns of a file by their names, which ``docs/how-to/report-a-run.md`` describes.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, TypeAlias

from lossratio import results
from lossratio.report import NOTHING_MEASURED, Run
from lossratio.report.history.result_readings import readings_of
from lossratio.report.history.unmeasured import nothing_measured
from lossratio.results import Finding
from lossratio.values import FRAMES_PER_SECOND
from lossratio.version import __version__

MEASURED = results.Outcome.MEASURED.value
"""Outcome of a result that was measured as requested."""
IRREGULAR = results.Outcome.IRREGULAR.value
"""Outcome of a result with a goal that was not found as requested."""
FAILED = results.Outcome.FAILED.value
"""Outcome of a result that could not be measured."""
AS_BEFORE = "as before"
"""Outcome of a night without a search, because the SUT was as before. Such an entry has no value, and needs none."""

Entry: TypeAlias = Mapping[str, Any]
"""The columns of one quantity of one test of one run, by their names; a column that is left out is not known."""


def entries_of(run: Run) -> Iterator[Entry]:
    """The entries of a run, in the order of its tests; tests that were cut off have none.

    Tests that measured nothing come last, with `NOTHING_MEASURED` as their quantity.
    """
    before = 0
    for row in run.rows:
        entry: dict[str, Any] = {"run_started": _began(run), "readings": []}
        for name, (_, read) in COLUMNS.items():
            if read is not None:
                entry[name] = read(row)
        if row.number != before:
            # The first entry of a result has its readings.
            entry["readings"] = [vars(reading) for reading in readings_of(row.result)]
        before = row.number
        yield entry

    for test in nothing_measured(run):
        # Record: what is known of such a test.
        yield {
            "testbed": test.testbed,
            "test": test.test,
            "quantity": NOTHING_MEASURED,
            "started": test.time,
            "seconds": 0.0,
            "outcome": FAILED,
            "reason": test.reason,
            "doubts": (),
            "lossratio_version": __version__,
            "unit": FRAMES_PER_SECOND.name,
            "lower_is_better": FRAMES_PER_SECOND.lower_is_better,
            "run": run.path.resolve().name,
            "run_started": _began(run),
            "tags": (),
            "latency": [],
            "readings": [],
        }


def _began(run: Run) -> datetime:
    """When the first test of a run began, or else when the first test that measured nothing failed."""
    began = [result.started for result in run.results]
    return min(began or [test.time for test in nothing_measured(run)])


def _outcome(row: Finding) -> str:
    if row.is_as_before:
        return AS_BEFORE
    return row.outcome.value


def _factor(row: Finding) -> float | None:
    """The aggregate rate divided by the rate per interface; None: the value is not a rate."""
    if row.unit == FRAMES_PER_SECOND:
        return row.result.conditions.load.aggregate_factor
    return None


def _latency(row: Finding) -> list[dict[str, Any]]:
    points = results.view_of(row.result).latencies(row.result)
    return [vars(point) for point in points]


def _most(row: Finding) -> float | None:
    """The value if the missing frames that the SUT did not lose had passed, an aggregate; None: there are no such."""
    ends = results.ends_of(row)
    if ends is None or not ends.least < ends.most < math.inf:
        return None
    return ends.most * (_factor(row) or 1.0)


_MICROSECONDS = dict.fromkeys(("p50_us", "p90_us", "p99_us", "most_us"), float)
# Table: the columns of a history's files, each with its type, and the function that reads it from a row (None: all rows
# of the run or of the result have it together). Rates are aggregates in files.
COLUMNS: Mapping[str, tuple[Any, Callable[[Finding], Any] | None]] = {
    "testbed": (str, attrgetter("result.conditions.testbed.name")),
    "test": (str, attrgetter("result.test.full_name")),
    "quantity": (str, attrgetter("quantity")),
    "started": (datetime, attrgetter("result.started")),
    "seconds": (float, attrgetter("result.took_s")),
    "value": (float, results.aggregate_field("value")),
    "lower_bound": (float, results.aggregate_field("lower_bound")),
    "upper_bound": (float, results.aggregate_field("upper_bound")),
    "outcome": (str, _outcome),
    "reason": (str, attrgetter("reason")),
    "doubts": ([str], attrgetter("kinds_of_doubts")),
    "lossratio_version": (str, attrgetter("result.conditions.controller.lossratio_version")),
    "measured_as": (str, results.digest_of),
    "unit": (str, attrgetter("unit.name")),
    "lower_is_better": (bool, attrgetter("unit.lower_is_better")),
    "generator": (str, attrgetter("result.conditions.generator_kind")),
    "run": (str, attrgetter("run_name")),
    "run_started": (datetime, None),
    "tags": ([str], attrgetter("result.test.tags")),
    "frame_size_bytes": (float, attrgetter("result.conditions.traffic.average_frame_size_bytes")),
    "build": (str, attrgetter("result.conditions.build")),
    "latency": ([{"load": str, "direction": str, **_MICROSECONDS}], _latency),
    "unsent_share": (float, results.unsent_share_of),
    "readings": ([{"quantity": str, "place": str, "value": float, "unit": str}], None),
    "resolution": (float, attrgetter("resolution")),
    "most": (float, _most),
    "long_name": (str, attrgetter("result.test.long_name")),
    "has_device": (bool, attrgetter("result.conditions.has_device")),
    "device": (str, attrgetter("result.conditions.measured_on")),
    "aggregate_factor": (float, _factor),
    "stream": (str, attrgetter("stream")),
}
"""The columns of a history, by their names."""
