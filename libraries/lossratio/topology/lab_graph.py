"""A lab of another tool as a graph, the path of the test traffic through it, and the topology file that this makes."""

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface
from itertools import combinations, count, pairwise
from pathlib import Path
from typing import Any

import yaml

from lossratio.errors import TopologyError

_ROUTERS = re.compile(r"frr|bird|quagga|vyos|gobgp|holo|rtr|router|vpp|switch|ovs", re.IGNORECASE)
"""Images and names of `linux` nodes that forward traffic, and are no hosts."""
LINUX_NAME = re.compile(r"[^-/:\s][^/:\s]{0,14}$")
"""Names that interfaces can have in Linux."""
_PORTS = 2
"""Ports of the generator on a path."""
JOINED = "lr{}"
"""Names of the interfaces by which a namespace is joined to nodes that take any name."""


@dataclass(frozen=True)
class LabNode:
    """A node of a lab."""

    name: str
    """Its name in the lab."""
    kind: str
    """Its kind or device, in the words of the lab's tool."""
    reach: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the topology file that say how commands reach it; empty: it is only a device to send through."""
    is_linux: bool = False
    """Whether it is a Linux container without an operating system of a router."""
    image: str = ""
    """The image that it is made from; empty: not known."""
    joined_by: str | None = None
    """Name of an interface that it takes while it runs, with a place for the number; None: it takes none."""

    @property
    def is_host(self) -> bool:
        """Whether it is an end system, and can have the generator."""
        return (
            self.is_linux and bool(self.reach) and not _ROUTERS.search(f"{self.image} {self.name}")
        )


@dataclass(frozen=True)
class LabEnd:
    """An end of a link."""

    node: str
    """The node."""
    interface: str
    """Name of the Linux interface."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, such as addresses."""
    mac_address: str | None = None
    """The MAC address if the lab sets it."""


@dataclass(frozen=True)
class Lab:
    """A lab of another tool."""

    name: str
    """Its name."""
    tool: str
    """The tool, in words."""
    nodes: Mapping[str, LabNode]
    """Its nodes by name, in the order of its file."""
    links: Sequence[tuple[LabEnd, LabEnd]]
    """Links that frames can take from one node to another."""
    left_out: Sequence[str] = ()
    """Links and nodes that no test traffic can take, each with the reason."""

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
        """The nodes of the shortest way between two nodes, over others in this order; no node comes twice."""
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

    tg: str | None
    """The node with the generator; None: a namespace of lossratio's own."""
    duts: Sequence[str]
    """The nodes that it goes through, in order."""
    choices: Sequence[str] = ()
    """Other nodes that the generator could be on."""


def import_lab(
    lab: Lab,
    source: Path,
    *,
    tg: str | None = None,
    join: Sequence[str] = (),
    duts: Sequence[str] = (),
    lab_addresses: bool = False,
) -> str:
    """The text of a topology file for a lab, with the path that test traffic takes through it.

    Args:
        lab: The lab, as `read_containerlab` and `read_netlab` read it.
        source: The lab's file, for remarks.
        tg: The node with the generator. None: a host of the lab with two links into it, or else a namespace of
            lossratio's own.
        join: The nodes that this namespace is joined to: two, or one for both of its ports.
        duts: Nodes that the path goes through, in this order; others may be between them.
        lab_addresses: Whether test traffic has the lab's own addresses, instead of those for benchmarking.

    Raises:
        TopologyError: If the lab has no such path.
    """
    for name in (*([] if tg is None else [tg]), *join, *duts):
        if name not in lab.nodes:
            raise TopologyError(
                f"{source}: the lab {lab.name} has no node {name!r}; it has {', '.join(lab.nodes) or 'none'}."
            )
    path = _chosen_path(lab, source, tg, join, duts)
    text: str = yaml.safe_dump(
        _topology(lab, source, path, lab_addresses), sort_keys=False, width=120
    )
    return "".join(f"# {line}\n" for line in _remarks(lab, source, path)) + text


