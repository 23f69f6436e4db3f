"""What a search for the critical load is asked, its options by name, and reasons to stop."""

import math
from dataclasses import dataclass
from enum import Enum

from lossratio.errors import SearchError
from lossratio.values import checked

TIMEOUT = 1800.0
"""Seconds of a soak test, as in FD.io CSIT."""
TIME_FOR_RARE = 7.5
"""Seconds of a search per second between the losses that it has to see: about half of its time is at the stated load,
and 3.7 of them have to be expected there, so that one is seen with a probability of 97.5 %."""


@checked(SearchError)
@dataclass(frozen=True)
class CriticalLoadQuestion:
    """The question that a search answers: at which load is the mean loss ratio the target?

    Raises:
        SearchError: If a value makes no sense.
    """

    target_loss_ratio: float
    """Between 0 and 1, exclusive."""
    min_load: float
    """Smallest possible answer, in frames per second."""
    max_load: float
    """Largest possible answer, in frames per second."""

    def __post_init__(self) -> None:
        if not 0.0 < self.target_loss_ratio < 1.0:
            raise SearchError(
                f"The target loss ratio must be between 0 and 1, exclusive, not {self.target_loss_ratio!r}."
            )
        if not (0.0 < self.min_load < self.max_load < math.inf):
            raise SearchError(
                f"The minimum load must be above 0 and below the maximum load, and both must be finite, not "
                f"{self.min_load!r} and {self.max_load!r}."
            )

    def clamped(self, load: float) -> float:
        """The load, or the nearer limit."""
        return min(max(load, self.min_load), self.max_load)


class SelectionName(str, Enum):
    """How the loads of trials are chosen."""

    COUNTS = "counts"
    """The search by counts."""
    CSIT = "csit"
    """The rule, the Monte Carlo and the fitting functions of FD.io CSIT's code."""


class LikelihoodName(str, Enum):
    """What the estimate of the critical load beside the verified load is computed from."""

    LINE = "line"
    """A line: the logarithm of the loss ratio over 1/load, near the target, with Poisson counts."""
    POISSON = "poisson"
    """PLRsearch as in its Internet draft: both fitting functions, with Poisson counts around them."""


class StopReason(str, Enum):
    """Why a search is over."""

    TIMEOUT = "timeout"
    """The time for trials is used up."""
    PRECISION = "precision"
    """The verified and the contradicted load are as near each other as requested."""
    MIN_LOAD = "minimum load"
    """More than the target is lost at the minimum load, so the critical load is below, where no trial is possible."""
