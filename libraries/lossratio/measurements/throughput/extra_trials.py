"""One more trial after a search: below its loads if none passed, or a longer one if losses begin within trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from lossratio.measurements import Request
from lossratio.mlrsearch import SearchGoal
from lossratio.records import Ratio, Record
from lossratio.results import offered_in_words, rate_in_words
from lossratio.trials import TrialInput, TrialResult, offered_load, sut_loss_ratio
from lossratio.units import format_frame_rate, format_ratio

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_PART_OF_LOAD = 0.1
"""A smaller load to try, as a share of the smallest load of the search."""
_LONGEST_AT_SMALLER_LOAD = 10.0
"""Seconds of the longest trial at that load. It is as long as for most goals, because buckets and queues hide losses in
short trials."""
_TIMES_AS_LONG = 10.0
LONG = 60.0
"""Seconds of a longer trial at most, unless twice the usual time is more."""


class ExtraTrial(Record):
    """One trial after a search."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of the trial."""
    duration_s: float = Field(gt=0.0)
    """Duration of the trial."""
    loss_ratio: Ratio
    """The share of the goal's frames that the SUT lost."""
    other_ratio: Ratio = 0.0
    """The share of these frames that are missing for other reasons: unsent, late, or dropped by the generator."""


class SmallerLoad(ExtraTrial):
    """One trial below the smallest load of a search in which no load passed."""

    goal: str
    """Name of the goal that no load met."""
    passed: bool
    """Whether the trial met the goal's loss ratio."""

    @property
    def sentence(self) -> str:
        """What the trial has shown; if it passed, how to search from its load."""
        load = f"{format_frame_rate(self.load_per_interface_fps)} per interface"
        lost = f"{format_ratio(self.loss_ratio)} of the frames" if self.loss_ratio else "no frames"
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


class LongerTrial(ExtraTrial):
    """One trial at a lower bound that is longer than those of the search, in which losses begin after some time."""

    offered_per_interface_fps: float | None = None
    """The load without the frames that were not sent; null: all were sent."""

    def sentence(self, forwards: str, frames: str) -> str:
        """What the trial has shown.

        Args:
            forwards: What the SUT does, as in the sentence about the search.
            frames: The unit, and what the frames are.
        """
        asked = self.load_per_interface_fps
        offered = self.offered_per_interface_fps or asked
        load = offered_in_words(offered, asked, frames)
        tried = f"Losses begin within the trials. In {self.duration_s:g} s at {load}"
        others = ""
        if self.other_ratio:
            others = f"; {format_ratio(self.other_ratio)} were late or dropped by the generator"
        if not self.loss_ratio:
            return f"{tried}, it loses no frame{others}."
        unit = frames.partition(" ")[0]
        passed = rate_in_words(offered * (1.0 - self.loss_ratio), unit)
        lost = format_ratio(self.loss_ratio)
        return f"{tried}, it {forwards} only {passed} ({lost} lost{others})."


def trial_below(goal: SearchGoal, least: float) -> TrialInput:
    """The trial at a smaller load.

    Args:
        goal: The goal that no load met.
        least: The smallest load of the search, in frames per second per interface.
    """
    duration = min(goal.final_trial_duration, _LONGEST_AT_SMALLER_LOAD)
    return TrialInput(duration, _PART_OF_LOAD * least)


def measure_smaller_load(
    testbed: Testbed, request: Request, goal: SearchGoal, least: float
) -> SmallerLoad:
    """Performs one trial at a tenth of the smallest load of the search, in frames per second per interface.

    Raises:
        LossRatioError: If the trial cannot be measured, or does not show what was lost.
    """
    trial = trial_below(goal, least).sendable(testbed.load_step(request.profile))
    result = _measured(testbed, request, goal, trial)
    # No matter what would have become of the unsent frames.
    passed = result.loss_ratio <= goal.loss_ratio
    return SmallerLoad(goal=str(goal), passed=passed, **_counted(result))


def measure_longer(
    testbed: Testbed, request: Request, goal: SearchGoal, load: float
) -> LongerTrial:
    """Performs one trial at a load that is ten times as long as the goal's, or lasts `LONG`.

    Raises:
        LossRatioError: If the trial cannot be measured, or does not show what was lost.
    """
    usual = goal.final_trial_duration
    duration = max(2.0 * usual, min(_TIMES_AS_LONG * usual, LONG))
    result = _measured(testbed, request, goal, TrialInput(duration, load))
    offered = offered_load(result)
    counted = _counted(result)
    # The unsent frames are not in the load that was offered.
    counted["other_ratio"] = max(0.0, counted["other_ratio"] - (1.0 - offered / load))
    return LongerTrial(offered_per_interface_fps=offered, **counted)


def _measured(
    testbed: Testbed, request: Request, goal: SearchGoal, trial: TrialInput
) -> TrialResult:
    """A trial, as it counts for the goal."""
    with request.ready(testbed) as ready:
        output = ready.measurer.measure(trial)
    return goal.seen(TrialResult(trial, output))


def _counted(result: TrialResult) -> dict[str, Any]:
    """What was sent, and what the SUT and others lost."""
    lost = sut_loss_ratio(result)
    return {
        "load_per_interface_fps": result.load,
        "duration_s": result.duration,
        "loss_ratio": lost,
        "other_ratio": max(0.0, result.loss_ratio - lost),
    }
