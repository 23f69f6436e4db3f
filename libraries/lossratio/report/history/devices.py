"""Which results of a test form a series: those of one device, with the same traffic, path, goal and generator.

A test may be measured on several devices, alternately or by several jobs. Then each device has a series. If a device
replaced another one, for example a device with another option, the series begins again, without the earlier results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import NamedTuple

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


@dataclass(frozen=True)
class Line:
    """The results of one identity, by index in the order of time."""

    rows: Sequence[int]
    """The results."""
    replaced: Sequence[int]
    """Results of other identities that ended before, and that were replaced."""


def lines_of(identities: Sequence[Identity], times: Sequence[datetime]) -> list[Line]:
    """The lines of results of one test, by their identities and times, both in the order of time."""
    groups: dict[Identity, list[int]] = {}
    for row, identity in enumerate(identities):
        groups.setdefault(identity, []).append(row)

    lines = []
    gone = []
    for rows in groups.values():
        if any(_is_replaced(rows, other, times) for other in groups.values()):
            gone.append(rows)
        else:
            lines.append(rows)

    found = []
    for rows in lines:
        replaced = [row for other in gone if other[-1] < rows[0] for row in other]
        found.append(Line(rows, sorted(replaced)))
    return found


def _is_replaced(rows: Sequence[int], other: Sequence[int], times: Sequence[datetime]) -> bool:
    """Whether other results began after these had ended, and so replaced them."""
    if other[0] <= rows[-1]:
        return False
    since = times[other[-1]] - times[rows[-1]]
    return len(other) >= _SURE or since >= _OVERDUE * _usual_gap([times[row] for row in rows])


def _usual_gap(times: Sequence[datetime]) -> timedelta:
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    if gaps:
        return timedelta(seconds=median(gaps))
    return timedelta()
