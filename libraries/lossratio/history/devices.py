"""Which results of a test form a series: those of one device, with the same traffic, path, goal and generator.

A test may be measured on several devices, alternately or by several jobs. Then each device has a series. If a device
replaced another one, for example a device with another option, the series begins again: the results of both form one
line, and only the newest count (`lossratio.history.Series.like_newest`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from statistics import median
from typing import Any, NamedTuple

from lossratio.results import what_differs

LINE = "line"
"""Column of a table of entries: the number of an entry's line among the lines of its quantity."""
QUANTITY_COLUMNS = ("testbed", "test", "quantity")
"""Columns of a table of entries that name a quantity."""
_OVERDUE = 0.75
"""A device has been replaced if another one was measured for this share of the usual time between its results."""
_SURE = 2
"""This many results of another device, with none of this device in between, also show that it has been replaced."""


class Identity(NamedTuple):
    """What results must have in common to form a series; None: not known."""

    device: str | None
    """The device, in words."""
    measured_as: str | None
    """Traffic, path and goal, as a digest."""
    generator: str | None
    """Kind of the traffic generator."""


@dataclass
class _Group:
    """The results of one identity, by index."""

    identity: Identity
    times: list[datetime] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    line: int | None = None

    def take(self, row: int, time: datetime) -> None:
        self.rows.append(row)
        self.times.append(time)

    @property
    def usual_gap(self) -> timedelta:
        gaps = [(after - before).total_seconds() for before, after in pairwise(self.times)]
        if gaps:
            return timedelta(seconds=median(gaps))
        return timedelta()

    def was_replaced_by(self, other: "_Group") -> bool:
        """Whether the other group began after this one had ended, and so replaced it."""
        if other.times[0] <= self.times[-1]:
            return False
        return (
            len(other.times) >= _SURE
            or other.times[-1] - self.times[-1] >= _OVERDUE * self.usual_gap
        )

    def difference(self, other: "_Group") -> int:
        """Number of parts of the identity in which the two groups differ."""
        parts = zip(self.identity[1:3], other.identity[1:3], strict=True)
        devices = what_differs(self.identity.device or "", other.identity.device or "")
        return sum(one != another for one, another in parts) + (
            devices.count("->") if devices else 0
        )


def lines_of(identities: Sequence[Identity], times: Sequence[datetime]) -> list[int]:
    """The numbers of the lines of results of one test, by their identities; both are in the order of time."""
    by_identity: dict[Identity, _Group] = {}
    for row, (identity, time) in enumerate(zip(identities, times, strict=True)):
        by_identity.setdefault(identity, _Group(identity)).take(row, time)
    groups = sorted(by_identity.values(), key=lambda group: group.times[0])
    lines = [0] * len(times)

    for number, group in enumerate(groups):
        ended = [
            before
            for before in groups[:number]
            if before.line is not None and before.was_replaced_by(group)
        ]
        # Each line continues with at most one device: the most similar.
        lasts = {before.line: before for before in groups[:number]}
        open_ends = [before for before in ended if lasts[before.line] is before]
        if open_ends:
            nearest = min(
                open_ends,
                key=lambda before: (group.difference(before), group.times[0] - before.times[-1]),
            )
            group.line = nearest.line
        else:
            group.line = number

        for row in group.rows:
            lines[row] = group.line or 0

    return lines


def with_lines(table: Any) -> Any:
    """A table of entries with their lines, sorted by testbed, test, quantity, line and time."""
    if LINE in table.column_names:
        table = table.drop_columns([LINE])
    parts = (*QUANTITY_COLUMNS, *Identity._fields)
    is_divided = (
        table.group_by([*QUANTITY_COLUMNS]).aggregate([]).num_rows
        != table.group_by([*parts]).aggregate([]).num_rows
    )
    lines = [0] * len(table)
    if is_divided:
        names = (*parts, "started")
        lines = list(_lines({name: table.column(name).to_pylist() for name in names}))
    table = table.append_column(LINE, [lines])
    return table.sort_by([(name, "ascending") for name in (*QUANTITY_COLUMNS, LINE, "started")])


def in_order(table: Any) -> Any:
    """A table of entries, sorted by testbed, test, quantity and time."""
    return table.sort_by([(name, "ascending") for name in (*QUANTITY_COLUMNS, "started")])


def _lines(column: Mapping[str, list[Any]]) -> Iterator[int]:
    """The lines of entries that are sorted by testbed, test, quantity and time."""
    keys = list(zip(*(column[name] for name in QUANTITY_COLUMNS), strict=True))
    for _, group in groupby(range(len(keys)), key=keys.__getitem__):
        rows = list(group)
        identities = [Identity(*(column[name][row] for name in Identity._fields)) for row in rows]
        yield from lines_of(identities, [column["started"][row] for row in rows])
