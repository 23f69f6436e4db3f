"""What can be wrong with a topology whose fields are right one by one."""

from __future__ import annotations

from collections.abc import Iterator

from lossratio.errors import TopologyError
from lossratio.topology.generators import SimulatedGenerator
from lossratio.topology.model import TestbedKind, Topology
from lossratio.topology.nodes import Node, NodeType
from lossratio.yaml_file import Problem


def topology_problems(topology: Topology) -> Iterator[Problem]:
    """Finds what is wrong with a topology whose fields are right one by one."""
    found = [*_node_type_problems(topology), *_link_problems(topology)]
    for name, node in topology.nodes.items():
        found += _node_problems(topology.testbed, name, node)
        found += _interface_problems(topology.testbed, name, node)
    yield from found
    if not found:
        try:
            topology.path()
        except TopologyError as error:
            yield ("nodes",), str(error)


def _node_type_problems(topology: Topology) -> Iterator[Problem]:
    generators = [name for name, node in topology.nodes.items() if node.type is NodeType.TG]
    if len(generators) != 1:
        yield ("nodes",), f"there must be exactly one node of type TG, and there are {len(generators)}"


def _link_problems(topology: Topology) -> Iterator[Problem]:
    for link, ports in topology.links().items():
        if len(ports) != 2:
            ends = ", ".join(str(port) for port in ports)
            last = ports[-1]
            where = ("nodes", last.node_name, "interfaces", last.name, "link")
            yield where, f"link {link!r} must have two ends, and has {len(ports)}: {ends}"


def _node_problems(testbed: TestbedKind, name: str, node: Node) -> Iterator[Problem]:
    where = ("nodes", name)
    simulated = testbed is TestbedKind.SIMULATED
    if node.type is NodeType.TG and node.generator is None:
        yield where, "a TG without a generator; add e.g. 'generator: {kind: afpacket}'"
    if node.type is NodeType.DUT and node.generator is not None:
        yield (*where, "generator"), "only a TG has a generator"
    if node.generator is not None and simulated != isinstance(node.generator, SimulatedGenerator):
        yield (*where, "generator"), f"kind {node.generator.kind!r} does not go with 'testbed: {testbed.value}'"
    if node.sut is not None and not simulated:
        yield (*where, "sut"), "a model of the SUT only goes with 'testbed: simulated'"
    if node.host is None and testbed is TestbedKind.LAB:
        yield where, "no 'host' to reach the node at"


def _interface_problems(testbed: TestbedKind, name: str, node: Node) -> Iterator[Problem]:
    names: set[str] = set()
    for port, interface in node.interfaces.items():
        where = ("nodes", name, "interfaces", port)
        if interface.name in names:
            yield (*where, "name"), f"another interface of {name} has the name {interface.name!r} as well"
        if interface.name is not None:
            names.add(interface.name)
        elif testbed is TestbedKind.LOCAL:
            yield where, "an interface of a local testbed needs a 'name'"
        elif testbed is TestbedKind.LAB and interface.pci_address is None:
            yield where, "neither a 'name' nor a 'pci_address'"
