"""The programs of a private Open vSwitch: how they are called, and what their output says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.reports import statistic
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_PLACES = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
_PMD_NUMBER = re.compile(r"^\s+(?P<name>[^:]+):\s+(?P<value>\d+(\.\d+)?)\b")
_RXQ = re.compile(r"^\s+port:\s+(?P<port>\S+)\s+queue-id:\s+(?P<queue>\d+)")
_ANSWER_SECONDS = 20
"""Seconds that a program of Open vSwitch may wait for an answer."""


@dataclass(frozen=True)
class OvsControl:
    """A private Open vSwitch."""

    node: DutNode
    """The node that it runs on."""
    directory: str
    """Its directory on the node."""

    @property
    def database(self) -> Daemon:
        """The database server."""
        files = (f"{self.directory}/conf.db", f"--remote=punix:{self.directory}/db.sock")
        return self._daemon("ovsdb-server", *files)

    @property
    def switch(self) -> Daemon:
        """The switch."""
        return self._daemon("ovs-vswitchd", f"unix:{self.directory}/db.sock")

    def vsctl(self, *arguments: str, seconds: int = _ANSWER_SECONDS) -> tuple[str, ...]:
        """A command that changes the configuration, and waits for the switch for at most so many seconds."""
        database = f"--db=unix:{self.directory}/db.sock"
        return ("ovs-vsctl", database, f"--timeout={seconds}", *arguments)

    def ofctl(self, verb: str, bridge: str, *arguments: str) -> tuple[str, ...]:
        """An OpenFlow command to a bridge."""
        return (
            "ovs-ofctl",
            "-O",
            "OpenFlow13",
            verb,
            f"unix:{self.directory}/{bridge}.mgmt",
            *arguments,
        )

    def appctl(self, *arguments: str) -> tuple[str, ...]:
        """A command to the switch itself."""
        return (
            "ovs-appctl",
            f"--timeout={_ANSWER_SECONDS}",
            f"--target={self._control('ovs-vswitchd')}",
            *arguments,
        )

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


def parse_pmd_statistics(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Statistics of the datapath's threads, from the output of ``dpif-netdev/pmd-stats-show``."""
    statistics = []
    place = "datapath"
    for line in lines:
        if line and not line[0].isspace():
            place = line.rstrip(": ")
        elif number := _PMD_NUMBER.match(line):
            name = re.sub(r"\W+", "_", number["name"].lower()).strip("_")
            unit = "cycles" if "cycles" in name else "packets"
            statistics.append(statistic(place, name, number["value"], unit))
    return statistics


def parse_pmd_workers(
    statistics: Sequence[Mapping[str, Any]], queues: Sequence[str]
) -> list[dict[str, Any]]:
    """The load of the polling threads, or, without such threads, of the main thread, which then handles the frames."""
    by_thread: dict[str, dict[str, float]] = {}
    for each in statistics:
        by_thread.setdefault(each["place"], {})[each["name"]] = each["value"]
    read: dict[str, list[str]] = {}
    thread = ""

    for line in queues:
        if line and not line[0].isspace():
            thread = line.rstrip(": ")
        elif queue := _RXQ.match(line):
            read.setdefault(thread, []).append(f"{queue['port']} queue {queue['queue']}")

    workers = []
    has_pollers = any(thread.startswith("pmd thread") for thread in by_thread)
    for thread, numbers in by_thread.items():
        if thread.startswith("pmd thread") or (numbers.get("packets_received") and not has_pollers):
            idle, processing = numbers.get("idle_cycles"), numbers.get("processing_cycles")
            busy = None
            if idle is not None and processing is not None and idle + processing > 0.0:
                busy = processing / (idle + processing)
            frames = int(numbers.get("packets_received", 0.0))
            workers.append(
                {"worker": thread, "frames": frames, "busy": busy, "queues": read.get(thread, [])}
            )

    return workers


def parse_fields(line: str) -> dict[str, int]:
    """The counts in a line of ovs-ofctl, written as ``name=12`` or ``name:12``."""
    return {name: int(count) for name, count in re.findall(r"(\w+)[=:](\d+)", line)}


def parse_ports(text: str) -> dict[str, dict[str, dict[str, int]]]:
    """Counts (``pkts`` ...) by name of the port and ``rx`` or ``tx``, from the output of ``ovs-ofctl dump-ports``.

    Raises:
        DutError: If the output has no ports.
    """
    ports: dict[str, dict[str, dict[str, int]]] = {}
    for match in re.finditer(r'port\s+"?([^\s":]+)"?:\s+rx (.*)\n\s+tx (.*)', text):
        name, received, transmitted = match.groups()
        ports[name] = {"rx": parse_fields(received), "tx": parse_fields(transmitted)}
    if not ports:
        raise DutError(
            f"Instead of the counters of its ports, Open vSwitch reported {text[:200]!r}."
        )
    return ports


def parse_meters(text: str) -> dict[int, int]:
    """Frames that each meter has dropped, by its number, from the output of ``ovs-ofctl meter-stats``."""
    meters = re.findall(r"meter:(\d+) .*\n0:\s*packet_count:(\d+)", text)
    return {int(number): int(count) for number, count in meters}


def parse_coverage(text: str) -> dict[str, int]:
    """Frames dropped inside, by the name of the place, from the output of ``ovs-appctl coverage/show``.

    Frames that meters drop are not included: each meter reports its own.
    """
    places = re.findall(
        r"^((?:datapath_drop|drop_action)_\w+)\s.*total: (\d+)$", text, flags=re.MULTILINE
    )
    return {name: int(count) for name, count in places if name != "datapath_drop_meter"}


def parse_socket_drops(text: str, interface: str) -> int:
    """Frames that full packet sockets on an interface dropped, from the output of ``ss -0 -m -O``."""
    sockets = re.findall(r"\*:(\S+)\s.*skmem:\(.*,d(\d+)\)", text)
    return sum(int(count) for name, count in sockets if name == interface)
