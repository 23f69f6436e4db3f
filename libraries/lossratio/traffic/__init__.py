"""Test traffic: what to send, the agent that sends it on the TG node, and the measurer that asks it for trials."""

from lossratio.traffic.agent_client import AgentClient, AgentFacts, AgentRefusalError
from lossratio.traffic.answers import StoppedTraffic
from lossratio.traffic.generator_access import GeneratorAccess
from lossratio.traffic.generators import open_generator
from lossratio.traffic.measurer import FALTERING, REPEATS, TrafficMeasurer
from lossratio.traffic.path_check import check_path
from lossratio.traffic.ports import PortPair, TrafficPort, make_configuration
from lossratio.traffic.profile import TrafficProfile, load_profile, profile_names

__all__ = [
    "FALTERING",
    "REPEATS",
    "AgentClient",
    "AgentFacts",
    "AgentRefusalError",
    "GeneratorAccess",
    "PortPair",
    "StoppedTraffic",
    "TrafficMeasurer",
    "TrafficPort",
    "TrafficProfile",
    "check_path",
    "load_profile",
    "make_configuration",
    "open_generator",
    "profile_names",
]
