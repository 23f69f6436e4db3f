"""What brings a DUT back to how it was after the death of its controller, over real SSH; files stand for settings."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import children_of
from ssh_server import Server, needs_sshd, sshd_of
from waiting import is_running, wait_until

from lossratio.errors import NodeError
from lossratio.testbed import undo
from lossratio.testbed.undo import LastWill, execute_last_wills

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("sshd"), "/nowhere")
    yield server
    server.close()


@pytest.fixture(autouse=True)
def own_marks(monkeypatch):
    """Other tests on this machine must neither execute these wills nor keep them from it."""
    own = f"LOSSRATIO_TEST_{secrets.token_hex(4)}"
    for name in ("_MARK", "_OWNER", "_KEEP", "_EXECUTE", "_KILL"):
        monkeypatch.setattr(undo, name, getattr(undo, name).replace("LOSSRATIO_WILL", own))


def die(session):
    """Ends a connection as the death of its controller does."""
    os.kill(sshd_of(session), signal.SIGKILL)
    time.sleep(0.3)


def is_gone(will):
    return not Path(f"/proc/{will._pid}").exists()


def test_it_undoes_the_newest_first_and_with_its_input(server, tmp_path):
    session, other = server.connect(), server.connect()
    will = LastWill(session)
    will.add(("sh", "-c", f"cd '{tmp_path}'; cat newer >> both; echo older >> both"), None)
    will.add(("sh", "-c", f"cat > '{tmp_path}/script'\nexit 3", "a name"), "given")
    will.add(("tee", str(tmp_path / "newer")), "it's\ntwo lines\n")
    die(session)
    assert list(tmp_path.iterdir()) == []
    (child,) = children_of(will._pid)
    execute_last_wills(other)
    assert (tmp_path / "both").read_text() == "it's\ntwo lines\nolder\n"
    assert (tmp_path / "script").read_text() == "given"
    assert is_gone(will)
    wait_until(lambda: not is_running(child))
    execute_last_wills(other)
    assert (tmp_path / "both").read_text().count("older") == 1
    other.close()


def test_nobody_sets_up_beside_an_undo_that_still_runs(server, tmp_path, monkeypatch):
    session, other = server.connect(), server.connect()
    will = LastWill(session)
    will.add(("sh", "-c", f"cd '{tmp_path}'; until [ -e go ]; do sleep 0.05; done; touch undone"), None)
    die(session)
    monkeypatch.setattr(undo, "_UNDO_SECONDS", 1)
    for _ in range(2):
        with pytest.raises(NodeError, match="set-up of an earlier run is still being undone after 1 s"):
            execute_last_wills(other)
    (tmp_path / "go").touch()
    wait_until(lambda: is_gone(will))
    execute_last_wills(other)
    assert (tmp_path / "undone").exists()
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


def test_a_controller_that_was_about_to_put_the_dut_back_leaves_nothing_behind(server, tmp_path):
    session = server.connect()
    wills = [LastWill(session) for _ in range(2)]
    for number, will in enumerate(wills):
        will.add(("touch", str(tmp_path / f"{number}")), None)
        will.execute_at_end()
    wills[1].add(("sh", "-c", f"sleep 0.2; touch '{tmp_path}/last'"), None)
    assert list(tmp_path.iterdir()) == []
    die(session)
    wait_until(lambda: {path.name for path in tmp_path.iterdir()} == {"0", "1", "last"})
    wait_until(lambda: all(map(is_gone, wills)))


ENDING = """
import subprocess, time
ended = []
while True:
    ended.append(subprocess.Popen(["sleep", "0.01"]))
    time.sleep(0.002)
    if len(ended) > 15:
        ended.pop(0).wait()
"""


def test_processes_of_the_same_controller_that_are_ending_keep_no_will_from_being_executed(server, tmp_path):
    marks = {undo._MARK: "kept", undo._OWNER: f"{socket.gethostname()}:{os.getpid()}"}
    ending = subprocess.Popen([sys.executable, "-c", ENDING], env={**os.environ, **marks})
    try:
        for number in range(6):
            session = server.connect()
            will = LastWill(session)
            will.add(("touch", str(tmp_path / f"{number}")), None)
            will.execute_at_end()
            die(session)
            wait_until((tmp_path / f"{number}").exists)
    finally:
        ending.kill()
        ending.wait()


def test_the_next_controller_waits_for_a_will_that_is_being_executed(server, tmp_path):
    session = server.connect()
    will = LastWill(session)
    will.add(("sh", "-c", f"cd '{tmp_path}'; touch begun; sleep 2; echo once >> undone"), None)
    will.execute_at_end()
    os.kill(sshd_of(session), signal.SIGKILL)
    wait_until((tmp_path / "begun").exists)
    with server.connect() as other:
        execute_last_wills(other)
    assert (tmp_path / "undone").read_text() == "once\n"


def test_commands_that_were_taken_out_are_not_executed_at_the_end(server, tmp_path):
    session = server.connect()
    will = LastWill(session)
    will.add(("touch", str(tmp_path / "kept")), None)
    will.execute_at_end()
    will.add(("touch", str(tmp_path / "taken out")), None)
    will.drop_last()
    die(session)
    wait_until(lambda: is_gone(will))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_nothing_is_undone_by_itself_once_somebody_else_has_set_up_the_node(server, tmp_path, monkeypatch):
    session = server.connect()
    will = LastWill(session)
    will.add(("touch", str(tmp_path / "undone")), None)
    will.execute_at_end()
    with server.connect() as other:
        later = LastWill(other)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            later.add(("true",), None)
        die(session)
        wait_until(lambda: children_of(will._pid))
        later.drop_last()
    assert not (tmp_path / "undone").exists()
    with server.connect() as next_one:
        execute_last_wills(next_one)
    assert (tmp_path / "undone").exists()


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


def test_the_remains_of_a_killed_keeper_bring_no_process_a_signal(server):
    program = "import subprocess; subprocess.Popen(['sleep', '60'], env={'LOSSRATIO_WILL': 'open'}).wait()"
    with subprocess.Popen([sys.executable, "-c", program]) as parent, server.connect() as session:
        wait_until(lambda: children_of(parent.pid))
        (child,) = children_of(parent.pid)
        wait_until(lambda: b"LOSSRATIO_WILL=open" in Path(f"/proc/{child}/environ").read_bytes())
        execute_last_wills(session)
        os.kill(child, signal.SIGKILL)
        # SIGUSR1 would have ended it.
        assert parent.wait(10) == 0
