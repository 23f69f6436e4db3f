"""The types of `lossratio.trials` under their old name, for scripts that were written before version 0.3."""

from lossratio.trials import Controller, DirectionCounters, Measurer, TrialInput, TrialOutput, TrialResult, run_search

__all__ = ["Controller", "DirectionCounters", "Measurer", "TrialInput", "TrialOutput", "TrialResult", "run_search"]
