"""Test traffic: profiles of frames, generators, the agent on the TG, and the measurer that asks it for trials."""

from lossratio.traffic.agent.core.configuration import Configuration
from lossratio.traffic.client.agent import ANSWER_SECONDS, AgentClient, AgentFacts, AgentRefusalError, StoppedTraffic
from lossratio.traffic.client.measurer import FALTERING, REPEATS, TrafficMeasurer
from lossratio.traffic.client.path_check import (
    CHECK_DURATION,
    CHECK_LOAD,
    DeadPathError,
    check_at_low_rate,
    check_path,
    with_largest_frames,
)
from lossratio.traffic.generators import generator_needs, load_generator, open_generator
from lossratio.traffic.generators.afpacket import AfPacket
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.profile.configuration import PortPair, TrafficPort, make_configuration
from lossratio.traffic.profile.profile import (
    TrafficDirection,
    TrafficProfile,
    load_profile,
    parse_frame_size,
    profile_names,
)
from lossratio.traffic.profile.wording import addresses, frame_format, ip_versions, modifiers

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
