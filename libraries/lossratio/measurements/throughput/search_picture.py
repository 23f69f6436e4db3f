"""The pictures of a search: load over trials, and loss over load.

Over the trials, each goal's bounds are bands that become narrower: a light band between the bounds that the trials so
far suggest, and a dark band between proved bounds. Over load, trials without loss are on a separate line below the
axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lossratio import drawing
from lossratio.measurements.throughput.result import GoalReport, GoalsResult, format_regularity
from lossratio.mlrsearch import GoalBounds, RelevantBounds
from lossratio.results import Trial
from lossratio.values import format_ratio, trials_counted

BANDS = {"bounds so far": 0.2, "proved": 0.5}
"""Opacities of the bands."""
_LEFT = 78.0
_TRIAL = 9.0
"""Room of a trial, in pixels."""
_OVERVIEW, _CLOSE_UP = 105.0, 260.0
_TOP = 34.0
_SPACE = 26.0
_MARGIN = 8.0
_ROOM_IN_WIDTHS = 3.0
_LOGARITHMIC_FROM = 10.0
_LOSS_TOP = 30.0
_LOSS_BOTTOM = 230.0
_LOSS_GAP = 62.0
_ZONE_OPACITY = 0.1
_DECADES_BELOW = 1.0
"""Distance of the line of trials without loss below the smallest loss, in decades."""

History = Mapping[int, tuple[GoalBounds, ...]]


@dataclass(frozen=True)
class Window:
    """A range of loads, in frames per second per interface."""

    low: float
    """Smallest load."""
    high: float
    """Largest load."""
    goals: tuple[int, ...]
    """The goals whose last bounds are in the middle of the window, by their index."""
    is_logarithmic: bool = False
    """Whether the range is so wide that it needs a logarithmic axis."""

    def holds(self, load: float) -> bool:
        """Whether a load is in the window."""
        return self.low <= load <= self.high


def draw_search(result: GoalsResult, history: History) -> str:
    """Draws a search with its bounds after each trial: the whole search, and close-ups of the goals' last bounds."""
    windows = windows_of(result, history)
    about, in_words = drawing.rates_axis(
        "load per interface", max(window.high for window in windows)
    )
    marked = drawing.by_mark(result.trials)
    right = drawing.right_end(_LEFT, len(result.trials), _TRIAL)
    x = drawing.Axis(0.3, max(len(result.trials), 1) + 0.7, _LEFT, right)
    picture = drawing.Drawing(right)
    picture.text(4.0, 14.0, about)
    top = _TOP
    bottom = _TOP

    for window in windows:
        bottom = top + (_CLOSE_UP if window.goals else _OVERVIEW)
        plot = drawing.Plot(
            x, drawing.Axis(window.low, window.high, bottom, top, window.is_logarithmic), picture
        )
        plot.frame(
            x.ticks(int((right - _LEFT) / 50), whole=True),
            plot.y.ticks(6 if window.goals else 4),
            "{:.0f}".format,
            in_words,
        )

        for index in range(len(result.goals)):
            _draw_bounds(
                plot,
                {number: bounds[index] for number, bounds in history.items()},
                drawing.series_colour(index),
            )

        for mark, trials in marked.items():
            shown = [trial for trial in trials if window.holds(trial.load_per_interface_fps)]
            plot.marks(
                mark,
                [
                    (trial.number, trial.load_per_interface_fps, drawing.trial_hint(trial))
                    for trial in shown
                ],
            )

        top = bottom + _SPACE

    picture.text((_LEFT + x.end) / 2, bottom + 33.0, "trial", text_anchor="middle")
    keys = [(label, "#666666", opacity) for label, opacity in BANDS.items()]
    for index, report in enumerate(result.goals):
        keys.append((report.goal.name, drawing.series_colour(index), 1.0))
    end = picture.legend(marked, keys, _LEFT, bottom + 54.0)
    return picture.svg(end + _MARGIN, _description(result))


