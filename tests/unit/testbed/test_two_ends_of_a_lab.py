"""A lab of hosts: client, router and server are namespaces, and both hosts together are the TG."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

pytestmark = [pytest.mark.netns, pytest.mark.skipif(os.geteuid() != 0, reason="names of namespaces need root")]

# A router between two hosts, which lets 2000 frames per second through in each direction, and 40 at once.
HOSTS = """
set -e
mount -t tmpfs tmpfs /run
for node in client router server; do ip netns add $node; ip -n $node link set lo up; done
ip link add eth1 netns client type veth peer name west netns router
ip link add eth1 netns server type veth peer name east netns router
for end in client/eth1 router/west router/east server/eth1; do
    ip netns exec ${end%/*} sysctl -qw net.ipv6.conf.${end#*/}.disable_ipv6=1
    ip -n ${end%/*} link set ${end#*/} up
done
ip -n client address add 10.0.1.2/24 dev eth1; ip -n router address add 10.0.1.1/24 dev west
ip -n server address add 10.0.2.2/24 dev eth1; ip -n router address add 10.0.2.1/24 dev east
ip -n client route add 10.0.2.0/24 via 10.0.1.1; ip -n server route add 10.0.1.0/24 via 10.0.2.1
ip netns exec router sysctl -qw net.ipv4.ip_forward=1
ip netns exec router nft -f - <<END
table ip police { chain forward { type filter hook forward priority 0
    iifname west limit rate over 2000/second burst 40 packets drop
    iifname east limit rate over 2000/second burst 40 packets drop
}
}
END
exec "$@"
"""
LAB = """\
format: lossratio-topology/1
name: hosts
addresses: lab
nodes:
  CLIENT:
    type: TG
    netns: client
    generator: {{kind: afpacket, python: {python}, catch_up: 10 s}}
    interfaces: {{client: {{link: west, name: eth1, address: 10.0.1.2/24, gateway: 10.0.1.1}}}}
  ROUTER: {{type: DUT, netns: router, interfaces: {{w: {{link: west, name: west}}, e: {{link: east, name: east}}}}}}
  SERVER:
    type: TG
    netns: server
    interfaces: {{server: {{link: east, name: eth1, address: 10.0.2.2/24, gateway: 10.0.2.1}}}}
"""
MEASURE = """
import json
from lossratio import TrialInput, load_profile, open_testbed
with open_testbed("lab.yaml", dut="black_box", options={"hold": "200 ms"}) as testbed:
    with testbed.ready_for(load_profile("ethip4-udp-hosts", frame_size=128)) as ready:
        trials = [ready.measurer.measure(TrialInput(1.0, load)) for load in (1000.0, 4000.0)]
        generator = ready.conditions.generator
ways = [[(way.name, way.sent_frames, way.received_frames) for way in trial.directions] for trial in trials]
print(json.dumps({"ways": ways, "next_hops": generator["next_hops"], "nodes": generator["nodes"]}))
"""


def in_lab(tmp_path, *command, add=""):
    (tmp_path / "lab.yaml").write_text(LAB.format(python=sys.executable) + add)
    return subprocess.run(
        ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", HOSTS, "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_router_between_two_hosts_is_measured_from_both_with_their_own_addresses(tmp_path):
    done = in_lab(tmp_path, sys.executable, "-c", MEASURE)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["nodes"] == ["CLIENT", "SERVER"]
    assert list(seen["next_hops"]) == ["CLIENT.client 10.0.1.1", "SERVER.server 10.0.2.1"]
    below, above = seen["ways"]
    assert below == [["client>server", 1000, 1000], ["server>client", 1000, 1000]]
    for _, sent, received in above:
        assert sent == 4000
        # The policer's own rate, its burst, and what a busy machine makes of a second.
        assert 2000 <= received <= 2000 * 1.5 + 40


CONTENDED = """
import json
from lossratio import open_testbed
from lossratio.errors import ReservationError
from lossratio.nodes import NodeSession
from lossratio.testbed.reservation import Lease, make_claim
from lossratio.topology import load_topology

