"""The rows that a history keeps of a result, and series of them in the order of time.

A result has a row for each quantity, with everything that shows and explains a change. A series is one quantity of one
test on one testbed, or a reading of latency or telemetry, whose trends are computed in the same way but are no alarms.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lossratio import results
from lossratio.history.devices import LINE
from lossratio.history.unmeasured import nothing_measured
from lossratio.report import NOTHING_MEASURED, Run
from lossratio.units import FRAMES_PER_SECOND, Unit
from lossratio.version import __version__

_LEAST_SHARE = 0.01
"""Graph nodes with fewer packets, as a share of the busiest node's packets, are not part of the traffic's path."""


@dataclass(frozen=True)
class Reading:
    """A number of a result that explains its value, from telemetry or latency, and that people look at.

    The numbers of a device's threads become one: their mean, weighted by the packets of each thread.
    """

    quantity: str
    """The quantity, e.g. ``clocks per packet``."""
    place: str
    """Where it was counted, e.g. ``DUT1 ip4-lookup``; for a latency, the load, e.g. ``90 % of PDR``."""
    value: float
    """Its value."""
    unit: str
    """Its unit, e.g. ``cycles``."""


class _Column(NamedTuple):
    """A statistic of a graph node, the name and unit of its reading, and the statistic that weights its threads."""

    statistic: str
    quantity: str
    unit: str
    weight: str


CLOCKS = "clocks per packet"
"""The quantity by which graph nodes are compared."""

# Table: the statistics of graph nodes that have series.
_NODE_COLUMNS = (
    _Column("clocks_per_packet", CLOCKS, "cycles", "vectors"),
    _Column("vectors_per_call", "vectors per call", "packets", "calls"),
    _Column(
        "perfmon_instructions_per_packet", "instructions per packet", "instructions", "vectors"
    ),
    _Column("perfmon_instructions_per_clock", "instructions per clock", "instructions", "vectors"),
    _Column("perfmon_l1_misses_per_packet", "L1 misses per packet", "misses", "vectors"),
    _Column("perfmon_l2_misses_per_packet", "L2 misses per packet", "misses", "vectors"),
    _Column("perfmon_l3_misses_per_packet", "L3 misses per packet", "misses", "vectors"),
)
OF_NODES = frozenset(column.quantity for column in _NODE_COLUMNS)
"""The quantities of graph nodes."""

_OF_ALL_CPUS = (
    "cycles_per_frame",
    "instructions_per_frame",
    "cache_misses_per_frame",
    "branch_misses_per_frame",
    "instructions_per_cycle",
)
_LATENCIES = {"p50_us": "latency p50", "p99_us": "latency p99"}


def readings_of(result: results.TestResult) -> tuple[Reading, ...]:
    """The readings of a result's telemetry: of its newest trial at PDR, or else of its newest trial."""
    trials = [trial.model_dump(mode="json") for trial in results.view_of(result).telemetry(result)]
    at_pdr = [trial for trial in trials if str(trial.get("goal") or "").upper().endswith("PDR")]
    return tuple(
        reading
        for trial in (at_pdr or trials)[-1:]
        for dut in trial["duts"]
        for reading in _of_device(dut)
    )


