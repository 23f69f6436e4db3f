"""Measurements of RFC 2544 beside a known truth, and what early verdicts of trials save.

    python study/benchmarks/rfc2544.py truths                   # real frames, on the local testbed
    python study/benchmarks/rfc2544.py truths --only reset      # one part of it
    python study/benchmarks/rfc2544.py truths --simulated       # seconds, without namespaces
    python study/benchmarks/rfc2544.py verdicts --trials 100
    python study/benchmarks/rfc2544.py early --rounds 1

Real frames go through the local testbed.
"""

from __future__ import annotations

import math
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click
import yaml

from lossratio.agent import Plan
from lossratio.measurements import Progress, TestPlace, measure
from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
from lossratio.measurements.recovery import Recovery, RecoveryRequest, measure_recovery
from lossratio.measurements.reset import ResetRequest, measure_reset
from lossratio.measurements.rfc2544 import QUICK, Rfc2544Request, run_rfc2544, write_rfc2544_report
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput, goal_set_from
from lossratio.nodes import NodeSession
from lossratio.results import RunDirectory, TestIdentity
from lossratio.testbed import Ready, Testbed, open_testbed
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import AfPacketGenerator, AutoGenerator, XdpGenerator, load_topology
from lossratio.traffic import RFC2544_FRAME_SIZES, AgentClient, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import IN_FLIGHT, Measurer, TrialInput, TrialOutput, output_from_counters
from lossratio_study.bridge import bridged


@click.group(help=__doc__)
def main() -> None:
    """Measurements of RFC 2544."""


TOPOLOGIES = Path(__file__).parents[2] / "topologies"
PROFILE = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
RATE, BURST_RATE = 10_000, 40_000
BUCKETS = {50: 1.0, 1000: 1.0, 10_000: 1.0, 100_000: 0.1}
"""Buckets, each with its share of the repetitions: bursts of the last one take 3 s."""

DOWN = 0.25
RESET_LOAD = 5_000.0
STOPPED_RATE = 3_000.0
"""Frames per second: some 250 frames wait in the switch's socket, so that short stalls of a busy machine lose none."""

PARTS = ("bursts", "recovery", "reset", "whole")

_CYCLE = """
t0=$(date +%s%N); ip link set dev "$1" down; t1=$(date +%s%N); sleep "$2"
t2=$(date +%s%N); ip link set dev "$1" up; t3=$(date +%s%N)
echo $t0 $t1 $t2 $t3
"""


def _place(directory: Path, name: str) -> TestPlace:
    return TestPlace(TestIdentity(name=name, suite="rfc2544"), RunDirectory(directory))


def _row(name: str, truth: float, values: list[float], unit: str) -> None:
    errors = [abs(value - truth) for value in values]
    click.echo(
        f"{name:<34} truth {truth:>10,.4f} {unit:<6}  median {statistics.median(values):>10,.4f}  "
        f"error: median {statistics.median(errors):.4f}, most {max(errors):.4f}, of {len(values)}"
    )


def _bursts(file: Path, directory: Path, repeats: int) -> None:
    share = RATE / BURST_RATE
    for bucket, part in BUCKETS.items():
        truth = math.floor((bucket - share) / (1.0 - share))
        # The bucket is filled by a command: waiting for that takes up to 10 s.
        options = {"police": RATE, "burst": bucket, "reset": True}
        with open_testbed(file, dut="linux_bridge", options=options) as testbed:
            request = BackToBackRequest(
                profile=PROFILE,
                throughput=RATE,
                max_load=BURST_RATE,
                repeats=max(1, round(part * repeats)),
                longest_burst=max(0.02, 1.3 * truth / BURST_RATE),
                settle=0.05,
            )
            result = measure_back_to_back(testbed, request, _place(directory, f"bursts {bucket}"))
        values = result.back_to_back
        assert values is not None
        _row(f"back-to-back, bucket {bucket}", truth, [search.longest_frames for search in values.searches], "frames")


class _Stopped:
    """A program of a DUT that is stopped for a known time and then continues."""

    def __init__(self, testbed: Testbed) -> None:
        (dut,) = testbed.duts
        switch: Any = dut
        program = switch.daemons[-1].program
        self._pid = _pid_here(int(switch.node.run("cat", f"{program.files}pid").split()[0]))
        self.moments: list[tuple[float, float]] = []

    def __call__(self) -> None:
        # Another phase between two frames each time.
        time.sleep(random.random() / RESET_LOAD)
        os.kill(self._pid, signal.SIGSTOP)
        stopped = time.monotonic()
        time.sleep(DOWN)
        os.kill(self._pid, signal.SIGCONT)
        self.moments.append((stopped, time.monotonic()))