def _chosen_path(
    lab: Lab, source: Path, tg: str | None, join: Sequence[str], duts: Sequence[str]
) -> _Path:
    if tg is not None and join:
        raise TopologyError(
            "The generator is either on a node (--tg) or in a namespace of its own (--join), not both."
        )

    through = f" through {', '.join(duts)}" if duts else ""
    if tg is not None:
        if not lab.nodes[tg].reach:
            raise TopologyError(
                f"{source}: {tg} is of kind {lab.nodes[tg].kind}: the generator cannot be on it."
            )

        way = _round(lab, tg, duts)
        if way is None:
            raise TopologyError(
                f"{source}: there is no way from {tg} into the lab{through} and back to it by another link. Name "
                "another node with --tg, or two nodes with --join A --join B."
            )
        return _Path(tg, way)

    if not join:
        ways = {
            name: way
            for name, node in lab.nodes.items()
            if node.is_host and name not in duts and (way := _round(lab, name, duts)) is not None
        }
        if ways:
            first, *others = ways
            return _Path(first, ways[first], others)

        join = _ends(lab, duts)
        if not join:
            raise TopologyError(
                f"{source}: the lab {lab.name} has no place for a generator: no host (a Linux node that is no router) "
                "has two links into the lab, and no node takes another link while it runs "
                f"({', '.join(dict.fromkeys(node.kind for node in lab.nodes.values())) or 'there is none'}). "
                "Add a node of kind linux with two links to the lab."
            )

    for name in join:
        if lab.nodes[name].joined_by is None:
            raise TopologyError(
                f"{source}: {name} is of kind {lab.nodes[name].kind}, which takes no other link while it runs. Join "
                "another node, or add a node of kind linux with two links to the lab."
            )

    nowhere = "" if lab.links else ", and no link joins two nodes"
    way = lab.way(join[0], duts, join[-1])
    if way is None:
        raise TopologyError(
            f"{source}: there is no way from {join[0]} to {join[-1]}{through} over links that frames can take"
            f"{nowhere}. Join two nodes that have one: --join A --join B."
        )
    return _Path(None, way)


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


def _ends(lab: Lab, duts: Sequence[str]) -> tuple[str, ...]:
    """Two nodes with a way between them that a namespace can be joined to: routers before hosts, if there are two."""
    joinable = [name for name, node in lab.nodes.items() if node.joined_by is not None]
    joinable.sort(key=lambda name: lab.nodes[name].is_host)
    pairs = (
        pair for pair in combinations(joinable, 2) if lab.way(pair[0], duts, pair[1]) is not None
    )
    return next(pairs, tuple(joinable[:1]))


def _next_hops(own: LabEnd, other: LabEnd) -> dict[str, list[str]]:
    """The addresses of the generator's port and of the next hop on its link, as far as the lab says them."""
    hops: dict[str, list[str]] = {}
    for version in ("ipv4", "ipv6"):
        try:
            here, there = (ip_interface(str(end.facts[version])) for end in (own, other))
        except (KeyError, ValueError):
            continue
        if there.ip in here.network and there.ip != here.ip:
            hops.setdefault("address", []).append(str(here))
            hops.setdefault("gateway", []).append(str(there.ip))
    return hops


