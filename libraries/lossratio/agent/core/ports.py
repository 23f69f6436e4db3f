# SPDX-License-Identifier: Apache-2.0
"""Linux interfaces as ports: whether test traffic may use them, and whether they stayed the same, and up.

Interfaces that people need are refused: of the default route, of the SSH session, and of routers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_network
from typing import Iterable, Mapping, Sequence

from lossratio.bpf import default_networks

from .configuration import BENCHMARK_NETWORKS, Configuration, Direction
from .ethtool import without_buffer
from .links import Link, Route, address_links, read_links, read_routes, route_links
from .protocol import AgentError, Message, unsupported


def check_may_transmit(
    names: Iterable[str],
    links: Mapping[str, Link],
    networks: Sequence[str] = BENCHMARK_NETWORKS,
    *,
    loads_default_route: bool = False,
) -> None:
    """Checks that test traffic on these interfaces cuts nobody off; `links` are all interfaces, by name.

    An interface is refused if it carries a default route or the SSH session that the agent runs in, or if it shares
    its wire with one that does: as a port of the same bridge or bond, or below or beside a VLAN. A default route may be
    written in pieces; see `lossratio.bpf.default_networks`. An interface is also refused if the node would forward the
    test traffic that arrives on it through an interface that is none of these: test traffic does not belong in other
    networks. With `loads_default_route`, the default route is no reason.

    Raises:
        AgentError: If an interface is refused.
    """
    names = tuple(names)
    routes = read_routes()
    reasons = {} if loads_default_route else _default_route_links(routes)
    reasons.update(dict.fromkeys(_ssh_links(links), "carries the SSH session"))
    by_index = {link.index: link for link in links.values()}
    for name in names:
        for index in sorted(same_wire(links[name].index, by_index) & reasons.keys()):
            if index == links[name].index:
                other = "it"
            else:
                other = f"{by_index[index].name}, on the same wire,"

            raise AgentError(
                "forbidden_interface",
                f"Not transmitting on {name}: {other} {reasons[index]}. Test traffic would cut off this node. Give "
                "the generator interfaces that nothing else uses.",
            )
        _check_forwarding(name, routes, {links[port].index for port in names}, networks)


def _default_route_links(routes: Sequence[Route]) -> dict[int, str]:
    """Indices of the interfaces that carry a default route, or a part of one, of any table and family; and how."""
    reasons: dict[int, str] = {}
    default = default_networks({route.network for route in routes})
    for route in routes:
        if route.network in default:
            is_whole = route.network.prefixlen == 0
            if is_whole:
                how = "a default route"
            else:
                how = f"a part of the default route ({route.network})"

            reasons.update(dict.fromkeys(route.links, f"carries {how}"))
    return reasons


def _check_forwarding(name: str, routes: Sequence[Route], ports: set[int], networks: Sequence[str]) -> None:
    test_networks = [ip_network(network) for network in networks]
    # For each version of IP, a route that would take test traffic through an interface other than the ports.
    ways_out = {}
    for route in routes:
        version = route.network.version
        takes_traffic = any(test.version == version and test.overlaps(route.network) for test in test_networks)
        if takes_traffic and not ports.issuperset(route.links):
            ways_out[version] = route

    for version, route in ways_out.items():
        setting = f"net.ipv{version}.conf.{name}.forwarding"
        try:
            with open(f"/proc/sys/net/ipv{version}/conf/{name}/forwarding", encoding="ascii") as file:
                is_on = file.read().strip() != "0"
        except FileNotFoundError:
            continue
        if is_on:
            if route.network.prefixlen == 0:
                way = "its default route"
            else:
                way = f"its route to {route.network}"

            raise AgentError(
                "forbidden_interface",
                f"Not transmitting to {name}: this node would forward the test traffic to {way}. Switch off "
                f"forwarding (sysctl -w {setting}=0).",
            )


def _ssh_links(links: Mapping[str, Link]) -> set[int]:
    connection = _ssh_connection()
    if connection is None:
        return set()
    indices: set[int] = set()
    client, server = connection.split()[0], connection.split()[2]
    for endpoint in (client, server):
        address, _, zone = endpoint.partition("%")
        indices.update(route_links(address) if endpoint == client else address_links(address))
        if zone in links:
            indices.add(links[zone].index)
    return indices


def _ssh_connection() -> str | None:
    # sudo clears the variable, so the processes that started this process are also examined. The id is read from
    # /proc, because /proc may belong to another PID namespace than this process.
    pid = int(os.readlink("/proc/self"))
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return None
        for variable in variables:
            if variable.startswith(b"SSH_CONNECTION=") and len(variable.split()) == 4:
                return variable.partition(b"=")[2].decode()
    return None


def same_wire(start: int, by_index: Mapping[int, Link]) -> set[int]:
    """Indices of the interfaces joined to an interface: as ports of a bridge or bond, or by being stacked.

    The interface itself is among them; `by_index` are all interfaces.
    """
    neighbours: dict[int, set[int]] = {index: set() for index in by_index}
    for link in by_index.values():
        for other in (link.master, link.lower):
            if other in neighbours:
                neighbours[other].add(link.index)
                neighbours[link.index].add(other)
    reached = {start}
    todo: list[int] = [start]
    while todo:
        new = neighbours[todo.pop()] - reached
        reached |= new
        todo.extend(new)
    return reached


def links_in_use(
    names: Sequence[str], networks: Sequence[str] = (), *, loads_default_route: bool = False
) -> dict[str, Link]:
    """All links of the node, by name, including these: they are up, and test traffic may leave through them.

    Raises:
        AgentError: If one is missing or down, or test traffic may not leave through it.
    """
    links = existing_links(names)
    check_may_transmit(names, links, networks, loads_default_route=loads_default_route)
    for name in names:
        if not links[name].is_up:
            raise AgentError(
                "interface_down",
                f"Interface {name} or its link is down. Set both ends of the link up (ip link set {name} up).",
            )
    return links


def usable_links(configuration: Configuration) -> dict[str, Link]:
    """The links of a configuration's ports, by name, with all others of the node."""
    # A node does not forward frames for itself.
    networks = () if _has_all_addresses(configuration) else configuration.networks
    links = links_in_use(configuration.ports, networks, loads_default_route=configuration.loads_default_route)
    for direction in configuration.directions:
        for port in direction.local_ports:
            if direction.mtu > links[port].mtu:
                raise unsupported(
                    f"Frames of {direction.frames.max_size} bytes do not go through {port}, whose MTU is "
                    f"{links[port].mtu}. Raise it to {direction.mtu}, or use smaller frames."
                )
    return links


