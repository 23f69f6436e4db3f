"""A testbed as its file describes it: nodes, links between them, and the way of the test traffic."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Literal

from pydantic import Field

from lossratio.errors import TopologyError
from lossratio.topology.nics import NIC_MODELS, NicModel
from lossratio.topology.nodes import Node, NodeType
from lossratio.topology.path import Port, TrafficPath, find_paths
from lossratio.topology.quantities import BitRate, FileModel, FileName, FrameRate, Label
from lossratio.topology.reservation import Reservation


class TestbedKind(str, Enum):
    """Where the nodes come from."""

    __test__ = False
    LAB = "lab"
    LOCAL = "local"
    SIMULATED = "simulated"


class NicLimits(FileModel):
    """What one port of a NIC model can do at most, in each direction."""

    max_frame_rate: FrameRate | None = None
    """Frames per second, of whatever size."""
    max_bit_rate: BitRate | None = None
    """Bits per second on the wire."""


class Topology(FileModel):
    """A testbed. Read it with `load_topology`."""

    format: Literal["lossratio-topology/1"]
    """Format of the file."""
    name: FileName
    """Name of the testbed; it is in every result."""
    description: str = ""
    """What is special about it."""
    testbed: TestbedKind = TestbedKind.LAB
    """lab: the nodes are there. local: network namespaces are built. simulated: nothing real at all."""
    nics: dict[Label, NicLimits] = Field(default_factory=dict)
    """NIC models of the lab's own, by the name that interfaces give as their model."""
    nodes: dict[FileName, Node] = Field(min_length=1)
    """Nodes by name, e.g. TG, DUT1."""
    reservation: Reservation | None = Reservation()
    """How it is reserved; null: not at all, where nobody else ever uses it."""

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
                if interface.link is None:
                    continue
                links[interface.link] = (*links.get(interface.link, ()), Port(node_name, name, interface))
        return links

    def path(self, *, duts: int | None = None, nic: str | None = None) -> TrafficPath:
        """The way of the test traffic; per hop the first unused common link in the file's order.

        Args:
            duts: Through how many DUTs it goes, in the order of the file; None: through all.
            nic: NIC model that the DUTs' ports must have, e.g. ``Intel-E810CQ``; None: any.

        Raises:
            TopologyError: If there are not so many DUTs, or two neighbours on the way have no unused link in common.
        """
        return self.paths(1, duts=duts, nic=nic)[0]

    def paths(self, count: int, *, duts: int | None = None, nic: str | None = None) -> tuple[TrafficPath, ...]:
        """Parallel ways of the test traffic, which have no link in common.

        Args:
            count: How many.
            duts: Through how many DUTs each goes, in the order of the file; None: through all.
            nic: NIC model that the DUTs' ports must have, e.g. ``Intel-E810CQ``; None: any.

        Raises:
            TopologyError: If there are not so many; says how many there are.
        """
        if count < 1:
            raise TopologyError(f"Topology {self.name}: {count} parallel links are asked for; take 1 or more.")
        names = self.dut_names
        if duts is not None and not 0 <= duts <= len(names):
            raise TopologyError(
                f"Topology {self.name}: the path is longer than the topology: it is asked to go through {duts} DUTs, "
                f"and there are {len(names)} ({', '.join(names) or 'none'})."
            )
        try:
            paths = find_paths(self.links(), self.tg_name, names[:duts], nic, count)
        except TopologyError as error:
            raise TopologyError(f"Topology {self.name}: {error}") from error
        return tuple(self._completed(path, number if count > 1 else None) for number, path in enumerate(paths, start=1))

    def _completed(self, path: TrafficPath, link: int | None) -> TrafficPath:
        hops = (replace(hop, uio_driver=self.nodes[hop.node_name].uio_driver, link=link) for hop in path.hops)
        return replace(path, hops=tuple(hops))

    def nic_model(self, port: Port) -> NicModel | None:
        """What a port can do at most; None: its model is not given, or not known."""
        name = port.interface.model
        if name is None:
            return None
        own = {nic.casefold(): limits for nic, limits in self.nics.items()}.get(name.casefold())
        if own is not None:
            return NicModel(name, own.max_frame_rate, own.max_bit_rate)
        return NIC_MODELS.get(name.lower())
