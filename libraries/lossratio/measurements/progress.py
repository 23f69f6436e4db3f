"""Where a measurement is after each trial, and the line that the console shows then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lossratio.mlrsearch import Forecast, GoalBounds
from lossratio.results import format_interval
from lossratio.trials import TrialResult
from lossratio.units import format_frame_rate, format_ratio

_INTERVAL_WIDTH = 22


@dataclass(frozen=True)
class Progress:
    """Where a measurement is after a trial.

    Attributes:
        number: How many trials there are, those of an interrupted run included.
        trial: The last one.
        bounds: What is known about each goal; none where nothing is searched for.
        time_left: What the rest is expected to take, and between what that should be; None: not known.
        purpose: Why the trial was chosen; None: nobody asked for it, or there is nothing to choose.
        rule: Name of the rule that chose the trial; None: as for the purpose, or the trial is a warm-up.
    """

    number: int
    trial: TrialResult
    bounds: tuple[GoalBounds, ...]
    time_left: Forecast | None
    purpose: str | None = None
    rule: str | None = None

    def line(self) -> str:
        """What the console shows."""
        return progress_line(self.number, self.trial, self.bounds, self.time_left, self.purpose, rule=self.rule)


OnProgress = Callable[[Progress], None]


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
    parts = [trial_in_words(number, trial)]
    goals = [f"{each.goal} {_interval(each):<{_INTERVAL_WIDTH}}" for each in bounds]
    parts += goals or [f"forwarded {format_frame_rate(trial.forwarding_rate)} per interface"]
    if time_left is not None:
        parts.append(_time_left(time_left))
    if rule is not None:
        parts.append(rule)
    if purpose is not None:
        parts.append(f"({purpose})")
    return "  ".join(parts).rstrip()


def trial_in_words(number: int, trial: TrialResult) -> str:
    """A trial as the line after it begins."""
    unsent = trial.output.unsent_frames
    loss = f"loss {format_ratio(trial.loss_ratio)}" + (f" ({unsent:,} unsent)" if unsent else "")
    return f"trial {number:>3}  {format_frame_rate(trial.load):>11} for {trial.duration:.4g} s  {loss:<13}"


def _interval(bounds: GoalBounds) -> str:
    if None in (bounds.proved.lower, bounds.proved.upper):
        return f"~{format_interval(bounds.leaning.lower, bounds.leaning.upper)}"
    return format_interval(bounds.proved.lower, bounds.proved.upper)


def _time_left(forecast: Forecast) -> str:
    """The expected time, and between what it should be, where that is not the same."""
    expected, low, high = (seconds_in_words(each) for each in (forecast.seconds, forecast.low, forecast.high))
    return f"{expected} left" if low == high else f"{expected} left ({low} to {high})"


def seconds_in_words(seconds: float) -> str:
    """Some seconds, e.g. ``1min 20s``."""
    # Imported here because it takes a while, and reports of results need none of it.
    from robot.utils import secs_to_timestr

    return str(secs_to_timestr(max(0, round(seconds)), compact=True))
