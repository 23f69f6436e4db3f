"""A capacity that varies between two bounds, such as that of a SUT that shares a processor with another program.

A normal distribution also has capacities far below all that were seen, but such a SUT is never slower than its lower
bound. The range of capacities in overload shows the difference: it is smaller, in standard deviations, than that of
any plausible sample of a normal distribution. Or the capacity only has a few values, such as one for each way in which
flows can be distributed, and the lowest of these was seen more than once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.model import Array, TrialCounts

_ENOUGH = 20
"""Minimum number of trials at a load in overload."""
_AT_ONE = 0.8
"""The smallest plausible range of a sample of a normal distribution, in standard deviations, if it had one value. With
a probability of 0.001, the range is smaller (simulated for 20 to 80 values)."""
_PER_NAT = 0.668
"""How much this range grows if the number of values grows by a factor of e."""
_EQUAL = 3e-3
"""Largest difference of two capacities that count as equal, as a share of the range."""
_EQUALS, _LEAST_EQUALS = 1 / 3, 2
"""Minimum number of such differences between one capacity and the next: as a share of all, and of any number of
capacities. In less than one of 1,000 normal samples, so many are equal, and the two lowest, too (simulated for 4 to 40
values)."""
_OF_FEW = 0.02
"""The largest standard deviation, as a share of the lowest of few values, with which the lower bound is stated."""
_QUIET = 0.1
"""Maximum share of these trials that lose nothing. Their capacity is not known."""
_BELOW = 0.5
"""How far the lower bound may be below the lowest capacity that was seen, in standard deviations."""
_NEAR = 0.1
"""A load that is nearer to that capacity than this many standard deviations may be above the lower bound by chance."""


@dataclass(frozen=True)
class LowestCapacity:
    """The lower bound of a capacity that certainly has one."""

    seen: float
    """The lowest capacity that was seen, in frames per second."""
    stdev: float
    """Standard deviation of the capacity, in frames per second."""

    @classmethod
    def of(cls, counts: TrialCounts) -> LowestCapacity | None:
        """What the trials in overload show; None: low capacities may be rare."""
        overloaded = counts.at(counts.is_overload)
        passed = overloaded.forwarding_rate
        if _has_few_values(passed):
            least = float(passed.min())
            return cls(least, min(float(passed.std(ddof=1)), _OF_FEW * least))
        return cls._of_range(counts)

    @classmethod
    def _of_range(cls, counts: TrialCounts) -> LowestCapacity | None:
        """What the range shows at the load with most overload."""
        overloaded = counts.load[counts.is_overload]
        if len(overloaded) < _ENOUGH:
            return None
        loads, trials = np.unique(overloaded, return_counts=True)
        there = counts.at(counts.load == loads[np.argmax(trials)])
        quiet = np.count_nonzero(~there.is_overload)
        if len(there) < _ENOUGH or quiet > _QUIET * len(there):
            return None

        passed = there.forwarding_rate
        stdev = float(passed.std(ddof=1))
        least = _AT_ONE + _PER_NAT * np.log(len(there))
        if np.ptp(passed) > least * stdev:
            return None
        return cls(float(passed.min()), stdev)

    @property
    def least(self) -> float:
        """The least possible lower bound, in frames per second."""
        return self.seen - _BELOW * self.stdev

    @property
    def surely(self) -> float:
        """The highest load that trials can verify, in frames per second."""
        return self.seen - _NEAR * self.stdev

    @property
    def most(self) -> float:
        """The highest possible lower bound, in frames per second."""
        return self.seen + _NEAR * self.stdev


def _has_few_values(capacities: Array) -> bool:
    """Whether many capacities are equal, among them the two lowest."""
    steps = np.diff(np.sort(capacities))
    if len(steps) <= _LEAST_EQUALS:
        return False
    is_equal = steps <= _EQUAL * steps.sum()
    least = max(_EQUALS * len(steps), _LEAST_EQUALS)
    return bool(is_equal[0] and np.count_nonzero(is_equal) >= least)
