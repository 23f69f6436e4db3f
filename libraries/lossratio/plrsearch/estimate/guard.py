"""The model-free statement alongside the model: what frames at and just below the reported load say by themselves.

The critical load is mostly inferred from trials that lose far more than the target. Only frames at this load show
whether its loss ratio is the ratio that the fitting functions predict. The mean loss ratio does not decrease as the
load increases. So trials at and above a load bound the ratio at this load from above, and trials below the load bound
the ratio from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from lossratio.plrsearch.estimate.bounds import TAIL, LossBounds
from lossratio.plrsearch.model import LONG_TRIALS, Array, CriticalLoadQuestion, TrialCounts
from lossratio.trials import Frames, Observed, Seconds
from lossratio.units import (
    format_about,
    format_duration,
    format_frame_rate,
    format_limits,
    format_most,
    format_target,
    range_in_words,
)

NEAR = 0.05
"""How far the loads of the statement may be below the reported load, as a share of it."""
UP_TO = (1.0, 1.0 + NEAR, 1.0 + 2.0 * NEAR)
"""The highest load of trials that may verify a load, as multiples of this load. Trials at higher loads do not lose
less, and where losses are rare, the trials at one load are too few."""
LEAST_TRIALS = 10
"""Minimum number of trials that verify or contradict a load. Bursts that occur in one trial out of three may be missing
in fewer trials, no matter how many frames these sent, and two trials may have bursts of the same size."""
_LONG_MOST = 3.0
"""How many targets long trials may lose together, because one may have a rare loss."""
_FEW_TRIALS = 3
"""Minimum number of trials at a load that is stated without being verified."""
_CHANCE = 3.0
"""So few lost frames in a trial mean nothing."""
_RESULTS = 25
"""Lower bounds that contradict the reported load hold in this many results at once. Contradictions are rare, so most of
them would otherwise be false."""
_ROUNDING = 1e-9
"""Relative distance of equal loads."""


class Verdict(str, Enum):
    """What frames at and just below the reported load say about the target loss ratio."""

    VERIFIED = "verified"
    """At a load at or just below the reported load, at most the target is lost (probability 97.5 %).

    The frames were sent in at least 10 independent trials. Losses that are rarer than the trials remain unseen, no
    matter how many frames are sent: see `GuardStatement.largest_burst_frames`.
    """
    EXTRAPOLATED = "extrapolated"
    """The frames and trials at these loads do not decide: the reported load depends on the fitting functions."""
    CONTRADICTED = "contradicted"
    """Below the 95 % interval, more than the target is lost (probability 99.9 %)."""


@dataclass(frozen=True, kw_only=True)
class GuardStatement(Observed):
    """What frames at and just below the stated load say about the target loss ratio, without any model."""

    verdict: Verdict
    """``verified``: these frames, in at least 10 trials, show that the loss ratio at the load is at most the target (if
    the critical load is at most the minimum load: more than the target). ``extrapolated``: they do not decide.
    ``contradicted``: below the interval, the loss ratio is above the target.
    """
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
    ``unseen_burst_trials`` trials. Null: the load is not verified, or loss verifies it."""
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
    once_lost_frames: float | None = None
    """Largest number of frames that a trial lost once, no matter how long it took. Such losses are not counted. Null:
    there are none."""
    protocol_s: Seconds | None = None
    """Seconds of the long trials that agree with the verdict; null: there are none."""

    @classmethod
    def of(
        cls, verdict: Verdict, target: float, loads: tuple[float, float], bounds: LossBounds
    ) -> GuardStatement:
        """The statement that trials with these bounds make.

        Args:
            verdict: The verdict about the target.
            target: The target loss ratio.
            loads: Lowest and highest load of the trials, in frames per second.
            bounds: Their loss ratio.
        """
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

    def of_trials(self, seconds: float) -> GuardStatement:
        """The statement, if its trials took so many seconds each."""
        if self.unseen_burst_trials is None:
            return self
        return replace(self, unseen_burst_s=seconds * self.unseen_burst_trials)

    def __str__(self) -> str:
        """The statement of the frames in one line, including the losses that they leave open."""
        if not self.trials:
            load = format_frame_rate(self.highest_load_per_interface_fps)
            return f"{self.verdict.value}: no trial was at {load} or just below"

        loads = range_in_words(
            format_frame_rate(self.load_per_interface_fps),
            format_frame_rate(self.highest_load_per_interface_fps),
        )
        verdict = self.verdict.value
        if self.verdict is Verdict.VERIFIED and self._loses_more:
            verdict = "verified to be above the target"
        lost = f"{self.lost_frames:,} of {self.frames:,} frames were lost"
        line = f"{verdict}: {lost} at {loads}"
        if self.once_lost_frames is not None:
            line += (
                f", without up to {format_about(self.once_lost_frames)} that each trial loses once"
            )
        line += f", a ratio of {format_limits(self.least_loss_ratio, self.most_loss_ratio)}"
        extrapolated = self.verdict is Verdict.EXTRAPOLATED
        if self.extrapolation_factor > 1.0 and extrapolated:
            line += f" ({format_most(self.extrapolation_factor)} times the target)"

        if self.largest_burst_frames is not None and self.unseen_burst_trials is not None:
            most = f"{self.largest_burst_frames:,.0f}"
            frames = "frame is" if most == "1" else "frames are"
            line += f", unless more than {most} {frames} lost at a time, {self._less_often}"
        elif extrapolated and self.unseen_burst_trials is not None:
            line += f"; losses that come {self._less_often} may be in none of these trials"

        if self.missing_frames is not None:
            least = "one" if self.missing_trials == 1 else self.missing_trials
            trials = f" in {least} or more trials" if least else ""
            time = "" if self.missing_s is None else f" ({_roughly(self.missing_s)})"
            line += f"; another {format_about(self.missing_frames)} frames{trials}{time} would verify it"
        elif extrapolated and self.extrapolation_factor <= 1.0:
            line += "; these trials are at several loads, or others speak against this load"

        return line

    @property
    def _loses_more(self) -> bool:
        """Whether the loss ratio is above the target: the critical load is at most the minimum load."""
        return self.least_loss_ratio * self.extrapolation_factor > self.most_loss_ratio

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