def _of_device(dut: Mapping[str, Any]) -> Iterator[Reading]:
    places: dict[str, dict[str, float]] = {}
    nodes: dict[str, list[str]] = {}
    for statistic in dut.get("statistics", ()):
        place = statistic["place"]
        places.setdefault(place, {})[statistic["name"]] = statistic["value"]
        node = statistic.get("labels", {}).get("node_name")
        if node is not None and place not in nodes.setdefault(node, []):
            nodes[node].append(place)
        if statistic["name"] in _OF_ALL_CPUS:
            yield Reading(
                statistic["name"].replace("_", " "),
                dut["node"],
                statistic["value"],
                statistic["unit"],
            )

    yield from _of_graph(
        dut["node"], {node: [places[place] for place in of] for node, of in nodes.items()}
    )
    # Open vSwitch's threads, from ``pmd-stats-show``.
    polling = [
        each
        for each in places.values()
        if "processing_cycles" in each and each.get("packets_received")
    ]
    if polling:
        cycles = _sum(polling, "processing_cycles") / _sum(polling, "packets_received")
        yield Reading("processing cycles per packet", dut["node"], cycles, "cycles")

    # The kernel's counters of all CPUs, if the device's frames came through the kernel.
    cpus = [each for each in places.values() if "softnet_processed" in each]
    received = sum(dut["received_frames"].values())
    if received and _sum(cpus, "softnet_processed") >= _LEAST_SHARE * received:
        yield Reading(
            "softnet time squeezes", dut["node"], _sum(cpus, "softnet_time_squeeze"), "times"
        )
        yield Reading("softnet drops", dut["node"], _sum(cpus, "softnet_dropped"), "frames")


