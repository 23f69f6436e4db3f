"""Soak test: the critical load, found by PLRsearch."""

from lossratio.measurements.soak.description import guard_statement as guard_statement
from lossratio.measurements.soak.inferred import guard_in_words as guard_in_words
from lossratio.measurements.soak.measure import (
    TARGET_LOSS_RATIO as TARGET_LOSS_RATIO,
    Soak as Soak,
    SoakPreset as SoakPreset,
    SoakProgress as SoakProgress,
    SoakRequest as SoakRequest,
    find_critical_load as find_critical_load,
    warm_start_from as warm_start_from,
)
from lossratio.measurements.soak.result import GuardStatement as GuardStatement, SoakResult as SoakResult
