"""A disk that is full: one line with the file and the way out, status 69, and nothing that was measured is lost."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import pytest
from waiting import PATIENCE

from lossratio.errors import StorageError
from lossratio.report.history.archive import ObjectStore, Outbox
from lossratio.report.history.store import History
from lossratio.results.run_directory import RunDirectory
from lossratio.runs.verdicts import failure_kind
from lossratio.trials.journal_reading import read_journal
from lossratio.values.exit_status import FailureKind

ROOT = Path(__file__).parents[3]
RUN = Path(__file__).parents[1] / "data" / "0.3.0"
SUITE = """
*** Settings ***
Library           lossratio.keywords.LossRatio    resume=${{RESUME}}
Suite Setup       Set Up Testbed    {topology}    dut=linux_bridge    police=50 kfps
Suite Teardown    Run Keywords    Tear Down Testbed    AND    Log To Console    Taken down.
*** Variables ***
${{RESUME}}    ${{None}}
*** Test Cases ***
First
    Measure MRR    64B    trials={trials}
Second
    Measure MRR    64B    trials=2
"""
IN_NAMESPACE = """
import os, shutil, subprocess, sys
from pathlib import Path
import lossratio.commands.run
import lossratio.testbed.simulated
from lossratio.commands.main import main

place, size, copy = sys.argv[1:4]


def run(*arguments):
    if os.fork() == 0:
        sys.argv = ["lossratio", *arguments]
        main()
        sys.exit()
    print("status:", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)


subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=True)
run(*sys.argv[4:])
shutil.copytree(place, copy)
subprocess.run(["mount", "-o", "remount,size=64M", place], check=True)
if Path(place, "out").is_dir():
    run("run", "--resume", f"{place}/out")
    shutil.copytree(place, f"{copy}-resumed")
"""


def begin(suite, directory, *options, robot=()):
    topology = ROOT / "topologies" / "simulated.yaml"
    return ["run", "--topology", topology, *options, suite, "--", "--outputdir", directory, *robot]


def write_suite(tmp_path, trials):
    path = tmp_path / "full.robot"
    # The folder is a project, so the suite is "Full".
    (tmp_path / "robot.toml").touch()
    path.write_text(SUITE.format(topology=ROOT / "topologies" / "simulated.yaml", trials=trials))
    return path


def run(command, **options):
    text = [str(part) for part in command]
    return subprocess.run(text, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=ROOT, **options)


@contextmanager
def little_room(most_bytes=1000):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, limits[1]))
    # Python would keep half of a module's bytecode, and every later import of that module would fail.
    keeps_no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = keeps_no_bytecode
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def small_disk(tmp_path):
    """Runs a command while a small disk is at a path; a run there is resumed when there is room."""
    own = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",))]
    place = tmp_path / "disk"
    place.mkdir()
    if not shutil.which("unshare") or run([*own, "mount", "-t", "tmpfs", "tmpfs", place]).returncode:
        pytest.skip("no mount namespace with a tmpfs can be made here")

    def on_small_disk(size, command, **options):
        return run([*own, sys.executable, "-c", IN_NAMESPACE, place, size, tmp_path / "copy", *command], **options)

    return on_small_disk


@pytest.mark.whole
@pytest.mark.parametrize(("size", "trials"), [("24k", 30), ("80k", 40)], ids=["in a journal", "in a result"])
def test_results_on_a_full_disk_are_kept_and_the_run_goes_on(tmp_path, small_disk, size, trials):
    done = small_disk(size, begin(write_suite(tmp_path, trials), tmp_path / "disk" / "out"))
    assert "status: 69" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "Taken down." in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert f"Robot Framework cannot write its files in {tmp_path}/disk/out: No space left on device" in line
    assert f"Free some space, and continue with: lossratio run --resume {tmp_path}/disk/out" in line
    before, after = (tmp_path / copy / "out" / "trials" / "Full.First.jsonl" for copy in ("copy", "copy-resumed"))
    kept = read_journal(before)
    assert 0 < len(kept.entries) <= trials
    assert after.read_bytes().startswith(before.read_bytes()[: kept.intact_bytes])
    assert len(read_journal(after).entries) == trials
    assert "status: 0" in done.stdout
    assert len(RunDirectory(tmp_path / "copy-resumed" / "out").results()) == 2


@pytest.mark.whole
@pytest.mark.parametrize(
    ("most_bytes", "robot", "problem"),
    [
        (18_000, ("--log=NONE", "--report=NONE"), "Error: Cannot write the report {}/lossratio.html: File too"),
        (100_000, (), "Robot Framework cannot write its files in {}: File too large"),
    ],
    ids=["page", "log"],
)
def test_a_page_that_does_not_fit_is_an_error_of_the_disk(lossratio, tmp_path, most_bytes, robot, problem):
    out = tmp_path / "out"
    with little_room(most_bytes):
        done = lossratio(*begin(write_suite(tmp_path, 2), out, robot=robot))
    assert done.status == 69, done.out + done.err
    assert "Traceback" not in done.out + done.err
    assert problem.format(out) in done.err
    assert len(RunDirectory(out).results()) == 2


def test_a_run_that_could_not_begin_leaves_nothing(lossratio, tmp_path):
    out = tmp_path / "out"
    with little_room():
        done = lossratio(*begin(write_suite(tmp_path, 2), out))
    way_out = "Nothing that was measured is lost. Free some space, and repeat the command."
    assert (done.status, done.err) == (69, f"Error: Cannot write {out}/run.json: File too large. {way_out}\n")
    assert not out.exists()


@pytest.mark.whole
def test_an_outbox_that_is_full_is_an_error_of_the_disk(lossratio, tmp_path, small_disk):
    pytest.importorskip("pyarrow")
    out, archive = tmp_path / "out", tmp_path / "archive"
    archive.mkdir()
    assert lossratio(*begin(write_suite(tmp_path, 2), out)).status == 0
    command = ["archive", "send", out, "--results", archive]
    done = small_disk("4k", command, env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "disk")})
    assert "status: 69" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "No space left on device" in done.stderr
    assert f"lossratio archive send {out} --results {archive}" in done.stderr or "add the run again" in done.stderr


def test_a_history_that_is_full_says_what_to_do_and_has_no_half_file(tmp_path):
    pytest.importorskip("pyarrow")
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    entry = {"testbed": "lab", "test": "a test", "quantity": "NDR", "started": now, "value": 1.0, "outcome": "measured"}
    entry |= {"unit": "frames/s", "lower_is_better": False}
    with (
        pytest.raises(StorageError, match=r"history: File too large\. Free some space, and add the run again"),
        little_room(),
    ):
        History(tmp_path / "history").add([entry])
    assert not [path for path in (tmp_path / "history").rglob("*") if path.is_file()]


def test_a_full_outbox_has_no_half_file(tmp_path):
    pytest.importorskip("pyarrow")
    outbox = Outbox(tmp_path / "outbox", ObjectStore(str(tmp_path / "archive")))
    with pytest.raises(StorageError, match=r"File too large.*Free some space"), little_room():
        outbox.add(RUN)
    assert not [path for path in outbox.path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_test_that_failed_as_robots_output_did_not_fit_is_run_again(number):
    assert failure_kind(OSError(number, os.strerror(number))) is FailureKind.INFRASTRUCTURE


def test_a_test_that_failed_without_a_file_is_not_run_again():
    assert failure_kind(OSError(errno.ENOENT, "No such file or directory")) is FailureKind.TEST
