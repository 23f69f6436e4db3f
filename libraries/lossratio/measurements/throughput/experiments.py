"""Experiments after a search in which no load passed: what has to change for the smallest load to pass.

Only one thing is changed at a time. A change that seems to help is tried again, alternating with trials without the
change. Without this control, any change would seem to help a device that loses frames now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field

from lossratio.errors import LossRatioError
from lossratio.measurements import Request
from lossratio.mlrsearch import SearchGoal
from lossratio.records import Ratio, Record
from lossratio.results import rate_in_words
from lossratio.trials import TrialInput, TrialResult, sut_loss_ratio
from lossratio.units import format_frame_rate, format_ratio, trials_counted

if TYPE_CHECKING:
    from lossratio.testbed import Testbed
    from lossratio.traffic import TrafficProfile

SECONDS = 30.0
"""Time after which no further experiment begins."""
_REPEATS = 5
"""How many trials must pass with a change, and how many must fail without it, alternating."""
_DURATION = 0.5
"""Seconds of the longest trials. They are shorter than in most searches, because they only show whether frames are
lost."""
_PART_OF_LOAD = 0.1
"""A smaller load to try, as a share of the smallest load of the search."""
_LONGEST_AT_SMALLER_LOAD = 10.0
"""Seconds of the longest trial at that load. It is as long as for most goals, because buckets and queues hide losses in
short trials."""
_TIMES_AS_LONG = 10.0
LONG = 60.0
"""Seconds of a longer trial at most, unless twice the usual time is more."""
_REST = 3.0
_RAMP = 1.0


class Experiment(Record):
    """Trials with one change."""

    change: str
    """The change, in words that follow "with", as in "with ... the load passes"."""
    passed: int = Field(ge=0)
    """Trials that met the goal."""
    trials: int = Field(ge=1)
    """Trials with the change."""
    remedy: str | None = None
    """The argument that makes the change. None: the change is no remedy."""


class Experiments(Record):
    """The experiments at the smallest load after a search in which no load passed."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of the trials."""
    loss_ratio: float = Field(ge=0.0)
    """Largest loss ratio of a trial that passes, which is the goal's."""
    unchanged_passed: int = Field(ge=0)
    """Trials without any change that passed."""
    unchanged_trials: int = Field(ge=0)
    """Trials without any change."""
    tried: tuple[Experiment, ...] = ()
    """The experiments, in their order."""

    @property
    def helpful(self) -> tuple[Experiment, ...]:
        """The changes with which all trials passed, if no trial passed without any change."""
        if self.unchanged_passed or self.unchanged_trials < _REPEATS:
            return ()
        return tuple(one for one in self.tried if one.passed == one.trials >= _REPEATS)

    @property
    def sentences(self) -> Iterator[str]:
        """What the experiments have shown."""
        load = f"{format_frame_rate(self.load_per_interface_fps)} per interface"
        if self.unchanged_passed:
            yield (
                f"the loss comes and goes: after the search, {self.unchanged_passed} of "
                f"{trials_counted(self.unchanged_trials)} at {load} passed without any change"
            )
            return
        for one in self.helpful:
            remedy = "" if one.remedy is None else f". Remedy: {one.remedy}"
            yield (
                f"{one.change}, {load} passes in {one.passed} of {trials_counted(one.trials)}, and in none of "
                f"{self.unchanged_trials} without this change{remedy}"
            )
        if not self.helpful and self.tried:
            changes = ", ".join(one.change for one in self.tried)
            yield f"no change that was tried lets {load} pass: {changes}"


class SmallerLoad(Record):
    """One trial below the smallest load of a search in which no load passed."""

    goal: str
    """Name of the goal that no load met."""
    load_per_interface_fps: float = Field(gt=0.0)
    """Load of the trial."""
    duration_s: float = Field(gt=0.0)
    """Duration of the trial."""
    loss_ratio: Ratio
    """The share of the goal's frames that the SUT lost."""
    other_ratio: Ratio = 0.0
    """The share of these frames that are missing for other reasons: unsent, late, or dropped by the generator."""
    passed: bool
    """Whether the trial met the goal's loss ratio."""

    @property
    def sentence(self) -> str:
        """What the trial has shown; if it passed, how to search from its load."""
        load = f"{format_frame_rate(self.load_per_interface_fps)} per interface"
        if self.loss_ratio:
            lost = f"{format_ratio(self.loss_ratio)} of the frames"
        else:
            lost = "no frames"

        tried = f"a trial of {self.duration_s:g} s at {load} lost {lost}"
        if self.passed:
            # Three digits, but never a power of ten such as 3e+03.
            least = f"{float(f'{self.load_per_interface_fps:.3g}'):.12g} fps"
            way_out = f'min_load={least}, or for the whole run --variable "MIN_LOAD:{least}"'
            return f"{tried} and met {self.goal}. Search from a smaller load: {way_out}"
        if self.other_ratio:
            others = (
                f"{format_ratio(self.other_ratio)} were unsent, late or dropped by the generator"
            )
            return f"{tried}, but {others}, so it did not meet {self.goal} either"
        return f"{tried} and did not meet {self.goal} either"


