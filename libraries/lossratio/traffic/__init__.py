"""Test traffic: what to send, the agent that sends it on the TG node, and the measurer that asks it for trials."""

from lossratio.traffic.agent.configuration import Configuration
from lossratio.traffic.agent_client import ANSWER_SECONDS, AgentClient, AgentFacts, AgentRefusalError
from lossratio.traffic.answers import StoppedTraffic
from lossratio.traffic.frame_sizes import parse_frame_size
from lossratio.traffic.generators.afpacket import AfPacket
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.generators.registry import generator_needs, load_generator, open_generator
from lossratio.traffic.measurer import FALTERING, REPEATS, TrafficMeasurer
from lossratio.traffic.path_check import (
    CHECK_DURATION,
    CHECK_LOAD,
    DeadPathError,
    check_at_low_rate,
    check_path,
    with_largest_frames,
)
from lossratio.traffic.ports import PortPair, TrafficPort, make_configuration
from lossratio.traffic.profile import TrafficDirection, TrafficProfile, load_profile, profile_names
from lossratio.traffic.wording import addresses, frame_format, ip_versions, modifiers

__all__ = [
    "ANSWER_SECONDS",
    "CHECK_DURATION",
    "CHECK_LOAD",
    "FALTERING",
    "REPEATS",
    "AfPacket",
    "AgentClient",
    "AgentFacts",
    "AgentRefusalError",
    "Configuration",
    "DeadPathError",
    "Generator",
    "GeneratorNode",
    "PortPair",
    "StoppedTraffic",
    "TrafficDirection",
    "TrafficMeasurer",
    "TrafficPort",
    "TrafficProfile",
    "addresses",
    "check_at_low_rate",
    "check_path",
    "frame_format",
    "generator_needs",
    "ip_versions",
    "load_generator",
    "load_profile",
    "make_configuration",
    "modifiers",
    "open_generator",
    "parse_frame_size",
    "profile_names",
    "with_largest_frames",
]
