"""Which of two builds is faster, by one test: which build to measure next, until the verdict is clear, and no longer.

Builds are measured in blocks, or, if hundreds of measurements are cheap, in pairs.
"""

from dataclasses import replace

from lossratio.builds.blocks import BLOCK, Blocks
from lossratio.builds.outcome import (
    AbRequest,
    Build,
    ComparisonResult,
    ComparisonVerdict,
    check_terms,
    check_throughput,
)
from lossratio.builds.pairs import Pairs
from lossratio.errors import SearchError
from lossratio.results import Ends


class BuildComparison:
    """Asks for measurements of two builds, and compares them.

    Raises:
        SearchError: If the request is out of range.
    """

    def __init__(self, request: AbRequest) -> None:
        least_change = request.least_change
        limit = request.limit
        certainty = request.certainty
        check_terms(least_change, certainty)
        if limit < 2 * len(BLOCK):
            raise SearchError(
                f"A comparison needs at least {2 * len(BLOCK)} measurements, not {limit}."
            )

        self._limit = limit
        self._values: list[float] = []
        self._design: Blocks | Pairs
        if request.pairs:
            self._design = Pairs(least_change, 1.0 - certainty)
        else:
            self._design = Blocks(least_change, 1.0 - certainty)

    def next_build(self) -> Build | None:
        """The build to measure; None if the verdict is clear, or the limit is reached."""
        order = self._design.order
        index = len(self._values) % len(order)
        if index == 0:
            ended = self._design.verdict is not ComparisonVerdict.UNDECIDED
            if ended or len(self._values) + len(order) > self._limit:
                return None
        return order[index]

    def record(self, value: float) -> None:
        """Records the throughput of the build that `next_build` named.

        Args:
            value: The throughput: a number in any unit, the same for both builds.

        Raises:
            SearchError: If the comparison has ended, the value is not a throughput, or build A
                forwards nothing.
        """
        if self.next_build() is None:
            raise SearchError("The comparison has ended and accepts no further measurement.")
        check_throughput(value)
        if value == 0.0 and self.next_build() is Build.A:
            raise SearchError(
                "Build A forwards nothing, so there is no relative difference. Compare with a build that works."
            )
        self._values.append(value)
        size = len(self._design.order)
        if len(self._values) % size == 0:
            self._design.add(self._values[-size:])

    def result(self) -> ComparisonResult:
        """The difference so far."""
        design = self._design
        return ComparisonResult(
            design.verdict, design.difference, design.interval, len(self._values)
        )


class BothEnds:
    """Two comparisons of one test: of the values as they are, and of their upper ends."""

    def __init__(self, request: AbRequest) -> None:
        self._as_they_are = BuildComparison(request)
        self._at_their_most = BuildComparison(request)
        self._share = 0.0

    def next_build(self) -> Build | None:
        """The build to measure; None if both verdicts are clear, or the limit is reached."""
        return self._as_they_are.next_build() or self._at_their_most.next_build()

    def record(self, value: Ends) -> None:
        """Records the throughput of the build that `next_build` named, for the comparisons that have not ended.

        Args:
            value: The throughput, in frames per second.

        Raises:
            SearchError: If build A forwards nothing.
        """
        self._record(self._as_they_are, value.least, value.share)
        self._record(self._at_their_most, value.most, value.share)

    def _record(self, comparison: BuildComparison, end: float, share: float) -> None:
        if comparison.next_build() is not None:
            self._share = max(self._share, share)
            comparison.record(end)

    def result(self) -> ComparisonResult:
        """The verdict that both share, with the smaller difference; otherwise undecided."""
        plain = self._as_they_are.result()
        most = self._at_their_most.result()
        weaker = plain
        if None not in (plain.difference, most.difference):
            # If the differences have no common sign, the smaller difference gives no verdict, and promises the least.
            weaker = min(plain, most, key=_size)
        if plain.verdict is not most.verdict:
            weaker = replace(weaker, verdict=ComparisonVerdict.UNDECIDED)

        measured = None
        if weaker.difference != plain.difference:
            measured = plain.difference

        return replace(
            weaker,
            measurements=max(plain.measurements, most.measurements),
            share=self._share,
            measured=measured,
        )


def _size(result: ComparisonResult) -> float:
    return abs(result.difference or 0.0)