def _of_graph(device: str, nodes: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[Reading]:
    """VPP's graph nodes, each with the numbers of all threads combined."""
    packets = {node: _sum(threads, "vectors") for node, threads in nodes.items()}
    busiest = max(packets.values(), default=0.0)
    for node, threads in nodes.items():
        if not busiest or packets[node] < _LEAST_SHARE * busiest:
            continue
        for column in _NODE_COLUMNS:
            counted = [thread for thread in threads if column.statistic in thread]
            weight = _sum(counted, column.weight)
            if weight:
                mean = (
                    sum(
                        thread[column.statistic] * thread.get(column.weight, 0.0)
                        for thread in counted
                    )
                    / weight
                )
                yield Reading(column.quantity, f"{device} {node}", mean, column.unit)


def _sum(rows: Iterable[Mapping[str, float]], name: str) -> float:
    return sum(row.get(name, 0.0) for row in rows)


def latency_readings(points: Iterable[Mapping[str, Any]]) -> Iterator[Reading]:
    """Median and 99th percentile of the latency at each load, in the slower direction."""
    slowest: dict[tuple[str, str], float] = {}
    for point in points:
        for percentile, quantity in _LATENCIES.items():
            if point[percentile] is not None:
                key = (quantity, point["load"])
                slowest[key] = max(slowest.get(key, 0.0), point[percentile])
    yield from (Reading(*key, value, "µs") for key, value in slowest.items())


MEASURED = "measured"
"""Outcome of a result that was measured as requested."""
FAILED = "failed"
AS_BEFORE = "as before"
"""Outcome of entries of nights without a search because the SUT was as before: they neither have nor need a value."""
"""Outcome of a result that could not be measured."""


@dataclass(frozen=True)
class Entry:
    """One quantity of one test of one run."""

    testbed: str
    """Name of the testbed. Even equal testbeds differ, so each has its own trends."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""
    started: datetime
    """When the test began; with a time zone."""
    seconds: float
    """How long the measurement took, with latency and telemetry after a search."""
    value: float | None
    """The value in the unit. In files, a rate is an aggregate; in series, it is per interface. None: there is none."""
    lower_bound: float | None
    """Relevant lower bound, likewise."""
    upper_bound: float | None
    """Relevant upper bound, likewise."""
    outcome: str
    """``measured``, ``irregular``, ``failed`` or ``as before``."""
    reason: str | None
    """Why it is irregular or failed; None: it was measured."""
    doubts: tuple[str, ...]
    """Kinds of doubts about the result."""
    lossratio_version: str
    """Version of lossratio that measured it."""
    measured_as: str | None = None
    """Distinguishes values with other traffic, paths or goals for the same test name; None: not known, because an
    earlier version added the result."""
    unit: str = FRAMES_PER_SECOND.name
    """Name of the unit of the value and the bounds."""
    lower_is_better: bool = FRAMES_PER_SECOND.lower_is_better
    """Whether the lower of two values is better."""
    generator: str | None = None
    """Kind of the traffic generator; None: not known, because an earlier version added the result."""
    run: str | None = None
    """Name of the run's directory; None: likewise not known."""
    run_started: datetime | None = None
    """When the first test of the run began, which distinguishes runs of the same name; None: likewise."""
    tags: tuple[str, ...] = ()
    """The tags of the test."""
    frame_size_bytes: float | None = None
    """Average frame size; None: likewise."""
    build: str | None = None
    """Kind and version of the DUTs; None: not known."""
    latency: tuple[results.LatencyPoint, ...] = ()
    """Latencies of the test, if it has any."""
    unsent_share: float | None = None
    """Share of the value's frames that were unsent, late or dropped by the generator, if more than 1 %; 1: the value is
    only a lower bound; None: not known."""
    readings: tuple[Reading, ...] = ()
    """Readings of the test's telemetry, if there are any; the first entry of a result has them."""
    resolution: float | None = None
    """Width of the search's goal, relative to the upper bound; None: there is none, or an earlier version added the
    result."""
    most: float | None = None
    """The value if these frames had passed; None: there are none, the value is only a lower bound, or an earlier
    version added the result."""
    long_name: str | None = None
    """What Robot Framework called the test in its run; None: a script measured it, or an earlier version, which has
    this name as `test`."""
    has_device: bool | None = None
    """Whether there was a device between the tester's ports; None: not known, because an earlier version added the
    result."""
    device: str | None = None
    """The device with its options that count, and what counts about its testbed; None: not known, because an earlier
    version added the result."""
    aggregate_factor: float | None = None
    """The aggregate rate divided by the rate per interface; None: the value is not a rate, or an earlier version added
    the result."""
    stream: str | None = None
    """The stream of the traffic profile whose loss alone counts for the quantity; None: the loss of all frames counts,
    or an earlier version added the result."""


def entries_of(run: Run) -> Iterator[Entry]:
    """The entries of a run, in the order of its tests; tests that were cut off have none.

    Tests that measured nothing come last, with `NOTHING_MEASURED` as their quantity.
    """
    before = 0
    for finding in results.findings_of(run.results):
        entry = _entry(
            run, finding, tuple(doubt.kind.value for doubt in run.doubts[finding.number - 1])
        )
        yield (
            entry
            if finding.number == before
            else replace(entry, readings=readings_of(finding.result))
        )
        before = finding.number

    for test in nothing_measured(run):
        yield Entry(
            testbed=test.testbed,
            test=test.test,
            quantity=NOTHING_MEASURED,
            started=test.time,
            seconds=0.0,
            value=None,
            lower_bound=None,
            upper_bound=None,
            outcome=FAILED,
            reason=test.reason,
            doubts=(),
            lossratio_version=__version__,
            run=run.path.resolve().name,
            run_started=_began(run),
        )


def _began(run: Run) -> datetime:
    """When the first test of a run began, or else when the first test that measured nothing failed."""
    began = [result.started for result in run.results]
    return min(began or [test.time for test in nothing_measured(run)])


def _entry(run: Run, finding: results.Finding, doubts: tuple[str, ...]) -> Entry:
    result = finding.result
    ends = results.ends_of(finding)
    factor = None
    if finding.unit == FRAMES_PER_SECOND:
        factor = result.conditions.load.aggregate_factor

    most = None
    if ends is not None and ends.least < ends.most < np.inf:
        most = ends.most * (factor or 1.0)

    # Record: a row of the history.
    return Entry(
        testbed=result.conditions.testbed.name,
        test=result.test.full_name,
        quantity=finding.quantity,
        started=result.started,
        seconds=result.took_s,
        value=results.aggregate_of(finding.value),
        lower_bound=results.aggregate_of(finding.lower_bound),
        upper_bound=results.aggregate_of(finding.upper_bound),
        outcome=AS_BEFORE if finding.is_as_before else finding.outcome.value,
        reason=finding.reason,
        doubts=doubts,
        lossratio_version=result.conditions.controller.lossratio_version,
        measured_as=results.digest_of(finding),
        unit=finding.unit.name,
        lower_is_better=finding.unit.lower_is_better,
        generator=results.generator_of(result),
        run=run.path.resolve().name,
        run_started=_began(run),
        tags=result.test.tags,
        frame_size_bytes=result.conditions.traffic.average_frame_size_bytes,
        build=results.build_of(result),
        latency=tuple(results.view_of(result).latencies(result)),
        unsent_share=results.unsent_share_of(finding),
        resolution=finding.resolution,
        most=most,
        long_name=result.test.long_name,
        has_device=bool(result.conditions.duts),
        device=result.conditions.measured_on,
        aggregate_factor=factor,
        stream=finding.stream,
    )


@dataclass(frozen=True)
class SeriesKey:
    """What a series belongs to: testbed, test, quantity and device, and how they were measured."""

    testbed: str
    """Name of the testbed."""
    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR."""
    device: str = ""
    """The device with its options, in words; empty: not known."""
    measured_as: str = ""
    """Digest of traffic, path and goal; empty: not known."""

    def __str__(self) -> str:
        return self.called(self.quantity)

    def called(self, quantity: str) -> str:
        """The series in words, with another name of its quantity."""
        return f"{self.test}, {quantity}, on {self.testbed}"

    @property
    def names(self) -> dict[str, str]:
        """The names that users match with patterns; an unknown name fits any pattern."""
        named = {
            "testbed": self.testbed,
            "test": self.test,
            "quantity": self.quantity,
            "device": self.device,
        }
        return {field: name for field, name in named.items() if name}

    def fits(self, patterns: Any) -> bool:
        """Whether each of its names matches the pattern in the field of that name."""
        return all(
            fnmatchcase(name, getattr(patterns, field)) for field, name in self.names.items()
        )


_NOT_KNOWN = "device not known"
_KEPT_APART = (
    "testbed",
    "test",
    "quantity",
    "seconds",
    "lossratio_version",
    "run_started",
    "latency",
    "readings",
)
_FIELDS = [name for name in Entry.__dataclass_fields__ if name not in _KEPT_APART]


@dataclass(frozen=True)
class Series:
    """One quantity of one test on one testbed."""

    key: SeriesKey
    """Its testbed, test and quantity."""
    columns: Mapping[str, Sequence[Any]]
    """Fields of its entries (see `Entry`) by their names, each with an item per result."""
    is_reading: bool = False
    """Whether its values are readings, whose changes are no alarms."""
    mark: str = ""
    """What distinguishes it from other series of the same quantity; empty: there are none."""
    as_before: tuple[datetime, ...] = ()
    """When the test, since the newest result, found that the SUT was as before, and did not search."""

    @property
    def quantity(self) -> str:
        """Its quantity; if the test has several series of it, with what distinguishes them."""
        if self.mark:
            return f"{self.key.quantity} ({self.mark})"
        return self.key.quantity

    def __str__(self) -> str:
        return self.key.called(self.quantity)

    def __getitem__(self, field: str) -> Sequence[Any]:
        """A field of all results; None: not known."""
        if field in self.columns:
            return self.columns[field]
        return (None,) * len(self.times)

    @property
    def times(self) -> Sequence[datetime]:
        """When its results were measured."""
        return self.columns["started"]

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """Values in the unit, rates per interface; NaN: the result has no value."""
        return np.array(self["value"], dtype=np.float64)

    @cached_property
    def kinds(self) -> Sequence[frozenset[str]]:
        """For each result: ``irregular`` or ``failed``, and kinds of doubts."""
        rows = zip(self["outcome"], self["doubts"], strict=True)
        return [
            frozenset((*(doubts or ()), *({outcome} - {MEASURED, None})))
            for outcome, doubts in rows
        ]

    @cached_property
    def unit(self) -> Unit:
        """The unit of the newest result."""
        # Earlier versions only had one unit, and did not write it.
        unit = self["unit"][-1]
        if unit is None:
            return FRAMES_PER_SECOND
        return Unit(unit, bool(self["lower_is_better"][-1]))

    @property
    def stream(self) -> str | None:
        """The stream whose loss alone counts for the newest result; None: the loss of all frames counts."""
        stream: str | None = self["stream"][-1]
        return stream

    @property
    def tags(self) -> Sequence[str]:
        """The tags of the newest result's test."""
        return self["tags"][-1] or ()

    @cached_property
    def has_no_device(self) -> bool:
        """Whether it belongs to the tester alone. In entries of earlier versions, only the names of tests say so."""
        known = [has_device for has_device in self["has_device"] if has_device is not None]
        if known:
            return not known[-1]
        return results.has_no_device(self.key.test)

    @cached_property
    def aggregate_factor(self) -> float | None:
        """The aggregate rate over the rate per interface; None: the values are not rates, or are already aggregates."""
        factor = self["aggregate_factor"][-1]
        return None if factor is None else float(factor)

    @property
    def is_aggregate(self) -> bool:
        """Whether its rates are aggregates, as all its results come from earlier versions, which stored no factor."""
        return self.unit == FRAMES_PER_SECOND and self.aggregate_factor is None

    def bounds_of(self, index: int) -> tuple[float | None, float | None]:
        """The bounds of a result by its index."""
        return self["lower_bound"][index], self["upper_bound"][index]

    @cached_property
    def resolution(self) -> float | None:
        """The width of the search's goal, relative to the upper bound; None: not known, or no search.

        Entries of earlier versions lack it, but have the bounds: if a goal is met, its bounds are at most a width
        apart, and the value is the lower bound, minus what was lost there.
        """
        if self["resolution"][-1] is not None:
            return float(self["resolution"][-1])
        rows = zip(
            self["outcome"], self["value"], self["lower_bound"], self["upper_bound"], strict=True
        )
        widths = [
            1.0 - low / high
            for outcome, value, low, high in rows
            if outcome == MEASURED and None not in (value, low, high) and value <= low < high
        ]
        return max(widths, default=None)

    def least_change(self, wanted: float) -> float:
        """The least relative change that is reported: the wanted one, and more than the width of the search's goal.

        Args:
            wanted: The requested least change, relative to the earlier value.
        """
        return results.least_news(wanted, self.resolution)

    def unsent_share(self, index: int) -> float:
        """The share of a value's missing frames that the SUT did not lose, by the index of its result."""
        return self["unsent_share"][index] or 0.0

    def ends_of(self, index: int) -> results.Ends:
        """The range of a result's value, by its index."""
        return results.stored_ends(
            float(self.values[index]), self["unsent_share"][index], self["most"][index]
        )

    def like_newest(self) -> "Series":
        """The results with the newest one's device, traffic, path, goal and generator, as far as these are known."""
        device = self["device"]
        alike = {index for index, one in enumerate(device) if one == device[-1]}
        for known in (self["measured_as"], self["generator"]):
            if known[-1] is not None:
                alike &= {
                    index for index, meaning in enumerate(known) if meaning in (None, known[-1])
                }
        if len(alike) == len(self.times):
            return self
        columns = {
            name: [column[index] for index in sorted(alike)]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)


_RATES = ("value", "lower_bound", "upper_bound", "most")
_MEANING = ("testbed", "test", "quantity", "measured_as", "unit", "aggregate_factor")
"""The columns that show what the values of a row are."""


def with_rates_per_interface(table: Any) -> Any:
    """A table of entries as in files, but with rates per interface, and the factor of each row.

    Entries of earlier versions lack the factor: it is taken from newer entries that measured the same. If there are
    none, their rates stay aggregates.
    """
    columns = {name: table.column(name).to_pylist() for name in (*_MEANING, *_RATES)}
    factors = _factors(columns)
    table = _with_column(table, "aggregate_factor", factors)
    for name in _RATES:
        rates = [
            number if number is None or factor is None else number / factor
            for number, factor in zip(columns[name], factors, strict=True)
        ]
        table = _with_column(table, name, rates)
    return table


def _factors(columns: Mapping[str, Sequence[Any]]) -> list[float | None]:
    """The factor of each row; None: the row has no rates, or no newer entry has the factor."""
    known: dict[tuple[str, ...], float] = {}
    rows = list(zip(*(columns[name] for name in _MEANING), strict=True))
    for testbed, test, quantity, measured_as, _, factor in rows:
        if factor is not None:
            # The newest ones come last, and are kept.
            known[testbed, test, quantity] = factor
            known[test, quantity] = factor
            known[test, quantity, measured_as or "", "meaning"] = factor

    factors: list[float | None] = []
    for testbed, test, quantity, measured_as, unit, factor in rows:
        if factor is None and unit in (None, FRAMES_PER_SECOND.name):
            keys: tuple[tuple[str, ...], ...] = (
                (test, quantity, measured_as or "", "meaning"),
                (testbed, test, quantity),
                (test, quantity),
            )
            factor = next((known[key] for key in keys if key in known), None)
        factors.append(factor)
    return factors


def _with_column(table: Any, name: str, values: Sequence[Any]) -> Any:
    """The table with other values in a column; without any value, it is unchanged because the values show no type."""
    if all(value is None for value in values):
        return table
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), [values])


