"""The readings of a result: numbers of its telemetry, which explain its value. `entries.sql` adds its latency."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio import results

_LEAST_SHARE = 0.01
"""Graph nodes with fewer packets, as a share of the busiest node's packets, are not part of the traffic's path."""


@dataclass(frozen=True)
class Reading:
    """A number of a result's telemetry that explains its value, and that people look at.

    The numbers of a device's threads become one: their mean, weighted by the packets of each thread.
    """

    quantity: str
    """The quantity, e.g. ``clocks per packet``."""
    place: str
    """Where it was counted, e.g. ``DUT1 ip4-lookup``."""
    value: float
    """Its value."""
    unit: str
    """Its unit, e.g. ``cycles``."""


CLOCKS = "clocks per packet"
"""The quantity by which graph nodes are compared."""

# Table: the statistics of graph nodes that have series: the name and unit of the reading, and the weight of a thread.
_NODE_COLUMNS = (
    ("clocks_per_packet", CLOCKS, "cycles", "vectors"),
    ("vectors_per_call", "vectors per call", "packets", "calls"),
    ("perfmon_instructions_per_packet", "instructions per packet", "instructions", "vectors"),
    ("perfmon_instructions_per_clock", "instructions per clock", "instructions", "vectors"),
    ("perfmon_l1_misses_per_packet", "L1 misses per packet", "misses", "vectors"),
    ("perfmon_l2_misses_per_packet", "L2 misses per packet", "misses", "vectors"),
    ("perfmon_l3_misses_per_packet", "L3 misses per packet", "misses", "vectors"),
)
OF_NODES = frozenset(quantity for _, quantity, _, _ in _NODE_COLUMNS)
"""The quantities of graph nodes."""

_OF_ALL_CPUS = (
    "cycles_per_frame",
    "instructions_per_frame",
    "cache_misses_per_frame",
    "branch_misses_per_frame",
    "instructions_per_cycle",
)


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
    device = dut["node"]
    statistics = dut.get("statistics", ())
    places = _by_place(statistics)
    yield from _of_all_cpus(device, statistics)
    yield from _of_graph(device, _threads_of_nodes(statistics, places))
    yield from _of_polling_threads(device, places.values())
    yield from _of_kernel(device, places.values(), sum(dut["received_frames"].values()))


def _by_place(statistics: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The values of statistics, by the place where they were counted and by their names."""
    places: dict[str, dict[str, float]] = {}
    for statistic in statistics:
        places.setdefault(statistic["place"], {})[statistic["name"]] = statistic["value"]
    return places


def _of_all_cpus(device: str, statistics: Iterable[Mapping[str, Any]]) -> Iterator[Reading]:
    for statistic in statistics:
        if statistic["name"] in _OF_ALL_CPUS:
            quantity = statistic["name"].replace("_", " ")
            yield Reading(quantity, device, statistic["value"], statistic["unit"])


def _threads_of_nodes(
    statistics: Iterable[Mapping[str, Any]], places: Mapping[str, Mapping[str, float]]
) -> dict[str, list[Mapping[str, float]]]:
    """The statistics of VPP's graph nodes: a node has a place for each of its threads."""
    places_of: dict[str, list[str]] = {}
    for statistic in statistics:
        node = statistic.get("labels", {}).get("node_name")
        if node is not None and statistic["place"] not in places_of.setdefault(node, []):
            places_of[node].append(statistic["place"])
    return {node: [places[place] for place in of_node] for node, of_node in places_of.items()}


def _of_graph(device: str, nodes: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[Reading]:
    """VPP's graph nodes, each with the numbers of all threads combined."""
    packets = {node: _sum(threads, "vectors") for node, threads in nodes.items()}
    busiest = max(packets.values(), default=0.0)
    for node, threads in nodes.items():
        if not busiest or packets[node] < _LEAST_SHARE * busiest:
            continue
        for statistic, quantity, unit, weight in _NODE_COLUMNS:
            counted = [thread for thread in threads if statistic in thread]
            total = _sum(counted, weight)
            if total:
                weighted = sum(thread[statistic] * thread.get(weight, 0.0) for thread in counted)
                yield Reading(quantity, f"{device} {node}", weighted / total, unit)


def _of_polling_threads(device: str, places: Iterable[Mapping[str, float]]) -> Iterator[Reading]:
    """Open vSwitch's threads, from ``pmd-stats-show``."""
    polling = [
        place for place in places if "processing_cycles" in place and place.get("packets_received")
    ]
    if polling:
        cycles = _sum(polling, "processing_cycles") / _sum(polling, "packets_received")
        yield Reading("processing cycles per packet", device, cycles, "cycles")


def _of_kernel(
    device: str, places: Iterable[Mapping[str, float]], received: int
) -> Iterator[Reading]:
    """The kernel's counters of all CPUs, if the frames that the device received came through the kernel."""
    cpus = [place for place in places if "softnet_processed" in place]
    if received and _sum(cpus, "softnet_processed") >= _LEAST_SHARE * received:
        squeezes = _sum(cpus, "softnet_time_squeeze")
        yield Reading("softnet time squeezes", device, squeezes, "times")
        yield Reading("softnet drops", device, _sum(cpus, "softnet_dropped"), "frames")


def _sum(rows: Iterable[Mapping[str, float]], name: str) -> float:
    return sum(row.get(name, 0.0) for row in rows)
