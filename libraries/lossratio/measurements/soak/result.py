"""The result of a soak test: the critical load, with its uncertainty and its sources (PLRsearch)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.plrsearch import (
    CapacityVariation,
    CsitEstimate,
    FitCheck,
    GuardStatement,
    IntervalPoint,
)
from lossratio.records import Rate, Ratio, Record
from lossratio.results import MaxLoad, Outcome, TestResult

_MIXED_ROUNDING = 1e-6
"""Relative difference of a mixture that counts as rounding: its standard deviation may be a millionth of its mean."""


class SoakLimit(str, Enum):
    """Why a critical load is only known to be on one side of a load."""

    AT_LEAST = "at least"
    """It may be above the maximum load, where nothing was measured."""
    AT_MOST = "at most"
    """It may be below the minimum load, where nothing was measured."""
    BEYOND_TRIALS = "beyond the trials"
    """The trials do not show at which load the target loss ratio is: it may be above the maximum load."""


class DensityPoint(Record):
    """A point of a distribution of the critical load, by an earlier version."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Critical load."""
    density_per_fps: float = Field(ge=0.0)
    """Its probability density, per frame per second."""


class CurvePoint(Record):
    """A point of a fitted curve."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of each transmitting interface."""
    loss_ratio: Ratio
    """The expected loss ratio at this load."""


class FittedFunction(Record):
    """The estimate of one fitting function."""

    name: str
    """Name of the function, e.g. ``stretch``."""
    mean: Rate
    """Mean critical load."""
    stdev: Rate
    """Its standard deviation."""
    weight: Ratio
    """Its share in the combined estimate."""
    curve: tuple[CurvePoint, ...]
    """The best fitting curve."""
    posterior: tuple[DensityPoint, ...] = ()
    """The distribution of the critical load by load; empty but in files of earlier versions."""
    log_evidence: float | None = None
    """Natural logarithm of the probability of all counts under this function; null: by an earlier version."""
    mrr_per_interface_fps: float | None = None
    """The likeliest limiting forwarding rate; null, here and below: by an earlier version."""
    spread_per_interface_fps: float | None = None
    """The likeliest width of the knee."""
    capacity_stdev_per_interface_fps: float | None = None
    """The likeliest standard deviation of the capacity between trials; 0 if the likelihood has none."""
    at_min_ratio: Ratio | None = None
    """Probability that the critical load is the minimum load or less."""
    at_max_ratio: Ratio | None = None
    """Probability that the critical load is the maximum load or more."""


class CriticalLoad(Record):
    """The critical load: the load at which the long-term loss ratio is the target loss ratio."""

    mean: Rate
    """Its mean."""
    median: Rate | None = None
    """Its median, the load that is stated: the mean may be between two clusters. Null: by an earlier version, which
    stated the mean."""
    stdev: Rate
    """Its standard deviation."""
    least_95: Rate
    """Lower end of its 95 % interval."""
    most_95: Rate
    """Upper end of its 95 % interval."""
    functions: tuple[FittedFunction, ...]
    """The estimates of the fitting functions."""
    posterior: tuple[DensityPoint, ...] = ()
    """The distribution of the critical load by load; empty but in files of earlier versions."""
    history: tuple[IntervalPoint, ...]
    """How the interval narrowed, trial by trial."""
    ended_by: str | None
    """The cause of the search's end, e.g. ``timeout`` or ``precision``; null: it was interrupted."""
    limit: SoakLimit | None
    """On which side of the range of loads the critical load may be; null: it is inside."""
    misfit: tuple[str, ...]
    """Why nobody should rely on the numbers: the model does not fit, or there are too few trials; empty: it fits."""

    fit: FitCheck
    """How well the model fits."""
    guard: GuardStatement | None = None
    """What frames at and just below the stated load say by themselves; null: by an earlier version."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports; null: the loads were not chosen as in CSIT."""
    stopping_factor: float = Field(default=1.0, ge=1.0)
    """How much wider the interval is because the search could end when it was narrow; 1 without a precision."""
    variation: CapacityVariation | None = None
    """What the order of the trials shows; null: nothing, or by an earlier version."""

    @property
    def stated(self) -> Rate:
        """The load that is stated; see `median`."""
        return self.median or self.mean

    @property
    def stated_as(self) -> str:
        """What the stated load is, in a word."""
        if self.median is None:
            return "mean"
        return "median"

    @property
    def reason(self) -> str | None:
        """Why the result is irregular; None if it is regular."""
        if self.limit is SoakLimit.BEYOND_TRIALS:
            return _LIMITS[self.limit]
        if self.misfit:
            return f"do not rely on the number: {'; '.join(self.misfit)}"
        if self.limit is None:
            return None
        return _LIMITS[self.limit]


_LIMITS = {
    SoakLimit.AT_LEAST: "the critical load may be above the maximum load, where its interval ends",
    SoakLimit.AT_MOST: "the critical load may be below the minimum load, where its interval ends",
    SoakLimit.BEYOND_TRIALS: "the target loss ratio is beyond the trials: they do not show at which load it is",
}


class SoakResult(TestResult):
    """The result of a soak test: a search for the critical load."""

    kind: Literal["soak"] = "soak"
    """The kind of the result."""
    target_loss_ratio: Ratio
    """The loss ratio at the critical load."""
    settings: dict[str, JsonValue]
    """The search's other settings, such as the likelihood."""
    min_load: Rate
    """The smallest load of the search."""
    max_load: MaxLoad
    """The largest load of the search."""
    critical_load: CriticalLoad | None
    """The critical load; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_critical_load(self) -> SoakResult:
        if (self.outcome is Outcome.FAILED) != (self.critical_load is None):
            raise ValueError("a critical load is missing if and only if the measurement failed")
        if self.critical_load is not None:
            regular = self.critical_load.reason is None
            if (self.outcome is Outcome.MEASURED) != regular:
                raise ValueError(
                    "a soak test is irregular if and only if its critical load has a reason to be"
                )
        return self


def critical_load_contradictions(said: CriticalLoad) -> Iterator[str]:
    """Means and standard deviations that differ from those of the functions, mixed by their weights."""
    parts = [
        (part.weight, part.mean.per_interface_fps, part.stdev.per_interface_fps)
        for part in said.functions
    ]
    mean = sum(weight * own for weight, own, _ in parts)
    variance = sum(weight * (stdev**2 + (own - mean) ** 2) for weight, own, stdev in parts)
    checked: Iterable[tuple[str, Rate, float]] = ()
    if parts:
        checked = (("mean", said.mean, mean), ("stdev", said.stdev, math.sqrt(variance)))

    for name, rate, made in checked:
        # Each weight is at most 1, so the digits that were cut off are no more than a rounding error of the sum.
        if not math.isclose(
            rate.per_interface_fps, made, rel_tol=_MIXED_ROUNDING, abs_tol=_MIXED_ROUNDING * mean
        ):
            yield f"critical_load.{name} is {rate.per_interface_fps!r}, and the functions make {made!r}"

    ends = [
        rate.per_interface_fps
        for rate in (said.least_95, said.median, said.most_95)
        if rate is not None
    ]
    if ends != sorted(ends):
        yield "critical_load: least_95, median and most_95 are not in order"
