"""All tests of RFC 2544 over frame sizes, and their report in the form that the RFC asks for."""

from lossratio.measurements.rfc2544.modifiers import Modifier, ModifierReport, modified
from lossratio.measurements.rfc2544.report import REPORT_FORMAT, Rfc2544Report, rfc2544_report, write_rfc2544_report
from lossratio.measurements.rfc2544.run import (
    ALL_TESTS,
    FULL,
    QUICK,
    Rfc2544Part,
    Rfc2544Request,
    Rfc2544Run,
    Rfc2544Settings,
    Rfc2544Test,
    forecast_of,
    run_rfc2544,
)

__all__ = [
    "ALL_TESTS",
    "FULL",
    "QUICK",
    "REPORT_FORMAT",
    "Modifier",
    "ModifierReport",
    "Rfc2544Part",
    "Rfc2544Report",
    "Rfc2544Request",
    "Rfc2544Run",
    "Rfc2544Settings",
    "Rfc2544Test",
    "forecast_of",
    "modified",
    "rfc2544_report",
    "run_rfc2544",
    "write_rfc2544_report",
]
