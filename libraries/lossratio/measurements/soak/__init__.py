"""Soak test: the critical load, found by counts."""

from lossratio.measurements.soak.description import timed as timed
from lossratio.measurements.soak.measure import (
    TARGET_LOSS_RATIO as TARGET_LOSS_RATIO,
    Soak as Soak,
    SoakPreset as SoakPreset,
    SoakProgress as SoakProgress,
    SoakRequest as SoakRequest,
    batch_seen as batch_seen,
    find_critical_load as find_critical_load,
    warm_start_from as warm_start_from,
)
from lossratio.measurements.soak.result import SoakResult as SoakResult