def series_of(table: Any, last: int) -> Iterator[Series]:
    """The series of a table of entries with their lines, from `lossratio.history.devices.with_lines`.

    Their rates are per interface; the table's rates are as in files.
    """
    table = with_rates_per_interface(table)
    for key, rows in groups_of(table, ("testbed", "test", "quantity")):
        lines = (_made_line(key, line, last) for _, line in groups_of(rows, (LINE,)))
        yield from _distinguished([line for line in lines if line is not None])


def _made_line(key: tuple[str, str, str], line: Any, last: int) -> Series | None:
    """The last results of a line, without nights on which the SUT was as before; None: there are no other results."""
    outcomes = line.column("outcome").to_pylist()
    searched = [place for place, outcome in enumerate(outcomes) if outcome != AS_BEFORE]
    if not searched:
        return None
    times = line.column("started").to_pylist()
    kept = line.take(searched[-last:]).select(_FIELDS)
    return replace(made_series(key, kept.to_pydict()), as_before=tuple(times[searched[-1] + 1 :]))


def rates_in_words(series: Iterable[Series]) -> str:
    """A sentence on the scale of the rates of some series."""
    aggregates = sum(one.is_aggregate for one in series)
    if aggregates:
        return (
            f"Rates are per interface, except in {aggregates} series that only earlier versions measured: those are "
            "aggregates."
        )
    return "Rates are per interface."


