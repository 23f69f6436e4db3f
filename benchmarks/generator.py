"""The generator inside the kernel (xdp) beside the one of packet sockets (afpacket) and trafgen: the figures of both.

Builds a local testbed, and prints medians of some runs:

- the largest rate of which less than 0.1 % stayed unsent, over a bare veth link, one way and both ways, and by how many
  frames the kernel's counters of the ports differ from the generator's in a trial at this rate;
- the rate that comes through a device in overload: the bridge, and an XDP program that redirects;
- the error of pacing: a program at the far end of the link notes when each frame arrives, for each generator alike;
- frames unsent at half of the largest rate, with other work beside it;
- the time that a trial takes beyond its duration;
- what a million flows, a mix of sizes and large frames cost; what batches, senders and generic receive cost.

It takes less than five minutes on a quiet machine.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from first_numbers import busy_programs

from lossratio.agent import Plan
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import Topology, XdpGenerator, load_topology
from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import DirectionCounters
from lossratio_study.bridge import bridged

ROOT = Path(__file__).parent.parent
UDP, MILLION = "ethip4-udp", "ethip4-udp-1mflows"
SETTLE_TIME = 0.02
MOST_UNSENT = 0.001
PRECISION, STEP = 1.04, 1.1
BARE, STAMPED, GENERIC = ("bare0", "bare1"), ("stamp0", "stamp3"), ("queue0", "queue1")
LINKS = (BARE, ("stamp0", "stamp1"), ("stamp2", "stamp3"), GENERIC)
LOADS = {"afpacket": (50e3, 3e6), "xdp": (200e3, 8e6)}
"""The range in which the largest rate is searched. Devices are offered its upper end, so that they limit the rate."""

BESIDE = 8
"""Programs that compute beside the generator."""

WITH_CLANG = ("pacing", "ways")
"""Sections with a program that is compiled for them."""

STAMPER_PROGRAM = """
#include "program.h"
#define ROOM (1 << 20)
extern struct { u64 count, times[ROOM]; } stamps;
CONSTANT u32 LEAVING;
PROGRAM int stamp(struct xdp_md *context)
{
    u64 now = ktime_get_ns(), count = stamps.count;
    if (count < ROOM) {
        stamps.times[count] = now;
        stamps.count = count + 1;
    }
    return redirect(LEAVING, 0);
}
"""

STAMPER = """
import json, struct, sys
sys.path.insert(0, sys.argv[1])
from lossratio.bpf import *
index = lambda name: int(open(f"/sys/class/net/{name}/ifindex").read())
stamps = Array(8 + (8 << 20), "stamps")
leaving = struct.pack("=I", index(sys.argv[3]))
with open(sys.argv[4], "rb") as file:
    program = ObjectFile(file.read()).load("stamper", {"stamps": stamps}, {"LEAVING": leaving})
link = Attachment(program, index(sys.argv[2]), "native")
print("ready", flush=True)
for line in sys.stdin:
    count = stamps.words[0]
    # The word for the first of these stamps is 1, and the ring is emptied.
    times = sorted(stamps.words[1 : 1 + count])
    stamps.words[0] = 0
    errors = sorted(abs(b - a - 1e9 / float(line)) / 1e3 for a, b in zip(times, times[1:]))
    print(json.dumps([errors[int(len(errors) * part)] if errors else None for part in (0.5, 0.99)]), flush=True)
