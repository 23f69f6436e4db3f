"""Series of the entries of a history, in the order of time.

A series is one quantity of one test on one testbed, or a reading of latency or telemetry, whose trends are computed in
the same way but are no alarms.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from lossratio import results
from lossratio.report.history.devices import Identity, lines_of
from lossratio.report.history.entries import AS_BEFORE, MEASURED
from lossratio.values import Unit, range_in_words

_NOT_KNOWN = "device not known"


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
    left_out: int = 0
    """Number of earlier results of another device, or with another meaning (other traffic, another path, goal or
    generator)."""
    begins: str = ""
    """The difference from the previous device, with which the series begins again; empty: there is none."""

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

    def value_in_words(self, index: int) -> str:
        """A result's value, by its index."""
        value = float(self.values[index])
        if np.isfinite(value):
            return self.unit.format(value)
        return "no value"

    def bounds_in_words(self, index: int) -> str:
        """The bounds of a result, by its index; empty: there are none."""
        ends = [self.unit.format(end) for end in self.bounds_of(index) if end is not None]
        if ends:
            return range_in_words(ends[0], ends[-1])
        return ""

    def state_in_words(self, index: int) -> str:
        """What is known of a result besides its value, by its index."""
        return "; ".join(filter(None, (*sorted(self.kinds[index]), self["reason"][index])))

    def bounds_of(self, index: int) -> tuple[float | None, float | None]:
        """The bounds of a result by its index."""
        return self["lower_bound"][index], self["upper_bound"][index]

    def ends_of(self, index: int) -> results.Ends:
        """The range of a result's value, by its index."""
        return results.stored_ends(
            float(self.values[index]), self["unsent_share"][index], self["most"][index]
        )


def _kinds(outcome: str | None, doubts: Sequence[str] | None) -> frozenset[str]:
    kinds = set(doubts or ())
    if outcome is not None and outcome != MEASURED:
        kinds.add(outcome)
    return frozenset(kinds)


def series_of(table: Any, last: int, *, are_readings: bool = False) -> Iterator[Series]:
    """The series of a table of entries, from `lossratio.report.history.store.History.read`.

    Args:
        table: The entries, in the order of their names and times.
        last: How many of the newest results of a series are used.
        are_readings: Whether their values are readings.
    """
    columns = table.to_pydict()
    keys = list(zip(*(columns[name] for name in ("testbed", "test", "quantity")), strict=True))
    for key, group in groupby(range(len(keys)), key=keys.__getitem__):
        own = _taken(columns, list(group))
        identities = list(map(Identity, *(own[name] for name in Identity._fields)))
        made = (_made_line(key, own, *line, last) for line in lines_of(identities, own["started"]))
        found = [series for series in made if series is not None]
        yield from (replace(one, is_reading=are_readings) for one in _distinguished(found))


def _taken(
    columns: Mapping[str, Sequence[Any]], indices: Sequence[int]
) -> dict[str, Sequence[Any]]:
    """The columns with some results only, by their indices."""
    return {name: list(map(column.__getitem__, indices)) for name, column in columns.items()}


def _made_line(
    key: tuple[str, str, str],
    columns: Mapping[str, Sequence[Any]],
    rows: Sequence[int],
    replaced: Sequence[int],
    last: int,
) -> Series | None:
    """The last results of a line, without nights on which the SUT was as before; None: there are no other results."""
    outcomes = columns.get("outcome", ())
    as_before = {row for row, outcome in enumerate(outcomes) if outcome == AS_BEFORE}
    searched = [row for row in rows if row not in as_before]
    if not searched:
        return None

    newest = searched[-1]
    device = columns["device"][newest] or ""
    before = columns["device"][replaced[-1]] if replaced else None
    # Record: the newest results, and what is known of the others.
    return Series(
        SeriesKey(*key, device, columns["measured_as"][newest] or ""),
        _taken(columns, searched[-last:]),
        as_before=tuple(columns["started"][row] for row in rows if row > newest),
        left_out=len(set(replaced) - as_before),
        begins=results.what_differs(before, device) if before and device else "",
    )


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
