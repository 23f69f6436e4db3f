"""What frames go through besides VPP: programs, a second VPP in a container, or a virtual machine."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lossratio.dut.base import Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory
from lossratio.dut.dpdk import are_linked, with_telemetry
from lossratio.dut.linux.cores import CoreChoice, cores_of_path
from lossratio.dut.linux.node_dut import PYTHON
from lossratio.dut.vpp.configuration import VppOptions
from lossratio.dut.vpp.control import VppControl
from lossratio.dut.vpp.features.feature import Ports, Shown
from lossratio.dut.vpp.features.process import CONNECTED, SLEEPING, Container
from lossratio.dut.vpp.features.steps import commands, shown_by
from lossratio.dut.vpp.startup import startup_configuration, write_startup
from lossratio.dut.vpp.virtual_machine import QEMU, VirtualMachine
from lossratio.errors import NotMeasuredHereError
from lossratio.nodes import DutNode
from lossratio.topology import Hop

PROCESS = Tool("dpdk-testpmd", "dpdk-dev", None, "testpmd of DPDK")
"""The program that frames go through in place of a container or a virtual machine."""
_UNSHARE = Tool("unshare", "util-linux")
_CPIO = Tool("cpio", "cpio")
"""Writes the initial file system of a virtual machine."""
_CONTAINER = ("unshare", "--mount", "--net", "--ipc", "--uts")
"""Runs a program in its own namespaces, which end with it."""


def tools_of_others(options: VppOptions) -> Iterator[Tool]:
    """The tools that the programs besides VPP need."""
    # Table: tools, and whether they are needed.
    needed: Mapping[Tool, bool] = {
        PROCESS: options.has_testpmd or options.guest == "testpmd",
        PYTHON: options.has_testpmd,
        QEMU: options.guest is not None,
        _CPIO: options.guest is not None,
        _UNSHARE: options.is_contained,
    }
    return (tool for tool, is_needed in needed.items() if is_needed)


@dataclass(frozen=True)
class OtherPrograms:
    """The programs that frames go through besides a VPP, as its options ask for them."""

    node: DutNode
    """The node of the VPP."""
    hop: Hop
    """The VPP's part of the path."""
    options: VppOptions
    """The VPP's options."""
    program: str
    """Path of VPP on the node."""
    uses_cards: bool
    """Whether VPP has cards, and therefore hugepages."""
    polls: bool
    """Whether VPP's workers poll: other programs must then have CPUs of their own."""

    def check(self) -> None:
        """Checks that the node can run the virtual machine, if the options ask for one.

        Raises:
            DutError: If it cannot.
        """
        if self.options.guest is not None:
            self._machine("", 1).check()

    def start(
        self, changes: Changes, control: VppControl, cores: CoreChoice, links: Ports
    ) -> list[Daemon]:
        """Starts them.

        Args:
            changes: What has been changed on the node.
            control: The running VPP.
            cores: VPP's CPUs.
            links: VPP's ports.

        Raises:
            DutError: If one of them does not start.
            NotMeasuredHereError: If there are too few CPUs.
        """
        daemons = list(self._start_programs(changes, control.directory, cores))
        if self.options.is_contained:
            daemons.append(self._start_container(changes, control, cores, links))
        if self.options.guest is not None:
            daemons.append(self._start_machine(changes, control, cores))
        return daemons

    def _start_programs(
        self, changes: Changes, directory: str, cores: CoreChoice
    ) -> Iterator[Daemon]:
        """Starts programs that belong to features, on their own CPUs if there are enough."""
        for arguments in self.options.programs(directory):
            cores = self._cores_beside(cores, 1)
            threads = f"0@{cores.main},1@{cores.workers[0]}"
            command = (PROCESS.program, "--lcores", threads, *arguments.split())
            daemon = with_telemetry(self.node, directory, "testpmd", command)
            daemon.start(changes, lambda: are_linked(self.node, directory))
            yield daemon

    def _start_container(
        self, changes: Changes, control: VppControl, cores: CoreChoice, links: Ports
    ) -> Daemon:
        """Starts a second VPP in a container beside this one, and configures it."""
        directory = make_directory(changes, "vpp")
        beside = self._cores_beside(cores, self.options.cores)
        text = startup_configuration(
            directory, beside, (), has_hugepages=self.uses_cards, lines=Container.plugin_lines()
        )
        configuration = write_startup(changes, directory, text)

        command = (*_CONTAINER, self.program, "-c", configuration)
        daemon = Daemon(self.node, directory, "vpp-container", command)
        second = VppControl(self.node, self.options.home, directory, control.last)
        daemon.start(changes, second.answers)
        for line in self.options.commands_of("contained", links):
            second.configure(changes, line)

        second.check(list(self._connected()))
        for line in commands(SLEEPING, options=self.options, west=links[0]):
            second.configure(changes, line)
        return daemon

    def _start_machine(self, changes: Changes, control: VppControl, cores: CoreChoice) -> Daemon:
        """Starts a virtual machine, and waits until both of its cards are connected to VPP."""
        beside = self._cores_beside(cores, self.options.cores)
        links = list(self._connected())
        return self._machine(control.directory, len(beside.workers)).start(
            changes, beside, lambda: all(map(control.shows, links))
        )

    def _connected(self) -> Iterator[Shown]:
        """What shows that a program is at the other ends of both interfaces to it."""
        return shown_by(CONNECTED, options=self.options)

    def _machine(self, directory: str, workers: int) -> VirtualMachine:
        return VirtualMachine(
            self.node,
            self.options.guest or "testpmd",
            self.options.home,
            directory,
            workers,
            kernel=self.hop.vpp.vm_kernel,
            is_emulated=self.hop.vpp.vm_emulated,
            has_hugepages=self.uses_cards,
        )

    def _cores_beside(self, cores: CoreChoice, count: int) -> CoreChoice:
        """CPUs for another program; if there are enough, they are not VPP's."""
        try:
            taken = frozenset((cores.main, *cores.workers))
            return cores_of_path(self.node, self.hop, count, halves=False, taken=taken)
        except NotMeasuredHereError:
            if self.polls:
                raise
        return cores
