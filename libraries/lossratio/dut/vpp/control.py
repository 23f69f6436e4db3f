"""Controls one VPP by its command line. Its answers show success or failure, as its exit status does not."""

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
        """VPP's answer to a command.

        Raises:
            DutError: If it does not answer.
        """
        return self.node.run(*self._line(command)).replace("\r", "")

    def answers(self) -> bool:
        """Whether it answers."""
        return self.node.attempt(*self._line("show version")).exit_status == 0

    def configure(self, changes: Changes, command: str, *, answer: str = "") -> None:
        """Gives VPP a command that changes its configuration. The configuration ends with VPP, so there is no undo.

        Args:
            changes: Records the command.
            command: The command.
            answer: Regular expression of VPP's answer to a command that succeeds.

        Raises:
            DutError: If the answer is another one: VPP reports a failure in no other way.
        """
        written = self.ask(command).strip()
        if re.fullmatch(answer, written) is None:
            raise DutError(f"{self.node.name}: VPP refused {command!r}: {written or 'it gave no reason'}.")
        changes.commands.append(f"vppctl {command}")

    def _line(self, command: str) -> tuple[str, ...]:
        return (f"{self.home}/bin/vppctl", "-s", f"{self.directory}/cli.sock", *command.split())


def parse_interfaces(text: str) -> dict[str, dict[str, int]]:
    """Counts of each interface, from the output of ``show interface``.

    Returns:
        By interface, the counts by name, e.g. ``rx packets``; missing counts are zero.
    """
    interfaces: dict[str, dict[str, int]] = {}
    # The first line is the columns' headings.
    counts: dict[str, int] = {}
    for line in text.splitlines()[1:]:
        if line and not line[0].isspace():
            counts = interfaces.setdefault(line.split()[0], {})
        counter = re.search(r"(?P<name>[a-z][a-z0-9 -]*[a-z0-9])\s+(?P<count>\d+)\s*$", line)
        if counter:
            # The first line has the state and the MTU in front of the first counter.
            name = re.sub(r"^.*\b(up|down)\b", "", counter["name"]).strip()
            counts[name] = int(counter["count"])
    return interfaces


def parse_errors(text: str) -> dict[str, int]:
    """Counts by place and reason, from the output of ``show errors``; counts that are not of errors are left out."""
    counters = (_COUNTER.match(line) for line in text.splitlines())
    return {
        f"{counter['node']}: {counter['reason']}": int(counter["count"])
        for counter in counters
        if counter and counter["severity"] not in _NOT_DROPPED
    }
