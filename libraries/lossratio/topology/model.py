"""A testbed as its file describes it: nodes, links between them, and the way of the test traffic."""

from __future__ import annotations

import itertools
from enum import Enum
from typing import Literal

from pydantic import Field

from lossratio.errors import TopologyError
from lossratio.topology.nodes import Node, NodeType
from lossratio.topology.path import Hop, Port, TrafficPath
from lossratio.topology.quantities import FileModel


class TestbedKind(str, Enum):
    """Where the nodes come from."""

    __test__ = False
    LAB = "lab"
    LOCAL = "local"
    SIMULATED = "simulated"


class Topology(FileModel):
    """A testbed. Read it with `load_topology`."""

    format: Literal["lossratio-topology/1"]
    """Format of the file."""
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the testbed; it is in every result."""
    description: str = ""
    """What is special about it."""
    testbed: TestbedKind = TestbedKind.LAB
    """lab: the nodes are there. local: network namespaces are built. simulated: nothing real at all."""
    nodes: dict[str, Node] = Field(min_length=1)
    """Nodes by name, e.g. TG, DUT1."""

    @property
    def tg_name(self) -> str:
        """Name of the node that generates the traffic."""
        return next(name for name, node in self.nodes.items() if node.type is NodeType.TG)

    @property
    def dut_names(self) -> tuple[str, ...]:
        """Names of the DUTs, in the order of the file."""
        return tuple(name for name, node in self.nodes.items() if node.type is NodeType.DUT)

    def links(self) -> dict[str, tuple[Port, ...]]:
        """The ends of every link, by the link's name."""
        links: dict[str, tuple[Port, ...]] = {}
        for node_name, node in self.nodes.items():
            for name, interface in node.interfaces.items():
                links[interface.link] = (*links.get(interface.link, ()), Port(node_name, name, interface))
        return links

    def path(self) -> TrafficPath:
        """The way of the test traffic through all DUTs; per hop the first unused common link in the file's order.

        Raises:
            TopologyError: If two neighbours on the way have no unused link in common.
        """
        stops = (self.tg_name, *self.dut_names, self.tg_name)
        used: set[str] = set()
        ends: list[tuple[Port, Port]] = []
        for here, there in itertools.pairwise(stops):
            ends.append(self._first_link(here, there, used))
        hops = tuple(
            Hop(name, arriving[1], leaving[0])
            for name, (arriving, leaving) in zip(self.dut_names, itertools.pairwise(ends), strict=True)
        )
        return TrafficPath(self.tg_name, ends[0][0], ends[-1][1], hops)

    def _first_link(self, here: str, there: str, used: set[str]) -> tuple[Port, Port]:
        for link, (first, second) in ((name, ports) for name, ports in self.links().items() if name not in used):
            for one, other in ((first, second), (second, first)):
                if (one.node_name, other.node_name) == (here, there):
                    used.add(link)
                    return one, other
        raise TopologyError(
            f"Topology {self.name}: no unused link between {here} and {there}. "
            f"The traffic goes from the TG through every DUT and back, so each two neighbours need a link of their own."
        )
