"""The report that RFC 2544 asks for: a table or graph for each test, the conditions, and how the RFC was followed."""

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lossratio.drawing import (
    LINE_HEIGHT,
    RIGHT,
    Axis,
    Mark,
    Plot,
    html_fragment,
    in_unit,
    series_colour,
)
from lossratio.errors import storing
from lossratio.input_file import parse_json
from lossratio.measurements import Spread, seconds_in_words
from lossratio.measurements.back_to_back import BackToBackResult, BackToBackValues
from lossratio.measurements.frame_loss import LossAtLoad
from lossratio.measurements.latency import delays_of
from lossratio.measurements.recovery import average_in_words
from lossratio.measurements.rfc2544.compliance import Requirement, requirements_of, verdict_of
from lossratio.measurements.rfc2544.run import Rfc2544Part, Rfc2544Run, Rfc2544Test, throughput_of
from lossratio.measurements.throughput import ThroughputResult
from lossratio.records import Rate
from lossratio.results import MaxLoad, aggregate_of, findings_of, message, view_of, write_whole
from lossratio.units import counted, format_precise_time, format_ratio

REPORT_FORMAT = "lossratio-rfc2544/1"
"""Format of the JSON file."""
NAME = "rfc2544"
"""Name of the files, without their suffix."""

_DEFINITION = (
    "Latency is the time between two stamps of the same frame: one when it leaves the TG, one when it comes back. "
    "If all frames have one size and all links one speed, this is RFC 1242's latency of bit forwarding devices. To "
    "get the latency of store and forward devices, subtract the time in which the frame is received."
)


@dataclass(frozen=True)
class Chapter:
    """One test in the report: a table with a row for each frame size, or for each part of its results."""

    title: str
    """Heading, with the section of the RFC."""
    about: str
    """The meaning of the numbers."""
    test: Rfc2544Test
    """The test."""
    cells: Mapping[str, Callable[[Any], str]]
    """How the cell of each column is filled, by the heading of the column. The first column, before these, has the
    frame size."""
    parts: Callable[[Any], Iterable[Any]] = lambda result: (result,)
    """The parts of a result. Each part has a row. No parts: there is no result."""
    graph: Callable[[Rfc2544Run], str] = lambda run: ""
    """The graph as one ``<svg>`` element; empty: there is none."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of all columns."""
        return ("frame size", *self.cells)

    def rows(self, run: Rfc2544Run) -> Iterator[tuple[str, ...]]:
        """The cells of each row, in words."""
        for part in run.of(self.test):
            found = () if part.result is None else tuple(self.parts(part.result))
            yield from (
                (part.frame_size, *(cell(one) for cell in self.cells.values())) for one in found
            )
            if not found:
                reason = part.problem or (None if part.result is None else part.result.error)
                yield (part.frame_size, *[""] * (len(self.cells) - 1), f"no result: {reason}")


@dataclass(frozen=True)
class Rfc2544Report:
    """A report in three formats."""

    html: str
    """One page, which needs no network and no scripts."""
    json: str
    """Everything, for programs."""
    csv: str
    """A row for each test and frame size, for spreadsheets."""


def rfc2544_report(run: Rfc2544Run) -> Rfc2544Report:
    """Makes the report of a run."""
    requirements = requirements_of(run)
    results = [part.result for part in run.parts if part.result is not None]
    # Record: what the template shows.
    page = html_fragment(
        __package__,
        "report.html.jinja",
        filters={"words": message},
        run=run,
        goal=next(
            (result.goals[0].goal for result in run.results_of(Rfc2544Test.THROUGHPUT)), None
        ),
        conditions=results[0].conditions if results else None,
        took=seconds_in_words((run.ended - run.started).total_seconds()),
        forecast=seconds_in_words(run.forecast.seconds),
        measured=seconds_in_words(
            sum(trial.elapsed_s for result in results for trial in result.trials)
        ),
        chapters=[chapter for chapter in _CHAPTERS if run.of(chapter.test)],
        requirements=requirements,
        verdict=verdict_of(requirements),
        results=results,
    )
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()

    for part in run.parts:
        where = {"frame_size": part.frame_size, "test": part.test.value}
        rows = list(values_of(part)) or [{"outcome": "failed", "reason": part.problem}]
        writer.writerows({**where, **row} for row in rows)

    return Rfc2544Report(page, _as_json(run, requirements), text.getvalue())


