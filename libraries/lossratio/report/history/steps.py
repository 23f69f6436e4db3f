"""Change detection: divides a series into groups of similar values, by minimum message length.

FD.io CSIT's ``jumpavg`` makes the same groups (same message, same search), but with Python objects. The cost grows with
the number of pairs of values, so this module computes in numpy. A test compares both.

For each group, the message holds its number of values, its average (uniform up to the maximum for the first group,
around the previous group's average for the others), its standard deviation, and a point on the sphere of all values
with this average and deviation. The unit of numbers is 1/8191 of the largest value: about twelve bits.
"""

import numpy as np
import numpy.typing as npt
import scipy

Values = npt.NDArray[np.float64]

_LARGEST = 2.0**13 - 1.0
"""The largest value, in units."""


class _Groups:
    """Groups that may still grow: one for each value that a group may begin with."""

    def __init__(self, size: int) -> None:
        self.average = np.zeros(size)
        # Sums of squared distances from the average.
        self.moment = np.zeros(size)
        # Message lengths of all groups before them, bits, and the average of the group before them.
        self.base = np.zeros(size)
        self.previous = np.zeros(size)

    def grow(self, value: float, end: int) -> None:
        """Adds a value to all groups, and opens a group that begins with it."""
        sizes = np.arange(end, 0, -1.0)
        deltas = value - self.average[:end]
        self.average[:end] += deltas / (sizes + 1.0)
        self.moment[:end] += deltas * deltas * (sizes / (sizes + 1.0))
        self.average[end] = value

    def message_lengths(self, end: int) -> Values:
        """Message lengths in bits up to the end of each group, if each of them ends here."""
        sizes = np.arange(end + 1, 0, -1.0)
        lengths = self.base[: end + 1] + np.log2(sizes * (sizes + 1.0))
        lengths[0] += np.log2(_LARGEST + 1.0)
        previous = self.previous[1 : end + 1]
        norm = previous * previous - (previous - 1.0) * _LARGEST + _LARGEST * _LARGEST / 2.0
        lengths[1:] -= np.log2((np.abs(self.average[1 : end + 1] - previous) + 1.0) / norm)

        # The standard deviation, and the point on the sphere: for groups of two values or more.
        sizes = sizes[:end]
        stdev = np.sqrt(self.moment[:end] / sizes)
        # Formula: the logarithm of the volume of the sphere of all values with this average and deviation.
        sphere = (
            np.log(2.0)
            + np.log(np.pi) * ((sizes - 1.0) / 2.0)
            - scipy.special.gammaln((sizes - 1.0) / 2.0)
            + np.log(sizes) * ((sizes - 2.0) / 2.0)
        )
        nats = (
            np.log(stdev + 1.0) * (sizes - 1.0)
            + np.log(stdev + 2.0)
            + np.log(1.0 - 1.0 / (_LARGEST + 2.0))
            + sphere
        )
        lengths[:end] += nats / np.log(2.0)
        return lengths


def group_starts(values: Values) -> list[int]:
    """The indices of the first values of the groups in a series of finite values, none of them negative.

    A series of zeros is one group; an empty series has no group.
    """
    scaled = values * (_LARGEST / (float(values.max(initial=0.0)) or 1.0))
    groups = _Groups(len(values))
    # For each prefix of the series, where the last group of its shortest message begins.
    last_starts: list[int] = []
    shortest = average = 0.0
    for end, value in enumerate(scaled.tolist()):
        groups.base[end] = shortest
        groups.previous[end] = average
        groups.grow(value, end)
        lengths = groups.message_lengths(end)
        # A separate group stands unless an older one makes the message shorter.
        chosen = end
        if end and lengths[:end].min() < lengths[end]:
            chosen = int(np.argmin(lengths[:end]))
        shortest = float(lengths[chosen])
        average = float(groups.average[chosen])
        last_starts.append(chosen)

    starts: list[int] = []
    end = len(values)
    while end:
        end = last_starts[end - 1]
        starts.insert(0, end)
    return starts
