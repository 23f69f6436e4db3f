"""What a soak test finds: the critical load, with its uncertainty and what it was computed from (PLRsearch)."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from lossratio.records import Rate, Ratio, Record, Seconds


class SoakLimit(str, Enum):
    """Why a critical load is only known to be on one side of a load."""

    AT_LEAST = "at least"
    """It may be above the maximum load, where nothing was measured."""
    AT_MOST = "at most"
    """It may be below the minimum load, where nothing was measured."""


class DensityPoint(Record):
    """A point of a distribution of the critical load."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Critical load."""
    density_per_fps: float = Field(ge=0.0)
    """Its probability density, per frame per second."""


class CurvePoint(Record):
    """A point of a fitted curve."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of each transmitting interface."""
    loss_ratio: Ratio
    """The loss ratio that is to be expected there."""


class FittedFunction(Record):
    """What one fitting function makes of the trials."""

    name: str
    """Name of the function, e.g. ``stretch``."""
    mean: Rate
    """Mean critical load."""
    stdev: Rate
    """Its standard deviation."""
    weight: Ratio
    """Its share in the combined estimate."""
    curve: tuple[CurvePoint, ...]
    """The curve that fits best."""
    posterior: tuple[DensityPoint, ...]
    """The distribution of the critical load, by load."""


class IntervalPoint(Record):
    """What was known about the critical load after some of the trials."""

    trials: int = Field(ge=1)
    """How many trials that were."""
    elapsed_s: Seconds
    """How long they took in all."""
    mean_per_interface_fps: float = Field(gt=0.0)
    """Mean critical load."""
    least_95_per_interface_fps: float = Field(gt=0.0)
    """Lower end of its 95 % interval."""
    most_95_per_interface_fps: float = Field(gt=0.0)
    """Upper end of its 95 % interval."""


class FitCheck(Record):
    """How well the model fits the trials; what is too much is among the reasons of a misfit."""

    chi_squared_per_trial: float | None
    """Chi-squared per trial around the likeliest Poisson curve; null: too few trials lost frames."""
    function_distance_stdevs: float
    """Distance of the functions' mean critical loads, in their standard deviations."""
    drift_ratio: float | None
    """Change of the capacity from the first to the last trial, as a share; null: too few trials lost frames."""
    drift_stdev_ratio: float | None
    """Standard deviation of the drift."""


class CriticalLoad(Record):
    """The critical load: the load at which the long-term loss ratio is the target loss ratio."""

    mean: Rate
    """Its mean."""
    stdev: Rate
    """Its standard deviation."""
    least_95: Rate
    """Lower end of its 95 % interval."""
    most_95: Rate
    """Upper end of its 95 % interval."""
    functions: tuple[FittedFunction, ...]
    """What the fitting functions make of the trials."""
    posterior: tuple[DensityPoint, ...]
    """The distribution of the critical load by load, the functions combined by their weights."""
    history: tuple[IntervalPoint, ...]
    """How the interval narrowed, trial by trial."""
    ended_by: str | None
    """What ended the search, e.g. ``timeout`` or ``precision``; null: it was interrupted."""
    limit: SoakLimit | None
    """On which side of the range of loads the critical load may be; null: it is inside."""
    misfit: tuple[str, ...]
    """Why the model does not fit the trials, so that the numbers must not be relied on; empty: it fits."""

    fit: FitCheck
    """How well the model fits."""

    @property
    def reason(self) -> str | None:
        """Why this is no regular result; None if it is one."""
        if self.misfit:
            return f"the model does not fit: {'; '.join(self.misfit)}"
        return None if self.limit is None else _LIMITS[self.limit]


_LIMITS = {
    SoakLimit.AT_LEAST: "the critical load may be above the maximum load: it is at least what is given",
    SoakLimit.AT_MOST: "the critical load may be below the minimum load: it is at most what is given",
}
