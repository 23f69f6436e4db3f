"""The probe of the cabling names each fault, in namespaces that nobody else sees."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from netns import run_alone

ROOT = Path(__file__).parents[3]

TOPOLOGY = """\
format: lossratio-topology/1
name: cabled
reservation: null
nodes:
  TG:
    type: TG
    netns: tg
    generator: {kind: afpacket, max_rate: 10 kfps}
    interfaces:
      west: {name: tg0, link: in}
      east: {name: tg1, link: out}
      west2: {name: tg2, link: in2}
      east2: {name: tg3, link: out2}
  BOX:
    type: DUT
    interfaces: {in: {link: in}, out: {link: out}, in2: {link: in2}, out2: {link: out2}}
"""

# Two bridges between four ports, without chatter of their own.
BUILD = """\
mount -t tmpfs tmpfs /run
set -e
ip netns add tg
ip netns add box
for ns in tg box; do
    ip netns exec $ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
for n in 0 1 2 3; do
    ip link add tg$n netns tg type veth peer name box$n netns box
    ip -n tg link set tg$n up
    ip -n box link set box$n up
done
for n in 0 1; do
    ip -n box link add br$n type bridge mcast_snooping 0
    ip -n box link set br$n up
done
for n in 0 1; do ip -n box link set box$n master br0; done
for n in 2 3; do ip -n box link set box$n master br1; done
exec "$@"
"""

PROBE = """\
import subprocess, sys, time
from pathlib import Path
from lossratio.testbed.cabling import probe_cabling
from lossratio.testbed.cabling import describe_cabling
from lossratio.topology import load_topology

RELAY = '''
import socket, sys
here, there = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in range(2))
here.bind((sys.argv[1], 3))
there.bind((sys.argv[2], 0))
print("ready", flush=True)
while True:
    frame, address = here.recvfrom(9000)
    if address[2] != socket.PACKET_OUTGOING:
        for _ in range(int(sys.argv[3])):
            there.send(frame)
'''

STRANGER = '''
import socket, time, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind((sys.argv[1], 0))
print("ready", flush=True)
while True:
    port.send(bytes.fromhex("ffffffffffff02000000009908004500002e000000004011f6c2c0000201c0000202") + bytes(26))
    time.sleep(0.02)
'''

def box(*lines):
    for line in lines:
        subprocess.run(["ip", "-n", "box", *line.split()], check=True)

