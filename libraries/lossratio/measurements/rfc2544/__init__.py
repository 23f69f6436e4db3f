"""All tests of RFC 2544 over frame sizes, and their report in the form that the RFC asks for."""

from lossratio.measurements.rfc2544.modifiers import (
    Modifier as Modifier,
    ModifierReport as ModifierReport,
    modified as modified,
)
from lossratio.measurements.rfc2544.report import (
    rfc2544_report as rfc2544_report,
    write_rfc2544_report as write_rfc2544_report,
)
from lossratio.measurements.rfc2544.run import (
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
