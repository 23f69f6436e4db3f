"""DUTs made of the Linux kernel's own forwarding: the common part of bridge and router, and their options."""

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, Field

from lossratio.dut.base import EASTWARD, WESTWARD, DutCounters, DutOptions, OptionRule
from lossratio.dut.changes import Changes
from lossratio.dut.linux.interfaces import Link, read_links
from lossratio.dut.linux.nftables import NFT, WALK, Ruleset, table_name
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.reports import read_softnet
from lossratio.errors import DutError, NotMeasuredHereError
from lossratio.values import parse_frame_rate

BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds by default: with less, stalls of the sender would cause loss."""
_NANOSECONDS = 1_000_000_000
_MOST_CPUS = 8192
"""The largest number of CPUs that Linux supports on any architecture."""
_CPUS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def _whole_frame_rate(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_frame_rate(value)
    if not rate.is_integer() or rate > _NANOSECONDS:
        raise ValueError(
            f"{value!r} is not a rate that the kernel can police: whole frames per second, at most 1e9"
        )
    return int(rate)


def parse_cpus(value: Any) -> tuple[int, ...]:
    """Reads a list of CPU numbers in Linux's form, such as ``1`` or ``0,2-3``; a tuple is returned unchanged.

    Raises:
        ValueError: If it is not such a list, or a number is too large.
    """
    if isinstance(value, tuple):
        return value
    cpus: set[int] = set()
    for part in str(value).split(","):
        found = _CPUS.fullmatch(part.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not first <= last < _MOST_CPUS:
            raise ValueError(f"{value!r} are not CPU numbers; write them like '1' or '0,2-3'")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


class PolicedOptions(DutOptions):
    """The options of a DUT with a policer of frames: a token bucket for each direction."""

    requires: ClassVar[tuple[OptionRule, ...]] = (
        ("burst", "police", "burst is the size of a policer's bucket; also set police"),
    )
    police: Annotated[int | None, BeforeValidator(_whole_frame_rate)] = None
    """The frame rate to which a token bucket (in Open vSwitch: a meter) polices each direction, in whole frames per
    second, e.g. ``50 kfps``."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Frames that a full bucket of the policer holds. Default: 20 ms of its rate."""

    @property
    def policed_rate(self) -> float | None:
        """The exact rate of the policer in frames per second."""
        if self.police is None:
            return None
        return float(self.police)

    @property
    def bucket(self) -> int | None:
        """Frames that a full bucket of the policer holds."""
        if self.police is None:
            return None
        return self.burst or max(1, math.ceil(self.police * BURST_SECONDS))

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which an empty bucket is full again: burst over rate."""
        if self.policed_rate is None or self.bucket is None:
            return 0.0
        return self.bucket / self.policed_rate

    def modelled_as(self) -> dict[str, Any] | None:
        """A policer passes ``rate * T + burst`` frames in T seconds from a full bucket."""
        if self.police is None:
            return None
        return {"model": "policer", "rate": self.policed_rate, "burst": self.bucket}


class LinuxOptions(PolicedOptions):
    """The options of every DUT made of the Linux kernel's own forwarding."""

    is_kernel = True

    rps_cpus: Annotated[tuple[int, ...], BeforeValidator(parse_cpus)] = ()
    """CPUs that process arriving frames (receive packet steering), e.g. ``1`` or ``0,2-3``. Default: the node's own
    setting. This needs root on the machine, not only in a namespace."""

    @property
    def kernel_cpus(self) -> tuple[int, ...]:
        """See `DutOptions.kernel_cpus`."""
        return self.rps_cpus

    @property
    def policed_rate(self) -> float | None:
        """The exact rate of the policer in frames per second: the kernel counts whole nanoseconds per frame."""
        if self.police is None:
            return None
        return _NANOSECONDS / (_NANOSECONDS // self.police)


_ONLINE = "/sys/devices/system/cpu/online"


def cpu_mask(cpus: Sequence[int]) -> str:
    """CPU numbers as a mask for the kernel: hexadecimal, in groups of 32 bits."""
    return re.sub(r"(?<=.)(?=(.{8})+$)", ",", f"{sum(1 << cpu for cpu in cpus):x}")


def _count(link: Link, direction: str, name: str) -> int:
    return int(link["stats64"][direction][name])


OptionsT_co = TypeVar("OptionsT_co", bound=LinuxOptions, covariant=True)


class LinuxDut(NodeDut[OptionsT_co]):
    """A path through the kernel of a Linux node, with an optional policer.

    A kind implements `configure`. If it differs from other kinds, it also overrides `entrances`,
    `queues`, and the optional methods of `NodeDut`.
    """

    family: ClassVar[Literal["bridge", "inet"]]
    """The nftables family whose forward hook its frames pass."""

    @abstractmethod
    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the kernel forward between the two interfaces; see `NodeDut.build`."""

    @property
    def entrances(self) -> dict[str, str]:
        """By direction, the interface through which frames enter the forward hook."""
        return {EASTWARD: self.west, WESTWARD: self.east}

    @property
    def queues(self) -> dict[str, str]:
        """By direction, the interface that drops frames when a queue inside the DUT is full."""
        return {}

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay inside: milliseconds, and more if they wait for another CPU."""
        # A CPU's backlog of 1000 frames (net.core.netdev_max_backlog) at 50,000 frames a second takes 20 ms.
        if self.options.rps_cpus:
            return 0.02
        return 0.005

    def check_kind(self) -> None:
        """Checks that the CPUs of the option ``rps_cpus`` exist.

        Raises:
            NotMeasuredHereError: If not all of them are online on the node.
        """
        online = self.node.read_files(_ONLINE).get(_ONLINE, "0")
        missing = ", ".join(map(str, sorted(set(self.options.rps_cpus) - set(parse_cpus(online)))))
        if missing:
            raise NotMeasuredHereError(
                f"{self.node.name} has no CPU {missing} for rps_cpus: choose from those that are online, {online}."
            )

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Configures the kernel, steers frames to CPUs and makes the nftables rules."""
        self.configure(changes, west_mac, east_mac)
        for name in (self.west, self.east) if self.options.rps_cpus else ():
            self._steer(changes, name)
        if self.ruleset:
            changes.run(
                *NFT, stdin=self.ruleset.creation(), undo=NFT, undo_stdin=self.ruleset.deletion()
            )
            for portion in self.ruleset.additions():
                changes.run(*NFT, stdin=portion)

    def _steer(self, changes: Changes, interface: str) -> None:
        """Passes the frames that arrive on an interface to other CPUs (receive packet steering, RPS)."""
        files = self.node.read_files("rps_cpus", under=f"/sys/class/net/{interface}/queues")
        where = self.node.name
        if not files:
            raise DutError(
                f"{where}: interface {interface} has no queue for which rps_cpus can be set. Leave out rps_cpus."
            )
        for path in sorted(files):
            try:
                changes.write(path, cpu_mask(self.options.rps_cpus))
            except DutError as cause:
                problem = (
                    f"{cause} Only root on the machine itself may steer frames. Leave out rps_cpus."
                )
                raise DutError(problem) from cause

    def facts(self) -> dict[str, Any]:
        """The nftables rules, without the rules that only take time."""
        listing = self.node.json("nft", "-j", "list", "ruleset")
        walked = (self.ruleset.table, WALK)
        rules = ((entry, entry.get("rule", {})) for entry in listing["nftables"])
        return {
            "nftables": [
                entry for entry, rule in rules if (rule.get("table"), rule.get("chain")) != walked
            ]
        }

    def read_counters(self) -> DutCounters:
        """Reads interface, policer, queue and softnet counters; softnet counters are for the whole machine."""
        _ = self.present
        links = read_links(self.node, self.west, self.east, *self.queues.values())
        sides = {"west": links[self.west], "east": links[self.east]}
        by_cpu = read_softnet(self.node).values()
        listing = self.node.json("nft", "-j", "list", "counters")["nftables"]
        counters = [entry["counter"] for entry in listing if "counter" in entry]
        ours = {
            one["name"]: int(one["packets"])
            for one in counters
            if one["table"] == self.ruleset.table
        }

        dropped = {
            place: self.node.find("the counter", name, ours)
            for place, name in self.ruleset.counters.items()
        }
        for direction, name in self.queues.items():
            dropped[f"queue {direction}"] = _count(links[name], "tx", "dropped")
        for side, link in sides.items():
            dropped[f"{side} interface, going out"] = _count(link, "tx", "dropped")

        details = {
            f"{side} interface, rx dropped": _count(link, "rx", "dropped")
            for side, link in sides.items()
        }
        for what in ("dropped", "time_squeeze"):
            details[f"softnet {what}"] = sum(counts[what] for counts in by_cpu)
        if self.connections is not None:
            details.update(self.connections.counters())

        return DutCounters(
            received={side: _count(link, "rx", "packets") for side, link in sides.items()},
            transmitted={side: _count(link, "tx", "packets") for side, link in sides.items()},
            dropped=dropped,
            details=details,
        )

    def reset(self) -> None:
        """Fills the buckets of policers and limits, and sets their counters to zero."""
        _ = self.present
        if self.ruleset.policer or self.ruleset.connection_rules:
            self.node.run(*NFT, stdin=self.ruleset.renewal())

    @property
    def ruleset(self) -> Ruleset:
        """Its nftables rules."""
        rate, burst = self.options.police, self.options.bucket
        policer = None if rate is None or burst is None else (rate, burst)
        return Ruleset(
            self.family, table_name(self.west), self.entrances, policer, self.options.filters
        )
