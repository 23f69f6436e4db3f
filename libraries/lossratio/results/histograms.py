"""Histograms of latencies (HdrHistogram): every latency to three digits, in little room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hdrh.histogram import HdrHistogram

from lossratio.errors import ReportError

_DIGITS = 3
_LEAST, _MOST = 1, 60_000_000_000


class Histogram:
    """The latencies of one direction.

    Args:
        recorded: The histogram.
        unit: What it counts in, microseconds.

    Attributes:
        unit: What it counts in, microseconds.
    """

    def __init__(self, recorded: Any, unit: float = 1.0) -> None:
        self.unit = unit
        self._recorded = recorded

    @classmethod
    def of(cls, intervals: Iterable[tuple[float, int]], unit: float) -> Histogram:
        """Makes one from intervals of latencies.

        Args:
            intervals: The lower edge of each in microseconds, with the number of frames in it.
            unit: Width of the intervals, in microseconds.
        """
        recorded = HdrHistogram(_LEAST, _MOST, _DIGITS)
        for edge, count in intervals:
            recorded.record_value(round(edge / unit), count)
        return cls(recorded, unit)

    @classmethod
    def decode(cls, text: str, unit: float = 1.0) -> Histogram:
        """Reads one that is compressed and in base64.

        Raises:
            ReportError: If it is none.
        """
        try:
            return cls(HdrHistogram.decode(text), unit)
        # The package raises whatever comes up in zlib, base64, ctypes and its own code.
        except Exception as error:
            raise ReportError(f"A latency histogram cannot be read: {error!r}.") from error

    @classmethod
    def merged(cls, parts: Iterable[Histogram]) -> Histogram:
        """All latencies of some histograms, counted in whole microseconds."""
        recorded = HdrHistogram(_LEAST, _MOST, _DIGITS)
        for part in parts:
            for value, count in part._counts():
                recorded.record_value(round(value * part.unit), count)
        return cls(recorded)

    @property
    def count(self) -> int:
        """How many frames are in it."""
        return int(self._recorded.get_total_count())

    def encode(self) -> str:
        """The histogram, compressed and in base64."""
        return str(self._recorded.encode().decode("ascii"))

    def percentiles(self, wanted: Iterable[float]) -> dict[str, float]:
        """Latencies by percentile, in microseconds; only those above which there is at least one frame."""
        return {
            f"{each:g}": round(self._recorded.get_value_at_percentile(each) * self.unit, 6)
            for each in wanted
            if self.count * (1.0 - each / 100.0) >= 1.0 - 1e-9
        }

    def curve(self) -> list[tuple[float, float]]:
        """The share of frames, in per cent, that had at most a latency, in microseconds; of all that occurred."""
        total, seen = self.count, 0
        points = []
        for value, count in self._counts():
            seen += count
            points.append((100.0 * seen / total, value * self.unit))
        return points

    def _counts(self) -> Iterator[tuple[int, int]]:
        for item in self._recorded.get_recorded_iterator():
            yield item.value_iterated_to, item.count_at_value_iterated_to
