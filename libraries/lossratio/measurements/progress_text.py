"""Where a measurement is, in words: the line that the console shows after each trial."""

from __future__ import annotations

import math
from collections.abc import Iterable

from robot.utils import secs_to_timestr

from lossratio.mlrsearch import Forecast, GoalBounds
from lossratio.results import format_interval
from lossratio.trials import TrialResult
from lossratio.units import format_frame_rate, format_ratio

_INTERVAL_WIDTH = 22


def progress_line(
    number: int,
    trial: TrialResult,
    bounds: Iterable[GoalBounds],
    time_left: Forecast | None = None,
    purpose: str | None = None,
    *,
    rule: str | None = None,
) -> str:
    """What the console shows after a trial.

    Where no goals are searched for, that is what was forwarded. Until both bounds of a goal are proved, those are shown
    that the trials so far point at, with a ``~`` before them.

    Args:
        number: Which trial it was.
        trial: The trial.
        bounds: The bounds of each goal after it.
        time_left: What the rest of the search is expected to take; None: not known.
        purpose: Why the trial was chosen; None: not known.
        rule: Name of the rule that chose it; None: not known.
    """
    parts = [_trial(number, trial)]
    goals = [f"{each.goal} {_interval(each):<{_INTERVAL_WIDTH}}" for each in bounds]
    parts += goals or [f"forwarded {format_frame_rate(trial.forwarding_rate)} per interface"]
    if time_left is not None:
        parts.append(_time_left(time_left))
    if rule is not None:
        parts.append(rule)
    if purpose is not None:
        parts.append(f"({purpose})")
    return "  ".join(parts).rstrip()


def soak_progress_line(
    number: int, trial: TrialResult, interval: tuple[float, float, float] | None, time_left: float
) -> str:
    """What the console shows after a trial of a soak test.

    Args:
        number: Which trial it was.
        trial: The trial.
        interval: Mean critical load and its 95 % interval, in frames per second per interface; None: not known yet.
        time_left: Seconds that the rest may take at most.
    """
    known = "critical load not known yet"
    if interval is not None:
        mean, low, high = (f"{load:,.{_digits(interval[2] - interval[1])}f}" for load in interval)
        known = f"critical load {mean} fps ({low} to {high})"
    return f"{_trial(number, trial)}  {known}  at most {_seconds(time_left)} left"


def _trial(number: int, trial: TrialResult) -> str:
    unsent = trial.output.unsent_frames
    loss = f"loss {format_ratio(trial.loss_ratio)}" + (f" ({unsent:,} unsent)" if unsent else "")
    return f"trial {number:>3}  {format_frame_rate(trial.load):>11} for {trial.duration:.4g} s  {loss:<13}"


def _interval(bounds: GoalBounds) -> str:
    if None in (bounds.proved.lower, bounds.proved.upper):
        return f"~{format_interval(bounds.leaning.lower, bounds.leaning.upper)}"
    return format_interval(bounds.proved.lower, bounds.proved.upper)


def _time_left(forecast: Forecast) -> str:
    """The expected time, and between what it should be, where that is not the same."""
    expected, low, high = (_seconds(each) for each in (forecast.seconds, forecast.low, forecast.high))
    return f"{expected} left" if low == high else f"{expected} left ({low} to {high})"


def _seconds(seconds: float) -> str:
    return str(secs_to_timestr(max(0, round(seconds)), compact=True))


def _digits(width: float) -> int:
    """Digits behind the point that loads need so that an interval of this width has two of its own."""
    return 0 if width >= 10.0 else min(3, 1 - math.floor(math.log10(max(width, 1e-3))))
