"""The embedded generators beside trafgen, tcpreplay, iperf3 and xdp-trafficgen: frames per second over a bare veth.

Each tool sends UDP frames of 64 bytes (with FCS) on one CPU: as fast as it can, and at 100,000 frames/s if it has a
rate. The tools' own counts are ignored: the kernel's counter of the receiving port is read over a second while the tool
runs. All of them have realtime priority (SCHED_FIFO), so that other work on the machine does not affect the comparison.
Tools take turns, and a figure is the median of some rounds. A tool that is not installed, or does not start here, gets
a line that says so (Debian: netsniff-ng, tcpreplay, iperf3, xdp-tools).

`--write` puts the table into docs/reference/generators.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "generators.md"
PART = re.compile(r"(?<=<!-- beside other tools -->\n).*?(?=<!-- end -->)", re.DOTALL)
NAMESPACE = f"lossratio-beside-{os.getpid()}"
OTHER = f"{NAMESPACE}-far"
PACED = 100_000
FASTEST = 12_000_000
QUEUES = 4
FRAME_BYTES = 60
PAYLOAD_BYTES = 18
WARM_UP_SECONDS = 1.0
SECONDS = 1.0
FAR_ADDRESS = "198.18.1.2"

OURS = """
import json, select, sys
from lossratio.traffic import Plan, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.agent import Control
from lossratio.agent.core.generator import make_generator
name, load, options = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
pair = PortPair(TrafficPort("near", "near"), TrafficPort("far", "far"))
generator = make_generator(name, make_configuration(profile, [pair], settle_time=0.02), options)
class UntilInputEnds(Control):
    def wants_end(self):
        return bool(select.select([sys.stdin], [], [], 0.0)[0])
try:
    generator.run(Plan(((load, None),)), UntilInputEnds())
finally:
    generator.close()
