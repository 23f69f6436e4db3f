"""Test traffic: profiles of frames, generators, the agent on the TG, and the measurer that asks it for trials."""

from lossratio.traffic.agent.core.configuration import FCS_BYTES, Configuration, Direction
from lossratio.traffic.agent.core.neighbours import Question
from lossratio.traffic.answers import StoppedTraffic, WatchedTrial
from lossratio.traffic.client import ANSWER_SECONDS, AgentClient, AgentFacts, AgentRefusalError
from lossratio.traffic.configuration import PortPair, TrafficPort, make_configuration
from lossratio.traffic.generators import check_early_verdicts, load_generator, open_generator, start_agent
from lossratio.traffic.generators.afpacket import AfPacket
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.measurer import (
    CHECK_DURATION,
    CHECK_LOAD,
    FALTERING,
    IN_FLIGHT,
    REPEATS,
    DeadPathError,
    TrafficMeasurer,
    check_at_low_rate,
    check_path,
    with_largest_frames,
)
from lossratio.traffic.probe import Arrival, Marker, ProbeAnswer, send_probe, smallest_probe, vlans_of
from lossratio.traffic.profile import (
    TrafficDirection,
    TrafficProfile,
    address_span,
    addresses,
    frame_format,
    ip_versions,
    load_profile,
    modifiers,
    parse_frame_size,
    profile_names,
)

__all__ = [
    "ANSWER_SECONDS",
    "CHECK_DURATION",
    "CHECK_LOAD",
    "FALTERING",
    "FCS_BYTES",
    "IN_FLIGHT",
    "REPEATS",
    "AfPacket",
    "AgentClient",
    "AgentFacts",
    "AgentRefusalError",
    "Arrival",
    "Configuration",
    "DeadPathError",
    "Direction",
    "Generator",
    "GeneratorNode",
    "Marker",
    "PortPair",
    "ProbeAnswer",
    "Question",
    "StoppedTraffic",
    "TrafficDirection",
    "TrafficMeasurer",
    "TrafficPort",
    "TrafficProfile",
    "WatchedTrial",
    "address_span",
    "addresses",
    "check_at_low_rate",
    "check_early_verdicts",
    "check_path",
    "frame_format",
    "ip_versions",
    "load_generator",
    "load_profile",
    "make_configuration",
    "modifiers",
    "open_generator",
    "parse_frame_size",
    "profile_names",
    "send_probe",
    "smallest_probe",
    "start_agent",
    "vlans_of",
    "with_largest_frames",
]
