"""The types of `lossratio.trials` by their old name, for scripts written before version 0.3."""

from lossratio.trials import (
    Controller,
    DirectionCounters,
    Measurer,
    TrialInput,
    TrialOutput,
    TrialResult,
    run_search,
)

__all__ = [
    "Controller",
    "DirectionCounters",
    "Measurer",
    "TrialInput",
    "TrialOutput",
    "TrialResult",
    "run_search",
]
