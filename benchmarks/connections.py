"""How many UDP connections per second a generator opens and verifies, and what a trial costs beyond that.

It measures unsent and lost connections at rising rates, the overhead of trials, and the time for a million connections.
The connections of the local testbed go through a router without state (the tester's own limit), and through routers
with the kernel's table of connections. Another part shows whether the generator fills large tables beside other work.
With ``--topology topologies/local-trex.yaml`` (and ``TREX_HOME``), TRex opens the connections, without the trial of a
million.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from statistics import median

import click
from busy_programs import busy_programs

from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import Exchange, Integrity, TrialInput

TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
RATES = (20e3, 50e3, 100e3, 150e3, 200e3, 300e3)
RATES_OF_TREX = (2e3, 5e3, 10e3, 20e3, 40e3)
ROUTERS = {
    "without state": {},
    "firewall=conntrack": {"firewall": "conntrack"},
    "nat=masquerade": {"nat": "masquerade"},
}
SECONDS = 0.5


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
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    click.echo(f"{'table':>8} {'entries':>8} {'N':>8} {'established':>12}")
    for table, entries in product(*TABLES):
        testbed = open_testbed(topology, dut="xdp", options={"firewall": table, "most_connections": entries})
        try:
            with testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready:
                for count in (entries, entries + entries // 20):
                    output = ready.measurer.measure(TrialInput(count / 20e3, 20e3, exchange=Exchange()))
                    unsent = " unsent" * bool(output.unsent_frames)
                    click.echo(f"{table:>8} {entries:8,} {count:8,} {output.directions[0].received_frames:12,}{unsent}")
        finally:
            testbed.close()


def compare_with_truth(topology: Path) -> None:
    """Trials at half a per cent below the rate R N / (N - B) of a limit, and 5 % above it; and the life of an entry."""
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    click.echo(f"{'R':>7} {'B':>5} {'N':>8} {'lost below':>11} {'above':>8} {'by the formula':>15}")
    for rate, burst, count in LIMITS:
        options = {"firewall": "conntrack", "new_connections": rate, "new_burst": burst}
        testbed = open_testbed(topology, dut="linux_router", options=options)
        try:
            with testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready:
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
        with testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready:
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
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    click.echo(f"{'DUT':>12} {'room':>8} {'a second':>8} {'opened':>8}  established, unsent and lost in each trial")
    for dut, options, room, count, rate in FILLS:
        testbed = open_testbed(topology, dut=dut, options=options)
        trial = TrialInput(count / rate, rate, exchange=Exchange(is_complete=True))
        try:
            with testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready:
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


@click.command(help=__doc__)
@click.option("--truth", is_flag=True, help="Compare limits of the kernel and of XDP with what they should let pass.")
@click.option("--fill", is_flag=True, help=f"Fill tables beside {BUSY_PROGRAMS} programs that compute.")
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on.")
@click.option("--trials", default=5, show_default=True, help="Trials at each rate.")
def main(topology: Path, trials: int, truth: bool, fill: bool) -> None:
    """Measures, and prints a table."""
    if fill:
        with busy_programs(BUSY_PROGRAMS):
            fill_tables(topology, trials)
        return
    if truth:
        compare_with_truth(topology)
        compare_tables(topology)
        return
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    for name, options in ROUTERS.items():
        testbed = open_testbed(topology, dut="linux_router", options=options)
        try:
            with testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready:
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


if __name__ == "__main__":
    main()
