"""Next hops are asked for, the generator answers, and traffic with a lab's own addresses stays in the lab."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from netns import run_alone

ROOT = Path(__file__).parents[3]

TOPOLOGY = """\
format: lossratio-topology/1
name: routed
reservation: null
addresses: lab
nodes:
  TG:
    type: TG
    netns: tg
    generator: {kind: afpacket, max_rate: 10 kfps}
    interfaces:
      west: {name: tg0, link: in, address: [10.1.0.2/30, "2001:db8:1::2/64"], gateway: [10.1.0.1, "2001:db8:1::1"]}
      east:
        name: tg1
        link: out
        address: [10.1.0.6/30, "2001:db8:2::2/64"]
        gateway: [10.1.0.5, "2001:db8:2::1"]
        network: 10.99.0.0/16
  BOX:
    type: DUT
    netns: box
    interfaces:
      in: {name: in0, link: in}
      out: {name: out0, link: out}
"""

BUILD = """\
mount -t tmpfs tmpfs /run
set -e
ip netns add tg
ip netns add box
ip link add tg0 netns tg type veth peer name in0 netns box
ip link add tg1 netns tg type veth peer name out0 netns box
for port in in0 out0; do ip -n box link set $port up; done
for port in tg0 tg1; do ip -n tg link set $port up; done
ip -n box addr add 10.1.0.1/30 dev in0
ip -n box addr add 10.1.0.5/30 dev out0
ip -n box addr add 2001:db8:1::1/64 dev in0 nodad
ip -n box addr add 2001:db8:2::1/64 dev out0 nodad
ip -n box route add 10.99.0.0/16 via 10.1.0.6
ip netns exec box sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
exec "$@"
"""

MEASURE = """\
import subprocess, sys
from lossratio.errors import LossRatioError
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput

def box(line):
    subprocess.run(["ip", "-n", "box", *line.split()], check=True)

testbed = open_testbed("routed.yaml", dut="black_box", options={"hold": "200 ms"})

def measure(profile, size):
    with testbed.ready_for(load_profile(profile, frame_size=size)) as ready:
        output = ready.measurer.measure(TrialInput(0.2, 1000.0))
        hops = sorted(ready.conditions.generator["next_hops"])
        counts = [(direction.sent_frames, direction.received_frames) for direction in output.directions]
        print(profile, counts, hops, ready.conditions.traffic.addresses, flush=True)

def refusal(profile, size):
    try:
        measure(profile, size)
    except LossRatioError as error:
        print(type(error).__name__, error, flush=True)

"""


def in_the_lab(tmp_path, program):
    (tmp_path / "routed.yaml").write_text(TOPOLOGY)
    (tmp_path / "measure.py").write_text(program)
    return run_alone(BUILD, "sh", sys.executable, "measure.py", cwd=tmp_path, timeout=120).splitlines()


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces without a log-in")


@pytest.mark.netns
@needs_root
def test_a_router_with_addresses_of_its_own_is_measured_as_it_is(tmp_path):
    ipv4, ipv6, mac = in_the_lab(
        tmp_path,
        MEASURE
        + """
measure("ethip4-udp-hosts", 64)
measure("ethip6-udp-hosts", 78)
tg = subprocess.run(["ip", "-n", "tg", "-br", "link", "show", "tg0"], capture_output=True, text=True).stdout.split()[2]
known = subprocess.run(["ip", "-n", "box", "neigh", "show", "dev", "in0"], capture_output=True, text=True).stdout
print(f"10.1.0.2 lladdr {tg}" in known and f"2001:db8:1::2 lladdr {tg}" in known)
testbed.close()
""",
    )
    # All frames come back only if the router got answers from both ports.
    assert ipv4 == (
        "ethip4-udp-hosts [(200, 200), (200, 200)] ['TG.east 10.1.0.5', 'TG.west 10.1.0.1'] "
        "10.1.0.2 to 10.99.0.1; 10.99.0.1 to 10.1.0.2"
    )
    assert ipv6 == (
        "ethip6-udp-hosts [(200, 200), (200, 200)] ['TG.east 2001:db8:2::1', 'TG.west 2001:db8:1::1'] "
        "2001:db8:1::2 to 2001:db8:2::2; 2001:db8:2::2 to 2001:db8:1::2"
    )
    assert mac == "True"


@pytest.mark.netns
@needs_root
def test_traffic_never_goes_towards_a_default_route(tmp_path):
    default, elsewhere, nowhere, silent, too_many = in_the_lab(
        tmp_path,
        MEASURE
        + """
box("route del 10.99.0.0/16")
box("route add default via 10.1.0.6")
refusal("ethip4-udp-hosts", 64)
box("route del default")
box("route add 10.99.0.0/16 via 10.1.0.2")
refusal("ethip4-udp-hosts", 64)
box("route del 10.99.0.0/16")
refusal("ethip4-udp-hosts", 64)
box("route add 10.99.0.0/16 via 10.1.0.6")
box("addr add 10.1.0.9/30 dev out0")
box("addr del 10.1.0.5/30 dev out0")
box("route replace 10.99.0.0/16 dev out0")
refusal("ethip4-udp-hosts", 64)
box("addr add 10.1.0.5/30 dev out0")
refusal("ethip4-udp", 64)
testbed.close()
""",
    )
    assert default.startswith(
        "TopologyError BOX would send test traffic to 10.99.0.1 along its default route (out0), out of the lab. "
        "Nothing was sent."
    )
    assert elsewhere.startswith(
        "TopologyError BOX would send test traffic to 10.99.0.1 out of in0, by its route to 10.99.0.0/16, but the path "
        "leaves through out0."
    )
    assert nowhere.startswith("TopologyError BOX does not forward traffic from 10.1.0.2 to 10.99.0.1 that arrives on")
    assert silent.startswith(
        "DeadPathError The cause is not known: the gateway 10.1.0.5 of TG.east does not answer ARP. Look at the link"
    )
    assert too_many.startswith("TrafficError Traffic from 10.1.0.2") or "There is no address 254" in too_many


@pytest.mark.netns
@needs_root
def test_a_probe_goes_through_routers_and_names_the_gateways_that_are_silent(tmp_path):
    probed, swapped = in_the_lab(
        tmp_path,
        """
from lossratio.testbed.cabling import probe_cabling
from lossratio.testbed.cabling import describe_cabling
from lossratio.topology import load_topology
text = open("routed.yaml").read()
text = text.replace("    netns: box\\n", "").replace("tg0", "x").replace("tg1", "tg0")
open("wrong.yaml", "w").write(text.replace("{name: x", "{name: tg1"))
for file in ("routed.yaml", "wrong.yaml"):
    report = probe_cabling(
        load_topology(file), 1, duts=None, nic=None, profile="ethip4-udp-hosts", frame_sizes=["64B", "1518B"]
    )
    print("; ".join(line.strip() for line in describe_cabling(report) if "Note" not in line))
""",
    )
    assert probed == (
        "TG.west > TG.east: frames of 64 and 1518 bytes come out; "
        "TG.east > TG.west: frames of 64 and 1518 bytes come out"
    )
    assert "PROBLEM: The gateway 10.1.0.1 of TG.west does not answer ARP. Look at the link" in swapped
    assert "Swapped cables look like this, too." in swapped
