"""What is followed over nights besides values: latency at each load, and numbers of the devices' telemetry.

A reading explains a value, and is none: its trend is computed by the same method, but never is an alarm. Of the many
numbers in a result, those are chosen that people look at. Numbers of the threads of a device become one: a mean by the
packets that each thread had.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lossratio.results import TestResult, view_of

_LEAST_SHARE = 0.01
"""Graph nodes with fewer packets, as a share of the busiest node's packets, are no part of the traffic's path."""


@dataclass(frozen=True)
class Reading:
    """A number of a result that explains its value, from telemetry or latency."""

    quantity: str
    """The quantity, e.g. ``clocks per packet``."""
    place: str
    """Where it was counted, e.g. ``DUT1 ip4-lookup``; of a latency the load, e.g. ``90 % of PDR``."""
    value: float
    """Its value."""
    unit: str
    """Its unit, e.g. ``cycles``."""


class _Column(NamedTuple):
    """A statistic of a graph node, the name and unit of its reading, and the statistic that weighs its threads."""

    statistic: str
    quantity: str
    unit: str
    weight: str


CLOCKS = "clocks per packet"
"""The quantity by which graph nodes are compared."""

_NODE_COLUMNS = (
    _Column("clocks_per_packet", CLOCKS, "cycles", "vectors"),
    _Column("vectors_per_call", "vectors per call", "packets", "calls"),
    _Column("perfmon_instructions_per_packet", "instructions per packet", "instructions", "vectors"),
    _Column("perfmon_instructions_per_clock", "instructions per clock", "instructions", "vectors"),
    *(
        _Column(f"perfmon_l{level}_misses_per_packet", f"L{level} misses per packet", "misses", "vectors")
        for level in (1, 2, 3)
    ),
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


def readings_of(result: TestResult) -> tuple[Reading, ...]:
    """The readings of a result's telemetry: of its newest trial at PDR, else of its newest one."""
    trials = [trial.model_dump(mode="json") for trial in view_of(result).telemetry(result)]
    at_pdr = [trial for trial in trials if str(trial.get("goal") or "").upper().endswith("PDR")]
    return tuple(reading for trial in (at_pdr or trials)[-1:] for dut in trial["duts"] for reading in _of_device(dut))


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
            yield Reading(statistic["name"].replace("_", " "), dut["node"], statistic["value"], statistic["unit"])
    yield from _of_graph(dut["node"], {node: [places[place] for place in of] for node, of in nodes.items()})
    # Open vSwitch's threads, from ``pmd-stats-show``.
    polling = [each for each in places.values() if "processing_cycles" in each and each.get("packets_received")]
    if polling:
        cycles = _sum(polling, "processing_cycles") / _sum(polling, "packets_received")
        yield Reading("processing cycles per packet", dut["node"], cycles, "cycles")
    # The kernel's counters of all CPUs, where the device's frames came through the kernel.
    cpus = [each for each in places.values() if "softnet_processed" in each]
    received = sum(dut["received_frames"].values())
    if received and _sum(cpus, "softnet_processed") >= _LEAST_SHARE * received:
        yield Reading("softnet time squeezes", dut["node"], _sum(cpus, "softnet_time_squeeze"), "times")
        yield Reading("softnet drops", dut["node"], _sum(cpus, "softnet_dropped"), "frames")


def _of_graph(device: str, nodes: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[Reading]:
    """VPP's graph nodes: of each, the numbers of all threads as one."""
    packets = {node: _sum(threads, "vectors") for node, threads in nodes.items()}
    busiest = max(packets.values(), default=0.0)
    for node, threads in nodes.items():
        if not busiest or packets[node] < _LEAST_SHARE * busiest:
            continue
        for column in _NODE_COLUMNS:
            counted = [thread for thread in threads if column.statistic in thread]
            weight = _sum(counted, column.weight)
            if weight:
                mean = sum(thread[column.statistic] * thread.get(column.weight, 0.0) for thread in counted) / weight
                yield Reading(column.quantity, f"{device} {node}", mean, column.unit)


def _sum(rows: Iterable[Mapping[str, float]], name: str) -> float:
    return sum(row.get(name, 0.0) for row in rows)


def latency_readings(points: Iterable[Mapping[str, Any]]) -> Iterator[Reading]:
    """Median and 99th percentile of the latency at each load, of the slower direction."""
    slowest: dict[tuple[str, str], float] = {}
    for point in points:
        for percentile, quantity in _LATENCIES.items():
            if point[percentile] is not None:
                key = (quantity, point["load"])
                slowest[key] = max(slowest.get(key, 0.0), point[percentile])
    yield from (Reading(*key, value, "µs") for key, value in slowest.items())
