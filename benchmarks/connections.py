"""Connections: how many a generator opens and verifies, and whether limits of devices are found.

    python benchmarks/connections.py rates --trials 3
    python benchmarks/connections.py rates --topology topologies/local-trex.yaml
    python benchmarks/connections.py limits
    python benchmarks/connections.py fill --trials 3
    python benchmarks/connections.py kernel --runs 6

All but `--topology topologies/local-trex.yaml` use the local testbed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import click
from first_numbers import busy_programs

import lossratio
from lossratio.mlrsearch import SearchGoal
from lossratio.results import findings_of, number_of
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.testbed import TrialSettings
from lossratio.traffic import load_profile
from lossratio.trials import Exchange, Integrity, TrialInput


@click.group(help=__doc__)
def main() -> None:
    """Connections."""


TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
RATES = (20e3, 50e3, 100e3, 150e3, 200e3, 300e3)
RATES_OF_TREX = (2e3, 5e3, 10e3, 20e3, 40e3)
ROUTERS = {
    "without state": {},
    "firewall=conntrack": {"firewall": "conntrack"},
    "nat=masquerade": {"nat": "masquerade"},
}
SECONDS = 0.5
PROFILE = "ethip4-udp-connections"

LIMITS = ((500, 50, 5_000), (5_000, 100, 50_000), (10_000, 200, 100_000), (20_000, 400, 500_000))
"""Limits of new connections: rate R, bucket B, and connections N of a trial."""

BUSY_PROGRAMS = 4
FILLS = (
    ("linux_router", {"firewall": "conntrack"}, None, 200_000, 50e3),
    ("linux_router", {"firewall": "conntrack", "most_connections": 61_234}, 61_234, 62_234, 12e3),
    ("linux_router", {"firewall": "conntrack", "most_connections": 200_000}, 200_000, 201_000, 50e3),
    ("xdp", {"firewall": "hash", "most_connections": 200_000}, 200_000, 201_000, 50e3),
)
"""A device, its options, how many connections it has room for, how many are opened, and how many per second."""

TABLES = ("hash", "lru_hash"), (1_000, 100_000)
"""Tables of an XDP program, and their entries."""


def compare_tables(topology: Path) -> None:
    """Trials with exactly as many connections as a table of XDP has entries, and with 5 % more."""
    profile = load_profile(PROFILE, frame_size=64)
    click.echo(f"{'table':>8} {'entries':>8} {'N':>8} {'established':>12}")
    for table, entries in product(*TABLES):
        testbed = open_testbed(topology, dut="xdp", options={"firewall": table, "most_connections": entries})
        try:
            with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
                for count in (entries, entries + entries // 20):
                    output = ready.measurer.measure(TrialInput(count / 20e3, 20e3, exchange=Exchange()))
                    unsent = " unsent" * bool(output.unsent_frames)
                    click.echo(f"{table:>8} {entries:8,} {count:8,} {output.directions[0].received_frames:12,}{unsent}")
        finally:
            testbed.close()


def compare_with_truth(topology: Path) -> None:
    """Trials at half a per cent below the rate R N / (N - B) of a limit, and 5 % above it; and the life of an entry."""
    profile = load_profile(PROFILE, frame_size=64)
    click.echo(f"{'R':>7} {'B':>5} {'N':>8} {'lost below':>11} {'above':>8} {'by the formula':>15}")
    for rate, burst, count in LIMITS:
        options = {"firewall": "conntrack", "new_connections": rate, "new_burst": burst}
        testbed = open_testbed(topology, dut="linux_router", options=options)
        try:
            with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
                limit = rate * count / (count - burst)
                loads = (0.995 * limit, 1.05 * limit)
                outputs = [
                    ready.measurer.measure(TrialInput(count / load, load, exchange=Exchange())) for load in loads
                ]
                below, above = (f"{one.lost_frames:,}{' unsent' * bool(one.unsent_frames)}" for one in outputs)
                formula = count - burst - rate * (count - 1) / loads[1]
                click.echo(f"{rate:7,} {burst:5,} {count:8,} {below:>11} {above:>8} {formula:15,.0f}")
        finally:
            testbed.close()
    testbed = open_testbed(topology, dut="linux_router", options={"firewall": "conntrack", "udp_timeout": "3 s"})
    try:
        with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
            ready.measurer.measure(TrialInput(0.1, 10e3, exchange=Exchange()))
            began, table = time.monotonic(), testbed.duts[0].connections
            assert table is not None
            while table.count() and time.monotonic() < began + 10.0:
                lived = time.monotonic() - began
                time.sleep(0.05)
            ended = time.monotonic() - began
            click.echo(f"1,000 entries with a time-out of 3 s: all there after {lived:.2f} s, none after {ended:.2f} s")
    finally:
        testbed.close()


def fill_tables(topology: Path, trials: int) -> None:
    """Trials that open all connections, however late, beside other work."""
    profile = load_profile(PROFILE, frame_size=64)
    click.echo(f"{'DUT':>12} {'room':>8} {'a second':>8} {'opened':>8}  established, unsent and lost in each trial")
    for dut, options, room, count, rate in FILLS:
        testbed = open_testbed(topology, dut=dut, options=options)
        trial = TrialInput(count / rate, rate, exchange=Exchange(is_complete=True))
        try:
            with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
                outputs = [ready.measurer.measure(trial) for _ in range(trials)]
        finally:
            testbed.close()
        counts = (f"{one.directions[0].received_frames:,} {one.unsent_frames:,} {one.lost_frames:,}" for one in outputs)
        click.echo(f"{dut:>12} {room or '-':>8} {rate:8,.0f} {count:8,}  {', '.join(counts)}")


def agent_bytes() -> int:
    """Bytes of all processes of the agent; a page that they share counts once."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"# lossratio-agent" in command and command.startswith(sys.prefix.encode()):
                lines = (process / "smaps_rollup").read_text().splitlines()
                total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


