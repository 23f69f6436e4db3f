"""A lab of containerlab, as it is: FRR's routers learn their routes, and lossratio imports and measures the lab.

There is no container here. Namespaces have the names that containerlab gives, and FRR runs in them as in its image.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from lab_examples import deployed
from netns import run_alone

from lossratio.results import RunDirectory

needs_frr = pytest.mark.skipif(
    shutil.which("staticd", path="/usr/lib/frr") is None or os.geteuid() != 0,
    reason="no FRR here (Debian's package is frr), or not root",
)
pytestmark = [pytest.mark.netns, needs_frr]

FRR = "linux quay.io/frrouting/frr:8.4.4"
LAB = deployed(
    "two",
    {"tester": "linux alpine:3", "r1": FRR, "r2": FRR},
    "tester:eth1 r1:eth1",
    "r1:eth2 r2:eth2",
    "r2:eth1 tester:eth2",
    tester_eth1="198.18.255.253/30",
    r1_eth1="198.18.255.254/30",
    r2_eth1="198.19.255.254/30",
    tester_eth2="198.19.255.253/30",
)
NAMESPACES = """
mount -t tmpfs tmpfs /run
for node in tester r1 r2; do ip netns add clab-two-$node && ip -n clab-two-$node link set lo up; done
join() { ip link add "$2" netns "clab-two-$1" type veth peer name "$4" netns "clab-two-$3"; }
join tester eth1 r1 eth1; join r1 eth2 r2 eth2; join r2 eth1 tester eth2
for end in tester/eth1 tester/eth2 r1/eth1 r1/eth2 r2/eth1 r2/eth2; do
    ip netns exec clab-two-${end%/*} sysctl -qw net.ipv6.conf.${end#*/}.disable_ipv6=1
    ip -n clab-two-${end%/*} link set ${end#*/} up
