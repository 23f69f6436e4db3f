"""FD.io VPP between two interfaces, controlled by its command line: a cross-connect, bridge, router or tunnel end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lossratio.dut.base import DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import is_up, read_links
from lossratio.dut.linux.program_dut import pci_interfaces
from lossratio.dut.vpp import reports
from lossratio.dut.vpp.clock import read_clock
from lossratio.dut.vpp.configuration import card_commands, placement_commands, socket_commands
from lossratio.dut.vpp.control import VppControl
from lossratio.dut.vpp.counters import read_counters
from lossratio.dut.vpp.features.feature import Command, Ports
from lossratio.dut.vpp.features.nat import Sessions
from lossratio.dut.vpp.features.policer import policer_name
from lossratio.dut.vpp.path import VppPath
from lossratio.dut.vpp.startup import Card, lines_for_iommu, startup_configuration, write_startup
from lossratio.errors import DutError

_STARTS = 5
"""The maximum number of starts of VPP until the clock of its policers is right."""
_PRIORITY = 5
"""VPP's priority if its workers sleep: above ordinary programs, and below senders, which may share its CPUs."""
_SHOWN_AFTER_SET_UP = (
    "show version verbose",
    "show threads",
    "show interface address",
    "show interface rx-placement",
    "show mode",
)
_SHOWN_ON_TRIALS = ("show runtime", "show errors", "show interface", "show hardware-interfaces")


