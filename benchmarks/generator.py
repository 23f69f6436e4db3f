"""The embedded generator: its rates beside trafgen's, and what examination and trials cost.

    python benchmarks/generator.py rates --no-trafgen
    python benchmarks/generator.py integrity --rounds 1
    python benchmarks/generator.py overhead --trials 100

The generator inside the kernel (xdp) is measured beside the embedded one by benchmarks/generator_in_kernel.py.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, quantiles

import click
import numpy as np

from lossratio.agent.afpacket.frames import build_frames
from lossratio.agent.core.configuration import Configuration, Direction
from lossratio.dut import create_dut
from lossratio.errors import DutError
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import AfPacketGenerator, Topology, load_topology
from lossratio.traffic import AgentClient, Plan, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials.trial import Measurer
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


@click.group(help=__doc__)
def main() -> None:
    """The embedded generator."""


TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
SAMPLED_SOURCE = 50
UDP, MILLION = "ethip4-udp", "ethip4-udp-1mflows"
SETTLE_TIME = 0.02

CASES: tuple[tuple[str, int | str, bool, float], ...] = (
    *((UDP, 64, False, rate) for rate in (10e3, 100e3, 200e3, 400e3, 2e6)),
    *((UDP, 64, True, rate) for rate in (75e3, 150e3, 1e6)),
    *((UDP, 1518, False, rate) for rate in (100e3, 200e3, 2e6)),
    *((UDP, "IMIX_v4_1", False, rate) for rate in (100e3, 200e3, 2e6)),
    *((MILLION, 64, False, rate) for rate in (100e3, 200e3, 400e3, 2e6)),
    *((MILLION, 64, True, rate) for rate in (150e3, 1e6)),
    *((MILLION, "IMIX_v4_1", False, rate) for rate in (200e3, 2e6)),
)
"""Traffic profile, frame size, whether it goes both ways, and frames per second in each direction."""

SAMPLER = """
import ctypes, json, select, socket, struct, sys
interface, source = sys.argv[1], int(sys.argv[2])
program = [(0x20, 0, 0, 0xFFFFF004), (0x15, 3, 0, 4), (0x20, 0, 0, 26), (0x15, 0, 1, source)]
program += [(6, 0, 0, 64), (6, 0, 0, 0)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
samples = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
samples.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(program), ctypes.addressof(code)))
samples.setsockopt(socket.SOL_SOCKET, 35, 1)
samples.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
samples.bind((interface, 3))
stamps = []
print("ready", flush=True)
while True:
    readable = select.select([samples, sys.stdin], [], [])[0]
    if samples in readable:
        seconds, nanoseconds = struct.unpack("qq", samples.recvmsg(64, 64)[1][0][2])
        stamps.append(seconds * 10**9 + nanoseconds)
    elif readable:
        break