def _pid_here(pid: int) -> int:
    """The id of Open vSwitch's process, which has another id in the testbed's namespace of processes."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            # It has just ended.
            continue
        if fields["Name"].strip() == "ovs-vswitchd" and int(fields["NSpid"].split()[-1]) == pid:
            return int(status.parent.name)
    raise click.ClickException("Open vSwitch does not run on this machine.")


class _StoppedInOverload(Recovery):
    """System recovery of a device that is stopped while the load drops."""

    def __init__(self, stop: _Stopped, after: float) -> None:
        self._stop = stop
        self._after = after

    def measurer(self, request: RecoveryRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Stops the device once in each trial."""
        usual, stop, after = super().measurer(request, testbed, ready), self._stop, self._after

        class Stopping:
            def measure(self, trial: TrialInput) -> TrialOutput:
                timer = threading.Timer(after, stop)
                timer.start()
                output = usual.measure(trial)
                timer.join()
                return output

        return Stopping()


def _recovery(directory: Path, repeats: int, simulated: bool) -> None:
    if simulated:
        file = _simulated(directory, recovery=0.1)
        with open_testbed(file) as testbed:
            _recover(testbed, directory, repeats, 0.1)
        return
    local = TOPOLOGIES / "local.yaml"
    with open_testbed(local, dut="linux_bridge", options={"police": RATE, "burst": 200}) as testbed:
        _recover(testbed, directory, repeats, 0.0)
    with open_testbed(local, dut="ovs") as testbed:
        stop = _Stopped(testbed)
        changes: list[tuple[float, float]] = []

        def note(progress: Progress) -> None:
            (timeline,) = progress.trial.output.timelines
            changes.append((timeline.began, timeline.began + timeline.steps[1].start))

        request = RecoveryRequest(
            profile=PROFILE,
            throughput=STOPPED_RATE,
            max_load=1.1 * STOPPED_RATE,
            repeats=repeats,
            duration=0.5,
            limit=1.0,
        )
        kind = _StoppedInOverload(stop, 0.5 - DOWN / 2)
        result = measure(kind, testbed, request, _place(directory, "stopped in the overload"), note)
    assert result.recovery is not None
    trials = zip(result.recovery.times, stop.moments, changes, strict=True)
    # A trial that was measured again had its stop in the first attempt.
    pairs = [
        (time.recovery_s or 0.0, max(0.0, went_on - change))
        for time, (stopped, went_on), (began, change) in trials
        if stopped > began
    ]
    _differences("recovery, stopped until after it", [one for one, _ in pairs], [other for _, other in pairs])


def _recover(testbed: Testbed, directory: Path, repeats: int, truth: float) -> None:
    request = RecoveryRequest(
        profile=PROFILE, throughput=RATE, max_load=2.0 * RATE, repeats=repeats, duration=1.0, limit=1.0
    )
    result = measure_recovery(testbed, request, _place(directory, "recovery"))
    assert result.recovery is not None
    _row("system recovery of a bucket", truth, [time.recovery_s or 0.0 for time in result.recovery.times], "s")


def _reset(directory: Path, repeats: int, simulated: bool) -> None:
    if simulated:
        with open_testbed(_simulated(directory, downtime=DOWN)) as testbed:
            _reset_times("model", testbed, directory, repeats, None, lambda: [DOWN] * repeats)
        return
    with open_testbed(TOPOLOGIES / "local.yaml", dut="ovs") as testbed:
        stop = _Stopped(testbed)
        _reset_times(
            "stopped", testbed, directory, repeats, stop, lambda: [went_on - began for began, went_on in stop.moments]
        )
    truths: list[float] = []
    with open_testbed(TOPOLOGIES / "local.yaml", dut="linux_bridge") as testbed:
        (dut,) = testbed.duts
        bridge: Any = dut

        def cycle() -> None:
            clock = [
                int(text) / 1e9 for text in bridge.node.run("sh", "-c", _CYCLE, "cycle", bridge.stem, str(DOWN)).split()
            ]
            truths.append((clock[2] + clock[3] - clock[0] - clock[1]) / 2.0)

        _reset_times("bridge down", testbed, directory, repeats, cycle, lambda: truths)


def _reset_times(
    name: str,
    testbed: Testbed,
    directory: Path,
    repeats: int,
    reset: Callable[[], None] | None,
    known: Callable[[], list[float]],
) -> None:
    request = ResetRequest(profile=PROFILE, throughput=RESET_LOAD, reset=reset, repeats=repeats, lead=0.5, limit=0.5)
    result = measure_reset(testbed, request, _place(directory, f"reset {name}"))
    assert result.reset is not None
    times = result.reset.times
    _differences(f"reset, {name}, by time stamps", [time.time_stamp_s or 0.0 for time in times], known())
    _differences(f"reset, {name}, by frame loss", [time.loss_method_s for time in times], known())


