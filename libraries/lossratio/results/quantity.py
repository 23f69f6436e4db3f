"""A quantity of a result: declared by a field, or found by the view of a kind."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

from lossratio.errors import ReportError
from lossratio.results.model import Outcome, TestResult
from lossratio.results.note import Note
from lossratio.values import FRAMES_PER_SECOND, Rate, Record, Unit, format_frame_rate


@dataclass(frozen=True)
class Finding:
    """One quantity of one test: one row of tables, comparisons, trends and exports."""

    result: TestResult
    """The result with the quantity."""
    quantity: str
    """Name of the goal, or another name that the kind of measurement chooses, e.g. ``MRR``."""
    outcome: Outcome
    """Whether the quantity was measured, is irregular, or failed."""
    reason: str | None
    """Why the quantity is irregular or failed; None if it was measured."""
    value: Rate | float | None = None
    """Conditional throughput, mean maximum receive rate, or verified load; a plain number if the unit is not
    frames per second; None: no value."""
    lower_bound: Rate | float | None = None
    """Relevant lower bound, likewise a rate or a plain number; None: no bound."""
    upper_bound: Rate | float | None = None
    """Relevant upper bound, likewise a rate or a plain number; None: no bound."""
    deviation: Rate | float | None = None
    """Standard deviation of the value's parts, likewise a rate or a plain number; None: not known."""
    has_value: bool = True
    """Whether results of this kind have a single value, so that they can be compared."""
    stream: str | None = None
    """The stream of the traffic profile whose loss alone counts; None: the loss of all frames counts."""
    number: int = 1
    """Position of the result among the results, from 1; `View.quantities` fills it in."""
    unit: Unit = FRAMES_PER_SECOND
    """The unit of the value, the bounds and the deviation; `View.quantities` fills in the unit that the view
    names."""
    is_at_limit: bool = False
    """Whether the maximum load limited the value: the SUT may forward more."""
    is_too_slow: bool = False
    """Whether not even the minimum load meets the goal."""
    is_bound_of_others: bool = False
    """Whether most trials at the upper bound failed only because of frames that the SUT did not lose: unsent, late, or
    dropped by the generator."""
    resolution: float | None = None
    """The width of the search's goal, relative to the upper bound: the results of two searches may differ by this
    although the SUT stayed the same; None: no search, or a search without a goal."""
    is_as_before: bool = False
    """Whether there was no search because the SUT is as before; such a finding neither has nor needs a value."""
    run: Path | None = None
    """The directory of the run that measured it; None, as for all that follows: only the result is known."""
    find_doubts: Callable[[], tuple[Note, ...]] = field(default=tuple, compare=False, repr=False)
    """Finds the doubts about the result, among the results of its run: a comparison does without them."""
    failure: str | None = None
    """Why the test failed although its values were measured; None: it passed, or there are no values."""
    is_namesake: bool = False
    """Whether another suite of the run has a test of the same name."""

    @cached_property
    def doubts(self) -> tuple[Note, ...]:
        """The doubts about the result."""
        return self.find_doubts()

    @property
    def test(self) -> str:
        """Name of the test, with its suite if this is needed to distinguish it from a test of another suite."""
        if self.is_namesake:
            return self.result.test.full_name
        return self.result.test.name

    @property
    def link(self) -> str:
        """The name of the section of a page that has the result, to which addresses link."""
        return f"test-{self.number}"

    @property
    def words(self) -> str:
        """The text that a search on a page looks at, in lower case."""
        test = self.result.test
        return " ".join((test.suite, test.name, *test.tags)).lower()

    @property
    def run_name(self) -> str:
        """The name of the run's directory; empty: it is not known."""
        if self.run is None:
            return ""
        return self.run.resolve().name

    @property
    def kinds_of_doubts(self) -> tuple[str, ...]:
        """The doubts about the result, in a few words each."""
        return tuple(dict.fromkeys(doubt.kind.value for doubt in self.doubts))

    @property
    def is_odd(self) -> bool:
        """Whether it is irregular, failed or doubtful, or its test failed nevertheless."""
        is_measured = self.outcome is Outcome.MEASURED
        return not is_measured or bool(self.doubts) or self.failure is not None

    @property
    def quoted(self) -> Rate | float | None:
        """The value, if it may be quoted because it was measured; otherwise None."""
        if self.outcome is Outcome.MEASURED:
            return self.value
        return None

    @property
    def rate(self) -> Rate | None:
        """The value as a rate; None: the value has another unit, or there is no value."""
        if isinstance(self.value, Rate):
            return self.value
        return None

    @property
    def in_short(self) -> str:
        """The value per interface in a few words, or the outcome if there is no value."""
        if isinstance(self.value, Rate):
            value = format_frame_rate(self.value.per_interface_fps)
        elif self.value is not None:
            value = self.unit.format(self.value)
        elif self.is_as_before:
            return "as before"
        else:
            return self.outcome.value
        if self.outcome is Outcome.MEASURED:
            return value
        return f"{value} ({self.outcome.value})"

    @property
    def outcome_in_words(self) -> str:
        """The outcome with its reason, if any: ``irregular: the time ran out``. If nothing was searched, the reason."""
        if self.reason is None:
            return self.outcome.value
        if self.is_as_before:
            return self.reason
        return f"{self.outcome.value}: {self.reason}"

    @property
    def theoretical_share(self) -> float | None:
        """The value as a share of the link limit (what the links can carry); None: not known, or no rate."""
        maximum = self.result.max_load.theoretical_maximum
        if maximum is None or not isinstance(self.value, Rate):
            return None
        return self.value.aggregate_fps / maximum.aggregate_fps

    def in_unit(self, unit: Unit) -> "Finding":
        """The finding with its unit.

        Raises:
            ReportError: If a value does not fit the unit.
        """
        for value in (self.value, self.lower_bound, self.upper_bound, self.deviation):
            if value is not None and not _fits(value, unit):
                is_rate = unit == FRAMES_PER_SECOND
                wanted = "a lossratio.values.Rate" if is_rate else "a finite number from 0"
                raise ReportError(
                    f"The kind of measurement {self.result.kind!r} is broken: {self.quantity!r} is in {unit.name}, "
                    f"which needs {wanted} as a value, not {value!r}. Its view (`unit`) or the field (`Shown`) "
                    "names the unit."
                )
        return replace(self, unit=unit)