print(json.dumps(stamps), flush=True)
"""


@dataclass(frozen=True)
class Row:
    """What one direction did."""

    direction: str
    """Its name."""
    achieved: float
    """Frames per second."""
    unsent: float | None
    """Share of the intended frames that was not sent; None if the generator knows no such thing."""
    drops: int | None
    """Frames that the generator dropped itself; None if it does not say."""
    stamps: Sequence[int]
    """Arrival times of the frames of one source address, in nanoseconds."""


@dataclass(frozen=True)
class Tester:
    """The TG."""

    session: NodeSession
    """A log-in on it."""
    python: str
    """Its Python."""
    agent: AgentClient
    """The traffic agent there."""
    device_cpus: tuple[int, ...] = ()
    """CPUs on which the bridge forwards."""

    def afpacket(self, configuration: Configuration, rate: float, duration: float) -> list[Row]:
        """Sends with the embedded generator."""
        self.agent.configure(configuration, options={"device_cpus": self.device_cpus})
        with self._sampling(configuration) as samples:
            counters = self.agent.run(Plan(((rate, duration),))).directions
        return [
            Row(
                direction.name,
                direction.sent_frames / duration,
                direction.unsent_frames / direction.intended_frames,
                direction.generator_drop_frames,
                samples[direction.name],
            )
            for direction in counters
        ]

    def trafgen(self, configuration: Configuration, rate: float, duration: float) -> list[Row]:
        """Sends the same frames with trafgen, one process per direction."""
        with ExitStack() as stack, self._sampling(configuration) as samples:
            for direction in configuration.directions:
                path = f"/tmp/lossratio-bench-{direction.transmit}.cfg"  # noqa: S108
                self.session.put(self._frames_for_trafgen(direction).encode(), path)
                stack.callback(self.session.run, "rm", "-f", path)
                how = ("--cpus", "1", "--rate", f"{rate:.0f}pps", "--num", f"{rate * duration:.0f}", "--no-sock-mem")
                process = self.session.start("trafgen", *how, "--in", path, "--out", direction.transmit)
                stack.callback(process.close, timeout=30.0)
            stack.pop_all().close()
        return [
            Row(name, (len(stamps) - 1) * sources(configuration) * 1e9 / (stamps[-1] - stamps[0]), None, None, stamps)
            for name, stamps in samples.items()
        ]

    def _frames_for_trafgen(self, direction: Direction) -> str:
        macs = self.agent.facts.interfaces
        ends = (macs[name].replace(":", "") for name in (direction.transmit, direction.receive))
        cycle = build_frames(direction.frames, *map(bytes.fromhex, ends))
        rows = (row[:length].tolist() for row, length in zip(cycle.data, cycle.lengths, strict=True))
        return "".join("{" + ",".join(map(str, row)) + "}\n" for row in rows)

    @contextmanager
    def _sampling(self, configuration: Configuration) -> Iterator[dict[str, list[int]]]:
        samples: dict[str, list[int]] = {}
        with ExitStack() as stack:
            processes = {}
            for direction in configuration.directions:
                source = str(direction.frames.fields[0].first + SAMPLED_SOURCE)
                process = stack.enter_context(self.session.start(self.python, "-c", SAMPLER, direction.receive, source))
                process.read_line(timeout=30.0)
                processes[direction.name] = process
            yield samples
            for name, process in processes.items():
                process.write_line("")
                samples[name] = json.loads(process.read_line(timeout=30.0))


@main.command("rates")
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="A local testbed.")
@click.option("--duration", default=1.0, show_default=True, help="Seconds of traffic per line.")
@click.option("--rps-cpu", default=1, show_default=True, help="CPU that forwards in the third part.")
@click.option("--trafgen/--no-trafgen", "with_trafgen", default=shutil.which("trafgen") is not None, help="Beside it.")
def compare_rates(topology: Path, duration: float, rps_cpu: int, with_trafgen: bool) -> None:
    """Compares requested and achieved rates of the embedded generator and trafgen (Debian package netsniff-ng).

    Builds the local testbed, and sends the same frames with both generators: over a bare veth link, over the bridged
    links of the testbed, and over the bridge with its forwarding on another CPU (where that is allowed).

    "unsent" counts the frames that the generator could not send within the duration; trafgen has no duration and takes
    longer instead. Pacing is judged by the receiving kernel's time stamps: the frames of one source address (one of 254
    or of 64) are stamped, and the error is the difference between the actual time from one stamp to the next and the
    time at the requested rate. A million flows do not fit into the transmit ring: headers are patched there (and
    trafgen, which keeps all frames, is left out).
    """
    with ExitStack() as stack:
        testbed = stack.enter_context(LocalTestbed.use(load_topology(topology))).topology
        tg = stack.enter_context(NodeSession.connect(testbed.tg_name, testbed.nodes[testbed.tg_name]))
        stack.enter_context(bare_link(tg))
        generator = testbed.nodes[testbed.tg_name].generator
        if not isinstance(generator, AfPacketGenerator):
            raise click.ClickException(f"{topology}: its generator is not the embedded one")
        python = generator.python
        tester = Tester(tg, python, stack.enter_context(AgentClient.start(tg, python=python)))
        header = ("path", "generator", "flows", "size", "direction", "asked kpps", "achieved", "unsent %", "drops")
        click.echo(line(*header, "pacing error us: median", "99 %", "max"))
        compare(tester, "bare veth", ("bare0", "bare1"), duration, with_trafgen)
        ports = tuple(str(port.interface.name) for port in (testbed.path().west, testbed.path().east))
        for path, options in (("bridge", {}), (f"bridge, CPU {rps_cpu}", {"rps_cpus": rps_cpu})):
            try:
                with bridged(testbed, tester.agent, options):
                    own = replace(tester, device_cpus=tuple(options.values()))
                    compare(own, path, ports, duration, with_trafgen)
            except DutError as error:
                click.echo(f"{path}: {error}")


def compare(tester: Tester, path: str, interfaces: tuple[str, ...], duration: float, with_trafgen: bool) -> None:
    """Prints the lines of one path."""
    west, east = (TrafficPort(name, name) for name in interfaces)
    for name_of_profile, size, bidirectional, rate in CASES:
        profile = load_profile(name_of_profile, frame_size=size, bidirectional=bidirectional)
        configuration = make_configuration(profile, [PortPair(west, east)], settle_time=SETTLE_TIME)
        generators = (("afpacket", tester.afpacket), ("trafgen", tester.trafgen))
        for name, send in generators[: 1 + (with_trafgen and name_of_profile == UDP)]:
            for row in send(configuration, rate, duration):
                errors = abs(np.diff(np.array(row.stamps)) / 1e3 - 1e6 * sources(configuration) / rate)
                unsent = "-" if row.unsent is None else f"{100 * row.unsent:.3f}"
                drops = "-" if row.drops is None else str(row.drops)
                pacing = (f"{value:.0f}" for value in np.percentile(errors, [50, 99, 100]))
                asked, achieved = f"{rate / 1e3:.0f}", f"{row.achieved / 1e3:.1f}"
                click.echo(
                    line(
                        path,
                        name,
                        str(profile.flows),
                        str(size),
                        row.direction,
                        asked,
                        achieved,
                        unsent,
                        drops,
                        *pacing,
                    )
                )


def sources(configuration: Configuration) -> int:
    """How many source addresses the frames have, in turn."""
    return configuration.directions[0].frames.fields[0].count


def line(*columns: str) -> str:
    """One line of the table."""
    widths = (-13, -9, -8, -9, -11, 10, 9, 9, 6, 23, 7, 7)
    cells = (
        text.ljust(-width) if width < 0 else text.rjust(width) for text, width in zip(columns, widths, strict=True)
    )
    return " ".join(cells)


@contextmanager
def bare_link(tg: NodeSession) -> Iterator[None]:
    """A veth link on the TG, from itself to itself."""
    tg.run("ip", "link", "add", "bare0", "type", "veth", "peer", "name", "bare1")
    try:
        for name in ("bare0", "bare1"):
            tg.run("ip", "link", "set", "dev", name, "up")
        yield
    finally:
        tg.run("ip", "link", "delete", "dev", "bare0")


@contextmanager
def bridged(topology: Topology, agent: AgentClient, options: dict[str, int]) -> Iterator[None]:
    """The testbed's first DUT as a bridge."""
    path = topology.path()
    hop = path.hops[0]
    macs = [agent.facts.interfaces[str(port.interface.name)] for port in (path.west, path.east)]
    with NodeSession.connect(hop.node_name, topology.nodes[hop.node_name]) as session:
        dut = create_dut("linux_bridge", session, hop, options)
        dut.check()
        dut.set_up(*macs)
        try:
            yield
        finally:
            dut.tear_down()


