"""Counters of the kernel by CPU, and counts of perf."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_until

from lossratio.dut.linux.reports import difference, linux_telemetry, read_cpu_times, read_softnet
from lossratio.dut.ovs_programs import parse_pmd_statistics, parse_pmd_workers
from lossratio.dut.vpp.reports import parse_bundles, parse_perfmon, parse_runtime, parse_workers
from lossratio.errors import DutError
from lossratio.measurements.telemetry import (
    CpuLoad,
    QueueLoad,
    WorkerLoad,
    counts_per_frame,
    describe_drops,
    describe_loads,
    uneven_loads,
)
from lossratio.nodes import CommandResult, DutNode


@dataclass
class Node:
    """A node with this text in the kernel's file."""

    text: str

    def read_files(self, path):
        return {path: self.text}


def test_a_counter_that_appears_began_at_zero_and_a_cpu_that_appears_is_left_out():
    before = {"cpu0": {"processed": 5}}
    now = {"cpu0": {"processed": 8, "dropped": 2}, "cpu1": {"processed": 70}}
    assert difference(now, before) == {"cpu0": {"processed": 3, "dropped": 2}}


def line(*counts, rest):
    return " ".join(f"{count:08x}" for count in (*counts, *[0] * 6, *rest))


def test_a_cpu_has_its_own_number_also_where_others_are_offline():
    lines = [line(300, 20, 1, rest=(7, 5, 0, cpu, 0, 0)) for cpu in (0, 2)]
    by_cpu = read_softnet(Node("\n".join(lines)))
    counts = {"processed": 300, "dropped": 20, "time_squeeze": 1, "received_rps": 7, "flow_limited": 5}
    assert by_cpu == {"cpu0": counts, "cpu2": counts}


@pytest.mark.parametrize(("rest", "columns"), [((7, 5), 5), ((), 3)])
def test_an_older_kernel_reports_less_and_its_lines_are_counted(rest, columns):
    by_cpu = read_softnet(Node("\n".join(line(300, 20, 1, rest=rest) for _ in range(2))))
    assert list(by_cpu) == ["cpu0", "cpu1"]
    assert len(by_cpu["cpu1"]) == columns


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


THREADS = """\
\x1b[1;33m      per-thread context switches       \x1b[0m
\x1b[33m            \x1b[0m \x1b[33m RunTime \x1b[0m \x1b[33mContextSwitches/Sec\x1b[0m
\x1b[1;32mvpp_main (0)\x1b[0m       .02\x1b[0m             6503.37\x1b[0m
\x1b[1;32mvpp_wk_0 (1)\x1b[0m       .08\x1b[0m             1056.97\x1b[0m
"""
NODES = """\
          instructions/packet, cycles/packet and IPC
                   Calls   Packets  Packets/Call  Clocks/Packet  Instructions/Packet   IPC
vpp_main (0)
vpp_wk_0 (1)
  dpdk-input      200000   1000000          5.00          32.10                64.20  2.00
  ip4-lookup       80000   1000000         12.50          22.50                50.00  2.22
  idle-node           10         0          0.00            inf                  nan   nan
"""


def test_vpps_performance_monitor_counts_by_thread_or_by_node_and_prints_colours():
    threads = parse_perfmon("context-switches", THREADS)
    assert [(each["place"], each["name"], each["value"], each["unit"]) for each in threads] == [
        ("vpp_main", "perfmon_run_time", 0.02, "s"),
        ("vpp_main", "perfmon_context_switches_per_second", 6503.37, "1/s"),
        ("vpp_wk_0", "perfmon_run_time", 0.08, "s"),
        ("vpp_wk_0", "perfmon_context_switches_per_second", 1056.97, "1/s"),
    ]
    nodes = {(each["place"], each["name"]): each["value"] for each in parse_perfmon("inst-and-clock", NODES)}
    assert {place for place, _ in nodes} == {"vpp_wk_0 dpdk-input", "vpp_wk_0 ip4-lookup"}
    assert nodes["vpp_wk_0 ip4-lookup", "perfmon_instructions_per_clock"] == 2.22
    assert nodes["vpp_wk_0 dpdk-input", "perfmon_clocks_per_packet"] == 32.1
    labels = {"node_name": "dpdk-input", "thread_name": "vpp_wk_0", "thread_id": "1"}
    assert parse_perfmon("inst-and-clock", NODES)[0]["labels"] == labels


