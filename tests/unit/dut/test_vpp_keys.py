"""The file with keys on VPP's node: who may read it, and that it is gone whatever becomes of the controller."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_until

from lossratio.dut.changes import Changes
from lossratio.dut.vpp.control import VppControl
from lossratio.dut.vpp.features.feature import Command
from lossratio.errors import DutError
from lossratio.nodes import CommandResult, DutNode

KEY = "0123456789abcdef" * 2
LINES = f"ipsec sa add 1 crypto-key {KEY}\n"
VPPCTL = """#!/bin/sh
# vppctl -s SOCKET exec FILE
stat -c %a "$4" > "${0%/*}/mode"
cat "$4" > "${0%/*}/seen"
while [ -e "${0%/*}/wait" ]; do sleep 0.05; done
cat "${0%/*}/answer"
"""


class Shell:
    """A node that is this machine."""

    name = "DUT1"

    def run(self, *command, timeout, check, stdin):
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE)
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


class Recorder(Shell):
    """A node that notes the command, and runs none."""

    def run(self, *command, timeout, check, stdin):
        self.command, self.timeout = command, timeout
        return CommandResult(command, 0, "", "")


@pytest.fixture
def home(plain_path):
    """The home of a VPP whose command line notes what it is given."""
    (plain_path / "bin").mkdir()
    (plain_path / "bin" / "answer").touch()
    vppctl = plain_path / "bin" / "vppctl"
    vppctl.write_text(VPPCTL)
    vppctl.chmod(0o755)
    before = os.umask(0o022)
    yield plain_path
    os.umask(before)


def give(home, session, lines=LINES):
    """Gives a VPP commands with keys."""
    node = DutNode(session)
    VppControl(node, str(home), str(home)).configure(Changes(node), Command(lines, "", is_secret=True))


def test_nobody_else_reads_the_keys_and_their_file_is_gone_afterwards(home):
    give(home, Shell())
    assert (home / "bin" / "mode").read_text() == "600\n"
    assert (home / "bin" / "seen").read_text() == LINES
    assert not (home / "secret").exists()


def test_many_keys_have_more_time(home):
    recorder, times = Recorder(), []
    for count in (10, 5000):
        give(home, recorder, LINES * count)
        times.append(recorder.timeout)
    assert times == [30.0, 500.0]


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (f"no such key: {KEY}", 0, "VPP refused a command with a key: no such key: KEY"),
        ("", 9, "The commands with keys did not reach VPP: exit status 9"),
    ],
)
def test_a_refusal_has_no_key_in_it_and_leaves_no_file(home, answer, status, message):
    (home / "bin" / "answer").write_text(answer)
    with (home / "bin" / "vppctl").open("a") as script:
        script.write(f"exit {status}\n")
    with pytest.raises(DutError, match=message) as error:
        give(home, Shell())
    assert KEY not in str(error.value)
    assert not (home / "secret").exists()


@pytest.fixture
def started(home):
    """The command on the node, and the controller's ends of its streams."""
    recorder = Recorder()
    give(home, recorder)
    with subprocess.Popen(recorder.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_of_a_controller_that_dies_while_it_sends_the_keys_nothing_is_left(home, started):
    started.stdin.write(LINES[:20])
    started.stdin.flush()
    wait_until(lambda: (home / "secret").exists() and (home / "secret").read_text())
    started.stdout.close()
    started.stdin.close()
    assert started.wait(PATIENCE) != 0
    assert not (home / "secret").exists()
    assert not (home / "bin" / "seen").exists()


@pytest.mark.parametrize("end", [None, signal.SIGHUP, signal.SIGTERM])
def test_of_a_controller_that_dies_while_vpp_reads_the_keys_nothing_is_left(home, started, end):
    (home / "bin" / "wait").touch()
    started.stdin.write(LINES)
    started.stdin.close()
    wait_until(lambda: Path(home / "bin" / "seen").exists())
    assert (home / "secret").exists()
    started.stdout.close()
    if end is not None:
        started.send_signal(end)
    (home / "bin" / "wait").unlink()
    started.wait(PATIENCE)
    assert not (home / "secret").exists()
