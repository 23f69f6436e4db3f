"""Change detection: divides a series into groups of similar values, by minimum message length.

FD.io CSIT's ``jumpavg`` makes the same groups (same message, same search), but with Python objects. The cost grows with
the number of pairs of values, so this module groups many series at once, in numpy. A test compares both.

For each group, the message holds its number of values, its average (uniform up to the maximum for the first group,
around the previous group's average for the others), its standard deviation, and a point on the sphere of all values
with this average and deviation. The unit of numbers is 1/8191 of the largest value: about twelve bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

Values = npt.NDArray[np.float64]

_LARGEST = 2.0**13 - 1.0
"""The largest value, in units."""
_BATCH_CELLS = 100_000
"""Size of the largest array: small enough for the processor's cache, large enough for numpy to be fast."""


def group_starts(series: Sequence[Values]) -> list[list[int]]:
    """The indices of the first values of the groups in each series of finite values, none of them negative.

    A series of zeros is one group; an empty series has no group.
    """
    starts: list[list[int]] = [[] for _ in series]
    order = sorted(range(len(series)), key=lambda index: len(series[index]))
    while order:
        size = max(1, _BATCH_CELLS // max(1, len(series[order[-1]])))
        batch = order[-size:]
        order = order[:-size]
        for index, begins in zip(
            batch, _batch_starts([series[index] for index in batch]), strict=True
        ):
            starts[index] = begins
    return starts


def _batch_starts(series: Sequence[Values]) -> list[list[int]]:
    lengths = [len(values) for values in series]
    scaled = np.zeros((len(series), max(lengths, default=0)))
    for row, values in enumerate(series):
        largest = float(values.max(initial=0.0))
        if largest > 0.0:
            scaled[row, : len(values)] = values * (_LARGEST / largest)
    last_starts = _last_starts(scaled)
    starts: list[list[int]] = [[] for _ in series]
    for row, end in enumerate(lengths):
        while end > 0:
            end = int(last_starts[row][end - 1])
            starts[row].insert(0, end)
    return starts


@dataclass
class _Open:
    """Groups that may still grow: one for each series (row) and each value that the group may begin with (column)."""

    average: Values
    moment: Values
    """Their sums of squared distances from the average."""
    base: Values
    """Message lengths of all groups before them, bits."""
    previous: Values
    """Averages of the groups before them."""


def _last_starts(scaled: Values) -> npt.NDArray[np.int64]:
    """For each prefix of each series, where the last group of its shortest message begins."""
    rows, width = scaled.shape
    groups = _Open(*(np.zeros((rows, width)) for _ in range(4)))
    starts = np.zeros((rows, width), dtype=np.int64)
    shortest, average = np.zeros(rows), np.zeros(rows)
    everyone = np.arange(rows)

    for end in range(width):
        _grow(groups, scaled[:, end], end)
        groups.base[:, end], groups.previous[:, end] = shortest, average
        lengths = groups.base[:, : end + 1] + _message_lengths(groups, end)
        # A separate group stands unless an older one makes the message clearly shorter.
        if end:
            older = np.argmin(lengths[:, :end], axis=1)
        else:
            older = np.zeros(rows, dtype=np.int64)

        chosen = np.where(lengths[everyone, older] < lengths[:, end], older, end)
        starts[:, end] = chosen
        shortest = lengths[everyone, chosen]
        average = groups.average[everyone, chosen]

    return starts


def _grow(groups: _Open, values: Values, end: int) -> None:
    """Adds a value to all open groups, and opens a group that begins with it."""
    sizes = np.arange(end, 0, -1.0)
    averages = groups.average[:, :end]
    deltas = values[:, None] - averages
    averages += deltas / (sizes + 1.0)
    groups.moment[:, :end] += deltas * deltas * (sizes / (sizes + 1.0))
    groups.average[:, end] = values
    groups.moment[:, end] = 0.0


def _message_lengths(groups: _Open, end: int) -> Values:
    """Message lengths of the open groups in bits, if each of them ends here."""
    sizes = np.arange(end + 1, 0, -1.0)
    averages = groups.average[:, : end + 1]
    lengths: Values = np.zeros_like(averages) + np.log2(sizes * (sizes + 1.0))
    lengths[:, 0] += np.log2(_LARGEST + 1.0)

    if end > 0:
        previous = groups.previous[:, 1 : end + 1]
        norm = previous * previous - (previous - 1.0) * _LARGEST + _LARGEST * _LARGEST / 2.0
        lengths[:, 1:] -= np.log2((np.abs(averages[:, 1:] - previous) + 1.0) / norm)
        # The standard deviation, and the point on the sphere: for groups of two values or more.
        sizes = sizes[:end]
        stdev = np.sqrt(groups.moment[:, :end] / sizes)
        sphere = (
            np.log(2.0)
            + np.log(np.pi) * ((sizes - 1.0) / 2.0)
            - scipy.special.gammaln((sizes - 1.0) / 2.0)
        )
        sphere = sphere + np.log(sizes) * ((sizes - 2.0) / 2.0)
        nats = (
            np.log(stdev + 1.0) * (sizes - 1.0)
            + np.log(stdev + 2.0)
            + np.log(1.0 - 1.0 / (_LARGEST + 2.0))
            + sphere
        )
        lengths[:, :end] += nats / np.log(2.0)

    return lengths