def _topology(lab: Lab, source: Path, path: _Path, lab_addresses: bool) -> dict[str, Any]:
    own = f"lossratio-{lab.name}"
    names = _node_names(path.duts)
    stops = ["", *path.duts, ""]
    interfaces: dict[str, dict[str, Any]] = {name: {} for name in stops}

    def add(link: str, end: LabEnd, other: LabEnd) -> None:
        # A device's own name for a port, where it has none in Linux, is the port's name only.
        is_name = LINUX_NAME.match(end.interface)
        entry: dict[str, Any] = {**({"name": end.interface} if is_name else {}), "link": link}
        if end.mac_address is not None:
            entry["mac_address"] = end.mac_address
        if end.node == path.tg:
            entry |= _next_hops(end, other)
        if end.facts:
            entry["other"] = dict(end.facts)
        interfaces["" if end.node == path.tg else end.node][end.interface] = entry

    if path.tg is None:
        for number, dut in enumerate((path.duts[0], path.duts[-1])):
            own_name = JOINED.format(number)
            name = _free_name(lab, dut, interfaces[dut])
            interfaces[""][own_name] = {"name": own_name, "link": f"join{number}"}
            interfaces[dut][name] = {"name": name, "link": f"join{number}"}
    nodes = stops if path.tg is None else [path.tg, *path.duts, path.tg]
    taken: list[tuple[LabEnd, LabEnd]] = []
    for here, there in dict.fromkeys(pairwise(nodes)):
        if here == "" or there == "":
            continue
        for link in lab.links_of(here):
            if link[1].node == there and link not in taken and link[::-1] not in taken:
                taken.append(link)
                add(f"link{len(taken)}", *link)
                add(f"link{len(taken)}", *link[::-1])
    if lab_addresses and sum("gateway" in entry for entry in interfaces[""].values()) < _PORTS:
        raise TopologyError(
            f"{source}: the lab's own addresses cannot be taken: it does not say the addresses of both links of "
            "the generator. Leave --addresses out, or add 'address' and 'gateway' to the topology file by hand."
        )

    reach = {"netns": own} if path.tg is None else lab.nodes[path.tg].reach
    generator = {"kind": "afpacket"}
    known = {"TG": {"type": "TG", **reach, "generator": generator, "interfaces": interfaces[""]}}
    for dut in path.duts:
        known[names[dut]] = {
            "type": "DUT",
            **lab.nodes[dut].reach,
            "model": lab.nodes[dut].kind,
            "interfaces": interfaces[dut],
        }

    return {
        "format": "lossratio-topology/1",
        **({"addresses": "lab"} if lab_addresses else {}),
        "name": re.sub(r"[^A-Za-z0-9_.-]", "_", lab.name).lstrip("_.-") or "lab",
        "description": f"Lab {lab.name} of {lab.tool}, from {source.name}.",
        "nodes": known,
    }


def _free_name(lab: Lab, node: str, taken: Collection[str]) -> str:
    """The first name of an interface that a node does not have yet."""
    pattern = lab.nodes[node].joined_by or JOINED
    used = {*taken, *(end.interface for link in lab.links for end in link if end.node == node)}
    return next(
        name
        for number in count(0 if pattern == JOINED else 1)
        if (name := pattern.format(number)) not in used
    )


def _node_names(duts: Sequence[str]) -> dict[str, str]:
    """Names of the nodes in the topology file, which differ from each other and from the TG's."""
    names: dict[str, str] = {}
    for dut in duts:
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", dut).lstrip("_.-") or "node"
        while name == "TG" or name in names.values():
            name += "_"
        names[dut] = name
    return names


def _remarks(lab: Lab, source: Path, path: _Path) -> Iterator[str]:
    yield f"Made from {source.name} by lossratio lab import: the lab {lab.name} of {lab.tool}."
    if path.tg is None:
        ends = " and ".join(dict.fromkeys((path.duts[0], path.duts[-1])))
        yield f"The generator is in a namespace of its own, joined to {ends} by veth: lossratio lab join FILE."
    else:
        if path.choices:
            also = f" It could also be on {', '.join(path.choices)}: --tg NODE."
        else:
            also = ""

        yield f"The generator is on {path.tg}.{also}"
    yield f"The path goes through {', '.join(path.duts)}."
    others = [name for name in lab.nodes if name != path.tg and name not in path.duts]
    if others:
        yield f"Not on the path: {', '.join(others)}. Choose nodes for the path with --dut NODE."
    for reason in lab.left_out:
        yield f"Left out: {reason}."
