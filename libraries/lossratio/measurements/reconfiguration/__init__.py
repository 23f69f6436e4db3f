"""Frames lost while the SUT is reconfigured under traffic."""

from lossratio.measurements.reconfiguration.measure import (
    RECONFIGURATION_GOAL,
    Reconfiguration,
    ReconfigurationRequest,
    measure_reconfiguration_loss,
    reconfigure_duts,
)
from lossratio.measurements.reconfiguration.result import ReconfigurationResult

__all__ = [
    "RECONFIGURATION_GOAL",
    "Reconfiguration",
    "ReconfigurationRequest",
    "ReconfigurationResult",
    "measure_reconfiguration_loss",
    "reconfigure_duts",
]
