"""Talks to one private Open vSwitch, whose sockets, database and logs are all in one directory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lossratio.dut.daemon import Daemon
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_PLACES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
_OPENFLOW = ("-O", "OpenFlow13")


@dataclass(frozen=True)
class OvsControl:
    """A private Open vSwitch.

    Attributes:
        node: The node that it runs on.
        directory: Its directory there.
    """

    node: DutNode
    directory: str

    @property
    def database(self) -> Daemon:
        """The database server."""
        files = (f"{self.directory}/conf.db", f"--remote=punix:{self.directory}/db.sock")
        return self._daemon("ovsdb-server", *files)

    @property
    def switch(self) -> Daemon:
        """The switch."""
        return self._daemon("ovs-vswitchd", f"unix:{self.directory}/db.sock")

    def create_database(self) -> tuple[str, ...]:
        """The command that makes an empty database."""
        return ("ovsdb-tool", "create", f"{self.directory}/conf.db")

    def vsctl(self, *arguments: str) -> tuple[str, ...]:
        """A command that changes the configuration."""
        return ("ovs-vsctl", f"--db=unix:{self.directory}/db.sock", "--timeout=20", *arguments)

    def ofctl(self, verb: str, bridge: str, *arguments: str) -> tuple[str, ...]:
        """An OpenFlow command to a bridge."""
        return ("ovs-ofctl", *_OPENFLOW, verb, f"unix:{self.directory}/{bridge}.mgmt", *arguments)

    def appctl(self, *arguments: str) -> tuple[str, ...]:
        """A command to the switch itself."""
        return ("ovs-appctl", "--timeout=20", f"--target={self._control('ovs-vswitchd')}", *arguments)

    def answers(self, daemon: Daemon) -> bool:
        """Whether a program answers on its control socket."""
        ask = ("ovs-appctl", "--timeout=5", f"--target={self._control(daemon.name)}", "version")
        return self.node.attempt(*ask).exit_status == 0

    def _control(self, name: str) -> str:
        return f"{self.directory}/{name}.ctl"

    def _daemon(self, name: str, *arguments: str) -> Daemon:
        places = (f"{place}={self.directory}" for place in _PLACES)
        own = (f"--unixctl={self._control(name)}", "--no-chdir", "--verbose=console:warn")
        return Daemon(self.node, self.directory, name, ("env", *places, name, *arguments, *own))


def parse_fields(line: str) -> dict[str, int]:
    """Counts that a line of ovs-ofctl tells as ``name=12`` or ``name:12``."""
    return {name: int(count) for name, count in re.findall(r"(\w+)[=:](\d+)", line)}


def parse_ports(text: str) -> dict[str, dict[str, dict[str, int]]]:
    """What ``ovs-ofctl dump-ports`` tells.

    Returns:
        Counts (``pkts``, ``drop``, ``errs`` ...) by name of the port and ``rx`` or ``tx``.

    Raises:
        DutError: If it tells something else.
    """
    ports: dict[str, dict[str, dict[str, int]]] = {}
    for match in re.finditer(r'port\s+"?([^\s":]+)"?:\s+rx (.*)\n\s+tx (.*)', text):
        name, received, transmitted = match.groups()
        ports[name] = {"rx": parse_fields(received), "tx": parse_fields(transmitted)}
    if not ports:
        raise DutError(f"Open vSwitch told no counters of ports, but {text[:200]!r}.")
    return ports


def parse_meters(text: str) -> dict[int, int]:
    """Frames that each meter has dropped, by its number, as ``ovs-ofctl meter-stats`` tells."""
    found = re.findall(r"meter:(\d+) .*\n0:\s*packet_count:(\d+)", text)
    return {int(number): int(count) for number, count in found}


def parse_coverage(text: str) -> dict[str, int]:
    """Frames dropped inside, by the name of the place, as ``ovs-appctl coverage/show`` tells.

    What meters drop is not among them: that is told for each meter.
    """
    found = re.findall(r"^((?:datapath_drop|drop_action)_\w+)\s.*total: (\d+)$", text, flags=re.MULTILINE)
    return {name: int(count) for name, count in found if name != "datapath_drop_meter"}


def parse_socket_drops(text: str, interface: str) -> int:
    """Frames that packet sockets on an interface had no room for, as ``ss -0 -m -O`` tells."""
    sockets = re.findall(r"\*:(\S+)\s.*skmem:\(.*,d(\d+)\)", text)
    return sum(int(count) for name, count in sockets if name == interface)
