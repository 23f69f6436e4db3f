"""DUTs on Linux nodes: set-up, verification, description and tear-down of a path between two interfaces."""

import logging
import signal
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from lossratio.dut.base import SIDES, DestinationMacs, Dut, OptionsT_co, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.interfaces import MADE, check_interfaces, has_link, is_up, read_links
from lossratio.dut.linux.nftables import check_unclaimed, take_claim
from lossratio.dut.linux.reports import describe_node, interface_facts, linux_telemetry, read_queues
from lossratio.dut.linux.state import SetUp, boot_id, check_unchanged, read_state
from lossratio.errors import DutError, LinkError, LossRatioError, NodeError
from lossratio.nodes import NOT_FOUND, CommandRunner, DutNode, reason
from lossratio.topology import Hop, Port

IP = Tool("ip", "iproute2", "-V")
BRIDGE = Tool("bridge", "iproute2", "-V")
NFT = Tool("nft", "nftables")
ETHTOOL = Tool("ethtool", "ethtool")
PYTHON = Tool("python3", "python3")
_WITHOUT_LIBRARY = "error while loading shared libraries"
"""The message of the dynamic linker, which exits with the same status as a shell that does not find a program."""
_ILLEGAL_INSTRUCTION = 128 + signal.SIGILL
"""Exit status of a shell whose program was ended because it used an instruction that the processor does not have."""


def check_tools(node: DutNode, tools: Sequence[Tool]) -> dict[str, str]:
    """Checks that programs are installed, and returns what each one says about its version, by program.

    Raises:
        DutError: If some are missing, lack a library, or do not run on the node's processor; the message says what to
            install.
    """
    answers = {tool: node.attempt(*tool.ask_version) for tool in tools}
    for tool, answer in answers.items():
        if _WITHOUT_LIBRARY in answer.stderr:
            raise node.error(
                f"{tool.program} is installed, but cannot be started: {reason(answer)}. "
                "Install the missing library there."
            )
        if answer.exit_status < 0 or answer.exit_status == _ILLEGAL_INSTRUCTION:
            raise node.error(
                f"{tool.program} is installed, but a signal ended it when it was started to print its version. "
                "It was probably built for another processor: install one that was built for the node's processor."
            )

    missing = [tool for tool, answer in answers.items() if answer.exit_status == NOT_FOUND]
    if missing:
        packages = " ".join(sorted({tool.package for tool in missing if tool.package}))
        install = f"Install it there: apt-get install {packages}." if packages else ""
        sentences = (
            f"lacks {', '.join(tool.program for tool in missing)}.",
            install,
            *(tool.how for tool in missing),
        )
        raise DutError(" ".join((node.name, *filter(None, sentences))))
    return {tool.program: answer.stdout.strip() for tool, answer in answers.items()}


def check_privileges(node: DutNode) -> None:
    """Checks that the session can change the node's network (CAP_NET_ADMIN), and that the kernel has nftables.

    Raises:
        DutError: If it cannot, or the kernel has no nftables.
    """
    result = node.attempt("nft", "-j", "list", "tables")
    if result.exit_status != 0:
        raise node.error(
            f"the network cannot be configured there (nft: {reason(result)}). It needs root or CAP_NET_ADMIN: log "
            "in as root, or set 'sudo: true' for this node in the topology file. It also needs a kernel with "
            "nf_tables."
        )


LINK_TIMEOUT = 10.0
"""Seconds within which an interface must have a link after it was brought up."""
_POLL = 0.05
_LOG = logging.getLogger(__name__)


