"""grout, DPDK's graph router: routes between two ports, which DPDK drives.

Its command line controls it, in batches that end at the first command which it refuses. This module follows grout's
manual and its own tests (version 0.17); it was tried with a stand-in only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from lossratio.dut.base import DestinationMacs, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, write_file
from lossratio.dut.linux.addressing import RouterSide
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import check_free, existing_links
from lossratio.dut.linux.program_dut import ProgramDut, ProgramOptions
from lossratio.dut.linux.requirements import ETHTOOL, IP, NFT, Tool
from lossratio.errors import DutError
from lossratio.nodes import DutNode
from lossratio.topology import EAST, WEST

HOME_VARIABLE = "GROUT_HOME"
"""Environment variable of the controller that names grout's directory on the node."""

_SETTLE_TIME = 0.1
"""Seconds that frames may wait in the queue of a TAP interface."""
_CARD_SETTLE_TIME = 0.01
_MOST_HOSTS = 65_000
_SIDES = ("west", "east")
"""Names of its ports."""


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class GroutOptions(ProgramOptions):
    """The options of grout."""

    home: str = Field(default_factory=lambda: os.environ.get(HOME_VARIABLE, "/usr"), pattern="^/")
    """Directory of grout on the node, with ``bin/grout`` and ``bin/grcli``; where missing, the value of the environment
    variable GROUT_HOME on the machine that runs the suite, or ``/usr``."""
    ip_version: Annotated[Literal[4, 6], BeforeValidator(_number)] = 4
    """IP version that it routes."""
    routes: int | None = Field(default=None, ge=2, le=2 * _MOST_HOSTS, multiple_of=2)
    """Routes to single hosts, half of them on each side, and no others."""
    poll: bool = True
    """Whether its threads poll without any sleep; otherwise they sleep for microseconds while nothing comes."""
    frame_queue: int = Field(default=1024, ge=64, le=32_768)
    """Descriptors of each queue."""


@dataclass(frozen=True)
class GroutControl:
    """A running grout.

    Attributes:
        node: The node that it runs on.
        home: Directory that it is installed in.
        directory: Directory of its socket.
    """

    node: DutNode
    home: str
    directory: str

    def ask(self, *words: str) -> str:
        """Grout's answer to a command.

        Raises:
            DutError: If it refuses the command, or does not answer.
        """
        return self.node.run(*self._line, *words)

    def table(self, *words: str) -> list[dict[str, Any]]:
        """The rows of a command that shows a table."""
        rows = self.node.json(*self._line, "-j", *words)
        if not isinstance(rows, list):
            raise DutError(f"{self.node.name}: grout's answer to {' '.join(words)!r} is no table.")
        return rows

    def answers(self) -> bool:
        """Whether it answers."""
        return self.node.attempt(*self._line, "interface", "show").exit_status == 0

    def configure(self, changes: Changes, name: str, lines: Sequence[str]) -> None:
        """Gives it commands from a file. The configuration ends with grout, so there is no undo.

        Raises:
            DutError: If it refuses one; with the command.
        """
        path = f"{self.directory}/{name}"
        write_file(changes, path, "".join(f"{line}\n" for line in lines))
        changes.run(*self._line, "-e", "-x", "-f", path)

    @property
    def _line(self) -> tuple[str, ...]:
        return (f"{self.home}/bin/grcli", "-p", "-s", f"{self.directory}/grout.sock")


