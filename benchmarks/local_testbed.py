"""What a local testbed costs: building it, logging in, running a command, sending a line and back, taking it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import click

from lossratio.nodes import NodeProcess, NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import Node, load_topology

TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
LINE = "x" * 300
ValueT = TypeVar("ValueT")


@click.command(help=__doc__)
@click.option("--repeat", default=10, show_default=True, help="Testbeds to build, and log-ins to make in each.")
@click.option("--lines", default=1000, show_default=True, help="Lines to send there and back.")
def main(repeat: int, lines: int) -> None:
    """Measures everything, and prints a table."""
    topology = load_topology(TOPOLOGY)
    times: dict[str, list[float]] = {name: [] for name in ("up", "log-in", "command", "line and back", "down")}
    for _ in range(repeat):
        testbed, seconds = timed(lambda: LocalTestbed.up(topology))
        times["up"].append(seconds)
        with testbed:
            node = testbed.topology.nodes[testbed.topology.tg_name]
            measure_session(node, repeat, lines // repeat, times)
            times["down"].append(timed(testbed.down)[1])
    print(f"{'ms':14} {'median':>8} {'worst':>8} {'times':>6}")
    for name, values in times.items():
        print(f"{name:14} {median(values) * 1e3:8.2f} {max(values) * 1e3:8.2f} {len(values):6}")


def measure_session(node: Node, repeat: int, lines: int, times: dict[str, list[float]]) -> None:
    """Times log-ins, commands and lines on one node, in seconds."""
    for _ in range(repeat):
        session, seconds = timed(lambda: NodeSession.connect("TG", node))
        times["log-in"].append(seconds)
        with closing(session):
            times["command"].append(timed(partial(session.run, "true"))[1])
    with NodeSession.connect("TG", node) as session, session.start("cat") as process:
        times["line and back"] += [timed(lambda: exchange(process))[1] for _ in range(lines)]


def exchange(process: NodeProcess) -> None:
    """Sends a line and waits for it to come back."""
    process.write_line(LINE)
    process.read_line(10.0)


def timed(action: Callable[[], ValueT]) -> tuple[ValueT, float]:
    """Runs something, and gives its value and the seconds it took."""
    begin = time.perf_counter()
    value = action()
    return value, time.perf_counter() - begin


if __name__ == "__main__":
    main()
