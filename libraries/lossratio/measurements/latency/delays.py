"""Latency as RFC 2544 reports it: all repeats and directions of a frame size together."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from lossratio.measurements.latency.result import DirectionLatency, LatencyResult
from lossratio.results import Rfc2544Row


class Delays:
    """The latency of a frame size: all repeats and directions together, microseconds; None: not known."""

    def __init__(self, result: LatencyResult) -> None:
        self.load = result.latency[0].load
        measured = [at_load.directions for at_load in result.latency if at_load.is_measured]
        repeats = [_measured(directions) for directions in measured]
        ways = [one for repeat in repeats for one in repeat]
        means = list(map(_mean, repeats))

        self.repeats = len(repeats)
        self.failed = len(result.latency) - len(repeats)
        self.average = fmean(means)
        self.least = min(one.least_us or 0.0 for one in ways)
        self.most = max(one.most_us or 0.0 for one in ways)
        self.spread = stdev(means) if len(means) > 1 else 0.0
        middles = [one.middle_us for one in ways if one.middle_us is not None]
        self.middle: float | None = None
        if len(middles) == len(ways):
            self.middle = fmean(middles)

    def rows(self) -> Iterator[Rfc2544Row]:
        """All quantities, each with its name in tables."""
        yield Rfc2544Row("latency, average", self.average, "us", self.spread)
        yield Rfc2544Row("latency, least", self.least, "us")
        yield Rfc2544Row("latency, most", self.most, "us")
        yield Rfc2544Row("latency, frame in the middle", self.middle, "us")


def delays_of(result: LatencyResult) -> tuple[Delays, ...]:
    """The delays of a result; none if nothing was measured."""
    if any(at_load.is_measured for at_load in result.latency):
        return (Delays(result),)
    return ()


def _measured(directions: Sequence[DirectionLatency]) -> list[DirectionLatency]:
    """The directions whose latency was measured."""
    return [one for one in directions if one.error is None]


def _mean(directions: Sequence[DirectionLatency]) -> float:
    """The mean latency of directions, microseconds."""
    return fmean(one.mean_us or 0.0 for one in directions)
