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

from lossratio.results import kind_in_words, what_differs
from lossratio.units import results_counted

LINE = "line"
"""Column of a table of entries: the number of an entry's line among the lines of its quantity."""
QUANTITY_COLUMNS = ("testbed", "test", "quantity")
"""Columns of a table of entries that name a quantity."""
_OVERDUE = 0.75
"""A device has been replaced if another one was measured for this share of the usual time between its results."""
_SURE = 2
"""This many results of another device, with none of this device in between, also show that it has been replaced."""


class Identity(NamedTuple):
    """What results must have in common to form a series; None: an earlier version did not say."""

    device: str | None
    """The device, in words."""
    measured_as: str | None
    """Traffic, path and goal, as a digest."""
    generator: str | None
    """Kind of the traffic generator."""
    kind: str | None = None
    """Kind of the device, for a result that does not state its options."""

    def fits(self, other: "Identity") -> bool:
        """Whether both are the same, as far as they are known."""
        if self.device is None or other.device is None:
            kinds = [
                one.kind if one.device is None else kind_in_words(one.device)
                for one in (self, other)
            ]
            if None not in kinds and kinds[0] != kinds[1]:
                return False
        pairs = zip(self[:3], other[:3], strict=True)
        return all(one is None or another is None or one == another for one, another in pairs)

    @property
    def is_whole(self) -> bool:
        """Whether device, traffic, path, goal and generator are all known."""
        return None not in self[:3]


@dataclass
class _Group:
    """The results of one identity, by index."""

    identity: Identity
    times: list[datetime] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    line: int | None = None
    may_be: frozenset[str] = frozenset()

    def take(self, row: int, time: datetime) -> None:
        self.rows.append(row)
        self.times.append(time)

    def join(self, other: "_Group") -> None:
        """Adds results that may have this identity."""
        merged = sorted(
            [*zip(self.times, self.rows, strict=True), *zip(other.times, other.rows, strict=True)]
        )
        self.times = [time for time, _ in merged]
        self.rows = [row for _, row in merged]

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


class Place(NamedTuple):
    """Where a result belongs."""

    line: int
    """The number of its line."""
    device: str | None
    """Its device; for a result of an earlier version, only if it is certain. None: it is not known."""
    may_be: frozenset[str] = frozenset()
    """The devices that may have produced it, if there are several."""


def places_of(identities: Sequence[Identity], times: Sequence[datetime]) -> list[Place]:
    """Where results of one test belong, by their identities; both are in the order of time."""
    by_identity: dict[Identity, _Group] = {}
    for row, (identity, time) in enumerate(zip(identities, times, strict=True)):
        by_identity.setdefault(identity, _Group(identity)).take(row, time)
    groups = sorted(_joined(list(by_identity.values())), key=lambda group: group.times[0])
    places = [Place(0, None)] * len(times)

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
            places[row] = Place(group.line or 0, group.identity.device, group.may_be)

    return places


def _joined(groups: list[_Group]) -> list[_Group]:
    """The groups. Those that are only partly known have joined the group that they certainly fit, if there is one."""
    whole = [group for group in groups if group.identity.is_whole]
    partial = [group for group in groups if not group.identity.is_whole]
    for group in sorted(partial, key=lambda one: one.times[-1], reverse=True):
        fitting = [other for other in whole if other.identity.fits(group.identity)]
        devices = frozenset(
            other.identity.device for other in fitting if other.identity.device is not None
        )
        if group.identity.device is None and len(devices) > 1:
            group.may_be = devices
            whole.append(group)
        elif fitting:
            max(fitting, key=lambda other: other.times[-1]).join(group)
        else:
            whole.append(group)

    return whole


def with_lines(table: Any) -> tuple[Any, tuple[str, ...]]:
    """A table of entries with their lines, sorted by testbed, test, quantity, line and time; and what is uncertain.

    Entries of earlier versions get the device that they certainly belong to.
    """
    # Imported here because pyarrow is not always installed. If there is a table, it is installed.
    import pyarrow

    if LINE in table.column_names:
        table = table.drop_columns([LINE])
    parts = (*QUANTITY_COLUMNS, *Identity._fields[:3])
    is_divided = (
        table.group_by([*QUANTITY_COLUMNS]).aggregate([]).num_rows
        != table.group_by([*parts]).aggregate([]).num_rows
    )
    problems: tuple[str, ...] = ()

    if is_divided:
        names = (*parts, "build", "started")
        places = list(_places({name: table.column(name).to_pylist() for name in names}))
        problems = tuple(_uncertain(table.column("test").to_pylist(), places))
        field = table.schema.field("device")
        devices = pyarrow.array([place.device for place in places], type=field.type)
        table = table.set_column(table.schema.get_field_index("device"), field, devices)
        table = table.append_column(LINE, [[place.line for place in places]])
    else:
        table = table.append_column(LINE, [[0] * len(table)])

    return table.sort_by(
        [(name, "ascending") for name in (*QUANTITY_COLUMNS, LINE, "started")]
    ), problems


def in_order(table: Any) -> Any:
    """A table of entries, sorted by testbed, test, quantity and time."""
    return table.sort_by([(name, "ascending") for name in (*QUANTITY_COLUMNS, "started")])


def _uncertain(tests: Sequence[str], places: Sequence[Place]) -> Iterator[str]:
    """A line about results of earlier versions that may belong to several devices."""
    uncertain = [
        (test, place.may_be) for test, place in zip(tests, places, strict=True) if place.may_be
    ]
    if uncertain:
        test, devices = uncertain[-1]
        yield (
            f"{results_counted(len(uncertain))} of earlier versions, which did not record the options of devices, "
            f"may belong to several devices. They are in no series: those of {test} may belong to "
            f"{' or of '.join(sorted(devices))}."
        )


def _places(column: Mapping[str, list[Any]]) -> Iterator[Place]:
    """Where entries belong, if they are sorted by testbed, test, quantity and time."""
    keys = list(zip(*(column[name] for name in QUANTITY_COLUMNS), strict=True))
    for _, group in groupby(range(len(keys)), key=keys.__getitem__):
        rows = list(group)
        identities = [
            identity_in({name: values[row] for name, values in column.items()}) for row in rows
        ]
        yield from places_of(identities, [column["started"][row] for row in rows])


def identity_in(entry: Mapping[str, Any]) -> Identity:
    """The identity of an entry."""
    kind = None
    if entry["device"] is None and entry["build"]:
        # Kind and version, e.g. ``vpp 24.06``.
        kind = str(entry["build"]).partition(" ")[0]
    return Identity(entry["device"], entry["measured_as"], entry["generator"], kind)
