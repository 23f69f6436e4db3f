"""Counters of the kernel by CPU, and counts of perf."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import wait_until

from lossratio.dut.linux.reports import linux_telemetry, read_softnet
from lossratio.dut.ovs import parse_pmd_statistics
from lossratio.dut.vpp.dut import parse_runtime
from lossratio.nodes import CommandResult, DutNode


@dataclass
class Node:
    """A node with this text in the kernel's file."""

    text: str

    def read_files(self, path):
        return {path: self.text}


def line(*counts, rest):
    return " ".join(f"{count:08x}" for count in (*counts, *[0] * 6, *rest))


def test_a_cpu_has_its_own_number_also_where_others_are_offline():
    lines = [line(300, 20, 1, rest=(7, 5, 0, cpu, 0, 0)) for cpu in (0, 2)]
    by_cpu = read_softnet(Node("\n".join(lines)))
    counts = {"processed": 300, "dropped": 20, "time_squeeze": 1, "received_rps": 7, "flow_limited": 5}
    assert by_cpu == {0: counts, 2: counts}


@pytest.mark.parametrize(("rest", "columns"), [((7, 5), 5), ((), 3)])
def test_an_older_kernel_reports_less_and_its_lines_are_counted(rest, columns):
    by_cpu = read_softnet(Node("\n".join(line(300, 20, 1, rest=rest) for _ in range(2))))
    assert list(by_cpu) == [0, 1]
    assert len(by_cpu[1]) == columns


def test_a_node_without_the_file_reports_nothing():
    assert read_softnet(Node("")) == {}


RUNTIME = """\
Thread 0 vpp_main (lcore 1)
Time 1.3, 10.000000 sec internal node vector rate 0.00 loops/sec 5236.42
  vector rates in 0.0000e0, out 0.0000e0, drop 0.0000e0, punt 0.0000e0
          Name                 State         Calls          Vectors        Suspends     Packet-Clocks   Vectors/Call
fib-walk                     any wait                 0               0               1          1.23e3            0.00
unix-epoll-input              polling             12345               0               0          2.50e2            0.00
---------------
Thread 1 vpp_wk_0 (lcore 2)
Time 1.3, 10.000000 sec internal node vector rate 12.50 loops/sec 1234567.25
  vector rates in 1.0000e6, out 1.0000e6, drop 0.0000e0, punt 0.0000e0
          Name                 State         Calls          Vectors        Suspends     Packet-Clocks   Vectors/Call
dpdk-input                    polling            200000         1000000               0          3.21e1            5.00
ip4-lookup                    active              80000         1000000               0          2.25e1           12.50
af-packet-input            interrupt wa              10              20               0          9.87e2            2.00
"""


def test_vpps_graph_nodes_have_clocks_vectors_and_calls_with_units():
    numbers = {(each["place"], each["name"]): (each["value"], each["unit"]) for each in parse_runtime(RUNTIME)}
    assert numbers["vpp_wk_0 ip4-lookup", "clocks_per_packet"] == (22.5, "cycles")
    assert numbers["vpp_wk_0 ip4-lookup", "vectors"] == (1_000_000.0, "packets")
    assert numbers["vpp_wk_0 ip4-lookup", "calls"] == (80_000.0, "calls")
    assert numbers["vpp_wk_0 ip4-lookup", "vectors_per_call"] == (12.5, "packets")
    assert numbers["vpp_wk_0 af-packet-input", "vectors"] == (20.0, "packets")
    assert numbers["vpp_wk_0", "loops_per_second"] == (1_234_567.25, "1/s")
    # A node without packets has clocks per call, which is another quantity.
    assert {place for place, _ in numbers if place.startswith("vpp_main")} == {"vpp_main"}


def test_a_vpp_of_one_thread_has_no_line_with_its_name():
    text = "\n".join(line for line in RUNTIME.splitlines() if not line.startswith("Thread"))
    assert {each["place"].split()[0] for each in parse_runtime(text)} == {"vpp_main"}


def test_open_vswitchs_threads_have_cycles_and_packets():
    text = """\
pmd thread numa_id 0 core_id 2:
  packets received: 12345
  avg. datapath passes per packet: 1.50
  idle cycles: 1000 (10.00%)
  avg cycles per packet: 800.25 (9879/12345)
main thread:
  packets received: 7
"""
    assert parse_pmd_statistics(text.splitlines()) == [
        {"place": place, "name": name, "value": value, "unit": unit}
        for place, name, value, unit in (
            ("pmd thread numa_id 0 core_id 2", "packets_received", 12345.0, "packets"),
            ("pmd thread numa_id 0 core_id 2", "avg_datapath_passes_per_packet", 1.5, "packets"),
            ("pmd thread numa_id 0 core_id 2", "idle_cycles", 1000.0, "cycles"),
            ("pmd thread numa_id 0 core_id 2", "avg_cycles_per_packet", 800.25, "cycles"),
            ("main thread", "packets_received", 7.0, "packets"),
        )
    ]


PERF = """#!{python}
import os, pathlib, signal, sys, time
place = pathlib.Path(__file__).parent
if sys.argv[1] == "--version":
    sys.exit()
def write_counts(*_):
    pathlib.Path("perf.json").write_text('# started\\n{{"event" : "cycles"}}\\n{{"event" : "instructions"}}\\n')
    sys.exit(130)
signal.signal(signal.SIGINT, write_counts)
(place / "directory.new").write_text(os.getcwd())
(place / "directory.new").rename(place / "directory")
{then}
"""
COUNTS = "time.sleep(60)"
REFUSES = 'sys.exit("No permission to count all CPUs.")'


@dataclass
class Machine:
    """This machine as a node, with programs of a test before its own."""

    programs: Path
    name: str = "DUT1"

    def run(self, *command, check=False, stdin=None):
        words = [
            word.replace("PATH=", f"PATH={self.programs}:") if word.startswith("PATH=") else word for word in command
        ]
        done = subprocess.run(words, capture_output=True, text=True, input=stdin or "", timeout=30)
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def perf(tmp_path):
    def perf(then):
        for name, text in (("perf", PERF.format(python=sys.executable, then=then)), ("ip", "#!/bin/sh\necho '[]'\n")):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        report = {}
        with linux_telemetry(DutNode(Machine(tmp_path)), (), report):
            wait_until((tmp_path / "directory").exists)
        assert not Path((tmp_path / "directory").read_text()).exists()
        return report["perf"]

    return perf


def test_perf_writes_its_counts_when_the_traffic_has_passed(perf):
    assert perf(COUNTS) == [{"event": "cycles"}, {"event": "instructions"}]


def test_the_reason_is_reported_where_perf_may_not_count(perf):
    assert perf(REFUSES) == {"unavailable": "No permission to count all CPUs."}
