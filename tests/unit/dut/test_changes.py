"""Changes on this machine, to files of the test's own, and their undoing."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from waiting import PATIENCE

from lossratio.dut.changes import Changes
from lossratio.errors import DutError
from lossratio.nodes import CommandResult
from lossratio.nodes.node import DutNode


class LocalShell:
    name = "here"

    def run(self, *command, timeout=30.0, check=True, stdin=None):
        done = subprocess.run(command, input=stdin or "", capture_output=True, text=True, timeout=PATIENCE, check=check)
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


@pytest.fixture
def changes():
    return Changes(DutNode(LocalShell()))


def test_changes_are_undone_in_reverse_order(changes, tmp_path):
    directory = str(tmp_path / "made")
    changes.run("mkdir", directory, undo=("rmdir", directory))
    changes.run("touch", f"{directory}/file", undo=("rm", f"{directory}/file"))
    file = shlex.quote(f"{directory}/file")
    assert changes.commands == [f"mkdir {shlex.quote(directory)}", f"touch {file}"]
    changes.roll_back()
    assert list(tmp_path.iterdir()) == []
    changes.roll_back()


def test_arguments_are_never_taken_for_a_shells(changes, tmp_path):
    name = str(tmp_path / "a $(touch nasty) 'b'; c")
    changes.run("touch", name, undo=("rm", name))
    assert [str(path) for path in tmp_path.iterdir()] == [name]


def test_a_command_that_fails_says_why_and_is_not_undone(changes, tmp_path):
    marker = tmp_path / "undone"
    with pytest.raises(DutError, match=r"here: rmdir .*missing'? failed: .*No such file or directory"):
        changes.run("rmdir", str(tmp_path / "missing"), undo=("touch", str(marker)))
    changes.roll_back()
    assert not marker.exists()


def test_a_setting_gets_its_old_value_back(changes, tmp_path):
    path = tmp_path / "setting"
    path.write_text("2\n")
    changes.write(str(path), "0")
    assert path.read_text() == "0\n"
    assert changes.settings == {str(path): ["2", "0"]}
    changes.roll_back()
    assert path.read_text() == "2\n"


def test_a_setting_that_is_right_already_is_not_touched(changes, tmp_path):
    path = tmp_path / "setting"
    path.write_text("0\n")
    changes.write(str(path), "0")
    assert (changes.commands, changes.settings) == ([], {})


def test_a_setting_that_the_kernel_lacks_is_an_error_unless_it_is_optional(changes, tmp_path):
    missing = str(tmp_path / "missing")
    changes.write(missing, "0", optional=True)
    with pytest.raises(DutError, match=r"here: the kernel has no setting .*missing"):
        changes.write(missing, "0")


def test_changes_that_cannot_be_undone_are_named_and_the_rest_is_undone(changes, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for path in (first, second):
        changes.run("touch", str(path), undo=("rm", str(path)))
    second.unlink()
    with pytest.raises(DutError, match=r"could not be restored completely.* rm .*second'?: "):
        changes.roll_back()
    assert not first.exists()


def test_commands_are_found_in_the_administrators_directories_and_answer_in_english(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    output = DutNode(LocalShell()).run("printenv", "PATH", "LC_ALL")
    assert output.splitlines()[0].split(":").count("/usr/sbin") == 1
    assert output.splitlines()[1] == "C"


def test_output_that_is_not_json_is_an_error():
    with pytest.raises(DutError, match="here: echo hello did not write JSON"):
        DutNode(LocalShell()).json("echo", "hello")
