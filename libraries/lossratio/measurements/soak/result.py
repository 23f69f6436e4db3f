"""The result of a soak test: the critical load, with its uncertainty and its sources (PLRsearch)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.records import FrameCount, Rate, Ratio, Record, Seconds
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
    """The trials are too few to show the target loss ratio: no load in the range of loads is excluded by them."""


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
    posterior: tuple[DensityPoint, ...]
    """The distribution of the critical load, by load."""
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


class IntervalPoint(Record):
    """The interval of the critical load after some of the trials."""

    trials: int = Field(ge=1)
    """Number of these trials."""
    elapsed_s: Seconds
    """Time that these trials took in all."""
    mean_per_interface_fps: float = Field(gt=0.0)
    """Mean critical load."""
    least_95_per_interface_fps: float = Field(gt=0.0)
    """Lower end of its 95 % interval."""
    most_95_per_interface_fps: float = Field(gt=0.0)
    """Upper end of its 95 % interval."""


class Combination(Record):
    """Both fitting functions together, by one way of weighting them."""

    weighting: str
    """``evidence``: by the probability of the trials under each function; ``equal``: half each."""
    mean: Rate
    """Mean critical load."""
    stdev: Rate
    """Its standard deviation, the functions' disagreement included."""


class GuardStatement(Record):
    """What frames at and just below the mean say about the target loss ratio, without any model."""

    verdict: str
    """``verified``: by these frames, in 10 trials or more, the loss ratio at the load is at most the target (if the
    critical load is at most the minimum load: more than the target). ``extrapolated``: they are too few to decide.
    ``contradicted``: below the interval the loss ratio is above the target.
    """
    load_per_interface_fps: float = Field(gt=0.0)
    """The load that the verdict and the loss ratio are about: the lowest load of these trials."""
    highest_load_per_interface_fps: float = Field(gt=0.0)
    """The highest load of these trials."""
    trials: int = Field(ge=0)
    """Number of these trials."""
    frames: FrameCount
    """Frames that they sent."""
    lost_frames: FrameCount
    """Frames that they lost."""
    burst_frames: float = Field(ge=1.0)
    """Frames that are lost together, by the scatter of the counts; it widens the bounds."""
    least_loss_ratio: Ratio
    """Lower end of the loss ratio's 95 % interval (Clopper-Pearson, for bursts)."""
    most_loss_ratio: Ratio
    """Its upper end."""
    extrapolation_factor: float = Field(ge=0.0)
    """The upper end divided by the target loss ratio."""
    lossy_trials: int | None = Field(default=None, ge=0)
    """Trials in which frames were lost; null: by an earlier version."""
    largest_burst_frames: float | None = None
    """The load is verified unless more frames than that are lost at a time, in fewer trials than one of
    ``unseen_burst_trials``; null: it is not verified, loss verifies it, or by an earlier version."""
    unseen_burst_trials: float | None = None
    """Losses that come in fewer than one of so many trials may be in none of these; null: there are no trials, or by an
    earlier version."""
    missing_frames: FrameCount | None
    """Frames more, lost as these, that would verify the load; null: no number would, or none is needed."""
    missing_trials: int | None = Field(default=None, ge=0)
    """Trials more that verifying takes, at least; null: by an earlier version."""
    missing_s: Seconds | None
    """Seconds of traffic at the load that these frames take; null likewise."""


class CsitCriticalLoad(Record):
    """What FD.io CSIT's code reports for the same trials: its own fitting functions, Monte Carlo and averages."""

    mean: Rate
    """Middle of exp(mean of the load's logarithm -/+ its standard deviation)."""
    stdev: Rate
    """Half the distance between these two loads."""
    stretch_mean: Rate
    """Exponential of the logarithm's mean under its stretch function."""
    erf_mean: Rate
    """The same under its erf function."""
    trials: int = Field(ge=0)
    """Number of trials that it is made of: all but the last one."""
    samples: int = Field(ge=2)
    """Samples of each integration, for each function; the seed is 0 each time."""


class Residual(Record):
    """The distance of one trial's loss from the likeliest curve."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of each transmitting interface."""
    stdevs: float
    """Distance of the capacity that explains the loss from the curve's own, in the model's standard deviations."""


class FitCheck(Record):
    """How well the model fits the trials; a value beyond its limit is among the reasons of a misfit."""

    chi_squared_per_trial: float | None
    """Chi-squared per trial around the likeliest Poisson curve; null: too few trials lost frames."""
    function_distance_stdevs: float
    """Distance of the functions' mean critical loads, in their standard deviations."""
    drift_ratio: float | None
    """Change of the capacity from the first to the last trial, as a share; null: too few trials lost frames."""
    drift_stdev_ratio: float | None
    """Standard deviation of the drift."""
    capacity_correlation: float | None = None
    """Correlation of the capacities of successive trials; null: too few trials lost frames, or an earlier version."""
    replicates_chi_squared: float | None = None
    """Chi-squared per degree of freedom of trials at equal loads: about 1 where they differ by chance only, so that the
    capacity does not vary; null: no loads are equal, or an earlier version."""
    replicates_freedom: int | None = None
    """Its degrees of freedom; null: by an earlier version."""
    described_below_fps: float | None = None
    """The functions describe the trials below that load (of each transmitting interface) only, as neither has the shape
    of the loss above; null: they describe all, or an earlier version."""


