"""Frames lost while the SUT is reconfigured under traffic."""

from lossratio.measurements.reconfiguration.measure import (
    RECONFIGURATION_GOAL,
    ReconfigurationRequest,
    measure_reconfiguration_loss,
    reconfigure_duts,
)

__all__ = [
    "RECONFIGURATION_GOAL",
    "ReconfigurationRequest",
    "measure_reconfiguration_loss",
    "reconfigure_duts",
]