class LongerTrial(Record):
    """One trial at a lower bound that is longer than those of the search, in which losses begin after some time."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of the trial."""
    duration_s: float = Field(gt=0.0)
    """Duration of the trial."""
    loss_ratio: Ratio
    """The share of the frames that the SUT lost."""
    other_ratio: Ratio = 0.0
    """The share of the frames that are missing for other reasons: unsent, late, or dropped by the generator."""

    def sentence(self, forwards: str, frames: str) -> str:
        """What the trial has shown.

        Args:
            forwards: What the SUT does, as in the sentence about the search.
            frames: The unit, and what the frames are.
        """
        load = rate_in_words(self.load_per_interface_fps, frames)
        tried = f"Losses begin inside of the trials. In {self.duration_s:g} s at {load}"
        others = ""
        if self.other_ratio:
            share = format_ratio(self.other_ratio)
            others = f"; {share} were unsent, late or dropped by the generator"
        if not self.loss_ratio:
            return f"{tried}, it loses no frame{others}."
        unit = frames.partition(" ")[0]
        passed = rate_in_words(self.load_per_interface_fps * (1.0 - self.loss_ratio), unit)
        lost = format_ratio(self.loss_ratio)
        return f"{tried}, it {forwards} only {passed} ({lost} lost{others})."


@dataclass(frozen=True)
class Change:
    """A single change."""

    in_words: str
    """What is changed, as in "with ... the load passes"."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `lossratio.testbed.Testbed.ready_for` to change."""
    profile: TrafficProfile | None = None
    """Other traffic; None: the same."""
    remedy: str | None = None
    """The argument that makes the change. None: the change is no remedy, but shows where to look."""


NO_CHANGE = Change("without a change")


def run_experiments(
    passes: Callable[[Change], bool],
    changes: Iterator[Change],
    load: float,
    loss_ratio: float,
    is_over: Callable[[], bool],
) -> Experiments:
    """Tries changes, and repeats a change that seems to help, alternating with trials without it.

    Args:
        passes: Whether a trial with a change meets the goal.
        changes: The changes.
        load: Load of the trials, in frames per second per interface.
        loss_ratio: Largest loss ratio of a trial that passes.
        is_over: Whether no further trial may begin.

    Raises:
        LossRatioError: If a trial without a change cannot be measured.
    """
    unchanged = [passes(NO_CHANGE)]
    tried = []
    for change in changes:
        if is_over() or any(unchanged):
            break
        try:
            results = [passes(change)]
            while results[-1] and len(results) < _REPEATS and not is_over():
                unchanged.append(passes(NO_CHANGE))
                if unchanged[-1]:
                    break
                results.append(passes(change))
        except LossRatioError:
            # If the testbed cannot carry the traffic, the change shows nothing.
            continue
        if len(results) == _REPEATS and len(unchanged) < _REPEATS:
            unchanged.append(passes(NO_CHANGE))
        tried.append(
            Experiment(
                change=change.in_words,
                passed=sum(results),
                trials=len(results),
                remedy=change.remedy,
            )
        )

    # Record: the experiments.
    return Experiments(
        load_per_interface_fps=load,
        loss_ratio=loss_ratio,
        unchanged_passed=sum(unchanged),
        unchanged_trials=len(unchanged),
        tried=tuple(tried),
    )


