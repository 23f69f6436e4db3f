"""How results of a kind are shown: a base class with defaults, of which each kind overrides what differs.

A view is imported only where something is shown, and knows nothing of testbeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from lossratio.errors import ReportError
from lossratio.records import Rate, Record
from lossratio.results.doubts import Doubt, generator_stalls
from lossratio.results.model import Outcome, TestResult
from lossratio.results.trials import Trial

ResultT = TypeVar("ResultT", bound=TestResult)


@dataclass(frozen=True)
class Finding:
    """One quantity of one test: what tables, comparisons, trends and exports have a row for.

    Attributes:
        result: The result that it belongs to.
        quantity: Name of the goal, or what the kind of measurement calls its quantity, e.g. ``MRR``.
        outcome: Whether it was measured, is irregular, or failed.
        reason: Why it is irregular or failed; None if it was measured.
        value: Conditional throughput, mean maximum receive rate, or mean critical load; None: there is none.
        lower_bound: Relevant lower bound; None: there is none.
        upper_bound: Relevant upper bound; None: there is none.
        deviation: Standard deviation of the value's parts; None: it has none.
        has_rate: Whether results of this kind come to a single rate, so that values can be compared.
        place: Place of the result among the results, from 1.
    """

    result: TestResult
    quantity: str
    outcome: Outcome
    reason: str | None
    value: Rate | None = None
    lower_bound: Rate | None = None
    upper_bound: Rate | None = None
    deviation: Rate | None = None
    has_rate: bool = True
    place: int = 1

    @property
    def theoretical_share(self) -> float | None:
        """The value as a share of what the links can carry; None: not known."""
        maximum = self.result.max_load.theoretical_maximum
        return None if self.value is None or maximum is None else self.value.aggregate_fps / maximum.aggregate_fps


@dataclass(frozen=True)
class Picture:
    """A picture of a result, with what the page says around it.

    Attributes:
        title: Its heading.
        svg: The picture: one ``<svg>`` element; empty: there is nothing to draw.
        about: How to read it, in plain text.
        table: The numbers in it, as HTML that is on the page only.
    """

    title: str
    svg: str
    about: str = ""
    table: str = ""


class View(Generic[ResultT]):
    """How results of one kind are shown. The defaults show a result that has an outcome and no rate."""

    in_order: ClassVar[str] = "measured"
    """What tables say of a finding that is neither irregular nor failed."""
    csit_type: ClassVar[str | None] = None
    """FD.io CSIT's name for tests of this kind; None: CSIT has none."""

    def lines(self, result: ResultT) -> Iterator[str]:
        """The result in words, without what results of all kinds say at their end."""
        yield failure_line(result) if result.error is not None else f"{result.kind}: {result.outcome.value}"

    def pictures(self, result: ResultT) -> Iterator[Picture]:
        """The pictures of the page, in their order."""
        yield from ()

    def log(self, result: ResultT) -> Iterator[Picture | str]:
        """What Robot Framework's log shows when the measurement is over: pictures and texts."""
        yield from self.pictures(result)

    def warnings(self, result: ResultT) -> Iterator[str]:
        """What the console warns of when the measurement is over."""
        yield from ()

    def overviews(self, results: Sequence[ResultT]) -> Iterator[str]:
        """Sections about several results of a run together, as HTML: they come before the tests' own."""
        yield from ()

    def conditions(self, result: ResultT) -> str:
        """What only this kind has among the conditions on the page, as HTML."""
        return ""

    def findings(self, result: ResultT) -> Iterator[Finding]:
        """The quantities of the result."""
        yield Finding(result, result.kind, result.outcome, result.error, has_rate=False)

    def aspects(self, result: ResultT, finding: Finding) -> Mapping[str, JsonValue]:
        """What must be the same for two values of this kind to mean the same, besides traffic and path.

        Args:
            result: The result.
            finding: Its finding with the value.

        Returns:
            By what people call it: ``goal``, and ``trial duration`` where the value depends on it.
        """
        return {}

    def caveats(self, result: ResultT) -> Iterator[str]:
        """What a reader of a value has to know, as the number does not show it."""
        yield from ()

    def is_too_slow(self, result: ResultT, finding: Finding) -> bool:
        """Whether not even the minimum load was forwarded as the goal asks for."""
        return False

    def is_at_limit(self, result: ResultT, finding: Finding) -> bool:
        """Whether the value is only the most that could be offered: the SUT may forward more."""
        return False

    def stalls(self, result: ResultT, trials: Sequence[Trial]) -> Doubt | None:
        """The doubt that stalls of the generator may have decided what the result says.

        Args:
            result: The result.
            trials: Its trials that count.
        """
        return generator_stalls(trials, [0.0])

    def doubts(self, result: ResultT, results: Sequence[TestResult]) -> Iterator[Doubt]:
        """Further doubts, which only this kind has.

        Args:
            result: The result.
            results: All results of its run.
        """
        yield from ()

    def telemetry(self, result: ResultT) -> Sequence[Record]:
        """What devices reported around trials of their own."""
        return ()

    def csit(self, result: ResultT) -> BaseModel:
        """The result as FD.io CSIT's test cases have it.

        Raises:
            ReportError: If it means something else there, or lacks what these need.
        """
        raise ReportError(f"{result.test.full_name} is of kind {result.kind!r}, which CSIT does not have.")


def failure_line(result: TestResult) -> str:
    """What a measurement that failed says in place of its numbers."""
    return f"failed, no result: {result.error}"