OVERLOAD, OVERLOAD_SECONDS = 2e6, 0.3
EXAMINED = (("ethip4-udp", 64), ("ethip4-udp-1mflows", 64), ("ethip4-udp", 1518))


@main.command()
@click.option("--rounds", default=3, show_default=True, help="How often each case is measured, with and without.")
@click.option("--trials", default=8, show_default=True, help="Trials of each.")
def integrity(rounds: int, trials: int) -> None:
    """Measures what sequence numbers and the examination of frames cost: largest rates, and time beyond the traffic.

    Each case is measured several times in turn, with and without examination, as other work on the machine comes and
    goes. The best of all is what the generator can do. All frames must come back.
    """
    with ExitStack() as stack:
        testbed = stack.enter_context(LocalTestbed.use(load_topology(TOPOLOGY))).topology
        tg = stack.enter_context(NodeSession.connect(testbed.tg_name, testbed.nodes[testbed.tg_name]))
        stack.enter_context(bare_link(tg))
        generator = testbed.nodes[testbed.tg_name].generator
        if not isinstance(generator, AfPacketGenerator):
            raise click.ClickException(f"{TOPOLOGY}: its generator is not the embedded one")
        agent = stack.enter_context(AgentClient.start(tg, python=generator.python))
        stack.enter_context(bridged(testbed, agent, {}))
        ends = {"bare": ("bare0", "bare1"), "bridge": ("tg0", "tg1")}
        for path, (west, east) in ends.items():
            measure_examined(
                agent, path, PortPair(TrafficPort("west", west), TrafficPort("east", east)), rounds, trials
            )


