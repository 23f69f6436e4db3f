"""Inspects the nodes of a topology: whether they can be reached, what they have, and what they lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from lossratio.errors import NodeError
from lossratio.nodes import NodeSession, gather_facts
from lossratio.results import NodeFacts
from lossratio.testbed.interfaces import InterfaceState, known_as, read_interfaces
from lossratio.testbed.local import reachable
from lossratio.topology import Node, NodeType, RealGenerator, Topology
from lossratio.traffic import generator_needs
from lossratio.units import format_bit_rate

_PACKAGES = {"ip": "iproute2", "nft": "nftables", "ethtool": "ethtool"}


@dataclass(frozen=True)
class NodeReport:
    """The findings of an inspection of a node.

    Attributes:
        name: The node.
        facts: Facts of the node; None: it could not be reached.
        interfaces: Its interfaces that exist, by port name.
        problems: Reasons why it cannot be used, each with the way out.
    """

    name: str
    facts: NodeFacts | None
    interfaces: Mapping[str, InterfaceState]
    problems: tuple[str, ...]


def inspect_nodes(topology: Topology) -> tuple[NodeReport, ...]:
    """Logs in on every node and inspects it. A local testbed that is not up is built for that.

    Raises:
        LossRatioError: If a local testbed cannot be built. Problems of a node are in its report.
    """
    with ExitStack() as undo:
        return tuple(_inspect(name, node) for name, node in reachable(topology, undo).nodes.items())


def describe_node(report: NodeReport) -> str:
    """Describes the findings of a node's inspection in a few lines."""
    lines = [f"{report.name}: {'not reached' if report.facts is None else _facts_in_words(report.facts)}"]
    lines += [f"  {port}: {_interface_in_words(state)}" for port, state in report.interfaces.items()]
    lines += [f"  PROBLEM: {problem}" for problem in report.problems]
    return "\n".join(lines)


def _inspect(name: str, node: Node) -> NodeReport:
    try:
        with NodeSession.connect(name, node) as session:
            facts = gather_facts(session).facts
            states = read_interfaces(session, node.interfaces)
            problems = (*_missing_interfaces(node, states), *_missing_tools(session, node, facts))
    except NodeError as error:
        return NodeReport(name, None, {}, (str(error),))
    return NodeReport(name, facts, states, problems)


def _missing_interfaces(node: Node, states: Mapping[str, InterfaceState]) -> Iterator[str]:
    for port, interface in node.interfaces.items():
        state = states.get(port)
        if state is None:
            yield f"port {port}: there is no interface {known_as(interface)!r}; correct it in the topology file"
        elif interface.mac_address is not None and state.mac_address not in ("", interface.mac_address.lower()):
            yield (
                f"port {port}: {known_as(interface)} has the MAC address {state.mac_address}, "
                f"and not {interface.mac_address}; correct it in the topology file"
            )
        elif interface.speed is not None and state.speed is not None and state.speed < interface.speed:
            yield (
                f"port {port}: the link of {known_as(interface)} has {format_bit_rate(state.speed)}, "
                f"and not {format_bit_rate(interface.speed)}"
            )


def _missing_tools(session: NodeSession, node: Node, facts: NodeFacts) -> Iterator[str]:
    if session.run("id", "-u").stdout.strip() != "0":
        yield "commands do not run as root; log in as root, or allow 'sudo -n' and write 'sudo: true'"
    if node.type is NodeType.DUT:
        for tool, package in _PACKAGES.items():
            if getattr(facts.tools, tool) is None:
                yield f"{tool} is missing (Debian package {package}); kinds of DUT made of the Linux kernel need it"
    if isinstance(node.generator, RealGenerator):
        yield from generator_needs(node.generator, session)


def _facts_in_words(facts: NodeFacts) -> str:
    cpus = None if facts.cpus is None else f"{facts.cpus} CPUs"
    kernel = None if facts.kernel is None else f"kernel {facts.kernel}"
    known = (facts.os, kernel, facts.architecture, facts.cpu_model, cpus, *facts.tools.model_dump().values())
    return ", ".join(fact for fact in known if fact is not None)


def _interface_in_words(state: InterfaceState) -> str:
    speed = "speed not known" if state.speed is None else format_bit_rate(state.speed)
    known = (state.name, state.driver, state.mac_address, state.state, speed)
    return ", ".join(fact for fact in known if fact)
