"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .background import (
    LIVES as LIVES,
    BackgroundProgram as BackgroundProgram,
    before_ordinary as before_ordinary,
)
from .credentials import (
    NO_CREDENTIALS as NO_CREDENTIALS,
    Credentials as Credentials,
    own_name as own_name,
)
from .facts import (
    INTERFACES_OF_CARD as INTERFACES_OF_CARD,
    SPEED_UNIT as SPEED_UNIT,
    Card as Card,
    Core as Core,
    GatheredFacts as GatheredFacts,
    Hardware as Hardware,
    cores_in as cores_in,
    gather_facts as gather_facts,
    read_hardware as read_hardware,
)
from .namespaces import NETNS_DIRECTORY as NETNS_DIRECTORY, namespace_key as namespace_key
from .node import (
    NOT_FOUND as NOT_FOUND,
    SEARCH_PATH as SEARCH_PATH,
    DutNode as DutNode,
    Will as Will,
    reason as reason,
    shown as shown,
)
from .process import NodeProcess as NodeProcess, was_killed as was_killed
from .program import (
    NodeProgram as NodeProgram,
    pack_program as pack_program,
    read_sources as read_sources,
)
from .public_keys import is_public_key as is_public_key
from .pulse import Pulse as Pulse
from .session import (
    COMMAND_SECONDS as COMMAND_SECONDS,
    REPORT_SECONDS as REPORT_SECONDS,
    CommandResult as CommandResult,
    CommandRunner as CommandRunner,
    NodeSession as NodeSession,
)
