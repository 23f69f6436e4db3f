"""Where a measurement is, as whoever waits for it is told after each trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lossratio.mlrsearch import Forecast, GoalBounds
from lossratio.trials import TrialResult


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


OnProgress = Callable[[Progress], None]
