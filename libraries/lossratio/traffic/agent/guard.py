"""Refuses interfaces that people need: those of the default route and of the SSH session, and those of routers."""

from __future__ import annotations

import os
from typing import Iterable, Mapping

from .links import Link, address_links, default_route_links, route_links
from .protocol import AgentError


def check_may_transmit(names: Iterable[str], links: Mapping[str, Link]) -> None:
    """Checks that test traffic on these interfaces cuts nobody off.

    An interface is refused if it carries a default route or the SSH session that the agent runs in, or if it shares
    its wire with one that does: as a port of the same bridge or bond, or below or beside a VLAN. It is also refused if
    the node would forward what arrives on it to its default route: test traffic does not belong into other networks.

    Args:
        names: The interfaces, which exist.
        links: All interfaces, by name.

    Raises:
        AgentError: Of kind ``forbidden_interface``.
    """
    default_routes = default_route_links()
    reasons = dict.fromkeys(default_routes, "carries a default route")
    reasons.update(dict.fromkeys(_ssh_links(links), "carries the SSH session"))
    by_index = {link.index: link for link in links.values()}
    for name in names:
        for index in sorted(same_wire(links[name].index, by_index) & reasons.keys()):
            other = "it" if index == links[name].index else f"{by_index[index].name}, on the same wire,"
            raise AgentError(
                "forbidden_interface",
                f"Not transmitting on {name}: {other} {reasons[index]}. "
                "Test traffic would cut this node off; give the generator interfaces of its own.",
            )
        if default_routes:
            _check_forwarding(name)


def _check_forwarding(name: str) -> None:
    for version in ("ipv4", "ipv6"):
        try:
            with open(f"/proc/sys/net/{version}/conf/{name}/forwarding", encoding="ascii") as file:
                is_on = file.read().strip() != "0"
        except FileNotFoundError:
            continue
        if is_on:
            raise AgentError(
                "forbidden_interface",
                f"Not transmitting to {name}: this node would forward the test traffic to its default route. "
                f"Switch that off (sysctl -w net.{version}.conf.{name}.forwarding=0).",
            )


def _ssh_links(links: Mapping[str, Link]) -> set[int]:
    connection = _ssh_connection()
    if connection is None:
        return set()
    found: set[int] = set()
    client, server = connection.split()[0], connection.split()[2]
    for endpoint in (client, server):
        address, _, zone = endpoint.partition("%")
        found.update(route_links(address) if endpoint == client else address_links(address))
        if zone in links:
            found.add(links[zone].index)
    return found


def _ssh_connection() -> str | None:
    # sudo clears the variable, so that the processes which started this one are looked at, too.
    pid = os.getpid()
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
    """Indices of all interfaces that are joined to one as ports of a bridge or bond, or by sitting upon each other.

    Args:
        start: Index of the one interface, which is among the result.
        by_index: All interfaces, by index.
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
