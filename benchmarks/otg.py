"""What the Open Traffic Generator's interface costs: `otg-serve` and `otg` beside the bare generator, in one run.

Both take turns on one veth link in a network namespace of their own (needs root): the agent with afpacket, and an agent
with the program `otg`, which asks ``lossratio otg-serve`` with the same generator. Frames of 64 bytes go one way.
The cost of a trial is its time beyond duration and settle time; the rate is measured for a second at a load beyond
reach. First, the server is started several times, and asked for its version at once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPConnection
from statistics import median, quantiles

import click

from lossratio.agent.otg.generator import Tester
from lossratio.nodes import NodeSession
from lossratio.topology import Interface, Port
from lossratio.traffic import (
    AgentClient,
    Configuration,
    GeneratorNode,
    Plan,
    PortPair,
    TrafficPort,
    load_generator,
    load_profile,
    make_configuration,
)

STARTS = 10
LOAD, DURATION, BEYOND = 10_000.0, 0.2, 5e6
SETTLE = 0.05
LINK = """
ip link set lo up && sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 &&
ip link add tg0 type veth peer name tg1 &&
ip link set tg0 up && ip link set tg1 up && exec "$@"
"""
ADDRESS = "http://127.0.0.1:8080"


@click.command(help=__doc__)
@click.option("--repetitions", default=20, show_default=True, help="Trials of each, in turns.")
@click.option("--inside", is_flag=True, hidden=True)
def main(repetitions: int, inside: bool) -> None:
    """Measures, and prints both beside each other."""
    if not inside:
        own = (sys.executable, __file__, "--inside", "--repetitions", str(repetitions))
        sys.exit(subprocess.run(["unshare", "--net", "sh", "-c", LINK, "sh", *own], check=False).returncode)
    time_starts()
    with start_server():
        compare(repetitions)


@contextmanager
def start_server() -> Iterator[None]:
    """Starts the server, waits until it listens, and ends it."""
    lossratio = (sys.executable, "-c", "from lossratio.commands.main import main; main()")
    command = (*lossratio, "otg-serve", "tg0", "tg1", "--generator", "afpacket", "--settle-time", str(SETTLE))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield
        finally:
            server.terminate()


def time_starts() -> None:
    """Prints how long the server takes until it listens, and until it has answered its first request."""
    listens, answers = [], []
    # The first start may have to compile modules.
    for _ in range(STARTS + 1):
        begun = time.monotonic()
        with start_server():
            listens.append(time.monotonic() - begun)
            with closing(HTTPConnection(ADDRESS.removeprefix("http://"), timeout=30)) as connection:
                connection.request("GET", "/capabilities/version")
                assert connection.getresponse().status == HTTPStatus.OK
            answers.append(time.monotonic() - begun)
    click.echo(f"Seconds from the start of otg-serve (median, largest), {STARTS} starts")
    for name, seconds in (("listens", listens[1:]), ("answers", answers[1:])):
        click.echo(f"{name:>7} {median(seconds):6.2f} {max(seconds):6.2f}")


def compare(repetitions: int) -> None:
    """Lets both take turns, and prints what they cost and send."""
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    pair = PortPair(TrafficPort("tg0", "tg0"), TrafficPort("tg1", "tg1"))
    configuration = replace(make_configuration(profile, [pair], settle_time=SETTLE), examines=False)
    session = NodeSession.here("benchmark")
    with AgentClient.start(session, python=sys.executable) as bare, AgentClient.start(session) as asking:
        bare.configure(configuration)
        ready_otg(asking, configuration, session)
        costs: dict[str, list[float]] = {"bare": [], "otg": []}
        for number in range(repetitions + 1):
            for name, agent in (("bare", bare), ("otg", asking)):
                cost = timed(lambda agent=agent: agent.run(Plan(((LOAD, DURATION),))).directions) - DURATION - SETTLE  # type: ignore[misc]
                # The first ones are cold.
                costs[name] += [cost] if number else []
        rates: dict[str, list[float]] = {"bare": [], "otg": []}
        for _ in range(max(3, repetitions // 4)):
            rates["bare"].append(float(bare.run(Plan(((BEYOND, 1.0),))).directions[0].sent_frames))
            rates["otg"].append(beyond_reach())
    click.echo(f"Cost of a trial in ms (median, 90 %), frames/s (median), {repetitions} trials of each")
    for name in costs:
        tenths = quantiles(costs[name], n=10)
        click.echo(f"{name:>5} {1e3 * median(costs[name]):8.1f} {1e3 * tenths[-1]:8.1f} {median(rates[name]):12,.0f}")
    share = median(served / alone for served, alone in zip(rates["otg"], rates["bare"], strict=True))
    click.echo(f"otg-serve sends {share:.3f} of the bare generator's rate (median of neighbours)")


def ready_otg(agent: AgentClient, configuration: Configuration, session: NodeSession) -> None:
    """Gets the generator `otg` ready to ask the server."""
    loaded = load_generator("otg")
    fields = {"kind": "otg", "api": ADDRESS, "ports": {"tg0": "tg0", "tg1": "tg1"}, "metrics_delay": 5.0}
    macs = agent.facts.interfaces
    ports = [Port("TG", name, Interface(name=name, mac_address=macs[name])) for name in ("tg0", "tg1")]
    node = GeneratorNode(session, agent.facts.interfaces, agent.facts.cpus)
    loaded(loaded.settings_type.model_validate(fields), node, ports).configure(agent, configuration)


def beyond_reach() -> float:
    """Frames that the server sends in a second, at a load beyond its reach."""
    flow = {
        "name": "f",
        "tx_rx": {"choice": "port", "port": {"tx_name": "a", "rx_names": ["b"]}},
        "packet": [{"choice": kind, kind: {}} for kind in ("ethernet", "ipv4", "udp")],
        "rate": {"choice": "pps", "pps": int(BEYOND)},
        "duration": {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 1.0}},
    }
    ports = [{"name": "a", "location": "tg0"}, {"name": "b", "location": "tg1"}]
    with closing(Tester(ADDRESS, True, 30.0)) as tester:
        tester.configure({"ports": ports, "flows": [flow]})
        tester.transmit("start")
        while tester.metrics("port")["a"]["transmit"] == "started":
            time.sleep(0.1)
        return float(tester.metrics("port")["a"]["frames_tx"])


def timed(action: Callable[[], object]) -> float:
    """Seconds that it takes."""
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
