"""VPP's configuration: a suite's options, and the commands that make VPP forward."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from lossratio.dut.linux.addressing import EAST_VNI, WEST_VNI, RouterSide, Tunnel, halves, unused_macs
from lossratio.dut.linux.program_dut import SocketOptions, is_card
from lossratio.dut.vpp.startup import Card
from lossratio.topology import EAST, WEST, Hop, Side, VppDriver
from lossratio.units import parse_bit_rate

HOME_VARIABLE = "VPP_HOME"
"""Environment variable with the directory of VPP's installation, for suites without the option."""

_BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds: with less, bursts of frames lose some below the rate."""
_MOST_IPV4_ROUTES = 130_000
_ROUTES_AT_ONCE = 100_000
"""VPP answers nothing else while it adds routes."""
_KILO = 1000
_BITS_PER_BYTE = 8


class VppForwarding(str, Enum):
    """How VPP forwards."""

    CROSS_CONNECT = "l2xc"
    """Layer 2 cross-connect: frames that enter on one interface leave on the other."""
    BRIDGE_DOMAIN = "l2bd"
    """Bridge domain with MAC learning."""
    IP4 = "ip4"
    """IPv4 routing."""
    IP6 = "ip6"
    """IPv6 routing."""


def _whole_kilobits(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_bit_rate(value)
    if rate < _KILO or rate % _KILO:
        raise ValueError(f"{value!r} is not a rate that VPP can police: whole kbit/s, e.g. '50 Mbps'")
    return int(rate)


class VppOptions(SocketOptions):
    """The options of VPP."""

    home: str = Field(default_factory=lambda: os.environ.get(HOME_VARIABLE, "/usr"))
    """Directory of VPP on the node, with ``bin/vpp`` and ``bin/vppctl``; where missing, the value of the environment
    variable ``VPP_HOME`` on the machine that runs the suite, or ``/usr``."""
    forwarding: VppForwarding = VppForwarding.CROSS_CONNECT
    """``l2xc`` (cross-connect; the default), ``l2bd`` (bridge domain), ``ip4`` or ``ip6``."""
    routes: int | None = Field(default=None, ge=2, le=2_000_000, multiple_of=2)
    """Routes to single hosts, half of them to the first hosts of each side's network, and no others; with ``ip4`` (at
    most 130,000) or ``ip6``."""
    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, as for ``linux_bridge``; with ``l2bd``."""
    acl: int | None = Field(default=None, ge=1, le=100)
    """Rules of an access control list that every frame passes, up to 100; the last rule permits the frame."""
    police: Annotated[int | None, BeforeValidator(_whole_kilobits)] = None
    """The bit rate to which the frames that enter on each interface are policed, in whole kbit/s, e.g. ``50 Mbps``,
    computed from frames without their FCS."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Bytes that a full bucket of the policer holds; where missing, 20 ms of its rate."""
    frame_queue: int = Field(default=1024, ge=64, le=65_536)
    """Descriptors of each queue of a card or of an AF_XDP socket (1024). Packet sockets have none."""

    @model_validator(mode="after")
    def _goes_together(self) -> VppOptions:
        if self.routes is not None and not self.is_router:
            raise ValueError("routes go with forwarding=ip4 or ip6")
        if self.routes is not None and self.forwarding is VppForwarding.IP4 and self.routes > _MOST_IPV4_ROUTES:
            raise ValueError(f"the networks of test traffic have {_MOST_IPV4_ROUTES} hosts; ask for fewer routes")
        if self.vxlan and self.forwarding is not VppForwarding.BRIDGE_DOMAIN:
            raise ValueError("vxlan goes with forwarding=l2bd")
        if self.burst is not None and self.police is None:
            raise ValueError("burst is the size of a policer's bucket; give police, too")
        return self

    @property
    def is_router(self) -> bool:  # type: ignore[override]
        """Whether it forwards by IP addresses."""
        return self.forwarding in (VppForwarding.IP4, VppForwarding.IP6)

    @property
    def ip_version(self) -> int:
        """IP version that it routes."""
        return 6 if self.forwarding is VppForwarding.IP6 else 4

    @property
    def filters(self) -> int:
        """The option ``acl``."""
        return self.acl or 0

    @property
    def police_kilobits(self) -> int | None:
        """The policer's rate in kbit/s."""
        return None if self.police is None else self.police // _KILO

    @property
    def bucket(self) -> int | None:
        """Bytes that a full bucket of the policer holds."""
        if self.police is None:
            return None
        return self.burst or math.ceil(self.police / _BITS_PER_BYTE * _BURST_SECONDS)

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which an empty bucket is full again."""
        if self.police is None or self.bucket is None:
            return 0.0
        return self.bucket * _BITS_PER_BYTE / self.police


BRIDGE_DOMAIN = 10
"""Number of the bridge domain."""

ROUTES_ADDED = r"(\S+ routes/sec\s*)*"
"""VPP's answer to a command that adds many routes: their rate."""


