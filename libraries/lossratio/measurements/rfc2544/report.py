"""The report that RFC 2544 asks for: a table or a graph for each test, the conditions, and what was done of the RFC."""

from __future__ import annotations

import csv
import io
import itertools
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lossratio.drawing import html_fragment
from lossratio.errors import StorageError
from lossratio.input_file import parse_json
from lossratio.measurements import seconds_in_words
from lossratio.measurements.back_to_back import BackToBackResult
from lossratio.measurements.frame_loss import FrameLossResult
from lossratio.measurements.latency import DirectionLatency, LatencyResult
from lossratio.measurements.recovery import RecoveryResult
from lossratio.measurements.reset import ResetResult
from lossratio.measurements.rfc2544.compliance import Requirement, requirements_of, verdict_of
from lossratio.measurements.rfc2544.graphs import draw_loss, draw_throughput, theoretical_rate
from lossratio.measurements.rfc2544.run import Rfc2544Part, Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.records import Rate
from lossratio.results import MaxLoad, findings_of, message, number_of, write_whole
from lossratio.units import format_milliseconds, format_ratio

REPORT_FORMAT = "lossratio-rfc2544/1"
"""Format of the JSON file."""

NAME = "rfc2544"
"""Name of the files, without their suffix."""

_DEFINITION = (
    "Latency is the time between two stamps of the same frame: one when it leaves the TG, one when it comes back. For "
    "frames of one size and links of one speed this is the definition of RFC 1242 for bit forwarding devices; that for "
    "store and forward devices is less by the time in which the frame is received."
)


@dataclass(frozen=True)
class Table:
    """A table of one test.

    Attributes:
        columns: The heads.
        rows: The cells of each row, in words.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chapter:
    """One test in the report.

    Attributes:
        title: Heading, with the section of the RFC.
        about: What the numbers are.
        table: The table that the RFC asks for, or that goes with its graph.
        graph: The graph as one ``<svg>`` element; empty: there is none.
    """

    title: str
    about: str
    table: Table
    graph: str = ""


@dataclass(frozen=True)
class Rfc2544Report:
    """A report in three formats.

    Attributes:
        html: One page, which needs no network and no scripts.
        json: Everything, for programs.
        csv: A row for each test and frame size, for spreadsheets.
    """

    html: str
    json: str
    csv: str


def rfc2544_report(run: Rfc2544Run) -> Rfc2544Report:
    """Makes the report of a run."""
    requirements = requirements_of(run)
    chapters = [make(run) for make in _CHAPTERS]
    results = [part.result for part in run.parts if part.result is not None]
    page = html_fragment(
        __package__,
        "report.html.jinja",
        filters={"words": message},
        run=run,
        conditions=results[0].conditions if results else None,
        took=seconds_in_words((run.ended - run.started).total_seconds()),
        forecast=seconds_in_words(run.forecast.seconds),
        measured=seconds_in_words(sum(trial.elapsed_s for result in results for trial in result.trials)),
        chapters=[chapter for chapter in chapters if chapter.table.rows],
        requirements=requirements,
        verdict=verdict_of(requirements),
        results=results,
    )
    return Rfc2544Report(page, _as_json(run, requirements), _as_csv(run))


def write_rfc2544_report(run: Rfc2544Run, directory: Path) -> tuple[Path, ...]:
    """Writes the report into a directory, in three files: ``rfc2544``, or ``rfc2544-2`` where another test has these.

    Raises:
        StorageError: If a file cannot be written.
    """
    report = rfc2544_report(run)
    texts = {"html": report.html, "json": report.json, "csv": report.csv}
    names = (NAME if number == 1 else f"{NAME}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _is_free(directory / f"{name}.json", run.test.full_name))
    paths = {suffix: directory / f"{name}.{suffix}" for suffix in texts}
    for suffix, path in paths.items():
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, texts[suffix].encode())
        except OSError as error:
            raise StorageError(
                f"Cannot write the report {path}: {error.strerror}. Make room, and resume the run."
            ) from error
    return tuple(paths.values())


def _is_free(path: Path, test_name: str) -> bool:
    """Whether a report's file is missing, or is of the same test, whose run was continued."""
    try:
        return bool(parse_json(path.read_bytes()).get("test") == test_name)
    except OSError:
        return True
    except (ValueError, AttributeError):
        # Somebody else's file of that name.
        return False


