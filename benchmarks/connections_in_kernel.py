"""A prototype: connections that are opened, answered and verified by programs inside the kernel, beside afpacket's.

UDP connections of one frame each way. One program opens them, paced by the kernel's clock (live frames). Another one at
the far port sends each frame back to the addresses with which it arrived. A third one at the near port verifies
that the answer came over the connection's own addresses. Eight bytes for each connection say what became of it.

Prints what the programs count where the answer is known: devices that drop, duplicate, translate or limit, answers
from another port and late ones. Then, with both generators in turns, what is unsent and lost at rising rates through a
router of the kernel without state. Then what the programs reach over a bare link, and fill in one trial. It needs root
and clang.
"""

from __future__ import annotations

import json
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import Exchange, Integrity, TrialInput

ROOT = Path(__file__).parent.parent
SECONDS = 0.5
EMBEDDED_RATES = (100e3, 200e3, 300e3, 500e3, 700e3)
LIMIT, BURST = 50_000, 100
ENTRY_SECONDS = 1
KERNEL_RATES = (100e3, 200e3, 300e3, 500e3, 700e3, 1e6, 1.5e6)
KNOWN = 100_000
"""Connections of a trial whose answer is known."""
FOREVER = 1e3
"""Seconds that no trial takes."""

PROGRAM = """
#include "program.h"
enum { ROOM = 10000000, PORTS = 50000, FIRST_PORT = 10000, FIRST_TARGET = 2000, TRIES = 3, LATE = 16, ELSEWHERE = 32 };
enum { OPEN, ANSWER, VERIFY, LENGTH = 60, TTL = 64, OF_MILLISECONDS = 10 };
struct connection { u32 address; u16 port; u8 arrived, answered; };
extern struct {
    u64 start, interval, catch_up, count, deadline, opened, unsent, due, fault;
    struct connection connections[ROOM];
} shared;
CONSTANT struct { u64 words[8]; u32 address, target, tag, interface, ip_sum, udp_sum, job; } trial;
#define AT(type, place) (*(type *)(place))
#define SWAPPED16(value) __builtin_bswap16(value)
#define SWAPPED32(value) __builtin_bswap32(value)

PART u16 folded(u32 sum)
{
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    return ~sum;
}

PART int open_next(struct xdp_md *context)
{
    u64 now = ktime_get_ns(), number = shared.opened;
    if (number >= shared.count || now < shared.start)
        return XDP_DROP;
    u64 elapsed = (now - shared.start) << OF_MILLISECONDS, due = shared.due;
    if (elapsed < due)
        return XDP_DROP;
    shared.due = due + shared.interval;
    if (elapsed - due > shared.catch_up) {
        shared.unsent++;
        shared.count--;
        return XDP_DROP;
    }
    u8 *data = DATA(context);
    if (data + LENGTH > DATA_END(context))
        return XDP_DROP;
    shared.opened = number + 1;
    WRITTEN_OUT for (u32 i = 0; i < 7; i++)
        AT(u64, data + 8 * i) = trial.words[i];
    AT(u32, data + 56) = 0;
    u32 part = number / PORTS, address = trial.address + part;
    u16 port = FIRST_PORT + number % PORTS, to = FIRST_TARGET + part;
    u32 moved = (address >> 16) + (address & 0xFFFF);
    AT(u16, data + 24) = SWAPPED16(folded(trial.ip_sum + moved));
    AT(u32, data + 26) = SWAPPED32(address);
    AT(u16, data + 34) = SWAPPED16(port);
    AT(u16, data + 36) = SWAPPED16(to);
    u32 numbers = (number >> 16) + (number & 0xFFFF);
    AT(u16, data + 40) = SWAPPED16(folded(trial.udp_sum + moved + port + to + numbers));
    AT(u32, data + 46) = SWAPPED32((u32)number);
    return redirect(trial.interface, 0);
}

PART struct connection *connection_of(u8 *data, u8 *end, u32 *number)
{
    if (data + LENGTH > end || AT(u16, data + 12) != SWAPPED16(0x0800) || data[14] != 0x45 || data[23] != 17)
        return 0;
    *number = SWAPPED32(AT(u32, data + 46));
    if (AT(u32, data + 42) != SWAPPED32(trial.tag) || *number >= shared.opened || *number >= ROOM)
        return 0;
    return &shared.connections[*number];
}

PART void note(u8 *state)
{
    u8 value = *state;
    if (ktime_get_ns() > shared.deadline)
        value |= LATE;
    if ((value & TRIES) < TRIES)
        value++;
    *state = value;
}

PART int answer(struct xdp_md *context)
{
    u32 number;
    u8 *data = DATA(context);
    struct connection *one = connection_of(data, DATA_END(context), &number);
    if (!one)
        return XDP_PASS;
    note(&one->arrived);
    u32 from = AT(u32, data + 26), words[3] = {AT(u32, data), AT(u32, data + 4), AT(u32, data + 8)};
    u16 port = AT(u16, data + 34), to = AT(u16, data + 36), sum = ~AT(u16, data + 24), life = AT(u16, data + 22);
    one->address = from;
    one->port = port;
    AT(u16, data) = words[1] >> 16;
    AT(u32, data + 2) = words[2];
    AT(u32, data + 6) = words[0];
    AT(u16, data + 10) = words[1];
    AT(u16, data + 22) = (life & 0xFF00) | TTL;
    AT(u16, data + 24) = folded(sum + (u16)~life + ((life & 0xFF00) | TTL));
    AT(u32, data + 26) = AT(u32, data + 30);
    AT(u32, data + 30) = from;
    AT(u16, data + 34) = to;
    AT(u16, data + 36) = port;
    if (shared.fault && number % shared.fault == 0) {
        /* From another port. */
        AT(u16, data + 34) = to ^ 0x0100;
        AT(u16, data + 40) = folded((u16)~AT(u16, data + 40) + (u16)~to + (to ^ 0x0100));
    }
    /* With XDP_TX a veth would not wake an end that has no program. */
    return redirect(context->ingress_ifindex, 0);
}

PART int verify(struct xdp_md *context)
{
    u32 number;
    u8 *data = DATA(context);
    struct connection *one = connection_of(data, DATA_END(context), &number);
    if (!one)
        return XDP_PASS;
    u32 part = number / PORTS;
    u16 port = FIRST_PORT + number % PORTS, to = FIRST_TARGET + part;
    if (AT(u32, data + 26) != SWAPPED32(trial.target) || AT(u32, data + 30) != SWAPPED32(trial.address + part) ||
        AT(u16, data + 34) != SWAPPED16(to) || AT(u16, data + 36) != SWAPPED16(port))
        one->answered |= ELSEWHERE;
    else
        note(&one->answered);
    return XDP_DROP;
}

PROGRAM int run(struct xdp_md *context)
{
    if (KNOWN(trial.job == OPEN))
        return open_next(context);
    if (KNOWN(trial.job == ANSWER))
        return answer(context);
    return verify(context);
}
"""