class Vpp(VppPath):
    """FD.io VPP, with its own files."""

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Starts VPP, and restarts it if the clock of its policers is wrong: another start may be luckier."""
        super().build(changes, west_mac, east_mac)
        self._starts = 1
        while True:
            try:
                self._check_clock()
                return
            except DutError:
                if self._starts == _STARTS:
                    raise
            self.start_anew(changes, west_mac, east_mac)
            self._starts += 1

    def verify(self) -> None:
        """Checks the state, and the clock of policers if it has not been checked since VPP was started."""
        super().verify()
        self._check_features(self._control, self._links)
        if self._clock is None:
            self._check_clock()

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts VPP and configures it command by command."""
        self._clock = None
        cards = self._vpp_cards(cores)
        self._workers = max(1, len(cores.workers))
        self._queues = self.options.queues or 1
        if cards:
            self._queues = cards[0].queues
        control = self._control_in(directory)
        daemon = self._start_vpp(changes, control, cores, cards)

        with daemon.needed():
            if not self.uses_cards:
                self._take_kernel_interfaces(control, changes)
            elif self.hop.vpp.driver == "dpdk":
                control.check_cards(cards, daemon)
            else:
                self._take_cards(control, changes, cards)

            links = self._links_between(west_mac, east_mac, directory)
            for command in (*placement_commands(cards), *self.options.forwarding_commands(*links)):
                control.configure(changes, command)
            others = self._others.start(changes, control, cores, links)
            for command in self.options.commands_of("connected", links):
                control.configure(changes, command)
            self._verified = self._check_features(control, links)
            if self.options.forwarding == "ip6":
                control.outlast_reports(self._vpp_names)

        return [daemon, *others]

    def _start_vpp(
        self, changes: Changes, control: VppControl, cores: CoreChoice, cards: Sequence[Card]
    ) -> Daemon:
        """Starts VPP with its configuration, and waits until it answers."""
        options = self.options
        lines = [*options.startup_lines(), *lines_for_iommu(self.node, self.hop.vpp, cards)]
        text = startup_configuration(
            control.directory,
            cores,
            cards,
            self.hop.vpp,
            entries=options.entries,
            lines=dict.fromkeys(lines),
        )

        program = (self.program, "-c", write_startup(changes, control.directory, text))
        # A process beside VPP polls, and may have to share a CPU with VPP.
        goes_first = not self.polls and not options.has_programs
        priority = _PRIORITY if goes_first else None
        daemon = Daemon(self.node, control.directory, "vpp", program, priority)
        daemon.start(changes, control.answers)
        return daemon

    def _check_features(self, control: VppControl, links: Ports) -> dict[str, str]:
        ports = self.options.inner_ports(*links)
        return control.check(self.options.shown_in("verified", ports))

    def _check_clock(self) -> None:
        """Checks the clock of the policers, if there are any, and if this VPP prints it."""
        if self.options.police_kilobits is None:
            return
        control = self._control_in(self.daemons[0].directory)
        policer = policer_name(self._vpp_names[0])
        clock = read_clock(control.ask, policer, self.options.police_kilobits)
        if clock is not None:
            clock.check(self.node.name, self._choose_cores().main)
            self._clock = clock

    def facts(self) -> dict[str, Any]:
        """Version, start-up configuration, threads, placement and forwarding, as VPP reports them."""
        control = self._control
        startup = self.node.run("cat", f"{control.directory}/startup.conf").splitlines()
        clock = None
        if self._clock is not None:
            clock = {**asdict(self._clock), "starts": self._starts}

        return {
            **super().facts(),
            "version": control.ask("show version").strip(),
            "startup": startup,
            "clock": clock,
            "verified": self._verified,
            "shown": {command: control.lines(command) for command in _SHOWN_AFTER_SET_UP},
        }

    def read_counters(self) -> DutCounters:
        """Reads VPP's counters of its interfaces, and the kernel's counters of interfaces of the kernel.

        The difference between them is the number of frames for which the rings in between had no room. VPP counts the
        reasons of its drops for all interfaces together; these counts are in the details.
        """
        kernel = None if self.uses_cards else self.packets_of_kernel
        pairs = self.options.forwarding_pairs(self._ports)
        return read_counters(self._control, self._vpp_names, pairs, kernel)

    @property
    def connections(self) -> Sessions | None:
        """The sessions of its NAT or of SFDP."""
        table = self.options.table
        if table is None:
            return None
        return Sessions(self.node.name, table, lambda command: self._control.ask(command))

    def reset(self) -> None:
        """Undoes what trials leave behind, such as policers' empty buckets."""
        control = self._control
        for command in self.options.commands_of("reset_commands", self._ports):
            control.ask(command.text)

    def check_reconfigure(self, entries: int) -> None:
        """Refuses a forwarding mode without a table."""
        if self.options.forwarding in ("l2xc", "l2patch"):
            super().reconfigure(entries)

    def reconfigure(self, entries: int) -> None:
        """Adds routes, or entries of the bridge domain, through a file of commands."""
        control = self._control
        command = self.options.entries_command(self._links, entries)
        if command is None:
            super().reconfigure(entries)
        else:
            control.configure(self.present.changes, command)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The counters of VPP's graph nodes, besides the reports of the node, and the proofs of its features."""
        control = self._control
        for command in (
            "clear runtime",
            "clear errors",
            "clear interfaces",
            "clear hardware-interfaces",
        ):
            control.ask(command)

        with super().telemetry() as report:
            yield report
        for command in _SHOWN_ON_TRIALS:
            report[command] = control.lines(command)
        for feature in self.options.features:
            report |= {command: control.lines(command) for command in feature.needs.shows}

        runtime = control.ask("show runtime")
        report["statistics"] += reports.parse_runtime(runtime)
        report["proved"] = control.check(self.options.shown_in("proved", self._ports))
        report["workers"] = reports.parse_workers(
            runtime, control.ask("show interface rx-placement")
        )

    def probes(self) -> Sequence[str]:
        """The bundles of VPP's performance monitor that are available here."""
        answer = self._control.ask("show perfmon bundle")
        return [f"perfmon {bundle}" for bundle in reports.parse_bundles(answer)]

    @contextmanager
    def probe(self, name: str) -> Iterator[dict[str, Any]]:
        """What a bundle counts while traffic passes."""
        control = self._control
        bundle = name.removeprefix("perfmon ")
        report: dict[str, Any] = {}
        control.ask("perfmon reset")
        control.configure(Changes(self.node), Command(f"perfmon start bundle {bundle}"))
        try:
            yield report
        finally:
            control.ask("perfmon stop")
        shown = control.ask("show perfmon statistics")
        control.ask("perfmon reset")
        report[name] = shown.splitlines()
        report["statistics"] = reports.parse_perfmon(bundle, shown)

    def _take_cards(self, control: VppControl, changes: Changes, cards: Sequence[Card]) -> None:
        macs = self.own_macs()
        links = read_links(self.node)
        for card, mac in zip(cards, (macs.from_west, macs.from_east), strict=True):
            (name, *_) = (*pci_interfaces(self.node, card.address), "")
            if name and not is_up(links[name]):
                changes.set_link(name, "up", undo=("down",))
            for command in card_commands(self.hop.vpp.driver, card, name, mac):
                control.configure(changes, command)

    def _take_kernel_interfaces(self, control: VppControl, changes: Changes) -> None:
        macs = self.own_macs()
        for name, mac in ((self.west, macs.from_west), (self.east, macs.from_east)):
            for command in socket_commands(name, mac, self.options):
                control.configure(changes, command)
