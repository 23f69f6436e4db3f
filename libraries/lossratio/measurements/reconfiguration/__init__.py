"""Frames lost while the SUT is reconfigured under traffic."""

from lossratio.measurements.reconfiguration.measure import (
    RECONFIGURATION_GOAL as RECONFIGURATION_GOAL,
    Reconfiguration as Reconfiguration,
    ReconfigurationRequest as ReconfigurationRequest,
    ReconfigurationResult as ReconfigurationResult,
    check_reconfigurable as check_reconfigurable,
    measure_reconfiguration_loss as measure_reconfiguration_loss,
    reconfigure_duts as reconfigure_duts,
)

KIND = Reconfiguration
"""The class of the kind, for the registry."""
