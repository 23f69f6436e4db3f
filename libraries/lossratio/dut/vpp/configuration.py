"""The commands that make VPP forward, from a suite's options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from lossratio.dut.linux.router_side import RouterSide
from lossratio.dut.linux.vxlan import EAST_VNI, WEST_VNI, Tunnel
from lossratio.dut.vpp.options import VppForwarding, VppOptions
from lossratio.topology import EAST, WEST, Side

BRIDGE_DOMAIN = 10
"""Number of the bridge domain."""

ROUTES_ADDED = r"(\S+ routes/sec\s*)*"
"""What VPP writes when it has added many routes: how fast; nothing else does."""

_UNUSED = 0x02FF00 << 24
"""The first of the MAC addresses that no test traffic has."""


@dataclass(frozen=True)
class Command:
    """A command of VPP's.

    Attributes:
        text: The command.
        answer: Regular expression of what VPP writes if it has done it.
    """

    text: str
    answer: str = ""


@dataclass(frozen=True)
class VppPort:
    """One side of VPP.

    Attributes:
        interface: Name of its interface in VPP.
        neighbour_mac: MAC address of what is at the other end of the link.
        side: Networks behind the neighbour.
        opposite: Networks behind the other neighbour.
        vni: VXLAN network identifier of the tunnel on this link, if there is one.
    """

    interface: str
    neighbour_mac: str
    side: Side
    opposite: Side
    vni: int

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


def forwarding_commands(options: VppOptions, west: VppPort, east: VppPort) -> Iterator[Command]:
    """What makes VPP forward, once its interfaces are there."""
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
    """Name of the policer of what comes in on a port."""
    return f"police-{port.interface}"


def entries_commands(options: VppOptions, ports: tuple[VppPort, VppPort], count: int) -> Iterator[str]:
    """Lines that add so many routes or entries which are of no concern to test traffic; none if there is no table."""
    if options.forwarding is VppForwarding.BRIDGE_DOMAIN:
        interface = ports[0].tunnel.name if options.vxlan else ports[0].interface
        for number in range(_UNUSED, _UNUSED + count):
            yield f"l2fib add {number.to_bytes(6, 'big').hex(':')} {BRIDGE_DOMAIN} {interface} static"
    elif options.forwarding is not VppForwarding.CROSS_CONNECT:
        for port, share in zip(ports, (count - count // 2, count // 2), strict=True):
            side = port.routed(_ip_version(options))
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
    side = port.routed(_ip_version(options))
    yield Command(f"set interface ip address {port.interface} {side.address}/{side.network.max_prefixlen - 2}")
    yield Command(f"set ip neighbor {port.interface} {side.neighbour} {port.neighbour_mac} static")
    if options.routes is None:
        yield Command(f"ip route add {side.network} via {side.neighbour} {port.interface}")
    else:
        yield Command(_many_routes(side, side.network[1], options.routes // 2), answer=ROUTES_ADDED)


def _many_routes(side: RouterSide, first: IPv4Address | IPv6Address, count: int) -> str:
    return f"ip route add count {count} {first}/{first.max_prefixlen} via {side.neighbour} {side.interface}"


def _access_list(options: VppOptions, ports: tuple[VppPort, VppPort]) -> Iterator[Command]:
    if options.acl is None:
        return
    any_network: IPv4Network | IPv6Network = IPv4Network("0.0.0.0/0")
    if options.forwarding is VppForwarding.IP6:
        any_network = IPv6Network("::/0")
    # Every rule but the last one is for a protocol that nobody has: 255 is reserved.
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


def _ip_version(options: VppOptions) -> int:
    return 6 if options.forwarding is VppForwarding.IP6 else 4
