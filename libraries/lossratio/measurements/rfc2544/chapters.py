"""The chapters of the report that RFC 2544 asks for: a table for each test, and the words in its cells."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from lossratio.measurements import Spread
from lossratio.measurements.back_to_back import BackToBackResult, BackToBackValues
from lossratio.measurements.frame_loss import LossAtLoad
from lossratio.measurements.latency import delays_of
from lossratio.measurements.recovery import average_in_words
from lossratio.measurements.rfc2544.graphs import draw_loss, draw_throughput, theoretical_rate
from lossratio.measurements.rfc2544.run import Rfc2544Run, Rfc2544Test
from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import ROUNDING
from lossratio.values import Rate, counted, format_precise_time, format_ratio

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


def _fps(rate: Rate | None, unit: str = "per_interface_fps") -> str:
    if rate is None:
        return ""
    return f"{getattr(rate, unit):,.0f}"


def _throughput_share(result: ThroughputResult) -> str:
    rate = result.goals[0].throughput
    load = result.max_load
    if rate is None or load.theoretical_maximum is None:
        return ""
    return format_ratio(rate.per_interface_fps / theoretical_rate(load))


def _throughput_state(result: ThroughputResult) -> str:
    rate, outcome = result.goals[0].throughput, result.goals[0].result
    maximum = result.max_load.rate.per_interface_fps
    if rate is not None and rate.per_interface_fps >= maximum * (1.0 - ROUNDING):
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


def _burst_state(result: BackToBackResult) -> str:
    if not result.back_to_back:
        return f"not applicable: {result.reason}"
    return result.reason or "measured"


def _lost_frames(one: LossAtLoad) -> str:
    if one.lost_frames is None:
        return ""
    return f"{one.lost_frames:,}"


# Table: the tests in the order of the RFC, each with its columns.
CHAPTERS = (
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
        "Frame loss rate (section 26.3)",
        "The load goes down from the maximum until two loads in a row lose nothing.",
        Rfc2544Test.FRAME_LOSS,
        {
            "load, % of the test's maximum load": lambda one: (
                f"{100 * one.loss.share_of_max_load_ratio:.4g}"
            ),
            "load, fps": lambda one: _fps(one.loss.load),
            "frame loss rate, %": lambda one: f"{100 * one.loss.frame_loss_ratio:.4g}",
            "lost frames": lambda one: _lost_frames(one.loss),
            "state": lambda one: one.trial.missing.not_lost or "measured",
        },
        attrgetter("at_loads"),
        draw_loss,
    ),
    Chapter(
        "Back-to-back frames (section 26.4, RFC 9004)",
        "The longest burst without loss, and the buffer time calculated from it and the throughput. The search ends "
        "at a step of 1 frame. The standard deviation divides by N - 1.",
        Rfc2544Test.BACK_TO_BACK,
        {
            "rate of the bursts, fps": lambda one: _fps(one.max_load.rate),
            "average burst, frames": _burst(
                lambda one: f"{one.average_frames:,.1f}", is_least=True
            ),
            "min, max, stddev": _burst(lambda one: one.spread),
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
        "Time from the end of the overload to the sending of the last lost frame. The RFC "
        "subtracts these in the other order, which would give a negative time.",
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
            "min, max, stddev": lambda one: one.reset.in_words(),
            "average by frame loss": lambda one: format_precise_time(one.reset.average_by_loss_s),
            "average loss, frames": lambda one: f"{one.reset.average_lost_frames:,.1f}",
            "trials": lambda one: f"{len(one.reset.times)}",
            "state": lambda one: one.reason or "measured",
        },
        lambda result: () if result.reset is None else (result,),
    ),
)
