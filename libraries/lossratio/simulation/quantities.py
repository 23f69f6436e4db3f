"""The types of the models' fields: numbers in Python, quantities with units in a topology file (``50 kfps``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from lossratio.units import parse_duration, parse_frame_rate, parse_ratio

STRICT = ConfigDict(extra="forbid")
"""For every model: arguments that it does not have are refused, not ignored."""


def _from_text(parse: Callable[[str], float]) -> BeforeValidator:
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


FrameRate = Annotated[float, _from_text(parse_frame_rate), Field(gt=0, allow_inf_nan=False)]
"""Frames per second, more than none."""

Seconds = Annotated[float, _from_text(parse_duration), Field(gt=0, allow_inf_nan=False)]
"""A time span in seconds, more than none."""

Frames = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A number of frames."""

Ratio = Annotated[float, _from_text(parse_ratio), Field(ge=0, le=1)]
"""A share, 0 to 1."""

PositiveRatio = Annotated[float, _from_text(parse_ratio), Field(gt=0, le=1)]
"""A share, more than 0, at most 1."""

ProperRatio = Annotated[float, _from_text(parse_ratio), Field(ge=0, lt=1)]
"""A share, 0 to less than 1."""

RelativeChange = Annotated[float, Field(gt=-1, allow_inf_nan=False)]
"""A share by which something changes, of either sign."""