def _throughput(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "theoretical maximum, fps",
        "maximum load, fps",
        "throughput, fps",
        "of theoretical maximum",
        "aggregate, fps",
        "aggregate on the wire, bit/s",
        "state",
    )
    return Chapter(
        "Throughput (section 26.1)",
        "The highest rate of each transmitting interface at which no frame is lost.",
        Table(columns, tuple(_throughput_row(part) for part in run.of(Rfc2544Test.THROUGHPUT))),
        draw_throughput(run),
    )


def _throughput_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(ThroughputResult)
    if result is None:
        return _missing(part, 7)
    load, outcome = result.max_load, result.goals[0].result
    rate = None if outcome is None else outcome.conditional_throughput
    is_whole = rate is not None and _is_most(rate, load)
    share = "" if rate is None or load.theoretical_maximum is None else rate.per_interface_fps / theoretical_rate(load)
    reason = None if outcome is None else outcome.reason
    return (
        part.frame_size,
        _fps(load.theoretical_maximum) or "link speed not known",
        _fps(load.rate),
        _fps(rate) or "none",
        share if isinstance(share, str) else format_ratio(share),
        "" if rate is None else f"{rate.aggregate_fps:,.0f}",
        "" if rate is None else f"{rate.aggregate_l1_bps:,.0f}",
        "the maximum load" if is_whole else "measured" if reason is None else f"irregular: {reason}",
    )


def _is_most(rate: Rate, load: MaxLoad) -> bool:
    return rate.per_interface_fps >= load.rate.per_interface_fps * (1.0 - 1e-9)


def _latency(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "rate of the run, fps",
        "media type",
        "repeats",
        "average, µs",
        "least, µs",
        "most, µs",
        "standard deviation of repeats, µs",
        "frame in the middle, average, µs",
        "state",
    )
    rows = [_latency_row(part) for part in run.of(Rfc2544Test.LATENCY)]
    about = (
        f"{_DEFINITION} The average is that of all tagged frames of all repeats and directions. Beside it is the "
        "average of the RFC's single frame: the first one that was sent after the middle of each repeat."
    )
    return Chapter("Latency (section 26.2)", about, Table(columns, tuple(rows)))


def _latency_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(LatencyResult)
    if result is None:
        return _missing(part, 9)
    directions = _measured_directions(result)
    means = [statistics.fmean(one.mean_us or 0.0 for one in ways) for ways in directions]
    spread = statistics.stdev(means) if len(means) > 1 else 0.0
    middle = [one.middle_us for ways in directions for one in ways]
    known = [value for value in middle if value is not None]
    failed = len(result.latency) - len(directions)
    return (
        part.frame_size,
        _fps(result.latency[0].load),
        "Ethernet",
        f"{len(means)}",
        f"{statistics.fmean(means):,.1f}",
        f"{min(one.least_us or 0.0 for ways in directions for one in ways):,.1f}",
        f"{max(one.most_us or 0.0 for ways in directions for one in ways):,.1f}",
        f"{spread:,.1f}",
        f"{statistics.fmean(known):,.1f}" if known and len(known) == len(middle) else "not known",
        f"{failed} repeats failed" if failed else "measured",
    )


def _measured_directions(result: LatencyResult) -> list[list[DirectionLatency]]:
    """The directions of each repeat whose latency is known."""
    return [
        [one for one in at_load.directions if one.error is None] for at_load in result.latency if at_load.is_measured
    ]


def _delay_variation(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "PDV, range, µs",
        "PDV, 99 %, µs",
        "PDV, average, µs",
        "IPDV, average, µs",
        "state",
    )
    about = (
        "Of the same frames: PDV is a frame's delay less the least one of its repeat (RFC 5481, section 4.2; RFC 8239 "
        "means its range and its 99th percentile by jitter), IPDV the difference of delays of successive frames (RFC "
        "5481, section 4.1; the absolute one). The largest of all repeats and directions counts."
    )
    rows = tuple(_delay_variation_row(part) for part in run.of(Rfc2544Test.LATENCY))
    return Chapter("Delay variation (RFC 5481, RFC 8239)", about, Table(columns, rows))


