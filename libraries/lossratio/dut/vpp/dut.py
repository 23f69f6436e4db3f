"""FD.io VPP between two interfaces, controlled by its command line: a cross-connect, bridge, router or tunnel end."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from lossratio.dut.base import DutCounters, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.cores import CoreChoice, read_cores
from lossratio.dut.linux.interfaces import check_free, is_up, read_links
from lossratio.dut.linux.program_dut import (
    BIFURCATED,
    ProgramDut,
    bound_driver,
    detach_afterwards,
    pci_interfaces,
)
from lossratio.dut.vpp import reports
from lossratio.dut.vpp.clock import PolicerClock, read_clock
from lossratio.dut.vpp.configuration import (
    HOME_VARIABLE,
    VppOptions,
    card_commands,
    placement_commands,
    socket_commands,
    vpp_problem,
    with_features,
)
from lossratio.dut.vpp.control import LastCommand, VppControl, check_installed
from lossratio.dut.vpp.counters import read_counters, unfetched_frames
from lossratio.dut.vpp.features.feature import Command, Needs, Ports, both_ports
from lossratio.dut.vpp.features.nat import Sessions
from lossratio.dut.vpp.features.policer import policer_name
from lossratio.dut.vpp.other_programs import OtherPrograms, hugepages_of_machine, tools_of_others
from lossratio.dut.vpp.startup import (
    Card,
    both_cards,
    hugepage_megabytes,
    lines_for_iommu,
    startup_configuration,
    write_startup,
)
from lossratio.errors import DutError, NotMeasuredHereError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop

_STARTS = 5
"""The maximum number of starts of VPP until the clock of its policers is right."""
_PRIORITY = 5
"""VPP's priority if its workers sleep: above ordinary programs, and below senders, which may share its CPUs."""
_RING_SECONDS = 0.16
"""Seconds of traffic that a packet socket's ring holds at most: it has 160 blocks, and the kernel closes a block 1 ms
after the block's first frame."""
_PLUGINS = {"driver: dpdk": "dpdk", "driver: rdma": "rdma", "sockets=af_xdp": "af_xdp"}
"""The plugins that drive interfaces, by what needs them."""
_SHOWN_ON_TRIALS = ("show runtime", "show errors", "show interface", "show hardware-interfaces")


