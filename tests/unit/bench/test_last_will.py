"""What brings a DUT back to how it was after the death of its controller, over real SSH; files stand for settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ssh_server import Server, needs_sshd, sshd_of
from waiting import is_running, wait_until

from lossratio.bench.last_will import LastWill, execute_last_wills

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("sshd"), "/nowhere")
    yield server
    server.close()


def die(session):
    """Ends a connection as the death of its controller does."""
    os.kill(sshd_of(session), signal.SIGKILL)
    time.sleep(0.3)


def is_gone(will):
    return not Path(f"/proc/{will._pid}").exists()


def children(will):
    return Path(f"/proc/{will._pid}/task/{will._pid}/children").read_text().split()


def test_it_undoes_the_newest_first_and_with_its_input(server, tmp_path):
    session, other = server.connect(), server.connect()
    will = LastWill(session)
    will.add(("sh", "-c", f"cat {tmp_path}/newer >> {tmp_path}/both; echo older >> {tmp_path}/both"), None)
    will.add(("sh", "-c", f"cat > {tmp_path}/script\nexit 3", "a name"), "given")
    will.add(("tee", str(tmp_path / "newer")), "it's\ntwo lines\n")
    die(session)
    assert list(tmp_path.iterdir()) == []
    (child,) = children(will)
    execute_last_wills(other)
    assert (tmp_path / "both").read_text() == "it's\ntwo lines\nolder\n"
    assert (tmp_path / "script").read_text() == "given"
    assert is_gone(will)
    wait_until(lambda: not is_running(int(child)))
    execute_last_wills(other)
    assert (tmp_path / "both").read_text().count("older") == 1
    other.close()


def test_nobody_executes_that_of_the_living(server, tmp_path):
    with server.connect() as session, server.connect() as other:
        will = LastWill(session)
        will.add(("touch", str(tmp_path / "undone")), None)
        execute_last_wills(other)
        assert not (tmp_path / "undone").exists()
        will.drop_last()
        assert is_gone(will)
    execute_last_wills(server.connect())
    assert not (tmp_path / "undone").exists()


def test_after_a_new_log_in_it_is_kept_again(server, tmp_path):
    with server.connect() as session, server.connect() as other:
        will = LastWill(session)
        will.add(("touch", str(tmp_path / "undone")), None)
        first = will._pid
        die(session)
        session.restore()
        will.keep()
        assert will._pid != first
        execute_last_wills(other)
        assert not (tmp_path / "undone").exists()
        die(session)
        execute_last_wills(other)
        assert (tmp_path / "undone").exists()


def test_what_a_killed_keeper_left_brings_nobody_a_signal(server):
    program = "import subprocess; subprocess.Popen(['sleep', '60'], env={'LOSSRATIO_WILL': 'open'}).wait()"
    with subprocess.Popen([sys.executable, "-c", program]) as parent, server.connect() as session:
        wait_until(lambda: Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        wait_until(lambda: b"LOSSRATIO_WILL=open" in Path(f"/proc/{child}/environ").read_bytes())
        execute_last_wills(session)
        os.kill(int(child), signal.SIGKILL)
        # SIGUSR1 would have ended it.
        assert parent.wait(10) == 0
