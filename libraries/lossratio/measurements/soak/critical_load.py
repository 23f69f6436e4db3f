"""PLRsearch's estimates as a soak test reports them: after each trial, and in the result file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lossratio.measurements import seconds_in_words, trial_in_words
from lossratio.measurements.soak.result import (
    CriticalLoad,
    CurvePoint,
    DensityPoint,
    FitCheck,
    FittedFunction,
    IntervalPoint,
    SoakLimit,
)
from lossratio.plrsearch import CombinedEstimate, CriticalLoadEstimate, FunctionEstimate, IntervalAfterTrial
from lossratio.results import Conditions
from lossratio.trials import TrialResult

_CURVE_POINTS = 121
_DENSITY_POINTS = 201
_BELOW_TARGET = 0.01
"""Smallest loss ratio that curves show, as a share of the target loss ratio."""
_TAIL = 5e-3
"""Probability of the tails that are cut off from distributions, on either side."""


@dataclass(frozen=True)
class SoakProgress:
    """The progress of a soak test after a trial.

    Attributes:
        number: Number of trials so far, with those of an interrupted run.
        trial: The last trial.
        latest: The latest estimate; None: no estimate yet.
        time_left: Seconds that the remaining trials may take at most.
        set_aside: Why the last trial is no evidence; None: it is evidence.
    """

    number: int
    trial: TrialResult
    latest: IntervalAfterTrial | None
    time_left: float
    set_aside: str | None = None

    def line(self) -> str:
        """The line that the console shows."""
        latest = self.latest
        interval = None if latest is None else (latest.mean, latest.low, latest.high)
        line = soak_progress_line(self.number, self.trial, interval, self.time_left)
        return line if self.set_aside is None else f"{line}  (set aside: {self.set_aside})"


OnSoakProgress = Callable[[SoakProgress], None]


def soak_progress_line(
    number: int, trial: TrialResult, interval: tuple[float, float, float] | None, time_left: float
) -> str:
    """The line that the console shows after a trial of a soak test.

    Args:
        number: The trial's number.
        trial: The trial.
        interval: Mean critical load and its 95 % interval, in frames per second per interface; None: not known yet.
        time_left: Seconds that the remaining trials may take at most.
    """
    known = "critical load not known yet"
    if interval is not None:
        mean, low, high = (f"{load:,.{_digits(interval[2] - interval[1])}f}" for load in interval)
        known = f"critical load {mean} fps ({low} to {high})"
    return f"{trial_in_words(number, trial)}  {known}  at most {seconds_in_words(time_left)} left"


def _digits(width: float) -> int:
    """Digits behind the point that loads need so that an interval of this width shows two significant digits."""
    return 0 if width >= 10.0 else min(3, 1 - math.floor(math.log10(max(width, 1e-3))))


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
    """Loads of a curve's points; they are denser around the critical load, where curves bend."""
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
