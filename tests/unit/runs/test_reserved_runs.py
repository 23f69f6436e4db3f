"""Runs and reservations by command, on the nodes of a real local testbed that is there to stay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from runner_examples import ROOT, SIMULATED, write_suite
from waiting import wait_until

from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology

pytestmark = [pytest.mark.netns, needs_testbed]
PASSES = "Passes\n    No Operation\n"


@pytest.fixture(scope="module")
def testbeds(tmp_path_factory):
    """The topology files of two testbeds that are up."""
    directory = tmp_path_factory.mktemp("topologies")
    with own_state():
        files = [local_topology(directory, f"reserved{number}") for number in range(2)]
        running = [LocalTestbed.up(load_topology(file), keep=True) for file in files]
        yield files
        for process in running:
            process.down()


@pytest.fixture
def taken(lossratio, testbeds, monkeypatch):
    """The first testbed, reserved for a colleague."""
    monkeypatch.setenv("LOSSRATIO_OWNER", "colleague@desk")
    assert lossratio("lab", "reserve", testbeds[0], "--for", "1h", "--purpose", "a look by hand").status == 0
    monkeypatch.delenv("LOSSRATIO_OWNER")
    yield testbeds[0]
    lossratio("lab", "release", testbeds[0], "--force")


def test_a_testbed_of_somebody_else_is_not_available(lossratio, taken, tmp_path):
    done = lossratio("run", "--topology", taken, write_suite(tmp_path, PASSES))
    assert done.status == 75
    assert "reserved for colleague@desk" in done.err
    assert "for a look by hand" in done.err
    assert "Passes" not in done.out


def test_the_first_testbed_that_is_free_is_taken(lossratio, taken, testbeds, tmp_path):
    tests = "Tells\n    Log To Console    on ${TOPOLOGY}\n"
    options = [word for testbed in testbeds for word in ("--topology", testbed)]
    done = lossratio("run", *options, "--wait", "10s", write_suite(tmp_path, tests))
    assert done.status == 0
    assert f"on {testbeds[1]}" in done.out
    assert "free" in lossratio("lab", "status", testbeds[1]).out


def test_a_run_has_the_testbed_for_itself_until_it_ends(lossratio, testbeds, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "libraries"))
    probe = tmp_path / "probe.py"
    probe.write_text("from lossratio.commands.main import main\nmain()\n")
    tests = f"Asks\n    ${{done}}    Run Process    {sys.executable}    {probe}    lab    status    ${{TOPOLOGY}}\n"
    tests += "    Log To Console    ${done.stdout}${done.stderr}\n"
    file = write_suite(tmp_path, tests, settings="Library    Process")
    done = lossratio("run", "--topology", testbeds[0], "--purpose", "the nightly", file)
    assert re.search(r"reserved for .* for the nightly", done.out)
    assert "free" in lossratio("lab", "status", testbeds[0]).out


@pytest.fixture
def running(testbeds, tmp_path):
    """A run that hangs in the midst of its test, and that is killed in the end; its directory."""
    settings = "Library    OperatingSystem\n"
    suite = write_suite(tmp_path, f"Waits\n    Wait Until Created    {tmp_path}/go    timeout=240 s\n", settings)
    command = [sys.executable, "-m", "lossratio", "run", "--topology", str(testbeds[0]), str(suite)]
    process = subprocess.Popen(
        [*command, "--", "--outputdir", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'libraries'}:{Path(__file__).parent}"},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until((tmp_path / "out" / "run.json").exists)
        yield process, tmp_path / "out"
    finally:
        process.kill()
        process.wait()


@pytest.mark.smoke
def test_a_run_that_was_killed_is_resumed_at_once(lossratio, running, testbeds):
    process, directory = running
    process.kill()
    process.wait()
    (directory.parent / "go").write_text("")
    wait_until(lambda: "free" in lossratio("lab", "status", testbeds[0]).out)
    done = lossratio("run", "--resume", directory)
    assert done.status == 0, done.err
    assert not (directory / ".running").exists()
    assert "free" in lossratio("lab", "status", testbeds[0]).out


def test_a_run_that_lives_keeps_its_lease_although_somebody_resumes_it(lossratio, running):
    process, directory = running
    done = lossratio("run", "--resume", directory)
    assert done.status == 75
    assert process.poll() is None
    (directory.parent / "go").write_text("")
    assert process.wait(240) == 0


def test_no_other_run_writes_into_the_directory_of_a_run_that_lives(lossratio, running, testbeds, tmp_path):
    process, directory = running
    before = (directory / "run.json").read_bytes()
    other = write_suite(tmp_path, PASSES)
    done = lossratio("run", "--topology", SIMULATED, other, "--", "--outputdir", directory)
    assert (done.status, f"Another run is writing to {directory}. " in done.err) == (2, True), done.err
    assert (directory / "run.json").read_bytes() == before
    process.kill()
    process.wait()
    assert lossratio("run", "--topology", SIMULATED, other, "--", "--outputdir", directory).status == 0


def test_a_reservation_by_hand_is_used_by_runs_that_know_its_token(lossratio, testbeds, tmp_path, monkeypatch):
    reserved = lossratio("lab", "reserve", testbeds[0], "--for", "1h")
    token = re.search(r"export LOSSRATIO_RESERVATION=(\w+)", reserved.out)[1]
    file = write_suite(tmp_path, PASSES)
    assert lossratio("run", "--topology", testbeds[0], file).status == 75
    monkeypatch.setenv("LOSSRATIO_RESERVATION", token)
    assert lossratio("run", "--topology", testbeds[0], file).status == 0
    assert "reserved for" in lossratio("lab", "status", testbeds[0]).out
    assert "It was reserved for" in lossratio("lab", "release", testbeds[0]).out
    assert "The testbed is free." in lossratio("lab", "release", testbeds[0]).out


def test_another_users_lease_is_released_by_force_only(lossratio, taken):
    done = lossratio("lab", "release", taken)
    assert (done.status, "colleague@desk" in done.err) == (75, True)
    assert "It was reserved for colleague@desk" in lossratio("lab", "release", taken, "--force").out


def test_a_simulated_testbed_cannot_be_reserved(lossratio):
    assert lossratio("lab", "status", ROOT / "topologies" / "simulated.yaml").status == 2
