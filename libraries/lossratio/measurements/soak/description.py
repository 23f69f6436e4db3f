"""The critical load in the form of result files: estimates with units, and the points of curves."""

import math
from dataclasses import replace

import numpy as np

from lossratio.measurements.soak.result import (
    CriticalLoad,
    CurvePoint,
    FittedFunction,
    SeenBucket,
    SeenPauses,
    SoakLimit,
)
from lossratio.plrsearch import CriticalLoadEstimate, GuardStatement, LocalFit, Posterior
from lossratio.results import Conditions

_HOUR = 3600.0
_CURVE_POINTS = 121
_KNEE_POINTS = 41
_KNEE = 3.0
"""How far the knee extends above the forwarding rate, in widths of the knee and standard deviations of the capacity."""
_ABOVE_TARGET = 1000.0
"""Largest loss ratio up to which a line is drawn with many points, as a multiple of the target."""
_BELOW_TARGET = 0.01
"""Smallest loss ratio that curves show, as a share of the target loss ratio."""


def describe_critical_load(estimate: CriticalLoadEstimate, conditions: Conditions) -> CriticalLoad:
    """The estimate in the form of result files, with the points of its curves."""
    low, high = estimate.interval(0.95)
    curves = _curve_loads(estimate)
    least = _BELOW_TARGET * estimate.question.target_loss_ratio
    chance, shared = estimate.chance_and_shared
    guard = timed(estimate.guard, conditions)
    doubt = estimate.doubt
    if doubt is not None:
        doubt = doubt.replace(str(estimate.guard), str(guard))
    verified = None if estimate.verified is None else conditions.rate(estimate.verified)
    supported = None
    if estimate.verified is None and estimate.stated != estimate.median:
        supported = conditions.rate(estimate.stated)

    functions = tuple(
        _fitted(function, weight, curves, least, conditions)
        for function, weight in zip(estimate.functions.values(), estimate.weights, strict=True)
    )

    # Record: the estimate as it stands in a result.
    return CriticalLoad(
        mean=conditions.rate(estimate.mean),
        median=conditions.rate(estimate.median),
        stdev=conditions.rate(estimate.stdev),
        least_95=conditions.rate(low),
        most_95=conditions.rate(high),
        functions=functions,
        history=estimate.history,
        ended_by=None if estimate.stopped_by is None else estimate.stopped_by.value,
        limit=_limit(estimate),
        misfit=estimate.misfit.reasons,
        fit=estimate.misfit.fit,
        guard=guard,
        csit=estimate.csit,
        chance_stdev_ratio=chance,
        shared_stdev_ratio=shared,
        stopping_factor=estimate.stopping_factor,
        verified=verified,
        supported=supported,
        trial_s=estimate.trial_s,
        rarest_s=estimate.rarest_s,
        doubt=doubt,
        process=estimate.sentences,
        bucket=_bucket(estimate, conditions),
        pauses=_pauses(estimate),
    )


def _bucket(estimate: CriticalLoadEstimate, conditions: Conditions) -> SeenBucket | None:
    bucket = estimate.description.bucket
    if bucket is None:
        return None
    return SeenBucket(
        frames_per_interface=bucket.frames,
        may_be_larger=not bucket.has_lost,
        long_run=conditions.rate(bucket.rate) if bucket.has_lost else None,
    )


def _pauses(estimate: CriticalLoadEstimate) -> SeenPauses | None:
    pauses = estimate.description.stated_pauses
    if pauses is None:
        return None
    return SeenPauses(
        per_hour=_HOUR / pauses.every_s,
        length_s=pauses.length_s,
        ring_frames=pauses.known_ring_frames,
    )


def _fitted(
    function: Posterior | LocalFit,
    weight: float,
    loads: list[float],
    least: float,
    conditions: Conditions,
) -> FittedFunction:
    """A fitting function, or the line near the target, which lacks the parameters of a whole curve."""
    fitted = FittedFunction(
        name=function.name,
        mean=conditions.rate(function.mean),
        stdev=conditions.rate(function.stdev),
        weight=min(1.0, weight),
        curve=_curve(function, loads, least),
        at_min_ratio=min(1.0, function.p_at_min),
        at_max_ratio=min(1.0, function.p_at_max),
    )

    if isinstance(function, LocalFit):
        return fitted
    return fitted.model_copy(
        update={
            "log_evidence": function.log_evidence,
            "mrr_per_interface_fps": float(function.mode.mrr),
            "spread_per_interface_fps": float(function.mode.spread),
            "capacity_stdev_per_interface_fps": float(function.mode.deviation),
        }
    )


def timed(guard: GuardStatement, conditions: Conditions) -> GuardStatement:
    """The statement, with the time that it would take to send the frames that it lacks."""
    if guard.missing_frames is None:
        return guard
    seconds = guard.missing_frames / conditions.rate(guard.load_per_interface_fps).aggregate_fps
    return replace(guard, missing_s=seconds)


def _limit(estimate: CriticalLoadEstimate) -> SoakLimit | None:
    if estimate.is_beyond_trials:
        return SoakLimit.BEYOND_TRIALS
    if estimate.is_at_least_max_load:
        return SoakLimit.AT_LEAST
    if estimate.is_at_most_min_load:
        return SoakLimit.AT_MOST
    return None


def _curve_loads(estimate: CriticalLoadEstimate) -> list[float]:
    """Loads of a curve's points; they are denser around the critical load, where curves bend."""
    centre = estimate.median
    reach = np.geomspace(1e-5, 1.0, _CURVE_POINTS // 2)
    below = centre - (centre - estimate.question.min_load) * reach
    above = centre + (estimate.question.max_load - centre) * reach
    local = estimate.description.local
    if local is not None:
        most = min(local.load_of(_ABOVE_TARGET), estimate.question.max_load)
    else:
        mode = estimate.description.best.mode
        most = float(mode.mrr + _KNEE * (mode.spread + mode.deviation))
    knee = np.linspace(centre, most, _KNEE_POINTS)
    return sorted({float(load) for load in (*below, centre, *above, *knee) if load > 0.0})


def _curve(
    function: Posterior | LocalFit, loads: list[float], least: float
) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=float(loss))
        for load, loss in zip(loads, function.loss_ratio(loads), strict=True)
        if math.isfinite(loss) and loss >= least
    )
