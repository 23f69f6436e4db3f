"""Parts of FD.io CSIT's test cases of all types: numbers with units, rates, and the error for other results."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from lossratio.errors import ReportError
from lossratio.records import Rate


class CsitExportError(ReportError):
    """A result has another meaning in CSIT's files, or lacks a value that they need; the message names it."""


class CsitRecord(BaseModel):
    """A part of a CSIT test case."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CsitUnknown(CsitRecord):
    """Result of a failed test."""

    type: Literal["unknown"] = "unknown"


class CsitNumber(CsitRecord):
    """A number with its unit."""

    value: float
    unit: Literal["pps", "bps", "s"]


class CsitRate(CsitRecord):
    """An aggregate rate, in packets per second and as bandwidth on the wire (layer 1)."""

    rate: CsitNumber
    bandwidth: CsitNumber


def csit_rate(rate: Rate) -> CsitRate:
    """A rate in CSIT's form."""
    return CsitRate(
        rate=CsitNumber(value=rate.aggregate_fps, unit="pps"),
        bandwidth=CsitNumber(value=rate.aggregate_l1_bps, unit="bps"),
    )
