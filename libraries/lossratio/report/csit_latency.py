"""Latency as FD.io CSIT has it: at 90, 50 and 10 % of PDR and at the minimum load, in whole microseconds.

CSIT has one latency for each way. Where there are several links, it is that of all frames which went this way.
"""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.report.csit_model import CsitLatencies, CsitLatency
from lossratio.results import Conditions, DirectionLatency, Histogram, LatencyAtLoad

_SHARES = {"pdr_90": 0.9, "pdr_50": 0.5, "pdr_10": 0.1, "pdr_0": 0.0}


def csit_latencies(latency: Sequence[LatencyAtLoad], conditions: Conditions, way: int) -> CsitLatencies | None:
    """The latencies of one way at all of CSIT's loads; None where one of them is missing, or nothing goes this way.

    Args:
        latency: What was measured.
        conditions: What it was measured under.
        way: 0: forward; 1: in reverse.
    """
    directions = _directions(conditions, way)
    found = {name: _at(latency, share, directions) for name, share in _SHARES.items()}
    known = {name: each for name, each in found.items() if each is not None}
    return CsitLatencies(**known) if len(known) == len(_SHARES) else None


def _directions(conditions: Conditions, way: int) -> tuple[str, ...]:
    """Those of one way: each link has its directions one after the other, forward first."""
    ways = 2 if conditions.traffic.pattern == "bidirectional" else 1
    return conditions.load.directions[way::ways] if way < ways else ()


def _at(latency: Sequence[LatencyAtLoad], share: float, directions: Sequence[str]) -> CsitLatency | None:
    for each in latency:
        if each.share_ratio == share:
            links = [_of_link(measured) for measured in each.directions if measured.direction in directions]
            return _of_all([link for link in links if link is not None], len(directions))
    return None


def _of_link(direction: DirectionLatency) -> CsitLatency | None:
    least, mean, most = direction.least_us, direction.mean_us, direction.most_us
    if least is None or mean is None or most is None or direction.histogram is None:
        return None
    histogram = Histogram.decode(direction.histogram, direction.histogram_unit_us)
    text = direction.histogram if histogram.unit == 1.0 else Histogram.merged([histogram]).encode()
    return CsitLatency(min=least, avg=mean, max=most, hdrh=text)


def _of_all(links: Sequence[CsitLatency], expected: int) -> CsitLatency | None:
    if not links or len(links) != expected:
        return None
    if len(links) == 1:
        return links[0]
    histograms = [Histogram.decode(link.hdrh) for link in links]
    frames = [histogram.count for histogram in histograms]
    return CsitLatency(
        min=min(link.min for link in links),
        avg=sum(link.avg * count for link, count in zip(links, frames, strict=True)) / sum(frames),
        max=max(link.max for link in links),
        hdrh=Histogram.merged(histograms).encode(),
    )
