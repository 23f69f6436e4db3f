"""The rows that a history keeps of a result, and series of them in the order of time.

A result has a row for each quantity, with all that shows and explains a change. A series is one quantity of one test on
one testbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lossratio.history.readings import Reading, readings_of
from lossratio.report import Run
from lossratio.results import (
    Finding,
    LatencyPoint,
    build_of,
    digest_of,
    findings_of,
    generator_of,
    number_of,
    unsent_share_of,
    view_of,
)
from lossratio.units import FRAMES_PER_SECOND, Unit

MEASURED = "measured"
"""Outcome of a result that was measured as requested."""

FAILED = "failed"
"""Outcome of a result that could not be measured."""


@dataclass(frozen=True)
class Entry:
    """One quantity of one test of one run."""

    testbed: str
    """Name of the testbed. Equal testbeds differ, so each has trends of its own."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""
    started: datetime
    """When the test began; with a time zone."""
    seconds: float
    """How long the test took."""
    value: float | None
    """The value in the unit; a rate is an aggregate; None: there is none."""
    lower_bound: float | None
    """Relevant lower bound, likewise."""
    upper_bound: float | None
    """Relevant upper bound, likewise."""
    outcome: str
    """``measured``, ``irregular`` or ``failed``."""
    reason: str | None
    """Why it is irregular or failed; None: it was measured."""
    doubts: tuple[str, ...]
    """Kinds of doubts about the result."""
    lossratio_version: str
    """Version of lossratio that measured it."""
    measured_as: str | None = None
    """Distinguishes values of other traffic, paths or goals with the same name of test; None: not known, as the result
    was added by an earlier version."""
    unit: str = FRAMES_PER_SECOND.name
    """Name of the unit of the value and the bounds."""
    lower_is_better: bool = FRAMES_PER_SECOND.lower_is_better
    """Whether the lower of two values is the better one."""
    generator: str | None = None
    """Kind of the traffic generator; None: not known, as the result was added by an earlier version."""
    run: str | None = None
    """Name of the run's directory; None: not known, likewise."""
    run_started: datetime | None = None
    """When the first test of the run began, which distinguishes runs of one name; None: likewise."""
    tags: tuple[str, ...] = ()
    """The tags of the test."""
    frame_size_bytes: float | None = None
    """Average frame size; None: likewise."""
    build: str | None = None
    """Kind and version of the DUTs; None: not known."""
    latency: tuple[LatencyPoint, ...] = ()
    """Latencies of the test, if it has any."""
    unsent_share: float | None = None
    """Share of the value's frames that the generator left unsent; 1: the value is a least one; None: not known."""
    readings: tuple[Reading, ...] = ()
    """Readings of the test's telemetry, if it has any; the first entry of a result has them."""


def entries_of(run: Run) -> Iterator[Entry]:
    """The entries of a run, in the order of its tests; tests that were cut off have none."""
    before = 0
    for finding in findings_of(run.results):
        entry = _entry(run, finding, tuple(doubt.kind.value for doubt in run.doubts[finding.number - 1]))
        yield entry if finding.number == before else replace(entry, readings=readings_of(finding.result))
        before = finding.number


def _entry(run: Run, finding: Finding, doubts: tuple[str, ...]) -> Entry:
    result = finding.result
    return Entry(
        testbed=result.conditions.testbed.name,
        test=result.test.full_name,
        quantity=finding.quantity,
        started=result.started,
        seconds=(result.ended - result.started).total_seconds(),
        value=number_of(finding.value),
        lower_bound=number_of(finding.lower_bound),
        upper_bound=number_of(finding.upper_bound),
        outcome=finding.outcome.value,
        reason=finding.reason,
        doubts=doubts,
        lossratio_version=result.conditions.controller.lossratio_version,
        measured_as=digest_of(finding),
        unit=finding.unit.name,
        lower_is_better=finding.unit.lower_is_better,
        generator=generator_of(result),
        run=run.path.resolve().name,
        run_started=min(other.started for other in run.results),
        tags=result.test.tags,
        frame_size_bytes=result.conditions.traffic.average_frame_size_bytes,
        build=build_of(result),
        latency=tuple(view_of(result).latencies(result)),
        unsent_share=unsent_share_of(finding),
    )


