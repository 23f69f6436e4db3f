"""The picture of a search: load over trials, loss as colour and shape, and each goal's bounds closing as a band.

A light band lies between the bounds that the trials so far point at, a dark one between those that are proved.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from lossratio.report.bounds import GoalBounds, Interval, bounds_history
from lossratio.report.loss_marks import MARKS, Mark, mark_of
from lossratio.report.model import GoalReport, ThroughputResult
from lossratio.report.search_windows import Window, windows_of
from lossratio.report.svg import MARKERS, embeddable_svg
from lossratio.report.text import format_interval, format_regularity
from lossratio.report.trials import Trial
from lossratio.units import format_frame_rate, format_ratio

_GOAL_COLOURS = ("#009E73", "#CC79A7", "#56B4E9", "#D9A400", "#777777")
_BANDS = {"bounds so far": 0.2, "proved": 0.5}
_INK = "#333333"
_FAINT = "#E6E6E6"
_WIDTH = 9.4
_OVERVIEW = 1.1
_CLOSE_UP = 2.7
_SPACE = 0.28
_TOP, _BOTTOM = 0.36, 0.9
_LINE = 0.165


def search_picture(result: ThroughputResult) -> str:
    """Draws a search: all of it, and close-ups of the loads around the goals' last bounds.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    history = bounds_history(result)
    windows = windows_of(result, history)
    figure, rows = _layout(windows)
    prefix, scale = _unit(max(window.high for window in windows))
    rows[0].set_title(f"load per interface, {prefix}fps", loc="left", fontsize=9, color=_INK, x=-0.09, pad=9)
    for axes, window in zip(rows, windows, strict=True):
        for index in range(len(result.goals)):
            _draw_bounds(axes, {number: each[index] for number, each in history.items()}, window, _colour(index))
        for mark, trials in _by_mark(result.trials, window):
            numbers, loads = [each.number for each in trials], [each.load_per_interface_fps for each in trials]
            axes.plot(numbers, loads, **_mark_style(mark), gid=MARKERS, zorder=3)
        _style_axes(axes, window, len(result.trials), scale)
        _label_goals(axes, window, result.goals, history, _LINE / _height(window))
    rows[-1].set_xlabel("trial", color=_INK, fontsize=9)
    _add_legend(figure, result.trials)
    hints = [_hint(trial) for window in windows for _, trials in _by_mark(result.trials, window) for trial in trials]
    return embeddable_svg(figure, _description(result), hints)