"""
"""Sends with one of the embedded generators until its input ends."""


@dataclass(frozen=True)
class Tool:
    """A tool that sends, and how to start it."""

    name: str
    """Its name in the table."""
    program: str
    """The program that must be there."""
    command: Callable[[int | None], Sequence[str] | None]
    """Gives the command for a rate in frames per second (None: as fast as it can); None if the tool has no rate."""
    looks_at_returns: str
    """What it says about frames that come back."""
    port: str = "far"
    """The interface that its frames arrive at."""


def ours(name: str, **options: object) -> Callable[[int | None], Sequence[str]]:
    """The command of one of the embedded generators."""
    return lambda rate: [sys.executable, "-c", OURS, name, str(rate or FASTEST), json.dumps(options)]


def tools(folder: Path) -> list[Tool]:
    """All of them; their files are in a folder."""
    frames, capture = folder / "frames.cfg", folder / "frames.pcap"

    def trafgen(rate: int | None) -> Sequence[str]:
        pace = ["--rate", f"{rate}pps"] if rate else []
        return ["trafgen", "--cpus", "1", *pace, "--no-sock-mem", "--in", str(frames), "--out", "near"]

    def tcpreplay(rate: int | None) -> Sequence[str]:
        pace = [f"--pps={rate}"] if rate else ["--topspeed"]
        return ["tcpreplay", *pace, "--preload-pcap", "--loop=0", "--intf1=near", str(capture)]

    def iperf3(rate: int | None) -> Sequence[str]:
        bits = rate * PAYLOAD_BYTES * 8 if rate else 0
        return ["iperf3", "-u", "-c", FAR_ADDRESS, "-l", str(PAYLOAD_BYTES), "-b", str(bits), "-t", "60"]

    def xdp_trafficgen(rate: int | None) -> Sequence[str] | None:
        return None if rate else ["xdp-trafficgen", "udp", "near"]

    every = "each frame: lost, late, copied, reordered, changed"
    return [
        Tool("`afpacket`", "ip", ours("afpacket"), every.replace("each frame", "a sample or each frame")),
        Tool("`xdp`", "ip", ours("xdp", cpus=[0]), every),
        Tool("`xdp`, two CPUs", "ip", ours("xdp", cpus_per_direction=2), every),
        Tool("trafgen", "trafgen", trafgen, "nothing"),
        Tool("tcpreplay", "tcpreplay", tcpreplay, "nothing"),
        Tool("iperf3 (UDP sockets)", "iperf3", iperf3, "lost, reordered, by its own server", "over"),
        Tool("xdp-trafficgen", "xdp-trafficgen", xdp_trafficgen, "nothing"),
    ]


@click.command(help=__doc__)
@click.option("--rounds", default=3, show_default=True, help="Rounds that a figure is the median of.")
@click.option("--write", is_flag=True, help="Put the table into the page.")
def main(rounds: int, write: bool) -> None:
    """Measures, and prints a table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_frames(folder)
        stack.enter_context(links())
        seen: dict[tuple[str, int | None], list[float]] = {}
        refused: dict[str, str] = {}

        for _ in range(rounds):
            for tool in tools(folder):
                if shutil.which(tool.program) is None:
                    refused[tool.name] = "not installed here"
                for rate in (None, PACED):
                    command = tool.command(rate)
                    if command is None or tool.name in refused:
                        continue
                    figure = rate_of(tool, command)
                    if isinstance(figure, str):
                        refused[tool.name] = figure
                    else:
                        seen.setdefault((tool.name, rate), []).append(figure)

        text = table(tools(folder), seen, refused)
        click.echo(text + f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs")

    if write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(PART.sub(lambda _: text, page), encoding="utf-8")


def table(all_tools: Sequence[Tool], seen: dict[tuple[str, int | None], list[float]], refused: dict[str, str]) -> str:
    """The table in Markdown."""
    rows = [
        f"| | as fast as it can, frames/s | {PACED:,} frames/s requested "
        "| what it says about frames that come back |\n",
        "| --- | --- | --- | --- |\n",
    ]
    for tool in all_tools:
        if tool.name in refused:
            rows.append(f"| {tool.name} | {refused[tool.name]} | | {tool.looks_at_returns} |\n")
            continue
        fastest = statistics.median(seen[tool.name, None])
        paced = seen.get((tool.name, PACED))
        kept = f"{statistics.median(paced):,.0f}" if paced else "it has no rate"
        rows.append(f"| {tool.name} | {round(fastest, -3):,.0f} | {kept} | {tool.looks_at_returns} |\n")
    return "".join(rows)


def rate_of(tool: Tool, command: Sequence[str]) -> float | str:
    """Frames per second that arrive while a tool runs; a text: why it does not run."""
    with tempfile.TemporaryFile() as said:
        rate = _rate_of(tool, command, said)
        return f"does not start here: {_last_line(said)}" if rate is None else rate


def _rate_of(tool: Tool, command: Sequence[str], said: IO[bytes]) -> float | None:
    namespace = OTHER if tool.port == "over" else NAMESPACE
    # The embedded generators do this themselves.
    pinned = [] if command[0] == sys.executable else ["chrt", "--fifo", "12", "taskset", "-c", "0"]
    process = subprocess.Popen(
        ["ip", "netns", "exec", NAMESPACE, *pinned, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 20.0
        before, idle = arrived(namespace, tool.port), True
        while idle and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
            idle = arrived(namespace, tool.port) < before + PACED / 10
        time.sleep(WARM_UP_SECONDS)
        first, began = arrived(namespace, tool.port), time.monotonic()
        time.sleep(SECONDS)
        last, ended = arrived(namespace, tool.port), time.monotonic()
        if process.poll() is not None or last == first:
            return None
        return (last - first) / (ended - began)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        if command[0] == sys.executable:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
        # Also the processes that a tool has started.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(said: IO[bytes]) -> str:
    """The last line that a tool has written, for a cell of the table."""
    said.seek(0)
    lines = said.read().decode(errors="replace").split("\n")
    written = [line.strip() for line in lines if line.strip()]
    return written[-1][:100].replace("|", "/") if written else "it sends nothing, and says nothing"


def arrived(namespace: str, port: str) -> int:
    """Frames that an interface has received."""
    answer = subprocess.run(
        ["ip", "-n", namespace, "-s", "-j", "link", "show", "dev", port], check=True, capture_output=True
    )
    packets: int = json.loads(answer.stdout)[0]["stats64"]["rx"]["packets"]
    return packets


@contextmanager
def links() -> Iterator[None]:
    """A link for frames inside a namespace, and one for sockets to another namespace, where a server of iperf3 runs."""
    names = (NAMESPACE, OTHER)
    queues = ["numtxqueues", str(QUEUES), "numrxqueues", str(QUEUES)]
    server = None
    try:
        for name in names:
            run("netns", "add", name)
        run("-n", NAMESPACE, "link", "add", "near", *queues, "type", "veth", "peer", "name", "far", *queues)
        run("-n", NAMESPACE, "link", "add", "out", "type", "veth", "peer", "name", "over", "netns", OTHER)
        run("-n", NAMESPACE, "address", "add", "198.18.1.1/24", "dev", "out")
        run("-n", OTHER, "address", "add", f"{FAR_ADDRESS}/24", "dev", "over")
        for namespace, port in ((NAMESPACE, "near"), (NAMESPACE, "far"), (NAMESPACE, "out"), (OTHER, "over")):
            run("-n", namespace, "link", "set", "dev", port, "up")
            run("netns", "exec", namespace, "ethtool", "-K", port, "gro", "on")
        if shutil.which("iperf3"):
            command = ["ip", "netns", "exec", OTHER, "iperf3", "-s"]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def run(*arguments: str) -> None:
    """A command of ip."""
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


def write_frames(folder: Path) -> None:
    """One frame of UDP, for trafgen and as a capture of a thousand for tcpreplay."""
    udp = struct.pack("!4H", 9, 9, 8 + PAYLOAD_BYTES, 0) + bytes(PAYLOAD_BYTES)
    addresses = bytes((198, 18, 0, 1)) + bytes((198, 18, 0, 2))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + header[12:]
    frame = bytes.fromhex("02000000000202000000000108 00") + header + udp
    assert len(frame) == FRAME_BYTES
    (folder / "frames.cfg").write_text("{" + ",".join(map(str, frame)) + "}\n", encoding="ascii")
    record = struct.pack("=4I", 0, 0, len(frame), len(frame)) + frame
    head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    (folder / "frames.pcap").write_bytes(head + record * 1000)


if __name__ == "__main__":
    main()
