"""What Open vSwitch is configured with: ports, OpenFlow rules and meters, from a suite's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from pydantic import Field, model_validator

from lossratio.dut.base import EASTWARD, WESTWARD
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.options import PolicedOptions
from lossratio.dut.linux.program_dut import ProgramOptions
from lossratio.topology import EAST, WEST

METERS: Mapping[str, int] = MappingProxyType({EASTWARD: 1, WESTWARD: 2})
"""Numbers of the meters, by direction."""

_UNUSED = 0x02FF00 << 24
"""The first of the MAC addresses that no test traffic has."""


class OvsForwarding(str, Enum):
    """How Open vSwitch decides where frames go."""

    LEARNING = "learning"
    """As a switch that learns addresses (the action NORMAL)."""
    OPENFLOW = "openflow"
    """By OpenFlow rules."""


@dataclass(frozen=True)
class CardPort:
    """A port on a card that DPDK polls.

    Attributes:
        address: Its PCI address.
        queues: Its receive queues.
    """

    address: str
    queues: int


class OvsOptions(ProgramOptions, PolicedOptions):
    """What Open vSwitch can be asked for."""

    forwarding: OvsForwarding = OvsForwarding.OPENFLOW
    """``openflow`` (rules) or ``learning`` (a switch that learns addresses)."""
    rules: int = Field(default=1, ge=1, le=60_000)
    """OpenFlow rules of each direction. With more than one, each is for one IPv4 destination: the first so many hosts
    of the other side's network."""

    @model_validator(mode="after")
    def _rules_are_openflow(self) -> OvsOptions:
        if self.forwarding is OvsForwarding.LEARNING and (self.rules > 1 or self.police is not None):
            raise ValueError("rules and police are OpenFlow's; they do not go with forwarding=learning")
        return self


def bridge_arguments(bridge: str, ports: Sequence[str], cards: Sequence[CardPort]) -> Iterator[str]:
    """Arguments of ovs-vsctl that make the bridge and its two ports.

    Args:
        bridge: Name of the bridge.
        ports: Names of the ports, west and east; of interfaces of the kernel where there are no cards.
        cards: The cards, west and east; none: the ports are interfaces of the kernel.
    """
    yield from ("add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "fail_mode=secure")
    yield from ("protocols=OpenFlow13", "other-config:disable-in-band=true")
    for index, port in enumerate(ports):
        yield from ("--", "add-port", bridge, port, "--", "set", "interface", port, f"ofport_request={index + 1}")
        if cards:
            yield from ("type=dpdk", f"options:dpdk-devargs={cards[index].address}")
            yield f"options:n_rxq={cards[index].queues}"


def dpdk_settings(cores: CoreChoice) -> tuple[str, ...]:
    """Settings of a switch that polls cards by DPDK on these CPUs."""
    polling = hex(sum(1 << cpu for cpu in cores.workers))
    return (
        "other_config:dpdk-init=true",
        f"other_config:dpdk-lcore-mask={hex(1 << cores.main)}",
        f"other_config:pmd-cpu-mask={polling}",
        "other_config:dpdk-extra=--file-prefix=lossratio-ovs",
    )


def meter_numbers(options: OvsOptions) -> tuple[int, ...]:
    """Numbers of the meters that there are to be."""
    return tuple(METERS.values()) if options.police is not None else ()


def meter(number: int, options: OvsOptions) -> str:
    """A meter that polices frames, as ovs-ofctl reads it."""
    band = f"band=type=drop,rate={options.police},burst_size={options.bucket}"
    return f"meter={number},pktps,burst,stats,{band}"


def forwarding_rules(options: OvsOptions) -> str:
    """The rules of both directions, one on each line."""
    ways = ((EASTWARD, 1, 2, EAST), (WESTWARD, 2, 1, WEST))
    lines: list[str] = []
    for direction, entry, leaving, side in ways:
        limit = f"meter:{METERS[direction]}," if options.police is not None else ""
        actions = f"actions={limit}output:{leaving}"
        if options.rules == 1:
            lines.append(f"priority=10,in_port={entry},{actions}")
        else:
            hosts = (side.ipv4[number] for number in range(1, options.rules + 1))
            lines += (f"priority=10,ip,in_port={entry},nw_dst={host},{actions}" for host in hosts)
    return "".join(f"{line}\n" for line in lines)


def unused_rules(count: int) -> str:
    """So many rules for MAC addresses that no test traffic has, one on each line."""
    return "".join(f"priority=5,dl_dst={_mac(_UNUSED + number)},actions=drop\n" for number in range(count))


def _mac(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")
