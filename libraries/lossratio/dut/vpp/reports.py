"""What VPP prints about its traffic, as numbers: interfaces, errors, graph nodes, and its performance monitor."""

import math
import re
from collections.abc import Mapping
from typing import Any

from lossratio.dut.linux.reports import statistic

_COUNTER = re.compile(
    r"^\s*(?P<count>\d+)\s+(?P<node>\S+)\s+(?P<reason>\S.*?)\s+(?P<severity>error|warn|info)\s*$"
)


def parse_interfaces(text: str) -> dict[str, dict[str, int]]:
    """Counts of each interface by name, e.g. ``rx packets``, from the output of ``show interface``, without zeros."""
    interfaces: dict[str, dict[str, int]] = {}
    # The first line is the columns' headings.
    counts: dict[str, int] = {}
    for line in text.splitlines()[1:]:
        if line and not line[0].isspace():
            counts = interfaces.setdefault(line.split()[0], {})
        counter = re.search(r"(?P<name>[a-z][a-z0-9 -]*[a-z0-9])\s+(?P<count>\d+)\s*$", line)
        if counter:
            # In the first line, the state and the MTU come before the first counter.
            name = re.sub(r"^.*\b(up|down)\b", "", counter["name"]).strip()
            counts[name] = int(counter["count"])
    return interfaces


def dropped_around_process(
    counts: Mapping[str, Mapping[str, int]], ends: Mapping[str, str]
) -> dict[str, int]:
    """Frames that VPP gave to a process and did not get back, and frames that it dropped there.

    Args:
        counts: VPP's counters by interface.
        ends: The interface to the process on each side, ``west`` and ``east``.
    """
    sent = {side: counts[name].get("tx packets", 0) for side, name in ends.items()}
    back = {side: counts[name].get("rx packets", 0) for side, name in ends.items()}
    dropped = {
        "process, frames from the west": sent["west"] - back["east"],
        "process, frames from the east": sent["east"] - back["west"],
    }
    for side, name in ends.items():
        dropped[f"VPP, at the process, {side}"] = counts[name].get("drops", 0)
    return dropped


def parse_errors(text: str) -> dict[str, int]:
    """Counts by place and reason, from the output of ``show errors``, without counts that are not errors."""
    return {
        f"{counter['node']}: {counter['reason']}": int(counter["count"])
        for counter in map(_COUNTER.match, text.splitlines())
        if counter and counter["severity"] != "info"
    }


_THREAD = re.compile(r"^Thread (?P<id>\d+) (?P<name>\S+)(?: \(lcore (?P<lcore>\d+)\))?")
_LOOPS = re.compile(r"vector rate (?P<vectors>\S+) loops/sec (?P<loops>\S+)")
_NODE = re.compile(
    r"^(?P<node>\S+)\s+(?P<state>\S.*?)\s+(?P<calls>\d+)\s+(?P<vectors>\d+)\s+(?P<suspends>\d+)\s+(?P<clocks>\d\S*)\s+(?P<size>\d\S*)\s*$"
)
_MAIN_THREAD = "vpp_main"


def parse_runtime(text: str) -> list[dict[str, Any]]:
    """Statistics of VPP's threads and of graph nodes that saw packets, from the output of ``show runtime``."""
    statistics = []
    thread, place = _NO_THREADS, _MAIN_THREAD
    for line in text.splitlines():
        if named := _THREAD.match(line):
            thread = named.groupdict(default="")
            place = named["name"]
        elif loops := _LOOPS.search(line):
            statistics.append(statistic(place, "loops_per_second", loops["loops"], "1/s"))
            statistics.append(
                statistic(place, "vectors_per_node_call", loops["vectors"], "packets")
            )
        elif (node := _NODE.match(line)) and int(node["vectors"]):
            of_thread = {f"thread_{name}": value for name, value in thread.items()}
            labels = {"node_name": node["node"], "state": node["state"], **of_thread}
            statistics += [
                {**statistic(f"{place} {node['node']}", name, node[column], unit), "labels": labels}
                for name, column, unit in _NODE_STATISTICS
            ]

    return statistics


