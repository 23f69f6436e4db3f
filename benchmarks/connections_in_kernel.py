"""Connections that programs inside the kernel open (`kind: xdp`), beside those by packet sockets (`kind: afpacket`).

Both are measured in turns, in one run: how many connections are unsent or lost at rising rates, through a router of the
kernel with and without state; and what searches find on devices whose limits are known. Then come the rates that the
programs reach over a bare link, and a trial with many connections. It needs root.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click

import lossratio
from lossratio.mlrsearch import SearchGoal
from lossratio.results import findings_of, number_of
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import Exchange, Integrity, TrialInput

ROOT = Path(__file__).parent.parent
KINDS = ("afpacket", "xdp")
PROFILE = "ethip4-udp-connections"
SECONDS = 0.5
RATES = (100e3, 200e3, 300e3, 500e3, 700e3, 1e6, 1.5e6)
MOST_BY_SOCKETS = 700e3
"""The largest rate that packet sockets are asked for."""
DEVICES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linux_router", {}),
    ("linux_router", {"firewall": "conntrack"}),
    ("xdp", {"firewall": "hash", "most_connections": 1_000_000}),
)
WIDTH = 0.005
GOAL = SearchGoal(0.0, 0.5, 0.5, 0.5, WIDTH, name="connection rate")
LIMITS = ((5_000, 100), (20_000, 2_000), (50_000, 5_000))
"""New connections per second that rules of nftables let pass, and their bucket."""
TABLES = (
    ("linux_router", {"firewall": "conntrack", "most_connections": 12_345}),
    ("linux_router", {"nat": "masquerade", "most_connections": 23_456}),
    ("xdp", {"firewall": "hash", "most_connections": 34_567}),
)
"""Devices with room for so many connections: `ct count over`, and an XDP program with a hash."""
BARE_RATES = (1e6, 1.5e6, 2e6, 3e6)

BARE = """
from dataclasses import replace
import sys
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.agent.core.plan import Exchange, Plan
from lossratio.agent.xdp.connections import ConnectingGenerator

profile = load_profile("ethip4-udp-connections", frame_size=64)
pair = PortPair(TrafficPort("west", "bare0"), TrafficPort("east", "bare1"))
configuration = make_configuration(profile, [pair], settle_time=0.05)
(way,) = configuration.directions
# More connections than profiles may have: from 163 addresses instead of 16.
fields = [replace(field, count=163) if field.offset == 26 else field for field in way.frames.fields]
way = replace(way, frames=replace(way.frames, fields=tuple(fields)))
configuration = replace(configuration, directions=(way,), connects=True, examines=False)
made = ConnectingGenerator(configuration, catch_up=0.005)
names = ("sent_frames", "received_frames", "unsent_frames", "elapsed_s")
try:
    for line in sys.stdin:
        rate, count, is_complete = map(float, line.split())
        exchange = Exchange(1.0, 0, None, False, bool(is_complete), "opened")
        plan = Plan(((rate, count / rate),), exchange=exchange, connections=int(count))
        (way,) = made.run(plan, Control()).directions
        print([way[name] for name in names], flush=True)
finally:
    made.close()
