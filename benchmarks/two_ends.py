"""What a trial costs at two nodes and at one node that has both ends, in turns in one run.

As root, it makes three namespaces in a mount namespace of its own (start it under ``unshare --mount --net``): a tester
with two ports, and two hosts with one port each, all behind one bridge. It also compares, for every trial of the hosts,
what the agents counted with the counters of both hosts' kernels. With ``--ssh``, the hosts are machines that are
reached by an sshd of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

import click

from lossratio.nodes import NodeSession
from lossratio.topology import Interface, Node
from lossratio.traffic import AgentClient, Plan, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.two_ends import port_at
from lossratio.trials import DirectionCounters

SETTLE_TIME = 0.02
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


@click.command(help=__doc__)
@click.option("--trials", default=40, show_default=True, help="Trials at each.")
@click.option("--load", default=5000.0, show_default=True, help="Frames per second in each direction.")
@click.option("--duration", default=0.2, show_default=True, help="Seconds of each trial.")
@click.option("--ssh", is_flag=True, help="Reach both hosts by SSH.")
def main(trials: int, load: float, duration: float, ssh: bool) -> None:
    """Measures, and prints a table."""
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

    click.echo(f"Milliseconds of a trial beyond its duration and {SETTLE_TIME * 1e3:g} ms of settling:")
    click.echo(f"{'':>10} {'trials':>7} {'min':>7} {'median':>7} {'90 %':>7} {'max':>7}")
    for name, seconds in costs.items():
        beyond = [1e3 * (each - duration - SETTLE_TIME) for each in seconds]
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
    agent.configure(make_configuration(profile, [pair], settle_time=SETTLE_TIME), options={"catch_up": 1.0})


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
