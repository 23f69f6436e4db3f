"""Series of the entries of a history, in the order of time.

A series is one quantity of one test on one testbed, or a reading of latency or telemetry, whose trends are computed in
the same way but are no alarms.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from lossratio import results
from lossratio.history.devices import LINE, QUANTITY_COLUMNS
from lossratio.history.entries import AS_BEFORE, COLUMNS, MEASURED
from lossratio.units import Unit

_NOT_KNOWN = "device not known"
_KEPT_APART = ("testbed", "test", "quantity", "seconds", "lossratio_version", "latency", "readings")
_RATES = ("value", "lower_bound", "upper_bound", "most")
_FIELDS = [name for name in COLUMNS if name not in _KEPT_APART]


@dataclass(frozen=True)
class SeriesKey:
    """What a series belongs to: testbed, test, quantity and device, and how they were measured."""

    testbed: str
    """Name of the testbed."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""
    device: str = ""
    """The device with its options, in words; empty: not known."""
    measured_as: str = ""
    """Digest of traffic, path and goal; empty: not known."""

    def __str__(self) -> str:
        return self.called(self.quantity)

    def called(self, quantity: str) -> str:
        """The series in words, with another name of its quantity."""
        return f"{self.test}, {quantity}, on {self.testbed}"

    @property
    def names(self) -> dict[str, str]:
        """The names that users match with patterns; an unknown name fits any pattern."""
        named = {
            "testbed": self.testbed,
            "test": self.test,
            "quantity": self.quantity,
            "device": self.device,
        }
        return {field: name for field, name in named.items() if name}

    def fits(self, patterns: Any) -> bool:
        """Whether each of its names matches the pattern in the field of the same name."""
        return all(
            fnmatchcase(name, getattr(patterns, field)) for field, name in self.names.items()
        )


@dataclass(frozen=True)
class Series:
    """One quantity of one test on one testbed."""

    key: SeriesKey
    """Its testbed, test and quantity."""
    columns: Mapping[str, Sequence[Any]]
    """Columns of its entries (see `COLUMNS`) by their names, each with an item per result."""
    is_reading: bool = False
    """Whether its values are readings, whose changes raise no alarm."""
    mark: str = ""
    """What distinguishes it from other series of the same quantity; empty: there are no others."""
    as_before: tuple[datetime, ...] = ()
    """The times after the newest result at which the test found that the SUT was as before, and did not search."""

    @property
    def quantity(self) -> str:
        """Its quantity, with the series' mark if the test has several series of this quantity."""
        if self.mark:
            return f"{self.key.quantity} ({self.mark})"
        return self.key.quantity

    def __str__(self) -> str:
        return self.key.called(self.quantity)

    def __getitem__(self, field: str) -> Sequence[Any]:
        """A field of all results; None: not known."""
        if field in self.columns:
            return self.columns[field]
        return (None,) * len(self.times)

    @property
    def times(self) -> Sequence[datetime]:
        """When its results were measured."""
        return self.columns["started"]

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """Values in the unit, rates per interface; NaN: the result has no value."""
        return np.array(self["value"], dtype=np.float64)

    @cached_property
    def kinds(self) -> Sequence[frozenset[str]]:
        """For each result: ``irregular`` or ``failed``, and kinds of doubts."""
        return list(map(_kinds, self["outcome"], self["doubts"]))

    @cached_property
    def unit(self) -> Unit:
        """The unit of the newest result."""
        return Unit(self["unit"][-1], bool(self["lower_is_better"][-1]))

    @property
    def stream(self) -> str | None:
        """The stream whose loss alone counts for the newest result; None: the loss of all frames counts."""
        stream: str | None = self["stream"][-1]
        return stream

    @property
    def tags(self) -> Sequence[str]:
        """The tags of the newest result's test."""
        return self["tags"][-1] or ()

    @cached_property
    def has_no_device(self) -> bool:
        """Whether it belongs to the tester alone."""
        return self["has_device"][-1] is False

    @cached_property
    def aggregate_factor(self) -> float | None:
        """The aggregate rate over the rate per interface; None: the values are not rates."""
        factor = self["aggregate_factor"][-1]
        if factor is None:
            return None
        return float(factor)

    def bounds_of(self, index: int) -> tuple[float | None, float | None]:
        """The bounds of a result by its index."""
        return self["lower_bound"][index], self["upper_bound"][index]

    @cached_property
    def resolution(self) -> float | None:
        """The width of the search's goal, relative to the upper bound; None: there was no search."""
        resolution: float | None = self["resolution"][-1]
        return resolution

    def least_change(self, wanted: float) -> float:
        """The minimum relative change to report: the requested change, or more if the search's goal is wider.

        Args:
            wanted: The requested minimum change, relative to the earlier value.
        """
        return results.least_news(wanted, self.resolution)

    def unsent_share(self, index: int) -> float:
        """The share of a value's missing frames that the SUT did not lose, by the index of its result."""
        return self["unsent_share"][index] or 0.0

    def ends_of(self, index: int) -> results.Ends:
        """The range of a result's value, by its index."""
        return results.stored_ends(
            float(self.values[index]), self["unsent_share"][index], self["most"][index]
        )

    def like_newest(self) -> "Series":
        """The results with the newest result's device, traffic, path, goal and generator, as far as these are known."""
        device = self["device"]
        alike = {index for index, one in enumerate(device) if one == device[-1]}
        for known in (self["measured_as"], self["generator"]):
            if known[-1] is not None:
                alike &= {
                    index for index, meaning in enumerate(known) if meaning in (None, known[-1])
                }
        if len(alike) == len(self.times):
            return self
        return replace(self, columns=_taken(self.columns, sorted(alike)))


