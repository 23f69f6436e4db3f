"""Soak tests with real frames of devices that lose frames as software does, and whose critical load is known.

Builds a local testbed (root). nftables rules in the DUT's namespace forward the frames and lose some of them: whole
batches above a capacity, frames that a ring does not hold in a pause, frames that a policer's bucket does not hold, or
single frames of several queues. The rules are executed in the sender's thread and count each frame that they lose. So a
busy machine cannot make the device lose other frames. One device is a program that really stops: it sleeps for a known
time, and its packet socket has a ring of known size. It has real-time priority, and logs its pauses.

After each search, one long trial at the stated load shows, by the device's own counters, whether its loss is within the
target.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from lossratio import open_testbed
from lossratio.measurements.soak import SoakResult
from lossratio.nodes import NodeProcess, NodeSession
from lossratio.results import doubts_of, kind_of
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput

ROOT = Path(__file__).parent.parent
TARGET, LEAST, MOST = 1e-3, 100.0, 12_000.0
"""Target loss ratio, and the range of loads in frames per second."""

BATCHED, BATCHES_HELD = 6400, 2
"""Frames per second that pass in whole batches, and batches that a full bucket holds."""
RATE, BUCKET = 4000, 200
"""Frames per second that the policer passes, and frames that its bucket holds."""
PERIOD_NS, PAUSE_NS, RING = 2**32, 2**25, 128
"""Nanoseconds between the beginnings of pauses, nanoseconds of a pause (powers of two, because rules can only mask the
time), and frames that the ring holds."""
REFILL = 32
"""Frames per second that the ring regains: all of it in a period, one frame in a pause."""
STOPPED_EVERY, STOPPED, STOPPED_RING = 3.0, 0.05, 256
"""Seconds between the beginnings of a program's pauses, seconds of a pause, and frames that its ring holds."""
FORWARDER = Path(__file__).with_name("pausing_forwarder.py")
QUEUES, QUEUE_RATE, QUEUE_HOLDS = 4, 1600, 16
"""Queues to which frames are spread at random, frames per second that each passes, and frames that each holds."""


@dataclass(frozen=True)
class Device:
    """A device."""

    chains: tuple[str, ...]
    """The nftables chains that lose its frames: frames enter `losses`, and the counter `lost` counts them."""
    truth: float
    """Its critical load in frames per second in the long run."""
    known: str
    """What is true of its losses, in words."""
    program: tuple[str, ...] = field(default=())
    """Arguments of the program that forwards; none: rules forward."""


def chain(name: str, *rules: str) -> str:
    """An nftables chain."""
    return "\n".join([f"chain {name} {{", *rules, "}"])


def over(rate: int, burst: int) -> str:
    """The condition that more than this many frames (or batches) per second come, and that a burst is used up."""
    return f"limit rate over {rate}/second burst {burst} packets"


def in_seconds(nanoseconds: int) -> int:
    """The number that nft turns into this number of nanoseconds: it multiplies numbers by 1e9, modulo 2**64."""
    return (nanoseconds >> 9) * pow(5**9, -1, 2**55) % 2**55


LOSE = "counter name lost drop"


def batches(size: int) -> Device:
    """A device that loses whole batches of so many frames."""
    beginning = chain(
        "beginning",
        f"{over(BATCHED // size, BATCHES_HELD)} add @losing {{ meta protocol }} return",
        "delete @losing { meta protocol }",
    )
    losses = chain("losses", f"numgen inc mod {size} vmap {{ 0 : jump beginning }}", f"meta protocol @losing {LOSE}")
    losing = "set losing { type ether_type; flags dynamic; size 65535; }"
    return Device((losing, beginning, losses), BATCHED / (1.0 - TARGET), f"batches of {size}")


IN_PAUSE = f"meta time & {in_seconds(PERIOD_NS - PAUSE_NS)} == 0"
WAYS = ", ".join(f"{number} : jump queue{number}" for number in range(QUEUES))
ONE_OF_QUEUES = tuple(chain(f"queue{number}", f"{over(QUEUE_RATE, QUEUE_HOLDS)} {LOSE}") for number in range(QUEUES))

DEVICES = {
    "batches": batches(32),
    "large batches": batches(256),
    # At this load, a pause loses load * PAUSE - ring frames, which is the target's share of the frames of a period.
    "pauses": Device(
        (chain("losses", f"{IN_PAUSE} {over(REFILL, RING)} {LOSE}"),),
        (RING + REFILL * PAUSE_NS * 1e-9) / ((PAUSE_NS - TARGET * PERIOD_NS) * 1e-9),
        f"{3600e9 / PERIOD_NS:.0f} pauses an hour of {PAUSE_NS * 1e-6:.1f} ms, and a ring of {RING}",
    ),
    "stopped": Device(
        (),
        STOPPED_RING / (STOPPED - TARGET * STOPPED_EVERY),
        f"{3600 / STOPPED_EVERY:.0f} pauses an hour of {1e3 * STOPPED:.0f} ms, and a ring of {STOPPED_RING}",
        ("dut0", "dut1", str(STOPPED_RING), str(STOPPED_EVERY), str(STOPPED)),
    ),
    "bucket": Device(
        (chain("losses", f"{over(RATE, BUCKET)} {LOSE}"),),
        RATE / (1.0 - TARGET),
        f"a bucket of {1e3 * BUCKET / RATE:.0f} ms",
    ),
    # By a simulation of four million frames, within .2 %.
    "queues": Device(
        (*ONE_OF_QUEUES, chain("losses", f"numgen random mod {QUEUES} vmap {{ {WAYS} }}")), 5700.0, "single frames"
    ),
}
"""The devices by name. The last one is healthy: some frames are lost because its queues get random shares."""


