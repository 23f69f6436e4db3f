from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from robot.api import ExecutionResult
from runner_examples import ROOT, SIMULATED, write_suite

HANGS = "    Sleep    60 s\n"


def run(lossratio, tmp_path, tests, *options, settings=""):
    file = write_suite(tmp_path, tests, settings=settings)
    began = time.monotonic()
    done = lossratio("run", "--topology", SIMULATED, *options, file, "--", "--outputdir", tmp_path / "out")
    assert time.monotonic() - began < 30
    result = ExecutionResult(str(tmp_path / "out" / "output.xml"))
    return done, {test.name: test.message for test in result.suite.all_tests}


def test_a_test_that_hangs_is_stopped_and_the_next_one_runs(lossratio, tmp_path):
    tests = f"Hangs\n{HANGS}Has Less Time\n    [Timeout]    0.2 s\n{HANGS}Passes\n    No Operation\n"
    done, messages = run(lossratio, tmp_path, tests, "--test-timeout", "0.5s")
    assert done.status == 1
    assert messages == {
        "Hangs": "Test timeout 500 milliseconds exceeded.",
        "Has Less Time": "Test timeout 200 milliseconds exceeded.",
        "Passes": "",
    }


def test_the_rest_of_a_suite_that_takes_too_long_fails(lossratio, tmp_path):
    tests = f"Quick\n    Sleep    0.5 s\nHangs\n{HANGS}Never Run\n    Fatal Error    it ran\n"
    done, messages = run(lossratio, tmp_path, tests, "--suite-timeout", "1.6s")
    assert done.status == 1
    assert messages["Quick"] == ""
    assert messages["Hangs"].startswith("Test timeout ")
    assert messages["Never Run"] == "The suite was not finished within 1.6 s."


@pytest.mark.long
def test_a_run_that_takes_too_long_is_stopped_in_order_also_in_a_set_up(tmp_path):
    file = write_suite(tmp_path, "Never Run\n    Fatal Error    it ran\n", settings="Suite Setup    Sleep    60 s")
    options = ["--run-timeout", "1s", str(file), "--", "--outputdir", str(tmp_path / "out")]
    command = [sys.executable, "-m", "lossratio", "run", "--topology", str(SIMULATED), *options]
    path = f"{ROOT / 'libraries'}:{os.path.dirname(__file__)}"
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 130
    assert "the run was not finished within 1 s" in done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["format"] == "lossratio-run/1"
    assert (tmp_path / "out" / "report.html").exists()
