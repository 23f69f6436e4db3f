"""The view of a kind, which shows its results: a base class with defaults that each kind can override.

A view is imported only when results are shown, and does not depend on testbeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Generic, TypeVar, cast

from pydantic import JsonValue

from lossratio.errors import ReportError
from lossratio.results.model import TestResult
from lossratio.results.note import OF_SUCCESS, Note, Rule, Weight, numbers
from lossratio.results.offered import FOR_SMALLER_LOADS, Offered, offered_in
from lossratio.results.pictures import Picture
from lossratio.results.quantity import Finding, shown_in
from lossratio.results.rules import USUAL
from lossratio.values import FRAMES_PER_SECOND, Rate, Record, Unit

ResultT = TypeVar("ResultT", bound=TestResult)

_QUICK = "QUICK_"
"""How the names of the quick presets of search goals begin."""


@dataclass(frozen=True)
class LatencyPoint:
    """The one-way latency of one direction at one load, for tables and histories."""

    load: str
    """The load in words, e.g. ``50 % of PDR``."""
    direction: str
    """The direction, e.g. ``port0>port1``."""
    p50_us: float | None
    """Median, microseconds; None: there are too few frames for it."""
    p90_us: float | None
    """90th percentile, likewise."""
    p99_us: float | None
    """99th percentile, likewise."""
    most_us: float | None
    """Largest latency, microseconds."""


@dataclass(frozen=True)
class Rfc2544Row:
    """A number of a result in the tables of an RFC 2544 report, besides its findings."""

    quantity: str
    """The name of the number."""
    value: float | None
    """The number; None: not known."""
    unit: str
    """Its unit."""
    deviation: float | None = None
    """Standard deviation of the number's parts; None: not known."""
    note: str | None = None
    """What its reader needs to know, for example frames that were not sent; None: nothing."""


class CsitExportError(ReportError):
    """A result has another meaning in CSIT's files, or lacks a value that they need; the message names it."""


def csit_rate(rate: Rate) -> dict[str, Any]:
    """An aggregate rate in CSIT's form: packets per second, and bandwidth on the wire (layer 1)."""
    return {
        "rate": {"value": rate.aggregate_fps, "unit": "pps"},
        "bandwidth": {"value": rate.aggregate_l1_bps, "unit": "bps"},
    }


@numbers
def _outcome(result: TestResult) -> Iterator[str]:
    """The outcome."""
    yield f"{result.kind}: {result.outcome.value}"