"""

REDIRECT = """
import sys
sys.path.insert(0, sys.argv[1])
from lossratio.bpf import Attachment
from lossratio.dut.xdp.device.device import Forwarder, Way
index = lambda name: int(open(f"/sys/class/net/{name}/ifindex").read())
links = []
for here, there in (sys.argv[2:4], sys.argv[3:1:-1]):
    way = Way("redirect", index(there), macs=None, rules=None, every=1, faults=())
    links.append(Attachment(Forwarder(way, None).program, index(here), "native"))
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass
class Bench:
    """The TG, and the way of asking it."""

    testbed: Topology
    """The testbed."""
    tg: NodeSession
    """A log-in on it."""
    dut: NodeSession
    """A log-in on the DUT."""
    agent: AgentClient
    """The traffic agent."""
    runs: int
    """How many runs a figure is the median of."""
    duration: float
    """Seconds of a trial."""
    dut_ports: tuple[str, str]
    """Interfaces of the DUT."""
    ports: tuple[str, str]
    """Interfaces of the TG towards it."""
    overheads: dict[str, list[float]] = field(default_factory=dict)
    """Seconds that trials took beyond their duration, by generator."""
    around: float | None = None
    """The largest rate that was found last since `configure`."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Sending and receiving port of each direction."""

    def configure(
        self,
        generator: str,
        ports: Sequence[str],
        profile: str = UDP,
        size: int | str = 64,
        both: bool = False,
        **options: Any,
    ) -> None:
        """Makes a generator ready."""
        self.around = None
        self.pairs = ((ports[0], ports[1]), (ports[1], ports[0]))[: 1 + both]
        traffic = load_profile(profile, frame_size=size, bidirectional=both)
        pair = PortPair(TrafficPort(ports[0], ports[0]), TrafficPort(ports[1], ports[1]))
        configuration = make_configuration(traffic, [pair], settle_time=SETTLE_TIME)
        settings = self.testbed.nodes[self.testbed.tg_name].generator
        assert isinstance(settings, XdpGenerator)
        if tuple(ports) == self.ports:
            options = {"device_cpus": settings.device_cpus, **options}
        self.agent.configure(configuration, generator=generator, options=options)

    def trial(self, generator: str, load: float, duration: float | None = None) -> tuple[DirectionCounters, ...]:
        """Performs a trial, and notes how much longer it took."""
        seconds = duration or self.duration
        started = time.monotonic()
        counters = self.agent.run(Plan(((load, seconds),))).directions
        self.overheads.setdefault(generator, []).append(time.monotonic() - started - seconds - SETTLE_TIME)
        return counters

    def largest(self, generator: str) -> float:
        """The largest rate with less than 0.1 % unsent in each direction, by halving from the last such rate on."""
        least, most = LOADS[generator]
        if self.around is None:
            low, high = least, most
        elif self.sends(generator, low := self.around):
            high = low
            while high < most and self.sends(generator, high := high * STEP):
                low = high
        else:
            high = low
            while low > least and not self.sends(generator, low := low / STEP):
                high = low
        while high / low > PRECISION:
            middle = (low * high) ** 0.5
            if self.sends(generator, middle):
                low = middle
            else:
                high = middle
        self.around = low
        return low

    def sends(self, generator: str, load: float) -> bool:
        """Whether less than 0.1 % stays unsent in each direction; the machine may stall it once."""
        tries = (self.trial(generator, load) for _ in range(2))
        return any(all(way.unsent_frames < MOST_UNSENT * way.intended_frames for way in ways) for ways in tries)

    def miscounted(self, generator: str, load: float) -> str:
        """By how many frames the kernel's own counters of both ports differ from the generator's, and the total."""
        names = tuple(dict.fromkeys(port for pair in self.pairs for port in pair))
        before, ways, after = self._kernel(names), self.trial(generator, load), self._kernel(names)
        differences = 0
        for way, (transmit, receive) in zip(ways, self.pairs, strict=True):
            for port, place, counted in ((transmit, 1, way.sent_frames), (receive, 0, way.received_frames)):
                differences += abs(after[port][place] - before[port][place] - counted)
        return f"{differences} of {sum(way.sent_frames for way in ways):,}"

    def _kernel(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Frames that each interface has received and sent, by its own counters."""
        links = json.loads(self.tg.run("ip", "-s", "-j", "link", "show").stdout)
        stats = {link["ifname"]: link["stats64"] for link in links if link["ifname"] in names}
        return {name: (each["rx"]["packets"], each["tx"]["packets"]) for name, each in stats.items()}

    def forwarded(self, generator: str, load: float) -> float:
        """The rate that comes through, in the slower direction."""
        return min(way.received_frames for way in self.trial(generator, load)) / self.duration

    def median(self, measure: Callable[..., float], *arguments: Any) -> float:
        """The median of some runs."""
        return statistics.median(measure(*arguments) for _ in range(self.runs))


@click.command(help=__doc__)
@click.option("--runs", default=5, show_default=True, help="Runs that a figure is the median of.")
@click.option("--duration", default=0.2, show_default=True, help="Seconds of traffic per trial.")
@click.option("--only", multiple=True, help="Sections to run; all if none is named.")
def main(runs: int, duration: float, only: tuple[str, ...]) -> None:
    """Measures, and prints tables."""
    sections: dict[str, Callable[[Bench], None]] = {
        "bare": bare,
        "cost": cost,
        "bridge": bridge,
        "redirect": redirect,
        "pacing": pacing,
        "load": beside_load,
        "ways": ways,
    }
    with ExitStack() as stack:
        text = (ROOT / "topologies" / "local.yaml").read_text()
        own = Path(stack.enter_context(_temporary())) / "local-xdp.yaml"
        own.write_text(_with_xdp(text))
        testbed = stack.enter_context(LocalTestbed.use(load_topology(own))).topology
        tg_name = testbed.tg_name
        hop = testbed.path().hops[0]
        tg = stack.enter_context(NodeSession.connect(tg_name, testbed.nodes[tg_name]))
        dut = stack.enter_context(NodeSession.connect(hop.node_name, testbed.nodes[hop.node_name]))
        for one, other in LINKS:
            _add_link(tg, one, other)
        agent = stack.enter_context(AgentClient.start(tg, python=sys.executable))
        ports = [str(port.interface.name) for port in (testbed.path().west, testbed.path().east)]
        dut_ports = [str(port.interface.name) for port in (hop.west, hop.east)]
        for port in (*ports, GENERIC[1]):
            # An XDP device then redirects to this port, even if the embedded generator has no program there.
            tg.run("ethtool", "-K", port, "gro", "on")
        bench = Bench(testbed, tg, dut, agent, runs, duration, (dut_ports[0], dut_ports[1]), (ports[0], ports[1]))
        for name, section in sections.items():
            if only and name not in only:
                continue
            if name in WITH_CLANG and shutil.which("clang") is None:
                click.echo(f"{name}: skipped, as it compiles a program with clang, which make packages installs")
                continue
            section(bench)
        for generator, overheads in bench.overheads.items():
            ordered = sorted(overheads)
            row(
                f"{generator}: trial beyond its duration, median and 90 %, ms",
                *(f"{1e3 * ordered[int(part * len(ordered))]:.1f}" for part in (0.5, 0.9)),
            )


def bare(bench: Bench) -> None:
    """The largest rates over a bare link, and trafgen's beside them."""
    for both in (False, True):
        for generator in LOADS:
            bench.configure(generator, BARE, both=both)
            label = "both ways, each" if both else "one way"
            rate = bench.median(bench.largest, generator)
            differs = bench.miscounted(generator, rate)
            row(
                f"{generator}: bare veth, 64 B, {label}, kfps; the kernel counts otherwise",
                f"{rate / 1e3:.0f}",
                differs,
            )
    if shutil.which("trafgen"):
        row("trafgen: bare veth, 64 B, one way, kfps", f"{trafgen(bench) / 1e3:.0f}")


def trafgen(bench: Bench) -> float:
    """Frames per second that trafgen sends, as fast as it can."""
    path, frames = "/tmp/lossratio-bench.cfg", 1_000_000  # noqa: S108
    bench.tg.put(("{" + ",".join(["0xff"] * 60) + "}\n").encode(), path)
    started = time.monotonic()
    command = ("trafgen", "--cpus", "1", "--num", str(frames), "--no-sock-mem", "--in", path, "--out", BARE[0])
    bench.tg.run(*command)
    return frames / (time.monotonic() - started)


def cost(bench: Bench) -> None:
    """What many flows and large frames cost."""
    least: dict[str, float] = {}
    for generator in LOADS:
        for profile, size in ((UDP, 64), (MILLION, 64), (UDP, "IMIX_v4_1"), (UDP, 1518)):
            bench.configure(generator, BARE, profile, size)
            rate = bench.median(bench.largest, generator)
            least.setdefault(generator, rate)
            flows = "a million flows" if profile == MILLION else "254 flows"
            row(
                f"{generator}: bare veth, {flows}, {size}, kfps; share of 64 B; the kernel counts otherwise",
                f"{rate / 1e3:.0f}",
                f"{100 * rate / least[generator]:.0f} %",
                bench.miscounted(generator, rate),
            )


def bridge(bench: Bench) -> None:
    """Through the bridge."""
    with bridged(bench.testbed, bench.agent, {}):
        through(bench, "the bridge")


def redirect(bench: Bench) -> None:
    """Through an XDP program that redirects."""
    with _program(bench.dut, REDIRECT, *bench.dut_ports):
        through(bench, "an XDP redirect")


def through(bench: Bench, device: str) -> None:
    """Rates through a device, one way and both ways."""
    for generator, (_, load) in LOADS.items():
        for both in (False, True):
            bench.configure(generator, bench.ports, both=both)
            label = "both ways, each" if both else "one way"
            asked = load / 2 if both else load
            rate = bench.median(bench.forwarded, generator, asked)
            row(
                f"{generator}: through {device}, {label}, {asked / 1e3:.0f} kfps asked, comes through",
                f"{rate / 1e3:.0f}",
                bench.miscounted(generator, asked),
            )


def pacing(bench: Bench) -> None:
    """The error of the times between frames, where they arrive."""
    with _stamper(bench) as stamper:
        for generator in LOADS:
            bench.configure(generator, STAMPED)
            for load in (100e3, 1e6):
                errors = []
                for _ in range(bench.runs):
                    bench.trial(generator, load, 0.5)
                    stamper.write_line(f"{load}")
                    errors.append(json.loads(stamper.read_line(timeout=30.0)))
                half, most = (statistics.median(column) for column in zip(*errors, strict=True))
                row(
                    f"{generator}: pacing error at {load / 1e3:.0f} kfps, 50 % and 99 %, us",
                    f"{half:.2f}",
                    f"{most:.1f}",
                )


def beside_load(bench: Bench) -> None:
    """Frames unsent at half of the largest rate, with other work; and how much CPU time the host took meanwhile."""
    for generator, catch_up in (("afpacket", 1e-3), ("xdp", 1e-3), ("xdp", 5e-3)):
        bench.configure(generator, BARE, catch_up=catch_up)
        load = bench.largest(generator) / 2
        with busy_programs(BESIDE):
            shares, stolen = [], _stolen()
            for _ in range(bench.runs):
                (way,) = bench.trial(generator, load, 1.0)
                shares.append(100 * way.unsent_frames / way.intended_frames)
        row(
            f"{generator}: unsent at {load / 1e3:.0f} kfps beside {BESIDE} programs, {1e3 * catch_up:.0f} ms made up "
            "for, median and most, %; stolen, ms",
            f"{statistics.median(shares):.4f}",
            f"{max(shares):.4f}",
            f"{1e3 * (_stolen() - stolen):.0f}",
        )


def _stolen() -> float:
    """Seconds for which the host of this virtual machine took the processors."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


def ways(bench: Bench) -> None:
    """One sender against two, batches, and what native receive saves."""
    for cpus in ([0], [0, 1]):
        bench.configure("xdp", BARE, both=True, cpus=cpus)
        rate = bench.median(bench.largest, "xdp")
        row(f"xdp: both ways, senders on {len(cpus)} CPUs, each, kfps", f"{rate / 1e3:.0f}")
    for ports, mode in ((BARE, "in the driver"), (GENERIC, "behind the driver")):
        bench.configure("xdp", ports)
        rate = bench.median(bench.largest, "xdp")
        (way,) = bench.trial("xdp", rate)
        share = 100 * way.received_frames / max(1, way.sent_frames)
        label = f"xdp: received {mode}: largest rate one way, kfps; of that received"
        row(label, f"{rate / 1e3:.0f}", f"{share:.1f} %")
    with _stamper(bench) as stamper:
        for batch in (1, 4, 16, 64):
            bench.configure("xdp", BARE, batch=batch)
            rate = bench.largest("xdp")
            bench.configure("xdp", STAMPED, batch=batch)
            cells = []
            for load in (100e3, 1e6):
                bench.trial("xdp", load, 0.5)
                stamper.write_line(f"{load}")
                cells += [f"{error:.2f}" for error in json.loads(stamper.read_line(timeout=30.0))]
            label = f"xdp: batch of {batch}: kfps one way; pacing at 100 kfps 50 %, 99 %; at 1,000 kfps"
            row(label, f"{rate / 1e3:.0f}", *cells)


@contextmanager
def _program(session: NodeSession, script: str, *arguments: str) -> Iterator[Any]:
    with session.start(sys.executable, "-c", script, str(ROOT / "libraries"), *arguments) as process:
        assert process.read_line(timeout=30.0) == "ready"
        yield process


@contextmanager
def _stamper(bench: Bench) -> Iterator[Any]:
    """The program that notes when each frame arrives. It is compiled here, which needs clang."""
    compiler = runpy.run_path(str(ROOT / "tools" / "bpf_objects.py"))
    with _temporary() as directory:
        source = Path(directory) / "stamper.c"
        source.write_text(STAMPER_PROGRAM)
        compiler["compile_program"](source, source.with_suffix(".o"))
        with _program(bench.tg, STAMPER, "stamp1", "stamp2", str(source.with_suffix(".o"))) as stamper:
            yield stamper


@contextmanager
def _temporary() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        yield directory


def _with_xdp(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("generator:")]
    place = next(number for number, line in enumerate(lines) if line.strip() == "type: TG")
    lines.insert(place + 1, "    generator: {kind: xdp}")
    return "\n".join(lines).replace("name: local", f"name: local-xdp-{os.getpid()}") + "\n"


def _add_link(tg: NodeSession, one: str, other: str) -> None:
    # A driver takes no program if it has fewer queues to receive than the other end has to send.
    queues = "4" if (one, other) == GENERIC else "1"
    tg.run("ip", "link", "add", one, "numtxqueues", queues, "type", "veth", "peer", "name", other, "numrxqueues", "1")
    for name in (one, other):
        tg.run("ip", "link", "set", "dev", name, "up")
        tg.run("ethtool", "-K", name, "gro", "on")


def row(label: str, *cells: str) -> None:
    """Prints a row of a table."""
    click.echo(label.ljust(95) + "".join(f"  {cell:>12}" for cell in cells))


if __name__ == "__main__":
    main()
