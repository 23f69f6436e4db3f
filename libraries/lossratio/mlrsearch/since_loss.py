"""Trials after a long time without loss. Like trials after a rest, they show whether a SUT remembers a loss."""

import math
from collections.abc import Iterable

from lossratio.trials import TrialResult, sut_loss_ratio


def failed_since_loss(
    results: Iterable[TrialResult], upper: float, seconds: float
) -> TrialResult | None:
    """The first lossy trial at or above a load after such a long time without loss; None: there is no such trial.

    Args:
        results: The trials of a search that count, in the order measured.
        upper: The load, in frames per second.
        seconds: Minimum seconds without loss before the trial.
    """
    since = SinceLoss(seconds)
    for result in results:
        since.add(result)
    return since.failed(upper)


class SinceLoss:
    """Trials that came after a long time without loss: a SUT that remembers a loss has forgotten it by then.

    Example: a trial of 60 s at 100 kfps lost nothing, and the next trial, at 100.5 kfps, loses frames. It would pass if
    a loss had made the SUT weak for some seconds.

    Args:
        long: Seconds of a long time.

    Attributes:
        trials: The trials.
    """

    def __init__(self, long: float) -> None:
        self.trials: list[TrialResult] = []
        self._long = long
        self._seconds = 0.0

    @property
    def is_long(self) -> bool:
        """Whether a trial now would be one of these trials."""
        return self._seconds >= self._long

    def add(self, result: TrialResult) -> None:
        """Takes in a trial."""
        if self.is_long and not result.input.rest:
            self.trials.append(result)
        self._seconds = 0.0 if sut_loss_ratio(result) > 0.0 else self._seconds + result.elapsed

    def has_asked(self, bound: float) -> bool:
        """Whether one of these trials was at a bound or above it."""
        return any(result.load >= bound for result in self.trials)

    def failed(self, bound: float, most: float = math.inf) -> TrialResult | None:
        """The first of these trials that lost frames between a bound and this load; None: there is no such trial."""
        return next(
            (
                result
                for result in self.trials
                if bound <= result.load <= most and sut_loss_ratio(result) > 0.0
            ),
            None,
        )
