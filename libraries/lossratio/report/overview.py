"""The overview of runs: the columns of a table with a row for each goal of each test, or for another value."""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from lossratio.drawing import NOTHING, Column, number_column, test_column, verdict
from lossratio.results import (
    Finding,
    LatencyPoint,
    NoteKind,
    Outcome,
    TestResult,
    Weight,
    caveats_of,
    format_frames_per_second,
    notes_of,
    number_of,
    view_of,
)
from lossratio.values import Rate, Unit, format_bit_rate, format_ratio, range_in_words

_LONGEST_MESSAGE = 300
"""Maximum length of a failed test's message in a table. The test's section has the whole message."""


def value_in_words(row: Finding) -> str:
    """Conditional throughput (of MRR: the mean with its standard deviation), per interface; or another value."""
    spread = ""
    if row.deviation is not None:
        spread = f" ± {_in_words(row.deviation, row.unit)}"
    return f"{_in_words(row.value, row.unit)}{spread}"


def value_or_sentence(row: Finding) -> str:
    """The value; for a kind without a single value, such as a confirmation, its sentence."""
    if row.has_value or row.result.error is not None:
        return value_in_words(row)
    notes = notes_of(row.result, (), Weight.HEADLINE)
    return " ".join(note.text for note in notes) or value_in_words(row)


def aggregate_in_words(row: Finding) -> str:
    """The rate as an aggregate, with the factor between both."""
    factor = row.result.conditions.load.aggregate_factor
    if row.rate is None or row.stream is not None:
        return NOTHING
    return f"{format_frames_per_second(row.rate.aggregate_fps)} (x {factor:g})"


def bounds_in_words(row: Finding) -> str:
    """Both bounds; `NOTHING`: there is none."""
    ends = (row.lower_bound, _upper_bound(row))
    return range_in_words(*(_in_words(end, row.unit) for end in ends))


def _quoted_in_words(row: Finding) -> str:
    if row.quoted is None:
        return NOTHING
    return value_in_words(row)


def _quoted_number(row: Finding) -> float | None:
    return number_of(row.quoted)


def _state(row: Finding) -> str:
    """The outcome in words, with the reason."""
    if row.outcome is Outcome.FAILED:
        parts = ["failed", "no result"]
        if row.reason is not None:
            parts.append(_shortened(row.reason))
        return ": ".join(parts)
    if row.is_as_before:
        return row.reason or "as before"
    if row.outcome is Outcome.IRREGULAR:
        return row.outcome_in_words
    return view_of(row.result).in_order


def _failed_test(row: Finding) -> list[str]:
    """The remark that the test failed although its values were measured; empty: it did not fail."""
    if row.failure is None:
        return []
    return [f"the test failed: {_shortened(row.failure)}"]


def _state_of_test(row: Finding) -> str:
    return "; ".join((_state(row), *_failed_test(row)))


def _verdict(row: Finding) -> str:
    """The outcome with the notes and doubts that readers of the number need, as markup."""
    notes = caveats_of(row)
    if row.reason is not None:
        # The first caveat is the reason, which the state has.
        notes = notes[1:]
    doubts = [f"doubt: {kind}" for kind in row.kinds_of_doubts]
    return verdict(row.outcome.value, _state(row), (*_failed_test(row), *notes, *doubts))


def _latency_in_words(row: Finding) -> str:
    """Latency of the slowest direction at the first load of the row's goal; `NOTHING` if it was not measured."""
    points = _latency(row)
    p50 = _slowest(point.p50_us for point in points)
    if p50 is None:
        return NOTHING

    p99 = _slowest(point.p99_us for point in points)
    latencies = f"{p50:.4g} µs"
    if p99 is not None:
        latencies += f", 99 % {p99:.4g} µs"
    return f"{latencies} at {points[0].load}"


def _median_latency_us(row: Finding) -> float | None:
    return _slowest(point.p50_us for point in _latency(row))


def _latency(row: Finding) -> list[LatencyPoint]:
    """The latency of each direction at the first load of the row's goal, or else at a load of no goal."""
    points = list(view_of(row.result).latencies(row.result))
    of_goal = [point for point in points if row.quantity in point.load]
    chosen = of_goal or [point for point in points if " of " not in point.load]
    return [point for point in chosen if point.load == chosen[0].load]


