from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from robot.api import ExecutionResult
from runner_examples import ROOT, SIMULATED, write_suite
from waiting import PATIENCE

from lossratio.runs import robot_run

# A test that is not stopped goes on until pytest ends it.
HANGS = "    Sleep    1 h\n"


def run(lossratio, tmp_path, tests, *options, settings=""):
    file = write_suite(tmp_path, tests, settings=settings)
    done = lossratio("run", "--topology", SIMULATED, *options, file, "--", "--outputdir", tmp_path / "out")
    result = ExecutionResult(str(tmp_path / "out" / "output.xml"))
    return done, {test.name: test.message for test in result.suite.all_tests}


def test_a_test_that_hangs_is_stopped_and_the_next_one_runs(lossratio, tmp_path):
    # The alarm of its limit, which comes at once, so that the limit can be long enough for the test that passes.
    alarm = "os.kill(os.getpid(), signal.SIGALRM)"
    hangs = f"    Evaluate    [{alarm}, time.sleep(3600)]    modules=os,signal,time\n"
    tests = f"Hangs\n{hangs}Has Less Time\n    [Timeout]    0.2 s\n{HANGS}Passes\n    No Operation\n"
    done, messages = run(lossratio, tmp_path, tests, "--test-timeout", "15 min")
    assert done.status == 1
    assert messages == {
        "Hangs": "Test timeout 15 minutes exceeded.",
        "Has Less Time": "Test timeout 200 milliseconds exceeded.",
        "Passes": "",
    }


@pytest.mark.whole
def test_the_rest_of_a_suite_that_takes_too_long_fails(lossratio, tmp_path, monkeypatch):
    # The clock when the suite starts, and when each of its tests starts and ends.
    clock = iter([0.0, 0.0, 29.0, 29.0, 30.1, 30.1, 30.2])
    monkeypatch.setattr(robot_run, "time", SimpleNamespace(monotonic=clock.__next__))
    tests = f"Quick\n    No Operation\nHangs\n{HANGS}Never Run\n    Fatal Error    it ran\n"
    done, messages = run(lossratio, tmp_path, tests, "--suite-timeout", "30s")
    assert done.status == 1
    assert messages["Quick"] == ""
    assert messages["Hangs"] == "Test timeout 1 second exceeded."
    assert messages["Never Run"] == "The suite was not finished within 30 s (--suite-timeout)."


@pytest.mark.whole
def test_a_run_that_takes_too_long_is_stopped_in_order_also_in_a_set_up(tmp_path):
    file = write_suite(tmp_path, "Never Run\n    Fatal Error    it ran\n", settings="Suite Setup    Sleep    60 s")
    options = ["--run-timeout", "1s", str(file), "--", "--outputdir", str(tmp_path / "out")]
    command = [sys.executable, "-m", "lossratio", "run", "--topology", str(SIMULATED), *options]
    path = f"{ROOT / 'libraries'}:{os.path.dirname(__file__)}"
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 130
    assert "the run was not finished within 1 s" in done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["format"] == "lossratio-run/1"
    assert (tmp_path / "out" / "report.html").exists()