_NO_THREADS = {"id": "0", "name": _MAIN_THREAD, "lcore": "0"}
_NODE_STATISTICS = (
    ("calls", "calls", "calls"),
    ("vectors", "vectors", "packets"),
    ("suspends", "suspends", "times"),
    ("clocks_per_packet", "clocks", "cycles"),
    ("vectors_per_call", "size", "packets"),
)


def parse_workers(runtime: str, placement: str) -> list[dict[str, Any]]:
    """The load of VPP's workers, or of its main thread if it has no workers.

    A worker's frames are the vectors of its input nodes, which poll a device or wait for its interrupts.
    """
    frames: dict[str, int] = {}
    thread = _MAIN_THREAD
    for line in runtime.splitlines():
        if named := _THREAD.match(line):
            thread = named["name"]
            frames.setdefault(thread, 0)
        elif (
            (node := _NODE.match(line))
            and node["node"].endswith("-input")
            and node["state"].split()[0] in ("polling", "interrupt")
        ):
            frames[thread] = frames.get(thread, 0) + int(node["vectors"])

    queues: dict[str, list[str]] = {}
    for line in placement.splitlines():
        if placed := _PLACED.match(line):
            thread = placed["name"]
        elif queue := _QUEUE.match(line):
            queues.setdefault(thread, []).append(f"{queue['interface']} queue {queue['queue']}")

    if len(frames) > 1 and not frames.get(_MAIN_THREAD):
        frames.pop(_MAIN_THREAD, None)
    return [
        {"worker": worker, "frames": count, "queues": queues.get(worker, [])}
        for worker, count in frames.items()
    ]


_PLACED = re.compile(r"^Thread \d+ \((?P<name>[^)]+)\)")
_QUEUE = re.compile(r"^\s+(?P<interface>\S+) queue (?P<queue>\d+)\b")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MONITORED_THREAD = re.compile(r"^(?P<name>\S+) \((?P<id>\d+)\)(?P<values>.*)$")
# Table: the columns of each bundle.
BUNDLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "inst-and-clock": (
        ("calls", "calls"),
        ("packets", "packets"),
        ("packets_per_call", "packets"),
        ("clocks_per_packet", "cycles"),
        ("instructions_per_packet", "instructions"),
        ("instructions_per_clock", "instructions"),
    ),
    "cache-hierarchy": (
        ("l1_hits_per_packet", "hits"),
        ("l1_misses_per_packet", "misses"),
        ("l2_hits_per_packet", "hits"),
        ("l2_misses_per_packet", "misses"),
        ("l3_hits_per_packet", "hits"),
        ("l3_misses_per_packet", "misses"),
    ),
    "context-switches": (("run_time", "s"), ("context_switches_per_second", "1/s")),
}
"""Bundles of counters of VPP's performance monitor that FD.io CSIT reads, with the names and units of their columns.
The first two need counters of the CPU, which virtual machines often lack."""


def parse_bundles(text: str) -> list[str]:
    """Names of the bundles of `BUNDLES` that this VPP has, from the output of ``show perfmon bundle``."""
    names = {line.split()[0] for line in _COLOURS.sub("", text).splitlines()[1:] if line.split()}
    return [name for name in BUNDLES if name in names]


def parse_perfmon(bundle: str, text: str) -> list[dict[str, Any]]:
    """What a bundle counted, by thread or by graph node, from the output of ``show perfmon statistics``."""
    statistics = []
    thread = _NO_THREADS
    for line in _COLOURS.sub("", text).splitlines():
        labels = {}
        if named := _MONITORED_THREAD.match(line.strip()):
            thread = named.groupdict()
            place = thread["name"]
            words = named["values"].split()
        else:
            node, _, rest = line.strip().partition(" ")
            place = f"{thread['name']} {node}"
            words = rest.split()
            labels = {"node_name": node, "thread_name": thread["name"], "thread_id": thread["id"]}

        if len(words) != len(BUNDLES[bundle]) or not all(map(_is_number, words)):
            # A heading, a thread above its nodes, or a node without packets.
            continue
        statistics += [
            {**statistic(place, f"perfmon_{name}", word, unit), "labels": labels}
            for (name, unit), word in zip(BUNDLES[bundle], words, strict=True)
        ]

    return statistics


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
