"""What sequence numbers and the examination of frames cost the embedded generator: its largest rates, and time.

Each case is measured several times in turn, with and without examination, as other work on the machine comes and goes.
The best of all is what the generator can do. All frames must come back.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from statistics import median

import click
from generator import TOPOLOGY, bare_link, bridged

from lossratio.agent.core.configuration import Configuration
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import AfPacketGenerator, load_topology
from lossratio.traffic import AgentClient, Plan, PortPair, TrafficPort, load_profile, make_configuration

OVERLOAD, DURATION = 2e6, 0.3
CASES = (("ethip4-udp", 64), ("ethip4-udp-1mflows", 64), ("ethip4-udp", 1518))


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often each case is measured, with and without.")
@click.option("--trials", default=8, show_default=True, help="Trials of each.")
def main(rounds: int, trials: int) -> None:
    """Prints the largest rate and the median time that a trial takes beyond its traffic."""
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
            measure(agent, path, PortPair(TrafficPort("west", west), TrafficPort("east", east)), rounds, trials)


def measure(agent: AgentClient, path: str, pair: PortPair, rounds: int, trials: int) -> None:
    """Prints a line for each case, with and without examination."""
    for profile, size in CASES:
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
        (counters,) = agent.run(Plan(((OVERLOAD, DURATION),))).directions
        elapsed = counters.elapsed_s or DURATION
        yield counters.received_frames / elapsed, time.monotonic() - begin - elapsed


if __name__ == "__main__":
    main()
