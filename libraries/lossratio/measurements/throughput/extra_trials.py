"""One more trial after a search, which is longer than its trials, because losses begin within these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lossratio.measurements import Request
from lossratio.mlrsearch import SearchGoal
from lossratio.results import offered_in_words, rate_in_words
from lossratio.trials import TrialInput, TrialResult, offered_load, sut_loss_ratio
from lossratio.values import Ratio, Record, format_ratio

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

_TIMES_AS_LONG = 10.0
LONG = 60.0
"""Seconds of a longer trial at most, unless twice the usual time is more."""


class LongerTrial(Record):
    """One trial at a lower bound that is longer than those of the search, in which losses begin after some time."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of the trial."""
    duration_s: float = Field(gt=0.0)
    """Duration of the trial."""
    loss_ratio: Ratio
    """The share of the goal's frames that the SUT lost."""
    other_ratio: Ratio = 0.0
    """The share of these frames that were late, or dropped by the generator."""
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


def measure_longer(
    testbed: Testbed, request: Request, goal: SearchGoal, load: float
) -> LongerTrial:
    """Performs one trial at a load that is ten times as long as the goal's, or lasts `LONG`.

    Raises:
        LossRatioError: If the trial cannot be measured, or does not show what was lost.
    """
    usual = goal.final_trial_duration
    trial = TrialInput(max(2.0 * usual, min(_TIMES_AS_LONG * usual, LONG)), load)
    with request.ready(testbed) as ready:
        output = ready.measurer.measure(trial)

    result = goal.seen(TrialResult(trial, output))
    lost = sut_loss_ratio(result)
    offered = offered_load(result)
    # The unsent frames are not in the load that was offered.
    others = result.loss_ratio - lost - (1.0 - offered / load)
    return LongerTrial(
        load_per_interface_fps=load,
        duration_s=trial.duration,
        loss_ratio=lost,
        other_ratio=max(0.0, others),
        offered_per_interface_fps=offered,
    )
