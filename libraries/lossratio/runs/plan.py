"""A night's plan: which tests run on which of some equal testbeds, so that all of them end as early as they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedTest:
    """A test with the time that it is expected to take.

    Attributes:
        name: Its full name.
        seconds: The expected time by name of testbed; only on these can it run.
        is_known: Whether the times are those of earlier nights.
    """

    name: str
    seconds: Mapping[str, float]
    is_known: bool


@dataclass(frozen=True)
class Share:
    """What one testbed does.

    Attributes:
        testbed: Name of the testbed.
        tests: Its tests, in the order in which they were given.
    """

    testbed: str
    tests: tuple[PlannedTest, ...]

    @property
    def seconds(self) -> float:
        """How long they take in all."""
        return sum(test.seconds[self.testbed] for test in self.tests)


@dataclass(frozen=True)
class Plan:
    """A night's plan.

    Attributes:
        shares: What each testbed does.
    """

    shares: tuple[Share, ...]

    @property
    def seconds(self) -> float:
        """When the last testbed ends."""
        return max((share.seconds for share in self.shares), default=0.0)


def spread(tests: Sequence[PlannedTest], testbeds: Sequence[str]) -> Plan:
    """Spreads tests over testbeds: the longest first, each to where it ends earliest.

    Of equal testbeds the night is at most a third longer than it could be at best (Graham 1969).

    Args:
        tests: The tests; each knows how long it takes where.
        testbeds: Names of the testbeds.
    """
    ends = dict.fromkeys(testbeds, 0.0)
    places: dict[str, str] = {}
    for test in sorted(tests, key=lambda each: -min(each.seconds.values())):
        place = min(test.seconds, key=lambda testbed: (ends[testbed] + test.seconds[testbed], testbed))
        ends[place] += test.seconds[place]
        places[test.name] = place
    return Plan(tuple(Share(each, tuple(test for test in tests if places[test.name] == each)) for each in testbeds))
