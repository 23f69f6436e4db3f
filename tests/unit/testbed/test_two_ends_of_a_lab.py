"""A lab of hosts: client, router and server are namespaces, and both hosts together are the TG."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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


def in_lab(tmp_path, *command):
    (tmp_path / "lab.yaml").write_text(LAB.format(python=sys.executable))
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
