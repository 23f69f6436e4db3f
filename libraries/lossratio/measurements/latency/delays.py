"""Latency as RFC 2544 reports it: all repeats and directions of a frame size together."""

from collections.abc import Callable, Iterator, Sequence
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
        self.middle = _of_all([one.middle_us for one in ways], fmean)

        self.range = _of_all([_above_least(one, one.most_us) for one in ways], max)
        self.high = _of_all([_above_least(one, one.percentiles_us.get("99")) for one in ways], max)
        self.mean = _of_all([_above_least(one, one.mean_us) for one in ways], max)
        self.between = _of_all([one.jitter_us for one in ways], max)

    def rows(self) -> Iterator[Rfc2544Row]:
        """All quantities, each with its name in tables."""
        yield Rfc2544Row("latency, average", self.average, "us", self.spread)
        yield Rfc2544Row("latency, least", self.least, "us")
        yield Rfc2544Row("latency, most", self.most, "us")
        yield Rfc2544Row("latency, frame in the middle", self.middle, "us")
        yield Rfc2544Row("PDV, range", self.range, "us")
        yield Rfc2544Row("PDV, 99 %", self.high, "us")
        yield Rfc2544Row("PDV, average", self.mean, "us")
        yield Rfc2544Row("IPDV, average", self.between, "us")


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


def _above_least(direction: DirectionLatency, value: float | None) -> float | None:
    """How far a latency is above the smallest latency of its direction, microseconds; None: not known."""
    if value is None:
        return None
    return value - (direction.least_us or 0.0)


def _of_all(
    values: Sequence[float | None], combine: Callable[[list[float]], float]
) -> float | None:
    """The function of all values; None if a value is not known."""
    known = [value for value in values if value is not None]
    if known and len(known) == len(values):
        return combine(known)
    return None