@dataclass(frozen=True)
class Command:
    """A command to VPP."""

    text: str
    """The command."""
    answer: str = ""
    """Regular expression of VPP's answer to a command that succeeds."""


@dataclass(frozen=True)
class VppPort:
    """One side of VPP."""

    interface: str
    """Name of its interface in VPP."""
    neighbour_mac: str
    """MAC address of the neighbour at the other end of the link."""
    side: Side
    """Networks behind the neighbour."""
    opposite: Side
    """Networks behind the other neighbour."""
    vni: int
    """VXLAN network identifier of the tunnel on this link, if there is one."""

    def routed(self, ip_version: int) -> RouterSide:
        """Its addresses and those of its neighbour, as a router."""
        return RouterSide(self.interface, self.side.ipv4 if ip_version == 4 else self.side.ipv6)

    @property
    def tunnel(self) -> Tunnel:
        """Its end of the tunnel on this link."""
        return Tunnel(self.interface, f"vxlan_tunnel{self.vni}", self.side.ipv4, self.opposite.ipv4, self.vni)


def both_ports(interfaces: tuple[str, str], neighbours: tuple[str, str]) -> tuple[VppPort, VppPort]:
    """Both sides of VPP, west and east, with their interfaces and their neighbours' MAC addresses."""
    return (
        VppPort(interfaces[0], neighbours[0], WEST, EAST, WEST_VNI),
        VppPort(interfaces[1], neighbours[1], EAST, WEST, EAST_VNI),
    )


def vpp_problem(hop: Hop) -> str | None:
    """The reason why VPP would not have a DUT's cards by the driver of the topology file; None: it would."""
    driver = hop.vpp.driver
    kernels = [port for port in (hop.west, hop.east) if not is_card(port, hop.uio_driver)]
    if driver is VppDriver.DPDK or not kernels:
        return None
    bound = "mlx5_core" if driver is VppDriver.RDMA else "vfio-pci"
    return (
        f"VPP's driver {driver.value} is for cards, and {' and '.join(map(str, kernels))} would stay an interface of "
        f"the kernel: give it a 'pci_address' and 'driver: {bound}'"
    )


def card_commands(driver: VppDriver, card: Card, kernels_name: str, mac: str) -> Iterator[Command]:
    """The commands that give VPP a card that startup.conf does not give it.

    Args:
        driver: By what VPP has it.
        card: The card.
        kernels_name: Name of its interface in the kernel, for a card that the kernel keeps.
        mac: Its MAC address.
    """
    if driver is VppDriver.RDMA:
        queues = f"num-rx-queues {card.queues} rx-queue-size {card.descriptors} tx-queue-size {card.descriptors}"
        yield Command(f"create interface rdma host-if {kernels_name} name {card.name} {queues} no-multi-seg")
        # It would have an address of its own otherwise.
        yield Command(f"set interface mac address {card.name} {mac}")
    elif driver is VppDriver.AVF:
        # One pair of queues more, as in CSIT: the main thread may send, too.
        yield Command(f"device attach pci/{card.address} driver iavf args request_qpairs={card.queues + 1}")
        queues = f"num-rx-queues {card.queues} rx-queues-size {card.descriptors} tx-queues-size {card.descriptors}"
        yield Command(f"device create-interface pci/{card.address} port 0 if-name {card.name} {queues}")


def placement_commands(cards: Iterable[Card]) -> Iterator[Command]:
    """The commands that have cards polled by the workers that they name."""
    for card in cards:
        for queue in range(card.queues if card.workers else 0):
            worker = card.workers[queue % len(card.workers)]
            yield Command(f"set interface rx-placement {card.name} queue {queue} worker {worker}")


def forwarding_commands(options: VppOptions, west: VppPort, east: VppPort) -> Iterator[Command]:
    """The commands that make VPP forward, once its interfaces exist."""
    ports = (west, east)
    for port in ports:
        yield Command(f"set interface state {port.interface} up")
    if options.forwarding is VppForwarding.CROSS_CONNECT:
        yield Command(f"set interface l2 xconnect {west.interface} {east.interface}")
        yield Command(f"set interface l2 xconnect {east.interface} {west.interface}")
    elif options.forwarding is VppForwarding.BRIDGE_DOMAIN:
        flags = "learn 1 forward 1 uu-flood 1 flood 1 arp-term 0"
        yield Command(f"create bridge-domain {BRIDGE_DOMAIN} {flags}", answer=r"(bridge-domain \d+)?")
        for port in ports:
            yield from _tunnelled(port) if options.vxlan else _bridged(port)
    else:
        for port in ports:
            yield from _routed(port, options)
    yield from _access_list(options, ports)
    yield from _policers(options, ports)