def _differences(name: str, measured: list[float], known: list[float]) -> None:
    _row(name, 0.0, [value - real for value, real in zip(measured, known, strict=True)], "s")


def _simulated(directory: Path, **model: object) -> Path:
    topology = yaml.safe_load((TOPOLOGIES / "simulated-device.yaml").read_text())
    topology["nodes"]["DUT1"]["sut"] = {"model": "device", "capacity": RATE, **model}
    file = directory / "simulated.yaml"
    file.write_text(yaml.safe_dump(topology))
    return file


def _whole(directory: Path, simulated: bool) -> None:
    profiles = [load_profile("ethip4-udp", frame_size=size, bidirectional=False) for size in RFC2544_FRAME_SIZES]
    name = "simulated-device.yaml" if simulated else "local.yaml"
    options = {} if simulated else {"police": RATE, "burst": 200}
    began = time.monotonic()
    with open_testbed(TOPOLOGIES / name, dut=None if simulated else "linux_bridge", options=options) as testbed:
        request = Rfc2544Request(profiles, settings=QUICK, max_load=None if simulated else BURST_RATE)
        run = run_rfc2544(testbed, request, _place(directory, "all"))
    click.echo(
        f"all tests, quick: {len(run.parts)} in {time.monotonic() - began:.1f} s; {run.problems or 'no problem'}"
    )
    for path in write_rfc2544_report(run, directory):
        click.echo(str(path))


@main.command("truths")
@click.option("--simulated", is_flag=True, help="Simulated devices instead of real frames.")
@click.option("--repeats", default=20, show_default=True, help="Repetitions of each measurement.")
@click.option("--only", multiple=True, type=click.Choice(PARTS), default=PARTS, help="Parts of the benchmark.")
def compare_with_truths(simulated: bool, repeats: int, only: tuple[str, ...]) -> None:
    """Measures back-to-back frames, system recovery and reset beside a known truth; and all tests with `quick`.

    The truths:

    - A policer of rate R with a bucket of B frames passes bursts of floor((B - R/L) / (1 - R/L)) frames at the rate L.
    - That policer recovers at once, as half of the overload is below its rate, and refills its bucket.
    - Open vSwitch in user space that is stopped (SIGSTOP) for a known time forwards nothing for so long. Stopped while
      the load drops, it loses frames until it goes on. The times are those of the clock that cannot be set.
    - A bridge that is down for a known time forwards nothing for so long; the time is that of the node's clock around
      the two commands, whose middle counts.
    - Simulated devices have their times in their model.
    """
    directory = Path(tempfile.mkdtemp(prefix="lossratio-rfc2544-"))
    if "bursts" in only:
        _bursts(TOPOLOGIES / ("simulated.yaml" if simulated else "local.yaml"), directory, repeats)
    if "recovery" in only:
        _recovery(directory, repeats, simulated)
    if "reset" in only:
        _reset(directory, repeats, simulated)
    if "whole" in only:
        _whole(directory, simulated)


TOPOLOGY = TOPOLOGIES / "local.yaml"
SETTLE_TIME = 0.02
PASSED_RATE = 20_000
"""Frames per second and direction that the bridge passes."""

BURST_SECONDS = 0.02
"""Seconds of that rate that its bucket holds."""

CATCH_UP = 5e-3


_topology = click.option(
    "--topology", default=TOPOLOGY, type=click.Path(path_type=Path), show_default=True, help="A local testbed."
)
_rate = click.option("--rate", default=PASSED_RATE, show_default=True, help="Frames per second that the bridge passes.")


@contextmanager
def policed_agent(topology: Path, rate: int) -> Iterator[AgentClient]:
    """An agent whose frames go through the policed bridge."""
    with ExitStack() as stack:
        testbed = stack.enter_context(LocalTestbed.use(load_topology(topology))).topology
        tg = stack.enter_context(NodeSession.connect(testbed.tg_name, testbed.nodes[testbed.tg_name]))
        generator = testbed.nodes[testbed.tg_name].generator
        options: dict[str, Any] = {"catch_up": CATCH_UP}
        if isinstance(generator, (AutoGenerator, XdpGenerator)):
            kind, options["device_cpus"] = "xdp", generator.device_cpus
        elif isinstance(generator, AfPacketGenerator):
            kind = "afpacket"
        else:
            raise click.ClickException(f"{topology}: its generator is neither afpacket nor xdp")
        agent = stack.enter_context(AgentClient.start(tg, python=generator.python))
        stack.enter_context(bridged(testbed, agent, {"police": rate, "burst": _burst(rate)}))
        pair = PortPair(TrafficPort("west", "tg0"), TrafficPort("east", "tg1"))
        traffic = load_profile("ethip4-udp", frame_size=64)
        configuration = make_configuration(traffic, [pair], settle_time=SETTLE_TIME)
        agent.configure(configuration, generator=kind, options=options)
        yield agent


