"""Quantities with units on the command line."""

from __future__ import annotations

from collections.abc import Callable

import click

from lossratio.units import parse_duration, parse_frame_rate, parse_ratio


class _Quantity(click.ParamType):  # type: ignore[type-arg]
    """A quantity with a unit, as a plain number."""

    def __init__(self, name: str, parse: Callable[[str | float], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads it."""
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = _Quantity("duration", parse_duration)
"""A duration such as ``2h`` or ``30 s``, in seconds."""

FRAME_RATE = _Quantity("rate", parse_frame_rate)
"""A frame rate such as ``10 kpps``, in frames per second."""

RATIO = _Quantity("ratio", parse_ratio)
"""A ratio such as ``0.1 %`` or ``1e-7``."""
