"""Two faults in one run: the DUT changes, and the controller is killed before it looks at the DUT again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place

from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import Outcome
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import load_topology

pytestmark = [pytest.mark.netns, needs_testbed]
GOAL = SearchGoal(0.0, 0.5, 0.2, 0.2, 0.05, name="NDR")
REQUEST = SearchRequest(goals=(GOAL,), profile=PROFILE, min_load=1e3, max_load=20e3)
OPTIONS = {"police": "5 kfps", "burst": "100"}
TRUTH = 5e3 + 100 / 0.2
"""Frames per second that trials of 0.2 s may send without loss."""
PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[1])]


def opened(file):
    return closing(open_testbed(file, dut="linux_bridge", options=OPTIONS))


def change_and_die(file, directory):
    """The rules of the DUT are flushed after the first trial, and the process is killed after the fourth one."""
    with opened(file) as testbed:

        def on_progress(progress):
            if progress.number == 1:
                testbed.duts[0].node.run("nft", "flush", "ruleset")
            if progress.number == 4:
                signal.raise_signal(signal.SIGKILL)

        find_conditional_throughput(testbed, REQUEST, place(Path(directory)), on_progress)


def trials_in(journal):
    """Load and loss ratio of each trial that is not withdrawn, by a reader of its own."""
    trials = []
    for line in map(json.loads, journal.read_text().splitlines()):
        if "withdrawal" in line:
            del trials[-line["withdrawal"]["trials"] :]
        elif "input" in line:
            trials.append((line["input"]["load"], line["output"]["loss_ratio"]))
    return trials


@pytest.mark.smoke
def test_trials_that_nobody_verified_before_the_kill_are_measured_again(tmp_path):
    with own_state():
        file = local_topology(tmp_path, "change", "reservation: null\n")
        running = LocalTestbed.up(load_topology(file), keep=True)
        try:
            code = (
                f"import sys; sys.path += {PATHS}; from {__name__} import change_and_die; change_and_die(*sys.argv[1:])"
            )
            done = subprocess.run([sys.executable, "-c", code, file, tmp_path], check=False, timeout=240)
            journal = tmp_path / "trials" / "a_suite.a_test.jsonl"
            before = trials_in(journal)
            assert (done.returncode, len(before)) == (-signal.SIGKILL, 4)
            assert [load for load, loss in before if loss == 0.0 and load > 1.2 * TRUTH]
            progress = []
            with opened(file) as testbed:
                again = place(tmp_path, resume=tmp_path)
                result = find_conditional_throughput(testbed, REQUEST, again, progress.append)
        finally:
            running.down()
    assert (result.outcome, len(progress)) == (Outcome.MEASURED, len(result.trials))
    assert [trial for trial in trials_in(journal) if trial[1] == 0.0 and trial[0] > 1.01 * TRUTH] == []
    assert result.goals[0].result.relevant_lower_bound.per_interface_fps < 1.01 * TRUTH