class AfterSearch:
    """The trials after a search: experiments if no load met a goal, or a longer trial."""

    def __init__(self, testbed: Testbed, request: Request, goal: SearchGoal, load: float) -> None:
        """Remembers the search.

        Args:
            testbed: The testbed.
            request: The request of the search.
            goal: The goal in question.
            load: The load of the trials, in frames per second per interface.
        """
        self._testbed = testbed
        self._request = request
        self._goal = goal
        self._load = load

    def experiments(self) -> Experiments:
        """Finds out, for at most about `SECONDS`, what makes trials at the smallest load pass.

        Raises:
            LossRatioError: If a trial without a change cannot be measured.
        """
        end = time.monotonic() + SECONDS

        def passes(change: Change) -> bool:
            return self._passes(self._measure(TrialInput(_DURATION, self._load), change))

        return run_experiments(
            passes,
            changes_of(self._request.profile),
            self._load,
            self._goal.loss_ratio,
            lambda: time.monotonic() > end,
        )

    @property
    def _smaller_trial(self) -> TrialInput:
        duration = min(self._goal.final_trial_duration, _LONGEST_AT_SMALLER_LOAD)
        return TrialInput(duration, _PART_OF_LOAD * self._load)

    @property
    def frames_of_smaller_load(self) -> float:
        """Frames per interface of the trial at a smaller load."""
        return self._smaller_trial.load * self._smaller_trial.duration

    def smaller_load(self) -> SmallerLoad:
        """Performs one trial at a tenth of the smallest load.

        Raises:
            LossRatioError: If the trial cannot be measured, or does not show what was lost.
        """
        step = self._testbed.load_step(self._request.profile)
        result = self._measure(self._smaller_trial.sendable(step), NO_CHANGE)
        passed = self._passes(result)
        return SmallerLoad(goal=str(self._goal), passed=passed, **_counted(result))

    def longer_trial(self) -> LongerTrial:
        """Performs one trial at this load that is ten times as long as the goal's, or lasts `LONG`.

        Raises:
            LossRatioError: If the trial cannot be measured, or does not show what was lost.
        """
        usual = self._goal.final_trial_duration
        duration = max(2.0 * usual, min(_TIMES_AS_LONG * usual, LONG))
        result = self._measure(TrialInput(duration, self._load), NO_CHANGE)
        return LongerTrial(**_counted(result))

    def _measure(self, trial: TrialInput, change: Change) -> TrialResult:
        """A trial with a change, as it counts for the goal."""
        with self._request.ready(self._testbed, change.profile, **change.settings) as ready:
            output = ready.measurer.measure(trial)
        return self._goal.seen(TrialResult(trial, output))

    def _passes(self, result: TrialResult) -> bool:
        """Whether a trial met the goal, no matter what would have become of the unsent frames."""
        return result.loss_ratio <= self._goal.loss_ratio


def _counted(result: TrialResult) -> dict[str, float]:
    """The fields of a record of one trial: what was sent, and what the SUT and others lost."""
    lost = sut_loss_ratio(result)
    return {
        "load_per_interface_fps": result.load,
        "duration_s": result.duration,
        "loss_ratio": lost,
        "other_ratio": max(0.0, result.loss_ratio - lost),
    }


def changes_of(profile: TrafficProfile) -> Iterator[Change]:
    """What can be changed about traffic, and around its trials.

    Args:
        profile: The traffic.
    """
    yield Change(f"after a rest of {_REST:g} s", {"rest": _REST}, remedy=f"rest={_REST:g} s")
    yield Change(f"behind a ramp of {_RAMP:g} s", {"ramp": _RAMP}, remedy=f"ramp={_RAMP:g} s")
    if profile.bidirectional:
        yield Change(
            "with traffic in one direction only", profile=_with(profile, bidirectional=False)
        )
    largest = max(profile.directions[0].size_weights)
    half = max(profile.least_size, largest // 2)
    if half < largest:
        smaller = _with(profile, frame_size=half)
        yield Change(f"with frames of {half:,} B instead of {largest:,} B", profile=smaller)
    if profile.directions[0].headers.flows > 1:
        first = _with_one_value(_fields(profile))
        yield Change("with a single flow", profile=_with(profile, **first))


def _with(profile: TrafficProfile, **changes: Any) -> TrafficProfile:
    """The same traffic with some fields changed."""
    return type(profile).model_validate({**_fields(profile), **changes})


def _fields(profile: TrafficProfile) -> dict[str, Any]:
    """The fields of a profile, without those that follow from others."""
    return profile.model_dump(include=set(type(profile).model_fields))


def _with_one_value(part: Any) -> Any:
    """A part of a profile with the first value of each range."""
    if isinstance(part, dict):
        kept = {name: _with_one_value(value) for name, value in part.items()}
        return {**kept, "count": 1} if {"first", "count"} <= kept.keys() else kept
    return part
