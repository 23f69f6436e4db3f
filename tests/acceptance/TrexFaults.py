"""Keywords that get in the way of TRex on the tester of a local testbed, which is up to stay meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lossratio import traffic
from lossratio.agent import Plan, Question
from lossratio.agent.trex.connection import TrexSettings
from lossratio.nodes import NodeSession
from lossratio.testbed import cabling, describe_cabling
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import WEST, Port, Side, load_topology
from lossratio.traffic import (
    AgentClient,
    GeneratorNode,
    PortPair,
    TrafficPort,
    load_profile,
    make_configuration,
    open_generator,
)
from lossratio.traffic.generators.base import Generator

PIDS = "cut -d ' ' -f 1 /run/lossratio/trex-*/pid"
RUNNING = "pgrep -x -f '[.]/_t-rex-64 .*' || true"
"""Process ids of servers on the tester, one in a line."""

FOREIGN = """
mkdir -p /run/foreign && cd "$1" && printf '%s\\n' "$2" >/run/foreign/config.yaml
LD_LIBRARY_PATH=.:./so/x86_64 setsid ./_t-rex-64 -i --stl --cfg /run/foreign/config.yaml --no-scapy-server \\
    --iom 0 --software >/run/foreign/log 2>&1 </dev/null &
for _ in $(seq 100); do
    if grep -qi ":1195 00000000:0000 0A" /proc/net/tcp; then exit 0; fi
    sleep 0.3
done
cat /run/foreign/log; exit 1
"""
CONFIGURATION = """- version: 2
  interfaces: ["--vdev=net_af_packet0,iface=tg0", "--vdev=net_af_packet1,iface=tg1"]
  port_info: [{src_mac: "02:00:00:00:00:01", dest_mac: "02:00:00:00:00:02"},
              {src_mac: "02:00:00:00:00:02", dest_mac: "02:00:00:00:00:01"}]
  low_end: true"""
BRIDGE = """
ip link show br0 >/dev/null 2>&1 && exit 0
ip link add br0 type bridge stp_state 0 mcast_snooping 0
for port in dut0 dut1; do
    sysctl -qw "net.ipv6.conf.$port.disable_ipv6=1"; ip link set "$port" master br0 up
done
sysctl -qw net.ipv6.conf.br0.disable_ipv6=1; ip link set br0 up
"""
TWICE = """table netdev twice {
    chain twice { type filter hook ingress device dut0 priority 0; ip saddr & 0.0.0.31 == 0.0.0.1 dup to dut1; }
}"""
LARGE = """table netdev large {
    chain large {
        type filter hook ingress device dut0 priority 0; meta length > 1300 numgen random mod 4 == 0 drop;
    }
}"""
ROUTER = """
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.arp_ignore=1
ip address add 198.18.0.254/24 dev dut0; ip address add 198.19.0.254/24 dev dut1
for port in dut0 dut1; do
    sysctl -qw "net.ipv6.conf.$port.disable_ipv6=0" "net.ipv4.neigh.$port.base_reachable_time_ms=10000" \\
        "net.ipv4.neigh.$port.delay_first_probe_time=1" "net.ipv4.neigh.$port.ucast_solicit=1"
    ip link set "$port" up
done
ip address add 2001:2:0:1::fe/64 dev dut0 nodad; ip address add 2001:2:0:2::fe/64 dev dut1 nodad
"""
SWAPPED = """
for port in "$1" "$2"; do ip link set "$port" down; done
ip link set "$1" name swap && ip link set "$2" name "$1" && ip link set swap name "$2"
for port in "$1" "$2"; do ip link set "$port" up; done
"""
AGING_SECONDS = 18.0
"""Longer than an entry of such a router lives without a sign of life: up to 15 s, and 1.2 s more to ask in vain."""
SUITE = """
*** Settings ***
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge
Suite Teardown    Tear Down Testbed
*** Test Cases ***
Measured
    Measure MRR    64B    max_load=5 kpps    trials=200    trial_duration=0.5 s