@click.command(help=__doc__)
@click.option("--topology", default=ROOT / "topologies" / "local.yaml", type=click.Path(path_type=Path))
@click.option("--seconds", default=150.0, show_default=True, help="Seconds of each search.")
@click.option("--proof", default=30.0, show_default=True, help="Seconds of the trial at the stated load.")
@click.option("--runs", default=1, show_default=True, help="Searches of each device.")
@click.option("--device", "names", multiple=True, type=click.Choice(list(DEVICES)), default=list(DEVICES))
@click.option("--keep", type=click.Path(path_type=Path), help="Directory of the result files; default: none are kept.")
def main(topology: Path, seconds: float, proof: float, runs: int, names: tuple[str, ...], keep: Path | None) -> None:
    """Measures, and prints what the results say."""
    text = topology.read_text().replace("name: local", f"name: soak-{os.getpid()}", 1)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "soak.yaml"
        file.write_text(text)
        for name in names:
            for _ in range(runs):
                search(file, keep or Path(directory), name, seconds, proof)


def search(file: Path, results: Path, name: str, seconds: float, proof: float) -> None:
    """Searches for a device's critical load, and prints what the result says, and what the stated load really loses."""
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    with ExitStack() as stack:
        # A testbed that is kept running is not built again for the measurement.
        local = LocalTestbed.up(load_topology(file), keep=True)
        stack.callback(local.down)
        session = stack.enter_context(NodeSession.connect("DUT1", local.topology.nodes["DUT1"]))
        box = set_up(session, DEVICES[name])
        stack.callback(box.close)
        testbed = stack.enter_context(open_testbed(file, dut="black_box", options={"hold": 0.2}, results=results))
        result = testbed.critical_load(
            64, bidirectional=False, name=name, target_loss_ratio=TARGET, timeout=seconds, min_load=LEAST, max_load=MOST
        )
        click.echo(f"{name}: {os.getloadavg()[1]:.0f} programs at work")
        click.echo(f"    true: {DEVICES[name].known}{box.logged()}")
        for line in said(result, DEVICES[name].truth):
            click.echo(f"    {line}")
        if result.critical_load is None or not proof:
            return

        load = result.critical_load.stated.per_interface_fps
        with testbed.ready_for(profile) as ready:
            before = box.counted()
            ready.measurer.measure(TrialInput(proof, load))
            lost, received = (now - then for now, then in zip(box.counted(), before, strict=True))
        click.echo(f"    then lost {lost} of {received} frames, {lost / received / TARGET:.2f} targets")


class Rules:
    """The rules of a device."""

    def __init__(self, session: NodeSession) -> None:
        self._session = session

    def counted(self) -> tuple[int, int]:
        """Frames that the device has lost, and has received, so far."""
        listed = json.loads(self._session.run("nft", "-j", "list", "counters", "table", "netdev", "box").stdout)
        counts = {entry["counter"]["name"]: int(entry["counter"]["packets"]) for entry in listed["nftables"][1:]}
        return counts["lost"], counts["received"]

    def logged(self) -> str:
        """Rules log nothing else."""
        return ""

    def close(self) -> None:
        """The rules go with their testbed."""


class Program:
    """The program of a device."""

    def __init__(self, process: NodeProcess) -> None:
        self._process = process
        self._process.read_line(10.0)

    def counted(self) -> tuple[int, int]:
        """Frames that the device has lost, and has received, so far."""
        counts = self._ask()
        return counts["dropped"], counts["arrived"]

    def logged(self) -> str:
        """The pauses that the program has logged."""
        pauses = self._ask()["pauses"]
        return f"; logged: {len(pauses)} pauses of {1e3 * min(pauses):.1f} to {1e3 * max(pauses):.1f} ms"

    def close(self) -> None:
        """Ends the program."""
        self._process.close()

    def _ask(self) -> Any:
        self._process.write_line("count")
        return json.loads(self._process.read_line(10.0))


def set_up(session: NodeSession, device: Device) -> Rules | Program:
    """Starts the program that forwards, or sets up the rules that lose frames and forward the others."""
    if device.program:
        return Program(session.start("python3", "-c", FORWARDER.read_text(), *device.program))
    there = way("dut0", "dut1", "meta protocol ip counter name received jump losses")
    parts = ("counter lost { }", "counter received { }", *device.chains, there, way("dut1", "dut0"))
    session.run("nft", "-f", "-", stdin="\n".join(["table netdev box {", *parts, "}", ""]))
    return Rules(session)


def way(entering: str, leaving: str, *rules: str) -> str:
    """The chain that frames of one direction pass."""
    hook = f'type filter hook ingress device "{entering}" priority 0;'
    return chain(f"from_{entering}", hook, *rules, f'fwd to "{leaving}"')


def said(result: SoakResult, truth: float) -> Iterator[str]:
    """What a result says, beside the true load."""
    found = result.critical_load
    if found is None:
        yield f"no result: {result.error}"
        return
    stated = found.stated.per_interface_fps
    evidence = sum(trial.is_evidence for trial in result.trials)
    yield f"true {truth:,.0f}, stated {stated:,.0f} ({stated / truth:.3f} of it)"
    yield f"{evidence} of {len(result.trials)} trials are evidence"
    yield from kind_of(result.kind).view().lines(result)
    yield from map(str, doubts_of([result])[0])


if __name__ == "__main__":
    main()
