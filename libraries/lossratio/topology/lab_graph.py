"""A lab of containerlab as a graph, the path of the test traffic through it, and the resulting topology file."""

import re
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

_ROUTERS = re.compile(
    r"frr|bird|quagga|vyos|gobgp|holo|rtr|router|vpp|switch|ovs|cumulus|sonic|firewall|"
    r"(?<![a-z])(gw|fw|nat|r|rt|sw)(?![a-z])",
    re.IGNORECASE,
)
"""Images and names of `linux` nodes that forward traffic and so are not hosts."""
_HOSTS = re.compile(
    r"(?<![a-z])(pc|h|host|client|server|srv|vm|tester|tg|traffic|generator|trex|ixia|ost)(?![a-z])|server|client|host",
    re.IGNORECASE,
)
"""Names of `linux` nodes that are hosts even with several links, such as a server with links to two switches."""
_MOST_SHOWN = 6
"""How many other ways are shown."""
_PORTS = 2
"""Ports of the generator on a path."""
_LINUX = ("linux", "ext-container")
"""Kinds of Linux containers without an operating system of a router."""


@dataclass(frozen=True)
class LabNode:
    """A node of a lab."""

    name: str
    """Its name in the lab."""
    kind: str
    """Its kind, in containerlab's words."""
    netns: str | None
    """Its network namespace; None: it has none, and traffic only passes through it."""
    image: str = ""
    """The image that it is made from; empty: not known."""

    @property
    def may_be_host(self) -> bool:
        """Whether it is a Linux node that can run the generator, and its name and image are not those of a router."""
        if self.netns is None or self.kind not in _LINUX:
            return False
        return not _ROUTERS.search(f"{self.image} {self.name}")


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

    def is_host(self, name: str) -> bool:
        """Whether a node is an end system: nothing is forwarded there, and it can have an end of the traffic."""
        links = len([*self.links_of(name)])
        is_one = links == 1 or _HOSTS.search(name) is not None
        return self.nodes[name].may_be_host and links > 0 and is_one

    @property
    def hosts(self) -> list[str]:
        """The lab's end systems, in the order of its file."""
        return [name for name in self.nodes if self.is_host(name)]

    @property
    def testers(self) -> list[str]:
        """Nodes that may be a tester with both ports: Linux nodes without an adjacent end system."""
        hosts = self.hosts
        testers = []
        for name, node in self.nodes.items():
            neighbours = {other.node for _, other in self.links_of(name)}
            if node.may_be_host and not neighbours.intersection(hosts):
                testers.append(name)
        return testers

    def way(
        self, first: str, over: Sequence[str], last: str, closed: Collection[str] = ()
    ) -> list[str] | None:
        """The nodes of the shortest way between two nodes through all of `over`, in this order; no node comes twice.

        The way goes through no end systems except those in `over`.
        """
        closed = {*closed, *self.hosts} - {first, *over, last}
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
    choices: Sequence[str] = ()
    """Other nodes that the generator could run on."""
    others: Sequence[Sequence[str]] = ()
    """Ways between other ends, each from end to end."""


def import_lab(
    lab: Lab,
    source: Path,
    *,
    tg: str | None = None,
    ends: Sequence[str] = (),
    duts: Sequence[str] = (),
) -> str:
    """The text of a topology file for a lab, with the path that test traffic takes through it.

    Args:
        lab: The lab, as `read_containerlab` reads it.
        source: The lab's file, which remarks name.
        tg: The node with the generator, which has both of its ports. None: two end systems of the lab have one port
            each, or else a host with two links into the lab has both.
        ends: The end systems at the path's ends: both, or the first one.
        duts: Nodes that the path goes through, in this order; others may be between them.

    Raises:
        TopologyError: If the lab has no such path.
    """
    for name in (*([] if tg is None else [tg]), *ends, *duts):
        if name not in lab.nodes:
            raise TopologyError(
                f"{source}: the lab {lab.name} has no node {name!r}; it has {', '.join(lab.nodes) or 'none'}."
            )
    if tg is not None and ends:
        raise TopologyError(
            "Choose one place for the generator: a node (--tg), or two end systems (--end)."
        )

    path = _chosen_path(lab, source, tg, ends, duts)
    text: str = yaml.safe_dump(_topology(lab, source, path), sort_keys=False, width=120)
    return "".join(f"# {line}\n" for line in _remarks(lab, source, path)) + text