class View(Generic[ResultT]):
    """The view of one kind's results. The defaults show the outcome, and the quantities that the result declares."""

    quantity: ClassVar[str | None] = None
    """Name of the only quantity in tables and trends; None: the name of the kind."""
    has_value: ClassVar[bool] = False
    """Whether the only quantity has a single value."""
    value_fields: ClassVar[Mapping[str, str]] = {}
    """Fields of the record with all numbers (`TestResult.found`) that are the ``value`` and the ``deviation``."""
    measured_in: ClassVar[Unit] = FRAMES_PER_SECOND
    """The unit of values; values in frames per second are a `lossratio.values.Rate`."""
    in_order: ClassVar[str] = "measured"
    """The word in tables for a finding that is neither irregular nor failed."""
    csit_type: ClassVar[str | None] = None
    """FD.io CSIT's name for tests of this kind; None: CSIT has no such tests."""
    method: ClassVar[str | None] = None
    """The document that defines the method; None: the head of the page does not name it."""
    value_name: ClassVar[str | None] = None
    """The name of the value in the heading of a table; None: it has no name of its own."""
    goal_fields: ClassVar[Mapping[str, str]] = {}
    """What was asked for, by which values are told apart: the fields of a result, by their names in reports."""
    if_unsent: ClassVar[str] = FOR_SMALLER_LOADS
    """What it means for the result if the generator did not offer a load on which a value is based."""

    rules: ClassVar[tuple[Rule, ...]] = (_outcome, *USUAL)
    """What makes the notes of results: first the kind's own rules, then those of all kinds."""

    def notes(
        self, result: ResultT, results: Sequence[TestResult], *weights: Weight
    ) -> tuple[Note, ...]:
        """What a result says besides its numbers, the heaviest first.

        Args:
            result: The result.
            results: The results of its run; some notes need two of them.
            weights: The weights of the notes; none: all.
        """
        left_out = frozenset() if result.error is None else OF_SUCCESS
        notes: list[Note] = []
        for weight in weights or Weight:
            for rule in self.rules:
                if rule.weight is weight and rule.kind not in left_out:
                    notes += rule.notes(result, results)
            notes += (note for note in result.remarks if note.weight is weight)
        return tuple(notes)

    def pictures(self, result: ResultT) -> Iterator[Picture]:
        """The pictures on the page, in their order."""
        yield from ()

    def log(self, result: ResultT) -> Iterator[Picture | str]:
        """Pictures and texts for Robot Framework's log at the end of the measurement."""
        yield from self.pictures(result)

    def overviews(self, results: Sequence[ResultT]) -> Iterator[str]:
        """Sections about several results of a run together, as HTML; they come before the sections of the tests."""
        yield from ()

    def conditions(self, result: ResultT) -> str:
        """The conditions on the page that only this kind has, as HTML."""
        return ""

    def findings(self, result: ResultT) -> Iterator[Finding]:
        """The quantities of the result besides the declared ones (`Shown`), or else one quantity without a value."""
        if self.quantity is None and not self.has_value and any(shown_in(result)):
            return
        reason = result.error or getattr(result, "reason", None)
        name = self.quantity or result.kind
        values = self.values(result)
        yield Finding(result, name, result.outcome, reason, has_value=self.has_value, **values)

    def quantities(self, result: ResultT, number: int = 1) -> Iterator[Finding]:
        """All quantities of a result, with their units: `findings`, and the declared ones.

        Args:
            result: The result.
            number: The result's position among results.

        Raises:
            ReportError: If a value does not fit its unit.
        """
        for finding in self.findings(result):
            yield replace(finding, number=number).in_unit(self.unit(finding.quantity))
        reason = result.error or getattr(result, "reason", None)
        for shown, value in shown_in(result):
            declared = Finding(result, shown.quantity, result.outcome, reason, value, number=number)
            yield declared.in_unit(shown.unit)

    def values(self, result: ResultT) -> Mapping[str, Any]:
        """Value, bounds and deviation of the only quantity, if there are any: fields of `Finding`."""
        numbers = getattr(result, result.found or "", None)
        if numbers is None:
            return {}
        return {part: getattr(numbers, name) for part, name in self.value_fields.items()}

    def unit(self, quantity: str) -> Unit:
        """The unit of a quantity of this kind."""
        return self.measured_in

    def aspects(self, result: ResultT, finding: Finding) -> Mapping[str, JsonValue]:
        """The aspects, besides traffic and path, that must be equal for two values of this kind to mean the same.

        Their names are those of reports: ``goal``, and ``trial duration`` if the value depends on it.
        """
        goal = {name: attrgetter(field)(result) for name, field in self.goal_fields.items()}
        if not goal:
            return {}
        return {"goal": goal}

    def offered(self, result: ResultT, finding: Finding) -> Sequence[Offered]:
        """The traffic on which a value is based. Unsent frames of this traffic cause a doubt, not a verdict."""
        return offered_in(result.evidence)

    def after(self, result: ResultT) -> Sequence[Offered]:
        """The traffic of later trials, such as those of latency after a search. By default, there are none."""
        return ()

    def telemetry(self, result: ResultT) -> Sequence[Record]:
        """Telemetry: reports of devices around separate trials."""
        return ()

    def latencies(self, result: ResultT) -> Iterator[LatencyPoint]:
        """The latencies of the result, if it has any, in each direction at each load."""
        yield from ()

    def rfc2544_rows(self, result: ResultT) -> Iterator[Rfc2544Row]:
        """Numbers for an RFC 2544 report, if a result has no single value. By default, there are no such numbers."""
        yield from ()

    def csit(self, result: ResultT) -> dict[str, Any]:
        """The `result` of a test case of FD.io CSIT, with its type.

        Raises:
            ReportError: If the result would mean something else there, or lacks a required field.
        """
        raise ReportError(
            f"{result.test.full_name} cannot be exported: CSIT has no results of the kind {result.kind!r}."
        )


def head(result: TestResult, words: str) -> str:
    """The first line of numbers, with the reason if the result is irregular."""
    reason = getattr(result, "reason", None)
    return words if reason is None else f"{words}, irregular: {reason}"


def quick_goals_in(quantities: Iterable[str]) -> Iterator[str]:
    """A line that says which quantities belong to quick goals, and what that means; no line if there are none.

    Args:
        quantities: Names of quantities. A name may end with the device.
    """
    names = sorted({name.partition(" ")[0] for name in quantities if name.startswith(_QUICK)})
    if names:
        yield (
            f"Quick goals: {', '.join(names)}. Their searches collect a tenth of the evidence. "
            "Measure with the goals csit before you rely on a verdict."
        )


def view_of(result: TestResult) -> View[Any]:
    """The view that shows a result.

    Raises:
        ReportError: If its class belongs to no kind, or the view cannot be imported.
    """
    return cast(View[Any], result.view())
