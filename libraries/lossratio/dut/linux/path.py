"""DUTs made of the Linux kernel's own forwarding: what a bridge and a router have in common."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from lossratio.dut.base import EASTWARD, WESTWARD, Dut, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.linux.claim import check_unclaimed, table_name, take_claim
from lossratio.dut.linux.counters import read_linux_counters
from lossratio.dut.linux.facts import interface_facts, node_facts
from lossratio.dut.linux.interfaces import MADE, Link, check_interfaces, has_link, read_links
from lossratio.dut.linux.options import LinuxOptions
from lossratio.dut.linux.requirements import ETHTOOL, IP, NFT, Tool, check_privileges, check_tools
from lossratio.dut.linux.ruleset import Policer, Ruleset
from lossratio.dut.linux.state import LinuxState, boot_id, check_unchanged, read_state
from lossratio.dut.linux.steering import check_cpus, steer
from lossratio.dut.node import CommandRunner, DutNode
from lossratio.errors import DutError, LossRatioError
from lossratio.topology import Hop, Port

LINK_TIMEOUT = 10.0
"""Seconds that an interface may take to find its link after it was brought up."""

_POLL = 0.05
_NFT = ("nft", "-j", "-f", "-")
_SETTLE_TIME = 0.005
_STEERED_SETTLE_TIME = 0.02
"""Seconds: a CPU's backlog of 1000 frames (net.core.netdev_max_backlog) at 50,000 frames a second."""

OptionsT_co = TypeVar("OptionsT_co", bound=LinuxOptions, covariant=True)


@dataclass(frozen=True)
class _SetUp:
    changes: Changes
    neighbours: tuple[str, str]
    state: LinuxState


