"""Measures on a local testbed while things break. Run it in a network namespace of its own, as it drops packets there.

`network_faults.py TOPOLOGY DIRECTORY SCENARIO...` prints a line of JSON for each scenario: what came of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from testbed_processes import agents, lose_connections

from lossratio.errors import LossRatioError
from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeSession
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.reservation import make_claim
from lossratio.testbed.reservation.lease import clear
from lossratio.testbed.testbed import Recovery
from lossratio.topology import load_topology
from lossratio.traffic import load_profile

TRIALS = 4
PROFILE = load_profile("ethip4-udp", frame_size="64B")
LONG = MrrRequest(profile=PROFILE, max_load=1e3, trials=TRIALS, trial_duration=0.5)
BRIEF = MrrRequest(profile=PROFILE, max_load=1e3, trials=1, trial_duration=0.1)
RECOVERY = Recovery(pauses=(0.2, 0.5, 1.0), patience=5.0)


def nft(*rules):
    subprocess.run(["nft", "-f", "-"], input="\n".join(rules), text=True, check=True)


def cut(port, verdict):
    nft(
        "add table ip faults",
        "add chain ip faults in { type filter hook input priority 0; }",
        f"add rule ip faults in tcp dport {port} {verdict}",
        f"add rule ip faults in tcp sport {port} {verdict}",
    )


def mend():
    subprocess.run(["nft", "delete", "table", "ip", "faults"], check=False, stderr=subprocess.DEVNULL)


class Lab:
    """A local testbed, set up and ready to measure; how to break it; and a way to do so in the midst of a trial."""

    def __init__(self, file, directory):
        self.file = file
        self.directory = RunDirectory(directory)
        self.local = LocalTestbed.up(load_topology(file), keep=True)
        self.nodes = self.local.topology.nodes
        self.port = self.nodes["TG"].port
        # Logged in before the trials: on a busy host that takes longer than all of them.
        self.sessions = {name: NodeSession.connect(name, node) for name, node in self.nodes.items()}
        self.bench = None
        # What lossratio writes on the TG node, the agent and the reservation, is on a disk that is soon full.
        self._on("TG", "sh", "-c", "mkdir -p /run/lossratio && mount -t tmpfs -o size=1m none /run/lossratio")

    def set_up(self):
        self.bench = open_testbed(self.file, dut="linux_bridge", recovery=RECOVERY)

    def tear_down(self):
        bench, self.bench = self.bench, None
        bench.close()

    def black_hole_for_a_while(self):
        cut(self.port, "drop")
        time.sleep(3.5)
        mend()

    def black_hole_for_ever(self):
        cut(self.port, "drop")

    def sshd_killed_and_back(self):
        with suppress(LossRatioError):
            lose_connections(self.sessions["TG"])
        cut(self.port, "reject with tcp reset")
        time.sleep(1)
        mend()

    def port_down_and_up(self):
        self._flap("TG", "tg0")

    def dut_port_down_and_up(self):
        self._flap("DUT1", "dut1")

    def agent_killed(self):
        session = self.sessions["TG"]
        session.run("kill", "-KILL", *agents(session), check=False)

    def tg_disk_full(self):
        self._on("TG", "sh", "-c", "cat /dev/zero > /run/lossratio/full", check=False)

    def dut_taken_apart(self):
        self._on("DUT1", "ip", "link", "set", "dev", "dut0", "nomaster")

    def reservation_taken_away(self):
        topology = load_topology(self.file)
        clear(self.sessions["TG"], make_claim(topology), force=True)

    def play(self, scenario):
        """Breaks something in the second trial, and measures again afterwards."""
        outcome = self._measure(scenario, LONG, getattr(self, scenario))
        afterwards = self._measure(f"{scenario} afterwards", BRIEF)
        return {"scenario": scenario, **outcome, "afterwards": afterwards}

    def _measure(self, name, request, act=None):
        place = TestPlace(TestIdentity(name=name, suite="faults"), self.directory)
        threads = []

        def on_progress(progress):
            if act is not None and progress.number == 1:
                threads.append(threading.Timer(0.2, act))
                threads[-1].start()
            elif progress.number == TRIALS - 1:
                # A busy host may take longer to break something than for the other trials.
                for thread in threads:
                    thread.join()

        error = None
        try:
            if self.bench is None:
                self.set_up()
            for session in self.sessions.values():
                session.restore()
            measure_mrr(self.bench, request, place, on_progress)
        except LossRatioError as failure:
            error = f"{type(failure).__name__}: {failure}"
        for thread in threads:
            thread.join()
        mend()
        if error is not None and error.startswith(("DutError", "ReservationLostError")):
            self.tear_down()
        result = self.directory.result_path(place.test.full_name)
        trials = read_result(result).trials if result.exists() else ()
        return {
            "error": error,
            "trials": len(trials),
            "repairs": [repair for trial in trials for repair in trial.repairs],
        }

    def left(self):
        """What is still there that may not be."""
        return {"agents": len(agents(self.sessions["TG"])), "rules": self._on("DUT1", "nft", "list", "ruleset").stdout}

    def _flap(self, node, interface):
        link = ("ip", "link", "set", "dev", interface)
        self._on(node, *link, "down")
        time.sleep(0.5)
        self._on(node, *link, "up")

    def _on(self, node, *command, check=True):
        return self.sessions[node].run(*command, check=check)


def main() -> None:
    file, directory, *scenarios = sys.argv[1:]
    lab = Lab(Path(file), Path(directory))
    try:
        for scenario in scenarios:
            print(json.dumps(lab.play(scenario)), flush=True)
        lab.tear_down()
        print(json.dumps(lab.left()), flush=True)
    finally:
        lab.local.down()


main()