def _delay_variation_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(LatencyResult)
    if result is None:
        return _missing(part, 5)
    ways = [one for directions in _measured_directions(result) for one in directions]
    least = [one.least_us or 0.0 for one in ways]
    values = (
        [one.most_us for one in ways],
        [one.percentiles_us.get("99") for one in ways],
        [one.mean_us for one in ways],
    )
    above_least = [
        [value - low for value, low in zip(column, least, strict=True) if value is not None] for column in values
    ]
    between = [one.jitter_us for one in ways if one.jitter_us is not None]
    cells = (
        f"{max(column):,.1f}" if column and len(column) == len(ways) else "not known"
        for column in (*above_least, between)
    )
    return (part.frame_size, *cells, "measured")


def _frame_loss(run: Rfc2544Run) -> Chapter:
    columns = ("frame size", "load, % of the maximum", "load, fps", "frame loss rate, %", "lost frames", "state")
    rows: list[tuple[str, ...]] = []
    for part in run.of(Rfc2544Test.FRAME_LOSS):
        result = part.result_as(FrameLossResult)
        if result is None or result.frame_loss is None:
            rows.append(_missing(part, 5))
            continue
        for loss in result.frame_loss.loads:
            rows.append(
                (
                    part.frame_size,
                    f"{100 * loss.share_of_max_load_ratio:.4g}",
                    _fps(loss.load),
                    f"{100 * loss.frame_loss_ratio:.4g}",
                    "" if loss.lost_frames is None else f"{loss.lost_frames:,}",
                    "measured" if not loss.unsent_frames else f"{loss.unsent_frames:,} frames unsent",
                )
            )
    about = "From the maximum load downwards, until two loads in a row lose nothing."
    return Chapter("Frame loss rate (section 26.3)", about, Table(columns, tuple(rows)), draw_loss(run))


def _back_to_back(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "rate of the bursts, fps",
        "average burst, frames",
        "min, max, stddev",
        "corrected buffer time",
        "implied buffer time",
        "N",
        "state",
    )
    about = (
        "The longest burst without loss, and the buffer time that follows from it and the throughput. Smallest step: 1 "
        "frame. Standard deviation over N - 1."
    )
    rows = tuple(_back_to_back_row(part) for part in run.of(Rfc2544Test.BACK_TO_BACK))
    return Chapter("Back-to-back frames (section 26.4, RFC 9004)", about, Table(columns, rows))


def _back_to_back_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(BackToBackResult)
    if result is None:
        return _missing(part, 7)
    values, rate = result.back_to_back, _fps(result.max_load.rate)
    if values is None:
        return (part.frame_size, rate, *[""] * 5, f"not applicable: {result.reason}")
    least = "at least " if values.is_at_limit else ""
    return (
        part.frame_size,
        rate,
        f"{least}{values.average_frames:,.1f}",
        f"{values.least_frames:,}, {values.most_frames:,}, {values.stdev_frames:.4g}",
        f"{least}{format_milliseconds(values.buffer_time.corrected_s)}",
        f"{least}{format_milliseconds(values.buffer_time.implied_s)}",
        f"{len(values.searches)}",
        result.reason or "measured",
    )


def _recovery(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "throughput, fps",
        "overload, fps",
        "then, fps",
        "average recovery time",
        "min, max, stddev",
        "repeats",
        "state",
    )
    about = (
        "Time from the end of the overload to the sending of the last lost frame. The RFC's text has the two times the "
        "other way round, which would be negative."
    )
    rows = tuple(_recovery_row(part) for part in run.of(Rfc2544Test.RECOVERY))
    return Chapter("System recovery (section 26.5)", about, Table(columns, rows))


def _recovery_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(RecoveryResult)
    if result is None:
        return _missing(part, 7)
    if result.recovery is None:
        return (part.frame_size, _fps(result.throughput), *[""] * 5, f"{result.reason}")
    values = result.recovery
    average, spread = values.average_s, (values.least_s, values.most_s, values.stdev_s)
    return (
        part.frame_size,
        _fps(result.throughput),
        _fps(result.overload),
        _fps(result.after),
        "none" if average is None else format_milliseconds(average),
        ", ".join(format_milliseconds(value) for value in spread if value is not None),
        f"{len(values.times)}",
        result.reason or "measured",
    )