class LinuxDut(Dut[OptionsT_co]):
    """A path through the kernel of a Linux node, with an optional policer.

    A kind implements `configure` and `destination_macs`, and where it differs `entrances`, `queues`, `walked_rules`,
    `made_interfaces`, `check_kind` and `tools`.

    Attributes:
        node: Runs commands on the node.
        west: Name of the west interface.
        east: Name of the east interface.
        stem: Beginning of the names of interfaces that this DUT makes; 13 characters of the 15 that a name may have.
    """

    family: ClassVar[Literal["bridge", "inet"]]
    """Family of nftables whose forward hook its frames pass."""
    tools: ClassVar[tuple[Tool, ...]] = (IP, NFT, ETHTOOL)
    """Programs that it needs on the node."""

    def __init__(self, session: CommandRunner, hop: Hop, options: OptionsT_co) -> None:
        super().__init__(session, hop, options)
        self.node = DutNode(session)
        self.west = _interface_name(hop.west, self.kind)
        self.east = _interface_name(hop.east, self.kind)
        self.stem = f"{MADE}{self.west[-10:]}"
        self._changes: Changes | None = None
        self._present: _SetUp | None = None

    @abstractmethod
    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the path between the two interfaces, which are up already.

        Args:
            changes: Makes changes that can be undone; none is made without it.
            west_mac: MAC address of what is at the other end of the west link.
            east_mac: The same of the east link.

        Raises:
            DutError: If it cannot be done; what was done so far is undone then.
        """

    def check_kind(self) -> None:
        """Checks what this kind needs beyond what every Linux DUT does."""
        return

    @property
    def entrances(self) -> dict[str, str]:
        """By direction, the interface on which frames come in to the forward hook."""
        return {EASTWARD: self.west, WESTWARD: self.east}

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """Names of the interfaces that `configure` makes."""
        return ()

    @property
    def queues(self) -> dict[str, str]:
        """By direction, the interface that drops the frames for which a queue inside the DUT has no room."""
        return {}

    @property
    def walked_rules(self) -> int:
        """Number of nftables rules that each frame walks."""
        return 0

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay in flight: milliseconds, and more if they wait for another CPU."""
        return _STEERED_SETTLE_TIME if self.options.rps_cpus else _SETTLE_TIME

    @property
    def recovery_time(self) -> float:
        """Idle seconds until the policer's bucket is full again: burst over rate."""
        return self.options.recovery_time

    def check(self) -> None:
        """Checks programs, privileges and interfaces; where this DUT is set up already, that it still is."""
        if self._present is not None:
            self.verify()
            return
        if self.west == self.east:
            raise DutError(f"{self.node.name}: the path goes in and out through the same interface, {self.west}.")
        check_tools(self.node, self.tools)
        check_privileges(self.node)
        check_unclaimed(self.node, (self.west, self.east))
        check_interfaces(self.node, (self.west, self.east))
        check_cpus(self.node, self.options.rps_cpus)
        self.check_kind()

    def set_up(self, west_mac: str, east_mac: str) -> None:
        """Sets up the path; see `Dut.set_up`."""
        neighbours = (west_mac.lower(), east_mac.lower())
        if self._present is None:
            self.tear_down()
        self.check()
        if self._present is not None:
            if self._present.neighbours != neighbours:
                raise DutError(f"{self.node.name}: the {self.kind} is set up for other neighbours; tear it down first.")
            return
        changes = self._changes = Changes(self.node)
        try:
            self._make(changes, *neighbours)
            self._wait_for_links()
            self._present = _SetUp(changes, neighbours, read_state(self.node, self._interfaces))
        except BaseException as cause:
            self._undo_after(cause)
            raise

    def verify(self) -> None:
        """Checks that nothing that was set up has gone or changed."""
        check_unchanged(self.node, self._check_set_up().state)

    def describe(self) -> dict[str, Any]:
        """Configuration and facts: options, truth, commands, settings, rules, interfaces, kernel, CPUs, versions."""
        changes = self._check_set_up().changes
        links = read_links(self.node)
        return {
            "kind": self.kind,
            "node": self.node.name,
            "options": self.options.model_dump(mode="json"),
            "modelled_as": self.modelled_as(),
            "settle_time": self.settle_time,
            "recovery_time": self.recovery_time,
            "commands": list(changes.commands),
            "settings": {path: [each.before, each.during] for path, each in changes.settings.items()},
            "nftables": self._ruleset.without_walked_rules(self.node.json("nft", "-j", "list", "ruleset")),
            "interfaces": {name: interface_facts(self.node, links[name]) for name in self._interfaces},
            **node_facts(self.node, self.tools, (self.west, self.east)),
        }

    def read_counters(self) -> DutCounters:
        """Reads interface, policer, queue and softnet counters; softnet counts for all of the machine."""
        self._check_set_up()
        return read_linux_counters(self.node, self.west, self.east, self._ruleset, self.queues)

    def reset(self) -> None:
        """Fills the policer's bucket, and zeroes its counters."""
        self._check_set_up()
        if self._ruleset.policer:
            self.node.run(*_NFT, stdin=self._ruleset.renewal())

    def tear_down(self) -> None:
        """Brings back what was there before; see `Dut.tear_down`."""
        changes, present, self._present = self._changes, self._present, None
        if changes is None:
            return
        if present is not None and boot_id(self.node) != present.state.boot_id:
            self._changes = None
            raise DutError(f"{self.node.name} was rebooted since its {self.kind} was set up; nothing is left to undo.")
        try:
            changes.roll_back()
        except DutError:
            self._changes = None
            raise
        self._changes = None

    @property
    def _interfaces(self) -> tuple[str, ...]:
        return (self.west, self.east, *self.made_interfaces)

    @property
    def _ruleset(self) -> Ruleset:
        rate, burst = self.options.police, self.options.bucket
        policer = None if rate is None or burst is None else Policer(rate, burst)
        return Ruleset(self.family, table_name(self.west), self.entrances, policer, self.walked_rules)

    def _make(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        links = read_links(self.node)
        ports = {name: links[name] for name in (self.west, self.east)}
        take_claim(changes, self.node, self.kind, ports)
        for name, link in ports.items():
            if "UP" not in link["flags"]:
                set_link = ("ip", "link", "set", "dev", name)
                changes.run(*set_link, "up", undo=(*set_link, "down"))
        self.configure(changes, west_mac, east_mac)
        if self.options.rps_cpus:
            for name in ports:
                steer(changes, self.node, name, self.options.rps_cpus)
        if self._ruleset:
            changes.run(*_NFT, stdin=self._ruleset.creation(), undo=_NFT, undo_stdin=self._ruleset.deletion())
            for portion in self._ruleset.additions():
                changes.run(*_NFT, stdin=portion)

    def _wait_for_links(self) -> None:
        deadline = time.monotonic() + LINK_TIMEOUT
        while without := _without_link(read_links(self.node), self._interfaces):
            if time.monotonic() > deadline:
                raise DutError(
                    f"{self.node.name}: no link on {', '.join(without)} within {LINK_TIMEOUT:g} s. "
                    f"Is the other end up, and the cable in?"
                )
            time.sleep(_POLL)

    def _undo_after(self, cause: BaseException) -> None:
        try:
            self.tear_down()
        except LossRatioError as left:
            raise DutError(f"{cause} And what was done until then could not be undone: {left}") from cause

    def _check_set_up(self) -> _SetUp:
        if self._present is None:
            raise DutError(f"{self.node.name}: the {self.kind} is not set up.")
        return self._present


def _interface_name(port: Port, kind: str) -> str:
    if port.interface.name is None:
        raise DutError(f"{kind} needs a Linux interface for {port}: give its 'name' in the topology file.")
    return port.interface.name


def _without_link(links: Mapping[str, Link], interfaces: tuple[str, ...]) -> list[str]:
    return [name for name in interfaces if name not in links or not has_link(links[name])]