class Vpp(ProgramDut[VppOptions]):
    """FD.io VPP, with its own files."""

    kind = "vpp"
    options_type = VppOptions
    software = Tool("bin/vpp", "vpp vpp-plugin-core", title="FD.io VPP", home=HOME_VARIABLE)
    places_queues = True
    # The ring of a packet socket holds tens of thousands of frames.
    socket_settle_time = 0.5

    def __init__(self, session: CommandRunner, hop: Hop, options: VppOptions) -> None:
        super().__init__(session, hop, options)
        self._clock: PolicerClock | None = None
        self._last_command = LastCommand()
        self._starts = 0
        self._verified: dict[str, str] = {}
        self._secret = secrets.token_bytes(32)

    @classmethod
    def all_options(cls) -> type[VppOptions]:
        """Its options, with those of all features."""
        return with_features(cls.options_type)

    @property
    def cards(self) -> list[tuple[str, str]]:
        """PCI address and driver of each card; with rdma, the kernel keeps both."""
        cards = super().cards
        if self.hop.vpp.driver != "rdma":
            return cards
        return [(address, bound_driver(self.node, address) or driver) for address, driver in cards]

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """VPP's tools, and those of the programs besides VPP."""
        return (*super().tools_needed, *tools_of_others(self.options))

    @property
    def hugepages_needed(self) -> int:
        """Megabytes of hugepages for the buffers of cards, and for heaps in hugepages."""
        numa_nodes = {core.numa_node for core in read_cores(self.node)}
        needed = hugepage_megabytes(self.hop.vpp, self._choose_cores(), len(numa_nodes))
        vpps = 2 if self.options.is_contained else 1
        of_machine = hugepages_of_machine(self.options)
        return vpps * max(super().hugepages_needed, needed) + of_machine

    @property
    def polls(self) -> bool:
        """Whether its workers poll continuously; with packet sockets, they sleep until frames come."""
        return self.uses_cards or self.options.uses_af_xdp

    def check_ports(self) -> None:
        """Checks the interfaces; with cards, also that they work with VPP's driver.

        Raises:
            DutError: If a card does not work with the driver, or an interface cannot be used.
        """
        problem = vpp_problem(self.hop)
        if problem is not None:
            raise DutError(f"{problem} in the topology file.")

        super().check_ports()
        if self.options.uses_af_xdp and self.uses_cards:
            detach_afterwards(Changes(self.node), self.node, ())
        for address, driver in self.cards if self.uses_cards else ():
            if self.hop.vpp.driver == "rdma" and driver not in BIFURCATED:
                raise self.node.error(
                    f"VPP's driver rdma is for cards that the kernel keeps (mlx5_core), and PCI device {address} "
                    f"has the driver {driver}. Set 'vpp: {{driver: dpdk}}' in the topology file."
                )

            virtual = (
                self.node.attempt(
                    "test", "-e", f"/sys/bus/pci/devices/{address}/physfn"
                ).exit_status
                == 0
            )
            if self.hop.vpp.driver == "avf" and not virtual:
                raise self.node.error(
                    f"VPP's driver avf is for virtual functions, but PCI device {address} is not one. "
                    f"Make one there (echo 1 > /sys/bus/pci/devices/{address}/sriov_numvfs; ip link set dev NAME vf 0 "
                    f"mac MAC spoofchk off trust on), and give its PCI and MAC address in the topology file."
                )

    def check_kind(self) -> None:
        """Checks that there are enough CPUs, that VPP has what its features need, and that its addresses are free.

        Raises:
            DutError: If VPP lacks something, an address is taken, or a feature needs fewer DUTs.
            NotMeasuredHereError: If the testbed has too few CPUs, or too few DUTs for a feature.
        """
        super().check_kind()
        for feature in self.options.features:
            needed = feature.needs.duts
            there = len(self.chain)
            if needed not in (0, there):
                (option, *_) = feature.given(self.options)
                problem = f"{option} needs a path through {needed} DUTs, but this one goes through {there}."
                if needed > there:
                    raise NotMeasuredHereError(
                        f"{self.node.name}: {problem} Use a topology with as many, such as local-3n."
                    )
                raise self.node.error(f"{problem} Set up the testbed with duts={needed}.")

        if self.uses_cards:
            by = f"driver: {self.hop.vpp.driver}"
        else:
            by = f"sockets={self.options.sockets}"

        plugins = {plugin: "" for plugin in [_PLUGINS.get(by)] if plugin is not None}
        check_installed(self.node, self.program, self.options, {by: Needs(plugins=plugins)})
        self._others.check()
        ports = both_ports((self.west, self.east), ("", ""))
        if self.options.is_router:
            check_free(self.node, [port.routed(self.options.ip_version).network for port in ports])

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Starts VPP, and restarts it if the clock of its policers is wrong: another start may be luckier."""
        super().build(changes, west_mac, east_mac)
        self._starts = 1
        while True:
            try:
                self._check_clock()
            except DutError:
                if self._starts == _STARTS:
                    raise
                self._starts += 1
                self.start_anew(changes, west_mac, east_mac)
            else:
                return

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
        lines = [
            line
            for feature in options.features
            for line in (*feature.plugin_lines(), *feature.startup(options))
        ]
        lines += lines_for_iommu(self.node, self.hop.vpp, cards)
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

    @property
    def _others(self) -> OtherPrograms:
        """What frames go through besides VPP."""
        return OtherPrograms(
            self.node, self.hop, self.options, self.program, self.uses_cards, self.polls
        )

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

    @property
    def is_addressed(self) -> bool:
        """Whether VPP is a router or an end of tunnels: frames must then be addressed to VPP."""
        return self.options.is_addressed

    def facts(self) -> dict[str, Any]:
        """Version, start-up configuration, threads, placement and forwarding, as VPP reports them."""
        control = self._control
        interfaces = ("show interface address", "show interface rx-placement", "show mode")
        shown = ("show version verbose", "show threads", *interfaces)
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
            "shown": {command: control.lines(command) for command in shown},
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
    def hold_time(self) -> float | None:
        """The time that the ring of a packet socket holds."""
        if self.uses_cards or self.options.uses_af_xdp:
            return None
        return _RING_SECONDS

    @property
    def wakeful_time(self) -> float:
        """The time for which workers that sleep between frames still poll because of a command."""
        if self.polls:
            return 0.0
        return self._last_command.wakeful_time

    def unfetched_frames(self) -> Mapping[str, int]:
        """The kernel's counts of frames, without those that VPP has received."""
        return unfetched_frames(self._control, self._vpp_names, self.packets_of_kernel())

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
        features = self.options.features
        for command in (
            *_SHOWN_ON_TRIALS,
            *(command for feature in features for command in feature.needs.shows),
        ):
            report[command] = control.lines(command)

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

    @property
    def _control(self) -> VppControl:
        return self._control_in(self.running.directory)

    def _control_in(self, directory: str) -> VppControl:
        return VppControl(self.node, self.options.home, directory, self._last_command)

    @property
    def _links(self) -> Ports:
        return self._links_between(*self.present.neighbours, self.running.directory)

    def _links_between(self, west_mac: str, east_mac: str, directory: str) -> Ports:
        first = self.chain[0]
        last = self.chain[-1]
        secret = first._secret if isinstance(first, Vpp) else b""
        west, east = both_ports(self._vpp_names, (west_mac, east_mac))
        vpps = [dut for dut in self.chain if isinstance(dut, Vpp)]
        place = vpps.index(self)
        if self is not first:
            west = replace(west, other_end=vpps[place - 1].own_macs().from_east)
        if self is not last:
            east = replace(east, other_end=vpps[place + 1].own_macs().from_west)

        return (
            replace(west, faces_dut=self is not first, secret=secret, directory=directory),
            replace(east, faces_dut=self is not last, secret=secret, directory=directory),
        )

    @property
    def _ports(self) -> Ports:
        return self.options.inner_ports(*self._links)

    @property
    def _vpp_names(self) -> tuple[str, str]:
        if self.uses_cards:
            return ("west", "east")
        return (f"host-{self.west}", f"host-{self.east}")

    def _vpp_cards(self, cores: CoreChoice) -> tuple[Card, ...]:
        if not self.uses_cards:
            return ()
        options = self.options
        return both_cards(
            (self.west, self.east), cores, queues=options.queues, descriptors=options.frame_queue
        )

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
