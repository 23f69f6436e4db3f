"""Sessions on the nodes of a testbed over SSH: commands, files, and long-lived processes that speak in lines."""

from lossratio.nodes.background import LIVES, BackgroundProgram
from lossratio.nodes.connection import NO_CREDENTIALS, Credentials, is_public_key
from lossratio.nodes.facts import GatheredFacts, gather_facts
from lossratio.nodes.node import DutNode, reason, shown
from lossratio.nodes.process import NodeProcess, Pulse
from lossratio.nodes.program import NodeProgram, pack_program, read_sources
from lossratio.nodes.session import CommandResult, CommandRunner, NodeSession

__all__ = [
    "LIVES",
    "NO_CREDENTIALS",
    "BackgroundProgram",
    "CommandResult",
    "CommandRunner",
    "Credentials",
    "DutNode",
    "GatheredFacts",
    "NodeProcess",
    "NodeProgram",
    "NodeSession",
    "Pulse",
    "gather_facts",
    "is_public_key",
    "pack_program",
    "read_sources",
    "reason",
    "shown",
]
