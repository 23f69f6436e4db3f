"""Performance spectra (RFC 9971) at the relevant bounds of a search.

A load's spectrum shows for each forwarding rate the share of the trials' time with this rate. The conditional
throughput is a quantile of the spectrum, so the spectrum shows how much that number hides. A search stops measuring at
a load as soon as the rest of the goal's duration sum cannot change the verdict. The rest counts as time without
forwarding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from lossratio import drawing
from lossratio.measurements.throughput.result import Goal, GoalReport, GoalsResult
from lossratio.records import Rate
from lossratio.results import Trial
from lossratio.units import format_frame_rate, format_ratio, prefix_of, trials_counted

_COLUMNS = 4
_ROW, _CELL = 224.0, 222.0
_CELL_LEFT = 66.0
_CELL_TOP = 54.0
_CELL_BOTTOM = 36.0
_CELL_WIDTH = 146.0
_LONGEST_NAME = 30


@dataclass(frozen=True)
class Level:
    """One forwarding rate of a spectrum."""

    forwarding_rate: float
    """Frames per second per interface."""
    share: float
    """The time with this rate, as a share of the goal's duration sum, or of the time of all trials if that was
    longer."""
    trials: int
    """Number of trials."""


@dataclass(frozen=True)
class Spectrum:
    """The performance spectrum at a relevant bound."""

    goal: int
    """Index of the goal."""
    report: GoalReport
    """The goal."""
    bound: str
    """``lower bound`` or ``upper bound``."""
    load: Rate
    """The load."""
    levels: tuple[Level, ...]
    """The forwarding rates, from the highest to the lowest."""


def spectrum_at(trials: Sequence[Trial], load: float, goal: Goal) -> tuple[Level, ...]:
    """The performance spectrum at a load per interface, from the full-length trials there."""
    chosen = sorted(
        (-trial.forwarding_rate_per_interface_fps, trial.effective_duration_s)
        for trial in trials
        if trial.is_evidence
        and trial.load_per_interface_fps == load
        and trial.duration_s >= goal.final_trial_duration_s
    )
    whole = max(goal.duration_sum_s, sum(duration for _, duration in chosen))
    levels = []
    for rate, group in groupby(chosen, key=itemgetter(0)):
        durations = [duration for _, duration in group]
        levels.append(Level(-rate, sum(durations) / whole, len(durations)))
    return tuple(levels)


def spectra_of(result: GoalsResult) -> list[Spectrum]:
    """The spectra at all relevant bounds of a result that have full-length trials."""
    spectra = []
    for index, report in enumerate(result.goals):
        for name, load in zip(("lower bound", "upper bound"), report.bounds, strict=True):
            if load is None:
                continue
            levels = spectrum_at(result.trials, load.per_interface_fps, report.goal)
            if levels:
                spectra.append(Spectrum(index, report, name, load, levels))
    return spectra


def draw_spectra(result: GoalsResult) -> str:
    """Draws the performance spectra at the relevant bounds of all goals, in their order; empty if there is none."""
    spectra = spectra_of(result)
    picture = drawing.Drawing()
    for index, spectrum in enumerate(spectra):
        row, column = divmod(index, _COLUMNS)
        left = _CELL_LEFT + column * _CELL
        top = row * _ROW
        rates = [level.forwarding_rate for level in spectrum.levels] + [
            spectrum.load.per_interface_fps
        ]
        room = 0.1 * (max(rates) - min(rates)) or 0.01 * max(rates)
        y = drawing.Axis(
            max(0.0, min(rates) - room),
            max(rates) + room,
            top + _ROW - _CELL_BOTTOM,
            top + _CELL_TOP,
        )
        plot = drawing.Plot(drawing.Axis(0.0, 1.0, left, left + _CELL_WIDTH), y, picture)
        prefix, scale = prefix_of(max(rates))
        plot.frame([0.0, 0.5, 1.0], y.ticks(4), format_ratio, drawing.in_unit(scale))
        colour = drawing.series_colour(spectrum.goal)
        exceeding = 1.0 - spectrum.report.goal.exceed_ratio
        plot.line([(exceeding, y.low), (exceeding, y.high)], "#777777", width=1.0, dash="2 3")
        plot.line([(0.0, rates[-1]), (1.0, rates[-1])], "#777777", width=1.0)
        start = 0.0

        for level in spectrum.levels:
            end = min(1.0, start + level.share)
            plot.bands([(start, end, y.low, level.forwarding_rate)], colour, 0.25)
            plot.steps([(start, end, level.forwarding_rate)], colour)
            start += level.share

        # Each name has its own line, because names side by side would reach into the next panel.
        name = spectrum.report.goal.name
        if len(name) <= _LONGEST_NAME:
            short = name
        else:
            short = f"{name[: _LONGEST_NAME - 1]}…"

        plot.text(left - 50, top + 14, short, font_weight="bold")
        plot.text(
            left - 50,
            top + 29,
            f"{spectrum.bound} {format_frame_rate(spectrum.load.per_interface_fps)}",
        )
        plot.text(
            left - 50,
            top + 43,
            f"{trials_counted(sum(level.trials for level in spectrum.levels))}; {prefix}fps",
        )

    rows = (len(spectra) + _COLUMNS - 1) // _COLUMNS
    description = f"Forwarding rates at the relevant bounds, {result.test.name}."
    if spectra:
        empty = max(0, _COLUMNS - len(spectra))
        return picture.svg(rows * _ROW, description, drawing.WIDTH - empty * _CELL)
    return ""
