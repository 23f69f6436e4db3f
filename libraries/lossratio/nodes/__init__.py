"""Sessions on the nodes of a testbed over SSH: commands, files, and long-lived processes that exchange lines."""

from lossratio.nodes.background import LIVES, BackgroundProgram, before_ordinary
from lossratio.nodes.credentials import NO_CREDENTIALS, Credentials, own_name
from lossratio.nodes.facts import (
    INTERFACES_OF_CARD,
    SPEED_UNIT,
    Card,
    Core,
    GatheredFacts,
    Hardware,
    cores_in,
    gather_facts,
    read_hardware,
)
from lossratio.nodes.namespaces import NETNS_DIRECTORY, namespace_key
from lossratio.nodes.node import NOT_FOUND, SEARCH_PATH, DutNode, Will, reason, shown
from lossratio.nodes.process import NodeProcess, was_killed
from lossratio.nodes.program import NodeProgram, pack_program, read_sources
from lossratio.nodes.public_keys import is_public_key
from lossratio.nodes.pulse import Pulse
from lossratio.nodes.session import (
    COMMAND_SECONDS,
    REPORT_SECONDS,
    CommandResult,
    CommandRunner,
    NodeSession,
)