def target_in_words(target_loss_ratio: float, guard: GuardStatement, usual: float | None) -> str:
    """The target loss ratio, and the length of the trials in which it holds.

    A bucket or a buffer passes more in short trials than in long ones, so nothing is known about longer trials.

    Args:
        target_loss_ratio: The target loss ratio.
        guard: What is known without a model.
        usual: Seconds of most trials; None: no trial counts.
    """
    target = f"loss ratio {format_target(target_loss_ratio)}"
    if usual is None:
        return target
    if guard.protocol_s is None:
        return f"{target} in trials of {usual:.3g} s"
    return f"{target} in trials of {usual:.3g} s and {guard.protocol_s:.3g} s"


def guard(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    reported: float,
    lowest: float,
    long: TrialCounts | None = None,
    batch: float = 1.0,
    most: float = np.inf,
) -> GuardStatement:
    """The highest load that is verified without a model. If there is none, what is known about a reported load.

    The trials at a load verify it, alone or together with those up to 5 % or 10 % above it, unless the trials from 5 %
    below on disagree: quiet trials at a load are luck if trials at lower loads are not quiet. Loads are checked from
    the highest down. Because the loss ratio does not fall as the load increases, at most the first load verified above
    the critical load would be a wrong answer. If long trials at this load lose more than the target, a lower load at
    which they do not is verified instead.

    If no load is verified, quiet trials far below may hide losses just below the reported load. So the trials below the
    interval are grouped from several loads upwards (see `_starts`). Each of these groups can refute the reported load.

    Args:
        counts: The trials of usual length.
        question: Target and limits.
        reported: The load that the model reports, in frames per second.
        lowest: Lower end of its 95 % interval, in frames per second.
        long: Trials that are much longer.
        batch: Number of frames that are lost at once.
        most: No load above this load is verified, because pauses lose more there.
    """
    target = question.target_loss_ratio
    seconds = float(np.median(counts.duration)) if len(counts) else 0.0
    verified = _highest_verified(counts.at(counts.load <= most), target, batch)
    if verified is not None:
        bounds = verified.bounds
        loads = (verified.load, verified.highest)
        stated = GuardStatement.of(Verdict.VERIFIED, target, loads, bounds).of_trials(seconds)
        return _sustained(stated, target, long, batch)

    refuted = refuting(counts, question, reported, lowest, batch)
    if refuted is not None:
        return refuted.of_trials(seconds)
    load = float(_near(counts, reported).min(initial=reported))
    bounds = _between(counts, load, reported, batch=batch)
    extrapolated = GuardStatement.of(Verdict.EXTRAPOLATED, target, (load, reported), bounds)
    return extrapolated.of_trials(seconds)


def refuting(
    counts: TrialCounts,
    question: CriticalLoadQuestion,
    reported: float,
    lowest: float,
    batch: float = 1.0,
) -> GuardStatement | None:
    """The statement that trials below the interval lose more than the target; None if they do not, beyond chance."""
    loads = _near(counts, reported)
    below = _starts(loads[loads <= lowest * (1.0 + _ROUNDING)])
    for start in below:
        bounds = _between(counts, start, lowest, _RESULTS * len(below), batch)
        if bounds.least > question.target_loss_ratio:
            at_min = reported <= question.min_load * (1.0 + _ROUNDING)
            verdict = Verdict.VERIFIED if at_min else Verdict.CONTRADICTED
            loads_of_them = (start, min(lowest, reported))
            return GuardStatement.of(verdict, question.target_loss_ratio, loads_of_them, bounds)
    return None


def _near(counts: TrialCounts, reported: float) -> Array:
    """The loads of trials at and just below a load."""
    return counts.load[(counts.load >= (1.0 - NEAR) * reported) & (counts.load <= reported)]


