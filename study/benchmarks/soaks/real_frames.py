"""Soak tests with real frames of devices that lose frames as software does, and whose critical load is known.

Builds a local testbed (root; needs clang and the headers of libbpf). An XDP program forwards the frames and loses some
of them (`lossy_forwarder.c`): whole batches above a capacity, frames that a ring does not hold in a pause, frames that
the bucket of a policer does not hold, or single frames of several queues. It runs in the sender's thread and counts
each frame that it loses. So a busy machine cannot make the device lose other frames. One device is a program that
really stops: it sleeps for a known time, and its packet socket has a ring of known size. It has real-time priority, and
logs its pauses.

After each search, one long trial at the stated load shows, by the device's own counters, whether its loss is within the
target.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lossratio import open_testbed
from lossratio.dut.xdp import XdpDevice
from lossratio.measurements.soak import SoakResult
from lossratio.nodes import NodeProcess, NodeSession
from lossratio.results import message
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput

ROOT = Path(__file__).parents[3]
TARGET = 1e-3
"""Target loss ratio. 3.7 / TARGET frames (or batches) without loss verify a load, in at least ten trials of 2 s. At 8
kfps, this takes 20 s, and two minutes for batches of 256."""

CAPACITY = 8_000
"""Frames per second that pass in whole batches, or through all queues."""
RATE, BUCKET = 5_000, 250
"""Frames per second that the policer passes, and frames that its bucket holds."""
QUEUES = 4
"""Queues to which frames are spread at random."""
HOLDS = 320
"""Frames that the queues hold together, or the device with batches, which holds at least two: 40 ms of traffic. So the
stalls of the generator on a busy machine lose no frames. A trial lets this many more frames through."""
PERIOD, PAUSE, RING = 4.0, 0.034, 175
"""Seconds between the beginnings of pauses, seconds of a pause, and frames that the ring holds."""
STOPPED_EVERY, STOPPED, STOPPED_RING = 3.0, 0.05, 256
"""The same for the program that really stops. It is too slow for more than some ten thousand frames per second."""
LIMITS = 100.0, 12_000.0
"""The lowest and the highest load in frames per second."""
PROGRAM = Path(__file__).with_name("lossy_forwarder.c")
FORWARDER = Path(__file__).with_name("pausing_forwarder.py")


@dataclass(frozen=True)
class Device:
    """A device."""

    truth: float
    """Its critical load in frames per second in the long run."""
    known: str
    """What is true of its losses, in words."""
    constants: Mapping[str, int] = field(default_factory=dict)
    """The constants of the XDP program that forwards."""
    program: tuple[str, ...] = ()
    """Arguments of the program that forwards instead; none: the XDP program."""

    @property
    def topology(self) -> Path:
        """The topology file: a program needs a generator that leaves it a CPU."""
        return ROOT / "topologies" / ("local.yaml" if self.program else "local-xdp.yaml")


def batches(size: int) -> Device:
    """A device that loses whole batches of so many frames."""
    constants = {"BATCH": size, "COST": 10**9 * size // CAPACITY, "HOLDS": max(HOLDS // size, 2)}
    return Device(CAPACITY / (1.0 - TARGET), f"batches of {size}", constants)


DEVICES = {
    "batches": batches(32),
    "large batches": batches(256),
    # At this load, a pause loses load * PAUSE - ring frames, which is the target's share of the frames of a period.
    "pauses": Device(
        RING / (PAUSE - TARGET * PERIOD),
        f"{3600 / PERIOD:.0f} pauses an hour of {1e3 * PAUSE:.0f} ms, and a ring of {RING}",
        {"PERIOD": round(1e9 * PERIOD), "PAUSE": round(1e9 * PAUSE), "RING": RING},
    ),
    "stopped": Device(
        STOPPED_RING / (STOPPED - TARGET * STOPPED_EVERY),
        f"{3600 / STOPPED_EVERY:.0f} pauses an hour of {1e3 * STOPPED:.0f} ms, and a ring of {STOPPED_RING}",
        program=("dut0", "dut1", str(STOPPED_RING), str(STOPPED_EVERY), str(STOPPED)),
    ),
    "bucket": Device(
        RATE / (1.0 - TARGET), f"a bucket of {1e3 * BUCKET / RATE:.0f} ms", {"COST": 10**9 // RATE, "HOLDS": BUCKET}
    ),
    # By a simulation of 200 million frames, within .1 %.
    "queues": Device(
        7_902.0, "single frames", {"QUEUES": QUEUES, "COST": 10**9 * QUEUES // CAPACITY, "HOLDS": HOLDS // QUEUES}
    ),
}
"""The devices by name. The last one is healthy: some frames are lost because its queues get random shares."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of these searches to those of a command."""
    parser.add_argument("--seconds", type=float, default=300.0, help="seconds of each search")
    parser.add_argument("--proof", type=float, default=30.0, help="seconds of the trial at the stated load")
    parser.add_argument("--runs", type=int, default=1, help="searches of each device")
    parser.add_argument("--device", nargs="+", choices=DEVICES, default=list(DEVICES))
    parser.add_argument("--generator", default="auto", help="kind of the generator for the XDP program (default: auto)")
    parser.add_argument("--keep", type=Path, help="directory of the result files; default: none are kept")
    parser.set_defaults(command=measure)


