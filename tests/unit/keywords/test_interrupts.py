"""Ctrl-C during a search on real namespaces: traffic stops, the testbed comes down, every finished trial is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from local_testbeds import LOCAL, needs_testbed
from robot_runs import ROOT, write_suite
from waiting import PATIENCE, wait_until

from lossratio.results.model import TERMINATED, Outcome
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed import local
from lossratio.trials.journal_reading import read_journal

pytestmark = [pytest.mark.netns, needs_testbed]


def processes_of(group):
    done = subprocess.run(["ps", "-eo", "sid=,stat=,args="], capture_output=True, text=True, check=True)
    lines = (line.split(None, 2) for line in done.stdout.splitlines())
    return [args for sid, stat, args in lines if int(sid) == group and not stat.startswith("Z")]


@pytest.mark.parametrize("to_all", [True, False], ids=["ctrl-c", "signal to robot only"])
def test_an_interrupted_suite_leaves_nothing_but_its_trials(tmp_path, monkeypatch, to_all):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    topology = tmp_path / "topology.yaml"
    topology.write_text(LOCAL.read_text())
    tests = "Stopped\n    Find NDR And PDR    64B    max_load=5 kpps\nNever Reached\n    Find NDR And PDR    128B\n"
    file = write_suite(tmp_path, tests)
    directory = RunDirectory(tmp_path / "run")
    journal = directory.journal_path("Suite.Stopped")
    path = ("--pythonpath", str(ROOT / "libraries"))
    options = (*path, "--outputdir", str(directory.path), "--variable", f"TOPOLOGY:{topology}")
    command = [sys.executable, "-m", "robot", *options, str(file)]
    console = tmp_path / "console"
    with console.open("wb") as output:
        # A session of its own, as a terminal's foreground job has a process group of its own.
        robot = subprocess.Popen(command, start_new_session=True, stdout=output, stderr=output)

    def has_measured():
        assert robot.poll() is None, console.read_text()
        return journal.exists() and journal.read_bytes().count(b"\n") >= 4

    try:
        wait_until(has_measured)
        assert len(local.status()) == 1
        send = os.killpg if to_all else os.kill
        send(robot.pid, signal.SIGINT)
        assert robot.wait(PATIENCE) != 0
    finally:
        robot.kill()
        robot.wait()
    assert local.status() == []
    # What it has killed may take a moment to end.
    wait_until(lambda: not processes_of(robot.pid))
    entries = read_journal(journal).entries
    result = read_result(directory.result_path("Suite.Stopped"))
    assert result.outcome is Outcome.FAILED
    assert result.error == TERMINATED
    assert len(result.trials) == len(entries) >= 3
    assert not directory.result_path("Suite.Never Reached").exists()
    assert (directory.path / "output.xml").exists()
