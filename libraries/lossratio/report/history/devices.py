"""Which results of a test form a series: those of one device, with the same traffic, path, goal and generator.

A test may be measured on several devices, alternately or by several jobs. Then each device has a series. If a device
replaced another one, for example a device with another option, the series begins again, without the earlier results.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias

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


Line: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""The results of one identity, by index in the order of time, and results of other identities that ended before and
were replaced."""


def lines_of(identities: Sequence[Identity], times: Sequence[datetime]) -> Iterator[Line]:
    """The lines of results of one test, by their identities and times, both in the order of time."""
    groups: dict[Identity, list[int]] = {}
    for row, identity in enumerate(identities):
        groups.setdefault(identity, []).append(row)

    gone = []
    for rows in groups.values():
        if any(_is_replaced(rows, other, times) for other in groups.values()):
            gone.append(rows)
    for rows in groups.values():
        if rows not in gone:
            yield rows, sorted(row for other in gone if other[-1] < rows[0] for row in other)


def _is_replaced(rows: Sequence[int], other: Sequence[int], times: Sequence[datetime]) -> bool:
    """Whether other results began after these had ended, and so replaced them."""
    if other[0] <= rows[-1]:
        return False
    since = times[other[-1]] - times[rows[-1]]
    gaps = [(times[after] - times[before]).total_seconds() for before, after in pairwise(rows)]
    return len(other) >= _SURE or since.total_seconds() >= _OVERDUE * median(gaps or [0.0])
