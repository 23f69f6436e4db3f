"""First numbers of users: of networks with `lossratio between`, and of a lab beside busy programs.

    python benchmarks/first_numbers.py between --only "Open vSwitch"
    python benchmarks/first_numbers.py busy --kind demo --runs 1

The truth is what policers let through.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import RunDirectory, doubts_of
from lossratio.simulation import sut_from


@click.group(help=__doc__)
def main() -> None:
    """First numbers of users."""


RATE, BURST = 2000, 40
BEGIN = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/openvswitch
node() { ip netns add $1; ip -n $1 link set lo up; }
quiet() { ip netns exec $1 sysctl -qw net.ipv6.conf.$2.disable_ipv6=1; ip -n $1 link set $2 up; }
cable() { ip link add $2 netns $1 type veth peer name $4 netns $3; quiet $1 $2; quiet $3 $4; }
address() { ip -n $1 address add $3 dev $2; }
via() { ip -n $1 route replace $2 via $3; }
forward() { ip netns exec $1 sysctl -qw net.ipv4.ip_forward=1; }
police() {
    one=$1; shift
    for port in "$@"; do ip netns exec $one nft -f - <<END
table netdev police {
  chain $port {
    type filter hook ingress device "$port" priority 0
    udp sport >= 1 limit rate over RATE/second burst BURST packets drop
  }
}
END
    done
}
gate() {
    node $1
    cable $2 $3 $1 host; cable $1 net device $4
    ip -n $1 link add br0 type bridge mcast_snooping 0
    quiet $1 br0
    for port in host net; do ip -n $1 link set $port master br0; done
    police $1 host
}
switch() {
    mkdir -p /run/$1
    ovsdb-tool create /run/$1/conf.db /usr/share/openvswitch/vswitch.ovsschema
    files() { echo --pidfile=/run/$1/$2.pid --log-file=/run/$1/$2.log --detach; }
    ip netns exec $1 ovsdb-server /run/$1/conf.db --remote=punix:/run/$1/db.sock $(files $1 db)
    OVS_RUNDIR=/run/$1 ip netns exec $1 ovs-vswitchd unix:/run/$1/db.sock $(files $1 switch)
}
vsctl() { one=$1; shift; ovs-vsctl --db=unix:/run/$one/db.sock "$@"; }
frr() {
    mkdir -p /run/frr/$1
    chown frr:frr /run/frr /run/frr/$1
    for daemon in zebra staticd; do
        ip netns exec $1 /usr/lib/frr/$daemon -d -N $1 -z /run/frr/$1/zserv.api -i /run/frr/$1/$daemon.pid \\
            --vty_socket /run/frr/$1
    done
}
node client; node server
""".replace("RATE", str(RATE)).replace("BURST", str(BURST))
# Client and server in one network. Each host has a policing bridge before the device: a policer behind the device drops
# what a switch in user space hands over in bursts, so its rate would not be the truth.
LAYER_2 = """
node device
gate gate1 client eth1 west; gate gate2 server eth1 east
address client eth1 10.0.1.2/24; address server eth1 10.0.1.3/24
"""
NETWORKS = {
    "two routers of FRR": """
node r1; node r2
cable client eth1 r1 west; cable r1 east r2 west; cable r2 east server eth1
address client eth1 10.0.1.2/24; address server eth1 10.0.3.2/24
address r1 west 10.0.1.1/24; address r1 east 10.0.2.1/24; address r2 west 10.0.2.2/24; address r2 east 10.0.3.1/24
forward r1; forward r2; frr r1; frr r2
sleep 1
vtysh --vty_socket /run/frr/r1 -c 'configure terminal' -c 'ip route 10.0.3.0/24 10.0.2.2'
vtysh --vty_socket /run/frr/r2 -c 'configure terminal' -c 'ip route 10.0.1.0/24 10.0.2.1'
via client default 10.0.1.1; via server default 10.0.3.1
police r1 west east
""",
    "switch with VLANs": LAYER_2
    + """
switch device
vsctl device add-br br0 -- set bridge br0 datapath_type=netdev
vsctl device add-port br0 west tag=10 -- add-port br0 east tag=10
""",
    "firewall of nftables": """
node fw
cable client eth1 fw west; cable fw east server eth1
address client eth1 10.0.1.2/24; address server eth1 10.0.2.2/24
address fw west 10.0.1.1/24; address fw east 10.0.2.1/24
forward fw; via client default 10.0.1.1; via server default 10.0.2.1
ip netns exec fw nft -f - <<END
table ip filter {
  chain forward {
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    ip saddr 10.0.1.0/24 meta l4proto { udp, icmp } accept
    ip saddr 10.0.2.0/24 udp dport 1024-65535 accept
  }
}
END
police fw west east
""",
    "Open vSwitch": LAYER_2
    + """
switch device
vsctl device add-br br0 -- set bridge br0 datapath_type=netdev
vsctl device add-port br0 west -- add-port br0 east
""",
    # Only the way from the server is policed: nothing is between the client and its own switch.
    "trunk to access": """
node device
cable client trunk device west; gate gate2 server eth1 east
switch client
vsctl client add-br hosts -- set bridge hosts datapath_type=netdev
vsctl client add-port hosts trunk -- add-port hosts vlan10 tag=10 -- set interface vlan10 type=internal
switch device
vsctl device add-br br0 -- set bridge br0 datapath_type=netdev
vsctl device add-port br0 west -- add-port br0 east tag=10
quiet client vlan10
address client vlan10 10.0.1.2/24; address server eth1 10.0.1.3/24
""",
}


