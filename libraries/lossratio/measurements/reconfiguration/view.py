"""The view of the loss during a reconfiguration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from lossratio.measurements import CsitExportError, CsitNumber, CsitRate, CsitRecord, csit_rate
from lossratio.measurements.reconfiguration.measure import ReconfigurationResult
from lossratio.results import View, failure_line, rate_line


class CsitPackets(CsitRecord):
    """A whole number of frames."""

    value: int
    unit: Literal["packets"] = "packets"


class CsitLoss(CsitRecord):
    """Loss while the SUT was reconfigured."""

    packet: CsitPackets
    time: CsitNumber


class CsitReconf(CsitRecord):
    """Result of a reconfiguration test."""

    type: Literal["reconf"] = "reconf"
    aggregate_rate: CsitRate
    loss: CsitLoss


class ReconfigurationView(View[ReconfigurationResult]):
    """How the loss during a reconfiguration is shown. The only finding is the outcome."""

    csit_type = "reconf"

    def lines(self, result: ReconfigurationResult) -> Iterator[str]:
        """The loss, and the load."""
        if result.loss is None:
            yield failure_line(result)
            return
        lost = result.loss
        yield f"reconfiguration: {lost.lost_frames:,} frames lost, all that is sent in {lost.lost_time_s:.6g} s"
        yield rate_line("load", lost.load)

    def csit(self, result: ReconfigurationResult) -> CsitReconf:
        """The loss, and the load."""
        if result.loss is None:
            raise CsitExportError(f"{result.test.full_name} has no result to export.")
        lost = CsitPackets(value=result.loss.lost_frames)
        time = CsitNumber(value=result.loss.lost_time_s, unit="s")
        return CsitReconf(aggregate_rate=csit_rate(result.loss.load), loss=CsitLoss(packet=lost, time=time))
