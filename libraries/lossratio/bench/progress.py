"""Where a measurement is, as whoever waits for it is told after each trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lossratio.report.bounds import GoalBounds
from lossratio.trial import TrialResult


@dataclass(frozen=True)
class Progress:
    """Where a measurement is after a trial.

    Attributes:
        number: How many trials there are, those of an interrupted run included.
        trial: The last one.
        bounds: What is known about each goal; none where nothing is searched for.
        time_left: Seconds that the rest is expected to take; None: there is nothing to tell it from yet.
    """

    number: int
    trial: TrialResult
    bounds: tuple[GoalBounds, ...]
    time_left: float | None


OnProgress = Callable[[Progress], None]