def made_series(
    key: tuple[str, str, str], columns: Mapping[str, Sequence[Any]], *, is_reading: bool = False
) -> Series:
    """A series with the names of its newest result."""
    device, measured_as = (_newest_known(columns[name]) for name in ("device", "measured_as"))
    return Series(SeriesKey(*key, device or "", measured_as or ""), columns, is_reading)


def _newest_known(column: Sequence[str | None]) -> str | None:
    return next((known for known in reversed(column) if known is not None), None)


def _distinguished(series: Sequence[Series]) -> Iterator[Series]:
    """The series of one quantity, with what distinguishes them if there are several."""
    if len(series) < 2:
        yield from series
        return
    devices = [one.key.device for one in series]
    for one in series:
        mark = one.key.device or _NOT_KNOWN
        if devices.count(one.key.device) > 1:
            # Only traffic, path, goal or generator differ.
            mark = (
                f"{mark}, {one.key.measured_as or _NOT_KNOWN} {one['generator'][-1] or ''}".rstrip()
            )
        yield replace(one, mark=mark)


def groups_of(table: Any, names: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Groups of successive rows of a table that are equal in some columns: the values there, and the rows."""
    keys = list(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    starts = [index for index, key in enumerate(keys) if index == 0 or key != keys[index - 1]]
    for start, end in pairwise([*starts, len(keys)]):
        yield keys[start], table.slice(start, end - start)
