# SPDX-License-Identifier: Apache-2.0
"""Log-linear histograms of latencies, as in HdrHistogram: intervals have the same relative width everywhere.

Below 128 ns, each nanosecond has an interval; above, each power of two has 128 intervals, at most 0.8 % of the value.
"""

from typing import Iterator, Sequence, Tuple

SUB_BITS = 7
"""Each power of two has 2 to the power of this many intervals."""
MOST_BITS = 34
"""Latencies are below 2 to the power of this many nanoseconds (17 s); longer ones count as the longest one."""
INTERVALS = (MOST_BITS - SUB_BITS + 1) << SUB_BITS
"""How many intervals there are."""


def edge(interval: int) -> int:
    """The lowest latency of an interval, in nanoseconds."""
    shift = max(0, (interval >> SUB_BITS) - 1)
    return interval - (shift << SUB_BITS) << shift


def filled(counts: Sequence[int], least: int, most: int) -> Iterator[Tuple[int, int]]:
    """The middle of each interval with frames, in nanoseconds, with their number.

    No middle is below the smallest latency of all, or above the largest one.
    """
    for interval, number in enumerate(counts):
        if number:
            yield max(least, min(most, (edge(interval) + edge(interval + 1)) // 2)), number


def percentile(values: Sequence[Tuple[int, int]], percent: float) -> int:
    """A percentile of at least one `filled` interval, in nanoseconds."""
    wanted = percent / 100.0 * sum(number for _, number in values)
    passed = 0
    for value, number in values:
        passed += number
        if passed >= wanted:
            return value
    return values[-1][0]