@dataclass(frozen=True)
class SeriesKey:
    """The testbed, test and quantity of a series."""

    testbed: str
    """Name of the testbed."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""

    def __str__(self) -> str:
        return f"{self.test}, {self.quantity}, on {self.testbed}"

    def fits(self, patterns: Any) -> bool:
        """Whether its names match the patterns of the same names."""
        return all(fnmatchcase(name, getattr(patterns, field)) for field, name in vars(self).items())


_OF_EACH = ("times", "kinds", "reasons", "measured_as", "generators", "bounds", "runs", "unsent", "builds")
"""The fields of `Series` that have an item for each result, besides the values."""


@dataclass(frozen=True)
class Series:
    """One quantity of one test on one testbed."""

    key: SeriesKey
    """Its testbed, test and quantity."""
    times: tuple[datetime, ...]
    """When its results were measured."""
    values: npt.NDArray[np.float64]
    """Values in the unit, rates as aggregates; NaN: the result has no value."""
    kinds: tuple[frozenset[str], ...]
    """Of each result: ``irregular`` or ``failed``, and kinds of doubts."""
    reasons: tuple[str | None, ...]
    """Why a result is irregular or failed; None: it was measured."""
    measured_as: tuple[str | None, ...]
    """Distinguishes results of other traffic, paths, goals or units; None: not known."""
    unit: Unit = FRAMES_PER_SECOND
    """The unit of the newest result."""
    generators: tuple[str | None, ...] = ()
    """Kind of the traffic generator of each result; None: not known. Empty: not known of any."""
    bounds: tuple[tuple[float | None, float | None], ...] = ()
    """Lower and upper bound of each value, in the unit; None: there is none. Empty: not known of any."""
    runs: tuple[str | None, ...] = ()
    """Name of each result's run; None: not known. Empty: not known of any."""
    tags: tuple[str, ...] = ()
    """The tags of the newest result's test."""
    frame_size_bytes: float | None = None
    """Average frame size of the newest result; None: not known."""
    is_reading: bool = False
    """Whether its values are readings, whose changes are no alarms."""
    unsent: tuple[float, ...] = ()
    """Share of each value's frames that the generator left unsent; 1: the value is a least one. Empty: none."""
    builds: tuple[str | None, ...] = ()
    """Kind and version of the DUTs of each result; None: not known. Empty: not known of any."""

    def bounds_of(self, index: int) -> tuple[float | None, float | None]:
        """The bounds of a result by its index."""
        return self.bounds[index] if self.bounds else (None, None)

    def unsent_share(self, index: int) -> float:
        """The share of a value's frames that the generator left unsent, by the index of its result."""
        return self.unsent[index] if self.unsent else 0.0

    def chosen(self, indices: Sequence[int]) -> Series:
        """The series of some of the results, by their indices."""
        columns = {name: column for name in _OF_EACH if (column := getattr(self, name))}
        chosen: dict[str, Any] = {name: tuple(column[index] for index in indices) for name, column in columns.items()}
        return replace(self, values=self.values[list(indices)], **chosen)

    def like_newest(self) -> Series:
        """The results with the traffic, path, goal and generator of the newest one, as far as these are known."""
        alike = set(range(len(self.times)))
        for known in (self.measured_as, self.generators):
            newest = known[-1] if known else None
            if newest is not None:
                alike &= {index for index, meaning in enumerate(known) if meaning in (None, newest)}
        return self if len(alike) == len(self.times) else self.chosen(sorted(alike))


def series_of(table: Any, last: int) -> Iterator[Series]:
    """The series of a table of entries."""
    for key, rows in groups_of(table, ("testbed", "test", "quantity")):
        yield _series(SeriesKey(*key), rows.slice(max(0, len(rows) - last)))


def groups_of(table: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """The successive rows of a table that are equal in some columns: their values there, and the rows."""
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    starts = [index for index, key in enumerate(keys) if index == 0 or key != keys[index - 1]]
    for start, end in pairwise([*starts, len(keys)]):
        yield keys[start], table.slice(start, end - start)


def _series(key: SeriesKey, rows: Any) -> Series:
    # Earlier versions had one unit only, and did not write it.
    unit, lower_is_better = (rows.column(column)[-1].as_py() for column in ("unit", "lower_is_better"))
    outcomes, doubts = rows.column("outcome").to_pylist(), rows.column("doubts").to_pylist()
    values = rows.column("value").to_numpy(zero_copy_only=False).astype(np.float64)
    return Series(
        key,
        tuple(rows.column("started").to_pylist()),
        values,
        tuple(
            frozenset((*(kinds or ()), *(() if outcome == MEASURED else (outcome,))))
            for outcome, kinds in zip(outcomes, doubts, strict=True)
        ),
        tuple(rows.column("reason").to_pylist()),
        tuple(rows.column("measured_as").to_pylist()),
        FRAMES_PER_SECOND if unit is None else Unit(unit, bool(lower_is_better)),
        tuple(rows.column("generator").to_pylist()),
        tuple(zip(*(rows.column(name).to_pylist() for name in ("lower_bound", "upper_bound")), strict=True)),
        tuple(rows.column("run").to_pylist()),
        tuple(rows.column("tags")[-1].as_py() or ()),
        rows.column("frame_size_bytes")[-1].as_py(),
        unsent=tuple(share or 0.0 for share in rows.column("unsent_share").to_pylist()),
        builds=tuple(rows.column("build").to_pylist()),
    )