def test_only_bundles_that_this_machine_can_count_are_asked_for():
    listed = "Name  Type(s)  Source  Description\npage-faults  thread  linux  x\ncontext-switches  thread  linux  x\n"
    assert parse_bundles(listed) == ["context-switches"]
    assert parse_bundles("show perfmon: unknown input `bundle'") == []


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


def test_vpps_graph_nodes_have_the_labels_that_csit_gives_them():
    labels = {each["place"]: each["labels"] for each in parse_runtime(RUNTIME) if "labels" in each}
    assert labels["vpp_wk_0 ip4-lookup"] == {
        "node_name": "ip4-lookup",
        "state": "active",
        "thread_id": "1",
        "thread_name": "vpp_wk_0",
        "thread_lcore": "2",
    }


PLACEMENT = """\
Thread 1 (vpp_wk_0):
  node dpdk-input:
    west queue 0 (polling)
    east queue 0 (polling)
Thread 2 (vpp_wk_1):
  node dpdk-input:
    west queue 1 (polling)
"""


def test_vpps_workers_have_the_frames_of_their_input_nodes_and_an_idle_one_has_none():
    runtime = RUNTIME + "---------------\nThread 2 vpp_wk_1 (lcore 3)\n"
    assert parse_workers(runtime, PLACEMENT) == [
        {"worker": "vpp_wk_0", "frames": 1_000_020, "queues": ["west queue 0", "east queue 0"]},
        {"worker": "vpp_wk_1", "frames": 0, "queues": ["west queue 1"]},
    ]


def test_a_vpp_without_workers_forwards_in_its_main_thread():
    text = "\n".join(line for line in RUNTIME.splitlines() if not line.startswith("Thread"))
    assert parse_workers(text, "") == [{"worker": "vpp_main", "frames": 1_000_020, "queues": []}]


def test_open_vswitchs_workers_have_frames_queues_and_the_share_of_their_time():
    statistics = """\
pmd thread numa_id 0 core_id 2:
  packets received: 3000
  idle cycles: 1000 (25.00%)
  processing cycles: 3000 (75.00%)
pmd thread numa_id 0 core_id 3:
  packets received: 0
main thread:
  packets received: 7
"""
    queues = """\
pmd thread numa_id 0 core_id 2:
  isolated : false
  port: west              queue-id:  0 (enabled)   pmd usage: 40 %
  port: east              queue-id:  1 (enabled)   pmd usage: 35 %
  overhead:  1 %
pmd thread numa_id 0 core_id 3:
  isolated : false
"""
    assert parse_pmd_workers(parse_pmd_statistics(statistics.splitlines()), queues.splitlines()) == [
        {
            "worker": "pmd thread numa_id 0 core_id 2",
            "frames": 3000,
            "busy": 0.75,
            "queues": ["west queue 0", "east queue 1"],
        },
        {"worker": "pmd thread numa_id 0 core_id 3", "frames": 0, "busy": None, "queues": []},
    ]


def test_a_cpu_has_its_time_in_soft_interrupts():
    text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 20 60 0 0 10 0 5 0\ncpu2 1 1 1 1 1 1 1 1 0 0\nintr 5 6\n"
    assert read_cpu_times(Node(text)) == {"cpu0": {"all": 100, "softirq": 10}, "cpu2": {"all": 8, "softirq": 1}}
    assert read_cpu_times(Node("")) == {}


def workers(*frames):
    return [WorkerLoad(worker=f"vpp_wk_{number}", frames=count) for number, count in enumerate(frames)]


def queues(*frames, interface="west"):
    return [QueueLoad(interface=interface, queue=number, frames=count) for number, count in enumerate(frames)]


def test_a_worker_with_far_more_than_its_share_is_a_doubt_with_its_size():
    (doubt,) = uneven_loads("DUT1", workers(900_000, 50_000, 50_000), queues(900_000, 100_000))
    assert str(doubt) == (
        "DUT1: of 3 workers vpp_wk_0 takes 90.0 % of 1,000,000 frames, where 33.3 % would be its share. "
        "Look at the flows, at RSS (ethtool -x) and at the queues of each worker"
    )