TESTER = """
import json, os, struct, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from lossratio.bpf import Array, Attachment, ObjectFile
ROOM, HEAD, TRIES, LATE, ELSEWHERE, TAG = 10_000_000, 9, 3, 16, 32, 0x4C520065
ADDRESS, TARGET = 0xC6120100, 0xC6130002
near, far = sys.argv[3:5]

def index(name):
    return int(open(f"/sys/class/net/{name}/ifindex").read())

def mac(text):
    return bytes.fromhex(text.strip().replace(":", ""))

def total(data):
    return sum(struct.unpack(f">{len(data) // 2}H", data))

own, gateway = mac(open(f"/sys/class/net/{near}/address").read()), mac(sys.argv[5])
ip = struct.pack(">BBHHHBBHII", 0x45, 0, 46, 0, 0, 64, 17, 0, 0, TARGET)
udp = struct.pack(">HHHHI", 0, 0, 26, 0, TAG)
udp_sum = total(udp) + total(struct.pack(">IHH", TARGET, 17, 26))
frame = (gateway + own + b"\\x08\\0" + ip + udp).ljust(64, b"\\0")
shared = Array(8 * HEAD + 8 * ROOM, "connections")
with open(sys.argv[2], "rb") as file:
    objects = ObjectFile(file.read())
programs = []
for job in range(3):
    values = struct.pack("=7I", ADDRESS, TARGET, TAG, index(near), total(ip), udp_sum, job)
    programs.append(objects.load("connections", {"shared": shared}, {"trial": frame + values}))
opener, answerer, verifier = programs
links = [Attachment.nowhere(opener)]
links += [Attachment(answerer, index(far), "native"), Attachment(verifier, index(near), "native")]
kind = [("address", ">u4"), ("port", ">u2"), ("arrived", "u1"), ("answered", "u1")]
states = np.frombuffer(shared.memory, dtype=kind, offset=8 * HEAD)
os.sched_setaffinity(0, {int(sys.argv[6])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
for line in sys.stdin:
    rate, count, fault, last, catch_up = json.loads(line)
    shared.words[3] = 0
    states[:count] = 0
    start = time.monotonic_ns() + 2_000_000
    # Start, interval and lateness in parts of 1024 of a nanosecond, deadline, opened, unsent, due, fault; then count.
    begin = {0: start, 1: round(1024e9 / rate), 2: round(1024e9 * catch_up), 4: start + round(1e9 * last)}
    for place, word in {**begin, 5: 0, 6: 0, 7: 0, 8: fault, 3: count}.items():
        shared.words[place] = word
    while shared.words[5] < shared.words[3]:
        before = time.monotonic()
        opener.run_live(frame[:60], 1024, 64)
        time.sleep(max(0.0001, (time.monotonic() - before) / 9))
    took = (time.monotonic_ns() - start) / 1e9
    time.sleep(0.2)
    opened = int(shared.words[5])
    one = states[:opened]
    tries, back = one["arrived"] & TRIES, one["answered"] & TRIES
    is_late, is_elsewhere = (one["answered"] & LATE) > 0, (one["answered"] & ELSEWHERE) > 0
    is_translated = (tries > 0) & (one["address"] >> 8 != ADDRESS >> 8)
    counts = {
        "established": (back > 0) & ~is_late & ~is_elsewhere,
        "lost there": tries == 0,
        "lost back": (tries > 0) & (back == 0) & ~is_elsewhere,
        "opened twice": tries > 1,
        "answered twice": back > 1,
        "late": is_late,
        "from another port": is_elsewhere,
        "translated": is_translated,
    }
    found = {name: int(np.sum(which)) for name, which in counts.items()}
    print(json.dumps({"opened": opened, "unsent": int(shared.words[6]), "rate": opened / took, **found}), flush=True)
"""

