"""Histograms of latencies: HdrHistogram, with three digits."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from hdrh.histogram import HdrHistogram

from lossratio.errors import ReportError

DIGITS = 3
"""Significant digits of a histogram's intervals."""
_LEAST, _MOST = 1, 60_000_000_000


class _Interval(NamedTuple):
    """An interval of a histogram, and the number of its frames."""

    least: int
    most: int
    frames: int


class Histogram:
    """The latencies of one direction (HdrHistogram): values with three digits; the unit is in microseconds."""

    def __init__(self, recorded: Any, unit: float = 1.0) -> None:
        self.unit = unit
        self._recorded = recorded

    @classmethod
    def of(cls, intervals: Iterable[tuple[float, int]], unit: float) -> "Histogram":
        """Makes a histogram from latencies in microseconds and their numbers of frames.

        `unit` is the smallest width of an interval.
        """
        recorded = HdrHistogram(_LEAST, _MOST, DIGITS)
        for edge, count in intervals:
            recorded.record_value(round(edge / unit), count)
        return cls(recorded, unit)

    @classmethod
    def decode(cls, text: str, unit: float = 1.0) -> "Histogram":
        """Reads a histogram that is compressed and in base64.

        Raises:
            ReportError: If the text holds no histogram.
        """
        try:
            return cls(HdrHistogram.decode(text), unit)
        # The package raises any exception of zlib, base64, ctypes and its own code.
        except Exception as error:
            raise ReportError(
                f"A latency histogram cannot be read: {error!r}. Measure again."
            ) from error

    @classmethod
    def merged(cls, parts: "Iterable[Histogram]") -> "Histogram":
        """All latencies of several histograms, counted in whole microseconds."""
        return cls.of(
            (
                (interval.most * part.unit, interval.frames)
                for part in parts
                for interval in part._intervals
            ),
            unit=1.0,
        )

    @property
    def count(self) -> int:
        """Number of frames in the histogram."""
        return int(self._recorded.get_total_count())

    @property
    def mean(self) -> float:
        """Mean latency, microseconds."""
        if not self.count:
            return 0.0
        # The middle of an interval stands for its frames.
        total = sum(
            interval.frames * (interval.least + (interval.most - interval.least + 1) // 2)
            for interval in self._intervals
        )
        return total / self.count * self.unit

    def encode(self) -> str:
        """The histogram, compressed and in base64."""
        return str(self._recorded.encode().decode("ascii"))

    def percentiles(self, wanted: Iterable[float]) -> dict[str, float]:
        """Latencies by percentile, in microseconds; only percentiles above which there is at least one frame.

        No smaller latency holds that share of the frames (RFC 2330, section 11.3).
        """
        seen = list(accumulate(interval.frames for interval in self._intervals))
        found = {}
        for percent in wanted:
            if self.count * (1.0 - percent / 100.0) >= 1.0 - 1e-9:
                share = math.ceil(self.count * percent / 100.0 - 1e-9)
                interval = self._intervals[bisect_left(seen, share)]
                found[f"{percent:g}"] = round(interval.most * self.unit, 6)
        return found

    def curve(self) -> list[tuple[float, float]]:
        """Points of the distribution: a share of the frames in per cent, and their largest latency in microseconds."""
        seen = accumulate(interval.frames for interval in self._intervals)
        return [
            (100.0 * below / self.count, interval.most * self.unit)
            for below, interval in zip(seen, self._intervals, strict=True)
        ]

    @cached_property
    def _intervals(self) -> list[_Interval]:
        """All intervals with frames, in order.

        The package's own iterators also visit the empty ones, which are nearly all.
        """
        import numpy as np

        counts = np.ctypeslib.as_array(self._recorded.counts)
        intervals = []
        for index in np.flatnonzero(counts).tolist():
            least = self._recorded.get_value_from_index(index)
            most = self._recorded.get_highest_equivalent_value(least)
            intervals.append(_Interval(least, most, int(counts[index])))
        return intervals
