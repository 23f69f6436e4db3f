"""Devices of this machine: what each kind forwards, and whether searches find the rates of policers.

python benchmarks/devices.py forward --only bridge
python benchmarks/devices.py policers --beside 0 --runs 20
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import click
from generator_in_kernel import ROOT, UDP, computing, row

from lossratio.errors import LossRatioError
from lossratio.measurements import TestPlace
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput
from lossratio.measurements.throughput.limits import UNSENT_LIMIT
from lossratio.mlrsearch import SearchGoal
from lossratio.results import RunDirectory, TestIdentity, doubts_of
from lossratio.testbed import open_testbed
from lossratio.testbed.testbed import Testbed
from lossratio.traffic import load_profile


@click.group(help=__doc__)
def main() -> None:
    """Devices of this machine."""


TOPOLOGIES = Path(__file__).parent.parent / "topologies"
CABLE = TOPOLOGIES / "local-cable.yaml"
THROUGH_A_NODE = TOPOLOGIES / "local.yaml"
KILO = 1e3
LEAST_EVIDENCE = 1.0
"""Seconds of trials for each bound."""

TUNNELLED = "ethip4vxlan-l2bdbase"


@dataclass(frozen=True)
class Device:
    """A device of the table."""

    name: str
    """What the table calls it."""
    kind: str
    """Kind of the DUT."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What it is asked for."""
    profile: str = "ethip4-ip4base"
    """Traffic profile."""
    frame_size: int = 64
    """Bytes with FCS."""


DEVICES = (
    Device("bare cable", "none"),
    Device("Linux bridge", "linux_bridge"),
    Device("Linux bridge, 100 rules", "linux_bridge", {"rules": "100"}),
    Device("Linux bridge between VXLAN tunnels", "linux_bridge", {"vxlan": "true"}, TUNNELLED, 114),
    Device("Linux router, IPv4", "linux_router"),
    Device("Linux router, IPv4, 10,000 routes", "linux_router", {"routes": "20000"}, "ethip4-ip4scale20k"),
    Device("Linux router, IPv4, 120,000 routes", "linux_router", {"routes": "120000"}, "ethip4-ip4scale120k"),
    Device("Linux router, IPv6", "linux_router", {"ip_version": "6"}, "ethip6-ip6base", 78),
    Device("Linux router, 300 rules in a thread", "linux_router", {"rules": "300"}),
    Device("testpmd, io", "testpmd"),
    Device("testpmd, mac", "testpmd", {"mode": "mac"}),
    Device("Open vSwitch, OpenFlow", "ovs"),
    Device("Open vSwitch, learning", "ovs", {"forwarding": "learning"}),
    Device("Open vSwitch, 10,000 rules each way", "ovs", {"rules": "10000"}, "ethip4-ip4scale20k"),
    Device("VPP, cross-connect", "vpp"),
    Device("VPP, bridge domain", "vpp", {"forwarding": "l2bd"}),
    Device("VPP, VXLAN tunnels", "vpp", {"forwarding": "l2bd", "vxlan": "true"}, TUNNELLED, 114),
    Device("VPP, IPv4", "vpp", {"forwarding": "ip4"}),
    Device("VPP, IPv4, 120,000 routes", "vpp", {"forwarding": "ip4", "routes": "120000"}, "ethip4-ip4scale120k"),
    Device("VPP, IPv4, ACL of 50 rules", "vpp", {"forwarding": "ip4", "acl": "50"}),
    Device("VPP, IPv6", "vpp", {"forwarding": "ip6"}, "ethip6-ip6base", 78),
)