def _has_all_addresses(configuration: Configuration) -> bool:
    """Whether the kernel itself has all addresses of the traffic at these ports, at the right interfaces."""
    ranges = [(speaker.port, both) for speaker in configuration.speakers for both in speaker.addresses]
    links = existing_links(configuration.ports)
    for port, (first, last) in ranges:
        if first != last or links[port].index not in address_links(first):
            return False
    return {port for port, _ in ranges} == set(configuration.ports)


class Ports:
    """The links of a configuration's ports after its traffic, and all links of the node, by name, `before` it.

    See `usable_links` for errors.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._names = configuration.ports
        self.before = usable_links(configuration)

    def mark(self) -> None:
        """Notes the links before new traffic; makes sure that no port was replaced, as counters belong to a link."""
        self.before = self._same_links()

    def after(self, *, may_go_down: bool = False) -> dict[str, Link]:
        """All links now, provided that the ports stayed up (unless they may go down), and kept counting.

        Raises:
            AgentError: If they did not.
        """
        links = self._same_links()
        for name in self._names:
            now = links[name]
            then = self.before[name]
            if now.receive_drops < then.receive_drops or now.transmit_drops < then.transmit_drops:
                raise AgentError(
                    "counters_reset",
                    f"The counters of interface {name} were reset while traffic was running: its driver was reset, or "
                    "a program cleared them. So it is not known how many frames were dropped. Measure again.",
                )
            if not may_go_down and (now.carrier_changes != then.carrier_changes or not now.is_up):
                raise AgentError(
                    "interface_down",
                    f"Interface {name} or its link went down while traffic was running. The counters cannot be "
                    "used. Look at this interface and at the other end of its link.",
                )

        return links

    def macs(self, direction: Direction) -> tuple[bytes, bytes]:
        """Source and destination MAC addresses of a direction's frames; it states those of an end that is elsewhere."""
        macs = {port: self.before[port].mac for port in direction.local_ports}
        return direction.macs(macs.get(direction.transmit, b""), macs.get(direction.receive, b""))

    def facts(self) -> Message:
        """MAC address and kind of each port, for `Generator.facts`."""
        links = {name: self.before[name] for name in self._names}
        return {name: {"mac": link.mac.hex(":"), "kind": link.kind} for name, link in links.items()}

    def _same_links(self) -> dict[str, Link]:
        links = existing_links(self._names)
        for name in self._names:
            now = links[name]
            then = self.before[name]
            if now.index != then.index:
                raise AgentError(
                    "interface_replaced",
                    (
                        f"Interface {name} was removed, and another interface now has its name. Configure the "
                        "generator again."
                    ),
                )
            if now.mtu != then.mtu:
                raise AgentError(
                    "mtu_changed",
                    f"The MTU of interface {name} was {then.mtu} and is now {now.mtu}, so frames may be lost there. "
                    f"Restore it (ip link set dev {name} mtu {then.mtu}).",
                )

        return links


def free_ports(names: Iterable[str], links: Mapping[str, Link]) -> list[str]:
    """Those of these interfaces that exist and are up, and on which test traffic would cut nobody off."""
    free = []
    for name in names:
        if name in links and links[name].is_up:
            with suppress(AgentError):
                check_may_transmit([name], links)
                free.append(name)
    return free


def existing_links(names: Iterable[str]) -> dict[str, Link]:
    """All links of the node, by name, including these, with all frames that these have dropped.

    Raises:
        AgentError: If one is missing.
    """
    links = read_links()
    for name in names:
        if name not in links:
            raise AgentError(
                "no_such_interface",
                f"There is no network interface {name} on this node. The interfaces are {', '.join(sorted(links))}.",
            )
        link = links[name]
        links[name] = replace(link, receive_drops=link.receive_drops + without_buffer(name))
    return links