def _layout(windows: Sequence[Window]) -> tuple[Figure, list[Axes]]:
    """A figure with axes below each other, which share the trials' axis; close-ups are higher than the overview."""
    heights = [_height(window) for window in windows]
    height = sum(heights) + _SPACE * (len(windows) - 1) + _TOP + _BOTTOM
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    rows = figure.subplots(len(windows), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    figure.subplots_adjust(
        left=0.085,
        right=0.765,
        top=1.0 - _TOP / height,
        bottom=_BOTTOM / height,
        hspace=_SPACE / (sum(heights) / len(heights)),
    )
    return figure, list(rows)


def _height(window: Window) -> float:
    """Height of a window's axes, in inches."""
    return _CLOSE_UP if window.goals else _OVERVIEW


def _draw_bounds(axes: Axes, history: Mapping[int, GoalBounds], window: Window, colour: str) -> None:
    """Draws one goal's bounds after each trial."""
    steps = list(_steps(history))
    _fill(
        axes,
        [(start, end, bounds.leaning) for start, end, bounds in steps],
        window,
        color=colour,
        alpha=_BANDS["bounds so far"],
    )
    proved = [(start, end, bounds.proved) for start, end, bounds in steps]
    closed = [step for step in proved if None not in (step[2].lower, step[2].upper)]
    _fill(axes, closed, window, color=colour, alpha=_BANDS["proved"])
    for edge in ("lower", "upper"):
        known = [(start, end, getattr(interval, edge)) for start, end, interval in proved]
        shown = [step for step in known if step[2] is not None and window.holds(step[2])]
        numbers = [number for start, end, _ in shown for number in (start, end, end)]
        loads = [load for *_, bound in shown for load in (bound, bound, math.nan)]
        axes.plot(numbers, loads, color=colour, linewidth=1.6, solid_capstyle="butt")


def _fill(axes: Axes, steps: Sequence[tuple[float, float, Interval]], window: Window, **style: Any) -> None:
    """Fills between bounds; a bound that there is not lies beyond the window."""
    numbers = [number for start, end, _ in steps for number in (start, end)]
    lows = [max(window.low, interval.lower or 0.0) for *_, interval in steps for _ in range(2)]
    highs = [min(window.high, interval.upper or math.inf) for *_, interval in steps for _ in range(2)]
    shown = [
        interval != Interval(None, None) and low < high
        for (low, high, interval) in zip(lows, highs, (each for *_, each in steps for _ in range(2)), strict=True)
    ]
    axes.fill_between(numbers, lows, highs, where=shown, linewidth=0, **style)


def _steps(history: Mapping[int, GoalBounds]) -> Iterator[tuple[float, float, GoalBounds]]:
    """Stretches of trials after which the bounds stayed the same: from which number to which, and the bounds."""
    numbers = list(history)
    changes = [
        number for place, number in enumerate(numbers) if place == 0 or history[numbers[place - 1]] != history[number]
    ]
    for start, end in zip(changes, [*changes[1:], numbers[-1] + 0.7] if numbers else [], strict=True):
        yield start, end, history[start]


def _by_mark(trials: Sequence[Trial], window: Window) -> Iterator[tuple[Mark, list[Trial]]]:
    """The trials in a window, by mark, in the order in which they are drawn."""
    for mark in MARKS:
        shown = [each for each in trials if mark_of(each) is mark and window.holds(each.load_per_interface_fps)]
        if shown:
            yield mark, shown


def _mark_style(mark: Mark) -> dict[str, Any]:
    return {
        "linestyle": "none",
        "marker": mark.marker,
        "markersize": 6.0,
        "markerfacecolor": mark.colour if mark.is_filled else "none",
        "markeredgecolor": "white" if mark.is_filled else mark.colour,
        "markeredgewidth": 0.5 if mark.is_filled else 1.3,
    }


def _unit(load: float) -> tuple[str, float]:
    """The prefix and the scale in which an axis up to a load has the shortest numbers."""
    return next(((prefix, scale) for prefix, scale in (("M", 1e6), ("k", 1e3)) if load >= scale), ("", 1.0))


def _style_axes(axes: Axes, window: Window, trials: int, scale: float) -> None:
    if window.is_logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6 if window.goals else 3, steps=[1, 2, 5, 10]))
    axes.set_ylim(window.low, window.high)
    axes.set_xlim(0.3, max(trials, 1) + 0.7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda load, _: f"{load / scale:,.8g}"))
    axes.grid(axis="y", color=_FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK, labelsize=9, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#999999")


def _label_goals(
    axes: Axes, window: Window, goals: Sequence[GoalReport], history: Mapping[int, tuple[GoalBounds, ...]], line: float
) -> None:
    """Writes beside the bands which goals they are of and what was found, in the order in which the bands lie.

    Args:
        axes: Where the bands are.
        window: The loads that the axes show.
        goals: All goals.
        history: The bounds of all goals after each trial.
        line: Height of a line of text, as a share of the axes' height.
    """
    last = history[max(history)] if history else ()
    places = {index: window.place(_middle(last[index].leaning, window)) if last else 0.5 for index in window.goals}
    free = 1.2
    for index in sorted(window.goals, key=lambda each: -places[each]):
        found = list(_found(goals[index]))
        height = line * (len(found) + 1)
        top = min(free, places[index] + height / 2)
        axes.text(1.03, top, goals[index].goal.name, transform=axes.transAxes, color=_INK, weight="bold", va="top")
        text: dict[str, Any] = {"color": _INK, "fontsize": 8.5, "va": "top", "linespacing": 1.35}
        axes.text(1.03, top - 1.15 * line, "\n".join(found), transform=axes.transAxes, **text)
        bar = [top, top - height]
        axes.plot([1.015, 1.015], bar, transform=axes.transAxes, color=_colour(index), linewidth=4, clip_on=False)
        free = top - height - 0.9 * line


def _middle(interval: Interval, window: Window) -> float:
    edges = [load for load in (interval.lower, interval.upper) if load is not None]
    return math.fsum(edges) / len(edges) if edges else window.low


def _found(report: GoalReport) -> Iterator[str]:
    result = report.result
    if result is not None:
        bounds = (result.relevant_lower_bound, result.relevant_upper_bound)
        yield format_interval(*(None if bound is None else bound.per_interface_fps for bound in bounds))
        if result.conditional_throughput is not None:
            yield f"throughput {format_frame_rate(result.conditional_throughput.per_interface_fps)}"
    yield from textwrap.wrap(format_regularity(report), 30)


def _add_legend(figure: Figure, trials: Sequence[Trial]) -> None:
    used = {mark_of(trial).name for trial in trials}
    handles: list[Artist] = [
        Line2D([], [], label=mark.label, **_mark_style(mark)) for mark in MARKS if mark.name in used
    ]
    handles += [Patch(color="#666666", alpha=alpha, linewidth=0, label=label) for label, alpha in _BANDS.items()]
    style = {"ncols": len(handles), "frameon": False, "fontsize": 9, "labelcolor": _INK, "columnspacing": 1.3}
    figure.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.07, 0.0), handlelength=1.2, **style)


def _colour(index: int) -> str:
    return _GOAL_COLOURS[index % len(_GOAL_COLOURS)]


def _hint(trial: Trial) -> str:
    unsent = f", {trial.unsent_frames:,} frames unsent" if trial.unsent_frames else ""
    return (
        f"trial {trial.number}: {format_frame_rate(trial.load_per_interface_fps)} for {trial.duration_s:g} s, "
        f"loss {format_ratio(trial.loss_ratio)}{unsent}"
    )


def _description(result: ThroughputResult) -> str:
    found = "; ".join(f"{report.goal.name} {format_regularity(report)}" for report in result.goals)
    return f"Search of {result.test.name}: load per interface over {len(result.trials)} trials. {found}."