@main.command()
@click.option("--trials", default=2000, show_default=True)
@click.option("--duration", default=0.25, show_default=True, help="Seconds of a trial.")
@click.option("--seed", default=1, show_default=True)
@_topology
@_rate
def verdicts(trials: int, duration: float, seed: int, topology: Path, rate: int) -> None:
    """Watches trials near a policer's rate, and compares early verdicts with those of the whole trials.

    The bridge of the local testbed is policed to the rate in each direction. No trial ends early. Each has a limit for
    its loss ratio, which is drawn near the loss that the policer should show. An early verdict that the whole trial
    does not bear out is a fault.
    """
    draw = random.Random(seed)
    # In such a trial the bucket passes its burst, too.
    knee = rate + _burst(rate) / duration
    certain, high, faults, unsent = [], 0, 0, 0
    flying: list[float] = []
    with policed_agent(topology, rate) as agent:
        for number in range(1, trials + 1):
            load = knee * draw.uniform(0.97, 1.06)
            expected = max(0.0, 1.0 - knee / load)
            above = draw.choice([0.0, 0.005, max(0.0, expected * draw.uniform(0.5, 1.5))])
            watched = agent.run(Plan(((load, duration),), above=above, in_flight=IN_FLIGHT, ends=False))
            output = output_from_counters(TrialInput(duration, load), watched.directions)
            unsent += bool(output.unsent_frames)
            high += output.loss_ratio > above
            if output.lost_frames == 0:
                flying.append(max(watched.most_missing.values()) / load)
            if watched.certain_after is not None:
                certain.append(watched.certain_after / duration)
                if output.loss_ratio <= above:
                    faults += 1
                    click.echo(f"trial {number}: {load:.0f} frames/s, limit {above:g}, early verdict {watched}")
            time.sleep(BURST_SECONDS)
    click.echo(f"{trials} trials of {duration:g} s at 0.97 to 1.06 of the knee, {unsent} with unsent frames")
    click.echo(f"{high} lose more than their limit; {len(certain)} of them are certain early, {faults} wrongly")
    click.echo(f"certain after {median(certain or [1.0]):.2f} of the trial (median)")
    flying.sort()
    most = {share: flying[min(len(flying) - 1, int(share * len(flying)))] for share in (0.5, 0.99, 1.0) if flying}
    shares = ", ".join(f"{share:.0%} of them up to {1e3 * seconds:.2f} ms" for share, seconds in most.items())
    click.echo(f"frames on their way in {len(flying)} trials without loss, in time of traffic: {shares}")
    click.echo(f"allowed for: {1e3 * IN_FLIGHT:g} ms")
    if faults:
        raise click.ClickException("Early verdicts were wrong.")


def _burst(rate: int) -> int:
    return round(BURST_SECONDS * rate)


@main.command()
@click.option("--goals", default="RFC2544", show_default=True)
@click.option("--max-load", default=200_000.0, show_default=True, help="Frames per second and direction.")
@click.option("--rounds", default=1, show_default=True, help="How often each search is made.")
@_topology
@_rate
def early(goals: str, max_load: float, rounds: int, topology: Path, rate: int) -> None:
    """Searches with and without early verdicts, by the clock on the wall."""
    wanted = goal_set_from(goals).goals
    seconds: dict[bool, list[float]] = {False: [], True: []}
    traffic = load_profile("ethip4-udp", frame_size=64)
    for number in range(rounds):
        for early in (False, True):
            with (
                tempfile.TemporaryDirectory() as folder,
                open_testbed(topology, dut="linux_bridge", options={"police": rate, "burst": _burst(rate)}) as testbed,
            ):
                place = TestPlace(
                    TestIdentity(name=f"search {number}", suite="early verdicts"), RunDirectory(Path(folder))
                )
                request = SearchRequest(
                    goals=wanted, profile=traffic, max_load=max_load, early_verdict=early, timeout=None
                )
                begin = time.monotonic()
                result = find_conditional_throughput(testbed, request, place)
                seconds[early].append(time.monotonic() - begin)
            words = "with early verdicts   " if early else "without early verdicts"
            click.echo(f"{words}  {seconds[early][-1]:6.1f} s  {len(result.trials):3} trials")
            for report in result.goals:
                bounds = [f"{bound.per_interface_fps:,.0f}" for bound in report.bounds if bound is not None]
                reason = report.result.reason if report.result is not None else result.error
                click.echo(f"  {report.goal.name}: {' to '.join(bounds) or 'no bound'} frames/s, {reason or 'regular'}")
    click.echo(f"share of the time: {median(seconds[True]) / median(seconds[False]):.2f}")


if __name__ == "__main__":
    main()
