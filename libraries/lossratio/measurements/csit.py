"""Parts of FD.io CSIT's test cases of all types: rates, and the error for results that mean something else there."""

from typing import Any

from lossratio.errors import ReportError
from lossratio.records import Rate


class CsitExportError(ReportError):
    """A result has another meaning in CSIT's files, or lacks a value that they need; the message names it."""


def csit_rate(rate: Rate) -> dict[str, Any]:
    """An aggregate rate in CSIT's form: packets per second, and bandwidth on the wire (layer 1)."""
    return {
        "rate": {"value": rate.aggregate_fps, "unit": "pps"},
        "bandwidth": {"value": rate.aggregate_l1_bps, "unit": "bps"},
    }
