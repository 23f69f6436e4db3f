"""What the trials at a load say about it by their counts alone: a verdict, with the numbers behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from lossratio.trials import Frames, Observed, Seconds
from lossratio.values import (
    format_about,
    format_duration,
    format_frame_rate,
    format_limits,
    format_most,
    format_target,
    range_in_words,
)

if TYPE_CHECKING:
    from lossratio.plrsearch.bounds import LossBounds

LEAST_TRIALS = 10
"""Minimum number of trials that verify a load. Bursts that occur in one trial out of three may be missing in fewer
trials, no matter how many frames these sent, and two trials may have bursts of the same size."""


class Verdict(str, Enum):
    """What the frames of trials at a load say about the target loss ratio."""

    VERIFIED = "verified"
    """At the load, at most the target is lost (probability 97.5 %).

    The frames were sent in at least 10 independent trials. Losses that are rarer than the trials remain unseen, no
    matter how many frames are sent: see `CountedStatement.largest_burst_frames`.
    """
    EXTRAPOLATED = "extrapolated"
    """The frames and trials do not decide."""
    CONTRADICTED = "contradicted"
    """At the load, more than the target is lost (probability 97.5 %)."""


@dataclass(frozen=True, kw_only=True)
class CountedStatement(Observed):
    """What the frames of some trials say about the target loss ratio, without any model."""

    verdict: Verdict
    """``verified``: these frames, in at least 10 trials, show that the loss ratio at the load is at most the target.
    ``contradicted``: they show that it is more. ``extrapolated``: they do not decide."""
    load_per_interface_fps: float
    """The load of the verdict and the loss ratio: the lowest load of these trials."""
    highest_load_per_interface_fps: float
    """The highest load of these trials."""
    trials: Frames
    """Number of these trials."""
    frames: Frames
    """Frames that they sent."""
    lost_frames: Frames
    """Frames that they lost."""
    burst_frames: float
    """Frames that are lost together, estimated from the scatter of the counts. Such bursts widen the bounds."""
    least_loss_ratio: float
    """Lower end of the loss ratio's 95 % interval (Clopper-Pearson, for bursts)."""
    most_loss_ratio: float
    """Its upper end."""
    extrapolation_factor: float
    """The upper end divided by the target loss ratio."""
    lossy_trials: int
    """Number of trials in which frames were lost."""
    largest_burst_frames: float | None = None
    """The load is verified unless more than this many frames are lost at once, less often than in one out of
    ``unseen_burst_trials`` trials. Null: the load is not verified."""
    unseen_burst_trials: float | None = None
    """Losses that occur in fewer than one out of this many trials may be missing in these trials, with a probability of
    2.5 % or more (Clopper and Pearson); null: there are no trials."""
    unseen_burst_s: Seconds | None = None
    """The same in seconds of these trials; null: there are none."""
    missing_frames: Frames | None = None
    """How many more frames, with the same loss, would verify the load; null: no number of frames would, or none are
    needed."""
    missing_trials: int | None = None
    """Minimum number of further trials that would verify the load; null in the same cases."""
    missing_s: Seconds | None = None
    """Seconds of traffic at the load for these frames; null in the same cases."""

    @classmethod
    def of(
        cls, verdict: Verdict, target: float, loads: tuple[float, float], bounds: LossBounds
    ) -> CountedStatement:
        """The statement that trials with these bounds make.

        Args:
            verdict: The verdict about the target.
            target: The target loss ratio.
            loads: Lowest and highest load of the trials, in frames per second.
            bounds: Their loss ratio.
        """
        from lossratio.plrsearch.bounds import TAIL

        unseen = 1.0 / (1.0 - TAIL ** (1.0 / bounds.trials)) if bounds.trials else None
        missing_trials, missing = 0, None
        if verdict is Verdict.EXTRAPOLATED:
            missing_trials = max(LEAST_TRIALS - bounds.trials, 0)
            missing = bounds.missing_frames(target)
            if missing is not None and bounds.trials:
                missing = max(missing, missing_trials * bounds.frames / bounds.trials)
            # There are enough frames and trials, but they do not verify the load: they are at many loads, or other
            # trials speak against this load.
            missing = missing or None

        largest_burst = None
        if verdict is Verdict.VERIFIED:
            largest_burst = bounds.largest_burst(target)

        # Record: the statement.
        return cls(
            verdict=verdict,
            load_per_interface_fps=loads[0],
            highest_load_per_interface_fps=loads[1],
            trials=bounds.trials,
            frames=round(bounds.frames),
            lost_frames=round(bounds.lost),
            burst_frames=bounds.burst,
            least_loss_ratio=bounds.least,
            most_loss_ratio=bounds.most,
            extrapolation_factor=bounds.most / target,
            lossy_trials=bounds.lossy,
            largest_burst_frames=largest_burst,
            unseen_burst_trials=unseen,
            missing_frames=None if missing is None else math.ceil(missing),
            missing_trials=missing_trials,
        )

    def of_trials(self, seconds: float) -> CountedStatement:
        """The statement, if its trials took so many seconds each."""
        if self.unseen_burst_trials is None:
            return self
        return replace(self, unseen_burst_s=seconds * self.unseen_burst_trials)

    def __str__(self) -> str:
        """The statement of the frames in one line, including the losses that they leave open."""
        if not self.trials:
            load = format_frame_rate(self.highest_load_per_interface_fps)
            return f"{self.verdict.value}: no trial was at {load}"

        loads = range_in_words(
            format_frame_rate(self.load_per_interface_fps),
            format_frame_rate(self.highest_load_per_interface_fps),
        )
        lost = f"{self.lost_frames:,} of {self.frames:,} frames were lost"
        line = f"{self.verdict.value}: {lost} at {loads}"
        line += f", a ratio of {format_limits(self.least_loss_ratio, self.most_loss_ratio)}"
        extrapolated = self.verdict is Verdict.EXTRAPOLATED
        if self.extrapolation_factor > 1.0 and extrapolated:
            line += f" ({format_most(self.extrapolation_factor)} times the target)"

        if self.largest_burst_frames is not None and self.unseen_burst_trials is not None:
            most = f"{self.largest_burst_frames:,.0f}"
            frames = "frame is" if most == "1" else "frames are"
            line += f", unless more than {most} {frames} lost at a time, {self._less_often}"
        elif extrapolated and self.unseen_burst_trials is not None:
            line += f"; losses that come {self._less_often} may not have occurred in any of these trials"

        if self.missing_frames is not None:
            least = "one" if self.missing_trials == 1 else self.missing_trials
            trials = f" in {least} or more trials" if least else ""
            time = "" if self.missing_s is None else f" ({_roughly(self.missing_s)})"
            line += f"; another {format_about(self.missing_frames)} frames{trials}{time} would verify it"
        elif extrapolated and self.extrapolation_factor <= 1.0:
            line += "; these trials are at several loads, or others speak against this load"

        return line

    @property
    def _less_often(self) -> str:
        """How rare losses are that may be missing in these trials, in words."""
        if self.unseen_burst_s is not None:
            return f"less often than every {format_about(self.unseen_burst_s)} s"
        return f"less often than in one of {format_about(self.unseen_burst_trials or 1.0)} trials"


def _roughly(seconds: float) -> str:
    """A time that is not known exactly: from an hour on in whole minutes, and from a day on in whole hours."""
    step = 1.0
    if seconds >= 3_600.0:
        step = 60.0
    if seconds >= 86_400.0:
        step = 3_600.0
    return format_duration(step * round(seconds / step))


def target_in_words(target_loss_ratio: float, usual: float, long: float | None) -> str:
    """The target loss ratio, and the length of the trials in which it holds.

    A bucket or a buffer passes more in short trials than in long ones, so nothing is known about longer trials.

    Args:
        target_loss_ratio: The target loss ratio.
        usual: Seconds of most trials.
        long: Seconds of the long trials; None: there are none.
    """
    target = f"loss ratio {format_target(target_loss_ratio)} in trials of {usual:.3g} s"
    return target if long is None else f"{target} and {long:.3g} s"
