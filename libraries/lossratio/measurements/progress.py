"""The progress of a measurement after each trial, and the line that the console shows then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lossratio.mlrsearch import Forecast, GoalBounds, RelevantBounds
from lossratio.results import format_interval, format_loss
from lossratio.trials import TrialInput, TrialResult
from lossratio.units import format_frame_rate, format_ratio, format_short_duration, prefix_of

_INTERVAL_WIDTH = 22
_HEAD = "{:>3} {:>11} {:>6} {:>8}"
"""The columns of a row: number, load, duration and loss ratio of the trial."""
_LINE_WIDTH = 100
"""Width of a line that is not on a terminal, in columns."""
_SHORT_WIDTH = 19
"""Columns of a goal and its bounds on a narrow terminal."""
_LEAST_PURPOSE = 12
"""Minimum number of columns in which the beginning of a purpose is shown."""
_WIDEST_BAR, _NARROWEST_BAR = 20, 8


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

    @classmethod
    def of(
        cls, controller: Any, trial: TrialResult, purpose: object = None, rule: str | None = None
    ) -> "Progress":
        """The progress as seen by a controller that counts `trials` and `elapsed` time, and has a `forecast`."""
        words = None if purpose is None else str(purpose)
        bounds = getattr(controller, "bounds", ())
        next_trial = controller.next_trial()
        return cls(
            controller.trials,
            trial,
            bounds,
            controller.forecast(),
            words,
            rule,
            controller.elapsed,
            next_trial,
        )

    def line(self, *, verbose: bool = False) -> str:
        """The line that is shown after a trial if the console is not a terminal, such as in the log of a CI system.

        Without search goals, it shows the forwarding rate. Until both bounds of a goal are proved, it shows the bounds
        that the trials so far suggest, with a ``~`` before them. Parts that do not fit are left out.

        Args:
            verbose: Whether the line also names the rule that chose the trial.
        """
        goals = [f"{each.goal} {_short(each)}" for each in self.bounds]
        forwarded = f"{_passed_in_words(self.trial)} per interface"
        text = _filled(
            trial_in_words(self.number, self.trial),
            goals or [forwarded],
            _LINE_WIDTH,
            _SHORT_WIDTH - 2,
        )
        if self.time_left is None:
            left = None
        else:
            left = f"{seconds_in_words(self.time_left.seconds)} left"

        for part in (left, self.rule if verbose else None):
            if part is not None and len(text) + 2 + len(part) <= _LINE_WIDTH:
                text += f"  {part}"

        return text.rstrip()

    def row(self, width: int, *, verbose: bool = False) -> str:
        """The row that a terminal shows, as far as it fits into this many columns. The bounds of goals have priority.

        Args:
            width: Columns of the terminal.
            verbose: Whether the row also says why the trial was chosen.
        """
        trial = self.trial
        # After an early verdict the loss ratio is a lower limit.
        loss = (">" if trial.is_early else "") + format_ratio(trial.loss_ratio)
        text = _HEAD.format(
            self.number, _rate_in_words(trial.input, trial.load), f"{trial.duration:.4g} s", loss
        )
        shown = [(bounds.goal, *_shown(bounds)) for bounds in self.bounds]
        intervals = [f"{goal} {mark}{format_interval(*interval)}" for goal, mark, interval in shown]
        long = "".join(f"  {interval:<{_INTERVAL_WIDTH + 4}}" for interval in intervals)
        short = [f"{bounds.goal} {_short(bounds)}" for bounds in self.bounds]
        fits = intervals and len(text) + len(long) <= width
        forwarded = _passed_in_words(trial)
        text = text + long if fits else _filled(text, short or [forwarded], width)
        unsent = trial.output.unsent_frames
        rest = [f"{unsent:,} unsent"] if unsent else []
        why = (self.rule, self.purpose) if verbose else ()
        rest += [part for part in why if part is not None]
        room = width - len(text) - 2
        more = "  ".join(rest)
        if more and room >= min(len(more), _LEAST_PURPOSE):
            text += "  " + (more if len(more) <= room else more[: room - 1] + "…")

        return text.rstrip()


OnProgress = Callable[[Progress], None]


def heading(width: int) -> str:
    """The heading over the rows of `Progress.row`, in this many columns."""
    return (_HEAD.format("", "load", "for", "loss") + "  per interface; ~ is not proved yet")[
        :width
    ]


def status_line(
    progress: Progress, seconds: float, width: int, so_far: tuple[int, int] | None = None
) -> str:
    """The line below the rows: the time that has passed, the time left, and the running trial; else empty."""
    left, following = progress.time_left, progress.following
    if following is None:
        return ""

    trial = (
        f"trial {progress.number + 1}: {_rate_in_words(following, following.load)}, "
        f"{min(seconds, following.duration):.{1 if following.duration < 100 else 0}f} of {following.duration:.4g} s"
    )
    frames = ""
    if so_far is not None and so_far[0]:
        sent, received = so_far
        # Some frames are still in flight, so this is not a loss ratio yet.
        frames = (
            f"{_short_rate(sent)} sent, {format_ratio(max(0, sent - received) / sent)} not back"
        )

    bar = ""
    band = ""
    alone = ""
    if left is not None:
        # The estimate was made when the trial began.
        now = Forecast(*(max(0.0, time - seconds) for time in (left.seconds, left.low, left.high)))
        alone, low, high = (
            f"{seconds_in_words(now.seconds)} left",
            *map(seconds_in_words, (now.low, now.high)),
        )
        band = alone if low == high else f"{alone} ({low} to {high})"
        if progress.elapsed is not None:
            done = progress.elapsed + seconds
            share = done / max(done + now.seconds, 1e-9)
            room = (
                width
                - len("  ".join(part for part in (trial, frames, band) if part))
                - len("[]  100 %  ")
            )
            bar = f"{100.0 * share:.0f} %"
            columns = min(_WIDEST_BAR, room)
            if columns >= _NARROWEST_BAR:
                filled = round(share * columns)
                bar = f"[{'#' * filled}{'-' * (columns - filled)}] {bar}"

    # On a narrow terminal, the range of the time is left out first, then the bar.
    choices = ((bar, trial, frames, band), (bar, trial, frames, alone), (trial, frames, alone))
    lines = ["  ".join(part for part in parts if part) for parts in choices]
    return next((line for line in lines if len(line) <= width), lines[-1][:width])


def _filled(text: str, parts: list[str], width: int, widest: int = _SHORT_WIDTH) -> str:
    """Appends the parts that fit, and the number of parts that do not fit."""
    for gap, least in (("  ", widest), (" ", 0)):
        whole = text + "".join(f"{gap}{part:<{least}}" for part in parts)
        if len(whole.rstrip()) <= width:
            return whole[:width]
    for number, part in enumerate(parts):
        rest = f"  +{len(parts) - number}"
        if len(text) + 2 + len(part) + (len(rest) if number < len(parts) - 1 else 0) > width:
            if len(text) + len(rest) <= width:
                return text + rest
            return text
        text += f"  {part}"
    return text


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
