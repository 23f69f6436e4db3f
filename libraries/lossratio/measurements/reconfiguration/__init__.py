"""Frames lost while the SUT is reconfigured under traffic."""

from lossratio.measurements.reconfiguration.measure import (
    RECONFIGURATION_GOAL,
    Reconfiguration,
    ReconfigurationRequest,
    ReconfigurationResult,
    check_reconfigurable,
    measure_reconfiguration_loss,
    reconfigure_duts,
)

KIND = Reconfiguration
"""The class of the kind, for the registry."""

__all__ = [
    "KIND",
    "RECONFIGURATION_GOAL",
    "Reconfiguration",
    "ReconfigurationRequest",
    "ReconfigurationResult",
    "check_reconfigurable",
    "measure_reconfiguration_loss",
    "reconfigure_duts",
]