def write_rfc2544_report(run: Rfc2544Run, directory: Path) -> tuple[Path, ...]:
    """Writes the report into a directory, in three files named ``rfc2544``, or ``rfc2544-2`` if the names are taken.

    Raises:
        StorageError: If a file cannot be written.
    """
    texts = asdict(rfc2544_report(run))
    names = (NAME if number == 1 else f"{NAME}-{number}" for number in itertools.count(1))
    name = next(name for name in names if _is_free(directory / f"{name}.json", run.test.full_name))
    paths = {suffix: directory / f"{name}.{suffix}" for suffix in texts}
    for suffix, path in paths.items():
        with storing(f"write the report {path}", "Free some space, and resume the run."):
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, texts[suffix].encode())
    return tuple(paths.values())


def _is_free(path: Path, test_name: str) -> bool:
    """Whether the file of a report is missing, or belongs to the same test in a resumed run."""
    try:
        return bool(parse_json(path.read_bytes()).get("test") == test_name)
    except OSError:
        return True
    except (ValueError, AttributeError):
        # The file of this name is not a report.
        return False


_HEIGHT = 340.0
_LEFT = 90.0
_TOP = 30.0
_BOTTOM = 280.0


def theoretical_rate(load: MaxLoad) -> float:
    """The maximum frame rate of the links, per interface; the maximum load if the links' maximum is not known."""
    return (load.theoretical_maximum or load.rate).per_interface_fps


def draw_throughput(run: Rfc2544Run) -> str:
    """The graph of section 26.1: frame rate over frame size, theoretical and measured."""
    theoretical: list[tuple[float, float]] = []
    measured: list[tuple[float, float]] = []
    results: Sequence[ThroughputResult] = run.results_of(Rfc2544Test.THROUGHPUT)

    for result in results:
        size = result.conditions.traffic.average_frame_size_bytes
        theoretical.append((size, theoretical_rate(result.max_load)))
        rate = throughput_of(result)
        measured += [] if rate is None else [(size, rate)]

    if len(theoretical) < 2:
        return ""

    known = all(result.max_load.theoretical_maximum is not None for result in results)
    if known:
        upper = "theoretical maximum of the links"
    else:
        upper = "theoretical maximum, or maximum load where it is not known"

    highest = max(rate for _, rate in theoretical) * 1.05
    plot = Plot(
        Axis(0.0, theoretical[-1][0] * 1.02, _LEFT, RIGHT), Axis(0.0, highest, _BOTTOM, _TOP)
    )
    plot.frame([size for size, _ in theoretical], plot.y.ticks(8), in_unit(1), in_unit(1))
    plot.line(theoretical, series_colour(1), dash="6 3")
    plot.line(measured, series_colour(0))
    _dots(plot, measured, series_colour(0), "{0:g} bytes: {1:,.0f} fps")
    names = ((upper, series_colour(1), "6 3"), ("throughput", series_colour(0), None))

    return _finish(
        plot,
        names,
        "frame rate, frames per second per interface",
        "frame size, bytes",
        "Throughput",
    )