DEVICE = """
import struct, sys
sys.path.insert(0, sys.argv[1])
from lossratio.bpf import Array, Attachment, ObjectFile, Table

def index(name):
    return int(open(f"/sys/class/net/{name}/ifindex").read())

kept = []
for here, there, fault in ((sys.argv[3], sys.argv[4], sys.argv[5]), (sys.argv[4], sys.argv[3], sys.argv[6])):
    kind, every = fault.split(":")
    twice, seen, leaving = Table.create("devices", 4, 4, 2, "twice"), Array(8, "seen"), struct.pack("=I", index(there))
    for key in range(2):
        twice.update(struct.pack("=I", key), leaving)
    words = {"EVERY": struct.pack("=I", int(every)), "COPIES": struct.pack("=I", kind == "twice")}
    with open(sys.argv[2], "rb") as file:
        program = ObjectFile(file.read()).load("device", {"seen": seen, "twice": twice}, {"LEAVING": leaving, **words})
    kept += [Attachment(program, index(here), "native"), program, twice]
print("ready", flush=True)
sys.stdin.read()
"""

DEVICE_PROGRAM = """
#include "program.h"
extern u64 seen;
extern void *twice;
CONSTANT u32 LEAVING, EVERY, COPIES;
PROGRAM int forward(struct xdp_md *context)
{
    u64 number = __sync_fetch_and_add(&seen, 1);
    if (EVERY && number % EVERY == 0) {
        if (COPIES)
            return redirect_map(&twice, 0, 1 << 3);
        return XDP_DROP;
    }
    return redirect(LEAVING, 0);
}
"""


