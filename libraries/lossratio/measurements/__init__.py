"""Measurements: what all kinds share, and a folder for each kind."""

from lossratio.measurements.csit import CsitExportError, CsitNumber, CsitRate, CsitRecord, CsitUnknown, csit_rate
from lossratio.measurements.measure import (
    InWords,
    MeasuredKind,
    PlannedKind,
    PlannedTrials,
    Request,
    WarmUp,
    known_throughput,
    measure,
    run_warm_up,
    warm_up_like,
)
from lossratio.measurements.measurement import Measurement, Span, TestPlace, perform, what_stopped
from lossratio.measurements.progress import (
    OnProgress,
    Progress,
    heading,
    progress_line,
    seconds_in_words,
    status_line,
    trial_in_words,
)

__all__ = [
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
    "Span",
    "TestPlace",
    "WarmUp",
    "csit_rate",
    "heading",
    "known_throughput",
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