"""
TRIALS = 3
"""Trials after which a run is killed."""

PATIENCE = 120.0


class TrexFaults:
    """Works on one local testbed at a time."""

    def __init__(self) -> None:
        self._testbed: LocalTestbed | None = None

    def keep_testbed_up(self, topology: Path) -> None:
        """Brings a local testbed up, until `Take Testbed Down`."""
        self._testbed = LocalTestbed.up(load_topology(topology), keep=True)

    def take_testbed_down(self) -> None:
        """Takes it down with all that runs there, if it is up."""
        if self._testbed is not None:
            self._testbed.down()
            self._testbed = None

    def start_foreign_server(self) -> str:
        """Starts a TRex server on the tester as somebody else would, and returns its process id there."""
        self._on_tester(FOREIGN, os.environ["TREX_HOME"], CONFIGURATION)
        return self.servers()

    def servers(self) -> str:
        """Process ids of the TRex servers on the tester."""
        return " ".join(self._on_tester(RUNNING).split())

    def install_of_another_version(self, home: Path, directory: Path) -> None:
        """Makes an installation with the server of one, and a client that speaks another version."""
        client = Path("automation/trex_control_plane/interactive/trex/stl/trex_stl_client.py")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        place, original = directory, home
        for part in client.parts:
            for there in original.iterdir():
                if there.name != part:
                    (place / there.name).symlink_to(there)
            place, original = place / part, original / part
            if place.name != client.name:
                place.mkdir()
        place.write_text(original.read_text(encoding="utf-8").replace("'major': 5", "'major': 4"), encoding="utf-8")

    def kill_server_later(self, delay: timedelta, signal: str = "KILL") -> None:
        """Kills the server that lossratio has started, or sends it another signal, while something else goes on."""
        threading.Timer(delay.total_seconds(), self._on_tester, (f"kill -{signal} $({PIDS})",)).start()

    def kill_a_run_in_its_midst(self, topology: Path, directory: Path) -> None:
        """Starts a run of lossratio on the tester, and kills it when it has measured some trials."""
        directory.mkdir(parents=True, exist_ok=True)
        suite = directory / "killed.robot"
        suite.write_text(SUITE)
        journals = directory / "trials"
        command = [sys.executable, "-m", "robot", "--outputdir", str(directory), "--variable", f"TOPOLOGY:{topology}"]
        with open(directory / "console.txt", "w", encoding="utf-8") as console:
            run = subprocess.Popen([*command, str(suite)], stdout=console, stderr=console)
        end = time.monotonic() + PATIENCE
        try:
            while not any(journal.read_bytes().count(b"\n") > TRIALS for journal in journals.glob("*.jsonl")):
                if run.poll() is not None or time.monotonic() > end:
                    raise AssertionError((directory / "console.txt").read_text(encoding="utf-8"))
                time.sleep(0.1)
        finally:
            run.kill()
            run.wait()

    def ask_gateways_as_with_cards(self) -> list[list[list[str]]]:
        """Has a server ask the router by ARP and neighbour discovery, and for addresses that nobody has.

        Returns:
            The answers of IPv4, of IPv6, and those for addresses that nobody has.
        """
        asked = [self._questions("198.18.0.{}", "198.19.0.{}", 2, 254),
                 self._questions("2001:2:0:1::{:x}", "2001:2:0:2::{:x}", 2, 254),
                 self._questions("198.18.0.{}", "198.19.0.{}", 2, 99)]  # fmt: skip
        with self._agent() as agent:
            through = {"generator": "trex", "options": self._as_with_cards(())}
            return [[list(macs) for macs in agent.resolve(one, through=through)] for one in asked]

    def lost_frames_of_a_long_trial_through_gateways(self, *, reminded: bool) -> list[int]:
        """Has a server send through the router for longer than its entries live, and returns lost frames."""
        questions = self._questions("198.18.0.{}", "198.19.0.{}", 2, 254)
        sides = [Side(IPv4Network(f"{part}.0/24"), WEST.ipv6, ipv4_offset=1) for part in ("198.18.0", "198.19.0")]
        with self._agent() as agent:
            through = {"generator": "trex", "options": self._as_with_cards(())}
            macs = [answer[0] for answer in agent.resolve(questions, through=through)]
            pair = PortPair(*(TrafficPort(name, name, mac) for name, mac in zip(("tg0", "tg1"), macs, strict=True)))
            profile = load_profile("ethip4-udp-hosts", frame_size=64)
            configuration = make_configuration(profile, [pair], settle_time=0.5, sides=[(sides[0], sides[1])])
            options = self._as_with_cards(questions if reminded else ())
            agent.configure(configuration, generator="trex", options=options)
            aged = agent.run(Plan(((1000.0, AGING_SECONDS),))).directions
            return [counted.sent_frames - counted.received_frames for counted in aged]

    def probe_as_with_cards(self, topology: Path, links: int) -> str:
        """Looks at the cabling through a server's ports in software mode, as if the kernel did not have them."""
        interfaces = load_topology(topology).nodes["TG"].interfaces

        def opened(settings: Any, node: GeneratorNode, ports: Sequence[Port]) -> Generator[Any]:
            named = [replace(port, interface=interfaces[port.name]) for port in ports]
            generator = open_generator(settings, node, named)
            by_name = dict(zip((str(port) for port in ports), named, strict=True))
            own_name, own_mac = generator.port_name, generator.mac_address
            options = {**generator.ready(), "uses_linux": False}
            with_cards: Any = generator
            with_cards.single_frames = lambda: {"generator": "trex", "options": options}
            with_cards.port_name = lambda port: own_name(by_name[str(port)])
            with_cards.mac_address = lambda port: own_mac(by_name[str(port)])
            return generator

        with (
            patch.object(cabling, "takes_cards", lambda _: True),
            patch.object(cabling, "taken_cards", lambda *_: nullcontext()),
            patch.object(traffic, "open_generator", opened),
        ):
            report = cabling.probe_cabling(
                load_topology(topology), links, duts=None, nic=None, profile="ethip4-udp", frame_sizes=["64B", "1518B"]
            )
        return "\n".join(describe_cabling(report))

    def make_a_router(self) -> None:
        """Makes the device a router whose entries of neighbours live for some seconds only."""
        self._on("DUT1", ROUTER)

    def swap_ports_of_the_tester(self, one: str, other: str) -> None:
        """Changes two cables of the tester, as seen from its ports' names."""
        self._on_tester(SWAPPED, one, other)

    @staticmethod
    def _questions(west: str, east: str, own: int, gateway: int) -> list[Question]:
        ends = zip(("tg0", "tg1"), (west, east), strict=True)
        return [Question(port, network.format(own), network.format(gateway), "") for port, network in ends]

    @staticmethod
    def _as_with_cards(questions: Sequence[Question]) -> dict[str, Any]:
        # In software mode, and as if the kernel did not have its ports.
        settings = TrexSettings(
            directory=os.environ["TREX_HOME"],
            ports={"tg0": 0, "tg1": 1},
            rpc_port=4501,
            publisher_port=4500,
            uses_linux=False,
            connect_timeout=10.0,
            late_end=0.03,
            largest_frame=1900,
            log="/run/foreign/log",
            is_ours=True,
            neighbours=tuple(asdict(question) for question in questions),
        )
        return asdict(settings)

    @contextmanager
    def _agent(self) -> Iterator[AgentClient]:
        assert self._testbed is not None
        topology = self._testbed.topology
        with (
            NodeSession.connect(topology.tg_name, topology.nodes[topology.tg_name]) as session,
            AgentClient.start(session) as agent,
        ):
            yield agent

    def make_two_bridges(self) -> None:
        """Makes the device two bridges, one for each of two links."""
        self._on("DUT1", BRIDGE)
        self._on("DUT1", BRIDGE.replace("br0", "br1").replace("dut0 dut1", "dut2 dut3"))

    def make_a_bridge(self, *, faulty: bool) -> None:
        """Makes the device a bridge that others have set up; a faulty one sends some frames twice."""
        self._on("DUT1", BRIDGE)
        if faulty:
            self._on("DUT1", f"nft '{TWICE}'")

    def make_a_bridge_that_loses_large_frames(self) -> None:
        """Makes the device a bridge that drops each fourth of the large frames, in one direction."""
        self._on("DUT1", BRIDGE)
        self._on("DUT1", f"nft '{LARGE}'")

    def _on_tester(self, script: str, *arguments: str) -> str:
        assert self._testbed is not None
        return self._on(self._testbed.topology.tg_name, script, *arguments)

    def _on(self, node: str, script: str, *arguments: str) -> str:
        assert self._testbed is not None
        with NodeSession.connect(node, self._testbed.topology.nodes[node]) as session:
            return session.run("sh", "-c", script, "script", *arguments).stdout
