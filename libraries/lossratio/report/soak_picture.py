"""The picture of a soak test: the fitted curves among the trials, and the distribution of the critical load."""

from __future__ import annotations

import math

from lossratio.report.model import SoakResult
from lossratio.report.plot import Axis, Plot, in_unit, legend, unit_of
from lossratio.report.search_picture import by_mark, goal_colour, trial_hint
from lossratio.report.soak import CriticalLoad
from lossratio.report.svg import drawing, text_at
from lossratio.units import format_ratio

_WIDTH, _HEIGHT = 900.0, 480.0
_LEFT, _RIGHT = 78.0, 880.0
_CURVES, _POSTERIOR = (30.0, 270.0), (320.0, 410.0)
_ROOM = 0.05


def draw_soak(result: SoakResult) -> str:
    """Draws loss over load with the fitted curves, and below it the distribution of the critical load.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is; an empty string if there is nothing to draw.
    """
    found = result.critical_load
    loads = [trial.load_per_interface_fps for trial in result.trials]
    if found is None or not loads:
        return ""
    loads += [point.load_per_interface_fps for point in found.posterior]
    room = _ROOM * (max(loads) - min(loads)) or _ROOM * max(loads)
    x = Axis(max(1.0, min(loads) - room), max(loads) + room, _LEFT, _RIGHT)
    prefix, scale = unit_of(x.high)
    curves = _curves(result, found, x, scale)
    posterior = _posterior(found, x, scale)
    labels = [
        text_at(4.0, 14.0, "loss ratio"),
        text_at(4.0, _POSTERIOR[0] - 12.0, "distribution of the critical load"),
        text_at((_LEFT + _RIGHT) / 2, _POSTERIOR[1] + 34.0, f"load per interface, {prefix}fps", text_anchor="middle"),
    ]
    swatches = [(each.name, goal_colour(index), 1.0) for index, each in enumerate(found.functions)]
    parts = [*labels, *curves.parts, *posterior.parts, *legend(by_mark(result.trials), swatches, _LEFT, _HEIGHT - 8.0)]
    return drawing(_WIDTH, _HEIGHT, f"Loss over load and critical load of {result.test.name}.", parts)


def _curves(result: SoakResult, found: CriticalLoad, x: Axis, scale: float) -> Plot:
    losses = [trial.loss_ratio for trial in result.trials if trial.loss_ratio > 0.0]
    lowest = min([*losses, result.target_loss_ratio])
    floor = 10.0 ** (math.floor(math.log10(lowest)) - 1.0)
    plot = Plot(x, Axis(floor, 1.0, _CURVES[1], _CURVES[0], is_logarithmic=True))
    ticks = [floor, *plot.y.ticks(8)[1:]]
    plot.frame(x.ticks(8), ticks, in_unit(scale), lambda loss: "none" if loss == floor else format_ratio(loss))
    plot.line([(x.low, result.target_loss_ratio), (x.high, result.target_loss_ratio)], "#777777", dash="6 3")
    for index, function in enumerate(found.functions):
        points = [(point.load_per_interface_fps, point.loss_ratio) for point in function.curve]
        if points:
            plot.line(points, goal_colour(index))
    for mark, trials in by_mark(result.trials).items():
        places = [(each.load_per_interface_fps, max(each.loss_ratio, floor), trial_hint(each)) for each in trials]
        plot.marks(mark, places)
    return plot


def _posterior(found: CriticalLoad, x: Axis, scale: float) -> Plot:
    highest = max((point.density_per_fps for point in found.posterior), default=0.0) or 1.0
    plot = Plot(x, Axis(0.0, 1.05 * highest, _POSTERIOR[1], _POSTERIOR[0]))
    plot.frame(x.ticks(8), [], in_unit(scale), in_unit(1.0))
    least, most = found.least_95.per_interface_fps, found.most_95.per_interface_fps
    plot.bands([(least, most, 0.0, plot.y.high)], "#0072B2", 0.15)
    if found.posterior:
        plot.line([(point.load_per_interface_fps, point.density_per_fps) for point in found.posterior], "#0072B2")
    mean = found.mean.per_interface_fps
    plot.line([(mean, 0.0), (mean, plot.y.high)], "#0072B2", width=1.0, dash="2 3")
    return plot