MEASURE = """
"$@" --output $output
"""
# Exit status 75: the killed measurement has still reserved both ends.
KILL_AND_RESUME = """
"$@" --output $output & measuring=$!
while kill -0 $measuring && [ $(cat $output/trials/* 2>/dev/null | wc -l) -lt 5 ]; do sleep 0.1; done
kill -9 $measuring
status=75
while [ $status = 75 ]; do
    sleep 5
    status=0
    "$@" --resume $output || status=$?
done
exit $status
"""
STALL, PRIORITY = 0.004, 60


@main.command("between")
@click.option("--only", type=click.Choice(list(NETWORKS)), multiple=True, help="These kinds; all, unless given.")
@click.option("--times", default=1, show_default=True, help="Measurements of each kind.")
@click.option("--stalls", type=float, help="Stall all processors, so many seconds apart on average.")
@click.option("--killed", is_flag=True, help="Kill each measurement with SIGKILL, and resume it.")
def between(only: tuple[str, ...], times: int, stalls: float | None, killed: bool) -> None:
    """Measures five kinds of networks with `lossratio between`, from the names of their ends and a known true rate.

    It needs root, and makes each network in namespaces of a mount namespace of its own. In each of them, a policer lets
    2,000 frames per second through, and a burst of 40. In the trials of half a second that the quick goals have, these
    are 2,080 frames per second.

    With ``--stalls 0.2``, programs of a higher priority than the generator's hold each processor for 4 ms, on average
    0.2 s after the last time. With ``--killed``, each measurement is killed after some trials, and resumed as soon as
    possible.
    """
    click.echo(f"{'network':22} {'truth':>8} {'lower':>8} {'upper':>8} {'enclosed':>9} {'seconds':>8}  limit")
    measure = KILL_AND_RESUME if killed else MEASURE
    with _stalled(stalls):
        for kind in (only or tuple(NETWORKS)) * times:
            with tempfile.TemporaryDirectory() as folder:
                click.echo(f"{kind:22} {_measured(kind, Path(folder) / 'out', measure)}")


@contextmanager
def _stalled(seconds_apart: float | None) -> Iterator[None]:
    """Stalls all processors until the end of the block; None: does not."""
    processors = os.sched_getaffinity(0) if seconds_apart else ()
    stalling = [multiprocessing.Process(target=_stall, args=(one, seconds_apart), daemon=True) for one in processors]
    for one in stalling:
        one.start()
    try:
        yield
    finally:
        for one in stalling:
            one.kill()