def draw_loss(run: Rfc2544Run) -> str:
    """The graph of section 26.3: both axes from 0 to 100 %."""
    lines: list[tuple[str, list[tuple[float, float]]]] = []
    for part in run.of(Rfc2544Test.FRAME_LOSS):
        result: Any = part.result
        if result is not None and result.frame_loss is not None:
            share = result.max_load.rate.per_interface_fps / theoretical_rate(result.max_load)
            points = [
                (100 * share * loss.share_of_max_load_ratio, 100 * loss.frame_loss_ratio)
                for loss in result.frame_loss.loads
            ]
            lines.append((part.frame_size, points))

    if not lines:
        return ""

    plot = Plot(Axis(0.0, 100.0, _LEFT, RIGHT), Axis(0.0, 100.0, _BOTTOM, _TOP))
    plot.frame(plot.x.ticks(11), plot.y.ticks(11), in_unit(1), in_unit(1))
    dashes = (None, "6 3", "2 3", "8 3 2 3")
    names = []

    for index, (name, points) in enumerate(lines):
        colour = series_colour(index)
        dash = dashes[index % len(dashes)]
        plot.line(points, colour, dash=dash)
        _dots(plot, points, colour, f"{name}: {{1:.4g}} % lost at {{0:.4g}} % load")
        names.append((name, colour, dash))

    known = all(
        result.max_load.theoretical_maximum is not None
        for result in run.results_of(Rfc2544Test.FRAME_LOSS)
    )
    if known:
        load = "load, % of the theoretical maximum"
    else:
        load = "load, % of the maximum load"

    return _finish(plot, names, "frame loss rate, %", load, "Frame loss rate")


def _dots(plot: Plot, points: Sequence[tuple[float, float]], colour: str, hint: str) -> None:
    """Marks measured points. The hint is a format string for both values."""
    plot.marks(
        Mark("measured", "measured", "circle", colour),
        [(x, y, hint.format(x, y)) for x, y in points],
    )