_topology = click.option(
    "--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on."
)
_trials = click.option("--trials", default=5, show_default=True, help="Trials at each rate.")


@main.command("limits")
@_topology
def find_limits(topology: Path) -> None:
    """Compares limits of the kernel and of XDP with what they should let pass."""
    compare_with_truth(topology)
    compare_tables(topology)


@main.command(help=f"Fill tables beside {BUSY_PROGRAMS} programs that compute.")
@_topology
@_trials
def fill(topology: Path, trials: int) -> None:
    """Shows whether the generator fills large tables beside other work."""
    with busy_programs(BUSY_PROGRAMS):
        fill_tables(topology, trials)


@main.command()
@_topology
@_trials
def rates(topology: Path, trials: int) -> None:
    """Measures unsent and lost connections at rising rates, the overhead of trials, and the time for a million.

    The connections of the local testbed go through a router without state (the tester's own limit), and through routers
    with the kernel's table of connections. With ``--topology topologies/local-trex.yaml`` (and ``TREX_HOME``), TRex
    opens the connections, without the trial of a million.
    """
    profile = load_profile(PROFILE, frame_size=64)
    for name, options in ROUTERS.items():
        testbed = open_testbed(topology, dut="linux_router", options=options)
        try:
            with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
                # TRex answers at once.
                is_trex = "mode" in ready.conditions.generator
                passes = 1 if is_trex else 2
                fixed = passes * (SECONDS + ready.conditions.timing.wait_after_s)
                click.echo(f"{name}, {trials} trials of {SECONDS:g} s, answers at the same rate")
                click.echo(f"{'opened/s':>10} {'unsent':>8} {'lost':>8} {'overhead ms':>12}")
                for rate in RATES_OF_TREX if is_trex else RATES:
                    trial = TrialInput(SECONDS, rate, exchange=Exchange())
                    outputs = [ready.measurer.measure(trial) for _ in range(trials)]
                    over = [(one.elapsed or 0.0) - fixed for one in outputs if not one.repeats]
                    unsent = sum(one.unsent_frames or 0 for one in outputs) / (trials * SECONDS * rate)
                    lost = sum(one.lost_frames or 0 for one in outputs) / (trials * SECONDS * rate)
                    shown = f"{1e3 * median(over):12.1f}" if over else f"{'-':>12}"
                    click.echo(f"{rate:10,.0f} {unsent:8.2%} {lost:8.2%} {shown}")
                if not options and not is_trex:
                    before, began = agent_bytes(), time.monotonic()
                    output = ready.measurer.measure(TrialInput(1e6 / 150e3, 150e3, exchange=Exchange()))
                    seconds = time.monotonic() - began
                    (counters,) = output.directions
                    click.echo(f"a million: {counters.received_frames:,} opened and verified in {seconds:.1f} s")
                    click.echo(
                        f"memory: {(agent_bytes() - before) / counters.received_frames:.0f} bytes for each of them"
                    )
        finally:
            testbed.close()


ROOT = Path(__file__).parent.parent
KINDS = ("afpacket", "xdp")
RATES_IN_TURNS = (100e3, 200e3, 300e3, 500e3, 700e3, 1e6, 1.5e6)
MOST_BY_SOCKETS = 700e3
"""The largest rate that packet sockets are asked for."""
DEVICES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linux_router", {}),
    ("linux_router", {"firewall": "conntrack"}),
    ("xdp", {"firewall": "hash", "most_connections": 1_000_000}),
)
WIDTH = 0.005
GOAL = SearchGoal(0.0, 0.5, 0.5, 0.5, WIDTH, name="connection rate")
BUCKETS = ((5_000, 100), (20_000, 2_000), (50_000, 5_000))
"""New connections per second that rules of nftables let pass, and their bucket."""
ROOMS = (
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
from lossratio.agent.core.plan import Control, Exchange, Plan
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


def compare_in_turns(directory: Path, runs: int) -> None:
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
                ready = opened.enter_context(
                    testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True))
                )
                assert ready.conditions.generator["kind"] == kind, ready.conditions.generator
                measurers[kind] = ready.measurer

            for rate in RATES_IN_TURNS:
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
    for rate, burst in BUCKETS:
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
    for dut, table in ROOMS:
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


@main.command()
@click.option("--runs", default=5, show_default=True, help="Trials at each rate; searches are half as many.")
@click.option("--most", default=10_000_000, show_default=True, help="Connections of the largest trial.")
@click.option("--only", multiple=True, help="Parts to run: rates, searches, bare; all if none is named.")
def kernel(runs: int, most: int, only: tuple[str, ...]) -> None:
    """Compares connections that programs inside the kernel open (`xdp`) with those by packet sockets (`afpacket`).

    Both are measured in turns, in one run: how many connections are unsent or lost at rising rates, through a router of
    the kernel with and without state; and what searches find on devices whose limits are known. Then come the rates
    that the programs reach over a bare link, and a trial with many connections. It needs root.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if not only or "rates" in only:
            compare_in_turns(directory, runs)
        if not only or "searches" in only:
            compare_searches(directory, max(1, runs // 2))
        if not only or "bare" in only:
            measure_bare(runs, most)


if __name__ == "__main__":
    main()