def _reset(run: Rfc2544Run) -> Chapter:
    columns = (
        "frame size",
        "reset",
        "load, fps",
        "average by time stamps",
        "min, max, stddev",
        "average by frame loss",
        "average loss, frames",
        "trials",
        "state",
    )
    about = (
        "Time without forwarding after a reset: between the frames received before and after it, and lost frames over "
        "the load. At the smallest frame size."
    )
    rows = tuple(_reset_row(part) for part in run.of(Rfc2544Test.RESET))
    return Chapter("Reset (section 26.6, RFC 6201)", about, Table(columns, rows))


def _reset_row(part: Rfc2544Part) -> tuple[str, ...]:
    result = part.result_as(ResetResult)
    if result is None or result.reset is None:
        return _missing(part, 8)
    values = result.reset
    average, spread = values.average_s, (values.least_s, values.most_s, values.stdev_s)
    return (
        part.frame_size,
        result.settings.reset,
        _fps(result.load),
        "none" if average is None else format_milliseconds(average),
        ", ".join(format_milliseconds(value) for value in spread if value is not None),
        format_milliseconds(values.average_by_loss_s),
        f"{values.average_lost_frames:,.1f}",
        f"{len(values.times)}",
        result.reason or "measured",
    )


_CHAPTERS: tuple[Callable[[Rfc2544Run], Chapter], ...] = (
    _throughput,
    _latency,
    _delay_variation,
    _frame_loss,
    _back_to_back,
    _recovery,
    _reset,
)


def _missing(part: Rfc2544Part, columns: int) -> tuple[str, ...]:
    reason = part.problem or (None if part.result is None else part.result.error)
    return (part.frame_size, *[""] * (columns - 1), f"no result: {reason}")


def _fps(rate: Rate | None) -> str:
    return "" if rate is None else f"{rate.per_interface_fps:,.0f}"


def _values(part: Rfc2544Part) -> Iterator[dict[str, Any]]:
    """The quantities of a part, as numbers: rates are aggregates, in frames per second."""
    for finding in findings_of([part.result]) if part.result is not None else ():
        yield {
            "quantity": finding.quantity,
            "outcome": finding.outcome.value,
            "value": number_of(finding.value),
            "unit": finding.unit.name,
            "stdev": number_of(finding.deviation),
            "lower_bound": number_of(finding.lower_bound),
            "upper_bound": number_of(finding.upper_bound),
            "reason": finding.reason,
        }


def _as_json(run: Rfc2544Run, requirements: Sequence[Requirement]) -> str:
    parts = [
        {
            "frame_size": part.frame_size,
            "test": part.test.value,
            "problem": part.problem,
            "values": list(_values(part)),
            "result": None if part.result is None else part.result.model_dump(mode="json", exclude={"trials"}),
        }
        for part in run.parts
    ]
    settings = {**asdict(run.settings), "goal": str(run.settings.goal)}
    data = {
        "format": REPORT_FORMAT,
        "test": run.test.full_name,
        "started": run.started.isoformat(),
        "ended": run.ended.isoformat(),
        "forecast_s": run.forecast.seconds,
        "modifier": None if run.modifier is None else run.modifier.value,
        "modifier_report": None if run.modifier_report is None else asdict(run.modifier_report),
        "settings": settings,
        "compliance": verdict_of(tuple(requirements)),
        "requirements": [asdict(item) for item in requirements],
        "parts": parts,
    }
    return json.dumps(data, indent=1) + "\n"


_COLUMNS = (
    *("frame_size", "test", "quantity", "outcome", "value", "unit"),
    *("stdev", "lower_bound", "upper_bound", "reason"),
)


def _as_csv(run: Rfc2544Run) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for part in run.parts:
        where = {"frame_size": part.frame_size, "test": part.test.value}
        rows = list(_values(part)) or [{"outcome": "failed", "reason": part.problem}]
        writer.writerows({**where, **row} for row in rows)
    return text.getvalue()
