"""Real programs on a node, started, watched and stopped."""

from __future__ import annotations

import re
import subprocess
from types import SimpleNamespace

import pytest
from waiting import wait_until

from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory, write_file
from lossratio.errors import DutError
from lossratio.nodes import BackgroundProgram, DutNode

pytestmark = pytest.mark.netns


@pytest.fixture
def node(dut_lab):
    return DutNode(dut_lab.shell)


@pytest.fixture
def changes(node):
    changes = Changes(node)
    yield changes
    changes.roll_back()


@pytest.fixture
def daemon(node, changes):
    def daemon(script):
        return Daemon(node, make_directory(changes, "test"), "program", ("sh", "-c", script))

    return daemon


def exists(node, path):
    return node.attempt("test", "-e", path).exit_status == 0


@pytest.mark.smoke
def test_a_program_runs_until_it_is_undone_and_leaves_nothing(node, changes, daemon):
    program = daemon("touch ready; exec sleep 60")
    program.start(changes, lambda: exists(node, f"{program.directory}/ready"))
    program.check_alive()
    changes.roll_back()
    assert not program.is_alive()
    assert not exists(node, program.directory)


def test_a_program_that_has_ended_leaves_its_exit_status(node, changes, daemon):
    program = daemon("exit 3")
    node.run(*program.program.start)
    wait_until(lambda: exists(node, program.program.status))
    assert node.run("cat", program.program.status) == "3\n"
    assert not program.is_alive()


SHELL_IS_LATE = """
read -r pid _ < "$1"; set -- $(sed 's/.*) //' "/proc/$pid/stat")
kill -STOP "$2" && { { sleep 0.3; kill -CONT "$2"; } > /dev/null 2>&1 & }
"""


def test_a_program_is_stopped_when_its_exit_status_is_there(node, daemon):
    """Otherwise a file would appear in a directory that is being removed."""
    program = daemon("exec sleep 60")
    node.run(*program.program.start)
    node.run("sh", "-c", SHELL_IS_LATE, "late", f"{program.directory}/program.pid")
    node.run(*program.program.stop())
    assert node.run("cat", program.program.status) == "143\n"


# The namespace ends with its first process, and that ends with the directory of the program at the latest.
IN_NAMESPACE = """
unshare --pid --fork sh -c '
    status=$1; shift; "$@"
    while [ -d "${status%/*}" ] && [ ! -s "$status" ]; do sleep 0.1; done
' first "$@" \\
    > /dev/null 2>&1 < /dev/null &
"""


def test_a_program_in_a_pid_namespace_is_known_by_the_id_that_others_see(node, daemon):
    program = daemon("exec sleep 60")
    node.run("sh", "-c", IN_NAMESPACE, "outside", program.program.status, *program.program.start)
    wait_until(program.is_alive)
    node.run(*program.program.stop())
    assert not program.is_alive()


def test_a_program_that_dies_at_once_says_why(changes, daemon):
    program = daemon("echo one; echo the reason >&2; exit 3")
    with pytest.raises(DutError, match=r"DUT1: program has died \(sh -c .*\)\. Its last output: one \| the reason\."):
        program.start(changes, lambda: False)


ABORT = r"""
plug/load [error ]: no such plugin
Out-of-memory, calling os_panic().
os_panic() called, aborting.
received signal SIGABRT, PC 0x7f3464808eec
Code:  89 c5 f7 dd 3d 00 f0 ff ff b8 00 00 00 00 0f 47 c5 e9 7a ff
#0  0x00007f3464808eec pthread_key_delete + 0x14c
     from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f34647a4472 abort + 0xd3
     from /lib/x86_64-linux-gnu/libc.so.6
#2  0x0000563fb575e05d os_panic + 0x2d
     from /opt/vpp/bin/vpp
#3  0x00007f3464b76908 vlib_stats_validate + 0x7b8
     from /opt/vpp/lib/libvlib.so.26.10
"""
DEEPER = "".join(f"#{number}  0x00007f3464b76908 caller + 0x{number}\n     from /opt/vpp\n" for number in range(4, 80))


