"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .report import rfc2544_report as rfc2544_report, write_rfc2544_report as write_rfc2544_report
from .run import (
    ALL_TESTS as ALL_TESTS,
    FULL as FULL,
    QUICK as QUICK,
    Rfc2544Part as Rfc2544Part,
    Rfc2544Request as Rfc2544Request,
    Rfc2544Run as Rfc2544Run,
    Rfc2544Settings as Rfc2544Settings,
    Rfc2544Test as Rfc2544Test,
    forecast_of as forecast_of,
    run_rfc2544 as run_rfc2544,
)
