"""grout, DPDK's graph router: routes between two ports, which DPDK drives.

Its command line controls it, in batches that end at the first command that it refuses.

This module follows grout's manual and its own tests (version 0.17). It has only been tried with a stand-in for grout.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any

from pydantic import Field

from lossratio.dut.base import SIDES, DutCounters, Tool, from_environment
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, write_file
from lossratio.dut.linux.addressing import (
    MOST_HOSTS,
    IpVersion,
    RouterSide,
    check_hosts,
    halves,
    router_sides,
)
from lossratio.dut.linux.cores import CoreChoice, cpu_list
from lossratio.dut.linux.interfaces import check_free
from lossratio.dut.linux.program_dut import ProgramDut, ProgramOptions
from lossratio.results import Role
from lossratio.wrong_values import Like

HOME_VARIABLE = "GROUT_HOME"
"""Environment variable of the controller that names grout's directory on the node."""


class GroutOptions(ProgramOptions):
    """The options of grout."""

    is_router = True
    home: Annotated[str, Like("^/", "an absolute path, such as /usr"), Role.TESTED] = Field(
        default_factory=from_environment(HOME_VARIABLE, "/usr")
    )
    """Directory of grout on the node, with ``bin/grout`` and ``bin/grcli``. Default: the value of the environment
    variable ``GROUT_HOME`` on the machine that runs the suite, or ``/usr``."""
    ip_version: IpVersion = 4
    """4 (the default) or 6."""
    routes: int | None = Field(default=None, ge=2, le=2 * MOST_HOSTS, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no others."""
    poll: bool = True
    """Whether the threads poll without any sleep (the default). Otherwise they sleep for microseconds while no frames
    come."""
    frame_queue: int = Field(default=1024, ge=64, le=32_768)
    """Descriptors of each queue."""


class Grout(ProgramDut[GroutOptions]):
    """DPDK's graph router grout, with its own files."""

    kind = "grout"
    options_type = GroutOptions
    software = Tool(
        "bin/grout", "", "-V", "grout", HOME_VARIABLE, "Install grout from its own releases."
    )

    def check_kind(self) -> None:
        """Checks that there are enough CPUs, and that the node does not use its networks."""
        super().check_kind()
        check_free(self.node, [side.network for side in self._sides])

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts grout and configures it: CPUs, ports, addresses, neighbours and routes."""
        hugepages = () if self.uses_cards else ("-t",)
        polls = ("-p",) if self.options.poll else ()
        # Otherwise, its metrics would listen on a TCP port of the node.
        command = (self.program, "-s", f"{directory}/grout.sock", "-M", ":0", *hugepages, *polls)
        daemon = Daemon(self.node, directory, "grout", command)
        show = (*self._line(directory), "interface", "show")
        daemon.start(changes, lambda: self.node.attempt(*show).exit_status == 0)
        self._configure(changes, directory, list(self._configuration(cores, (west_mac, east_mac))))
        return [daemon]

    def reconfigure(self, entries: int) -> None:
        """Adds routes to single hosts, half of them on each side, from the last hosts of its network down."""
        directory = self.running.directory
        check_hosts(self.node.name, entries, self.options.routes)
        lines = [
            line
            for side, count in zip(self._sides, halves(entries), strict=True)
            for line in _routes(side, side.last_hosts(count))
        ]
        self._configure(self.present.changes, directory, lines)

    def facts(self) -> dict[str, Any]:
        """Version, CPUs, ports and addresses, as grout reports them."""
        shown = ("affinity cpus show", "affinity qmap show", "address show")
        return {
            **super().facts(),
            "version": self.node.run(self.program, "-V").strip(),
            "shown": {command: self._ask(*command.split()).splitlines() for command in shown},
        }

    def read_counters(self) -> DutCounters:
        """Reads grout's counters of its ports; with interfaces of the kernel, received frames are the kernel's.

        No counter of a port includes the frames that the graph drops: their number is the difference between the other
        counters.

        Raises:
            DutError: If grout does not answer, or its answer is not a table that has both ports.
        """
        table = self.node.json(*self._line(self.running.directory), "-j", "interface", "stats")
        if not isinstance(table, list):
            raise self.node.error("grout's answer to 'interface stats' is not a table.")

        rows = {row["interface"]: row for row in table}
        sides = {side: self.node.find("grout's port", side, rows) for side in SIDES}
        count = {side: _counts(row) for side, row in sides.items()}
        received = {
            side: counts["rx_packets"] + counts["rx_drops"] for side, counts in count.items()
        }
        transmitted = {side: counts["tx_packets"] for side, counts in count.items()}
        dropped = {
            f"{side} port, receive drops": counts["rx_drops"] for side, counts in count.items()
        }
        dropped |= {
            f"{side} port, transmit errors": counts["tx_errors"] for side, counts in count.items()
        }

        for here, there in (SIDES, SIDES[::-1]):
            sent = transmitted[there] + count[there]["tx_errors"]
            dropped[f"grout's graph, frames from the {here}"] = count[here]["rx_packets"] - sent

        if not self.uses_cards:
            for side, stats in self.packets_of_kernel().items():
                kernel = int(stats["rx"]["packets"])
                dropped[f"TAP in front of grout, {side}"] = kernel - received[side]
                received[side] = kernel

        return DutCounters(received, transmitted, dropped)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The counters of grout's graph nodes, besides the reports of the node."""
        self._ask("stats", "reset")
        with super().telemetry() as report:
            yield report
        report["stats show"] = self._ask("stats", "show").splitlines()

    def _line(self, directory: str) -> tuple[str, ...]:
        return (f"{self.options.home}/bin/grcli", "-p", "-s", f"{directory}/grout.sock")

    def _ask(self, *words: str) -> str:
        return self.node.run(*self._line(self.running.directory), *words)

    def _configure(self, changes: Changes, directory: str, lines: Sequence[str]) -> None:
        """Gives grout commands from a file. The configuration ends with grout, so there is no undo."""
        path = f"{directory}/configuration"
        write_file(changes, path, "".join(f"{line}\n" for line in lines))
        changes.run(*self._line(directory), "-e", "-x", "-f", path)

    @property
    def _sides(self) -> tuple[RouterSide, RouterSide]:
        return router_sides(*SIDES, self.options.ip_version)

    def _configuration(self, cores: CoreChoice, neighbours: tuple[str, str]) -> Iterator[str]:
        yield f"affinity cpus set control {cores.main} datapath {cpu_list(cores.workers)}"
        queues = self.options.queues or (len(cores.workers) if self.uses_cards else 1)
        for number, name in enumerate((self.west, self.east)):
            # A TAP interface receives the frames of the kernel's interface, and sends through it.
            if self.uses_cards:
                device = name
            else:
                device = f"net_tap{number},iface={self.stem}.{number},remote={name}"

            yield f"interface add port {SIDES[number]} devargs {device} rxqs {queues} qsize {self.options.frame_queue}"

        for side, mac in zip(self._sides, neighbours, strict=True):
            length = side.network.max_prefixlen - 2
            yield f"address add {side.address}/{length} iface {side.interface}"
            yield f"nexthop add l3 iface {side.interface} address {side.neighbour} mac {mac}"
            if self.options.routes is None:
                yield f"route add {side.network} via {side.neighbour}"
            else:
                yield from _routes(side, side.hosts(self.options.routes // 2))


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    """The counters of a port."""
    return {name: int(count) for name, count in row.items() if name != "interface"}


def _routes(side: RouterSide, hosts: Sequence[IPv4Address | IPv6Address]) -> Iterator[str]:
    for host in hosts:
        yield f"route add {host}/{side.network.max_prefixlen} via {side.neighbour}"
