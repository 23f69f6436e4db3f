"""The view of a frame loss rate: with the graph over load that RFC 2544, section 26.3, requires."""

from __future__ import annotations

from collections.abc import Iterator

from lossratio.drawing import MARKS, Axis, Plot, drawing, text_at
from lossratio.measurements.frame_loss.measure import FrameLoss, FrameLossResult, LossAtLoad
from lossratio.results import LABEL_WIDTH, Picture, View, failure_line, load_per_interface
from lossratio.units import format_frame_rate, format_ratio

_WIDTH, _HEIGHT = 900.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 30.0, 250.0
_COLOUR = "#0072B2"
_ROOM = 1.05
"""Upper end of the axis, as a multiple of the largest loss."""
_LEAST = 0.01
"""Loss ratio that the axis always reaches."""


class FrameLossView(View[FrameLossResult]):
    """How a frame loss rate is shown. It is a curve, so no single rate stands for it."""

    quantity = "frame loss rate"

    def lines(self, result: FrameLossResult) -> Iterator[str]:
        """A line for each load."""
        if result.frame_loss is None:
            yield failure_line(result)
            return
        yield f"frame loss rate, from the maximum load downwards ({load_per_interface(result.max_load)})"
        for loss in result.frame_loss.loads:
            share = format_ratio(loss.share_of_max_load_ratio)
            unsent = f", {loss.unsent_frames:,} unsent" if loss.unsent_frames else ""
            load = f"{loss.load.per_interface_fps:>12,.0f} fps per interface"
            yield f"  {share:<{LABEL_WIDTH}}  {load}  loss {format_ratio(loss.frame_loss_ratio)}{unsent}"

    def pictures(self, result: FrameLossResult) -> Iterator[Picture]:
        """The graph."""
        if result.frame_loss is not None:
            yield Picture(
                "Frame loss rate",
                draw_frame_loss(result.frame_loss, result.test.name),
                "RFC 2544, section 26.3: trials from the maximum load downwards, until two in a row lose nothing.",
            )


def draw_frame_loss(frame_loss: FrameLoss, test_name: str) -> str:
    """Draws the loss rate over the load in per cent of the maximum load.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    highest = max(_LEAST, *(loss.frame_loss_ratio for loss in frame_loss.loads)) * _ROOM
    plot = Plot(Axis(0.0, 100.0, _LEFT, _RIGHT), Axis(0.0, 100.0 * highest, _BOTTOM, _TOP))
    plot.frame(plot.x.ticks(10), plot.y.ticks(6), _number, _number)
    points = [(100.0 * loss.share_of_max_load_ratio, 100.0 * loss.frame_loss_ratio) for loss in frame_loss.loads]
    plot.line(points, _COLOUR)
    marks = [(x, y, _hint(loss)) for (x, y), loss in zip(points, frame_loss.loads, strict=True)]
    plot.marks(MARKS[0], marks)
    middle = (_LEFT + _RIGHT) / 2
    captions = [
        text_at(4.0, 14.0, "frame loss rate, %"),
        text_at(middle, _BOTTOM + 38.0, "load, % of the maximum load", text_anchor="middle"),
    ]
    return drawing(_WIDTH, _HEIGHT, f"Frame loss rate over load, {test_name}.", [*captions, *plot.parts])


def _hint(loss: LossAtLoad) -> str:
    load = format_frame_rate(loss.load.per_interface_fps)
    return f"{load} per interface for {loss.duration_s:g} s: loss {format_ratio(loss.frame_loss_ratio)}"


def _number(value: float) -> str:
    return f"{value:.4g}"
