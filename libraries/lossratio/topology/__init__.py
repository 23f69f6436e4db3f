"""The topology file: nodes, how to reach them, their interfaces, and the links between them.

Field names are those of FD.io CSIT's topology files wherever both mean the same.
"""

from lossratio.topology.addressing import EAST, WEST, Side, default_networks, split_sides
from lossratio.topology.checks import generator_problems, twin_problems
from lossratio.topology.drawing import draw_topology
from lossratio.topology.files import load_topology
from lossratio.topology.generators import (
    AfPacketGenerator,
    Generator,
    RealGenerator,
    SimulatedGenerator,
    TrexCores,
    TrexGenerator,
)
from lossratio.topology.model import NicLimits, TestbedKind, Topology
from lossratio.topology.nics import NIC_MODELS, NicModel
from lossratio.topology.nodes import Interface, Node, NodeType
from lossratio.topology.path import Hop, Port, TrafficPath
from lossratio.topology.quantities import FileModel, FrameRate
from lossratio.topology.reservation import Reservation

__all__ = [
    "EAST",
    "NIC_MODELS",
    "WEST",
    "AfPacketGenerator",
    "FileModel",
    "FrameRate",
    "Generator",
    "Hop",
    "Interface",
    "NicLimits",
    "NicModel",
    "Node",
    "NodeType",
    "Port",
    "RealGenerator",
    "Reservation",
    "Side",
    "SimulatedGenerator",
    "TestbedKind",
    "Topology",
    "TrafficPath",
    "TrexCores",
    "TrexGenerator",
    "default_networks",
    "draw_topology",
    "generator_problems",
    "load_topology",
    "split_sides",
    "twin_problems",
]
