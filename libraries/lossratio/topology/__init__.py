"""The topology file: nodes, how to reach them, their interfaces, and the links between them.

Field names are those of FD.io CSIT's topology files wherever both mean the same.
"""

from lossratio.topology.addressing import EAST, WEST, Side, default_networks, split_sides
from lossratio.topology.containerlab import read_containerlab
from lossratio.topology.files import generator_problems, load_topology, twin_problems
from lossratio.topology.generators import (
    ADDED_GENERATORS,
    TREX_HOME,
    AfPacketGenerator,
    AutoGenerator,
    Generator,
    GeneratorSettings,
    RealGenerator,
    SimulatedGenerator,
    TrexCores,
    TrexGenerator,
    XdpGenerator,
)
from lossratio.topology.hooks import CountersHook, DescribeHook, Hook, Hooks, SnmpAgent
from lossratio.topology.lab_graph import import_lab
from lossratio.topology.model import (
    NIC_MODELS,
    AddressKind,
    NicLimits,
    NicModel,
    Node,
    NodeType,
    Reservation,
    TestbedKind,
    Topology,
    draw_topology,
)
from lossratio.topology.netlab import read_netlab
from lossratio.topology.path import Hop, Interface, Port, TrafficPath
from lossratio.topology.quantities import Duration, FileModel, FrameRate
from lossratio.topology.vpp import VppDriver, VppStart

__all__ = [
    "ADDED_GENERATORS",
    "EAST",
    "NIC_MODELS",
    "TREX_HOME",
    "WEST",
    "AddressKind",
    "AfPacketGenerator",
    "AutoGenerator",
    "CountersHook",
    "DescribeHook",
    "Duration",
    "FileModel",
    "FrameRate",
    "Generator",
    "GeneratorSettings",
    "Hook",
    "Hooks",
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
    "SnmpAgent",
    "TestbedKind",
    "Topology",
    "TrafficPath",
    "TrexCores",
    "TrexGenerator",
    "VppDriver",
    "VppStart",
    "XdpGenerator",
    "default_networks",
    "draw_topology",
    "generator_problems",
    "import_lab",
    "load_topology",
    "read_containerlab",
    "read_netlab",
    "split_sides",
    "twin_problems",
]