def measure_examined(agent: AgentClient, path: str, pair: PortPair, rounds: int, trials: int) -> None:
    """Prints a line for each case, with and without examination."""
    for profile, size in EXAMINED:
        traffic = load_profile(profile, frame_size=size, bidirectional=False)
        configuration = make_configuration(traffic, [pair], settle_time=0.0)
        rates: dict[bool, list[float]] = defaultdict(list)
        overheads: dict[bool, list[float]] = defaultdict(list)
        for _ in range(rounds):
            for examines in (False, True):
                for rate, overhead in perform(agent, replace(configuration, examines=examines), trials):
                    rates[examines].append(rate)
                    overheads[examines].append(overhead)
        for examines in (False, True):
            best, beyond = max(rates[examines]) / 1e3, median(overheads[examines]) * 1e3
            case = f"{path:7} {profile:20} {size:5} B  examined: {examines!s:5}"
            click.echo(f"{case}  best {best:4.0f} kfps  {beyond:5.1f} ms beyond the traffic")


def perform(agent: AgentClient, configuration: Configuration, trials: int) -> Iterator[tuple[float, float]]:
    """Rates in frames per second, and seconds beyond the traffic."""
    agent.configure(configuration)
    for _ in range(trials):
        begin = time.monotonic()
        (counters,) = agent.run(Plan(((OVERLOAD, OVERLOAD_SECONDS),))).directions
        elapsed = counters.elapsed_s or OVERLOAD_SECONDS
        yield counters.received_frames / elapsed, time.monotonic() - begin - elapsed


AIM = 0.020
"""Seconds that the median should not exceed."""


@main.command()
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on.")
@click.option("--trials", default=50, show_default=True, help="Trials per duration.")
@click.option("--load", default=10_000.0, show_default=True, help="Frames per second in each direction.")
@click.option("--frame-size", default="64", show_default=True, help="Bytes with FCS, or IMIX_v4_1.")
def overhead(topology: Path, trials: int, load: float, frame_size: str) -> None:
    """Measures what a warm trial costs beyond its own duration and the DUT's settle time, over SSH on loopback.

    Builds the local testbed (unless it is up), bridges the two links, and times whole trials: from the measurer being
    asked to its answer, through SSH, to the agent and back. A trial that was measured again takes its duration once
    more. As a median hides this, the share of such trials is printed, too.
    """
    testbed = open_testbed(topology, dut="linux_bridge")
    try:
        with testbed.ready_for(load_profile("ethip4-udp", frame_size=frame_size)) as ready:
            settle_time = ready.conditions.timing.wait_after_s
            click.echo(f"Overhead per trial in ms, beyond duration and {settle_time * 1e3:g} ms of settling:")
            names = " ".join(f"{name:>7}" for name in ("trials", "min", "median", "mean", "90 %", "max"))
            click.echo(f"{'duration s':>10} {names}  measured again")
            for duration in (0.01, 0.1, 1.0):
                outputs = warm_trials(ready.measurer, TrialInput(duration, load), trials)
                overheads = [(output.elapsed or 0.0) - duration - settle_time for output in outputs]
                again = sum(output.repeats > 0 for output in outputs)
                tenths = quantiles(overheads, n=10)
                shown = (min(overheads), median(overheads), fmean(overheads), tenths[-1], max(overheads))
                numbers = [f"{1e3 * x:7.1f}" for x in shown]
                verdict = "ok" if median(overheads) <= AIM else f"above {AIM * 1e3:g} ms"
                click.echo(f"{duration:10g} {trials:7d} {' '.join(numbers)}  {again} of {trials}; {verdict}")
    finally:
        testbed.close()


def warm_trials(measurer: Measurer, trial: TrialInput, trials: int) -> list[TrialOutput]:
    """Performs so many trials, after a cold one that does not count."""
    measurer.measure(trial)
    return [measurer.measure(trial) for _ in range(trials)]


if __name__ == "__main__":
    main()