def policer_name(port: VppPort) -> str:
    """Name of the policer of frames that enter on a port."""
    return f"police-{port.interface}"


def entries_commands(options: VppOptions, ports: tuple[VppPort, VppPort], count: int) -> Iterator[str]:
    """Commands that add routes or entries which do not concern test traffic; none if there is no table."""
    if options.forwarding is VppForwarding.BRIDGE_DOMAIN:
        interface = ports[0].tunnel.name if options.vxlan else ports[0].interface
        yield from (f"l2fib add {mac} {BRIDGE_DOMAIN} {interface} static" for mac in unused_macs(count))
    elif options.forwarding is not VppForwarding.CROSS_CONNECT:
        for port, share in zip(ports, halves(count), strict=True):
            side = port.routed(options.ip_version)
            first = int(side.neighbour) - share
            if share:
                yield _many_routes(side, type(side.neighbour)(first), share)


def _bridged(port: VppPort) -> Iterator[Command]:
    yield Command(f"set interface l2 bridge {port.interface} {BRIDGE_DOMAIN}")
    yield Command(f"l2fib add {port.neighbour_mac} {BRIDGE_DOMAIN} {port.interface} static")


def _tunnelled(port: VppPort) -> Iterator[Command]:
    tunnel = port.tunnel
    yield Command(f"set interface ip address {port.interface} {tunnel.local}/32")
    yield Command(f"set ip neighbor {port.interface} {tunnel.remote} {port.neighbour_mac} static")
    yield Command(f"ip route add {tunnel.remote}/32 via {tunnel.remote} {port.interface}")
    ends = f"src {tunnel.local} dst {tunnel.remote} vni {tunnel.vni} instance {tunnel.vni} decap-next l2"
    yield Command(f"create vxlan tunnel {ends}", answer=r"vxlan_tunnel\d+")
    yield Command(f"set interface l2 bridge {tunnel.name} {BRIDGE_DOMAIN}")


def _routed(port: VppPort, options: VppOptions) -> Iterator[Command]:
    side = port.routed(options.ip_version)
    yield Command(f"set interface ip address {port.interface} {side.address}/{side.network.max_prefixlen - 2}")
    yield Command(f"set ip neighbor {port.interface} {side.neighbour} {port.neighbour_mac} static")
    if options.routes is None:
        yield Command(f"ip route add {side.network} via {side.neighbour} {port.interface}")
    else:
        count = options.routes // 2
        for start in range(0, count, _ROUTES_AT_ONCE):
            piece = min(_ROUTES_AT_ONCE, count - start)
            yield Command(_many_routes(side, side.network[1] + start, piece), answer=ROUTES_ADDED)


def _many_routes(side: RouterSide, first: IPv4Address | IPv6Address, count: int) -> str:
    return f"ip route add count {count} {first}/{first.max_prefixlen} via {side.neighbour} {side.interface}"


def _access_list(options: VppOptions, ports: tuple[VppPort, VppPort]) -> Iterator[Command]:
    if options.acl is None:
        return
    any_network: IPv4Network | IPv6Network = IPv4Network("0.0.0.0/0")
    if options.forwarding is VppForwarding.IP6:
        any_network = IPv6Network("::/0")
    # All rules but the last one are for a protocol that no frame has: 255 is reserved.
    others = [f"deny src {any_network} dst {any_network} proto 255"] * (options.acl - 1)
    rules = ", ".join((*others, f"permit src {any_network} dst {any_network}"))
    yield Command(f"set acl-plugin acl {rules} tag lossratio", answer=r"ACL index:\d+")
    for port in ports:
        yield Command(f"set acl-plugin interface {port.interface} input acl 0")


def _policers(options: VppOptions, ports: tuple[VppPort, VppPort]) -> Iterator[Command]:
    if options.police is None:
        return
    bucket = f"rate kbps cir {options.police_kilobits} cb {options.bucket} type 1r2c"
    actions = "conform-action transmit exceed-action drop violate-action drop"
    for port in ports:
        yield Command(f"policer add name {policer_name(port)} {bucket} {actions}", answer=r"(\d+)?")
        yield Command(f"policer input name {policer_name(port)} {port.interface}")
