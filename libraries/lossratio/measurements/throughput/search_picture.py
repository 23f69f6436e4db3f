"""The picture of a search: load over trials, loss as colour and shape, and each goal's bounds closing as a band.

A light band lies between the bounds that the trials so far point at, a dark one between those that are proved.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lossratio.drawing import (
    INK,
    LINE_HEIGHT,
    MARKS,
    Axis,
    Mark,
    Plot,
    drawing,
    element,
    in_unit,
    legend,
    mark_of,
    text_at,
    unit_of,
)
from lossratio.measurements.throughput.search_windows import Window, windows_of
from lossratio.mlrsearch import GoalBounds, RelevantBounds
from lossratio.results import GoalReport, ThroughputResult, Trial, bounds_history, format_interval, format_regularity
from lossratio.units import format_frame_rate, format_ratio

BANDS = {"bounds so far": 0.2, "proved": 0.5}
"""Opacities of the bands."""

_GOAL_COLOURS = ("#009E73", "#CC79A7", "#56B4E9", "#D9A400", "#777777")
_WIDTH = 900.0
_LEFT, _RIGHT = 78.0, 690.0
_OVERVIEW, _CLOSE_UP = 105.0, 260.0
_TOP, _SPACE, _BOTTOM = 34.0, 26.0, 62.0

History = Mapping[int, tuple[GoalBounds, ...]]


def search_picture(result: ThroughputResult) -> str:
    """Draws a search: all of it, and close-ups of the loads around the goals' last bounds.

    Returns:
        One ``<svg>`` element that goes into an HTML page as it is.
    """
    return draw_search(result, bounds_history(result))


def draw_search(result: ThroughputResult, history: History) -> str:
    """Draws a search whose bounds after each trial are known already.

    Args:
        result: The search.
        history: What `lossratio.results.bounds.bounds_history` says about it.
    """
    windows = windows_of(result, history)
    prefix, scale = unit_of(max(window.high for window in windows))
    parts = [text_at(4.0, 14.0, f"load per interface, {prefix}fps")]
    marked = by_mark(result.trials)
    top = _TOP
    for window in windows:
        bottom = top + (_CLOSE_UP if window.goals else _OVERVIEW)
        parts += _row(result, history, marked, window, (top, bottom), scale)
        top = bottom + _SPACE
    bottom = top - _SPACE
    parts.append(text_at((_LEFT + _RIGHT) / 2, bottom + 33.0, "trial", text_anchor="middle"))
    parts += legend(marked, [(label, "#666666", opacity) for label, opacity in BANDS.items()], _LEFT, bottom + 54.0)
    rules = Counter(trial.rule for trial in result.trials if trial.rule)
    if rules:
        bottom += LINE_HEIGHT
        counts = ", ".join(f"{rule} {times}" for rule, times in rules.most_common())
        parts.append(text_at(_LEFT, bottom + 54.0, f"trials by the rule that chose them: {counts}"))
    return drawing(_WIDTH, bottom + _BOTTOM, _description(result), parts)


def goal_colour(index: int) -> str:
    """The colour of a goal in all pictures, by its place among the goals."""
    return _GOAL_COLOURS[index % len(_GOAL_COLOURS)]


def trial_hint(trial: Trial) -> str:
    """What is shown when the pointer is on a trial."""
    unsent = f", {trial.unsent_frames:,} frames unsent" if trial.unsent_frames else ""
    rule = f", rule: {trial.rule}" if trial.rule else ""
    return (
        f"trial {trial.number}: {format_frame_rate(trial.load_per_interface_fps)} for {trial.duration_s:g} s, "
        f"loss {format_ratio(trial.loss_ratio)}{unsent}{rule}"
    )


def by_mark(trials: Iterable[Trial]) -> dict[Mark, list[Trial]]:
    """The trials by their marks, in the order in which marks are drawn."""
    found: dict[Mark, list[Trial]] = {mark: [] for mark in MARKS}
    for trial in trials:
        found[mark_of(trial)].append(trial)
    return {mark: marked for mark, marked in found.items() if marked}


def _row(
    result: ThroughputResult,
    history: History,
    marked: Mapping[Mark, Sequence[Trial]],
    window: Window,
    extent: tuple[float, float],
    scale: float,
) -> list[str]:
    top, bottom = extent
    x = Axis(0.3, max(len(result.trials), 1) + 0.7, _LEFT, _RIGHT)
    plot = Plot(x, Axis(window.low, window.high, bottom, top, window.is_logarithmic))
    plot.frame(
        x.ticks(10, whole=True), plot.y.ticks(6 if window.goals else 4), lambda trial: f"{trial:.0f}", in_unit(scale)
    )
    for index in range(len(result.goals)):
        _draw_bounds(plot, {number: each[index] for number, each in history.items()}, goal_colour(index))
    for mark, trials in marked.items():
        shown = [each for each in trials if window.holds(each.load_per_interface_fps)]
        plot.marks(mark, [(each.number, each.load_per_interface_fps, trial_hint(each)) for each in shown])
    return plot.parts + _goal_labels(result.goals, history, window, plot.y)


def _draw_bounds(plot: Plot, history: Mapping[int, GoalBounds], colour: str) -> None:
    """Draws one goal's bounds after each trial."""
    steps = list(_steps(history))
    proved = [(start, end, bounds.proved) for start, end, bounds in steps]
    closed = [step for step in proved if None not in (step[2].lower, step[2].upper)]
    leaning = [(start, end, bounds.leaning) for start, end, bounds in steps]
    plot.bands(_filled(plot, leaning), colour, BANDS["bounds so far"])
    plot.bands(_filled(plot, closed), colour, BANDS["proved"])
    for edge in ("lower", "upper"):
        known = [(start, end, getattr(interval, edge)) for start, end, interval in proved]
        plot.steps([step for step in known if step[2] is not None and plot.y.holds(step[2])], colour)