def _taken(
    columns: Mapping[str, Sequence[Any]], indices: Sequence[int]
) -> dict[str, Sequence[Any]]:
    """The columns with some results only, by their indices."""
    taken: dict[str, Sequence[Any]] = {}
    for name, column in columns.items():
        taken[name] = [column[index] for index in indices]
    return taken


def _kinds(outcome: str | None, doubts: Sequence[str] | None) -> frozenset[str]:
    kinds = set(doubts or ())
    if outcome is not None and outcome != MEASURED:
        kinds.add(outcome)
    return frozenset(kinds)


def with_rates_per_interface(table: Any) -> Any:
    """A table of entries, with rates per interface: files have aggregates."""
    compute = import_module("pyarrow.compute")
    factors = compute.fill_null(table.column("aggregate_factor"), 1.0)
    for name in _RATES:
        place = table.schema.get_field_index(name)
        rates = compute.divide(table.column(name), factors)
        table = table.set_column(place, table.schema.field(place), rates)
    return table


def series_of(table: Any, last: int) -> Iterator[Series]:
    """The series of a table of entries with their lines, from `lossratio.history.devices.with_lines`.

    Their rates are per interface; the table's rates are as in files.
    """
    table = with_rates_per_interface(table)
    for key, rows in groups_of(table, QUANTITY_COLUMNS):
        lines = (_made_line(key, line, last) for _, line in groups_of(rows, (LINE,)))
        yield from _distinguished([line for line in lines if line is not None])


def _made_line(key: tuple[str, str, str], line: Any, last: int) -> Series | None:
    """The last results of a line, without nights on which the SUT was as before; None: there are no other results."""
    outcomes = line.column("outcome").to_pylist()
    searched = [place for place, outcome in enumerate(outcomes) if outcome != AS_BEFORE]
    if not searched:
        return None

    kept = line.take(searched[-last:]).select(_FIELDS)
    times = line.column("started").to_pylist()
    after_newest = tuple(times[searched[-1] + 1 :])
    return replace(made_series(key, kept.to_pydict()), as_before=after_newest)


def made_series(
    key: tuple[str, str, str], columns: Mapping[str, Sequence[Any]], *, is_reading: bool = False
) -> Series:
    """A series with the names of its newest result."""
    device = _newest_known(columns["device"])
    measured_as = _newest_known(columns["measured_as"])
    return Series(SeriesKey(*key, device, measured_as), columns, is_reading)


def _newest_known(column: Sequence[str | None]) -> str:
    """The newest of the values that are known; empty: there is none."""
    return next((known for known in reversed(column) if known is not None), "")


def _distinguished(series: Sequence[Series]) -> Iterator[Series]:
    """The series of one quantity, with what distinguishes them if there are several."""
    if len(series) < 2:
        yield from series
        return
    devices = [one.key.device for one in series]
    for one in series:
        mark = one.key.device or _NOT_KNOWN
        if devices.count(one.key.device) > 1:
            # Only traffic, path, goal or generator differ.
            generator = one["generator"][-1] or ""
            mark = f"{mark}, {one.key.measured_as or _NOT_KNOWN} {generator}".rstrip()
        yield replace(one, mark=mark)


def groups_of(table: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Groups of successive rows of a table that are equal in some columns: the values there, and the rows."""
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    for key, group in groupby(range(len(keys)), key=keys.__getitem__):
        rows = list(group)
        yield key, table.slice(rows[0], len(rows))
