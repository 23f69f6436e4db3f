"""DUTs that are programs on a Linux node: on interfaces of the kernel, or on cards taken from the kernel."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from lossratio.dut.base import DestinationMacs, DutOptions
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory
from lossratio.dut.linux.cores import LSCPU, CoreChoice, choose_cores, numa_node_of, read_cores
from lossratio.dut.linux.interfaces import check_interfaces, existing_links
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.pci import bind, card_driver, check_hugepages, check_pci, pci_facts, pci_interfaces
from lossratio.dut.linux.requirements import Tool
from lossratio.errors import DutError
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop, Port


class ProgramOptions(DutOptions):
    """The options of every DUT that is a program."""

    cores: int = Field(default=1, ge=1, le=64)
    """Physical cores that forward, each with all of its hardware threads."""
    queues: int | None = Field(default=None, ge=1, le=64)
    """Receive queues of each interface; where missing, one for each hardware thread that forwards if the program polls
    cards, and one on interfaces of the kernel."""


OptionsT_co = TypeVar("OptionsT_co", bound=ProgramOptions, covariant=True)


class ProgramDut(NodeDut[OptionsT_co]):
    """A DUT that is a program on the node.

    Where the topology file gives an interface's ``pci_address``, and its ``driver`` or the node's ``uio_driver`` (or no
    ``name``), the card is taken from the kernel and given back; otherwise the program gets the kernel's interface by a
    packet socket. A kind implements `launch`, and the methods that `NodeDut` names.
    """

    hugepage_megabytes: ClassVar[int] = 1024
    """Megabytes of hugepages that it needs for cards."""

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        super().__init__(session, hop, options)
        self.daemons: list[Daemon] = []
        """The programs that must run while it is set up."""

    @abstractmethod
    def launch(self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str) -> list[Daemon]:
        """Starts and configures the program.

        Args:
            changes: Makes all changes, so that they can be undone.
            directory: The program's directory on the node, for all its files.
            cores: The CPUs that it may use.
            west_mac: MAC address of the west neighbour.
            east_mac: MAC address of the east neighbour.

        Returns:
            The programs that must run until the tear-down.
        """

    @property
    def uses_cards(self) -> bool:
        """Whether it takes cards from the kernel.

        Raises:
            DutError: If the topology file makes one interface a card, and the other one an interface of the kernel.
        """
        west, east = (self._is_card(port) for port in (self.hop.west, self.hop.east))
        if west != east:
            raise DutError(
                f"{self.kind} needs both interfaces of {self.hop.node_name} from the kernel (give a 'name' and no "
                f"'driver' in the topology file), or both as cards (give 'pci_address' and 'driver')."
            )
        return west

    def _is_card(self, port: Port) -> bool:
        interface = port.interface
        if interface.driver is not None or interface.name is None:
            return True
        return self.hop.uio_driver is not None and interface.pci_address is not None

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """Its tools, and the program that lists the CPUs."""
        return (*self.tools, LSCPU)

    @property
    def kernel_interfaces(self) -> tuple[str, ...]:
        """Both interfaces, or none where cards are taken from the kernel."""
        return () if self.uses_cards else (self.west, self.east)

    def port_name(self, port: Port) -> str:
        """Name of the Linux interface of a port, or the PCI address of its card."""
        if not self.uses_cards:
            return super().port_name(port)
        if port.interface.pci_address is None:
            raise DutError(f"{self.kind} needs the 'pci_address' of {port} in the topology file.")
        return port.interface.pci_address

    def check_ports(self) -> None:
        """Checks the interfaces; with cards, their drivers and the hugepages."""
        if not self.uses_cards:
            check_interfaces(self.node, (self.west, self.east))
            return
        for address, driver in self._cards():
            check_pci(self.node, address, driver)
        check_hugepages(self.node, self.hugepage_megabytes)

    def check_kind(self) -> None:
        """Checks that there are enough cores."""
        self._choose_cores()

    def check_running(self) -> None:
        """Checks that its programs run."""
        for daemon in self.daemons:
            daemon.check_alive()

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Takes the cards, keeps the kernel quiet on its interfaces, and starts the program."""
        self.daemons = []
        links = existing_links(self.node, *self.kernel_interfaces)
        for name in self.kernel_interfaces:
            # With IPv6 the kernel would send frames of its own during a trial.
            changes.write(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1", optional=True)
            if "PROMISC" not in links[name]["flags"]:
                # Programs switch it on, and some do not switch it off again.
                set_link = ("ip", "link", "set", "dev", name, "promisc")
                changes.run(*set_link, "on", undo=(*set_link, "off"))
        cores = self._choose_cores()
        directory = make_directory(changes, self.kind)
        if self.uses_cards:
            for address, driver in self._cards():
                bind(changes, self.node, address, driver)
        self.daemons = self.launch(changes, directory, cores, west_mac, east_mac)

    def facts(self) -> dict[str, Any]:
        """The CPUs, and the cards."""
        cards = {address: pci_facts(self.node, address) for address, _ in self._cards()} if self.uses_cards else {}
        cores = self._choose_cores()
        return {"cores": {**asdict(cores), "workers": list(cores.workers)}, "cards": cards}

    def own_macs(self) -> DestinationMacs:
        """MAC addresses of its own interfaces.

        Raises:
            DutError: If an address is unknown: that of a card with another driver, and without ``mac_address``.
        """
        return DestinationMacs(from_west=self._mac(self.hop.west), from_east=self._mac(self.hop.east))

    def _mac(self, port: Port) -> str:
        if port.interface.mac_address is not None:
            return port.interface.mac_address.lower()
        name = self.port_name(port)
        if self.uses_cards:
            names = pci_interfaces(self.node, name)
            if not names:
                raise DutError(
                    f"{port}: give its 'mac_address' in the topology file; the kernel does not have the card."
                )
            name = names[0]
        return str(existing_links(self.node, name)[name]["address"])

    def _cards(self) -> list[tuple[str, str]]:
        """PCI address and driver of each card."""
        ports = (self.hop.west, self.hop.east)
        return [(self.port_name(port), card_driver(port.interface.driver, self.hop.uio_driver)) for port in ports]

    def _choose_cores(self) -> CoreChoice:
        port = self.hop.west.interface
        near = numa_node_of(self.node, name=port.name, pci_address=port.pci_address if self.uses_cards else None)
        return choose_cores(read_cores(self.node), self.options.cores, near, where=self.node.name)
