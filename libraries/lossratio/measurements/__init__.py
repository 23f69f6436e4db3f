"""Measurements: what all kinds share, and a folder for each kind."""

from lossratio.measurements.csit import CsitExportError, CsitNumber, CsitRate, CsitRecord, CsitUnknown, csit_rate
from lossratio.measurements.measure import (
    MEMORY_REST,
    MEMORY_SECONDS,
    InWords,
    MeasuredKind,
    PlannedKind,
    PlannedTrials,
    measure,
    run_warm_up,
    warm_up_like,
)
from lossratio.measurements.measurement import Additions, Measurement, Span, TestPlace, perform, what_stopped
from lossratio.measurements.progress import (
    OnProgress,
    Progress,
    heading,
    progress_line,
    seconds_in_words,
    status_line,
    trial_in_words,
)
from lossratio.measurements.request import (
    NOT_IN_FILES,
    AfterThroughput,
    Audience,
    Request,
    Settings,
    SettingsOf,
    WarmUp,
)
from lossratio.measurements.spread import SECONDS, Spread

__all__ = [
    "MEMORY_REST",
    "MEMORY_SECONDS",
    "NOT_IN_FILES",
    "SECONDS",
    "Additions",
    "AfterThroughput",
    "Audience",
    "CsitExportError",
    "CsitNumber",
    "CsitRate",
    "CsitRecord",
    "CsitUnknown",
    "InWords",
    "MeasuredKind",
    "Measurement",
    "OnProgress",
    "PlannedKind",
    "PlannedTrials",
    "Progress",
    "Request",
    "Settings",
    "SettingsOf",
    "Span",
    "Spread",
    "TestPlace",
    "WarmUp",
    "csit_rate",
    "heading",
    "measure",
    "perform",
    "progress_line",
    "run_warm_up",
    "seconds_in_words",
    "status_line",
    "trial_in_words",
    "warm_up_like",
    "what_stopped",
]
