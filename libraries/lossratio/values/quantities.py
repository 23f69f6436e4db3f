"""Quantities of requests: how values are read and written, and the unit at the end of their names in files.

Each field of a request has one of these types. Keywords, methods, checks, journals, result files and the schema follow
from it.
"""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from lossratio.values.units import (
    format_exact_duration,
    format_frame_rate,
    parse_duration,
    parse_frame_rate,
    parse_ratio,
    read_seconds,
)

EnumT = TypeVar("EnumT", bound=Enum)
_MOST_REPEATS = 1_000_000
_TRUTH = {"true": True, "false": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_FRACTION = re.compile(r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+][0-9]+)")


class Plain(str):
    """A text without quotes in a YAML file. Its field says whether it is a text, a number or a truth value."""

    __slots__ = ()


def resolved(value: Any) -> Any:
    """A value of a file whose field does not say what it is: texts without quotes may be numbers and truth values."""
    if isinstance(value, dict):
        return {name: resolved(each) for name, each in value.items()}
    if isinstance(value, list):
        return [resolved(each) for each in value]
    if not isinstance(value, Plain):
        return value

    text = str(value)
    # A text such as 00123 or 1234e56 is a serial number or a hash.
    with suppress(ValueError):
        # Python refuses thousands of digits.
        if _WHOLE.fullmatch(text):
            return int(text)
    if _FRACTION.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return _TRUTH.get(text.lower(), text)


RESOLVED = BeforeValidator(resolved)
"""Marks a field that may be anything, or a number as well as a text."""


@dataclass(frozen=True)
class Quantity:
    """The kind of a number in a request."""

    suffix: str
    """The unit at the end of the field's name in files."""
    write: Callable[[float], str]
    """Writes a value with its unit, for messages."""


def _parsed(parse: Callable[[Any], float]) -> BeforeValidator:
    """Reads numbers, texts and times. Other types are left to the field, whose error names its type."""

    def parsed(value: object) -> object:
        if isinstance(value, str | Real | timedelta) and not isinstance(value, bool):
            return parse(value)
        return value

    return BeforeValidator(parsed)


def _named(path: object) -> object:
    if isinstance(path, str) and not path.strip():
        raise ValueError("the path is empty. Name a file, or leave the field out")
    return path


def _checked_repeats(value: int) -> int:
    if value > _MOST_REPEATS:
        raise ValueError(f"{value} is too large; the largest number is {_MOST_REPEATS:,}.")
    return value


DURATION = Quantity("_s", format_exact_duration)
FRAME_RATE = Quantity("_per_interface_fps", format_frame_rate)
RATIO = Quantity("_ratio", "{:.4g}".format)
FRAMES = Quantity("_frames", "{:,}".format)

Duration = Annotated[float, _parsed(read_seconds), DURATION]
"""Seconds; also read from ``2 min`` and from a `timedelta`."""
FrameRate = Annotated[float, _parsed(parse_frame_rate), FRAME_RATE]
"""Frames per second per transmitting interface; also read from ``10 kfps``."""
Share = Annotated[float, _parsed(parse_ratio), RATIO]
"""A share of a whole; also read from ``0.5 %``."""
Frames = Annotated[int, FRAMES]
"""A number of frames of each transmitting interface."""
WITH_UNIT = WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
"""The schema of a quantity in a file that people write: a number, or a text with its unit."""
FileDuration = Annotated[float, BeforeValidator(parse_duration), WITH_UNIT]
"""A positive number of seconds in such a file."""
FileShare = Annotated[float, BeforeValidator(parse_ratio), WITH_UNIT]
"""A share of a whole in such a file."""
FilePath = Annotated[Path, BeforeValidator(_named)]
"""The path of a file or folder, which is not empty."""
Choice = Annotated[EnumT, Field(strict=False)]
"""A member of an enumeration; also read from its value."""
Repeats = Annotated[int, Field(ge=1), AfterValidator(_checked_repeats)]
"""A number of repetitions."""


def quantity_of(annotation: Any, metadata: Sequence[Any] = ()) -> Quantity | None:
    """The quantity of a pydantic field, also if the field may be None; None: a plain value."""
    own = next((item for item in metadata if isinstance(item, Quantity)), None)
    parts = (quantity_of(part, getattr(part, "__metadata__", ())) for part in get_args(annotation))
    return own or next((part for part in parts if part is not None), None)