def _slowest(latencies_us: Iterable[float | None]) -> float | None:
    """The largest of the known latencies; None: none is known."""
    return max((one for one in latencies_us if one is not None), default=None)


def number_of_trials(row: Finding) -> int:
    """Number of all trials."""
    return len(row.result.trials)


def trials_s(row: Finding) -> float:
    """Time of all trials together, on the measurer's clock, seconds."""
    return sum(trial.elapsed_s for trial in row.result.trials)


def _upper_bound(row: Finding) -> Rate | float | None:
    """The upper bound; at the generator's limit, there is none."""
    if row.is_at_limit:
        return None
    return row.upper_bound


def _bound(head: str, read: Callable[[Finding], Rate | float | None]) -> Column[Finding]:
    def text(row: Finding) -> str:
        return _in_words(read(row), row.unit)

    def number(row: Finding) -> float | None:
        return number_of(read(row))

    return Column(head, text, number, style="number")


def of_rate(name: str, part: str = "value") -> Callable[[Finding], float | None]:
    """A column of a number of the value, or of another part of the row, if it is a rate.

    Args:
        name: The name of a field of `lossratio.values.Rate`.
        part: The name of the row's field.
    """

    def read(row: Finding) -> float | None:
        return getattr(getattr(row, part), name, None)

    return read


AVERAGE_SIZE = attrgetter("result.conditions.traffic.average_frame_size_bytes")
"""Reads the average size of a row's frames, in bytes."""
SIZES = attrgetter("result.conditions.traffic.sizes_in_words")
"""Reads the sizes of a row's frames, in words."""

# Table: the columns of the overview of a run.
COLUMNS: tuple[Column[Finding], ...] = (
    test_column(Finding),
    Column("number to quote", _quoted_in_words, _quoted_number, style="number quote"),
    Column("result", _state_of_test, style="name", markup=_verdict),
    Column("goal", attrgetter("quantity")),
    Column("stream", attrgetter("stream")),
    Column("frame size", SIZES, AVERAGE_SIZE),
    _bound("lower bound", attrgetter("lower_bound")),
    _bound("upper bound", _upper_bound),
    Column("aggregate", aggregate_in_words, of_rate("aggregate_fps"), style="number beside"),
    number_column("aggregate bandwidth", of_rate("aggregate_l1_bps"), format_bit_rate),
    number_column("of theoretical maximum", attrgetter("theoretical_share"), format_ratio),
    Column("latency", _latency_in_words, _median_latency_us, style="words"),
    number_column("trials", number_of_trials, str),
    number_column("time of trials", trials_s, "{:.1f} s".format),
)
"""The columns of the overview, on the page and in Markdown."""


def run_of(row: Finding) -> str:
    """The directory of the row's run, in words."""
    return str(row.run or "")


RUN: Column[Finding] = Column("run", run_of, style="name")
"""The column of pages of several runs."""


def _in_words(value: Rate | float | None, unit: Unit) -> str:
    """A value with its unit; for a rate, the value per interface."""
    if isinstance(value, Rate):
        return format_frames_per_second(value.per_interface_fps)
    if value is None:
        return NOTHING
    return unit.format(value)


def _shortened(message: str) -> str:
    return textwrap.shorten(message, _LONGEST_MESSAGE, placeholder=" ...")


def value_names(results: Sequence[TestResult]) -> str:
    """The name of the value for each kind of result."""
    names = sorted({name for result in results if (name := view_of(result).value_name) is not None})
    if names:
        return f"the {' or the '.join(names)}"
    return "the value of the kind of measurement"


def terms_in_words(results: Sequence[TestResult]) -> str:
    """The abbreviations in the names of quantities, spelled out, with a space before them; empty: there are none."""
    notes = (note for result in results for note in notes_of(result, (), Weight.PROVENANCE))
    terms = dict.fromkeys(note.text for note in notes if note.kind is NoteKind.TERM)
    return "".join(f" {term}" for term in terms)


def methods_in_words(results: Sequence[TestResult]) -> str:
    """A sentence that names the methods of the results, with a space before it; empty if there are none."""
    methods = sorted(
        {method for result in results if (method := view_of(result).method) is not None}
    )
    if methods:
        return f" Method: {', '.join(methods)}."
    return ""