@dataclass(frozen=True)
class _Group:
    """Trials that bound the loss ratio at a load from above."""

    load: float
    """Their lowest load, in frames per second."""
    highest: float
    """Their highest load."""
    bounds: LossBounds
    """Their loss ratio."""


def _highest_verified(counts: TrialCounts, target: float, batch: float) -> _Group | None:
    """The trials that verify the highest load, if the trials just below it lose at most the target, too."""
    return _highest_where(counts, lambda bounds: bounds.most <= target, batch)


def within_target(counts: TrialCounts, target: float) -> float | None:
    """The highest load at which as many trials as verify a load lost no more than the target together.

    The trials just below it did not lose more, either. None: there is no such load.
    """
    group = _highest_where(counts, lambda bounds: bounds.lost <= target * bounds.frames)
    return None if group is None else group.load


def _highest_where(
    counts: TrialCounts, is_quiet: Callable[[LossBounds], bool], batch: float = 1.0
) -> _Group | None:
    """The highest load with enough trials that are quiet, or quiet together with those up to 5 % or 10 % above it.

    They are quiet with the trials just below, too.
    """
    loads, trials = np.unique(counts.load, return_counts=True)
    for load in loads[trials >= LEAST_TRIALS][::-1].tolist():
        for most in (load * share for share in UP_TO):
            there = (counts.load >= load) & (counts.load <= most * (1.0 + _ROUNDING))
            bounds = _between(counts, load, most, batch=batch)
            with_below = _between(counts, (1.0 - NEAR) * load, most, batch=batch)
            if is_quiet(bounds) and is_quiet(with_below):
                return _Group(load, float(counts.load[there].max()), bounds)
    return None


def supported(
    counts: TrialCounts, question: CriticalLoadQuestion, lowest: float, batch: float
) -> float:
    """The load to state if none is verified: the highest load that no trials speak against, in frames per second.

    This load is not above the lowest plausible critical load. Two groups of trials lose no more than the target: the
    trials from this load up to the critical load (or to 5 % more), and the trials from 5 % below this load up to it. A
    single lost batch does not count.
    """
    target = question.target_loss_ratio
    chance = batch if batch > 1.0 else 0.0
    loads = np.unique(counts.load[counts.load <= lowest])
    for load in loads[::-1].tolist():
        above = _between(counts, load, min((1.0 + NEAR) * load, lowest))
        below = _between(counts, (1.0 - NEAR) * load, load)
        quiet = all(around.lost <= target * around.frames + chance for around in (above, below))
        if quiet and max(above.trials, below.trials) >= _FEW_TRIALS:
            return float(load)

    much = counts.lost > target * counts.sent + _CHANCE * batch
    lossy = float(counts.load[much].min(initial=lowest))
    return max(min(lowest, (1.0 - NEAR) * lossy if lossy < lowest else lowest), question.min_load)


def lost_near(counts: TrialCounts, load: float) -> bool:
    """Whether trials at and just below a load lost any frames."""
    return bool(_between(counts, (1.0 - NEAR) * load, load).lost)


def _sustained(
    verified: GuardStatement, target: float, long: TrialCounts | None, batch: float
) -> GuardStatement:
    """The statement about a verified load, or about the highest load below it that long trials do not contradict."""
    if long is None or not len(long):
        return verified

    stated = verified
    load = verified.load_per_interface_fps
    loads = np.unique(long.load[long.load <= load * (1.0 + _ROUNDING)])
    for lower in loads[::-1].tolist():
        there = _between(long, lower, lower, batch=batch)
        refuted = is_refuted(there, target, batch)
        if there.trials >= LONG_TRIALS and not refuted:
            seconds = float(np.median(long.duration))
            return replace(verified, load_per_interface_fps=lower, protocol_s=seconds)
        if refuted:
            stated = GuardStatement.of(Verdict.CONTRADICTED, target, (lower, lower), there)
    return stated


def is_refuted(long: LossBounds, target: float, batch: float) -> bool:
    """Whether long trials at a load lose so much that shorter trials do not verify the load."""
    return long.least > target or long.lost > _LONG_MOST * target * long.frames + _CHANCE * batch


def _starts(loads: Array) -> list[float]:
    """Loads from which trials are grouped: all trials, half of them, a quarter, and so on, but at least about 10."""
    starts: list[float] = []
    ordered = np.sort(loads)
    number = len(loads)
    while number >= LEAST_TRIALS:
        starts.append(float(ordered[-number]))
        number = min(number // 2, int(np.count_nonzero(ordered > starts[-1])))
    return starts


def _between(
    counts: TrialCounts, least: float, most: float, looks: int = 1, batch: float = 1.0
) -> LossBounds:
    """The bounds of all trials between two loads; see `LossBounds.of`."""
    chosen = (counts.load >= least) & (counts.load <= most * (1.0 + _ROUNDING))
    frames = counts.sent[chosen]
    return LossBounds.of(frames, counts.lost[chosen], looks, batch)
