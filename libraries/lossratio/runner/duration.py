"""Durations on the command line."""

from __future__ import annotations

import click

from lossratio.units import parse_duration


class _Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration with a unit, in seconds."""

    name = "duration"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads it."""
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = _Duration()
"""A duration such as ``2h`` or ``30 s``, in seconds."""
