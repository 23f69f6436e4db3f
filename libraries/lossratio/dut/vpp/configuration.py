"""VPP's configuration: a suite's options, and the commands that make VPP forward."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from pydantic import Field, model_validator

from lossratio.dut.linux.addressing import halves, unused_macs
from lossratio.dut.linux.program_dut import is_card
from lossratio.dut.vpp.features import (
    AccessLists,
    AllowList,
    Bond,
    Classifier,
    Command,
    Det44,
    Feature,
    Geneve,
    Gtpu,
    Ipsec,
    IpsecAsync,
    LearnedMacs,
    Marker,
    Nat,
    Policer,
    Ports,
    Process,
    Routes,
    Sfdp,
    Srv6,
    Srv6Proxy,
    Vlan,
    VppForwarding,
    VppPort,
    Vxlan,
    WireGuard,
    many_routes,
)
from lossratio.dut.vpp.startup import Card
from lossratio.topology import Hop, VppDriver

HOME_VARIABLE = "VPP_HOME"
"""Environment variable with the directory of VPP's installation, for suites without the option."""


class VppOptions(
    AccessLists,
    Classifier,
    AllowList,
    Policer,
    Marker,
    Vlan,
    Vxlan,
    LearnedMacs,
    Routes,
    Ipsec,
    IpsecAsync,
    WireGuard,
    Process,
    Det44,
    Nat,
    Sfdp,
    Srv6,
    Srv6Proxy,
    Geneve,
    Gtpu,
    Bond,
):
    """The options of VPP: those of all its features."""

    home: str = Field(default_factory=lambda: os.environ.get(HOME_VARIABLE, "/usr"))
    """Directory of VPP on the node, with ``bin/vpp`` and ``bin/vppctl``; where missing, the value of the environment
    variable ``VPP_HOME`` on the machine that runs the suite, or ``/usr``."""
    frame_queue: int = Field(default=1024, ge=64, le=65_536)
    """Descriptors of each queue of a card or of an AF_XDP socket (1024). Packet sockets have none."""

    @model_validator(mode="after")
    def _goes_together(self) -> VppOptions:
        for feature in self.features:
            if problem := feature.mismatch(self) or feature.problem(self):
                raise ValueError(problem)
        return self

    @property
    def features(self) -> list[type[Feature]]:
        """The features that are on. Their methods are called with these options."""
        return [kind for kind in VppOptions.__bases__ if issubclass(kind, Feature) and kind.given(self)]

    @property
    def has_programs(self) -> bool:
        """Whether programs of features run beside VPP."""
        return any(kind.programs is not Feature.programs for kind in self.features)


BRIDGE_DOMAIN = 10
"""Number of the bridge domain."""


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
    """The commands that give VPP a card that startup.conf does not give it."""
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


def forwarding_commands(options: VppOptions, *links: VppPort) -> Iterator[Command]:
    """The commands that make VPP forward between two ports, once their interfaces exist."""
    for link in links:
        yield Command(f"set interface state {link.link} up")
    for link in links:
        yield from _lower(options, link)[1]
    ports = inner_ports(options, *links)
    for number, pair in enumerate(forwarding_pairs(options, ports)):
        yield from _forwarded(options, pair, BRIDGE_DOMAIN + number)
    for feature in options.features:
        yield from feature.commands(options, ports)


def forwarding_pairs(options: VppOptions, ports: Ports) -> tuple[Ports, ...]:
    """The pairs of ports that forward to each other: one, or one before and one behind a process."""
    return next((pairs for kind in options.features if (pairs := kind.pairs(options, ports)) is not None), (ports,))


def _forwarded(options: VppOptions, ports: Ports, domain: int) -> Iterator[Command]:
    west, east = ports
    if options.forwarding is VppForwarding.CROSS_CONNECT:
        yield Command(f"set interface l2 xconnect {west.interface} {east.interface}")
        yield Command(f"set interface l2 xconnect {east.interface} {west.interface}")
    elif options.forwarding is VppForwarding.PATCH:
        yield Command(f"test l2patch rx {west.interface} tx {east.interface}")
        yield Command(f"test l2patch rx {east.interface} tx {west.interface}")
    elif options.forwarding is VppForwarding.BRIDGE_DOMAIN:
        flags = "learn 1 forward 1 uu-flood 1 flood 1 arp-term 0"
        yield Command(f"create bridge-domain {domain} {flags}", answer=r"(bridge-domain \d+)?")
        for port in ports:
            yield Command(f"set interface l2 bridge {port.interface} {domain}")
            if port.neighbour_mac:
                yield Command(f"l2fib add {port.neighbour_mac} {domain} {port.interface} static")
    else:
        for port in ports:
            yield from _routed(options, port)


def inner_ports(options: VppOptions, *links: VppPort) -> Ports:
    """The ports that forward: those of the links, or of what features make upon them."""
    west, east = (_lower(options, link)[0] for link in links)
    return west, east


def _lower(options: VppOptions, port: VppPort) -> tuple[VppPort, list[Command]]:
    made: list[Command] = []
    for feature in options.features:
        port, commands = feature.below(options, port)
        made += commands
    return port, made


def entries_commands(options: VppOptions, ports: Ports, count: int) -> Iterator[str]:
    """Commands that add routes or entries which do not concern test traffic; none if there is no table."""
    if options.forwarding is VppForwarding.BRIDGE_DOMAIN:
        interface = inner_ports(options, *ports)[0].interface
        yield from (f"l2fib add {mac} {BRIDGE_DOMAIN} {interface} static" for mac in unused_macs(count))
    elif options.is_router:
        for port, share in zip(ports, halves(count), strict=True):
            side = port.routed(options.ip_version)
            first = int(side.neighbour) - share
            if share:
                yield many_routes(side, type(side.neighbour)(first), share)


def _routed(options: VppOptions, port: VppPort) -> Iterator[Command]:
    side = port.routed(options.ip_version)
    yield Command(f"set interface ip address {port.interface} {side.address}/{side.network.max_prefixlen - 2}")
    yield Command(f"set ip neighbor {port.interface} {side.neighbour} {port.neighbour_mac} static")
    table = f" table {port.table}" if port.table else ""
    given = [routes for feature in options.features if (routes := feature.routed(options, port)) is not None]
    yield from (
        given[0] if given else [Command(f"ip route add {side.network}{table} via {side.neighbour} {port.interface}")]
    )