def _chosen_path(
    lab: Lab, source: Path, tg: str | None, ends: Sequence[str], duts: Sequence[str]
) -> _Path:
    if tg is not None:
        return _path_round(lab, source, tg, duts)

    ways = _ways(lab, ends, duts)
    if ways:
        chosen, *others = ways
        return _Path((chosen[0], chosen[-1]), chosen[1:-1], others=others)
    if ends:
        raise TopologyError(
            f"{source}: there is no path from {ends[0]} to "
            f"{ends[1] if ends[1:] else 'another end system'}{_through(duts)} over usable links with a device in "
            f"between. Choose other ends with --end NODE; the lab's end systems are {', '.join(lab.hosts) or 'none'}."
        )

    rounds = {}
    for name in lab.testers:
        way = None if name in duts else _round(lab, name, duts)
        if way is not None:
            rounds[name] = way

    if not rounds:
        raise TopologyError(
            f"{source}: the lab {lab.name} has no place for a generator: no two hosts (Linux nodes that are not "
            "routers) have a path between them, and no host has two links into the lab. Add two nodes of kind linux, "
            "each with a link to the lab."
        )
    first, *choices = rounds
    return _Path((first,), rounds[first], choices)


def _through(duts: Sequence[str]) -> str:
    return f" through {', '.join(duts)}" if duts else ""


def _ways(lab: Lab, ends: Sequence[str], duts: Sequence[str]) -> list[list[str]]:
    """The ways between end systems, each from end to end: first those from the first end system, longest first.

    `ends` are the requested end systems: one, two or none.
    """
    hosts = [name for name in lab.hosts if name not in duts]
    pairs = [*combinations(hosts, 2)]
    if ends:
        pairs = [(ends[0], name) for name in ends[1:] or hosts if name != ends[0]]

    ways: list[list[str]] = []
    for first, last in pairs:
        way = lab.way(first, duts, last)
        # Two hosts with nothing between them form no way through a device.
        if way is not None and len(way) > _PORTS:
            ways.append(way)

    beginnings = [*dict.fromkeys(way[0] for way in ways)]
    return sorted(ways, key=lambda way: (beginnings.index(way[0]), -len(way)))


def _path_round(lab: Lab, source: Path, tg: str, duts: Sequence[str]) -> _Path:
    """The way from a node into the lab, and back to it by another link."""
    if lab.nodes[tg].netns is None:
        raise TopologyError(
            f"{source}: the generator cannot be on {tg}, because no commands reach nodes of kind {lab.nodes[tg].kind}. "
            "Name another node with --tg."
        )

    way = _round(lab, tg, duts)
    if way is None:
        raise TopologyError(
            f"{source}: there is no path from {tg} into the lab{_through(duts)} and back over another link. Name "
            "another node with --tg, or two end systems with --end A --end B."
        )
    return _Path((tg,), way)


def _round(lab: Lab, tg: str, duts: Sequence[str]) -> list[str] | None:
    """The shortest way from a node into the lab, and back to it by another link."""
    doors = [other.node for _, other in lab.links_of(tg)]
    pairs = (pair for both in combinations(doors, 2) for pair in dict.fromkeys((both, both[::-1])))
    ways = [
        way
        for here, there in pairs
        if (way := lab.way(here, duts, there, {tg})) and set(duts) <= set(way)
    ]
    return min(ways, key=len, default=None)


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
        if path.choices:
            also = f" It could also be on {', '.join(path.choices)}: --tg NODE."
        else:
            also = ""

        yield f"The generator is on {path.ends[0]}.{also}"
    yield f"The path goes through {_crossed(lab, path.duts)}."
    for way in path.others[:_MOST_SHOWN]:
        ends = f"--end {way[0]} --end {way[-1]}"
        yield f"From {way[0]} to {way[-1]} it would go through {_crossed(lab, way[1:-1])}: {ends}."
    if path.others[_MOST_SHOWN:]:
        yield f"There are {len(path.others) - _MOST_SHOWN} more paths between end systems: --end A --end B."
    others = [name for name in lab.nodes if name not in path.ends and name not in path.duts]
    if others:
        yield f"Not on the path: {', '.join(others)}. Choose nodes for the path with --dut NODE."
    for reason in lab.left_out:
        yield f"Left out: {reason}."


def _crossed(lab: Lab, duts: Sequence[str]) -> str:
    """The devices on a way, each one with its kind."""
    return ", ".join(f"{name} ({lab.nodes[name].kind})" for name in duts)