class CapacityShape(Record):
    """The critical load under one shape of the capacity's distribution over trials, by an earlier version."""

    name: str
    """``normal``, ``heavy tails`` (Student's t), ``exponential tails`` (Laplace's), ``slow trials`` (a share of trials
    is slower, by exponentially distributed sizes) or ``slow level`` (a share is slower, all by about one size)."""
    weight: Ratio
    """Its share in the estimate, by its evidence."""
    mean: Rate
    """Mean critical load; before a drift, if there is one."""
    stdev: Rate
    """Its standard deviation."""
    log_evidence: float
    """Natural logarithm of the probability of all counts under this shape, less that under the likeliest one."""
    parameters: dict[str, float]
    """Mean parameters by name; ratios are shares of the capacity, but ``slow_trials_ratio`` is one of the trials."""


class CapacityVariation(Record):
    """What the order of the trials shows: that the capacity drifts, or that successive trials are alike."""

    shapes: tuple[CapacityShape, ...] = ()
    """The shapes of its distribution; empty but in files of earlier versions."""
    correlation: float
    """Correlation of the capacities of successive trials; 0: none is seen."""
    independent_trials: float = Field(ge=0.0)
    """Number of independent trials that show as much as these."""
    drift_ratio: float
    """Change of the capacity from the beginning to the end, as a share of that at the beginning; 0: none is seen. The
    critical load is that at the end."""
    drift_stdev_ratio: float
    """Standard deviation of the drift."""
    drift_per_hour_ratio: float | None
    """The drift in an hour; null: the time is not known."""


class AllanDeviation(Record):
    """The Allan deviation of the capacity over an averaging time."""

    seconds: float = Field(gt=0.0)
    """The averaging time."""
    deviation_ratio: float = Field(ge=0.0)
    """The deviation, as a share of the capacity."""


class Averaging(Record):
    """How the capacity's noise averages out over time, and how long trials should be."""

    allan: tuple[AllanDeviation, ...]
    """Allan deviations of the capacities of trials in which loss was certain."""
    correlation_time_s: Seconds
    """Time after which capacities are alike to 1/e; 0: successive trials are independent."""
    recommended_duration_s: Seconds
    """Duration of trials that show a capacity of their own each: the correlation time, but no less than trials took."""


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
    """The estimates of the fitting functions."""
    posterior: tuple[DensityPoint, ...]
    """The distribution of the critical load by load, the functions combined by their weights."""
    history: tuple[IntervalPoint, ...]
    """How the interval narrowed, trial by trial."""
    ended_by: str | None
    """The cause of the search's end, e.g. ``timeout`` or ``precision``; null: it was interrupted."""
    limit: SoakLimit | None
    """On which side of the range of loads the critical load may be; null: it is inside."""
    misfit: tuple[str, ...]
    """Why the model does not fit the trials, so that nobody should rely on the numbers; empty: it fits."""

    fit: FitCheck
    """How well the model fits."""
    combinations: tuple[Combination, ...] = ()
    """Both ways of weighting the fitting functions; empty: by an earlier version."""
    guard: GuardStatement | None = None
    """What frames at and just below the mean say by themselves; null: by an earlier version."""
    csit: CsitCriticalLoad | None = None
    """What FD.io CSIT's code reports; null: the loads were not chosen as in CSIT."""
    residuals: tuple[Residual, ...] = ()
    """Trials in which loss was certain, in the order of measurement; empty: none, or by an earlier version."""
    averaging: Averaging | None = None
    """How long trials should be; null: the trials do not show it, or by an earlier version."""
    stopping_factor: float = Field(default=1.0, ge=1.0)
    """How much wider the interval is because the search could end when it was narrow; 1 without a precision."""
    variation: CapacityVariation | None = None
    """What the order of the trials shows; null: nothing, or by an earlier version."""

    @property
    def reason(self) -> str | None:
        """Why the result is irregular; None if it is regular."""
        if self.limit is SoakLimit.BEYOND_TRIALS:
            return _LIMITS[self.limit]
        if self.misfit:
            return f"the model does not fit: {'; '.join(self.misfit)}"
        return None if self.limit is None else _LIMITS[self.limit]


_LIMITS = {
    SoakLimit.AT_LEAST: "the critical load may be above the maximum load: it is at least what is given",
    SoakLimit.AT_MOST: "the critical load may be below the minimum load: it is at most what is given",
    SoakLimit.BEYOND_TRIALS: "the target loss ratio is beyond the trials: they sent too few frames to show it",
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
                raise ValueError("a soak test is irregular if and only if its critical load has a reason to be")
        return self


def critical_load_contradictions(said: CriticalLoad) -> Iterator[str]:
    """Means and standard deviations that differ from those of the functions, or shapes, mixed by their weights."""
    mixed: Sequence[FittedFunction | CapacityShape] = said.functions
    if said.variation is not None and said.variation.shapes:
        mixed = () if said.variation.drift_ratio else said.variation.shapes
    parts = [(part.weight, part.mean.per_interface_fps, part.stdev.per_interface_fps) for part in mixed]
    mean = sum(weight * own for weight, own, _ in parts)
    variance = sum(weight * (stdev**2 + (own - mean) ** 2) for weight, own, stdev in parts)
    checked = (("mean", said.mean, mean), ("stdev", said.stdev, math.sqrt(variance))) if parts else ()
    for name, rate, made in checked:
        # Each weight is at most 1, so the digits that were cut off are no more than a rounding error of the sum.
        if not math.isclose(rate.per_interface_fps, made, rel_tol=_MIXED_ROUNDING, abs_tol=_MIXED_ROUNDING * mean):
            yield f"critical_load.{name} is {rate.per_interface_fps!r}, and the functions make {made!r}"
    if said.least_95.per_interface_fps > said.most_95.per_interface_fps:
        yield "critical_load: least_95 is above most_95"