def _stall(processor: int, seconds_apart: float) -> None:
    """Holds a processor again and again."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    while True:
        time.sleep(random.expovariate(1.0 / seconds_apart))
        end = time.monotonic() + STALL
        while time.monotonic() < end:
            pass


def _measured(kind: str, output: Path, measure: str) -> str:
    """The row of a kind."""
    ready = BEGIN + NETWORKS[kind] + f"output={output}\n" + measure
    command = [sys.executable, "-m", "lossratio", "between", "client", "server"]
    own = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "--propagation", "private"]
    began = time.monotonic()
    done = subprocess.run(
        [*own, "sh", "-c", ready, "sh", *command], capture_output=True, text=True, timeout=600, check=False
    )
    seconds = time.monotonic() - began
    if done.returncode:
        return f"failed: {(done.stderr.strip() or done.stdout.strip())[-600:]}"

    (result,) = RunDirectory(output).results()
    if not isinstance(result, ThroughputResult):
        return f"failed: the result is one of {result.kind}"
    ndr = result.goals[0]
    lower, upper = ndr.bounds
    if lower is None or upper is None or ndr.result is None:
        return "failed: no bound was found"
    truth = RATE + BURST / ndr.goal.final_trial_duration_s
    is_enclosed = lower.per_interface_fps <= truth <= upper.per_interface_fps
    numbers = f"{truth:8,.0f} {lower.per_interface_fps:8,.0f} {upper.per_interface_fps:8,.0f}"
    limit = "proved" if ndr.result.regular else ndr.result.reason
    return f"{numbers} {'yes' if is_enclosed else 'no':>9} {seconds:8.0f}  {limit}"


COMMAND = (sys.executable, "-m", "lossratio")
ANSWERS = 20 * "\n"
"""Enter, more often than `init` asks."""
WHOLE = ("--variable", "GOALS:csit", "--variable", "LATENCY:off", "--variable", "TELEMETRY:off")
KINDS = ("init", "whole", "demo")


@dataclass(frozen=True)
class Measured:
    """A run as a user sees it."""

    kind: str
    seconds: float
    """The time of the whole command."""
    status: int
    """Its exit status."""
    load_average: float
    """The load average of one minute at its end."""
    result: ThroughputResult | None
    """The result; None: there is none."""


@main.command("busy")
@click.option("--runs", default=10, show_default=True, help="Runs of each kind, in turns.")
@click.option("--kind", "kinds", multiple=True, default=KINDS, type=click.Choice(KINDS), help="What to run.")
@click.option("--programs", default=4, show_default=True, help="Busy programs.")
@click.option("--minutes", default=60.0, show_default=True, help="No run begins later than this.")
@click.option("--keep", type=click.Path(path_type=Path), help="Directory for all runs; otherwise they are removed.")
def beside_programs(runs: int, kinds: tuple[str, ...], programs: int, minutes: float, keep: Path | None) -> None:
    """Measures first numbers beside busy programs: `lossratio init`, a whole search of its lab, and the demo.

    Run it as an ordinary user. Each busy program has a session of its own, as other users' programs have. The truth is
    what the policer lets through, by its rate and burst.
    """
    end = time.monotonic() + 60.0 * minutes
    right = dict.fromkeys(kinds, 0)
    made = dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as temporary, busy_programs(programs, in_sessions=True):
        for run in range(runs):
            for kind in kinds:
                if time.monotonic() > end:
                    break
                directory = (keep or Path(temporary)) / f"{kind}-{run}"
                measured = measure(kind, directory.absolute())
                made[kind] += 1
                right[kind] += show(measured)
    for kind in kinds:
        click.echo(f"{kind}: {right[kind]} of {made[kind]} runs have a right and regular number for each goal")


def measure(kind: str, directory: Path) -> Measured:
    """Runs one kind, as a user types it."""
    results = directory / "results"
    if kind == "init":
        command: tuple[str, ...] = ("init", str(directory))
    elif kind == "whole":
        # The lab is written, but not measured: the answers end before that question.
        subprocess.run([*COMMAND, "init", directory], input=8 * "\n", text=True, capture_output=True, check=False)
        lab = directory / "lab1"
        named = ("--topology", f"{lab}.yaml", "--include", "ndrpdrAND64b", f"{lab}.robot")
        command = ("run", *named, "--output", str(results), *WHOLE)
    else:
        directory.mkdir(parents=True)
        command = ("demo", "--output", str(results))

    began = time.monotonic()
    done = subprocess.run([*COMMAND, *command], input=ANSWERS, text=True, capture_output=True, check=False)
    seconds = time.monotonic() - began
    (directory / "console.txt").write_text(done.stdout + done.stderr)
    found = RunDirectory(results).results() if results.is_dir() else ()
    result = found[0] if found and isinstance(found[0], ThroughputResult) else None
    return Measured(kind, seconds, done.returncode, os.getloadavg()[0], result)


def show(measured: Measured) -> bool:
    """Prints a run; returns whether it has a right and regular number for each goal, measured with real frames."""
    began = f"{measured.kind:>5}  load {measured.load_average:4.1f}  {measured.seconds:4.0f} s"
    result = measured.result
    if result is None or result.conditions is None:
        click.echo(f"{began}  no result, exit status {measured.status}")
        return False

    bridge = result.conditions.duts["DUT1"]
    is_simulated = result.conditions.testbed.is_simulated
    policer = sut_from(cast(dict[str, Any], bridge.get("modelled_as") or bridge["model"]))
    repeats = sum(trial.repeats for trial in result.trials)
    click.echo(
        f"{began}  {len(result.trials)} trials, {repeats} repeats{', SIMULATED' if is_simulated else ''}, "
        f"doubts: {', '.join(sorted({doubt.kind.value for doubt in doubts_of([result])[0]})) or 'none'}"
    )
    is_right = not is_simulated and measured.status == 0
    for report in result.goals:
        goal, found = report.goal, report.result
        truth = policer.truth(
            loss_ratio=goal.loss_ratio, duration=goal.final_trial_duration_s, exceed_ratio=goal.exceed_ratio
        )
        if found is None or found.relevant_lower_bound is None or found.relevant_upper_bound is None or truth is None:
            click.echo(f"       {goal.name}: no bounds{'' if found is None else f' ({found.reason})'}")
            is_right = False
            continue
        lower = found.relevant_lower_bound.per_interface_fps
        upper = found.relevant_upper_bound.per_interface_fps
        encloses = lower <= truth <= upper
        is_right = is_right and encloses and found.regular
        verdict = "right" if encloses else "NOT BETWEEN THE BOUNDS"
        click.echo(
            f"       {goal.name}: {lower:,.0f} to {upper:,.0f}, truth {truth:,.0f}: {verdict}, "
            f"{found.reason or 'regular'}"
        )
    return is_right


@contextmanager
def busy_programs(count: int, *, in_sessions: bool = False) -> Iterator[None]:
    """Starts programs that compute, and ends them.

    Args:
        count: How many.
        in_sessions: Whether each has a session of its own, as other users' programs have.
    """
    command = (sys.executable, "-c", "while True: pass")
    programs = [subprocess.Popen(command, start_new_session=in_sessions) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


if __name__ == "__main__":
    main()