@dataclass(frozen=True)
class Figures:
    """What was measured in one way of sending, in frames per second per interface."""

    mrr: float
    """Forwarding rate at maximum load."""
    throughput: float | None
    """Conditional throughput without loss; None: even the minimum load lost frames."""
    is_limit: bool
    """Whether the maximum load was forwarded without loss, so that the generator is the limit."""
    is_stalled: bool
    """Whether frames that the stalled generator could not send in time have bounded the throughput."""

    def __str__(self) -> str:
        mark = "+" if self.is_limit else "*" if self.is_stalled else ""
        throughput = "-" if self.throughput is None else f"{self.throughput / KILO:.0f}{mark}"
        return f"{self.mrr / KILO:8.0f} {throughput:>8}"


@main.command("forward")
@click.option("--max-load", default=500.0, show_default=True, help="Largest load, in thousand frames per second.")
@click.option(
    "--duration",
    default=0.2,
    show_default=True,
    help="Seconds of a trial; what a short one sends may fit into VPP's rings.",
)
@click.option("--only", default="", help="Only devices with these letters in their names, and the cable.")
def forward(max_load: float, duration: float, only: str) -> None:
    """Measures what every kind of device forwards on this machine, one way and both ways, beside the bare cable.

    Builds local testbeds, sets up each device in turn, and measures its forwarding rate at maximum load (MRR) and its
    zero-loss throughput by short trials (a goal of RFC 9971). The table says which ran for real, and why others did
    not. VPP runs where the environment variable VPP_HOME says that it is installed.
    """
    vpp = os.environ.get("VPP_HOME")
    click.echo(
        "Thousand frames per second per interface; + is all that was asked for, * what a stalled generator sent."
    )
    click.echo(f"Trials without loss of {duration:g} s. VPP_HOME: {vpp or 'not set'}")
    goal = SearchGoal(0.0, 0.5, duration, max(2.0 * duration, LEAST_EVIDENCE), 0.02, name="no loss")
    click.echo(f"{'':42} {'size':>5} | {'one way':^17} | {'both ways':^17} |")
    click.echo(f"{'device':42} {'bytes':>5} | {'MRR':>8} {'no loss':>8} | {'MRR':>8} {'no loss':>8} | ran")
    for device in DEVICES:
        if device is not DEVICES[0] and only not in device.name:
            continue
        click.echo(f"{device.name:42} {device.frame_size:>5} | ", nl=False)
        try:
            rows = measured(device, max_load * KILO, goal)
            click.echo("".join(f"{figures} | " for figures in rows) + "for real")
        except LossRatioError as error:
            click.echo(f"not: {error}")


def measured(device: Device, max_load: float, goal: SearchGoal) -> Iterator[Figures]:
    """Sets a device up, and measures it one way and both ways.

    Raises:
        LossRatioError: If the device is not available here, or a measurement failed.
    """
    file = CABLE if device.kind == "none" else THROUGH_A_NODE
    testbed = open_testbed(file, dut=device.kind, options=device.options)
    try:
        for bidirectional in (False, True):
            yield figures_of(testbed, device, max_load, goal, bidirectional=bidirectional)
    finally:
        testbed.close()


def figures_of(testbed: Testbed, device: Device, max_load: float, goal: SearchGoal, *, bidirectional: bool) -> Figures:
    """Measures one way of sending."""
    profile = load_profile(device.profile, frame_size=device.frame_size, bidirectional=bidirectional)
    with tempfile.TemporaryDirectory() as directory:
        identity = TestIdentity(name="device", suite="benchmark", documentation="", tags=())
        place = TestPlace(identity, RunDirectory(Path(directory)))
        mrr = measure_mrr(testbed, MrrRequest(profile=profile, max_load=max_load, trials=3, trial_duration=0.5), place)
        search = SearchRequest(goals=(goal,), profile=profile, max_load=max_load, timeout=60.0)
        (report,) = find_conditional_throughput(testbed, search, place).goals
    result, rate = report.result, None if mrr.mrr is None else mrr.mrr.mean.per_interface_fps
    value = None if result is None else result.conditional_throughput
    top = result is not None and result.relevant_upper_bound == result.relevant_lower_bound
    stalled = result is not None and result.reason is not None and result.reason.startswith(UNSENT_LIMIT)
    throughput = None if value is None else value.per_interface_fps
    return Figures(rate or 0.0, throughput, is_limit=top, is_stalled=stalled)


