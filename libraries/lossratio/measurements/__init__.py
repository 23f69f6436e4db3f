"""Measurements: what all kinds share, and a folder for each kind."""

from lossratio.measurements.measurement import Measurement, TestPlace, perform, what_stopped
from lossratio.measurements.planned import PlannedTrials
from lossratio.measurements.progress import OnProgress, Progress
from lossratio.measurements.progress_text import progress_line, soak_progress_line
from lossratio.measurements.span import Span
from lossratio.measurements.warm_up import WarmUp, run_warm_up, warm_up_like

__all__ = [
    "Measurement",
    "OnProgress",
    "PlannedTrials",
    "Progress",
    "Span",
    "TestPlace",
    "WarmUp",
    "perform",
    "progress_line",
    "run_warm_up",
    "soak_progress_line",
    "warm_up_like",
    "what_stopped",
]
