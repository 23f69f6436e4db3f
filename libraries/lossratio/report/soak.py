"""What a soak test finds: the critical load, with its uncertainty and what it was computed from (PLRsearch)."""

from __future__ import annotations

from pydantic import Field

from lossratio.report.record import Rate, Ratio, Record


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


class DensityPoint(Record):
    """A point of the posterior distribution."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Critical load."""
    density_per_fps: float = Field(ge=0.0)
    """Its probability density, per frame per second."""


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
    """The distribution of the critical load, by load."""
