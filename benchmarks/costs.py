"""What trials cost: examination, one of the local testbed, the Open Traffic Generator, a TG of two nodes.

    python benchmarks/costs.py integrity --rounds 1
    python benchmarks/costs.py overhead --trials 100
    python benchmarks/costs.py otg
    python benchmarks/costs.py two-ends --ssh

The generators themselves are measured by `generator.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from statistics import fmean, median, quantiles

import click

from lossratio import agent as the_agent
from lossratio.agent import Configuration, Plan
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import AfPacketGenerator, Interface, Node, Port, load_topology
from lossratio.traffic import (
    AgentClient,
    GeneratorNode,
    PortPair,
    TrafficPort,
    load_generator,
    load_profile,
    make_configuration,
)
from lossratio.traffic.two_ends import port_at
from lossratio.trials import DirectionCounters
from lossratio.trials.trial import Measurer
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput
from lossratio_study.bridge import bridged

# The name of the agent on a TG, for the program that runs there.
sys.modules["lossratio_agent"] = the_agent
from lossratio_otg.program import Tester  # noqa: E402


@click.group(help=__doc__)
def main() -> None:
    """Costs of trials."""


TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"


@contextmanager
def bare_link(tg: NodeSession) -> Iterator[None]:
    """A veth link on the TG, from itself to itself."""
    tg.run("ip", "link", "add", "bare0", "type", "veth", "peer", "name", "bare1")
    try:
        for name in ("bare0", "bare1"):
            tg.run("ip", "link", "set", "dev", name, "up")
        yield
    finally:
        tg.run("ip", "link", "delete", "dev", "bare0")


OVERLOAD, OVERLOAD_SECONDS = 2e6, 0.3
EXAMINED = (("ethip4-udp", 64), ("ethip4-udp-1mflows", 64), ("ethip4-udp", 1518))


@main.command()
@click.option("--rounds", default=3, show_default=True, help="How often each case is measured, with and without.")
@click.option("--trials", default=8, show_default=True, help="Trials of each.")
def integrity(rounds: int, trials: int) -> None:
    """Measures what sequence numbers and the examination of frames cost: largest rates, and time beyond the traffic.

    Each case is measured several times in turn, with and without examination, as other work on the machine comes and
    goes. The best of all is what the generator can do. All frames must come back.
    """
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
            measure_examined(
                agent, path, PortPair(TrafficPort("west", west), TrafficPort("east", east)), rounds, trials
            )


def measure_examined(agent: AgentClient, path: str, pair: PortPair, rounds: int, trials: int) -> None:
    """Prints a line for each case, with and without examination."""
    for profile, size in EXAMINED:
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
        (counters,) = agent.run(Plan(((OVERLOAD, OVERLOAD_SECONDS),))).directions
        elapsed = counters.elapsed_s or OVERLOAD_SECONDS
        yield counters.received_frames / elapsed, time.monotonic() - begin - elapsed


AIM = 0.020
"""Seconds that the median should not exceed."""


@main.command()
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on.")
@click.option("--trials", default=50, show_default=True, help="Trials per duration.")
@click.option("--load", default=10_000.0, show_default=True, help="Frames per second in each direction.")
@click.option("--frame-size", default="64", show_default=True, help="Bytes with FCS, or IMIX_v4_1.")
def overhead(topology: Path, trials: int, load: float, frame_size: str) -> None:
    """Measures what a warm trial costs beyond its own duration and the DUT's settle time, over SSH on loopback.

    Builds the local testbed (unless it is up), bridges the two links, and times whole trials: from the measurer being
    asked to its answer, through SSH, to the agent and back. A trial that was measured again takes its duration once
    more. As a median hides this, the share of such trials is printed, too.
    """
    testbed = open_testbed(topology, dut="linux_bridge")
    try:
        with testbed.ready_for(load_profile("ethip4-udp", frame_size=frame_size)) as ready:
            settle_time = ready.conditions.timing.wait_after_s
            click.echo(f"Overhead per trial in ms, beyond duration and {settle_time * 1e3:g} ms of settling:")
            names = " ".join(f"{name:>7}" for name in ("trials", "min", "median", "mean", "90 %", "max"))
            click.echo(f"{'duration s':>10} {names}  measured again")
            for duration in (0.01, 0.1, 1.0):
                outputs = warm_trials(ready.measurer, TrialInput(duration, load), trials)
                overheads = [(output.elapsed or 0.0) - duration - settle_time for output in outputs]
                again = sum(output.repeats > 0 for output in outputs)
                tenths = quantiles(overheads, n=10)
                shown = (min(overheads), median(overheads), fmean(overheads), tenths[-1], max(overheads))
                numbers = [f"{1e3 * x:7.1f}" for x in shown]
                verdict = "ok" if median(overheads) <= AIM else f"above {AIM * 1e3:g} ms"
                click.echo(f"{duration:10g} {trials:7d} {' '.join(numbers)}  {again} of {trials}; {verdict}")
    finally:
        testbed.close()


def warm_trials(measurer: Measurer, trial: TrialInput, trials: int) -> list[TrialOutput]:
    """Performs so many trials, after a cold one that does not count."""
    measurer.measure(trial)
    return [measurer.measure(trial) for _ in range(trials)]


STARTS = 10
LOAD, DURATION, BEYOND = 10_000.0, 0.2, 5e6
SETTLE = 0.05
LINK = """
ip link set lo up && sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 &&
ip link add tg0 type veth peer name tg1 &&
ip link set tg0 up && ip link set tg1 up && exec "$@"
"""
ADDRESS = "http://127.0.0.1:8080"


@main.command("otg")
@click.option("--repetitions", default=20, show_default=True, help="Trials of each, in turns.")
@click.option("--inside", is_flag=True, hidden=True)
def compare_with_server(repetitions: int, inside: bool) -> None:
    """Measures what `otg-serve` and `otg` cost beside the bare generator (Open Traffic Generator).

    Both take turns on one veth link in a network namespace of their own (needs root): the agent with afpacket, and an
    agent with the program `otg`, which asks ``lossratio otg-serve`` with the same generator. Frames of 64 bytes go one
    way.
    The cost of a trial is its time beyond duration and settle time; the rate is measured for a second at a load beyond
    reach. First, the server is started several times, and asked for its version at once.
    """
    if not inside:
        own = (sys.executable, __file__, "otg", "--inside", "--repetitions", str(repetitions))
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


NAMES = {"tester": ("west", "east"), "client": ("eth1",), "server": ("eth1",)}
BUILD = """
set -e
mount -t tmpfs tmpfs /run
ip netns add bridge
ip -n bridge link add br0 type bridge mcast_snooping 0
ip -n bridge link set br0 up
sysctl_of() { ip netns exec $1 sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; }
sysctl_of bridge
join() {
    ip link add $2 netns $1 type veth peer name $1-$2 netns bridge
    ip -n $1 link set $2 up
    ip -n bridge link set $1-$2 master br0
    ip -n bridge link set $1-$2 up
}
for node in tester client server; do ip netns add $node; sysctl_of $node; done
join tester west; join tester east; join client eth1; join server eth1
"""
KEYS = Path("/run/keys")
# Each host has an address of its own for SSH, on a link that no test traffic uses.
SSHD = f"""
set -e
mkdir -p /run/sshd {KEYS}
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f {KEYS}/$key; done
reach() {{
    ip link add to-$1 type veth peer name reach netns $1
    ip address add $2.1/24 dev to-$1
    ip link set to-$1 up
    ip -n $1 address add $2.2/24 dev reach
    ip -n $1 link set reach up
    ip netns exec $1 /usr/sbin/sshd -f /dev/null -h {KEYS}/host -o ListenAddress=$2.2 -o UsePAM=no -o StrictModes=no \\
        -o AuthorizedKeysFile={KEYS}/user.pub
}}
reach client 192.168.1; reach server 192.168.2
"""
ADDRESSES = {"client": "192.168.1.2", "server": "192.168.2.2"}


@main.command("two-ends")
@click.option("--trials", default=40, show_default=True, help="Trials at each.")
@click.option("--load", default=5000.0, show_default=True, help="Frames per second in each direction.")
@click.option("--duration", default=0.2, show_default=True, help="Seconds of each trial.")
@click.option("--ssh", is_flag=True, help="Reach both hosts by SSH.")
@click.option("--inside", is_flag=True, hidden=True)
def compare_ends(trials: int, load: float, duration: float, ssh: bool, inside: bool) -> None:
    """Measures what a trial costs at two nodes and at one node that has both ends, in turns in one run.

    It needs root, and makes three namespaces in a mount namespace of its own: a tester with two ports, and two hosts
    with one port each, all behind one bridge. It also compares, for every trial of the hosts, what the agents counted
    with the counters of both hosts' kernels. With ``--ssh``, the hosts are machines that are reached by an sshd of
    their own.
    """
    if not inside:
        own = ("unshare", "--mount", "--net", sys.executable, *sys.argv, "--inside")
        sys.exit(subprocess.run(own, check=False).returncode)
    subprocess.run(["sh", "-c", BUILD], check=True)
    if ssh:
        subprocess.run(["sh", "-c", SSHD], check=True)
    with ExitStack() as opened:
        nodes = {name: _machine(name) if ssh and name in ADDRESSES else _node(name) for name in NAMES}
        sessions = {name: opened.enter_context(NodeSession.connect(name, node)) for name, node in nodes.items()}
        one = opened.enter_context(AgentClient.start(sessions["tester"], python=sys.executable))
        two = opened.enter_context(AgentClient.start(sessions["client"], sessions["server"], python=sys.executable))
        _configure(one, ("west", "east"))
        _configure(two, (port_at("client", "eth1"), port_at("server", "eth1")))
        costs: dict[str, list[float]] = {"one node": [], "two nodes": []}
        equal = 0

        for _ in range(trials):
            costs["one node"].append(_timed(one, load, duration)[0])
            before = list(_kernel(sessions))
            cost, counters = _timed(two, load, duration)
            costs["two nodes"].append(cost)
            equal += _counted(counters) == [now - then for now, then in zip(_kernel(sessions), before, strict=True)]

    click.echo(f"Milliseconds of a trial beyond its duration and {SETTLE * 1e3:g} ms of settling:")
    click.echo(f"{'':>10} {'trials':>7} {'min':>7} {'median':>7} {'90 %':>7} {'max':>7}")
    for name, seconds in costs.items():
        beyond = [1e3 * (each - duration - SETTLE) for each in seconds]
        numbers = (min(beyond), median(beyond), quantiles(beyond, n=10)[-1], max(beyond))
        click.echo(f"{name:>10} {trials:7d} {' '.join(f'{number:7.1f}' for number in numbers)}")
    click.echo(f"Sent and received as both kernels counted: {equal} of {trials} trials.")


def _node(name: str) -> Node:
    return Node(type="TG", netns=name, interfaces=_interfaces(name))


def _machine(name: str) -> Node:
    host_key = (KEYS / "host.pub").read_text().strip()
    return Node(
        type="TG", host=ADDRESSES[name], key_file=KEYS / "user", host_key=host_key, interfaces=_interfaces(name)
    )


def _interfaces(name: str) -> dict[str, Interface]:
    return {port: Interface(name=port) for port in NAMES[name]}


def _configure(agent: AgentClient, ports: Sequence[str]) -> None:
    west, east = ports
    pair = PortPair(TrafficPort("west", west), TrafficPort("east", east))
    profile = load_profile("ethip4-udp-hosts", frame_size=128)
    agent.configure(make_configuration(profile, [pair], settle_time=SETTLE), options={"catch_up": 1.0})


def _timed(agent: AgentClient, load: float, duration: float) -> tuple[float, tuple[DirectionCounters, ...]]:
    began = time.monotonic()
    counters = agent.run(Plan(((load, duration),))).directions
    return time.monotonic() - began, counters


def _kernel(sessions: Mapping[str, NodeSession]) -> Iterator[int]:
    """What the kernels of both hosts have sent and received."""
    for name in ("client", "server"):
        said = sessions[name].run("ip", "-json", "-stats", "link", "show", "dev", "eth1").stdout
        stats = json.loads(said)[0]["stats64"]
        yield stats["tx"]["packets"]
        yield stats["rx"]["packets"]


def _counted(counters: Sequence[DirectionCounters]) -> list[int]:
    """The same as the agents counted it."""
    west, east = counters
    return [west.sent_frames, east.received_frames, east.sent_frames, west.received_frames]


if __name__ == "__main__":
    main()
