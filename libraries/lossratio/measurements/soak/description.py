"""The critical load in the form of result files: estimates with units, and the points of curves and distributions."""

from __future__ import annotations

import math

import numpy as np

from lossratio.measurements.soak.result import (
    AllanDeviation,
    Averaging,
    CapacityVariation,
    Combination,
    CriticalLoad,
    CsitCriticalLoad,
    CurvePoint,
    DensityPoint,
    FitCheck,
    FittedFunction,
    GuardStatement,
    IntervalPoint,
    Residual,
    SoakLimit,
)
from lossratio.plrsearch import CombinedEstimate, CriticalLoadEstimate, FunctionEstimate, Guard
from lossratio.results import Conditions

_CURVE_POINTS = 121
_KNEE_POINTS = 41
_KNEE = 3.0
"""How far above the forwarding rate the knee reaches, in widths of the knee and standard deviations of the capacity."""
_DENSITY_POINTS = 201
_BELOW_TARGET = 0.01
"""Smallest loss ratio that curves show, as a share of the target loss ratio."""
_TAIL = 5e-3
"""Probability of the tails that are cut off from distributions, on either side."""


def describe_critical_load(estimate: CriticalLoadEstimate, conditions: Conditions) -> CriticalLoad:
    """The estimate in the form of result files, with the points of its curves and distributions.

    Args:
        estimate: The result of the search.
        conditions: The conditions of the measurement.
    """
    low, high = estimate.interval(0.95)
    combined = estimate.combined
    densities = _density_loads(combined)
    curves = _curve_loads(estimate)
    misfit, described = estimate.misfit, estimate.description
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
                curve=_curve(function, curves, _BELOW_TARGET * estimate.question.target_loss_ratio),
                posterior=_density(function, densities),
                log_evidence=function.log_evidence,
                mrr_per_interface_fps=function.mode.mrr,
                spread_per_interface_fps=function.mode.spread,
                capacity_stdev_per_interface_fps=function.mode.deviation,
                at_min_ratio=min(1.0, function.p_at_min),
                at_max_ratio=min(1.0, function.p_at_max),
            )
            for function, weight in zip(combined.functions, combined.weights, strict=True)
        ),
        posterior=_density(combined, densities),
        history=tuple(
            IntervalPoint(
                trials=point.trials,
                elapsed_s=point.elapsed,
                mean_per_interface_fps=point.mean,
                least_95_per_interface_fps=point.low,
                most_95_per_interface_fps=point.high,
            )
            for point in estimate.history
        ),
        ended_by=None if estimate.stopped_by is None else estimate.stopped_by.value,
        limit=_limit(estimate),
        misfit=misfit.reasons,
        fit=FitCheck(
            chi_squared_per_trial=misfit.chi_squared,
            function_distance_stdevs=misfit.distance,
            drift_ratio=misfit.drift,
            drift_stdev_ratio=misfit.drift_stdev,
            capacity_correlation=misfit.correlation,
            replicates_chi_squared=described.replicates.ratio,
            replicates_freedom=described.replicates.freedom,
            described_below_fps=described.below,
        ),
        combinations=tuple(
            Combination(weighting=weighting.value, mean=conditions.rate(both.mean), stdev=conditions.rate(both.stdev))
            for weighting, both in estimate.combinations.items()
        ),
        guard=guard_statement(estimate.guard, conditions),
        csit=_csit(estimate, conditions),
        residuals=tuple(Residual(load_per_interface_fps=load, stdevs=distance) for load, distance in misfit.residuals),
        averaging=_averaging(estimate),
        stopping_factor=estimate.stopping_factor,
        variation=_variation(estimate),
    )


def _csit(estimate: CriticalLoadEstimate, conditions: Conditions) -> CsitCriticalLoad | None:
    csit = estimate.csit
    if csit is None:
        return None
    return CsitCriticalLoad(
        mean=conditions.rate(csit.mean),
        stdev=conditions.rate(csit.stdev),
        stretch_mean=conditions.rate(csit.stretch_mean),
        erf_mean=conditions.rate(csit.erf_mean),
        trials=csit.trials,
        samples=csit.samples,
    )


def guard_statement(guard: Guard, conditions: Conditions) -> GuardStatement:
    """A statement about a load in the form of result files.

    Args:
        guard: The statement.
        conditions: The conditions of the measurement.
    """
    bounds, missing = guard.bounds, guard.missing_frames
    return GuardStatement(
        verdict=guard.verdict.value,
        load_per_interface_fps=guard.load,
        highest_load_per_interface_fps=guard.reported_load,
        trials=bounds.trials,
        frames=round(bounds.frames),
        lost_frames=round(bounds.lost),
        burst_frames=bounds.burst,
        least_loss_ratio=bounds.least,
        most_loss_ratio=bounds.most,
        extrapolation_factor=guard.extrapolation,
        lossy_trials=bounds.lossy,
        largest_burst_frames=guard.largest_burst,
        unseen_burst_trials=guard.unseen_every,
        missing_frames=None if missing is None else math.ceil(missing),
        missing_trials=guard.missing_trials,
        missing_s=None if missing is None else missing / conditions.rate(guard.load).aggregate_fps,
    )


def _averaging(estimate: CriticalLoadEstimate) -> Averaging | None:
    averaging = estimate.averaging
    if averaging is None:
        return None
    return Averaging(
        allan=tuple(
            AllanDeviation(seconds=seconds, deviation_ratio=deviation)
            for seconds, deviation in averaging.allan_deviations
        ),
        correlation_time_s=averaging.correlation_time,
        recommended_duration_s=averaging.duration,
    )


def _variation(estimate: CriticalLoadEstimate) -> CapacityVariation | None:
    order, pace = estimate.description.order, estimate.pace
    if not (order.drift or order.correlation):
        return None
    hours = None if pace is None else pace.period * len(estimate.counts) / 3600.0
    return CapacityVariation(
        correlation=order.correlation,
        independent_trials=estimate.description.independent_trials,
        drift_ratio=order.change,
        drift_stdev_ratio=order.change_stdev,
        drift_per_hour_ratio=None if hours is None else order.change / hours,
    )


def _limit(estimate: CriticalLoadEstimate) -> SoakLimit | None:
    if estimate.is_beyond_trials:
        return SoakLimit.BEYOND_TRIALS
    if estimate.is_at_least_max_load:
        return SoakLimit.AT_LEAST
    return SoakLimit.AT_MOST if estimate.is_at_most_min_load else None


def _density_loads(estimate: CombinedEstimate) -> list[float]:
    return [
        float(load) for load in np.linspace(estimate.quantile(_TAIL), estimate.quantile(1 - _TAIL), _DENSITY_POINTS)
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
    """Loads of a curve's points; they are denser around the critical load, where curves bend."""
    centre, reach = estimate.mean, np.geomspace(1e-5, 1.0, _CURVE_POINTS // 2)
    below = centre - (centre - estimate.question.min_load) * reach
    above = centre + (estimate.question.max_load - centre) * reach
    mode = max(estimate.functions.values(), key=lambda function: function.log_evidence).mode
    knee = np.linspace(centre, mode.mrr + _KNEE * (mode.spread + mode.deviation), _KNEE_POINTS)
    return sorted({float(load) for load in (*below, centre, *above, *knee) if load > 0.0})


def _curve(function: FunctionEstimate, loads: list[float], least: float) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=float(loss))
        for load, loss in zip(loads, function.loss_ratio(loads), strict=True)
        if math.isfinite(loss) and loss >= least
    )