def _filled(
    plot: Plot, steps: Sequence[tuple[float, float, RelevantBounds]]
) -> Iterator[tuple[float, float, float, float]]:
    """What lies between bounds; a bound that there is not lies beyond the window."""
    for start, end, interval in steps:
        low = max(plot.y.low, interval.lower or 0.0)
        high = min(plot.y.high, math.inf if interval.upper is None else interval.upper)
        if interval != RelevantBounds(None, None) and low < high:
            yield start, end, low, high


def _steps(history: Mapping[int, GoalBounds]) -> Iterator[tuple[float, float, GoalBounds]]:
    """Stretches of trials after which the bounds stayed the same: from which number to which, and the bounds."""
    numbers = list(history)
    changes = [
        number for place, number in enumerate(numbers) if place == 0 or history[numbers[place - 1]] != history[number]
    ]
    for start, end in zip(changes, [*changes[1:], numbers[-1] + 0.7] if numbers else [], strict=True):
        yield start, end, history[start]


def _goal_labels(goals: Sequence[GoalReport], history: History, window: Window, y: Axis) -> list[str]:
    """Beside the bands: which goals they are of and what was found, in the order in which the bands lie."""
    last = history[max(history)] if history else ()
    middle = (y.start + y.end) / 2
    places = {index: y.place(_middle(last[index].leaning, window)) if last else middle for index in window.goals}
    parts = []
    free = y.end - 16.0
    for index in sorted(window.goals, key=lambda each: places[each]):
        lines = list(_found(goals[index]))
        height = LINE_HEIGHT * (len(lines) + 1)
        top = max(free, places[index] - height / 2)
        x = _RIGHT + 18.0
        parts.append(element("rect", x=_RIGHT + 8.0, y=top, width=4, height=height, fill=goal_colour(index)))
        parts.append(text_at(x, top + 11.0, goals[index].goal.name, font_weight="bold"))
        parts += [text_at(x, top + 11.0 + LINE_HEIGHT * place, line) for place, line in enumerate(lines, start=1)]
        free = top + height + LINE_HEIGHT
    return [element("g", *parts, fill=INK)] if parts else []


def _middle(interval: RelevantBounds, window: Window) -> float:
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


def _description(result: ThroughputResult) -> str:
    found = "; ".join(f"{report.goal.name} {format_regularity(report)}" for report in result.goals)
    return f"Search of {result.test.name}: load per interface over {len(result.trials)} trials. {found}."
