"""The critical load in the form of result files: loads with units, and the points of curves."""

from __future__ import annotations

import math
from dataclasses import replace

from lossratio import plrsearch
from lossratio.measurements.soak.result import (
    CriticalLoad,
    CurvePoint,
    FittedFunction,
    PlrsearchEstimate,
    SeenBucket,
    SeenPauses,
)
from lossratio.plrsearch import CountedStatement
from lossratio.results import Conditions

_CURVE_POINTS = 161
_BELOW_TARGET = 0.01
"""Smallest loss ratio that curves show, as a share of the target loss ratio."""


def describe_critical_load(found: plrsearch.CountedLoad, conditions: Conditions) -> CriticalLoad:
    """What was found, in the form of result files."""
    rate = conditions.rate
    statement = timed(found.statement, conditions)
    reason = found.reason
    if reason is not None:
        reason = reason.replace(str(found.statement), str(statement))

    # Record: what was found, as it stands in a result.
    return CriticalLoad(
        stated=rate(found.stated),
        verified=None if found.verified is None else rate(found.verified),
        contradicted=None if found.contradicted is None else rate(found.contradicted),
        statement=statement,
        reason=reason,
        limit=found.limit,
        line=None if found.line is None else rate(found.line),
        plrsearch=None if found.model is None else _plrsearch(found.model, conditions),
        csit=found.csit,
        rarest_s=found.rarest_s,
        trial_s=found.trial_s,
        long_s=found.long_s,
        clump_frames=found.clump,
        batch_frames=found.batch,
        once_frames=found.once,
        change_ratios=found.changes,
        bucket=_bucket(found, conditions),
        pauses=_pauses(found),
        process=found.sentences,
        ended_by=None if found.stopped_by is None else found.stopped_by.value,
    )


def _bucket(found: plrsearch.CountedLoad, conditions: Conditions) -> SeenBucket | None:
    if found.bucket is None:
        return None
    return SeenBucket(
        frames_per_interface=found.bucket.frames, long_run=conditions.rate(found.bucket.long_run)
    )


def _pauses(found: plrsearch.CountedLoad) -> SeenPauses | None:
    pause = found.single_pause
    if pause is None:
        return None
    return SeenPauses(length_s=pause.length_s, ring_frames=pause.ring_frames)


def _plrsearch(model: plrsearch.PoissonEstimate, conditions: Conditions) -> PlrsearchEstimate:
    low, high = model.interval(0.95)

    # Record: the model's estimate, as it stands in a result.
    return PlrsearchEstimate(
        mean=conditions.rate(model.mean),
        stdev=conditions.rate(model.stdev),
        median=conditions.rate(model.quantile(0.5)),
        least_95=conditions.rate(low),
        most_95=conditions.rate(high),
        functions=tuple(_fitted(function, conditions) for function in model.functions),
    )


def _fitted(function: plrsearch.FunctionEstimate, conditions: Conditions) -> FittedFunction:
    return FittedFunction(
        name=function.function.name,
        mean=conditions.rate(function.mean),
        stdev=conditions.rate(function.stdev),
        mrr_per_interface_fps=function.mrr,
        spread_per_interface_fps=function.spread,
        curve=_curve(function),
    )


def _curve(function: plrsearch.FunctionEstimate) -> tuple[CurvePoint, ...]:
    """Points of the likeliest curve; they are denser around the critical load, where curves bend."""
    import numpy as np

    question, centre = function.question, function.mean
    reach = np.geomspace(1e-5, 1.0, _CURVE_POINTS // 2)
    below = centre - (centre - question.min_load) * reach
    above = centre + (question.max_load - centre) * reach
    loads = sorted({float(load) for load in (*below, centre, *above)})
    return tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=float(loss))
        for load, loss in zip(loads, function.loss_ratio(loads), strict=True)
        if math.isfinite(loss) and loss >= _BELOW_TARGET * question.target_loss_ratio
    )


def timed(statement: CountedStatement, conditions: Conditions) -> CountedStatement:
    """The statement, with the time that it would take to send the frames that it lacks."""
    if statement.missing_frames is None:
        return statement
    rate = conditions.rate(statement.load_per_interface_fps).aggregate_fps
    return replace(statement, missing_s=statement.missing_frames / rate)
