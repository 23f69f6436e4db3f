"""The request for a comparison of two builds, and its outcome."""

from dataclasses import dataclass
from enum import Enum


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


@dataclass(frozen=True)
class AbRequest:
    """The request for a comparison."""

    least_change: float = 0.01
    """The smallest relative difference that matters; smaller differences are ``same``."""
    limit: int = 40
    """The maximum number of measurements, of both builds together."""
    certainty: float = 0.95
    """Probability that no interval of a test's comparison misses the truth."""