def _draw_bounds(plot: drawing.Plot, history: Mapping[int, GoalBounds], colour: str) -> None:
    steps = list(_steps(history))
    proved = [(start, end, bounds.proved) for start, end, bounds in steps]
    leaning = [(start, end, bounds.leaning) for start, end, bounds in steps]
    plot.bands(_filled(plot, leaning), colour, BANDS["bounds so far"])
    plot.bands(
        _filled(plot, [step for step in proved if None not in step[2]]), colour, BANDS["proved"]
    )
    for edge in ("lower", "upper"):
        known = [(start, end, getattr(interval, edge)) for start, end, interval in proved]
        plot.steps(
            [step for step in known if step[2] is not None and plot.y.holds(step[2])], colour
        )


def _filled(
    plot: drawing.Plot, steps: Sequence[tuple[float, float, RelevantBounds]]
) -> Iterator[tuple[float, float, float, float]]:
    """The areas between bounds. A missing bound counts as beyond the window."""
    for start, end, interval in steps:
        low = max(plot.y.low, interval.lower or 0.0)
        high = min(plot.y.high, math.inf if interval.upper is None else interval.upper)
        if interval != RelevantBounds(None, None) and low < high:
            yield start, end, low, high


def _steps(history: Mapping[int, GoalBounds]) -> Iterator[tuple[float, float, GoalBounds]]:
    """Ranges of trials with the same bounds: number of the first trial, end of the range, and the bounds."""
    numbers = list(history)
    changes = [
        number
        for at, number in enumerate(numbers)
        if at == 0 or history[numbers[at - 1]] != history[number]
    ]
    for start, end in zip(
        changes, [*changes[1:], numbers[-1] + 0.7] if numbers else [], strict=True
    ):
        yield start, end, history[start]


def _description(result: GoalsResult) -> str:
    outcomes = "; ".join(
        f"{report.goal.name} {format_regularity(report)}" for report in result.goals
    )
    return f"Search of {result.test.name}: load per interface over {trials_counted(len(result.trials))}. {outcomes}."


def windows_of(result: GoalsResult, history: History) -> list[Window]:
    """The windows of a picture, from top to bottom.

    Goals whose close-ups would overlap share one close-up. The whole search comes first, unless a close-up shows it
    anyway. A goal without any bounds belongs to the last window.
    """
    close_ups = _close_ups(result, history[max(history)] if history else ())
    loads = [trial.load_per_interface_fps for trial in result.trials]
    if len(close_ups) == 1 and all(close_ups[0].holds(load) for load in loads):
        return close_ups
    loads = loads or [result.min_load.per_interface_fps, result.max_load.rate.per_interface_fps]
    goals = () if close_ups else tuple(range(len(result.goals)))
    low, high = min(loads), max(loads)
    if high > _LOGARITHMIC_FROM * low:
        return [Window(low / 1.3, high * 1.3, goals, is_logarithmic=True), *close_ups]
    room = 0.12 * (high - low) or 0.1 * high
    return [Window(low - room, high + room, goals), *close_ups]


def _close_ups(result: GoalsResult, last: tuple[GoalBounds, ...]) -> list[Window]:
    close_ups: list[Window] = []
    unbounded = []
    for index, bounds in enumerate(last):
        edges = [load for load in bounds.shown if load is not None]
        if not edges:
            unbounded.append(index)
            continue

        room = _ROOM_IN_WIDTHS * result.goals[index].goal.width_ratio * max(edges)
        merged = Window(max(0.0, min(edges) - room), max(edges) + room, (index,))
        for other in [
            window
            for window in close_ups
            if window.low <= merged.high and merged.low <= window.high
        ]:
            close_ups.remove(other)
            merged = Window(
                min(other.low, merged.low),
                max(other.high, merged.high),
                (*other.goals, *merged.goals),
            )

        close_ups.append(merged)

    close_ups.sort(key=attrgetter("low"), reverse=True)
    if close_ups and unbounded:
        lowest = close_ups.pop()
        close_ups.append(Window(lowest.low, lowest.high, (*lowest.goals, *unbounded)))

    return close_ups


