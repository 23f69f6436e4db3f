"""The result of a soak test: the critical load, with its uncertainty and its sources (PLRsearch)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.plrsearch import CsitEstimate, FitCheck, GuardStatement, IntervalPoint
from lossratio.records import Rate, Ratio, Record
from lossratio.results import MaxLoad, Outcome, TestResult
from lossratio.trials import Seconds

_MIXED_ROUNDING = 1e-6
"""A smaller relative difference of a mixture counts as rounding. A standard deviation may be a millionth of the
mean."""


class SoakLimit(str, Enum):
    """Why only a limit on one side of the critical load is known."""

    AT_LEAST = "at least"
    """It may be above the maximum load, where nothing was measured."""
    AT_MOST = "at most"
    """It may be below the minimum load, where nothing was measured."""
    BEYOND_TRIALS = "beyond the trials"
    """The trials do not show the load with the target loss ratio. It may be above the maximum load."""


class CurvePoint(Record):
    """A point of a fitted curve."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of each transmitting interface."""
    loss_ratio: Ratio
    """The expected loss ratio at this load."""


class FittedFunction(Record):
    """The estimate of one fitting function."""

    name: str
    """Name of the function, e.g. ``stretch``; ``local`` is a line through the trials near the target."""
    mean: Rate
    """Mean critical load."""
    stdev: Rate
    """Its standard deviation."""
    weight: Ratio
    """Its share in the combined estimate."""
    curve: tuple[CurvePoint, ...]
    """The best fitting curve."""
    log_evidence: float | None = None
    """Natural logarithm of the probability of all counts under this function. Here and below, null: for
    the line near the target (``local``), which has no such figure."""
    mrr_per_interface_fps: float | None = None
    """The likeliest limiting forwarding rate."""
    spread_per_interface_fps: float | None = None
    """The likeliest width of the knee."""
    capacity_stdev_per_interface_fps: float | None = None
    """The likeliest standard deviation of the capacity between trials; 0 if the likelihood has none."""
    at_min_ratio: Ratio | None = None
    """Probability that the critical load is the minimum load or less."""
    at_max_ratio: Ratio | None = None
    """Probability that the critical load is the maximum load or more."""


class SeenBucket(Record):
    """A bucket or a buffer: frames that pass only once in each trial, however long it is."""

    frames_per_interface: float = Field(gt=0.0)
    """Number of these frames."""
    may_be_larger: bool
    """Whether short trials lost nothing, so that the bucket may hold more."""
    long_run: Rate | None
    """At least this rate passes in the long run; null: not known, because the bucket may hold more."""


class SeenPauses(Record):
    """Pauses of which the losses show the length."""

    per_hour: float = Field(gt=0.0)
    """Mean number of pauses in an hour."""
    length_s: Seconds
    """Their mean length."""
    ring_frames: float | None
    """Frames that the ring holds that they overflow; null: the losses do not show it."""


class CriticalLoad(Record):
    """The critical load: the load at which the long-term loss ratio is the target loss ratio."""

    mean: Rate
    """Its mean in the model: that of the functions together, even if less passes in the long run."""
    median: Rate
    """Its median, which is stated because the mean may be between two clusters; or less, if less passes in the long
    run."""
    stdev: Rate
    """Its standard deviation."""
    least_95: Rate
    """Lower end of its 95 % interval."""
    most_95: Rate
    """Upper end of its 95 % interval."""
    functions: tuple[FittedFunction, ...]
    """The estimates of the fitting functions."""
    history: tuple[IntervalPoint, ...]
    """The interval after each trial, as it became narrower."""
    ended_by: str | None
    """Why the search ended, e.g. ``timeout`` or ``precision``; null: it was interrupted."""
    limit: SoakLimit | None
    """The end of the range of loads beyond which the critical load may be; null: it is inside."""
    misfit: tuple[str, ...]
    """The signs that the model does not fit, so that the estimate is not reliable; empty: the model fits."""

    fit: FitCheck
    """How well the model fits."""
    guard: GuardStatement
    """The frames that verify a load. If no load is verified, the frames at and just below the median."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports; null: the loads were not chosen as in CSIT."""
    chance_stdev_ratio: float = Field(ge=0.0)
    """The part of the uncertainty that more nights reduce, as a standard deviation and a share of the load."""
    shared_stdev_ratio: float = Field(ge=0.0)
    """The part that all soak tests of the device share, such as the error of the line's shape; in the same form."""
    stopping_factor: float = Field(default=1.0, ge=1.0)
    """Factor by which the interval was widened, because the search could end when it was narrow; 1 without a
    precision."""
    verified: Rate | None = None
    """The highest load that is verified without any model: the first answer. Null: no load is verified."""
    supported: Rate | None = None
    """The load that is stated if no load is verified: one that no trials speak against. Null: a load is
    verified."""
    trial_s: Seconds | None
    """Seconds of most trials; null: no trial counts."""
    rarest_s: Seconds
    """Random losses that occur once in this many seconds were almost certainly (95 %) seen in the trials near the
    stated load. Rarer losses may have gone unseen."""
    doubt: str | None = None
    """Why the stated load may be wrong, other than too few frames without loss; null: nothing speaks against the
    number."""
    process: tuple[str, ...] = ()
    """How frames are lost, in sentences."""
    bucket: SeenBucket | None = None
    """A bucket or a buffer of the SUT; null: none is seen."""
    pauses: SeenPauses | None = None
    """The pauses in which the SUT loses frames; null: none are known well enough."""

    @property
    def stated(self) -> Rate:
        """The load that is stated: the verified load, or one that nothing speaks against."""
        return self.verified or self.supported or self.estimate

    @property
    def stated_as(self) -> str:
        """What the stated load is, in a few words."""
        if self.verified is not None:
            return "highest verified load"
        if self.supported is not None:
            return "load not contradicted"
        return self.estimated_as

    @property
    def estimate(self) -> Rate:
        """The model's estimate of the critical load."""
        return self.median

    @property
    def estimated_as(self) -> str:
        """What the model's estimate is, in a few words."""
        if self.reason is not None:
            return "doubtful estimate"
        return "estimate (median)"

    @property
    def is_estimate(self) -> bool:
        """Whether the stated load is the model's estimate. If not, the estimate's deviation is not that of the load."""
        return self.verified is None and self.supported is None

    @property
    def reason(self) -> str | None:
        """Why the result is irregular; None if it is regular."""
        if self.limit is SoakLimit.BEYOND_TRIALS:
            return _LIMITS[self.limit]
        if self.misfit:
            return f"do not rely on the number: {'; '.join(self.misfit)}"
        if self.doubt is not None and self.limit is None:
            return self.doubt
        if self.limit is None:
            return None
        return _LIMITS[self.limit]


_LIMITS = {
    SoakLimit.AT_LEAST: "its interval ends at the maximum load, and the critical load may be above it",
    SoakLimit.AT_MOST: "its interval ends at the minimum load, and the critical load may be below it",
    SoakLimit.BEYOND_TRIALS: "the trials do not reach the target loss ratio, and do not show its load",
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
                    "a soak test is irregular if and only if its critical load has a reason"
                )
        return self


def critical_load_contradictions(said: CriticalLoad) -> Iterator[str]:
    """Means and standard deviations that differ from the weighted mixture of the functions' values."""
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
        # Each weight is at most 1, so the omitted digits matter no more than rounding of the sum.
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