@pytest.mark.parametrize(
    ("deeper", "last"), [("", ""), (DEEPER, "".join(f" | #{n} caller + 0x{n}" for n in range(4, 10)))]
)
def test_a_crash_is_shown_by_its_reason_and_by_the_functions_that_led_to_it(changes, daemon, tmp_path, deeper, last):
    # As VPP 26.10 wrote them when its statistics had no memory left.
    (tmp_path / "log").write_text(ABORT + deeper)
    program = daemon(f"cat '{tmp_path}/log'; exit 3")
    shown = (
        "Out-of-memory, calling os_panic(). | os_panic() called, aborting. | received signal SIGABRT, PC "
        "0x7f3464808eec | #0 pthread_key_delete + 0x14c | #1 abort + 0xd3 | #2 os_panic + 0x2d | #3 "
        f"vlib_stats_validate + 0x7b8{last}."
    )
    with pytest.raises(DutError, match=rf"has died .*\. Its crash: {re.escape(shown)}"):
        program.start(changes, lambda: False)


def test_a_program_that_ends_a_moment_after_its_socket_is_the_error(daemon, monkeypatch):
    alive = iter([True, False])
    monkeypatch.setattr(Daemon, "is_alive", lambda self: next(alive))
    with pytest.raises(DutError, match="has died"), daemon("exit 3").needed():
        raise DutError("DUT1: vppctl failed: exit status 1.")


def test_a_program_whose_files_cannot_be_written_is_not_started_and_the_reason_is_named(tmp_path):
    # Files of no more than 0 bytes are as a full disk.
    program = BackgroundProgram(f"{tmp_path}/server.", str(tmp_path), ("sleep", "60"))
    limited = "trap '' XFSZ; ulimit -f 0; exec \"$@\""
    shell = subprocess.run(
        ("sh", "-c", limited, "limited", *program.start), capture_output=True, text=True, timeout=240
    )
    complaint = f"it did not start: cannot write files as {tmp_path}/server.pid, is the disk full?\n"
    assert (shell.returncode, shell.stderr) == (1, complaint)


def test_a_program_that_runs_may_take_longer_than_a_minute_until_it_answers(changes, daemon, monkeypatch):
    looks = iter(range(0, 1000, 10))
    clock = SimpleNamespace(monotonic=lambda: next(looks), sleep=lambda _: None)
    monkeypatch.setattr("lossratio.dut.daemon.time", clock)
    program = daemon("exec sleep 60")
    answers = iter([False] * 9 + [True])
    program.start(changes, lambda: next(answers))
    assert program.is_alive()


def test_a_program_that_never_answers_is_given_up(changes, daemon):
    program = daemon("exec sleep 60")
    with pytest.raises(DutError, match=r"program did not answer within 0\.2 s\. It wrote nothing\."):
        program.start(changes, lambda: False, seconds=0.2)


def test_a_program_that_does_not_want_to_end_is_killed(node, changes, daemon, monkeypatch):
    monkeypatch.setattr(BackgroundProgram.stop, "__defaults__", ("TERM", 0.2))
    program = daemon("trap '' TERM; touch ready; while :; do sleep 1; done")
    program.start(changes, lambda: exists(node, f"{program.directory}/ready"))
    changes.roll_back()
    assert not program.is_alive()


def test_another_process_with_the_same_id_is_left_alone(node, changes, daemon):
    program, other = daemon("touch ready; exec sleep 60"), daemon("touch ready; exec sleep 60")
    program.start(changes, lambda: exists(node, f"{program.directory}/ready"))
    other.start(changes, lambda: exists(node, f"{other.directory}/ready"))
    pid = node.run("cat", f"{other.directory}/program.pid").split()[0]
    written = node.run("cat", f"{program.directory}/program.pid")
    node.run("tee", f"{program.directory}/program.pid", stdin=f"{pid} {int(written.split()[1]) - 1}\n")
    assert not program.is_alive()
    # A status that is there already; the command would wait for one.
    node.run("tee", f"{program.directory}/program.status", stdin="0\n")
    node.run(*program.program.stop())
    assert other.is_alive()
    node.run("tee", f"{program.directory}/program.pid", stdin=written)


def test_files_are_written_into_the_directory_and_go_with_it(node, changes):
    directory = make_directory(changes, "test")
    write_file(changes, f"{directory}/file", "text\n")
    assert node.run("cat", f"{directory}/file") == "text\n"
    changes.roll_back()
    assert not exists(node, directory)
