"""An interval of MLRsearch of 2019 (draft-vpolak-mkonstan-bmwg-mlrsearch-02): two trials, valid as bounds or not."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.arena.baselines.widths import log_distance
from lossratio.trials import TrialResult


@dataclass(frozen=True)
class Interval:
    """The interval that is searched for one loss ratio.

    Attributes:
        loss_ratio: A valid lower bound has no more loss than this, a valid upper bound has more.
        max_load: Largest load, frames per second; an upper bound there is valid whatever its loss.
        lower: The latest trial at the lower bound.
        upper: The latest trial at the upper bound.
    """

    loss_ratio: float
    max_load: float
    lower: TrialResult
    upper: TrialResult

    @property
    def width(self) -> float:
        """Logarithmic width."""
        return log_distance(self.lower.load, self.upper.load)

    @property
    def is_lower_valid(self) -> bool:
        """Whether the lower bound conforms with the loss ratio."""
        return self.lower.loss_ratio <= self.loss_ratio

    @property
    def is_upper_valid(self) -> bool:
        """Whether the upper bound does not conform with the loss ratio, or cannot be raised."""
        return self.upper.loss_ratio > self.loss_ratio or self.upper.load >= self.max_load

    def updated(self, result: TrialResult) -> Interval:
        """The interval after another trial.

        The latest trial at a bound's load replaces it. Below an invalid lower bound, a trial is the new lower bound
        and the old one a valid upper bound; other trials change nothing then. Below a valid one, only high loss
        counts: the lower bound moves there, and is invalid. Above the upper bound, a trial only counts if that is
        invalid: it is the new upper bound, and the old one a valid lower bound. Inside, loss decides which it is.
        """
        if result.load in (self.lower.load, self.upper.load):
            return self._with(
                result if result.load == self.lower.load else self.lower,
                result if result.load == self.upper.load else self.upper,
            )
        is_high = result.loss_ratio > self.loss_ratio
        if not self.is_lower_valid:
            return self._with(result, self.lower) if result.load < self.lower.load else self
        if result.load < self.lower.load:
            return self._with(result, self.upper) if is_high else self
        if result.load > self.upper.load:
            return self if self.is_upper_valid else self._with(self.upper, result)
        return self._with(self.lower, result) if is_high else self._with(result, self.upper)

    def _with(self, lower: TrialResult, upper: TrialResult) -> Interval:
        return Interval(self.loss_ratio, self.max_load, lower, upper)
