"""Runs that are interrupted and go on, as processes of their own on the simulated testbed."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time

import pytest
from robot.api import ExecutionResult
from runner_examples import ROOT, SIMULATED
from waiting import PATIENCE, wait_until

from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.trials.journal_reading import read_journal
from lossratio.version import __version__

SUITE = """
*** Settings ***
Library        OperatingSystem
Resource       lossratio/resources/performance.resource
Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
*** Test Cases ***
Before
    Measure MRR    64B
Fails Because Of The Device
    Measure MRR    64B
    Throughput Should Be At Least    1 kpps
In Flight
    Find NDR And PDR    64B    goals=quick
    Wait Until Created    GO    timeout=15 min
After
    Measure MRR    128B
"""

TWICE = """
64B, Twice
    Measure MRR    64B
    Measure MRR    128B
64B
    Measure MRR    64B
64B-soak
    Measure MRR    64B
"""


@pytest.fixture
def topology(tmp_path):
    return write_topology(tmp_path)


def write_topology(directory):
    file = directory / "topology.yaml"
    file.write_text(SIMULATED.read_text())
    # The folder is a project, so its suite has the name of its file.
    (directory / "robot.toml").touch()
    return file


def stopped(directory, number, times=1):
    """Begins a run that hangs in the midst of its third test, and stops it with a signal."""
    file = directory / "suite.robot"
    file.write_text(SUITE.replace("GO", str(directory / "go")))
    command = [sys.executable, "-m", "lossratio", "run", "--topology", str(write_topology(directory))]
    process = subprocess.Popen(
        [*command, str(file), "--", "--outputdir", str(directory / "out")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until((directory / "out" / "results" / "Suite.In_Flight.json").exists)
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.3)
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
    (directory / "go").write_text("")
    return RunDirectory(directory / "out"), process.returncode


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory):
    """A run that was killed, and a copy of all its files."""
    place = tmp_path_factory.mktemp("killed")
    _, status = stopped(place, signal.SIGKILL)
    return place, status, shutil.copytree(place, tmp_path_factory.mktemp("copies") / "killed")


@pytest.fixture
def killed(killed_once):
    """The directory of a run that was killed, as it was then, and its exit status."""
    place, status, copy = killed_once
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    return RunDirectory(place / "out"), status


def statuses(directory):
    result = ExecutionResult(str(directory.path / "output.xml"))
    return {test.name: test.status for test in result.suite.all_tests}, result


@pytest.mark.whole
@pytest.mark.parametrize(
    ("number", "times", "statuses_of_run"),
    # The second one may come when the run is over, and end what is left of the process.
    [(signal.SIGKILL, 1, {-signal.SIGKILL}), (signal.SIGINT, 2, {130, -signal.SIGINT})],
    ids=["killed", "ctrl-c twice"],
)
def test_a_run_that_was_stopped_goes_on_and_is_one_run(lossratio, request, tmp_path, number, times, statuses_of_run):
    is_killed = number == signal.SIGKILL
    directory, code = request.getfixturevalue("killed") if is_killed else stopped(tmp_path, number, times)
    assert code in statuses_of_run
    if is_killed:
        assert not (directory.path / "lossratio.html").exists()
        lossratio("report", directory.path)
        assert "In Flight" in (directory.path / "lossratio.html").read_text()
    journal = directory.journal_path("Suite.In Flight")
    lines = journal.read_bytes().splitlines(keepends=True)
    # As if it had been stopped in the midst of its search, and in the midst of a line.
    journal.write_bytes(b"".join(lines[:6]) + lines[6][:20])
    before = directory.journal_path("Suite.Before").read_bytes()
    done = lossratio("run", "--resume", directory.path)
    assert done.status == 1, done.err
    status, result = statuses(directory)
    assert status == {"Before": "PASS", "Fails Because Of The Device": "FAIL", "In Flight": "PASS", "After": "PASS"}
    assert directory.journal_path("Suite.Before").read_bytes() == before
    assert journal.read_bytes().splitlines(keepends=True)[:6] == lines[:6]
    # The stop may have come behind the search, when lines of its latency were there already.
    assert len(read_journal(journal).entries) == sum(line.startswith(b'{"input"') for line in lines)
    assert result.suite.name == "Suite"
    assert not result.suite.message
    for page in ("log.html", "report.html", "lossratio.html"):
        assert (directory.path / page).exists()


@pytest.mark.whole
def test_a_damaged_run_is_refused_and_goes_on_when_it_is_repaired(lossratio, killed):
    directory, _ = killed
    journal, proved = directory.journal_path("Suite.In Flight"), directory.journal_path("Suite.Before").read_bytes()
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = lines[4].replace(b'"sent_frames":', b'"sent_frames":1', 1)
    journal.write_bytes(b"".join([*lines[:4], damaged, *lines[5:]]))
    result = directory.result_path("Suite.Before")
    result.write_bytes(result.read_bytes().replace(b'"loss_ratio": ', b'"loss_ratio": 1', 1))
    refused = lossratio("run", "--resume", directory.path)
    assert refused.status == 2
    assert f"{journal}, line 5: its digest does not match: the line was changed after it was written, or" in refused.err
    assert f"lossratio archive repair {directory.path}" in refused.err
    repaired = lossratio("archive", "repair", directory.path)
    assert repaired.status == 1
    assert "its first 3 trials are kept" in repaired.out
    assert not result.exists()
    assert lossratio("run", "--resume", directory.path).status == 1
    assert statuses(directory)[0]["In Flight"] == "PASS"
    assert journal.read_bytes().splitlines(keepends=True)[:4] == lines[:4]
    # The stop may have come behind the search, when lines of its latency were there already.
    assert len(read_journal(journal).entries) == sum(line.startswith(b'{"input"') for line in lines)
    # Nothing is measured anew of a test whose journal is good: its result is made from that.
    assert directory.journal_path("Suite.Before").read_bytes() == proved
    assert len(read_result(result).trials) == len(proved.splitlines()) - 1


@pytest.mark.whole
def test_a_run_that_is_finished_can_be_resumed_and_stays_as_it_is_but_for_a_result_that_is_gone(
    lossratio, topology, tmp_path
):
    (tmp_path / "go").write_text("")
    (tmp_path / "suite.robot").write_text(SUITE.replace("GO", str(tmp_path / "go")))
    directory = RunDirectory(tmp_path / "out")
    first = lossratio("run", "--topology", topology, "suite.robot", "--", "--outputdir", directory.path)
    after_first = statuses(directory)[0]
    assert (first.status, len(after_first)) == (1, 4)
    assert lossratio("run", "--resume", directory.path).status == 1
    assert statuses(directory)[0] == after_first
    # A result that somebody deleted is made anew from its journal.
    proved, result = directory.journal_path("Suite.Before").read_bytes(), directory.result_path("Suite.Before")
    result.unlink()
    assert lossratio("run", "--resume", directory.path).status == 1
    assert len(read_result(result).trials) == len(proved.splitlines()) - 1
    assert directory.journal_path("Suite.Before").read_bytes() == proved


def test_a_resumed_run_that_is_finished_says_so_and_shows_no_skipped_suite(lossratio, topology, tmp_path):
    suite = tmp_path / "suite.robot"
    suite.write_text("*** Test Cases ***\nNothing\n    No Operation\n")
    out = tmp_path / "out"
    assert lossratio("run", "--topology", topology, suite, "--", "--outputdir", out).status == 0
    done = lossratio("run", "--resume", out)
    assert (done.status, "SKIP" in done.out, "0 tests" in done.out) == (0, False, False)
    assert "1 of 1 test passed; all tests had finished before, and none ran again. Exit status 0." in done.err


@pytest.mark.whole
@pytest.mark.parametrize("set_aside", [False, True], ids=["gone", "set aside"])
def test_each_result_of_a_test_is_made_anew_and_no_other_test_runs_again(lossratio, topology, tmp_path, set_aside):
    (tmp_path / "suite.robot").write_text(SUITE.partition("Before\n")[0] + TWICE)
    directory = RunDirectory(tmp_path / "out")
    assert lossratio("run", "--topology", topology, "suite.robot", "--", "--outputdir", directory.path).status == 0
    lost = [directory.result_path(f"Suite.{name}") for name in ("64B, Twice (2)", "64B-soak")]
    kept = {path: path.stat().st_mtime_ns for path in directory.path.glob("results/Suite.64B*")}
    proved = {path: path.read_bytes() for path in directory.path.glob("trials/*")}
    for result in lost:
        if set_aside:
            result.write_text(result.read_text().replace('"mean": {', '"mean": }'))
        else:
            result.unlink()
    lossratio("archive", "repair", directory.path)
    assert not any(result.exists() for result in lost)
    assert lossratio("run", "--resume", directory.path).status == 0
    again = {path for path in kept if path.stat().st_mtime_ns != kept[path]}
    assert again == {*lost, directory.result_path("Suite.64B, Twice")}
    assert {path: path.read_bytes() for path in directory.path.glob("trials/*")} == proved


@pytest.mark.whole
def test_other_conditions_are_refused_with_the_differences_unless_one_insists(lossratio, killed):
    directory, _ = killed
    topology = directory.path.parent / "topology.yaml"
    topology.write_text(topology.read_text().replace("400 kfps", "300 kfps"))
    refused = lossratio("run", "--resume", directory.path)
    assert refused.status == 2
    assert "topology.nodes.TG.generator.max_rate was 400000.0, now 300000.0" in refused.err
    assert "--force" in refused.err
    assert lossratio("run", "--resume", directory.path, "--force").status == 1
    result = json.loads(directory.result_path("Suite.After").read_text())
    assert any("resumed by force" in remark["text"] and "max_rate" in remark["text"] for remark in result["remarks"])
    assert json.loads((directory.path / "run.json").read_text())["forced"]


@pytest.mark.whole
def test_a_run_whose_terminal_disappears_ends_in_order(tmp_path):
    suite = tmp_path / "suite.robot"
    suite.write_text(f"*** Test Cases ***\nWaits\n    Evaluate    open(r'{tmp_path}/begun', 'w')\n    Sleep    240 s\n")
    command = [sys.executable, "-m", "lossratio", "run", "--topology", str(SIMULATED), str(suite)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    process, terminal = pty.fork()
    if process == 0:
        # Under nohup, these tests ignore the signal, and so would the program.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execve(sys.executable, [*command, "--output", str(tmp_path / "out")], environment)  # noqa: S606 (no shell)
    wait_until((tmp_path / "begun").exists)
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert (tmp_path / "out" / "log.html").exists()


def test_a_directory_without_a_run_is_one_clear_error(lossratio, tmp_path):
    done = lossratio("run", "--resume", tmp_path)
    assert (done.status, "run.json: No such file" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ("{", "it is not JSON"),
        ("{}", "version: this field is required"),
        ("[]", "must hold fields, as in {name: value}, not an empty list"),
    ],
)
def test_a_damaged_record_is_one_error_with_the_field_and_the_way_out(lossratio, tmp_path, record, problem):
    (tmp_path / "run.json").write_text(record)
    done = lossratio("run", "--resume", tmp_path)
    assert (done.status, f"not the record of a run: {problem}. Start the run again" in done.err) == (2, True), done.err
    assert f"with --variable RESUME:{tmp_path}, it uses the trials" in done.err


def test_a_run_of_a_newer_version_is_not_said_to_be_damaged(lossratio, topology, tmp_path):
    out = tmp_path / "out"
    suite = tmp_path / "suite.robot"
    suite.write_text("*** Test Cases ***\nNothing\n    No Operation\n")
    assert lossratio("run", "--topology", topology, suite, "--", "--outputdir", out).status == 0
    (out / "results").mkdir()
    (out / "results" / "a.json").write_text('{"format": "lossratio-result/99"}')
    done = lossratio("run", "--resume", out)
    assert (done.status, "damaged" in done.err) == (2, False)
    assert f"The run in {out} is not resumed: a newer version of lossratio wrote some of its files.\n  A" in done.err
    assert done.err.endswith("Use the version that wrote it, or a newer one.\nOtherwise, start a new run.\n")

    record = out / "run.json"
    record.write_text(record.read_text().replace('"lossratio-run/1"', '"lossratio-run/9"').replace(__version__, "12.3"))
    done = lossratio("run", "--resume", out)
    assert (done.status, "damaged" in done.err) == (2, False)
    assert (
        f"Lossratio 12.3 wrote {record} in the format 'lossratio-run/9', which this version, {__version__}," in done.err
    )


def test_a_resumed_run_takes_no_other_suites_or_options(lossratio, tmp_path):
    done = lossratio("run", "--resume", tmp_path, "--topology", SIMULATED)
    assert (done.status, "A resumed run keeps its suites and options" in done.err) == (2, True)


NAMED_BY_VARIABLES = """
*** Settings ***
Library        OperatingSystem
Resource       lossratio/resources/performance.resource
Metadata       Id    ${LAB}.Core
Suite Setup    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
*** Variables ***
${LAB}     Lab
${SIZE}    64B
*** Test Cases ***
${SIZE} mrr
    Append To File    ${OUTPUT DIR}/begun    ${TEST NAME}${\\n}
    Measure MRR    ${SIZE}    trials=1
${SIZE} waits
    Append To File    ${OUTPUT DIR}/begun    ${TEST NAME}${\\n}
    Tear Down Testbed
    Set Up Testbed    ${OUTPUT DIR}/lab.yaml    dut=linux_bridge    police=50 kfps
    Measure MRR    ${SIZE}    trials=1
"""


@pytest.mark.whole
def test_a_finished_test_with_variables_in_its_name_is_not_measured_again(lossratio, topology, tmp_path):
    (tmp_path / "suite.robot").write_text(NAMED_BY_VARIABLES)
    out = tmp_path / "out"
    more = ("--", "--outputdir", out, "--console", "none")
    assert lossratio("run", "--topology", topology, tmp_path / "suite.robot", *more).status != 0
    shutil.copyfile(topology, out / "lab.yaml")
    done = lossratio("run", "--resume", out)
    assert done.status == 0, done.err
    assert (out / "begun").read_text().splitlines() == ["64B mrr", "64B waits", "64B waits"]
    names, _ = statuses(RunDirectory(out))
    assert names == {"64B mrr": "PASS", "64B waits": "PASS"}
    results = RunDirectory(out).results()
    assert sorted(result.test.full_name for result in results) == ["Lab.Core.64B mrr", "Lab.Core.64B waits"]