"""


def topology_of(kind: str, directory: Path) -> Path:
    """The local testbed with a kind of generator, under a name of its own."""
    file = directory / f"connections-{kind}-{os.getpid()}.yaml"
    text = (ROOT / "topologies" / "local.yaml").read_text().replace("name: local", f"name: {file.stem}")
    file.write_text(text.replace("kind: afpacket, max_rate: 200 kfps", f"kind: {kind}"))
    return file


def compare_rates(directory: Path, runs: int) -> None:
    """Both generators in turns, at rising rates."""
    profile = load_profile(PROFILE, frame_size=64)
    for dut, options in DEVICES:
        click.echo(f"{dut} {options}: shares of {runs} trials of {SECONDS:g} s")
        click.echo(f"{'opened/s':>10}  {'kind':>8}  {'unsent':>8}  {'lost':>8}  unsent in each trial")
        with ExitStack() as opened:
            measurers = {}
            for kind in KINDS:
                testbed = open_testbed(topology_of(kind, directory), dut=dut, options=options)
                opened.callback(testbed.close)
                ready = opened.enter_context(testbed.ready_for(profile, integrity=Integrity.OFF, connects=True))
                assert ready.conditions.generator["kind"] == kind, ready.conditions.generator
                measurers[kind] = ready.measurer

            for rate in RATES:
                kinds = KINDS if rate <= MOST_BY_SOCKETS else KINDS[1:]
                seen: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
                for _ in range(runs):
                    for kind in kinds:
                        trial = measurers[kind].measure(TrialInput(SECONDS, rate, exchange=Exchange()))
                        asked = SECONDS * rate
                        seen[kind].append(((trial.unsent_frames or 0) / asked, (trial.lost_frames or 0) / asked))
                for kind, shares in seen.items():
                    unsent, lost = (median(column) for column in zip(*shares, strict=True))
                    each = " ".join(f"{one:.1%}" for one, _ in shares)
                    click.echo(f"{rate:10,.0f}  {kind:>8}  {unsent:8.2%}  {lost:8.2%}  {each}")


def compare_searches(directory: Path, runs: int) -> None:
    """What searches of both find, in turns, on devices with a limit that is known."""
    for rate, burst in LIMITS:
        options = {"firewall": "conntrack", "new_connections": rate, "new_burst": burst}
        truth = rate + (burst - 1) / SECONDS
        click.echo(f"at most {rate:,} new a second, bucket of {burst:,}: {truth:,.0f} in trials of {SECONDS:g} s")
        for _ in range(runs):
            for kind in KINDS:
                with lossratio.open_testbed(
                    topology_of(kind, directory), dut="linux_router", options=options, results=directory / "results"
                ) as testbed:
                    result = testbed.connection_rate(
                        "64B", goals=(GOAL,), min_load=truth / 4, max_load=4 * truth, name=kind
                    )
                (finding,) = findings_of([result])
                lower, upper = (number_of(bound) or 0.0 for bound in (finding.lower_bound, finding.upper_bound))
                is_right = lower <= truth * (1 + WIDTH) and upper >= truth * (1 - WIDTH)
                click.echo(f"{kind:>8}: {lower:,.1f} to {upper:,.1f}{'' if is_right else ', wrong'}")
    for dut, table in TABLES:
        click.echo(f"{dut} {table}")
        for kind in KINDS:
            with lossratio.open_testbed(
                topology_of(kind, directory), dut=dut, options=table, results=directory / "results"
            ) as testbed:
                found = testbed.connection_capacity("64B", repeats=runs, max_load=50e3, name=kind)
            (capacity,) = findings_of([found])
            click.echo(f"{kind:>8}: {capacity.value:,.0f}")


@contextmanager
def bare_link() -> Iterator[Callable[[float, int, bool], list[float]]]:
    """A program that opens a number of connections at a rate, over a link between two ports of a namespace."""
    space = f"openers-{os.getpid()}"
    within = ("ip", "netns", "exec", space)
    _run("ip", "netns", "add", space)
    try:
        _run("ip", "-n", space, "link", "add", "bare0", "type", "veth", "peer", "name", "bare1")
        for port in ("bare0", "bare1"):
            _run("ip", "-n", space, "link", "set", port, "up")
            _run(*within, "ethtool", "-K", port, "gro", "on")
        command = (*within, sys.executable, "-c", BARE)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            orders, answers = process.stdin, process.stdout
            assert orders is not None
            assert answers is not None

            def connect(rate: float, count: int, is_complete: bool) -> list[float]:
                print(rate, count, int(is_complete), file=orders, flush=True)
                counts: list[float] = ast.literal_eval(answers.readline())
                return counts

            yield connect
            orders.close()
    finally:
        _run("ip", "netns", "del", space)


def measure_bare(runs: int, most: int) -> None:
    """The programs alone, over a bare link, and a large number in one trial."""
    with bare_link() as connect:
        for rate in BARE_RATES:
            count = round(SECONDS * rate)
            found = [connect(rate, count, False) for _ in range(runs)]
            unsent = [one[2] / count for one in found]
            lost = sum(one[0] - one[1] for one in found)
            shares = f"unsent {median(unsent):.2%} (at most {max(unsent):.2%}), lost {lost}"
            click.echo(f"bare link {rate:10,.0f}/s  {shares}")
        sent, established, unsent_frames, elapsed = connect(1e6, most, True)
        click.echo(
            f"{most:,} in one trial: established {established:,} of {sent:,} in {elapsed:.1f} s, unsent "
            f"{unsent_frames:,}"
        )


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@click.command(help=__doc__)
@click.option("--runs", default=5, show_default=True, help="Trials at each rate; searches are half as many.")
@click.option("--most", default=10_000_000, show_default=True, help="Connections of the largest trial.")
@click.option("--only", multiple=True, help="Parts to run: rates, searches, bare; all if none is named.")
def main(runs: int, most: int, only: tuple[str, ...]) -> None:
    """Measures, and prints."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if not only or "rates" in only:
            compare_rates(directory, runs)
        if not only or "searches" in only:
            compare_searches(directory, max(1, runs // 2))
        if not only or "bare" in only:
            measure_bare(runs, most)


if __name__ == "__main__":
    main()
