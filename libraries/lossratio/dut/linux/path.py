"""DUTs made of the Linux kernel's own forwarding: what a bridge and a router have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, TypeVar

from lossratio.dut.base import EASTWARD, WESTWARD, DestinationMacs, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.linux.claim import table_name
from lossratio.dut.linux.counters import read_linux_counters
from lossratio.dut.linux.interfaces import existing_links
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.options import LinuxOptions
from lossratio.dut.linux.ruleset import Policer, Ruleset
from lossratio.dut.linux.steering import check_cpus, steer

_NFT = ("nft", "-j", "-f", "-")
_SETTLE_TIME = 0.005
_STEERED_SETTLE_TIME = 0.02
"""Seconds: a CPU's backlog of 1000 frames (net.core.netdev_max_backlog) at 50,000 frames a second."""

OptionsT_co = TypeVar("OptionsT_co", bound=LinuxOptions, covariant=True)


class LinuxDut(NodeDut[OptionsT_co]):
    """A path through the kernel of a Linux node, with an optional policer.

    A kind implements `configure` and `destination_macs`, and where it differs `entrances`, `queues`, `walked_rules`,
    and what a `NodeDut` may differ in.
    """

    family: ClassVar[Literal["bridge", "inet"]]
    """Family of nftables whose forward hook its frames pass."""

    @abstractmethod
    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the kernel forward between the two interfaces; see `NodeDut.build`."""

    @property
    def entrances(self) -> dict[str, str]:
        """By direction, the interface on which frames come in to the forward hook."""
        return {EASTWARD: self.west, WESTWARD: self.east}

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

    def check_kind(self) -> None:
        """Checks that the CPUs that frames are to be steered to are there."""
        check_cpus(self.node, self.options.rps_cpus)

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Configures the kernel, steers frames to CPUs and makes the nftables rules."""
        self.configure(changes, west_mac, east_mac)
        if self.options.rps_cpus:
            for name in (self.west, self.east):
                steer(changes, self.node, name, self.options.rps_cpus)
        if self.ruleset:
            changes.run(*_NFT, stdin=self.ruleset.creation(), undo=_NFT, undo_stdin=self.ruleset.deletion())
            for portion in self.ruleset.additions():
                changes.run(*_NFT, stdin=portion)

    def own_macs(self) -> DestinationMacs:
        """MAC addresses of its own interfaces."""
        links = existing_links(self.node, self.west, self.east)
        return DestinationMacs(from_west=links[self.west]["address"], from_east=links[self.east]["address"])

    def facts(self) -> dict[str, Any]:
        """The nftables rules, without those that are only there to be walked."""
        return {"nftables": self.ruleset.without_walked_rules(self.node.json("nft", "-j", "list", "ruleset"))}

    def read_counters(self) -> DutCounters:
        """Reads interface, policer, queue and softnet counters; softnet counts for all of the machine."""
        _ = self.present
        return read_linux_counters(self.node, self.west, self.east, self.ruleset, self.queues)

    def reset(self) -> None:
        """Fills the policer's bucket, and zeroes its counters."""
        _ = self.present
        if self.ruleset.policer:
            self.node.run(*_NFT, stdin=self.ruleset.renewal())

    @property
    def ruleset(self) -> Ruleset:
        """Its nftables rules."""
        rate, burst = self.options.police, self.options.bucket
        policer = None if rate is None or burst is None else Policer(rate, burst)
        return Ruleset(self.family, table_name(self.west), self.entrances, policer, self.walked_rules)
