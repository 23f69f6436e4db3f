"""From PLRsearch's estimate to what a soak test's result file holds of it."""

from __future__ import annotations

import math

import numpy as np

from lossratio.plrsearch import CombinedEstimate, CriticalLoadEstimate, FunctionEstimate
from lossratio.results import (
    Conditions,
    CriticalLoad,
    CurvePoint,
    DensityPoint,
    FitCheck,
    FittedFunction,
    IntervalPoint,
    SoakLimit,
)

_CURVE_POINTS = 121
_DENSITY_POINTS = 201
_BELOW_TARGET = 0.01
"""Share of the target loss ratio from which on curves are told."""
_TAIL = 5e-3
"""Probability that distributions are cut off at, on either side."""


def describe_critical_load(estimate: CriticalLoadEstimate, conditions: Conditions) -> CriticalLoad:
    """Everything about an estimate that a reader needs, with the points of its curves and distributions.

    Args:
        estimate: What the search found.
        conditions: What it was measured under.
    """
    low, high = estimate.interval(0.95)
    combined = estimate.combined
    densities = _density_loads(combined)
    curves = _curve_loads(estimate)
    misfit = estimate.misfit
    return CriticalLoad(
        mean=conditions.rate(estimate.mean),
        stdev=conditions.rate(estimate.stdev),
        least_95=conditions.rate(low),
        most_95=conditions.rate(high),
        functions=tuple(
            FittedFunction(
                name=function.name,
                mean=conditions.rate(function.mean),
                stdev=conditions.rate(function.stdev),
                weight=min(1.0, weight),
                curve=_curve(function, curves, _BELOW_TARGET * estimate.target_loss_ratio),
                posterior=_density(function, densities),
            )
            for function, weight in zip(combined.functions, combined.weights, strict=True)
        ),
        posterior=_density(combined, densities),
        history=tuple(
            IntervalPoint(
                trials=each.trials,
                elapsed_s=each.elapsed,
                mean_per_interface_fps=each.mean,
                least_95_per_interface_fps=each.low,
                most_95_per_interface_fps=each.high,
            )
            for each in estimate.history
        ),
        ended_by=None if estimate.stopped_by is None else estimate.stopped_by.value,
        limit=_limit(estimate),
        misfit=misfit.reasons,
        fit=FitCheck(
            chi_squared_per_trial=misfit.chi_squared,
            function_distance_stdevs=misfit.distance,
            drift_ratio=misfit.drift,
            drift_stdev_ratio=misfit.drift_stdev,
        ),
    )


def _limit(estimate: CriticalLoadEstimate) -> SoakLimit | None:
    if estimate.is_at_least_max_load:
        return SoakLimit.AT_LEAST
    return SoakLimit.AT_MOST if estimate.is_at_most_min_load else None


def _density_loads(combined: CombinedEstimate) -> list[float]:
    return [
        float(load) for load in np.linspace(combined.quantile(_TAIL), combined.quantile(1 - _TAIL), _DENSITY_POINTS)
    ]


def _density(estimate: FunctionEstimate | CombinedEstimate, loads: list[float]) -> tuple[DensityPoint, ...]:
    if loads[0] == loads[-1]:
        return ()
    return tuple(
        DensityPoint(load_per_interface_fps=load, density_per_fps=float(density))
        for load, density in zip(loads, estimate.density(loads), strict=True)
        if math.isfinite(density)
    )


def _curve_loads(estimate: CriticalLoadEstimate) -> list[float]:
    """Loads that are denser around the critical load, where curves bend."""
    centre, reach = estimate.mean, np.geomspace(1e-5, 1.0, _CURVE_POINTS // 2)
    below = centre - (centre - estimate.min_load) * reach
    above = centre + (estimate.max_load - centre) * reach
    return sorted({float(load) for load in (*below, centre, *above) if load > 0.0})


def _curve(function: FunctionEstimate, loads: list[float], least: float) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=float(loss))
        for load, loss in zip(loads, function.loss_ratio(loads), strict=True)
        if math.isfinite(loss) and loss >= least
    )
