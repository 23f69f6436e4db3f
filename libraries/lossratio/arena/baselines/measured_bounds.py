"""Bounds among trials of one duration, by effective loss ratio (draft-ietf-bmwg-mlrsearch-01)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from lossratio.trials import TrialResult


@dataclass(frozen=True)
class MeasuredBounds:
    """The bounds for one target loss ratio among trials of one duration: loads in frames per second, None: none.

    Attributes:
        lower: The largest load of all that have no more than the target loss ratio, up to there.
        second_lower: The measured load next below it.
        upper: The smallest load of all that have more.
        second_upper: The measured load next above it.
    """

    lower: float | None = None
    second_lower: float | None = None
    upper: float | None = None
    second_upper: float | None = None


class MeasuredLoads:
    """The trials of one duration, one for each load; the latest counts."""

    def __init__(self) -> None:
        self._results: dict[float, TrialResult] = {}

    def add(self, result: TrialResult) -> None:
        """Counts a trial."""
        self._results[result.load] = result

    def forget(self, load: float) -> None:
        """Forgets the trial at a load."""
        del self._results[load]

    def at(self, load: float | None) -> TrialResult | None:
        """The trial at a load; None if there is none."""
        return None if load is None else self._results.get(load)

    def effective_loss_ratios(self) -> dict[float, float]:
        """Each load's effective loss ratio: the largest one measured up to that load; by increasing load."""
        loads = sorted(self._results)
        largest = accumulate((self._results[load].loss_ratio for load in loads), max)
        return dict(zip(loads, largest, strict=True))

    def bounds(self, loss_ratio: float) -> MeasuredBounds:
        """The bounds for a target loss ratio."""
        ratios = self.effective_loss_ratios()
        lower = [load for load, effective in ratios.items() if effective <= loss_ratio]
        upper = [load for load, effective in ratios.items() if effective > loss_ratio]
        return MeasuredBounds(
            lower=lower[-1] if lower else None,
            second_lower=lower[-2] if len(lower) > 1 else None,
            upper=upper[0] if upper else None,
            second_upper=upper[1] if len(upper) > 1 else None,
        )
