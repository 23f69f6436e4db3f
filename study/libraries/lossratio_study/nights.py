"""Searches with hints: some nights on a SUT, each with hints from the nights before, and then the examined search.

A `Change` happens to the SUT before the examined search. For each change there are two algorithms, which search on the
same changed SUTs: one with hints from the nights before, and one without.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from lossratio.mlrsearch import EARLIER_SEARCHES, SearchGoal
from lossratio.trials import Measurer, TrialResult
from lossratio_study.algorithms import Algorithm, search_with_ours
from lossratio_study.outcome import Outcome
from lossratio_study.suts import Overhead, Scaled, Subject, named

NIGHT_STREAM = 2
"""Stream of random numbers of the earlier nights."""
Trials = tuple[TrialResult, ...]


def _as_before(rng: np.random.Generator) -> float:
    return 1.0


def _up_to(rng: np.random.Generator, change: float) -> float:
    return 1.0 + rng.uniform(-change, change)


def _either_way(rng: np.random.Generator, change: float) -> float:
    return 1.0 + float(rng.choice((-change, change)))


def _by_anything(rng: np.random.Generator) -> float:
    return math.exp(rng.uniform(-3.0, 3.0))


@dataclass(frozen=True)
class Change:
    """A change of a SUT before the examined search."""

    name: str
    """Its name in tables."""
    factor: Callable[[np.random.Generator], float] = _as_before
    """Draws the factor by which the SUT is faster in the examined search."""
    nights: int = EARLIER_SEARCHES
    """Number of earlier nights."""
    drift: float = 0.0
    """Relative growth of the SUT's capacity with each of these nights."""
    is_nonsense: bool = False
    """Whether the factor applies to the SUT of the earlier nights instead."""

    @property
    def with_hints(self) -> str:
        """Name of the algorithm with hints."""
        return f"hints, {self.name}"

    @property
    def without_hints(self) -> str:
        """Name of the algorithm without hints."""
        return f"no hints, {self.name}"

    def drawn(self, subject: Subject) -> float:
        """The factor for a SUT; always the same for one SUT."""
        return self.factor(np.random.default_rng((subject.seed, zlib.crc32(f"{self.name} {subject.family}".encode()))))

    def tonight(self, subject: Subject) -> Subject:
        """The SUT in the examined search."""
        if self.is_nonsense:
            return subject
        return scaled(subject, self.drawn(subject) * (1.0 + self.drift) ** self.nights)

    def earlier(self, subject: Subject, night: int) -> Subject:
        """The SUT on an earlier night."""
        if self.is_nonsense:
            return scaled(subject, self.drawn(subject))
        return scaled(subject, (1.0 + self.drift) ** night)


def scaled(subject: Subject, factor: float) -> Subject:
    """A SUT that is faster by a factor."""
    if factor == 1.0 or subject.sut is None:
        return subject
    return replace(subject, sut=Scaled(subject.sut, factor))


# Table: each change on a line.
CHANGES: Mapping[str, Change] = named(
    Change("unchanged"),
    Change("up to 5 %", partial(_up_to, change=0.05)),
    Change("20 %", partial(_either_way, change=0.2)),
    Change("nonsense", _by_anything, is_nonsense=True),
    Change("1 %", partial(_either_way, change=0.01)),
    Change("forty nights", nights=40),
    Change("drift 0.1 % a night", nights=40, drift=0.001),
)
"""All changes by name."""


@lru_cache(maxsize=1024)
def _earlier_nights(goals: tuple[SearchGoal, ...], subject: Subject, change: str) -> tuple[Trials, ...]:
    nights: list[Trials] = []
    for night in range(CHANGES[change].nights):
        then = CHANGES[change].earlier(subject, night)
        measurer = then.measurer(Overhead(0.0), night, NIGHT_STREAM)
        nights.append(search_with_ours(goals, then, measurer, hints=nights[-EARLIER_SEARCHES:]).trials)
    return tuple(nights[-EARLIER_SEARCHES:])


def _algorithm(name: str, change: Change) -> Algorithm:
    def search(goals: Sequence[SearchGoal], subject: Subject, measurer: Measurer) -> Outcome:
        hints = _earlier_nights(tuple(goals), subject, change.name) if name == change.with_hints else ()
        return search_with_ours(goals, subject, measurer, hints=hints)

    return Algorithm(name, search, tonight=change.tonight, knows_the_sut=True)


HINT_ALGORITHMS: Mapping[str, Algorithm] = named(
    *(_algorithm(name, change) for change in CHANGES.values() for name in (change.with_hints, change.without_hints))
)
"""The searches that are compared with and without hints, by name."""