POLICERS = (2_900, 20_000, 200_000, 340_000, 700_000, 1_500_000)
"""Rates of the policers in frames per second."""

BUCKETS = (0.02, 0.001)
"""What their buckets hold, in seconds of traffic. The shallow one drops frames that the generator makes up for after a
longer stall."""

POLICED_SECONDS = 0.5
"""Seconds of a trial of their searches."""


@main.command()
@click.option("--runs", default=5, show_default=True, help="Searches for each policer.")
@click.option("--beside", "besides", multiple=True, default=(0, 4, 15), help="Programs beside the searches.")
@click.option("--bucket", "buckets", multiple=True, default=BUCKETS, help="Seconds of traffic in a policer's bucket.")
@click.option("--policer", "rates", multiple=True, default=POLICERS, help="Its rate in frames per second.")
def policers(runs: int, besides: tuple[int, ...], buckets: tuple[float, ...], rates: tuple[int, ...]) -> None:
    """Counts how many searches for the throughput of policers enclose the truth, with the generator `xdp`.

    Each policer has a local testbed of its own. A search takes some ten seconds.
    """
    text = (ROOT / "topologies" / "local-xdp.yaml").read_text()
    with tempfile.TemporaryDirectory() as directory:
        own = Path(directory) / "policers.yaml"
        own.write_text(text.replace("name: local-xdp", f"name: policers-{os.getpid()}").replace("1 Mfps", "4 Mfps"))
        for beside, bucket, rate in product(besides, buckets, rates):
            policer(own, runs, beside, bucket, rate)


def policer(file: Path, runs: int, beside: int, bucket: float, rate: int) -> None:
    """Searches for a policer's throughput, one way: do the bounds enclose the truth, or is there a doubt?"""
    goal = SearchGoal(0.0, 0.5, final_trial_duration=POLICED_SECONDS, duration_sum=1.5, width=0.005, name="no loss")
    profile = load_profile(UDP, frame_size=64, bidirectional=False)
    counts = dict.fromkeys(("enclosed", "with a doubt", "WRONG"), 0)
    seen: list[str] = []
    burst = math.ceil(rate * bucket)
    options = {"police": rate, "burst": burst}
    with open_testbed(file, dut="linux_bridge", options=options) as testbed, computing(beside):
        # The kernel counts whole nanoseconds per frame.
        truth = 1e9 / (10**9 // rate) + (burst - 1) / POLICED_SECONDS
        request = SearchRequest(goals=(goal,), profile=profile, min_load=truth / 10, max_load=2 * truth)
        for run in range(runs):
            place = TestPlace(TestIdentity(name=f"{beside} {rate} {run}", suite="policers"), RunDirectory(file.parent))
            result = find_conditional_throughput(testbed, request, place)
            found = result.goals[0].result
            assert found is not None
            lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
            least = 0.0 if lower is None else lower.per_interface_fps
            most = math.inf if upper is None else upper.per_interface_fps
            # Two frames more or less in a trial.
            encloses = least <= truth + 4 and truth - 4 <= most
            doubts = [*doubts_of([result])[0], *([found.reason] if found.reason else [])]
            counts["enclosed" if encloses else "with a doubt" if doubts else "WRONG"] += 1
            seen += [f"{least / 1e3:.3f} to {most / 1e3:.3f}{': ' if doubts else ''}{'; '.join(map(str, doubts))}"]
    row(
        f"xdp: policer, {truth / 1e3:.1f} kfps, bucket of {1e3 * bucket:g} ms, beside {beside} programs",
        *(f"{count} {name}" for name, count in counts.items() if count),
        f"load {os.getloadavg()[0]:.0f}",
    )
    for line in seen:
        click.echo(f"    {line}")


if __name__ == "__main__":
    main()
