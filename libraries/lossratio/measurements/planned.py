"""Trials that are planned before the first one: a controller that only decides when there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lossratio.trials import TrialInput, TrialResult


class PlannedTrials:
    """Asks for given trials one after the other; a `lossratio.trials.trial.Controller`.

    Args:
        trials: The trials.
        are_enough: Whether these results are enough, so that the remaining trials would show nothing new.

    Attributes:
        elapsed: Seconds that all trials recorded so far took.
    """

    def __init__(
        self, trials: Sequence[TrialInput], are_enough: Callable[[Sequence[TrialResult]], bool] = lambda _: False
    ) -> None:
        self._trials = trials
        self._are_enough = are_enough
        self._results: list[TrialResult] = []
        self.elapsed = 0.0

    @property
    def trials(self) -> int:
        """Number of trials recorded."""
        return len(self._results)

    @property
    def remaining(self) -> int:
        """Largest number of trials still to come."""
        return 0 if self._are_enough(self._results) else len(self._trials) - len(self._results)

    def next_trial(self) -> TrialInput | None:
        """The next trial; None when there were enough."""
        return self._trials[len(self._results)] if self.remaining > 0 else None

    def record(self, result: TrialResult) -> None:
        """Records a trial's result."""
        self._results.append(result)
        self.elapsed += result.elapsed

    def result(self) -> tuple[TrialResult, ...]:
        """All results so far."""
        return tuple(self._results)
