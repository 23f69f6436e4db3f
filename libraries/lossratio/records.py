"""The parts of result files: records with strict fields, and rates in all their units.

A field's name ends in its unit: ``_fps`` frames per second, ``_bps`` bits per second, ``_s`` seconds, ``_bytes``,
``_frames``, ``_ratio`` (dimensionless, 0 to 1); other numbers are counts of the things in the field's name.
"""

from datetime import datetime, timezone
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from lossratio.units import l1_bandwidth


class Record(BaseModel):
    """A part of a result file. It is immutable, and has no unknown fields and no numbers that JSON does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(timezone.utc)


UtcTime = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A moment; it is written as RFC 3339 in UTC."""

Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
"""A share of a whole, 0 to 1; not per cent."""

Seconds = Annotated[float, Field(ge=0.0)]
"""A duration."""

FrameCount = Annotated[int, Field(ge=0)]
"""A number of frames."""


class Rate(Record):
    """A frame rate; the three numbers are the same rate."""

    per_interface_fps: float = Field(ge=0.0)
    """Frames per second of each transmitting interface."""
    aggregate_fps: float = Field(ge=0.0)
    """Frames per second of all transmitting interfaces: per interface times the fixed aggregate factor."""
    aggregate_l1_bps: float = Field(ge=0.0)
    """Bits per second on the wire (layer 1: with preamble, start of frame delimiter and interframe gap), aggregate."""


def make_rate(per_interface: float, *, factor: float, frame_size: float) -> Rate:
    """A rate in all its units.

    Args:
        per_interface: Frames per second of each transmitting interface.
        factor: The aggregate divided by the rate of one interface: the number of transmitting interfaces, if all send
            the same load.
        frame_size: Average frame size in bytes, with the frame check sequence and the bytes that encapsulation adds.
    """
    aggregate = per_interface * factor
    return Rate(
        per_interface_fps=per_interface, aggregate_fps=aggregate, aggregate_l1_bps=l1_bandwidth(aggregate, frame_size)
    )
