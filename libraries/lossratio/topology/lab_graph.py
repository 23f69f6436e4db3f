"""A lab of containerlab as a graph, the path of the test traffic through it, and the resulting topology file."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import yaml

from lossratio.errors import TopologyError
from lossratio.topology.quantities import as_file_name
from lossratio.values import names_near, shown_value

_PORTS = 2
"""Ports of the generator on a path."""


@dataclass(frozen=True)
class LabNode:
    """A node of a lab."""

    name: str
    """Its name in the lab."""
    kind: str
    """Its kind, in containerlab's words."""
    netns: str | None
    """Its network namespace; None: it has none, and traffic only passes through it."""


@dataclass(frozen=True)
class LabEnd:
    """An end of a link."""

    node: str
    """The node."""
    interface: str
    """Name of the Linux interface."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """The addresses that the lab gives it, by ``ipv4`` and ``ipv6``."""
    mac_address: str | None = None
    """The MAC address; None: not known."""


@dataclass(frozen=True)
class Lab:
    """A lab of containerlab."""

    name: str
    """Its name."""
    nodes: Mapping[str, LabNode]
    """Its nodes by name, in the order of its file."""
    links: Sequence[tuple[LabEnd, LabEnd]]
    """Links that frames can take from one node to another."""
    left_out: Sequence[str] = ()
    """Links that no test traffic can take, each with the reason."""

    def links_of(self, node: str) -> Iterator[tuple[LabEnd, LabEnd]]:
        """The links of a node, its own end first."""
        for one, other in self.links:
            if one.node == other.node:
                continue
            if one.node == node:
                yield one, other
            elif other.node == node:
                yield other, one

    def way(
        self, first: str, over: Sequence[str], last: str, closed: Collection[str] = ()
    ) -> list[str] | None:
        """The nodes of the shortest way between two nodes through all of `over`, in this order; no node comes twice.

        Args:
            first: The first node.
            over: Nodes that it goes through.
            last: The last node.
            closed: Nodes that it does not go through.
        """
        stops = [first, *(node for node in over if node not in (first, last)), last]
        nodes = [first]
        for number, (here, there) in enumerate(pairwise(stops)):
            part = self._shortest(
                here, there, {*closed, *nodes, *stops[number + 2 :]} - {here, there}
            )
            if part is None:
                return None
            nodes += part[1:]
        return nodes

    def _shortest(self, here: str, there: str, closed: Collection[str]) -> list[str] | None:
        ways = deque([[here]])
        seen = {here, *closed}
        while ways:
            way = ways.popleft()
            if way[-1] == there:
                return way
            for _, other in self.links_of(way[-1]):
                if other.node not in seen:
                    seen.add(other.node)
                    ways.append([*way, other.node])
        return None


@dataclass(frozen=True)
class _Path:
    """The way of the test traffic through a lab."""

    ends: tuple[str, ...]
    """The node with the generator, or the two nodes that each have an end of it."""
    duts: Sequence[str]
    """The nodes that it goes through, in order."""


def import_lab(lab: Lab, source: Path, *, tgs: Sequence[str], duts: Sequence[str] = ()) -> str:
    """The text of a topology file for a lab, with the path that test traffic takes through it.

    Args:
        lab: The lab, as `read_containerlab` reads it.
        source: The lab's file, which remarks name.
        tgs: The node with both ports of the generator, or the two nodes that have one port each.
        duts: Nodes that the path goes through, in this order; others may be between them.

    Raises:
        TopologyError: If the lab has no such path.
    """
    for name in (*tgs, *duts):
        if name not in lab.nodes:
            near = names_near(name, lab.nodes)
            raise TopologyError(
                f"{source}: the lab {lab.name} has no node {shown_value(name)}. Its nodes are {near}"
            )

    path = _Path(tuple(tgs), _crossed_by(lab, source, tgs, duts))
    text: str = yaml.safe_dump(_topology(lab, source, path), sort_keys=False, width=120)
    return "".join(f"# {line}\n" for line in _remarks(lab, source, path)) + text


def _crossed_by(lab: Lab, source: Path, tgs: Sequence[str], duts: Sequence[str]) -> list[str]:
    """The nodes on the shortest way between the ends of the generator.

    Raises:
        TopologyError: If there is none, or the generator cannot be there.
    """
    if len(set(tgs)) != len(tgs) or len(tgs) not in (1, _PORTS):
        raise TopologyError(
            f"{source}: the generator is on one node with two links into the lab (--tg NODE), or on two nodes, one at "
            f"each end of the path (--tg A --tg B). The nodes of the lab are {', '.join(lab.nodes) or 'none'}."
        )
    for tg in tgs:
        if lab.nodes[tg].netns is None:
            raise TopologyError(
                f"{source}: the generator cannot be on {tg}, because no commands reach nodes of kind "
                f"{lab.nodes[tg].kind}. Name another node with --tg."
            )

    if len(tgs) == _PORTS:
        way = (lab.way(tgs[0], duts, tgs[1]) or [])[1:-1]
        between = f"from {tgs[0]} to {tgs[1]}"
    else:
        way = _round(lab, tgs[0], duts)
        between = f"from {tgs[0]} into the lab and back over another link"
    if not way:
        through = f" through {', '.join(duts)}" if duts else ""
        raise TopologyError(
            f"{source}: there is no path {between}{through} with a device in between. Name other nodes with --tg."
        )
    return way


def _round(lab: Lab, tg: str, duts: Sequence[str]) -> list[str]:
    """The shortest way from a node into the lab, and back to it by another link; empty if there is none."""
    doors = [other.node for _, other in lab.links_of(tg)]
    pairs = (pair for both in combinations(doors, 2) for pair in dict.fromkeys((both, both[::-1])))
    ways = [
        way
        for here, there in pairs
        if (way := lab.way(here, duts, there, {tg})) and set(duts) <= set(way)
    ]
    return min(ways, key=len, default=[])


def _next_hops(own: LabEnd, other: LabEnd) -> dict[str, list[str]]:
    """The addresses of the generator's port and of the next hop on its link, as far as the lab gives them."""
    hops: dict[str, list[str]] = {}
    for version in (4, 6):
        try:
            here = ip_interface(own.addresses[f"ipv{version}"])
            gateway = ip_interface(other.addresses[f"ipv{version}"]).ip
        except (KeyError, ValueError):
            continue
        if gateway in here.network and gateway != here.ip:
            hops.setdefault("address", []).append(str(here))
            hops.setdefault("gateway", []).append(str(gateway))
    return hops


