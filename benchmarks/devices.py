"""Devices of this machine: what each kind forwards, and whether searches find the rates of policers.

    python benchmarks/devices.py forward --only bridge
    python benchmarks/devices.py policers --beside 0 --runs 20
    TREX_HOME=/opt/trex python benchmarks/devices.py trex

TREX_HOME names an installation of TRex.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import click
from first_numbers import busy_programs
from generator import ROOT, UDP, row

from lossratio.errors import LossRatioError
from lossratio.measurements import TestPlace
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput
from lossratio.measurements.throughput.limits import UNSENT_LIMIT
from lossratio.mlrsearch import SearchGoal
from lossratio.results import RunDirectory, TestIdentity, doubts_of
from lossratio.testbed import open_testbed
from lossratio.testbed.testbed import Testbed
from lossratio.topology import TREX_HOME
from lossratio.traffic import TrafficProfile, load_profile
from lossratio.trials import TrialInput, missing_frames


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
    with open_testbed(file, dut="linux_bridge", options=options) as testbed, busy_programs(beside):
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


GENERATORS = {"embedded": TOPOLOGIES / "local.yaml", "TRex": TOPOLOGIES / "local-trex.yaml"}
SHAPES: tuple[dict[str, Any], ...] = (
    {"frame_size": 64},
    {"frame_size": 1518},
    {"frame_size": "IMIX_v4_1"},
    {"frame_size": 78, "name_or_path": "ethip6-udp"},
    {"frame_size": 68, "name_or_path": "dot1q-ip4base"},
    {"frame_size": 64, "bidirectional": False},
)
TREX_POLICER = (10_000, 5_000)
"""Rate and burst of the policer of each shape."""

LOADS = (50_000, 100_000, 200_000)
TRIALS = 8
TOLERANCE = 3e-4
"""Share by which a policer may miss what it should pass."""

BATCH = 2e-3
"""Seconds of traffic that TRex in software mode may send at once, so that the policer's rate counts for less time."""


@dataclass(frozen=True)
class Outcome:
    """The bounds of a policer with one generator, in frames per second per interface."""

    lower: float
    """The relevant lower bound."""
    upper: float
    """The relevant upper bound."""
    trials: int
    """How many trials it took."""
    version: str
    """The generator's version."""
    reason: str | None
    """Why the result is irregular; None if it is regular."""


@main.command()
@click.option("--duration", default=2.0, show_default=True, help="Seconds of a trial.")
@click.option("--width", default=0.005, show_default=True, help="Relative width that bounds must reach.")
@click.option("--catch-up", default="50 ms", show_default=True, help="What the embedded generator makes up for.")
@click.option("--policer", default=TREX_POLICER, show_default=True, type=(int, int), help="Rate N and burst B.")
@click.option("--beside", is_flag=True, help="Measure with the embedded generator, too.")
def trex(duration: float, width: float, catch_up: str, policer: tuple[int, int], beside: bool) -> None:
    """Measures what TRex in software mode finds for six policers in the local testbed, and what its trials cost.

    A policer of rate N and burst B passes N + (B - 1)/T frames per second in trials of T seconds from rest. TRex runs
    from the installation that TREX_HOME names. On a busy machine, the embedded generator is stalled for milliseconds in
    most trials; the policers' buckets hold the frames that it then makes up for.
    """
    home = os.environ.get(TREX_HOME)
    if not home:
        raise click.ClickException(f"{TREX_HOME} is not set. Set it to the directory in which TRex is installed")
    names = ["embedded", "TRex"] if beside else ["TRex"]
    rate, burst = policer
    truth = rate + (burst - 1) / duration
    click.echo(
        f"Trials of {duration:g} s, goal width {width:.2%}; a policer of {rate} and {burst} passes {truth:.0f} fps.\n"
    )
    click.echo(f"{'frames':>34}  {'generator':10} {'lower':>9} {'upper':>9} {'trials':>7}  encloses the truth")
    with tempfile.TemporaryDirectory() as directory:
        files = {name: with_catch_up(GENERATORS[name], catch_up, Path(directory)) for name in names}
        for shape in SHAPES:
            profile = load_profile(**{"name_or_path": "ethip4-udp", **shape})
            for name, file in files.items():
                outcome = bounds_of(file, rate, burst, duration, width, profile)
                click.echo(
                    f"{described(shape):>34}  {name:10} {outcome.lower:9.1f} {outcome.upper:9.1f} {outcome.trials:7}"
                    f"  {verdict(outcome, truth, rate * BATCH / duration)}  ({outcome.version})"
                )
        for name, file in files.items():
            costs(name, file)


