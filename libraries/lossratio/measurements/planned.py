"""Trials that are known before the first one: a controller that only has to know when there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lossratio.trials import TrialInput, TrialResult


class PlannedTrials:
    """Asks for given trials one after the other; a `lossratio.trials.trial.Controller`.

    Args:
        trials: The trials.
        are_enough: Whether these results are, so that the rest of the trials would tell nothing new.

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
        """How many trials were recorded."""
        return len(self._results)

    @property
    def remaining(self) -> int:
        """How many trials there are still to come at most."""
        return 0 if self._are_enough(self._results) else len(self._trials) - len(self._results)

    def next_trial(self) -> TrialInput | None:
        """The next trial; None when there were enough."""
        return self._trials[len(self._results)] if self.remaining > 0 else None

    def record(self, result: TrialResult) -> None:
        """Takes in a trial's result."""
        self._results.append(result)
        self.elapsed += result.elapsed

    def result(self) -> tuple[TrialResult, ...]:
        """All results so far."""
        return tuple(self._results)
