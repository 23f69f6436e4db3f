"""The progress of a measurement after each trial, and the line that the console shows then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lossratio.mlrsearch import Forecast, GoalBounds
from lossratio.results import format_interval, format_loss
from lossratio.trials import TrialResult
from lossratio.units import format_frame_rate

_INTERVAL_WIDTH = 22


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement after a trial.

    Attributes:
        number: Number of trials so far, with those of an interrupted run.
        trial: The last trial.
        bounds: The bounds of each goal; none if the measurement is no search.
        time_left: The expected time of the remaining trials, with its range; None: not known.
        purpose: Why the trial was chosen; None: the controller gives no reason, or there is nothing to choose.
        rule: Name of the rule that chose the trial; None: as for the purpose, or the trial is a warm-up.
    """

    number: int
    trial: TrialResult
    bounds: tuple[GoalBounds, ...]
    time_left: Forecast | None
    purpose: str | None = None
    rule: str | None = None

    def line(self) -> str:
        """The line that the console shows."""
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
    """The line that the console shows after a trial.

    Without search goals, it shows the forwarding rate. Until both bounds of a goal are proved, it shows the bounds
    that the trials so far point at, with a ``~`` before them.

    Args:
        number: The trial's number.
        trial: The trial.
        bounds: The bounds of each goal after it.
        time_left: The expected time of the remaining search; None: not known.
        purpose: Why the trial was chosen; None: not known.
        rule: Name of the rule that chose the trial; None: not known.
    """
    parts = [trial_in_words(number, trial)]
    goals = [f"{goal_bounds.goal} {_interval(goal_bounds):<{_INTERVAL_WIDTH}}" for goal_bounds in bounds]
    parts += goals or [f"forwarded {format_frame_rate(trial.forwarding_rate)} per interface"]
    if time_left is not None:
        parts.append(_time_left(time_left))
    if rule is not None:
        parts.append(rule)
    if purpose is not None:
        parts.append(f"({purpose})")
    return "  ".join(parts).rstrip()


def trial_in_words(number: int, trial: TrialResult) -> str:
    """The beginning of the line after a trial."""
    unsent = trial.output.unsent_frames
    loss = (
        "loss "
        + format_loss(trial.loss_ratio, trial.output.decided_after)
        + (f" ({unsent:,} unsent)" if unsent else "")
    )
    return f"trial {number:>3}  {format_frame_rate(trial.load):>11} for {trial.duration:.4g} s  {loss:<13}"


def _interval(bounds: GoalBounds) -> str:
    if None in (bounds.proved.lower, bounds.proved.upper):
        return f"~{format_interval(bounds.leaning.lower, bounds.leaning.upper)}"
    return format_interval(bounds.proved.lower, bounds.proved.upper)


def _time_left(forecast: Forecast) -> str:
    """The expected time, and its range if there is one."""
    expected, low, high = (seconds_in_words(seconds) for seconds in (forecast.seconds, forecast.low, forecast.high))
    return f"{expected} left" if low == high else f"{expected} left ({low} to {high})"


def seconds_in_words(seconds: float) -> str:
    """A number of seconds in words, e.g. ``1min 20s``."""
    # Imported here because it takes a while, and reports of results need none of it.
    from robot.utils import secs_to_timestr

    return str(secs_to_timestr(max(0, round(seconds)), compact=True))
