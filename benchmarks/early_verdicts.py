"""Early verdicts on real frames: whether they agree with those of full trials, and how much time they save.

Builds the local testbed, with a bridge that is policed to a rate in each direction. "verdicts" watches trials near the
rate and never ends them. Each has a limit for its loss ratio, which is drawn near the loss that the policer should
show. An early verdict that the whole trial does not bear out is a fault. "search" finds the throughput of RFC 2544 (or
other goals) with and without early verdicts, by the clock on the wall.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click
from generator import SETTLE_TIME, TOPOLOGY, bridged

from lossratio.measurements import TestPlace
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput, goal_set_from
from lossratio.nodes import NodeSession
from lossratio.results import RunDirectory, TestIdentity
from lossratio.testbed import open_testbed
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import AfPacketGenerator, AutoGenerator, XdpGenerator, load_topology
from lossratio.traffic import AgentClient, Plan, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import IN_FLIGHT, TrialInput, output_from_counters

RATE = 20_000
"""Frames per second and direction that the bridge passes."""

BURST_SECONDS = 0.02
"""Seconds of that rate that its bucket holds."""

CATCH_UP = 5e-3


@click.group(help=__doc__)
def main() -> None:
    """Early verdicts on real frames."""


_topology = click.option(
    "--topology", default=TOPOLOGY, type=click.Path(path_type=Path), show_default=True, help="A local testbed."
)
_rate = click.option("--rate", default=RATE, show_default=True, help="Frames per second that the bridge passes.")


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
    """Watches trials near the rate, and compares early verdicts with those of the whole trials."""
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
def search(goals: str, max_load: float, rounds: int, topology: Path, rate: int) -> None:
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
                click.echo(f"  {report.goal.name}: {report.result}")
    click.echo(f"share of the time: {median(seconds[True]) / median(seconds[False]):.2f}")


if __name__ == "__main__":
    main()
