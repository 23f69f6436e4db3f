"""The progress of a measurement after each trial, and the lines that the console shows then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lossratio.mlrsearch import Forecast, GoalBounds, RelevantBounds
from lossratio.results import format_loss
from lossratio.trials import TrialInput, TrialResult
from lossratio.values import format_frame_rate, format_ratio, format_short_duration, prefix_of

_GOAL_WIDTH = 17
"""Columns of a goal and its bounds."""


@dataclass(frozen=True)
class Progress:
    """The progress of a measurement after a trial."""

    number: int
    """Number of trials so far, including the trials of an interrupted run."""
    trial: TrialResult
    """The last trial."""
    bounds: tuple[GoalBounds, ...]
    """The bounds of each goal; none if the measurement is not a search."""
    time_left: Forecast | None
    """The expected time of the remaining trials, with its range; None: not known."""
    purpose: str | None = None
    """Why the trial was chosen; None: the controller gives no reason, or there is nothing to choose."""
    rule: str | None = None
    """Name of the rule that chose the trial; None: there is no rule, or the trial is a warm-up."""
    elapsed: float | None = None
    """Seconds that all trials so far took; None: not known."""
    following: TrialInput | None = None
    """The next trial; None: there is none, or it is not known."""
    aim: str = ""
    """What the next trial is for, in a few words; empty: the controller does not say."""

    @classmethod
    def of(cls, controller: Any, trial: TrialResult) -> "Progress":
        """The progress as seen by a controller that counts `trials` and `elapsed` time, and has a `forecast`."""
        bounds = getattr(controller, "bounds", ())
        next_trial = controller.next_trial()
        chosen = getattr(controller, "last_purpose", getattr(controller, "purpose", None))
        words = None if chosen is None else str(chosen)
        reason = getattr(controller, "purpose", None)

        return cls(
            controller.trials,
            trial,
            bounds,
            controller.forecast(),
            words,
            getattr(chosen, "rule", None),
            controller.elapsed,
            next_trial,
            getattr(reason, "in_short", ""),
        )

    @property
    def stage(self) -> object:
        """Which bounds of each goal are known, and which goals are proved. It changes a few times in a search."""
        return tuple(
            (each.shown == each.proved, *(bound is None for bound in each.shown))
            for each in self.bounds
        )

    def line(self, *, verbose: bool = False) -> str:
        """The line that is shown after a trial if the console is not a terminal, such as in the log of a CI system.

        Without search goals, it shows the forwarding rate. Until both bounds of a goal are proved, it shows the bounds
        that the trials so far suggest, with a ``~`` before them.

        Args:
            verbose: Whether the line also names the rule that chose the trial.
        """
        goals = (f"{each.goal} {_short(each)}" for each in self.bounds)
        parts = [f"{goal:<{_GOAL_WIDTH}}" for goal in goals]
        if not parts:
            parts = [f"{_passed_in_words(self.trial)} per interface"]
        if self.time_left is not None:
            parts.append(f"{seconds_in_words(self.time_left.seconds)} left")
        if verbose and self.rule is not None:
            parts.append(self.rule)
        line = "  ".join([trial_in_words(self.number, self.trial), *parts])
        return line.rstrip()


OnProgress = Callable[[Progress], None]


def status_line(
    progress: Progress, seconds: float, width: int, so_far: tuple[int, int] | None = None
) -> str:
    """The line on a terminal while a trial runs: what it is for, the bounds so far, and the time left; else empty.

    Args:
        progress: The progress after the last trial.
        seconds: How long the running trial has taken.
        width: Columns of the terminal.
        so_far: The frames that the running trial has sent and received; None: not known.
    """
    left, following = progress.time_left, progress.following
    if following is None:
        return ""

    number = f"trial {progress.number + 1}{_of_about(progress)}"
    load = (
        f"{_rate_in_words(following, following.load)}, "
        f"{min(seconds, following.duration):.{1 if following.duration < 100 else 0}f} of {following.duration:.4g} s"
    )
    trial = f"{number}: {load}"
    whole = f"{number}, {progress.aim}: {load}" if progress.aim else trial
    frames = ""
    if so_far is not None and so_far[0]:
        sent, received = so_far
        # Some frames are still in flight, so this is not a loss ratio yet.
        frames = (
            f"{_short_rate(sent)} sent, {format_ratio(max(0, sent - received) / sent)} not back"
        )
    bounds = "  ".join(f"{each.goal} {_short(each)}" for each in progress.bounds)
    band = ""
    alone = ""
    if left is not None:
        # The estimate was made when the trial began.
        times = (max(0.0, time - seconds) for time in (left.seconds, left.low, left.high))
        now, low, high = map(seconds_in_words, times)
        alone = f"{now} left"
        band = alone if low == high else f"{alone} ({low} to {high})"

    # What comes first is left out last.
    choices = (
        (whole, frames, bounds, band),
        (whole, bounds, band),
        (whole, bounds, alone),
        (trial, bounds, alone),
        (number, bounds, alone),
        (trial, alone),
    )
    lines = ["  ".join(part for part in parts if part) for parts in choices]
    return next((line for line in lines if len(line) <= width), lines[-1][:width])


def _of_about(progress: Progress) -> str:
    """The expected number of trials, if the time that is left and the time of the trials so far are known."""
    if progress.time_left is None or not progress.elapsed:
        return ""
    rest = progress.time_left.seconds * progress.number / progress.elapsed
    return f" of about {progress.number + max(1, round(rest))}"


def _short(bounds: GoalBounds) -> str:
    """An interval in a short form, e.g. ``~149.8-150.5k``."""
    mark, shown = _shown(bounds)
    low, high = (None if bound is None else _short_rate(bound) for bound in shown)
    if low is None and high is None:
        return "?"
    if low is None or high is None:
        if low is not None:
            return f"{mark}>{low}"
        return f"{mark}<{high}"
    return f"{mark}{low[:-1] if low[-1] == high[-1] and low[-1].isalpha() else low}-{high}"


def _short_rate(rate: float) -> str:
    prefix, scale = prefix_of(rate)
    return f"{rate / scale:.4g}{prefix}"


def trial_in_words(number: int, trial: TrialResult) -> str:
    """The beginning of the line after a trial."""
    unsent = trial.output.unsent_frames
    beside = f" ({unsent:,} unsent)" if unsent else ""
    loss = f"loss {format_loss(trial.loss_ratio, trial.output.decided_after)}{beside}"
    load = _rate_in_words(trial.input, trial.load)
    return f"trial {number:>3}  {load:>11} for {trial.duration:.4g} s  {loss:<14}"


def _rate_in_words(trial: TrialInput, rate: float) -> str:
    """A rate of a trial, in its unit: frames per second, or connections if each frame opens one."""
    return format_frame_rate(rate) if trial.exchange is None else f"{rate:,.0f} conn/s"


def _passed_in_words(trial: TrialResult) -> str:
    """What a trial passed."""
    passed = "forwarded" if trial.input.exchange is None else "established"
    return f"{passed} {_rate_in_words(trial.input, trial.forwarding_rate)}"


def _shown(bounds: GoalBounds) -> tuple[str, RelevantBounds]:
    """The bounds to show, and the mark before bounds that are not proved."""
    return "" if bounds.shown == bounds.proved else "~", bounds.shown


def seconds_in_words(seconds: float) -> str:
    """A number of seconds that are left in words, e.g. ``1min 20s``; a negative number is none."""
    return format_short_duration(max(0.0, seconds))
