"""VPP on its path: its interfaces or cards, its ports, what it needs on the node, and its command line."""

import secrets
from dataclasses import replace

from lossratio.dut.base import Tool
from lossratio.dut.changes import Changes
from lossratio.dut.linux.cores import CoreChoice, read_cores
from lossratio.dut.linux.interfaces import check_free
from lossratio.dut.linux.program_dut import BIFURCATED, ProgramDut, bound_driver, detach_afterwards
from lossratio.dut.vpp.clock import PolicerClock
from lossratio.dut.vpp.configuration import HOME_VARIABLE, VppOptions, vpp_problem, with_features
from lossratio.dut.vpp.control import LastCommand, VppControl, check_installed
from lossratio.dut.vpp.features.feature import Needs, Ports, both_ports
from lossratio.dut.vpp.other_programs import OtherPrograms, tools_of_others
from lossratio.dut.vpp.startup import Card, both_cards, hugepage_megabytes
from lossratio.dut.vpp.virtual_machine import MEGABYTES
from lossratio.errors import DutError, NotMeasuredHereError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop

_PLUGINS = {
    "driver: dpdk": "dpdk",
    "driver: rdma": "rdma",
    "sockets=af_xdp": "af_xdp",
    "vm=vpp": "dpdk",
}
"""The plugins that drive interfaces, by what needs them."""


class VppPath(ProgramDut[VppOptions]):
    """VPP as a part of a path; `Vpp` sets it up and observes it."""

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
        self._queues = self._workers = 1
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
        vpps = 1 + self.options.is_contained
        of_machine = MEGABYTES * (self.options.guest is not None)
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
        for address, driver in self.cards:
            if self.hop.vpp.driver == "rdma" and driver not in BIFURCATED:
                raise self.node.error(
                    f"VPP's driver rdma is for cards that the kernel keeps (mlx5_core), and PCI device {address} "
                    f"has the driver {driver}. Set 'vpp: {{driver: dpdk}}' in the topology file."
                )

            virtual = self.node.attempt("test", "-e", f"/sys/bus/pci/devices/{address}/physfn")
            if self.hop.vpp.driver == "avf" and virtual.exit_status:
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
                        f"{self.node.name}: {problem} Use a topology with that many DUTs, such as "
                        "local-3n."
                    )
                raise self.node.error(f"{problem} Set up the testbed with duts={needed}.")

        if self.uses_cards:
            by = f"driver: {self.hop.vpp.driver}"
        else:
            by = f"sockets={self.options.sockets}"

        driven = (by, f"vm={self.options.guest}")
        drivers = {user: Needs(plugins={_PLUGINS[user]: ""}) for user in driven if user in _PLUGINS}
        check_installed(self.node, self.program, self.options, drivers)
        self._others.check()
        ports = both_ports((self.west, self.east), ("", ""))
        if self.options.is_router:
            check_free(self.node, [port.routed(self.options.ip_version).network for port in ports])

    @property
    def is_addressed(self) -> bool:
        """Whether VPP is a router or an end of tunnels: frames must then be addressed to VPP."""
        return self.options.is_addressed

    @property
    def wakeful_time(self) -> float:
        """The time for which workers that sleep between frames still poll because of a command."""
        if self.polls:
            return 0.0
        return self._last_command.wakeful_time

    @property
    def _others(self) -> OtherPrograms:
        """What frames go through besides VPP."""
        return OtherPrograms(
            self.node, self.hop, self.options, self.program, self.uses_cards, self.polls
        )

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
        west, east = both_ports(self._vpp_names, (west_mac, east_mac))
        vpps = [dut for dut in self.chain if isinstance(dut, VppPath)]
        place = vpps.index(self)
        secret = vpps[0]._secret
        if self is not first:
            west = replace(west, other_end=vpps[place - 1].own_macs().from_east)
        if self is not last:
            east = replace(east, other_end=vpps[place + 1].own_macs().from_west)

        west, east = (
            replace(
                port, secret=secret, directory=directory, queues=self._queues, workers=self._workers
            )
            for port in (west, east)
        )
        return (
            replace(west, faces_dut=self is not first),
            replace(east, faces_dut=self is not last),
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