def draw_loss(result: GoalsResult, history: History) -> str:
    """Draws loss over load: of all trials, and close-ups of the loads around the goals' last bounds."""
    windows = windows_of(result, history)
    about, in_words = drawing.rates_axis(
        "load per interface", max(window.high for window in windows)
    )
    losses = [trial.loss_ratio for trial in result.trials] + [
        report.goal.loss_ratio for report in result.goals
    ]
    smallest = min((loss for loss in losses if loss > 0.0), default=0.01)
    # The place of a loss ratio of zero on the axis.
    floor = float(10.0 ** (math.floor(math.log10(min(smallest, 0.01))) - _DECADES_BELOW))
    width = (drawing.RIGHT - _LEFT - _LOSS_GAP * (len(windows) - 1)) / len(windows)
    marked = drawing.by_mark(result.trials)
    picture = drawing.Drawing()
    picture.text(4.0, 14.0, "trial loss ratio")

    for index, window in enumerate(windows):
        left = _LEFT + index * (width + _LOSS_GAP)
        x = drawing.Axis(window.low, window.high, left, left + width, window.is_logarithmic)
        plot = drawing.Plot(
            x, drawing.Axis(floor, 1.0, _LOSS_BOTTOM - 8.0, _LOSS_TOP, is_logarithmic=True), picture
        )
        ticks = [floor, *plot.y.ticks(7)[1:]]
        plot.frame(
            x.ticks(int(width / 70)),
            ticks,
            in_words,
            lambda loss: "none" if loss == floor else format_ratio(loss),
        )
        for goal, report in enumerate(result.goals):
            _draw_allowed_loss(plot, report, drawing.series_colour(goal))
        _draw_losses(plot, marked)

    picture.text((_LEFT + drawing.RIGHT) / 2, _LOSS_BOTTOM + 35.0, about, text_anchor="middle")
    goals = [
        (f"{one.goal.name}: allowed loss, bounds", drawing.series_colour(i), 1.0)
        for i, one in enumerate(result.goals)
    ]
    end = picture.legend(marked, goals, _LEFT, _LOSS_BOTTOM + 60.0)
    return picture.svg(end + 10.0, f"Loss ratio over load per interface, {result.test.name}.")


def _draw_losses(plot: drawing.Plot, marked: Mapping[drawing.Mark, Sequence[Trial]]) -> None:
    """Draws the loss of each trial; several trials at one place share a mark and a hint."""
    for mark, trials in marked.items():
        hints: dict[tuple[float, float], list[str]] = {}
        for trial in trials:
            if plot.x.holds(trial.load_per_interface_fps):
                place = (trial.load_per_interface_fps, max(trial.loss_ratio, plot.y.low))
                hints.setdefault(place, []).append(drawing.trial_hint(trial))
        alike = {
            place: "" if len(texts) == 1 else f"{len(texts)} trials like "
            for place, texts in hints.items()
        }
        plot.marks(mark, [(*place, f"{alike[place]}{texts[0]}") for place, texts in hints.items()])


def _draw_allowed_loss(plot: drawing.Plot, report: GoalReport, colour: str) -> None:
    floor = plot.y.low
    allowed = max(report.goal.loss_ratio, floor)
    plot.line([(plot.x.low, allowed), (plot.x.high, allowed)], colour, dash="6 3")
    if report.zone is not None:
        ends = (end.per_interface_fps for end in report.zone.ends)
        low, high = (min(max(end, plot.x.low), plot.x.high) for end in ends)
        plot.bands([(low, high, floor, 1.0)] if low < high else [], colour, _ZONE_OPACITY)
    for bound in report.bounds:
        if bound is not None and plot.x.holds(bound.per_interface_fps):
            plot.line(
                [(bound.per_interface_fps, floor), (bound.per_interface_fps, 1.0)],
                colour,
                width=1.2,
            )
