"""Joins the generator's own namespace to nodes of a lab that another tool made, and takes it away again."""

import os
import subprocess
from collections.abc import Iterator

from lossratio.errors import NodeError, TopologyError
from lossratio.topology import Topology

_OWN = "lossratio-"
"""Beginning of the names of namespaces that lossratio makes: no others are made or removed."""


def join(topology: Topology) -> list[str]:
    """Makes the TG's namespace, and a veth pair for each of its links; what is there already stays.

    The kernel is to compute no checksum later: a device in between would drop such frames.

    Returns:
        The links that were made, in words.

    Raises:
        TopologyError: If the TG has no namespace of lossratio's own, or a link goes to a node without one.
        NodeError: If the lab does not run, or the namespace cannot be made.
    """
    own = _own_namespace(topology)
    links = list(_links(topology, own))
    for _, namespace, _ in links:
        if _ip("-n", namespace, "link", "show", "lo").returncode != 0:
            why = "does the lab run? containerlab deploy starts it, and ip netns list shows its namespaces."
            if os.geteuid() != 0:
                why = "or only root can see it. Run it as root."
            raise NodeError(f"There is no network namespace {namespace}: {why}")
    if _ip("-n", own, "link", "show", "lo").returncode != 0:
        _must("netns", "add", own)
    made = []
    for name, namespace, peer in links:
        if _ip("-n", own, "link", "show", name).returncode == 0:
            continue
        _must("-n", own, "link", "add", name, "type", "veth", "peer", "name", peer, "netns", namespace)
        for where, interface in ((own, name), (namespace, peer)):
            _must("-n", where, "link", "set", interface, "up")
            _must("netns", "exec", where, "ethtool", "-K", interface, "tx", "off")
        made.append(f"{own} {name} -- {peer} {namespace}")
    return made


def part(topology: Topology) -> bool:
    """Removes the TG's namespace, and with it its links.

    Returns:
        Whether it was there.
    """
    own = _own_namespace(topology)
    if _ip("-n", own, "link", "show", "lo").returncode != 0:
        return False
    _must("netns", "del", own)
    return True


def _own_namespace(topology: Topology) -> str:
    namespace = topology.nodes[topology.tg_name].netns
    if namespace is None or not namespace.startswith(_OWN):
        raise TopologyError(
            f"Topology {topology.name}: {topology.tg_name} is in no namespace of lossratio's own. There is nothing to "
            f"join; such a namespace is called 'netns: {_OWN}LAB', as lossratio import writes it."
        )
    return namespace


def _links(topology: Topology, own: str) -> Iterator[tuple[str, str, str]]:
    """Interface of the TG, namespace of the node at the other end and interface there, for each link of the TG."""
    for name, ends in topology.links().items():
        ends = tuple(sorted(ends, key=lambda port: port.node_name != topology.tg_name))
        if ends[0].node_name != topology.tg_name:
            continue
        namespace = topology.nodes[ends[1].node_name].netns
        near, far = ends[0].interface.name, ends[1].interface.name
        if namespace in (None, own) or near is None or far is None:
            raise TopologyError(
                f"Topology {topology.name}: link {name} goes to {ends[1].node_name}, which has no 'netns' of its own."
            )
        yield near, namespace, far


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["ip", *arguments], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NodeError("The program ip is missing on this machine; install iproute2.") from error


def _must(*arguments: str) -> None:
    result = _ip(*arguments)
    if result.returncode != 0:
        raise NodeError(f"ip {' '.join(arguments)} failed: {result.stderr.strip() or 'no reason given'}.")