def _finish(
    plot: Plot, names: Sequence[tuple[str, str, str | None]], y: str, x: str, title: str
) -> str:
    plot.titles(x, y)
    columns = 2 if len(names) < 3 else 4
    for index, (name, colour, dash) in enumerate(names):
        left = _LEFT + (index % columns) * (RIGHT - _LEFT) / columns
        plot.line_key(left, _BOTTOM + 54.0 + LINE_HEIGHT * (index // columns), name, colour, dash)
    return plot.svg(_HEIGHT + LINE_HEIGHT, f"{title}.")


def _fps(rate: Rate | None, unit: str = "per_interface_fps") -> str:
    if rate is None:
        return ""
    return f"{getattr(rate, unit):,.0f}"


_WHOLE = 1.0 - 1e-9


def _throughput_share(result: ThroughputResult) -> str:
    rate = result.goals[0].throughput
    load = result.max_load
    if rate is None or load.theoretical_maximum is None:
        return ""
    return format_ratio(rate.per_interface_fps / theoretical_rate(load))


def _throughput_state(result: ThroughputResult) -> str:
    rate, outcome = result.goals[0].throughput, result.goals[0].result
    if (
        rate is not None
        and rate.per_interface_fps >= result.max_load.rate.per_interface_fps * _WHOLE
    ):
        return "the maximum load"
    if outcome is None or outcome.reason is None:
        return "measured"
    return f"irregular: {outcome.reason}"


def _microseconds(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,.1f}"


def _times(values: Spread | None) -> str:
    if values is None:
        return ""
    if values.average_s is None:
        return "none"
    return format_precise_time(values.average_s)


def _burst(
    value: Callable[[BackToBackValues], str], is_least: bool = False
) -> Callable[[BackToBackResult], str]:
    """The cell for a value; empty if no buffer fills."""

    def cell(result: BackToBackResult) -> str:
        values = result.back_to_back
        if values is None:
            return ""
        return (values.prefix if is_least else "") + value(values)

    return cell


def _range_of_bursts(values: BackToBackValues) -> str:
    return f"{values.least_frames:,}, {values.most_frames:,}, {values.stdev_frames:.4g}"


def _burst_state(result: BackToBackResult) -> str:
    if not result.back_to_back:
        return f"not applicable: {result.reason}"
    return result.reason or "measured"


def _lost_frames(one: LossAtLoad) -> str:
    if one.lost_frames is None:
        return ""
    return f"{one.lost_frames:,}"


# Table: the tests in the order of the RFC, each with its columns.
_CHAPTERS = (
    Chapter(
        "Throughput (section 26.1)",
        "The highest rate per transmitting interface at which no frame is lost.",
        Rfc2544Test.THROUGHPUT,
        {
            "theoretical maximum, fps": lambda one: (
                _fps(one.max_load.theoretical_maximum) or "link speed not known"
            ),
            "maximum load, fps": lambda one: _fps(one.max_load.rate),
            "throughput, fps": lambda one: _fps(one.goals[0].throughput) or "none",
            "of theoretical maximum": _throughput_share,
            "aggregate, fps": lambda one: _fps(one.goals[0].throughput, "aggregate_fps"),
            "aggregate on the wire, bit/s": lambda one: _fps(
                one.goals[0].throughput, "aggregate_l1_bps"
            ),
            "state": _throughput_state,
        },
        graph=draw_throughput,
    ),
    Chapter(
        "Latency (section 26.2)",
        f"{_DEFINITION} The average is over all tagged frames of all repeats and directions. Next to it is the "
        "average of the RFC's single frame, the first one sent after the middle of each repeat.",
        Rfc2544Test.LATENCY,
        {
            "rate of the run, fps": lambda one: _fps(one.load),
            "media type": lambda one: "Ethernet",
            "repeats": lambda one: f"{one.repeats}",
            "average, µs": lambda one: _microseconds(one.average),
            "least, µs": lambda one: _microseconds(one.least),
            "most, µs": lambda one: _microseconds(one.most),
            "standard deviation of repeats, µs": lambda one: _microseconds(one.spread),
            "frame in the middle, average, µs": lambda one: _microseconds(one.middle),
            "state": lambda one: (
                f"{counted(one.failed, 'repeat')} failed" if one.failed else "measured"
            ),
        },
        delays_of,
    ),
    Chapter(
        "Delay variation (RFC 5481, RFC 8239)",
        "For the same frames. PDV is a frame's delay minus the smallest delay of its repeat (RFC 5481, section 4.2; in "
        "RFC 8239, jitter is its range and its 99th percentile). IPDV is the absolute difference between the delays of "
        "successive frames (RFC 5481, section 4.1). The largest value of all repeats and directions counts.",
        Rfc2544Test.LATENCY,
        {
            "PDV, range, µs": lambda one: _microseconds(one.range),
            "PDV, 99 %, µs": lambda one: _microseconds(one.high),
            "PDV, average, µs": lambda one: _microseconds(one.mean),
            "IPDV, average, µs": lambda one: _microseconds(one.between),
            "state": lambda one: "measured",
        },
        delays_of,
    ),
    Chapter(
        "Frame loss rate (section 26.3)",
        "From the maximum load downwards until two loads in a row lose nothing.",
        Rfc2544Test.FRAME_LOSS,
        {
            "load, % of the test's maximum load": lambda one: (
                f"{100 * one.share_of_max_load_ratio:.4g}"
            ),
            "load, fps": lambda one: _fps(one.load),
            "frame loss rate, %": lambda one: f"{100 * one.frame_loss_ratio:.4g}",
            "lost frames": _lost_frames,
            "state": lambda one: (
                f"{counted(one.unsent_frames, 'frame')} unsent" if one.unsent_frames else "measured"
            ),
        },
        lambda result: () if result.frame_loss is None else result.frame_loss.loads,
        draw_loss,
    ),
    Chapter(
        "Back-to-back frames (section 26.4, RFC 9004)",
        "The longest burst without loss, and the buffer time calculated from it and the throughput. Smallest step: "
        "1 frame. Standard deviation over N - 1.",
        Rfc2544Test.BACK_TO_BACK,
        {
            "rate of the bursts, fps": lambda one: _fps(one.max_load.rate),
            "average burst, frames": _burst(
                lambda one: f"{one.average_frames:,.1f}", is_least=True
            ),
            "min, max, stddev": _burst(_range_of_bursts),
            "corrected buffer time": _burst(
                lambda one: format_precise_time(one.buffer_time.corrected_s), is_least=True
            ),
            "implied buffer time": _burst(
                lambda one: format_precise_time(one.buffer_time.implied_s), is_least=True
            ),
            "N": _burst(lambda one: f"{len(one.searches)}"),
            "state": _burst_state,
        },
    ),
    Chapter(
        "System recovery (section 26.5)",
        "Time from the end of the overload to the sending of the last lost frame. The RFC subtracts these in the "
        "other order, which would be negative.",
        Rfc2544Test.RECOVERY,
        {
            "throughput, fps": lambda one: _fps(one.throughput),
            "overload, fps": lambda one: _fps(one.overload if one.recovery else None),
            "then, fps": lambda one: _fps(one.after if one.recovery else None),
            "average recovery time": average_in_words,
            "min, max, stddev": lambda one: (
                one.recovery.in_words(one.frame_spacing_s) if one.recovery else ""
            ),
            "repeats": lambda one: f"{len(one.recovery.times)}" if one.recovery else "",
            "state": lambda one: one.reason or "measured",
        },
    ),
    Chapter(
        "Reset (section 26.6, RFC 6201)",
        "Time without forwarding after a reset, at the smallest frame size: once as the time between the frames "
        "received before and after the reset, once as lost frames divided by the load.",
        Rfc2544Test.RESET,
        {
            "reset": lambda one: one.settings.reset_name,
            "load, fps": lambda one: _fps(one.load),
            "average by time stamps": lambda one: _times(one.reset),
            "min, max, stddev": lambda one: one.reset.in_words,
            "average by frame loss": lambda one: format_precise_time(one.reset.average_by_loss_s),
            "average loss, frames": lambda one: f"{one.reset.average_lost_frames:,.1f}",
            "trials": lambda one: f"{len(one.reset.times)}",
            "state": lambda one: one.reason or "measured",
        },
        lambda result: () if result.reset is None else (result,),
    ),
)


def values_of(part: Rfc2544Part) -> Iterator[dict[str, Any]]:
    """The quantities of a part, as numbers: rates are aggregates, in frames per second."""
    if part.result is None:
        return

    for finding in findings_of([part.result]):
        yield {
            "quantity": finding.quantity,
            "outcome": finding.outcome.value,
            "value": aggregate_of(finding.value),
            "unit": finding.unit.name if finding.has_value else None,
            "stdev": aggregate_of(finding.deviation),
            "lower_bound": aggregate_of(finding.lower_bound),
            "upper_bound": aggregate_of(finding.upper_bound),
            "reason": finding.reason,
        }

    # Some results have no single value.
    for row in view_of(part.result).rfc2544_rows(part.result):
        yield {
            "quantity": row.quantity,
            "outcome": "measured",
            "value": row.value,
            "unit": row.unit,
            "stdev": row.deviation,
        }


def _as_json(run: Rfc2544Run, requirements: Sequence[Requirement]) -> str:
    settings = {
        test.value: request.settings.model_dump(mode="json")
        for test, request in run.requests.items()
    }

    # Record: the fields of the file.
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
        "parts": [_part_as_json(part) for part in run.parts],
    }
    return json.dumps(data, indent=1) + "\n"


def _part_as_json(part: Rfc2544Part) -> dict[str, Any]:
    result = None
    if part.result is not None:
        result = part.result.model_dump(mode="json", exclude={"trials"})

    return {
        "frame_size": part.frame_size,
        "test": part.test.value,
        "problem": part.problem,
        "values": list(values_of(part)),
        "result": result,
    }


_COLUMNS = (
    *("frame_size", "test", "quantity", "outcome", "value", "unit"),
    *("stdev", "lower_bound", "upper_bound", "reason"),
)