topology = load_topology("lab.yaml")
refusals = []

def refused():
    try:
        with open_testbed("lab.yaml", dut="black_box"):
            refusals.append("")
    except ReservationError as error:
        refusals.append(str(error))

for name in ("CLIENT", "SERVER"):
    with NodeSession.connect(name, topology.nodes[name]) as session:
        with Lease.take((session, make_claim(topology, purpose="other work", node_name=name))):
            refused()
refused()
print(json.dumps(refusals))
"""


def test_each_end_is_reserved_and_given_back_where_somebody_else_has_the_other_one(tmp_path):
    reservation = f"reservation: {{name: hosts, directory: {tmp_path}}}\n"
    done = in_lab(tmp_path, sys.executable, "-c", CONTENDED, add=reservation)
    assert done.returncode == 0, done.stderr
    client, server, free = json.loads(done.stdout)
    assert client.startswith("Node CLIENT: the testbed is not available: it is reserved for")
    assert server.startswith("Node SERVER: the testbed is not available: it is reserved for")
    assert "for other work" in server
    # The reservation of CLIENT, which the refused run had taken already, was given back.
    assert free == ""


# What a controller that is killed in a trial leaves at both ends.
KILLED = """
from pathlib import Path
from lossratio import TrialInput, load_profile, open_testbed
with open_testbed("lab.yaml", dut="black_box", options={"hold": "200 ms"}) as testbed:
    with testbed.ready_for(load_profile("ethip4-udp-hosts", frame_size=128)) as ready:
        Path("sending").touch()
        ready.measurer.measure(TrialInput(60.0, 1000.0))
"""
WATCH = """
state() {
    for end in client server; do
        ip -n $end -details link show eth1
        ip netns exec $end ethtool -k eth1
        ip netns exec $end tc qdisc show dev eth1
        ip -n $end address show eth1; ip -n $end route
        ip netns exec $end sysctl -a 2>/dev/null | grep -E '^net.ipv[46].(conf|neigh).(all|default|eth1)'
    done
}
await() { tries=0; until eval "$1"; do tries=$((tries + 1)); [ $tries -lt 600 ] || exit $2; sleep 0.1; done; }
state > before
"$0" -c "$1" & controller=$!
await 'test -e sending' 3
await 'test -n "$(ip netns pids client)" && test -n "$(ip netns pids server)"' 4
kill -KILL $controller
await 'test -z "$(ip netns pids client; ip netns pids server)"' 5
state > after
diff before after
"""


def test_both_ends_are_as_before_after_the_death_of_the_controller_in_a_trial(tmp_path):
    done = in_lab(tmp_path, "sh", "-c", WATCH, sys.executable, KILLED, add="reservation: null\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "eth1" in (tmp_path / "before").read_text()


# A stand-in for docker, whose containers are processes in the namespaces of the hosts.
CONTAINERS = """
set -e
for end in client server; do
    ip netns exec $end sleep 200 & echo $! > $end.pid
done
mkdir tools
cat > tools/docker <<'END'
#!/bin/sh
for name in "$@"; do :; done
exec cat "${name#my-}.pid"
END
chmod +x tools/docker
export PATH="$PWD/tools:$PATH"
"$0" -m lossratio between container:my-client container:my-server --save saved.yaml
mv saved.yaml lab.yaml
status=0
"$0" -c "$1" || status=$?
kill $(cat client.pid server.pid)
exit $status
"""


def test_two_containers_are_ends(tmp_path):
    done = in_lab(tmp_path, "sh", "-c", CONTAINERS, sys.executable, MEASURE.replace(", 4000.0", ","))
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["nodes"] == ["my-client", "my-server"]
    (ways,) = seen["ways"]
    assert [name for name, *_ in ways] == ["client>server", "server>client"]
    # A stalled host may leave some of the 1,000 unsent.
    assert all(900 < sent == received for _, sent, received in ways), ways
    nodes = yaml.safe_load((tmp_path / "lab.yaml").read_text())["nodes"]
    assert nodes["my-client"]["container"] == "my-client"
