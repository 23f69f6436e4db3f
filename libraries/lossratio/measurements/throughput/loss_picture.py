"""The picture of loss over load: every trial, the loss that each goal allows, and the relevant bounds.

Loss ratios are on a logarithmic axis; trials without loss are on a line of their own below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lossratio.drawing import (
    Axis,
    Mark,
    Plot,
    by_mark,
    drawing,
    in_unit,
    legend,
    series_colour,
    text_at,
    trial_hint,
    unit_of,
)
from lossratio.measurements.throughput.result import GoalReport, ThroughputResult
from lossratio.measurements.throughput.search_picture import History, Window, windows_of
from lossratio.results import Trial
from lossratio.units import format_ratio

_WIDTH, _HEIGHT = 900.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 78.0, 880.0, 30.0, 230.0
_GAP = 62.0
_DECADES_BELOW = 1.0
"""Distance of the line of trials without loss below the smallest loss, in decades."""


def draw_loss(result: ThroughputResult, history: History) -> str:
    """Draws loss over load: of all trials, and close-ups of the loads around the goals' last bounds.

    Args:
        result: The search.
        history: The search's `bounds_history`.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    windows = windows_of(result, history)
    prefix, scale = unit_of(max(window.high for window in windows))
    floor = _smallest(result)
    width = (_RIGHT - _LEFT - _GAP * (len(windows) - 1)) / len(windows)
    marked = by_mark(result.trials)
    parts = [text_at(4.0, 14.0, "trial loss ratio")]
    for place, window in enumerate(windows):
        left = _LEFT + place * (width + _GAP)
        parts += _panel(result.goals, marked, window, (left, left + width), floor, scale)
    middle = (_LEFT + _RIGHT) / 2
    parts.append(text_at(middle, _BOTTOM + 35.0, f"load per interface, {prefix}fps", text_anchor="middle"))
    goals = [
        (f"{report.goal.name}: allowed loss, bounds", series_colour(i), 1.0) for i, report in enumerate(result.goals)
    ]
    parts += legend(marked, goals, _LEFT, _BOTTOM + 60.0)
    return drawing(_WIDTH, _HEIGHT, f"Loss ratio over load per interface, {result.test.name}.", parts)


def _smallest(result: ThroughputResult) -> float:
    """The place of a loss ratio of zero on the axis."""
    losses = [trial.loss_ratio for trial in result.trials] + [report.goal.loss_ratio for report in result.goals]
    smallest = min((loss for loss in losses if loss > 0.0), default=0.01)
    return float(10.0 ** (math.floor(math.log10(min(smallest, 0.01))) - _DECADES_BELOW))


def _panel(
    goals: Sequence[GoalReport],
    marked: Mapping[Mark, Sequence[Trial]],
    window: Window,
    extent: tuple[float, float],
    floor: float,
    scale: float,
) -> list[str]:
    plot = Plot(
        Axis(window.low, window.high, *extent, window.is_logarithmic),
        Axis(floor, 1.0, _BOTTOM - 8.0, _TOP, is_logarithmic=True),
    )
    ticks = [floor, *plot.y.ticks(7)[1:]]
    plot.frame(plot.x.ticks(int((extent[1] - extent[0]) / 70)), ticks, in_unit(scale), lambda loss: _loss(loss, floor))
    for index, report in enumerate(goals):
        _draw_goal(plot, report, series_colour(index), floor)
    for mark, trials in marked.items():
        plot.marks(mark, _places(trials, window, floor))
    return plot.parts


def _loss(loss: float, floor: float) -> str:
    return "none" if loss == floor else format_ratio(loss)


def _draw_goal(plot: Plot, report: GoalReport, colour: str, floor: float) -> None:
    allowed = max(report.goal.loss_ratio, floor)
    plot.line([(plot.x.low, allowed), (plot.x.high, allowed)], colour, dash="6 3")
    outcome = report.result
    for bound in () if outcome is None else (outcome.relevant_lower_bound, outcome.relevant_upper_bound):
        if bound is not None and plot.x.holds(bound.per_interface_fps):
            plot.line([(bound.per_interface_fps, floor), (bound.per_interface_fps, 1.0)], colour, width=1.2)


def _places(trials: Sequence[Trial], window: Window, floor: float) -> Iterator[tuple[float, float, str]]:
    """Places of trials: load, loss ratio and hint. Several trials at one place have one mark and one hint."""
    hints: dict[tuple[float, float], list[str]] = {}
    for trial in trials:
        if window.holds(trial.load_per_interface_fps):
            place = (trial.load_per_interface_fps, max(trial.loss_ratio, floor))
            hints.setdefault(place, []).append(trial_hint(trial))
    for (load, loss), texts in hints.items():
        yield load, loss, texts[0] if len(texts) == 1 else f"{len(texts)} trials like {texts[0]}"