def start(program, *arguments):
    command = ["ip", "netns", "exec", "box", sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process

def drop(port):
    hook = f'type filter hook ingress device "{port}" priority 0'
    rules = f'table netdev lost {{\\n chain c {{\\n{hook}\\nmeta length 1-9000 drop\\n}}\\n}}'
    subprocess.run(["ip", "netns", "exec", "box", "nft", "-f", "-"], input=rules, text=True, check=True)

def mark(port):
    hook = f'type filter hook ingress device "{port}" priority 0'
    rules = f'table netdev marks {{\\n chain c {{\\n{hook}\\nip dscp set 10\\n}}\\n}}'
    subprocess.run(["ip", "netns", "exec", "box", "nft", "-f", "-"], input=rules, text=True, check=True)

def show(what, links=2, sizes=("64B",), profile="ethip4-udp", file="cabled.yaml"):
    print("==", what, flush=True)
    topology = load_topology(file)
    report = probe_cabling(topology, links, duts=None, nic=None, profile=profile, frame_sizes=sizes)
    print("\\n".join(line.strip() for line in describe_cabling(report)), flush=True)

show("fine", sizes=("64B", "1518B"))

mark("box0")
show("marks", links=1)
show("marks that are expected", links=1, profile="ethip4-ip4base-marked")
head = "format: lossratio-traffic-profile/1\\nname: mine\\nipv4: {}\\nreceived: {ipv4: {dscp: %d}}\\n"
for code in (10, 11):
    Path("mine.yaml").write_text(head % code)
    show(f"marks of code {code}", links=1, profile="./mine.yaml")
subprocess.run(["ip", "netns", "exec", "box", "nft", "flush", "ruleset"], check=True)

box("link set box1 master br1", "link set box3 master br0")
show("swapped")

show("another port", links=1)

for port in range(4):
    box(f"link set box{port} master br0")
box("link set br0 type bridge ageing_time 0")
show("hub")
box("link set br0 type bridge ageing_time 30000", "link set box2 master br1", "link set box3 master br1")

box("link set box0 mtu 1000")
drop("box3")
show("small and one way", sizes=("64B", "1518B"))
box("link set box0 mtu 1500")

box("link set box2 nomaster", "link set box3 nomaster")
others = [start(STRANGER, "box0"), start(RELAY, "box2", "box2", "1")]
show("strangers and reflections")
for other in others:
    other.kill()

box("link set box0 nomaster", "link set box1 nomaster")
others = [start(RELAY, "box0", "box1", "1"), start(RELAY, "box1", "box0", "4")]
show("tags", sizes=("68B",), profile="dot1q-ip4base")
for other in others:
    other.kill()

text = Path("cabled.yaml").read_text().replace("    type: DUT\\n", "    type: DUT\\n    netns: box\\n")
swapped = (("in", "box0", "out"), ("out", "box1", "in"), ("in2", "box2", "in2"), ("out2", "box3", "out2"))
for port, name, link in swapped:
    text = text.replace(f"{port}: {{link: {port}}}", f"{port}: {{name: {name}, link: {link}}}")
Path("wrong.yaml").write_text(text)
show("at the device", file="wrong.yaml")

subprocess.run(["ip", "netns", "exec", "box", "nft", "flush", "ruleset"], check=True)
for number in (2, 3):
    box(f"link add link box{number} name card{number} type macvlan mode private", f"link set card{number} up")
    text = text.replace(f"name: box{number}", f"name: card{number}")
Path("filtering.yaml").write_text(text)
show("at cards that filter", file="filtering.yaml")
"""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    path = tmp_path_factory.mktemp("cabling")
    (path / "cabled.yaml").write_text(TOPOLOGY)
    (path / "probe.py").write_text(PROBE)
    shown = run_alone(BUILD, "sh", sys.executable, "probe.py", cwd=path, timeout=180)
    parts = shown.removeprefix("== ").split("\n== ")
    return {part.splitlines()[0]: part.splitlines()[1:] for part in parts}


WORK = "{} > {}: frames of {} bytes come out"
WAYS = [("TG.west", "TG.east"), ("TG.east", "TG.west"), ("TG.west2", "TG.east2"), ("TG.east2", "TG.west2")]

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces without a log-in"),
    pytest.mark.xdist_group("cabling"),
]


def test_two_good_paths_have_no_fault(cases):
    assert cases["fine"] == [WORK.format(*way, "64 and 1518") for way in WAYS]


def test_a_field_that_a_device_rewrites_is_named_unless_the_profile_expects_it(cases):
    works = [WORK.format(*way, 64) for way in WAYS[:2]]
    *fine, problem = cases["marks"]
    assert fine == works
    assert problem.startswith(
        "PROBLEM: TG.west > TG.east: frames do not come out as they were sent: only the IPv4 DSCP differs: 0 before, "
        "10 after. For a device that marks frames, give the profile 'is_marked: true'"
    )
    assert cases["marks that are expected"] == works
    assert cases["marks of code 10"] == works
    (problem,) = set(cases["marks of code 11"]) - set(works)
    assert "only the IPv4 DSCP differs: 11 before, 10 after" in problem


def test_swapped_links_are_named(cases):
    assert [line.partition(". Change")[0] for line in cases["swapped"]] == [
        f"PROBLEM: {source}: swapped links: frames to {peer} come out of {other}"
        for (source, peer), other in zip(WAYS, ("TG.east2", "TG.west2", "TG.east", "TG.west"), strict=True)
    ]


def test_frames_that_come_out_of_a_port_on_no_path_are_found(cases):
    assert cases["another port"] == [
        "PROBLEM: TG.west: swapped links: frames to TG.east come out of TG.east2. Change the cables, or the links in "
        "the topology file.",
        "PROBLEM: TG.east: swapped links: frames to TG.west come out of TG.west2. Change the cables, or the links in "
        "the topology file.",
    ]


def test_a_hub_is_named(cases):
    assert cases["hub"][:4] == [WORK.format(*way, "64") for way in WAYS]
    assert cases["hub"][4].startswith(
        "PROBLEM: TG.west: frames to TG.east also come out of TG.west2, TG.east2: a hub, or a switch that does not"
    )
    assert len(cases["hub"]) == 8


def test_a_small_mtu_and_a_one_way_path_are_named(cases):
    lines = cases["small and one way"]
    assert lines[0] == WORK.format("TG.west", "TG.east", "64")
    problems = [line for line in lines if line.startswith("PROBLEM")]
    assert any(
        line.startswith(f"PROBLEM: TG.{side}") and "1518 bytes" in line and "too small for the requested sizes" in line
        for line in problems
        for side in ("west:", "west >")
    )
    assert any(
        line.startswith(
            "PROBLEM: TG.east2 > TG.west2: a one-way path: nothing comes out, but the other direction works"
        )
        for line in problems
    )


def test_frames_of_others_and_reflections_are_named(cases):
    lines = cases["strangers and reflections"]
    assert any("PROBLEM: TG.west2: a loop: its frames come back to the same port." in line for line in lines)
    foreign = [line for line in lines if "foreign traffic" in line]
    assert foreign
    assert all("such as IPv4 from 192.0.2.1 to 192.0.2.2 (from 02:00:00:00:00:99)" in line for line in foreign)
    assert any(line.startswith("PROBLEM: TG.west:") for line in foreign)


def test_stripped_tags_copies_and_dead_paths_are_named(cases):
    lines = cases["tags"]
    assert any(
        line.startswith(
            "PROBLEM: TG.west > TG.east: frames do not come out as they were sent: only the VLAN tag differs: "
        )
        for line in lines
    )
    assert any(
        line.startswith("PROBLEM: TG.east: a loop: each frame that it sends comes out 4 times.") for line in lines
    )
    assert any(
        line.startswith("PROBLEM: TG.west2 > TG.east2: nothing comes out, in either direction.") for line in lines
    )


def test_the_counters_of_a_device_show_swapped_links_and_what_it_drops(cases):
    lines = cases["at the device"]
    assert any(
        line.startswith("PROBLEM: TG.west: swapped links: its frames arrive at BOX.in instead of BOX.out.")
        for line in lines
    )
    assert any(
        line.startswith("Note: TG.west2 > TG.east2: the frames arrive at BOX.in2 but do not come out.")
        for line in lines
    )


def test_a_card_that_counts_only_frames_to_its_own_address_is_no_dead_link(cases):
    lines = cases["at cards that filter"]
    assert [line.partition(" but")[0] for line in lines if "TG.west2" in line] == [
        "Note: TG.west2 > TG.east2: the frames arrive at BOX.in2",
        "Note: TG.east2 > TG.west2: the frames arrive at BOX.out2",
    ]