def described(shape: Mapping[str, Any]) -> str:
    """Frames in words."""
    way = "both ways" if shape.get("bidirectional", True) else "one way"
    return f"{shape.get('name_or_path', 'ethip4-udp')}, {shape['frame_size']}, {way}"


def costs(name: str, file: Path) -> None:
    """Prints what trials of 1 s take beside their traffic, how well they keep a load, and who lost frames.

    The bridge between the ports forwards more than that, so what is lost beyond the frames that the generator itself
    dropped is in doubt.
    """
    click.echo(f"\n{name}: {TRIALS} trials of 1 s, both ways, through a bridge; medians, and the worst in parentheses")
    names = f"{'load':>8} {'beside the traffic':>24} {'stretch':>24} {'unsent':>22} {'lost':>8} {'by generator':>14}"
    click.echo(f"{names} {'measured again':>15}")
    profile = load_profile("ethip4-udp", frame_size=64)
    with closing(open_testbed(file, dut="linux_bridge")) as testbed, testbed.ready_for(profile) as ready:
        waits = ready.conditions.timing.wait_after_s
        for load in LOADS:
            outputs = [ready.measurer.measure(TrialInput(1.0, float(load))) for _ in range(TRIALS)]
            cost = [1e3 * ((output.elapsed or 1.0) - 1.0 - waits) for output in outputs]
            stretch = [1e3 * max(each.stretch_s or 0.0 for each in output.directions) for output in outputs]
            unsent = [(output.unsent_frames or 0) / (2 * load) for output in outputs]
            lost = sum(output.lost_frames or 0 for output in outputs)
            again = sum(output.repeats > 0 for output in outputs)
            dropped = sum(known.generator_drops for output in outputs if (known := missing_frames(output)))
            click.echo(
                f"{load:8} {_both(cost, '{:.1f} ms'):>24} {_both(stretch, '{:.1f} ms'):>24} "
                f"{_both(unsent, '{:.3%}'):>22} {lost:8} {dropped:14} {f'{again} of {TRIALS}':>15}"
            )


def _both(values: Sequence[float], form: str) -> str:
    return f"{form.format(statistics.median(values))} ({form.format(max(values))})"


def with_catch_up(file: Path, catch_up: str, directory: Path) -> Path:
    """A copy of a topology file whose generator, if it is the embedded one, makes up for longer stalls."""
    copy = directory / file.name
    copy.write_text(file.read_text().replace("catch_up: 5 ms", f"catch_up: {catch_up}"))
    return copy


def bounds_of(file: Path, rate: int, burst: int, duration: float, width: float, profile: TrafficProfile) -> Outcome:
    """Searches for the largest load without loss through a policer."""
    goal = SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.75,
        initial_trial_duration=duration,
        final_trial_duration=duration,
        duration_sum=duration,
        width=width,
    )
    request = SearchRequest(goals=(goal,), profile=profile, min_load=0.5 * rate, max_load=2.0 * rate)
    options = {"police": str(rate), "burst": str(burst)}
    opened = open_testbed(file, dut="linux_bridge", options=options)
    with tempfile.TemporaryDirectory() as directory, closing(opened) as testbed:
        place = TestPlace(TestIdentity(name=f"{file.stem} {rate}", suite="trex"), RunDirectory(Path(directory)))
        result = find_conditional_throughput(testbed, request, place)
    (report,) = result.goals
    if report.result is None:
        raise click.ClickException(f"{file.stem}: {result.error}")
    lower, upper = report.result.relevant_lower_bound, report.result.relevant_upper_bound
    if lower is None or upper is None:
        raise click.ClickException(f"{file.stem}: no regular result: {report.result.reason}")
    version = str(result.conditions.generator.get("version") or result.conditions.generator["kind"])
    return Outcome(lower.per_interface_fps, upper.per_interface_fps, len(result.trials), version, report.result.reason)


def verdict(outcome: Outcome, truth: float, missing: float) -> str:
    """Whether the bounds enclose the truth, except for what a batch of the generator may cost."""
    if outcome.reason is not None:
        return f"irregular: {outcome.reason}"
    if outcome.lower <= truth * (1 + TOLERANCE) and outcome.upper >= truth * (1 - TOLERANCE) - missing:
        return "yes"
    return "NO"


if __name__ == "__main__":
    main()
