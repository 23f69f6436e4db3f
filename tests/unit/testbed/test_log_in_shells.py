"""Log-in shells that change commands, or what they print, are found before anything else is asked."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import nullcontext

import pytest

from lossratio.errors import NodeError
from lossratio.nodes import CommandResult
from lossratio.testbed.inspection import check_shell


class LogIn:
    """A log-in whose start-up files do something before each command."""

    name = "DUT1"

    def __init__(self, start_up):
        self._start_up = start_up

    def run(self, *command, check):
        script = f"{self._start_up}\n{shlex.join(command)}"
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=check)
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("start_up", "problem"),
    [
        ("echo Welcome", r"^Node DUT1: its log-in shell prints 'Welcome\\n' with each command\. .*\.bashrc"),
        # What tcsh says of a line break between quotes.
        ("echo \"Unmatched '''.\" >&2; exit 1", r"quotes of a POSIX shell: .*Unmatched.*chsh -s /bin/sh"),
        ("echo 'sudo: a password is required' >&2; exit 1", None),
        (":", None),
    ],
)
def test_a_shell_that_changes_commands_or_their_output_is_the_cause_that_is_named(start_up, problem):
    with nullcontext() if problem is None else pytest.raises(NodeError, match=problem):
        check_shell(LogIn(start_up))
