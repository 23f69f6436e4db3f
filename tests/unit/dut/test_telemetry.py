"""Counters of the kernel by CPU, and counts of perf."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import wait_until

from lossratio.dut.linux.reports import linux_telemetry, read_softnet
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
