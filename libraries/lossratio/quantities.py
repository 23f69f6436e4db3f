"""Quantities of requests: how values are read and written, and the unit at the end of their names in files.

Each field of a request has one of these types. Keywords, methods, checks, journals, result files and the schema follow
from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BeforeValidator, Field

from lossratio.units import format_frame_rate, parse_duration, parse_frame_rate, parse_ratio

EnumT = TypeVar("EnumT", bound=Enum)


@dataclass(frozen=True)
class Quantity:
    """The kind of a number in a request."""

    suffix: str
    """The unit at the end of the field's name in files."""
    write: Callable[[float], str]
    """Writes a value with its unit, for messages."""


def _seconds(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return parse_duration(value)
    return value


def _parsed(parse: Callable[[str], float]) -> BeforeValidator:
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


DURATION = Quantity("_s", "{:g} s".format)
FRAME_RATE = Quantity("_per_interface_fps", format_frame_rate)
RATIO = Quantity("_ratio", "{:.4g}".format)
FRAMES = Quantity("_frames", "{:,}".format)

Duration = Annotated[float, BeforeValidator(_seconds), DURATION]
"""Seconds; also read from ``2 min`` and from a `timedelta`."""
FrameRate = Annotated[float, _parsed(parse_frame_rate), FRAME_RATE]
"""Frames per second per transmitting interface; also read from ``10 kpps``."""
Share = Annotated[float, _parsed(parse_ratio), RATIO]
"""A share of a whole; also read from ``0.5 %``."""
Frames = Annotated[int, FRAMES]
"""A number of frames of each transmitting interface."""
Choice = Annotated[EnumT, Field(strict=False)]
"""A member of an enumeration; also read from its value."""
Repeats = Annotated[int, Field(ge=1)]
"""A number of repetitions."""


def quantity_of(annotation: Any, metadata: Sequence[Any] = ()) -> Quantity | None:
    """The quantity of a pydantic field, also if the field may be None; None: a plain value."""
    own = next((item for item in metadata if isinstance(item, Quantity)), None)
    parts = (quantity_of(part, getattr(part, "__metadata__", ())) for part in get_args(annotation))
    return own or next((part for part in parts if part is not None), None)
