"""Latency as FD.io CSIT has it: at 90, 50 and 10 % of PDR and at the minimum load, in whole microseconds."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.report.csit_model import CsitLatencies, CsitLatency
from lossratio.report.histograms import Histogram
from lossratio.report.latency import DirectionLatency, LatencyAtLoad

_SHARES = {"pdr_90": 0.9, "pdr_50": 0.5, "pdr_10": 0.1, "pdr_0": 0.0}


def csit_latencies(latency: Sequence[LatencyAtLoad], direction: int) -> CsitLatencies | None:
    """The latencies of one direction at all of CSIT's loads; None where one of them is missing.

    Args:
        latency: What was measured.
        direction: 0 for the first direction, 1 for the other.
    """
    found = {name: _at(latency, share, direction) for name, share in _SHARES.items()}
    known = {name: each for name, each in found.items() if each is not None}
    return CsitLatencies(**known) if len(known) == len(_SHARES) else None


def _at(latency: Sequence[LatencyAtLoad], share: float, direction: int) -> CsitLatency | None:
    for each in latency:
        if each.share_ratio == share and len(each.directions) > direction:
            return _latency(each.directions[direction])
    return None


def _latency(direction: DirectionLatency) -> CsitLatency | None:
    least, mean, most = direction.least_us, direction.mean_us, direction.most_us
    if least is None or mean is None or most is None or direction.histogram is None:
        return None
    histogram = Histogram.decode(direction.histogram, direction.histogram_unit_us)
    text = direction.histogram if histogram.unit == 1.0 else histogram.in_microseconds().encode()
    return CsitLatency(min=least, avg=mean, max=most, hdrh=text)