class Network:
    """Two namespaces: a tester with two ports, and a device between them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tester, self.device = (f"{name}-{os.getpid()}" for name in ("openers", "between"))
        for name in (self.tester, self.device):
            _run("ip", "netns", "add", name)
        for near, other in (("near", "west"), ("far", "east")):
            ends = ("name", near, "netns", self.tester, "type", "veth", "peer", "name", other, "netns", self.device)
            _run("ip", "link", "add", *ends)
        _run("ip", "-n", self.tester, "link", "add", "bare0", "type", "veth", "peer", "name", "bare1")
        names = {self.tester: ("near", "far", "bare0", "bare1"), self.device: ("west", "east")}
        for space, interfaces in names.items():
            for interface in interfaces:
                _run("ip", "-n", space, "link", "set", interface, "up")
                self.within(space, "ethtool", "-K", interface, "gro", "on")
        self._route()

    def _route(self) -> None:
        space = self.device
        self.within(space, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
        for interface, own, network, neighbour, port in (
            ("west", "198.18.0.1/30", "198.18.0.0/16", "198.18.0.2", "near"),
            ("east", "198.19.0.1/30", "198.19.0.0/16", "198.19.0.2", "far"),
        ):
            mac = self.address(self.tester, port)
            _run("ip", "-n", space, "address", "add", own, "dev", interface)
            _run("ip", "-n", space, "neigh", "replace", neighbour, "lladdr", mac, "dev", interface)
            _run("ip", "-n", space, "route", "add", network, "via", neighbour, "dev", interface)

    def within(self, space: str, *command: str, text: str | None = None) -> str:
        """Runs a command in a namespace."""
        return _run("ip", "netns", "exec", space, *command, text=text)

    def address(self, space: str, interface: str) -> str:
        """The MAC address of an interface."""
        return self.within(space, "cat", f"/sys/class/net/{interface}/address").strip()

    @contextmanager
    def rules(self, *lines: str) -> Iterator[None]:
        """Rules of nftables in the device."""
        text = "\n".join(("table ip between {", *lines, "}"))
        self.within(self.device, "nft", "-f", "-", text=text)
        try:
            yield
        finally:
            self.within(self.device, "nft", "flush", "ruleset")

    @contextmanager
    def faulty(self, there: str, back: str) -> Iterator[None]:
        """An XDP program in the device, with a fault each way, such as drop:4."""
        arguments = (str(ROOT / "libraries"), str(self.directory / "device.o"), "west", "east", there, back)
        with _program(self.device, DEVICE, *arguments):
            yield

    @contextmanager
    def openers(self, near: str, far: str, gateway: str) -> Iterator[Openers]:
        """The programs, at two ports."""
        arguments = (str(ROOT / "libraries"), str(self.directory / "connections.o"), near, far, gateway, "0")
        with _program(self.tester, TESTER, *arguments) as process:
            yield Openers(process)

    def close(self) -> None:
        """Takes it down."""
        for name in (self.tester, self.device):
            _run("ip", "netns", "del", name)


class Openers:
    """The three programs in their process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def open(
        self, rate: float, count: int, *, fault: int = 0, last: float = FOREVER, catch_up: float = 0.005
    ) -> dict[str, float]:
        """Opens connections, and tells what became of them.

        One of `fault` is answered from another port. Answers after `last` seconds are late. Connections that are due
        more than `catch_up` seconds ago are not opened.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([rate, count, fault, last, catch_up]) + "\n")
        self._process.stdin.flush()
        counts: dict[str, float] = json.loads(self._process.stdout.readline())
        return counts


def _run(*command: str, text: str | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


@contextmanager
def _program(space: str, script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = ("ip", "netns", "exec", space, sys.executable, "-c", script, *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait()


def compare_rates(network: Network, runs: int) -> None:
    """Both generators in turns, each through a router of the kernel without state."""
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    testbed = open_testbed(ROOT / "topologies" / "local.yaml", dut="linux_router", options={})
    try:
        with (
            testbed.ready_for(profile, integrity=Integrity.OFF, connects=True) as ready,
            network.openers("near", "far", network.address(network.device, "west")) as openers,
        ):
            for rate in KERNEL_RATES:
                embedded, kernel = [], []
                for _ in range(runs):
                    count = round(SECONDS * rate)
                    if rate in EMBEDDED_RATES:
                        trial = ready.measurer.measure(TrialInput(SECONDS, rate, exchange=Exchange()))
                        embedded.append((trial.unsent_frames or 0, trial.lost_frames or 0))
                    found = openers.open(rate, count)
                    kernel.append((found["unsent"], found["lost there"] + found["lost back"]))
                for name, each in (("afpacket", embedded), ("in the kernel", kernel)):
                    if each:
                        unsent, lost = (
                            statistics.median(column) / SECONDS / rate for column in zip(*each, strict=True)
                        )
                        click.echo(f"{name:>14} {rate:10,.0f}/s  unsent {unsent:7.2%}  lost {lost:7.2%}")
    finally:
        testbed.close()


def compare_bare(network: Network, runs: int, most: int) -> None:
    """The programs alone, over a bare link, and a large number in one trial."""
    with network.openers("bare0", "bare1", network.address(network.tester, "bare1")) as openers:
        for rate in (1e6, 1.5e6, 2e6, 3e6):
            each = [openers.open(rate, round(SECONDS * rate)) for _ in range(runs)]
            unsent, lost, reached = (
                statistics.median(column)
                for column in zip(
                    *((one["unsent"], one["lost there"] + one["lost back"], one["rate"]) for one in each), strict=True
                )
            )
            click.echo(
                f"{'bare link':>14} {rate:10,.0f}/s  unsent {unsent / SECONDS / rate:7.2%}  lost {lost:,.0f}  "
                f"opened {reached:,.0f}/s"
            )
        found = openers.open(1e6, most)
        click.echo(f"{most:,} in one trial: {json.dumps(found)}")


def compare_known(network: Network) -> None:
    """What is counted where the answer is known. Nothing stays unsent, however late."""
    rate, gateway = 100e3, network.address(network.device, "west")
    chain = "chain forward { type filter hook forward priority 0;"
    with network.openers("near", "far", gateway) as openers:

        def tell(label: str, fault: int = 0, last: float = FOREVER) -> None:
            counts = openers.open(rate, KNOWN, fault=fault, last=last, catch_up=FOREVER)
            shown = (f"{name} {value:,.0f}" for name, value in counts.items() if value and name != "rate")
            click.echo(f"{label}: {', '.join(shown)}")

        for there, back in (
            ("drop:0", "drop:0"),
            ("drop:4", "drop:0"),
            ("drop:0", "drop:4"),
            ("twice:10", "drop:0"),
            ("drop:0", "twice:10"),
        ):
            with network.faulty(there, back):
                tell(f"XDP device, {there} there, {back} back")
        tell("router, each tenth from another port", fault=10)
        tell("router, late after half of the time", last=0.5 * KNOWN / rate)
        with network.rules(chain, "iifname west numgen inc mod 4 0 drop", "}"):
            tell("nftables drops each fourth")
        with network.rules(chain, "iifname east numgen inc mod 4 0 drop", "}"):
            tell("nftables drops each fourth answer")
        for kind in ("udp_timeout", "udp_timeout_stream"):
            network.within(network.device, "sysctl", "-q", "-w", f"net.netfilter.nf_conntrack_{kind}={ENTRY_SECONDS}")
        with network.rules("chain out { type nat hook postrouting priority 100; oifname east masquerade; }"):
            tell("nftables translates")
        with network.rules(chain, f"ct state new limit rate over {LIMIT}/second burst {BURST} packets drop", "}"):
            # Connections that the rules before kept would not be new.
            time.sleep(3.0 * ENTRY_SECONDS)
            tell(f"nftables lets {LIMIT:,} a second and {BURST} pass")


@click.command(help=__doc__)
@click.option("--runs", default=5, show_default=True, help="Trials at each rate.")
@click.option("--most", default=10_000_000, show_default=True, help="Connections of the largest trial.")
@click.option("--only", multiple=True, help="Parts to run: rates, bare, known; all if none is named.")
def main(runs: int, most: int, only: tuple[str, ...]) -> None:
    """Measures, and prints."""
    compiler = runpy.run_path(str(ROOT / "tools" / "bpf_objects.py"))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for stem, text in (("connections", PROGRAM), ("device", DEVICE_PROGRAM)):
            source = directory / f"{stem}.c"
            source.write_text(text)
            compiler["compile_program"](source, source.with_suffix(".o"))
        network = Network(directory)
        try:
            if not only or "known" in only:
                compare_known(network)
            if not only or "rates" in only:
                compare_rates(network, runs)
            if not only or "bare" in only:
                compare_bare(network, runs, most)
        finally:
            network.close()


if __name__ == "__main__":
    main()
