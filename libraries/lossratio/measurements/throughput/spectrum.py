"""Performance spectrum: how the forwarding rates of the trials at one load are distributed (RFC 9971).

A load's spectrum shows for each forwarding rate the share of the trials' time with this rate. The conditional
throughput is one of its quantiles, so the spectrum shows how much that number hides. A search stops measuring at a load
as soon as the rest of the goal's duration sum cannot change the verdict; the rest counts as time without forwarding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue

from lossratio.drawing import Axis, Drawing, Plot, in_unit, series_colour, unit_of
from lossratio.measurements.throughput.result import Goal, GoalReport, GoalsResult
from lossratio.records import Rate
from lossratio.results import Trial
from lossratio.units import format_frame_rate, format_ratio

_COLUMNS = 4
_WIDTH, _ROW = 900.0, 224.0
_LEFT, _TOP, _BOTTOM = 66.0, 54.0, 36.0
_CELL, _PLOT = 222.0, 146.0
_LONGEST_NAME = 30


@dataclass(frozen=True)
class Level:
    """One forwarding rate of a spectrum."""

    forwarding_rate: float
    """Frames per second per interface."""
    share: float
    """The share of time with this rate: of the goal's duration sum, or of all trials if they took longer."""
    trials: int
    """Number of trials."""


@dataclass(frozen=True)
class Spectrum:
    """The performance spectrum at a relevant bound."""

    goal: int
    """Place of the goal among the goals."""
    report: GoalReport
    """The goal."""
    bound: str
    """``lower bound`` or ``upper bound``."""
    load: Rate
    """The load."""
    levels: tuple[Level, ...]
    """The forwarding rates, from the highest to the lowest."""


def spectrum_at(trials: Sequence[Trial], load: float, goal: Goal) -> tuple[Level, ...]:
    """The performance spectrum at a load per interface, of the trials of full length there."""
    chosen = sorted(
        (-trial.forwarding_rate_per_interface_fps, trial.effective_duration_s)
        for trial in trials
        if trial.is_evidence
        and trial.load_per_interface_fps == load
        and trial.duration_s >= goal.final_trial_duration_s
    )
    whole = max(goal.duration_sum_s, sum(duration for _, duration in chosen))
    levels = []
    for rate, group in groupby(chosen, key=lambda point: point[0]):
        durations = [duration for _, duration in group]
        levels.append(Level(-rate, sum(durations) / whole, len(durations)))
    return tuple(levels)


def spectra_of(result: GoalsResult) -> list[Spectrum]:
    """The spectra at all relevant bounds of a result where full-length trials were measured."""
    spectra = []
    for index, report in enumerate(result.goals):
        for name, load in zip(("lower bound", "upper bound"), report.bounds, strict=True):
            levels = () if load is None else spectrum_at(result.trials, load.per_interface_fps, report.goal)
            if load is not None and levels:
                spectra.append(Spectrum(index, report, name, load, levels))
    return spectra


def draw_spectra(result: GoalsResult) -> str:
    """Draws the performance spectra at the relevant bounds of all goals, in their order; empty if there is none."""
    spectra = spectra_of(result)
    picture = Drawing()
    for index, spectrum in enumerate(spectra):
        row, column = divmod(index, _COLUMNS)
        left, top = _LEFT + column * _CELL, row * _ROW
        rates = [level.forwarding_rate for level in spectrum.levels] + [spectrum.load.per_interface_fps]
        room = 0.1 * (max(rates) - min(rates)) or 0.01 * max(rates)
        y = Axis(max(0.0, min(rates) - room), max(rates) + room, top + _ROW - _BOTTOM, top + _TOP)
        plot = Plot(Axis(0.0, 1.0, left, left + _PLOT), y, picture)
        prefix, scale = unit_of(max(rates))
        plot.frame([0.0, 0.5, 1.0], y.ticks(4), format_ratio, in_unit(scale))
        colour = series_colour(spectrum.goal)
        exceeding = 1.0 - spectrum.report.goal.exceed_ratio
        plot.line([(exceeding, y.low), (exceeding, y.high)], "#777777", width=1.0, dash="2 3")
        plot.line([(0.0, rates[-1]), (1.0, rates[-1])], "#777777", width=1.0)
        start = 0.0
        for level in spectrum.levels:
            end = min(1.0, start + level.share)
            plot.bands([(start, end, y.low, level.forwarding_rate)], colour, 0.25)
            plot.steps([(start, end, level.forwarding_rate)], colour)
            start += level.share
        trials = sum(level.trials for level in spectrum.levels)
        # Each on a line of its own: side by side they would reach into the next panel.
        name = spectrum.report.goal.name
        short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
        plot.text(left - 50, top + 14, short, font_weight="bold")
        plot.text(left - 50, top + 29, f"{spectrum.bound} {format_frame_rate(spectrum.load.per_interface_fps)}")
        plot.text(left - 50, top + 43, f"{trials} trials; {prefix}fps")
    rows = (len(spectra) + _COLUMNS - 1) // _COLUMNS
    description = f"Forwarding rates at the relevant bounds, {result.test.name}."
    return picture.svg(_WIDTH, rows * _ROW, description) if spectra else ""


def spectra_chart(result: GoalsResult) -> list[JsonValue]:
    """The same spectra as lists, from which a script draws them: goal, bound, load, quantile, and levels."""
    return [
        [
            spectrum.goal,
            spectrum.bound,
            float(f"{spectrum.load.per_interface_fps:.7g}"),
            1.0 - spectrum.report.goal.exceed_ratio,
            [[float(f"{level.forwarding_rate:.7g}"), round(level.share, 4), level.trials] for level in spectrum.levels],
        ]
        for spectrum in spectra_of(result)
    ]
