"""The topology file: nodes, how to reach them, their interfaces, and the links between them.

Field names are those of FD.io CSIT's topology files wherever both mean the same.
"""

from lossratio.topology.checks import generator_problems, twin_problems
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
from lossratio.topology.reservation import Reservation

__all__ = [
    "NIC_MODELS",
    "AfPacketGenerator",
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
    "SimulatedGenerator",
    "TestbedKind",
    "Topology",
    "TrafficPath",
    "TrexCores",
    "TrexGenerator",
    "generator_problems",
    "load_topology",
    "twin_problems",
]