def _fits(value: Rate | float, unit: Unit) -> bool:
    """Whether a value fits a unit: in frames per second, it is a rate; otherwise, a finite number from 0."""
    if unit == FRAMES_PER_SECOND:
        return isinstance(value, Rate)
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0.0


@dataclass(frozen=True)
class Shown:
    """Makes a field of a result, or of a record in it, a quantity: ``Annotated[Rate | None, Shown("worst trial")]``.

    A quantity has a line on the console, and a row in tables, comparisons, exports and trends.
    """

    quantity: str
    """The name of the quantity."""
    unit: Unit = FRAMES_PER_SECOND
    """The unit; a value in frames per second is a `lossratio.values.Rate`, any other value a number."""


def shown_in(result: TestResult) -> Iterator[tuple[Shown, Rate | float | None]]:
    """The quantities that the class of a result declares, with their values; None: the result has none."""
    for path, shown in _declared(type(result)):
        value: Any = result
        for name in path:
            value = getattr(value, name, None)
        yield shown, value


@cache
def _declared(kind: type[Record]) -> tuple[tuple[tuple[str, ...], Shown], ...]:
    found: list[tuple[tuple[str, ...], Shown]] = []
    for name, declared in kind.model_fields.items():
        found += [((name,), item) for item in declared.metadata if isinstance(item, Shown)]
        for part in (declared.annotation, *get_args(declared.annotation)):
            # Python 3.10 takes `tuple[int]` for a type.
            if isinstance(part, type) and not get_args(part) and issubclass(part, Record):
                found += [((name, *path), item) for path, item in _declared(part)]
    return tuple(found)


def number_of(value: Rate | float | None) -> float | None:
    """The number that people read, compare and follow: for a rate, the rate per interface, in frames per second.

    Args:
        value: A rate, or a number in its own unit; None: no value.
    """
    if isinstance(value, Rate):
        return value.per_interface_fps
    return value


def aggregate_of(value: Rate | float | None) -> float | None:
    """The number in files for programs: for a rate, the aggregate, in frames per second.

    Args:
        value: A rate, or a number in its own unit; None: no value.
    """
    if isinstance(value, Rate):
        return value.aggregate_fps
    return value


def aggregate_field(name: str) -> Callable[[Finding], float | None]:
    """A column of files for programs: reads a value, a bound or a deviation of a row; a rate is an aggregate.

    Args:
        name: The name of the row's field.
    """

    def read(row: Finding) -> float | None:
        return aggregate_of(getattr(row, name))

    return read
