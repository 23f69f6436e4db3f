"""What a study runs: cells, each of them done at once and kept in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lossratio.arena.algorithms import ALGORITHMS, Algorithm
from lossratio.arena.families import FAMILIES
from lossratio.arena.goal_sets import GOAL_SETS
from lossratio.arena.held_out import HELD_OUT_FAMILIES
from lossratio.arena.nights import HINT_ALGORITHMS
from lossratio.arena.search import Row, search_rows
from lossratio.arena.suts import Family, Overhead

FAMILY_SETS: Mapping[str, Mapping[str, Family]] = MappingProxyType(
    {"development": FAMILIES, "held-out": HELD_OUT_FAMILIES}
)
"""Families that controllers may be improved on, and families for judging them."""

EVERY_ALGORITHM: Mapping[str, Algorithm] = MappingProxyType({**ALGORITHMS, **HINT_ALGORITHMS})
"""All that a cell may be about, by name."""

SEEDS_PER_CELL = 5

NO_OVERHEAD = Overhead(0.0)

OVERHEADS: Mapping[str, Overhead] = MappingProxyType(
    {
        str(overhead): overhead
        for overhead in (NO_OVERHEAD, Overhead(0.02), Overhead(0.02, True), Overhead(0.5), Overhead(0.5, True))
    }
)
"""By name."""


@dataclass(frozen=True)
class Cell:
    """Searches that are run together, by names.

    Attributes:
        family_set: Name of the set of families.
        family: Name of the family.
        goal_set: Name of the goal set.
        overhead: What each trial takes besides its traffic.
        algorithm: Name of the algorithm.
        seeds: The SUTs.
        repeats: Searches on each SUT.
    """

    family_set: str
    family: str
    goal_set: str
    overhead: Overhead
    algorithm: str
    seeds: tuple[int, ...]
    repeats: int

    def rows(self) -> list[Row]:
        """Runs the searches."""
        family = FAMILY_SETS[self.family_set][self.family]
        subjects = [family.subject(seed) for seed in self.seeds]
        return [
            row
            for subject in subjects
            for repeat in range(self.repeats)
            for row in search_rows(
                GOAL_SETS[self.goal_set], subject, self.overhead, EVERY_ALGORITHM[self.algorithm], repeat
            )
        ]


@dataclass(frozen=True)
class Study:
    """Everything that is compared with everything.

    Attributes:
        family_set: Name of a set of families.
        families: Names of families in it.
        goal_sets: Names of goal sets.
        algorithms: Names of algorithms; each takes part where it applies.
        overheads: What each trial takes besides its traffic.
        seeds: The SUTs of each family.
        repeats: Searches of each algorithm on each SUT.
    """

    family_set: str
    families: tuple[str, ...]
    goal_sets: tuple[str, ...]
    algorithms: tuple[str, ...]
    overheads: tuple[Overhead, ...]
    seeds: tuple[int, ...]
    repeats: int

    def cells(self) -> Iterator[Cell]:
        """All cells of the study."""
        blocks = [self.seeds[start : start + SEEDS_PER_CELL] for start in range(0, len(self.seeds), SEEDS_PER_CELL)]
        for goal_set in (GOAL_SETS[name] for name in self.goal_sets):
            for overhead in self.overheads:
                if overhead.counted and not goal_set.countable_overhead:
                    continue
                for algorithm in self.algorithms:
                    if not EVERY_ALGORITHM[algorithm].applies(goal_set.goals):
                        continue
                    for family in self.families:
                        for seeds in blocks:
                            yield Cell(self.family_set, family, goal_set.name, overhead, algorithm, seeds, self.repeats)
