"""How trials start: at the full load at once, or after a ramp."""

from __future__ import annotations

from lossratio.results.conditions import Conditions
from lossratio.results.timing import Deviation


def with_ramp(conditions: Conditions, ramp: float) -> Conditions:
    """The same conditions, with a ramp before the counted part of every trial.

    Args:
        conditions: Conditions without one.
        ramp: Its length, in seconds; 0: there is none.
    """
    if not ramp:
        return conditions
    timing = conditions.timing
    deviation = Deviation(
        step="start of the traffic",
        rfc2544="the trial begins with its load",
        instead=f"a ramp of {ramp:g} s before it, in which the load grows from nothing and no frame is counted",
    )
    changed = timing.model_copy(update={"ramp_s": ramp, "deviations": (*timing.deviations, deviation)})
    return conditions.model_copy(update={"timing": changed})
