"""Changes to a node that can be undone: each change is recorded with the command that undoes it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lossratio.dut.texts import lines
from lossratio.errors import DutError
from lossratio.nodes import COMMAND_SECONDS, DutNode, reason, shown

_MACROS = """
% macro added(ip, arguments)
    {{ ip }} add {{ arguments }} | {{ ip }} delete {{ arguments }}
% endmacro
% macro made(name, arguments)
    ip link add name {{ name }} {{ arguments }} | ip link delete dev {{ name }}
% endmacro
"""


@dataclass(frozen=True)
class _Step:
    command: tuple[str, ...]
    stdin: str | None = None
    is_needed: bool = True
    """False if the change was possibly not made, so that the undo may fail."""


class Changes:
    """Changes a node step by step, and restores its earlier state."""

    def __init__(self, node: DutNode) -> None:
        self.commands: list[str] = []
        """The command lines that made the changes, in order."""
        self.settings: dict[str, list[str]] = {}
        """Kernel settings that were changed, by the path of their file: its text before the change, and after it."""
        self._node = node
        self._undo: list[_Step] = []

    def run(
        self,
        *command: str,
        stdin: str | None = None,
        undo: Sequence[str] = (),
        undo_stdin: str | None = None,
        timeout: float = COMMAND_SECONDS,
    ) -> None:
        """Runs a command that changes nothing if it fails. Without an undo, the undo of an earlier change covers it.

        Args:
            command: The program and its arguments, one string each.
            stdin: What it reads from its standard input; None: nothing.
            undo: The command that undoes the change; empty: none.
            undo_stdin: What the undo reads from its standard input; None: nothing.
            timeout: Seconds that the command may take in all.

        Raises:
            DutError: If it fails.
            NodeError: If it does not end in time, or the connection is lost.
        """
        if undo:
            # Recorded before the change, because this process may end right after it.
            self._add(_Step(tuple(undo), undo_stdin))

        try:
            self._node.run(*command, stdin=stdin, timeout=timeout)
        except DutError:
            if undo:
                self._drop_last()
            raise
        except BaseException:
            # After an interrupt or a lost connection, the node may still have made the change.
            if undo:
                self._undo[-1] = replace(self._undo[-1], is_needed=False)
            raise

        self.commands.append(shown(command, stdin))

    def apply(self, text: str, **values: object) -> None:
        """Makes the change on each line of a text with placeholders (`lossratio.dut.texts`).

        A line is a command, with the command that undoes it in a second column; or the path of a kernel setting and its
        value, and ``optional`` if the setting may be missing. The macro ``added(IP, ARGUMENTS)`` is for what ``ip``
        adds and deletes with the same arguments, and ``made(NAME, ARGUMENTS)`` for interfaces.

        Raises:
            DutError: If the node refuses a change.
        """
        for change, *undo in lines(_MACROS + text, **values):
            command = shlex.split(change)
            if command[0].startswith("/"):
                self.write(command[0], command[1], optional="optional" in command[2:])
            else:
                self.run(*command, undo=shlex.split(" ".join(undo)))

    def set_link(self, name: str, *words: str, undo: Sequence[str] = ()) -> None:
        """Changes an interface with ``ip link set``. The undo sets it to `undo`.

        Raises:
            DutError: If the node refuses it.
        """
        set_link = ("ip", "link", "set", "dev", name)
        self.run(*set_link, *words, undo=(*set_link, *undo) if undo else ())

    def write(self, path: str, value: str, *, optional: bool = False) -> None:
        """Gives a kernel setting (a file in /proc/sys or /sys) another value; an optional setting may be missing.

        Raises:
            DutError: If the kernel has no such setting and it is not optional, or refuses the
                value.
        """
        before = self._node.read_files(path).get(path)
        if before is None and not optional:
            raise self._node.error(
                f"the kernel has no setting {path}: leave out the option that needs it, or use a newer "
                "kernel."
            )
        if before is None or before == value:
            return
        command = ("tee", path)
        self.run(*command, stdin=f"{value}\n", undo=command, undo_stdin=f"{before}\n")
        self.settings[path] = [before, value]

    def put_back(self, *command: str, stdin: str | None = None) -> None:
        """Records a command that puts back what later changes remove. It runs once all of them have been undone."""
        self._add(_Step(command, stdin))

    def clean_up(self, *command: str) -> None:
        """Records a command to run once all changes after this call have been undone. The command may fail."""
        self._add(_Step(command, is_needed=False))

    def roll_back(self) -> None:
        """Undoes all changes, the last one first, even if an undo fails.

        Raises:
            DutError: If a part of the state could not be restored; all other parts are.
            NodeError: If the node cannot be reached. The next call continues where this one
                stopped.
        """
        failures = []
        while self._undo:
            step = self._undo[-1]
            result = self._node.attempt(*step.command, stdin=step.stdin)
            self._drop_last()
            if result.exit_status != 0 and step.is_needed:
                failures.append(f"{shown(step.command, step.stdin)}: {reason(result)}")
        if failures:
            raise self._node.error(
                "the state before the set-up could not be restored completely because another program has changed "
                "it since. Undo by hand what these commands could not: " + "; ".join(failures)
            )

    def _add(self, step: _Step) -> None:
        self._undo.append(step)
        self._node.will.add(step.command, step.stdin)

    def _drop_last(self) -> None:
        self._undo.pop()
        self._node.will.drop_last()
