"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .addressing import (
    EAST as EAST,
    WEST as WEST,
    Address as Address,
    Side as Side,
    split_sides as split_sides,
)
from .containerlab import read_containerlab as read_containerlab
from .files import load_topology as load_topology
from .generators import (
    GENERATORS as GENERATORS,
    TREX_HOME as TREX_HOME,
    AfPacketGenerator as AfPacketGenerator,
    AutoGenerator as AutoGenerator,
    Generator as Generator,
    GeneratorSettings as GeneratorSettings,
    RealGenerator as RealGenerator,
    SimulatedGenerator as SimulatedGenerator,
    TrexGenerator as TrexGenerator,
    XdpGenerator as XdpGenerator,
    generator_settings as generator_settings,
)
from .hooks import (
    CountersHook as CountersHook,
    DescribeHook as DescribeHook,
    Hook as Hook,
    Hooks as Hooks,
)
from .lab_graph import import_lab as import_lab
from .model import (
    NIC_MODELS as NIC_MODELS,
    WAYS_IN as WAYS_IN,
    NicModel as NicModel,
    Node as Node,
    Reservation as Reservation,
    Topology as Topology,
    draw_topology as draw_topology,
)
from .path import Hop as Hop, Interface as Interface, Port as Port, TrafficPath as TrafficPath
from .quantities import (
    Duration as Duration,
    FileName as FileName,
    FrameRate as FrameRate,
    MacAddress as MacAddress,
    as_file_name as as_file_name,
    is_interface_name as is_interface_name,
)
from .vpp import VppStart as VppStart