class Grout(ProgramDut[GroutOptions]):
    """A grout that belongs to this DUT, beside any grout of the system."""

    kind = "grout"
    options_type = GroutOptions
    tools = (IP, NFT, ETHTOOL)

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """The tools of every program, and grout in the directory of the option ``home``."""
        return (*super().tools_needed, Tool((f"{self.options.home}/bin/grout", "-V"), "grout (from its own releases)"))

    @property
    def settle_time(self) -> float:
        """Seconds that frames may wait in front of it."""
        return _CARD_SETTLE_TIME if self.uses_cards else _SETTLE_TIME

    def check_kind(self) -> None:
        """Checks that there are enough CPUs, and that its networks are free."""
        super().check_kind()
        check_free(self.node, [side.network for side in self._sides])

    def launch(self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str) -> list[Daemon]:
        """Starts grout and configures it: CPUs, ports, addresses, neighbours and routes."""
        hugepages = () if self.uses_cards else ("-t",)
        polls = ("-p",) if self.options.poll else ()
        # Its metrics would listen on a TCP port of the node.
        command = (f"{self.options.home}/bin/grout", "-s", f"{directory}/grout.sock", "-M", ":0", *hugepages, *polls)
        daemon = Daemon(self.node, directory, "grout", command)
        control = GroutControl(self.node, self.options.home, directory)
        daemon.start(changes, control.answers)
        control.configure(changes, "configuration", list(self._configuration(cores, (west_mac, east_mac))))
        return [daemon]

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """Its own addresses."""
        return self.own_macs()

    def reconfigure(self, entries: int) -> None:
        """Adds routes to single hosts, half of them on each side, from the last hosts of its network down."""
        control = self._control
        counts = (entries - entries // 2, entries // 2)
        if max(counts) + (self.options.routes or 0) // 2 > _MOST_HOSTS:
            raise DutError(f"{self.node.name}: a side has {_MOST_HOSTS} hosts; add fewer routes.")
        lines = [
            line
            for side, count in zip(self._sides, counts, strict=True)
            for line in _routes(side, side.last_hosts(count))
        ]
        control.configure(self.present.changes, "reconfiguration", lines)

    def facts(self) -> dict[str, Any]:
        """Version, CPUs, ports and addresses, as grout reports them."""
        control = self._control
        shown = ("affinity cpus show", "affinity qmap show", "address show")
        return {
            **super().facts(),
            "version": self.node.run(f"{self.options.home}/bin/grout", "-V").strip(),
            "shown": {command: control.ask(*command.split()).splitlines() for command in shown},
        }

    def read_counters(self) -> DutCounters:
        """Reads grout's counters of its ports; with interfaces of the kernel, received frames are the kernel's.

        Frames that its graph drops are in no counter of a port: they are the difference of its other counters.
        """
        rows = {row["interface"]: row for row in self._control.table("interface", "stats")}
        sides = {side: self.node.find("grout's port", side, rows) for side in _SIDES}
        count = {side: {name: int(row[name]) for name in row if name != "interface"} for side, row in sides.items()}
        received = {side: counts["rx_packets"] + counts["rx_drops"] for side, counts in count.items()}
        transmitted = {side: counts["tx_packets"] for side, counts in count.items()}
        dropped = {f"{side} port, receive drops": counts["rx_drops"] for side, counts in count.items()}
        dropped |= {f"{side} port, transmit errors": counts["tx_errors"] for side, counts in count.items()}
        for here, there in (_SIDES, _SIDES[::-1]):
            sent = transmitted[there] + count[there]["tx_errors"]
            dropped[f"grout's graph, frames from the {here}"] = count[here]["rx_packets"] - sent
        if not self.uses_cards:
            links = existing_links(self.node, *self.kernel_interfaces)
            for side, name in zip(_SIDES, (self.west, self.east), strict=True):
                kernel = int(links[name]["stats64"]["rx"]["packets"])
                dropped[f"TAP in front of grout, {side}"] = kernel - received[side]
                received[side] = kernel
        return DutCounters(received, transmitted, dropped)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The counters of grout's graph nodes, besides the reports of the node."""
        control = self._control
        control.ask("stats", "reset")
        with super().telemetry() as report:
            yield report
        report["stats show"] = control.ask("stats", "show").splitlines()

    @property
    def _control(self) -> GroutControl:
        _ = self.present
        self.check_running()
        return GroutControl(self.node, self.options.home, self.daemons[0].directory)

    @property
    def _sides(self) -> tuple[RouterSide, RouterSide]:
        ipv4 = self.options.ip_version == 4
        west, east = (WEST.ipv4, EAST.ipv4) if ipv4 else (WEST.ipv6, EAST.ipv6)
        return RouterSide("west", west), RouterSide("east", east)

    def _configuration(self, cores: CoreChoice, neighbours: tuple[str, str]) -> Iterator[str]:
        workers = ",".join(map(str, cores.workers))
        yield f"affinity cpus set control {cores.main} datapath {workers}"
        queues = self.options.queues or (len(cores.workers) if self.uses_cards else 1)
        for number, name in enumerate((self.west, self.east)):
            # A TAP interface takes the frames of the kernel's interface, and sends by it.
            device = name if self.uses_cards else f"net_tap{number},iface={self.stem}.{number},remote={name}"
            yield f"interface add port {_SIDES[number]} devargs {device} rxqs {queues} qsize {self.options.frame_queue}"
        for side, mac in zip(self._sides, neighbours, strict=True):
            length = side.network.max_prefixlen - 2
            yield f"address add {side.address}/{length} iface {side.interface}"
            yield f"nexthop add l3 iface {side.interface} address {side.neighbour} mac {mac}"
            if self.options.routes is None:
                yield f"route add {side.network} via {side.neighbour}"
            else:
                yield from _routes(side, side.hosts(self.options.routes // 2))


def _routes(side: RouterSide, hosts: Sequence[IPv4Address | IPv6Address]) -> Iterator[str]:
    for host in hosts:
        yield f"route add {host}/{side.network.max_prefixlen} via {side.neighbour}"