done
"""
# A router, and the network of test traffic that lies behind the tester's port on its side.
ROUTER = """
router() {
    netns=clab-two-$1 home=/run/$1 network=$2
    install -d -o frr -g frr $home
    ip netns exec $netns sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
    ip -n $netns address add 192.0.2.${1#r}/30 dev eth2
    ip -n $netns address add $network.255.254/30 dev eth1
    : > $home/zebra.conf; : > $home/vtysh.conf
    echo "ip route $network.0.0/16 $network.255.253" > $home/staticd.conf
    cat > $home/bgpd.conf <<END
router bgp 6500${1#r}
 no bgp ebgp-requires-policy
 neighbor 192.0.2.$((3 - ${1#r})) remote-as 6500$((3 - ${1#r}))
 neighbor 192.0.2.$((3 - ${1#r})) timers connect 1
 neighbor 192.0.2.$((3 - ${1#r})) advertisement-interval 0
 address-family ipv4 unicast
  redistribute static
END
    chown frr:frr $home/*
    for program in zebra staticd bgpd; do
        ip netns exec $netns /usr/lib/frr/$program -d -f $home/$program.conf -i $home/$program.pid \
            -z $home/zebra.api --vty_socket $home -P 0 --log file:$home/log
    done
}
trap 'kill $(cat /run/r?/*.pid)' EXIT
router r1 198.18
router r2 198.19
tries=0
until ip -n clab-two-r1 route | grep -q 'proto bgp' && ip -n clab-two-r2 route | grep -q 'proto bgp'; do
    tries=$((tries + 1)); [ $tries -lt 300 ] || { cat /run/r?/log; exit 7; }; sleep 0.1
done
ip netns exec clab-two-r1 nft -f - <<END
table ip police { chain forward { type filter hook forward priority 0
    iifname eth1 limit rate over 2000/second burst 40 packets drop
    iifname eth2 limit rate over 2000/second burst 40 packets drop
}
}
END
"""
MEASURE = """
import subprocess, time
from pathlib import Path
from lossratio import RunDirectory, SearchRequest, TestIdentity, TestPlace, goal_from, load_profile, open_testbed
from lossratio.measurements.reconfiguration import ReconfigurationRequest, measure_reconfiguration_loss

def withdraw():
    began = time.monotonic()
    for command in ("no redistribute static", "redistribute static"):
        vtysh = ("vtysh", "--config_dir", "/run/r2", "--vty_socket", "/run/r2", "-c", "configure terminal", "-c")
        subprocess.run((*vtysh, "router bgp 65002", "-c", "address-family ipv4 unicast", "-c", command), check=True)
        gone = command.startswith("no")
        while ("proto bgp" in subprocess.check_output(("ip", "-n", "clab-two-r1", "route"), text=True)) == gone:
            time.sleep(0.01)
        if gone:
            without = time.monotonic()
            time.sleep(0.5)
            least = time.monotonic() - without
    print("outage", least, time.monotonic() - began)

place = TestPlace(TestIdentity(name="lab", suite="s"), RunDirectory(Path("run")))
profile = load_profile("ethip4-ip4base", frame_size=128)
search = {"goals": [goal_from("QUICK_NDR")], "profile": profile, "min_load": 1900.0, "max_load": 2300.0}
options = {"hold": "50 ms", "rest": "200 ms"}
with open_testbed("lab.yaml", dut="black_box", options=options) as testbed:
    measure_reconfiguration_loss(testbed, ReconfigurationRequest(**search, reconfigure=withdraw), place)
"""


def test_a_lab_is_imported_and_measured_through_routers_that_learn_their_routes(tmp_path):
    (tmp_path / "two.json").write_text(LAB)
    (tmp_path / "measure.py").write_text(MEASURE)
    script = f"""set -e
{NAMESPACES}{ROUTER}
"$0" -m lossratio lab import containerlab two.json --tg tester --output lab.yaml
printf 'reservation: null\\n' >> lab.yaml
"$0" -m lossratio check lab.yaml --connect
"$0" measure.py
"""
    shown = run_alone(script, sys.executable, cwd=tmp_path, timeout=200)
    assert "The path goes through r1 (linux), r2 (linux)." in shown
    results = {result.kind: result for result in RunDirectory(tmp_path / "run").results()}
    bound = results["throughput"].goals[0].result.relevant_lower_bound.per_interface_fps
    # A bucket of 40 frames besides 2,000 a second, in trials of half a second; the width is 1 %.
    assert 2078 * 0.98 <= bound <= 2080
    loss = results["reconfiguration"].loss
    # Frames to the withdrawn network are lost, one direction of two, from some time in BGP's work until its end. The
    # policer drops a few more, as the traffic takes longer than a trial.
    least, most = map(float, shown.partition("outage ")[2].split())
    assert least / 2 * 0.98 <= loss.lost_time_s <= most / 2 + 0.15


OFFICE = deployed(
    "office",
    {"pc1": "linux", "r1": FRR, "pc2": "linux"},
    "pc1:eth1 r1:eth1",
    "r1:eth2 pc2:eth1",
    pc1_eth1="198.18.0.2/24",
    r1_eth1="198.18.0.1/24",
    r1_eth2="198.19.0.1/24",
    pc2_eth1="198.19.0.2/24",
)
CLIENT_ROUTER_SERVER = """set -e
mount -t tmpfs tmpfs /run
for node in pc1 r1 pc2; do
    ip netns add clab-office-$node
    ip netns exec clab-office-$node sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1
done
ip link add eth1 netns clab-office-pc1 type veth peer name eth1 netns clab-office-r1
ip link add eth2 netns clab-office-r1 type veth peer name eth1 netns clab-office-pc2
for end in pc1/eth1 r1/eth1 r1/eth2 pc2/eth1; do ip -n clab-office-${end%/*} link set ${end#*/} up; done
ip -n clab-office-pc1 addr add 198.18.0.2/24 dev eth1; ip -n clab-office-pc1 route add 198.19.0.0/24 via 198.18.0.1
ip -n clab-office-pc2 addr add 198.19.0.2/24 dev eth1; ip -n clab-office-pc2 route add 198.18.0.0/24 via 198.19.0.1
ip -n clab-office-r1 addr add 198.18.0.1/24 dev eth1; ip -n clab-office-r1 addr add 198.19.0.1/24 dev eth2
ip netns exec clab-office-r1 sysctl -qw net.ipv4.ip_forward=1
ip netns exec clab-office-r1 nft -f - <<END
table ip police { chain forward { type filter hook forward priority 0
    iifname eth1 limit rate over 2000/second burst 40 packets drop
    iifname eth2 limit rate over 2000/second burst 40 packets drop
}
}
END
"$0" -m lossratio lab import containerlab office.json --tg pc1 --tg pc2 --output office.yaml
printf 'addresses: lab\\nreservation: null\\n' >> office.yaml
"$0" -m lossratio check office.yaml --connect
"$0" measure.py
"""
MEASURE_OFFICE = """
from pathlib import Path
from lossratio import RunDirectory, SearchRequest, TestIdentity, TestPlace, goal_from, load_profile, open_testbed
from lossratio.measurements.throughput import find_conditional_throughput

place = TestPlace(TestIdentity(name="lab", suite="s"), RunDirectory(Path("run")))
profile = load_profile("ethip4-udp-hosts", frame_size=128)
request = SearchRequest(goals=[goal_from("QUICK_NDR")], profile=profile, min_load=1900.0, max_load=2300.0)
with open_testbed("office.yaml", dut="black_box", options={"hold": "50 ms", "rest": "200 ms"}) as testbed:
    find_conditional_throughput(testbed, request, place)
"""


def test_a_lab_of_client_router_and_server_is_measured_between_its_hosts(tmp_path):
    (tmp_path / "office.json").write_text(OFFICE)
    (tmp_path / "measure.py").write_text(MEASURE_OFFICE)
    shown = run_alone(CLIENT_ROUTER_SERVER, sys.executable, cwd=tmp_path, timeout=200)
    assert "The generator is on both ends of the path, pc1 and pc2." in shown
    assert "The path goes through r1 (linux)." in shown
    (result,) = RunDirectory(tmp_path / "run").results()
    bound = result.goals[0].result.relevant_lower_bound.per_interface_fps
    # A bucket of 40 frames besides 2,000 a second, in trials of half a second; the width is 1 %.
    assert 2078 * 0.98 <= bound <= 2080
