"""Keywords that get in the way of TRex on the tester of a local testbed, which is up to stay meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from lossratio.nodes import NodeSession
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology

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

    def kill_server_later(self, delay: timedelta) -> None:
        """Kills the server that lossratio has started, while something else goes on."""
        threading.Timer(delay.total_seconds(), self._on_tester, (f"kill -KILL $({PIDS})",)).start()

    def kill_a_run_in_its_midst(self, topology: Path, directory: Path) -> None:
        """Starts a run of lossratio on the tester, and kills it when it has measured some trials."""
        directory.mkdir(parents=True, exist_ok=True)
        suite = directory / "killed.robot"
        suite.write_text(SUITE)
        journal = RunDirectory(directory).journal_path("Killed.Measured")
        command = [sys.executable, "-m", "robot", "--outputdir", str(directory), "--variable", f"TOPOLOGY:{topology}"]
        with open(directory / "console.txt", "w", encoding="utf-8") as console:
            run = subprocess.Popen([*command, str(suite)], stdout=console, stderr=console)
        end = time.monotonic() + PATIENCE
        try:
            while not journal.exists() or journal.read_bytes().count(b"\n") <= TRIALS:
                if run.poll() is not None or time.monotonic() > end:
                    raise AssertionError((directory / "console.txt").read_text(encoding="utf-8"))
                time.sleep(0.1)
        finally:
            run.kill()
            run.wait()

    def make_a_bridge(self, *, faulty: bool) -> None:
        """Makes the device a bridge that others have set up; a faulty one sends some frames twice."""
        self._on("DUT1", BRIDGE)
        if faulty:
            self._on("DUT1", f"nft '{TWICE}'")

    def _on_tester(self, script: str, *arguments: str) -> str:
        assert self._testbed is not None
        return self._on(self._testbed.topology.tg_name, script, *arguments)

    def _on(self, node: str, script: str, *arguments: str) -> str:
        assert self._testbed is not None
        with NodeSession.connect(node, self._testbed.topology.nodes[node]) as session:
            return session.run("sh", "-c", script, "script", *arguments).stdout