class NodePath(Dut[OptionsT_co]):
    """The path of a DUT through a Linux node: its interfaces, and the programs that it needs there."""

    reflects: ClassVar[bool] = False
    """Whether it has only one interface, through which frames arrive and leave."""

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        super().__init__(session, hop, options)
        self.node = DutNode(session)
        self.west = self.port_name(hop.west)
        self.east = self.port_name(hop.east)
        # A PCI address has colons, which no interface may have in its name.
        self.stem = f"{MADE}{self.west[-10:].replace(':', '-')}"
        """Prefix of the names of interfaces that this DUT makes: 13 of the 15 characters that a name may have."""

    @property
    def is_addressed(self) -> bool:
        """Whether frames must be addressed to its own interfaces; otherwise, to those of the opposite neighbours."""
        return bool(self.options.is_router)

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """Its own addresses if frames are addressed to it, otherwise those of the opposite neighbours."""
        if self.is_addressed:
            return self.own_macs()
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

    def own_macs(self) -> DestinationMacs:
        """MAC addresses of its own interfaces."""
        links = read_links(self.node, self.west, self.east)
        return DestinationMacs(
            from_west=links[self.west]["address"], from_east=links[self.east]["address"]
        )

    def packets_of_kernel(self) -> dict[str, Any]:
        """The kernel's counters of its interfaces by side, as ``ip`` shows them (``rx``, ``tx``)."""
        links = read_links(self.node, self.west, self.east)
        return {
            side: links[name]["stats64"]
            for side, name in zip(SIDES, (self.west, self.east), strict=True)
        }

    def port_name(self, port: Port) -> str:
        """Name of the Linux interface of a port.

        Raises:
            DutError: If the topology file gives the port no name.
        """
        if port.interface.name is None:
            raise DutError(
                f"{self.kind} needs a Linux interface for {port}: give its 'name' in the topology file."
            )
        return port.interface.name

    @property
    def kernel_interfaces(self) -> tuple[str, ...]:
        """The path's interfaces that the kernel keeps while the DUT is set up."""
        return (self.west, self.east)

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """Names of the interfaces that `build` makes."""
        return ()

    @property
    def program(self) -> str:
        """The program of `software` on the node."""
        if self.software is None or not self.software.home:
            if self.software is None:
                return ""
            return self.software.program
        return f"{getattr(self.options, 'home', '/usr')}/{self.software.program}"

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """Programs that the kind needs with these options."""
        software: tuple[Tool, ...] = ()
        if self.software is not None:
            software = (replace(self.software, program=self.program),)

        return tuple(dict.fromkeys((*self.tools, IP, NFT, ETHTOOL, *software)))

    @property
    def interfaces(self) -> tuple[str, ...]:
        """All its interfaces that the kernel has."""
        return (*self.kernel_interfaces, *self.made_interfaces)

    def read_queues(self) -> list[dict[str, Any]]:
        """The counters of the interfaces' drivers; see `Dut.read_queues`."""
        return read_queues(self.node, self.kernel_interfaces)

    def quieten(self, changes: Changes) -> None:
        """Keeps the kernel from sending its own frames, and has the interfaces accept frames to any address."""
        links = read_links(self.node, *self.kernel_interfaces)
        for name in self.kernel_interfaces:
            # With IPv6, the kernel would send its own frames during a trial.
            changes.write(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1", optional=True)
            if "PROMISC" not in links[name]["flags"]:
                # Programs switch promiscuous mode on, and some of them do not switch it off again.
                changes.set_link(name, "promisc", "on", undo=("promisc", "off"))


class NodeDut(NodePath[OptionsT_co]):
    """A DUT on a Linux node.

    A kind implements `build`, `read_counters` and `settle_time`. If it differs from other kinds, it also overrides
    `is_addressed`, `port_name`, `kernel_interfaces`, `made_interfaces`, `check_kind`, `check_running`, `facts`,
    `program` and `telemetry`.
    """

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        super().__init__(session, hop, options)
        self.daemons: list[Daemon] = []
        """The programs that must run while it is set up."""
        self._changes: Changes | None = None
        self._present: SetUp | None = None
        self._is_checked = False
        self._versions: dict[str, str] = {}

    @abstractmethod
    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the path between the two interfaces, which are already up."""

    def check_ports(self) -> None:
        """Checks that the interfaces exist, and have no other use."""
        check_interfaces(self.node, (self.west, self.east))

    def check_kind(self) -> None:
        """Checks what else this kind needs."""
        return

    def check_running(self) -> None:
        """Checks that the programs of a DUT that is set up are running."""
        for daemon in self.daemons:
            daemon.check_alive()

    def facts(self) -> dict[str, Any]:
        """Further facts of this kind, for its description."""
        return {}

    def check(self) -> None:
        """Checks programs, privileges and interfaces. If this DUT is already set up, it is verified instead.

        Raises:
            DutError: If it cannot be set up, or is not as it was set up.
            NotMeasuredHereError: If the node lacks CPUs or cores that the options request.
            NodeError: If the node cannot be reached.
        """
        if self._present is not None:
            self.verify()
            return
        if self.west == self.east and not self.reflects:
            raise self.node.error(
                f"the path goes in and out through the same interface, {self.west}. Give the DUT two interfaces in "
                "the topology file."
            )
        self._versions = check_tools(self.node, self.tools_needed)
        check_privileges(self.node)
        check_unclaimed(self.node, (self.west, self.east))
        self.check_ports()
        self.check_kind()
        self._is_checked = True

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Sets up the path; see `Dut.set_up`.

        Raises:
            DutError: If it cannot be set up, or is set up for other neighbours. Changes until then are undone; the
                message says if that failed.
            LinkError: If a link does not come up, because of its other end or the cable.
            NodeError: If the node cannot be reached.
        """
        neighbours = (west_mac.lower(), east_mac.lower())
        if self._present is None:
            self.tear_down()
        # All DUTs are checked before the first one is set up.
        if not self._is_checked:
            self.check()
        self._is_checked = False
        if self._present is not None:
            if self._present.neighbours != neighbours:
                raise self.node.error(
                    f"the {self.kind} is set up for other neighbours. Tear it down first."
                )
            return

        changes = self._changes = Changes(self.node)
        try:
            links = read_links(self.node, *self.kernel_interfaces)
            take_claim(
                changes, self.node, self.kind, tuple(dict.fromkeys((self.west, self.east))), links
            )
            for name in self.kernel_interfaces:
                if not is_up(links[name]):
                    changes.set_link(name, "up", undo=("down",))

            self.build(changes, *neighbours)
            self._wait_for_links()
            names = tuple(dict.fromkeys((self.west, self.east, *self.interfaces)))
            state = read_state(self.node, names, changes.settings)
            self._present = SetUp(changes, neighbours, names, boot_id(self.node), state)
        except BaseException as cause:
            # The timeout of a test or an interrupt must not leave half a set-up behind.
            try:
                self.tear_down()
            except LossRatioError as left:
                # A lost connection says nothing about the DUT.
                kind = NodeError if isinstance(cause, NodeError) else DutError
                raise kind(f"{cause} Earlier changes could not be undone: {left}") from cause
            raise

    def depend_on_host_routes(self, interface: str, count: int) -> None:
        """Adds routes to single hosts, which came after the set-up, to the state that must not change."""
        state = self.present.state
        counts = {**state["host routes"], interface: state["host routes"].get(interface, 0) + count}
        self._present = replace(self.present, state={**state, "host routes": counts})

    def take_state(self) -> None:
        """From now on, the node must stay in its present state; call this after a restart."""
        state = read_state(self.node, self.present.interfaces, self.present.changes.settings)
        self._present = replace(self.present, state=state)

    def verify(self) -> None:
        """Checks that the state of the set-up has not changed."""
        check_unchanged(self.node, self.present)
        self.check_running()

    def describe(self) -> dict[str, Any]:
        """Configuration and facts: options, truth, commands, settings, rules, interfaces, kernel, CPUs, versions."""
        changes = self.present.changes
        links = read_links(self.node, *self.interfaces)
        # Record: the DUT as it stands in a result.
        return {
            "kind": self.kind,
            "node": self.node.name,
            "options": self.options.model_dump(mode="json"),
            "modelled_as": self.options.modelled_as(),
            "settle_time": self.settle_time,
            "recovery_time": self.recovery_time,
            "commands": list(changes.commands),
            "settings": dict(changes.settings),
            "interfaces": interface_facts(self.node, [links[name] for name in self.interfaces]),
            **describe_node(self.node, self._versions, self.kernel_interfaces),
            **self.facts(),
        }

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """Counts on the interfaces and in the kernel; see `Dut.telemetry`."""
        with linux_telemetry(self.node, self.kernel_interfaces) as report:
            yield report

    def tear_down(self) -> None:
        """Restores the earlier state; see `Dut.tear_down`.

        Raises:
            DutError: If a part of the state could not be restored. After a reboot of the node, there is nothing left to
                restore.
            NodeError: If the node cannot be reached. The next call continues where this one
                stopped.
        """
        changes = self._changes
        present = self._present
        self._present = None
        if changes is None:
            return
        if present is not None and boot_id(self.node) != present.boot_id:
            self._changes = None
            _LOG.warning(
                "%s has been rebooted since its %s was set up, so there is nothing to undo.",
                self.node.name,
                self.kind,
            )
            return

        try:
            changes.roll_back()
        except DutError:
            self._changes = None
            raise

        self._changes = None

    @property
    def present(self) -> SetUp:
        """The present set-up.

        Raises:
            DutError: If it is not set up.
        """
        if self._present is None:
            raise self.node.error(f"the {self.kind} is not set up.")
        return self._present

    def _wait_for_links(self) -> None:
        deadline = time.monotonic() + LINK_TIMEOUT
        while True:
            links = read_links(self.node)
            without = [
                name for name in self.interfaces if name not in links or not has_link(links[name])
            ]
            if not without:
                return
            if time.monotonic() > deadline:
                raise LinkError(
                    f"{self.node.name}: no link on {', '.join(without)} within {LINK_TIMEOUT:g} s. "
                    f"Bring up the other end of the link, and check the cable."
                )
            time.sleep(_POLL)
