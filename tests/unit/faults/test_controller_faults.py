"""Controllers that die, are stopped, or run out of disk, on a real testbed that is there to stay."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from waiting import PATIENCE, wait_until

from lossratio.bpf import why_impossible
from lossratio.nodes import NodeSession
from lossratio.results.model import Outcome
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology
from lossratio.trials.journal_reading import read_journal

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.netns, needs_testbed]
SUITE = """
*** Settings ***
Library           controller_stops.py
Resource          lossratio/resources/performance.resource
Suite Setup       Run Keywords    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    AND    Stop In    set-up
Suite Teardown    Run Keywords    Stop In    teardown    AND    Tear Down Testbed
*** Test Cases ***
First
    Measure MRR    64B    max_load=500 pps    trials=2    trial_duration=0.1 s
Second
    [Timeout]    ${TEST_TIMEOUT}
    Measure MRR    64B    max_load=500 pps    trials=100    trial_duration=0.2 s
Third
    Measure MRR    64B    max_load=500 pps    trials=2    trial_duration=0.1 s
"""


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    file = local_topology(tmp_path_factory.mktemp("topology"), "controllers", "reservation: {lease: 4 s}\n")
    with own_state():
        running = LocalTestbed.up(load_topology(file), keep=True)
        yield file, running
        running.down()


@pytest.fixture
def controller(testbed, tmp_path):
    """Starts `lossratio run` with the suite; it is killed in the end. One that died before may have left its lease."""
    processes = []

    def start(*options, stop_in="", timeout="1 min", out="out", topology=testbed[0], dut="linux_bridge", **popen):
        suite = tmp_path / "suite.robot"
        suite.write_text(SUITE.replace("linux_bridge", dut))
        # The folder is a project, so the suite is "Suite".
        (tmp_path / "robot.toml").touch()
        robot = ["--outputdir", str(tmp_path / out), "--variable", f"TEST_TIMEOUT:{timeout}"]
        program = [sys.executable, "-m", "lossratio", "run", "--wait", "20s", "--topology", str(topology)]
        command = [*program, *options, str(suite), "--", *robot]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'libraries'}:{Path(__file__).parent}", "STOP_IN": stop_in}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, env=environment, **quiet, **popen))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(process, condition):
    """Waits for something that a controller does; it is an error if the controller ends before."""

    def is_done():
        assert process.poll() is None, process.stderr.read()
        return condition()

    wait_until(is_done)


def wait_for_second_test(process, directory):
    """Waits until a controller is in the midst of the second test."""
    journal = directory.journal_path("Suite.Second")
    wait_for(process, lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3)


def left(testbed):
    """What a controller left on the nodes."""
    mentions = []
    for name, command in (("TG", ("pgrep", "-f", "[l]ossratio-agent")), ("DUT1", ("nft", "list", "ruleset"))):
        with NodeSession.connect(name, testbed[1].topology.nodes[name]) as session:
            mentions += session.run(*command, check=False).stdout.split()
    return mentions


def test_after_each_killed_controller_the_next_run_finds_a_clean_testbed_and_fails_only_its_own_tests(
    testbed, controller, tmp_path
):
    for stop_in in ("set-up", "trial", "teardown"):
        directory = RunDirectory(tmp_path / stop_in)
        # Only a run that is to be killed in its teardown must get there soon.
        timeout = "3 s" if stop_in == "teardown" else "1 min"
        process = controller(stop_in=stop_in, timeout=timeout, out=stop_in)
        if stop_in == "trial":
            wait_for_second_test(process, directory)
        else:
            wait_for(process, (directory.path / stop_in).exists)
        process.kill()
        process.wait()
    # Long enough for a trial on a busy machine, and too short for all of them.
    process = controller(timeout="6 s")
    assert process.wait(PATIENCE) == 1, process.stderr.read()
    results = {result.test.name: result for result in RunDirectory(tmp_path / "out").results()}
    assert {name: result.outcome for name, result in results.items()} == {
        "First": Outcome.MEASURED,
        "Second": Outcome.FAILED,
        "Third": Outcome.MEASURED,
    }
    assert "timeout" in results["Second"].error
    assert results["Second"].trials
    assert left(testbed) == []


@pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
def test_programs_of_the_generator_go_with_a_killed_controller_and_those_of_the_device_before_the_next_one(
    testbed, controller, tmp_path
):
    file = local_topology(tmp_path, "programs", "reservation: {lease: 4 s}\n")
    file.write_text(file.read_text().replace("kind: afpacket", "kind: xdp"))
    with LocalTestbed.up(load_topology(file), keep=True) as running:

        def attached():
            names = []
            for node, description in running.topology.nodes.items():
                with NodeSession.connect(node, description) as session:
                    links = json.loads(session.run("ip", "-json", "link").stdout)
                    names += [link["ifname"] for link in links if "xdp" in link]
            return names

        try:
            process = controller(topology=file, dut="xdp")
            wait_for_second_test(process, RunDirectory(tmp_path / "out"))
            assert sorted(attached()) == ["dut0", "dut1", "tg0", "tg1"]
            process.kill()
            process.wait()
            wait_until(lambda: not {"tg0", "tg1"}.intersection(attached()))
            # The next controller puts back everything that the killed controller changed.
            process = controller(topology=file, timeout="3 s", out="next")
            assert process.wait(PATIENCE) == 1, process.stderr.read()
            assert RunDirectory(tmp_path / "next").results()
            assert attached() == []
        finally:
            running.down()


@pytest.mark.smoke
@pytest.mark.parametrize("pauses", [(), (0.05,), (0.25,)], ids=["once", "twice", "again while the DUT is put back"])
def test_ctrl_c_stops_in_order_once_and_at_once_when_it_is_pressed_twice(testbed, controller, tmp_path, pauses):
    directory = RunDirectory(tmp_path / "out")
    process = controller(start_new_session=True)
    wait_for_second_test(process, directory)
    os.killpg(process.pid, signal.SIGINT)
    for pause in pauses:
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGINT)
    status = process.wait(PATIENCE)
    # A controller that was ended by the second one may have left its lease, with which the agent ends.
    wait_until(lambda: left(testbed) == [])
    journal = read_journal(directory.journal_path("Suite.Second"))
    # The second one may end the check of the DUT that would prove the trials.
    assert len(journal.entries) + len(journal.unproved) >= 2
    if pauses:
        # The second one may come when the run is over, and end what is left of the process.
        assert status in {130, -signal.SIGINT}
    else:
        assert status == 130
        assert len(read_result(directory.result_path("Suite.Second")).trials) == len(journal.entries)


# Second presses after 0.05 and 0.25 s are above.
@pytest.mark.parametrize("pause", [0.02, 0.4])
def test_however_often_ctrl_c_is_pressed_the_dut_is_put_back(testbed, controller, tmp_path, pause):
    process = controller(start_new_session=True)
    wait_for_second_test(process, RunDirectory(tmp_path / "out"))
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(pause)
    wait_until(lambda: left(testbed) == [])


def test_a_full_disk_of_the_controller_is_one_clear_error_and_keeps_the_trials(testbed, controller, tmp_path):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (22_000, 22_000))

    process = controller(preexec_fn=little_room)
    status = process.wait(PATIENCE)
    assert status in (69, 70), process.stderr.read()
    journal = read_journal(RunDirectory(tmp_path / "out").journal_path("Suite.First"))
    # There may be no room for the proof that follows the trials.
    assert journal.entries or journal.unproved
    assert left(testbed) == []
