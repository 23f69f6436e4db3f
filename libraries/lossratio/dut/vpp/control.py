"""Talks to one VPP by its command line, whose exit status tells nothing: what it writes does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lossratio.dut.changes import Changes
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_COUNTER = re.compile(r"^\s*(?P<count>\d+)\s+(?P<node>\S+)\s+(?P<reason>\S.*?)\s+(?P<severity>error|warn|info)\s*$")
_NOT_DROPPED = ("info",)


@dataclass(frozen=True)
class VppControl:
    """A running VPP.

    Attributes:
        node: The node that it runs on.
        home: Directory that it is installed in.
        directory: Directory of its sockets.
    """

    node: DutNode
    home: str
    directory: str

    def ask(self, command: str) -> str:
        """What VPP writes to a command.

        Raises:
            DutError: If it does not answer.
        """
        return self.node.run(*self._line(command)).replace("\r", "")

    def answers(self) -> bool:
        """Whether it answers."""
        return self.node.attempt(*self._line("show version")).exit_status == 0

    def configure(self, changes: Changes, command: str, *, answer: str = "") -> None:
        """Gives VPP a command that changes its configuration; all of that is gone with VPP.

        Args:
            changes: Keeps a record of it.
            command: The command.
            answer: Regular expression of what VPP writes if it has done it.

        Raises:
            DutError: If it writes something else; VPP has no other way of telling that it refused.
        """
        written = self.ask(command).strip()
        if re.fullmatch(answer, written) is None:
            raise DutError(f"{self.node.name}: VPP refused {command!r}: {written or 'it did not say why'}.")
        changes.commands.append(f"vppctl {command}")

    def _line(self, command: str) -> tuple[str, ...]:
        return (f"{self.home}/bin/vppctl", "-s", f"{self.directory}/cli.sock", *command.split())


def parse_interfaces(text: str) -> dict[str, dict[str, int]]:
    """Counts of each interface, as ``show interface`` tells them.

    Returns:
        By interface, the counts by name, e.g. ``rx packets``; what is not there is zero.
    """
    interfaces: dict[str, dict[str, int]] = {}
    # The first line is the columns' headings.
    counts: dict[str, int] = {}
    for line in text.splitlines()[1:]:
        if line and not line[0].isspace():
            counts = interfaces.setdefault(line.split()[0], {})
        found = re.search(r"(?P<name>[a-z][a-z0-9 -]*[a-z0-9])\s+(?P<count>\d+)\s*$", line)
        if found:
            # The first line has the state and the MTU in front of the first counter.
            name = re.sub(r"^.*\b(up|down)\b", "", found["name"]).strip()
            counts[name] = int(found["count"])
    return interfaces


def parse_errors(text: str) -> dict[str, int]:
    """Counts by place and reason, as ``show errors`` tells them; those that are no errors are left out."""
    found = (_COUNTER.match(line) for line in text.splitlines())
    return {
        f"{each['node']}: {each['reason']}": int(each["count"])
        for each in found
        if each and each["severity"] not in _NOT_DROPPED
    }