def test_a_queue_with_far_more_than_its_share_is_a_doubt_where_workers_are_not_known():
    loads = [*queues(100_000, 0), *queues(51_000, 49_000, interface="east")]
    (doubt,) = uneven_loads("DUT1", [], loads)
    assert "of 2 receive queues of west queue 0 takes 100.0 % of 100,000 frames, where 50 %" in str(doubt)


@pytest.mark.parametrize("loads", [[], workers(10**6), workers(600_000, 400_000), workers(1000, 10), workers(0, 0)])
def test_even_shares_few_frames_and_a_single_worker_are_no_doubt(loads):
    assert list(uneven_loads("DUT1", loads, [])) == []


def test_loads_are_described_with_their_shares():
    busy = [WorkerLoad(worker="pmd 2", frames=75, busy=0.5), WorkerLoad(worker="pmd 3", frames=25)]
    assert list(describe_loads(busy, [CpuLoad(cpu=1, frames=10, softirq=0.25)])) == [
        "workers: of 100 frames pmd 2 75.0 % (50 % busy), pmd 3 25.0 %",
        "kernel: of 10 frames CPU 1 100.0 % (25 % in soft interrupts)",
    ]
    assert list(describe_loads(workers(0, 0), [])) == []


def test_queues_that_dropped_frames_are_named_with_their_counts():
    dropping = QueueLoad(interface="west", queue=1, frames=9000, dropped_frames=1234)
    assert list(describe_drops([*queues(5), dropping])) == ["receive queues dropped 1,234 in queue 1 of west"]
    assert list(describe_drops(queues(5, 6))) == []
    assert dropping.model_dump(mode="json")["dropped_frames"] == 1234
    assert "dropped_frames" not in queues(5)[0].model_dump(mode="json")


def test_counts_of_the_cpus_are_given_per_frame():
    lines = [
        {"counter-value": "2000000.000000", "event": "cycles:P"},
        {"counter-value": "3000000.0", "event": "instructions"},
        {"counter-value": "500", "event": "cache-misses"},
        {"counter-value": "<not supported>", "event": "branch-misses"},
        {"counter-value": "204.16", "event": "task-clock"},
    ]
    assert list(counts_per_frame(lines, 1000)) == [
        {"place": "all CPUs", "name": "cycles_per_frame", "value": 2000.0, "unit": "cycles"},
        {"place": "all CPUs", "name": "instructions_per_frame", "value": 3000.0, "unit": "instructions"},
        {"place": "all CPUs", "name": "cache_misses_per_frame", "value": 0.5, "unit": "misses"},
        {"place": "all CPUs", "name": "instructions_per_cycle", "value": 1.5, "unit": "instructions"},
    ]
    assert [each["name"] for each in counts_per_frame(lines, 0)] == ["instructions_per_cycle"]
    assert list(counts_per_frame({"unavailable": "no perf"}, 1000)) == []


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

    def run(self, *command, check=False, stdin=None, timeout=30.0):
        words = [
            word.replace("PATH=", f"PATH={self.programs}:") if word.startswith("PATH=") else word for word in command
        ]
        done = subprocess.run(words, capture_output=True, text=True, input=stdin or "", timeout=PATIENCE)
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def perf(tmp_path):
    def perf(then, links="echo '[]'"):
        programs = {"perf": PERF.format(python=sys.executable, then=then), "ip": f"#!/bin/sh\n{links}\n"}
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        with linux_telemetry(DutNode(Machine(tmp_path)), ()) as report:
            wait_until((tmp_path / "directory").exists)
        assert not Path((tmp_path / "directory").read_text()).exists()
        return report["perf"]

    return perf


def test_perf_writes_its_counts_when_the_traffic_has_passed(perf):
    assert perf(COUNTS) == [{"event": "cycles"}, {"event": "instructions"}]


def test_perf_ends_with_its_directory_if_the_counters_cannot_be_read(perf, tmp_path):
    until_perf_runs = f"until [ -e {tmp_path}/directory ]; do sleep 0.01; done"
    with pytest.raises(DutError, match="no such machine"):
        perf(COUNTS, f"{until_perf_runs}; echo no such machine >&2; exit 1")
    assert not Path((tmp_path / "directory").read_text()).exists()


def test_the_reason_is_reported_where_perf_may_not_count(perf):
    assert perf(REFUSES) == {"unavailable": "No permission to count all CPUs."}