def measure(arguments: argparse.Namespace) -> None:
    """Measures, and prints what the results say."""
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.device:
            text = DEVICES[name].topology.read_text().replace("name: local", f"name: soak-{os.getpid()}", 1)
            text = text.replace("kind: auto", f"kind: {arguments.generator}")
            file = Path(directory) / "soak.yaml"
            file.write_text(text)
            for _ in range(arguments.runs):
                search(file, arguments.keep or Path(directory), name, arguments.seconds, arguments.proof)


def search(file: Path, results: Path, name: str, seconds: float, proof: float) -> None:
    """Searches for a device's critical load, and prints what the result says, and what the stated load really loses."""
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    device = DEVICES[name]
    with ExitStack() as stack:
        # A testbed that is kept running is not built again for the measurement.
        local = LocalTestbed.up(load_topology(file), keep=True)
        stack.callback(local.down)
        if device.program:
            session = stack.enter_context(NodeSession.connect("DUT1", local.topology.nodes["DUT1"]))
            program = Program(session.start("python3", "-c", FORWARDER.read_text(), *device.program))
            stack.callback(program.close)
            opened = open_testbed(file, dut="black_box", options={"hold": 0.2}, results=results)
            testbed = stack.enter_context(opened)
            box: Program | Forwarder = program
        else:
            options = {"object": compiled(device, file.parent), "map": "way_out"}
            testbed = stack.enter_context(open_testbed(file, dut="xdp", options=options, results=results))
            box = Forwarder(testbed)
        least, most = LIMITS
        result = testbed.critical_load(
            64, bidirectional=False, name=name, target_loss_ratio=TARGET, timeout=seconds, min_load=least, max_load=most
        )
        print(f"{name}: {os.getloadavg()[1]:.0f} programs at work")
        print(f"    true: {device.known}{box.logged()}")
        for line in said(result, device.truth):
            print(f"    {line}")
        if result.critical_load is None or not proof:
            return

        load = result.critical_load.stated.per_interface_fps
        with testbed.ready_for(profile) as ready:
            before = box.counted()
            ready.measurer.measure(TrialInput(proof, load))
            lost, received = (now - then for now, then in zip(box.counted(), before, strict=True))
        print(f"    then lost {lost} of {received} frames, {lost / received / TARGET:.2f} targets")


def compiled(device: Device, directory: Path) -> Path:
    """The XDP program of a device."""
    file = directory / "device.o"
    constants = [f"-D{name}={value}" for name, value in device.constants.items()]
    headers = f"/usr/include/{platform.machine()}-linux-gnu"
    clang = ("clang", "-O2", "-g", "-target", "bpf", "-I", headers, "-c", str(PROGRAM), "-o", str(file))
    subprocess.run([*clang, *constants], check=True)
    return file


class Forwarder:
    """The XDP program of a device."""

    def __init__(self, testbed: Any) -> None:
        self._testbed = testbed

    def counted(self) -> tuple[int, int]:
        """Frames that the device has lost, and has received, so far."""
        (device,) = self._testbed.duts
        assert isinstance(device, XdpDevice)
        ((_, state),) = device.ask("report")[device.west]["maps"]["states"]["entries"].items()
        received, lost = struct.unpack_from("=QQ", bytes.fromhex(state))
        return lost, received

    def logged(self) -> str:
        """The program logs nothing else."""
        return ""


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
    yield message(result)
