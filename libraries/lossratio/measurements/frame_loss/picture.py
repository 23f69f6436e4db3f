"""The graph of frame loss rate over load that RFC 2544, section 26.3 asks for."""

from __future__ import annotations

from lossratio.drawing import MARKS, Axis, Plot, drawing, text_at
from lossratio.results import FrameLoss, LossAtLoad
from lossratio.units import format_frame_rate, format_ratio

_WIDTH, _HEIGHT = 900.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 30.0, 250.0
_COLOUR = "#0072B2"
_ROOM = 1.05
"""How much higher than the largest loss the axis goes."""
_LEAST = 0.01
"""Loss ratio that the axis goes up to at least."""


def draw_frame_loss(found: FrameLoss, test_name: str) -> str:
    """Draws the loss rate over the load in per cent of the maximum load.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    highest = max(_LEAST, *(each.frame_loss_ratio for each in found.loads)) * _ROOM
    plot = Plot(Axis(0.0, 100.0, _LEFT, _RIGHT), Axis(0.0, 100.0 * highest, _BOTTOM, _TOP))
    plot.frame(plot.x.ticks(10), plot.y.ticks(6), _number, _number)
    points = [(100.0 * each.share_of_max_load_ratio, 100.0 * each.frame_loss_ratio) for each in found.loads]
    plot.line(points, _COLOUR)
    marks = [(x, y, _hint(each)) for (x, y), each in zip(points, found.loads, strict=True)]
    plot.marks(MARKS[0], marks)
    middle = (_LEFT + _RIGHT) / 2
    captions = [
        text_at(4.0, 14.0, "frame loss rate, %"),
        text_at(middle, _BOTTOM + 38.0, "load, % of the maximum load", text_anchor="middle"),
    ]
    return drawing(_WIDTH, _HEIGHT, f"Frame loss rate over load, {test_name}.", [*captions, *plot.parts])


def _hint(each: LossAtLoad) -> str:
    load = format_frame_rate(each.load.per_interface_fps)
    return f"{load} per interface for {each.duration_s:g} s: loss {format_ratio(each.frame_loss_ratio)}"


def _number(value: float) -> str:
    return f"{value:.4g}"
