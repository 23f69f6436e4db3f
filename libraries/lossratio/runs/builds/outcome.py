"""The request for a comparison of two builds, and its outcome."""

import math
from dataclasses import dataclass
from enum import Enum

from lossratio.errors import SearchError


class Build(str, Enum):
    """The builds that are compared."""

    A = "A"
    """The build to compare with, e.g. the parent of a patch."""
    B = "B"
    """The build to judge, e.g. a patch."""


class ComparisonVerdict(str, Enum):
    """The verdict on build B, compared with A."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """Any difference is too small to matter."""
    UNDECIDED = "undecided"
    """The limit was reached before the verdict was clear."""


@dataclass(frozen=True)
class ComparisonResult:
    """The difference of two builds, if it is known."""

    verdict: ComparisonVerdict
    """The verdict on B."""
    difference: float | None
    """The median difference of whole pairs, relative to A; None before the first pair is whole."""
    interval: tuple[float, float]
    """The interval that contains the relative difference with the requested certainty; its upper end is infinite while
    there are too few measurements."""
    measurements: int
    """Number of measurements of both builds."""
    share: float = 0.0
    """Largest share of the frames of a load that are missing and that neither build lost; 0: there are few of them."""
    measured: float | None = None
    """The difference as measured; None: it would be the same if these frames had passed."""


def check_terms(least_change: float, certainty: float) -> None:
    """Checks what a comparison or a bisection is asked for.

    Args:
        least_change: The smallest change that matters, as a share of the throughput.
        certainty: The probability that an answer must have.

    Raises:
        SearchError: If a value is out of range.
    """
    if not 0.0 < least_change < 1.0:
        raise SearchError(
            f"The least change must be a share between 0 and 1, not {least_change!r}."
        )
    if not 0.5 <= certainty < 1.0:
        raise SearchError(f"A certainty must be at least 0.5 and below 1, not {certainty!r}.")


def check_throughput(value: float) -> None:
    """Checks the throughput of a build, in any unit.

    Raises:
        SearchError: If it is not a number of at least 0.
    """
    if not 0.0 <= value < math.inf:
        raise SearchError(f"A throughput must be 0 or more, not {value!r}.")


@dataclass(frozen=True)
class AbRequest:
    """The request for a comparison."""

    least_change: float = 0.01
    """The smallest relative difference that matters; smaller differences are ``same``."""
    limit: int = 40
    """The maximum number of measurements, of both builds together."""
    certainty: float = 0.95
    """Probability that no interval of a test's comparison misses the truth."""