def _topology(lab: Lab, source: Path, path: _Path) -> dict[str, Any]:
    names = _node_names(path)
    stops = [path.ends[0], *path.duts, path.ends[-1]]
    interfaces: dict[str, dict[str, Any]] = {name: {} for name in stops}

    def add(link: str, end: LabEnd, other: LabEnd) -> None:
        key = end.interface
        if end.node in path.ends and len(path.ends) == _PORTS:
            # Directions are named after the keys of the ports, and both ends may have an eth1.
            further = len(interfaces[end.node])
            key = f"{names[end.node]}-{further + 1}" if further else names[end.node]
        interfaces[end.node][key] = _port(link, end, other, is_of_tg=end.node in path.ends)

    taken: list[tuple[LabEnd, LabEnd]] = []
    for here, there in dict.fromkeys(pairwise(stops)):
        for link in lab.links_of(here):
            if link[1].node == there and link not in taken and link[::-1] not in taken:
                taken.append(link)
                add(f"link{len(taken)}", *link)
                add(f"link{len(taken)}", *link[::-1])

    return {
        "format": "lossratio-topology/1",
        "name": as_file_name(lab.name, "lab"),
        "description": f"Lab {lab.name} of containerlab, from {source.name}.",
        "nodes": _nodes(lab, path, interfaces),
    }


def _port(link: str, end: LabEnd, other: LabEnd, *, is_of_tg: bool) -> dict[str, Any]:
    """The entry of a port at the end of a link."""
    entry: dict[str, Any] = {"name": end.interface, "link": link}
    if end.mac_address is not None:
        entry["mac_address"] = end.mac_address
    if is_of_tg:
        entry |= _next_hops(end, other)
    if end.addresses:
        entry["other"] = dict(end.addresses)
    return entry


def _nodes(lab: Lab, path: _Path, interfaces: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The entries of the TGs and the DUTs, with their interfaces."""
    names = _node_names(path)
    known: dict[str, Any] = {}
    for tg in path.ends:
        # The generator of the first one applies to both.
        generator = {} if known else {"generator": {"kind": "afpacket"}}
        known[names[tg]] = {
            "type": "TG",
            "netns": lab.nodes[tg].netns,
            **generator,
            "interfaces": interfaces[tg],
        }

    for dut in path.duts:
        netns = lab.nodes[dut].netns
        reach = {} if netns is None else {"netns": netns}
        known[names[dut]] = {
            "type": "DUT",
            **reach,
            "model": lab.nodes[dut].kind,
            "interfaces": interfaces[dut],
        }
    return known


def _node_names(path: _Path) -> dict[str, str]:
    """Names of the nodes in the topology file, all different; a single TG is called ``TG``."""
    is_alone = len(path.ends) < _PORTS
    names = {path.ends[0]: "TG"} if is_alone else {}
    for node in path.duts if is_alone else (*path.ends, *path.duts):
        name = as_file_name(node, "node")
        while name in names.values():
            name += "_"
        names[node] = name
    return names


def _remarks(lab: Lab, source: Path, path: _Path) -> Iterator[str]:
    yield f"Made from {source.name} by lossratio lab import: the lab {lab.name} of containerlab."
    if path.ends[1:]:
        yield f"The generator is on both ends of the path, {' and '.join(path.ends)}."
    else:
        yield f"The generator is on {path.ends[0]}."
    crossed = ", ".join(f"{name} ({lab.nodes[name].kind})" for name in path.duts)
    yield f"The path goes through {crossed}."
    others = [name for name in lab.nodes if name not in path.ends and name not in path.duts]
    if others:
        yield f"Not on the path: {', '.join(others)}. Choose nodes for the path with --dut NODE."
    for reason in lab.left_out:
        yield f"Left out: {reason}."
