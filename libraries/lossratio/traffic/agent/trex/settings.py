"""How the agent reaches a TRex server: the settings of its program, and TRex's Python client.

The client is the installation's own one, or else the package ``trex-stl-lib``.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

from ..core.protocol import AgentError, Message

_OWN_CLIENTS = (
    ("automation/trex_control_plane/interactive", "trex.stl.api"),
    ("automation/trex_control_plane/stl", "trex_stl_lib.api"),
)
_PACKAGED_CLIENT = "trex_stl_lib.api"
_SERVER = "_t-rex-64"
_EXTERNAL_LIBRARIES = "TREX_EXT_LIBS"


@dataclass(frozen=True)
class TrexSettings:
    """How to reach a TRex server, and what its ports are. The controller's side makes it, too.

    Attributes:
        directory: The installation that the server runs from.
        ports: TRex's numbers of the ports, by the names that the configuration has for them.
        rpc_port: TCP port of its requests.
        publisher_port: TCP port of its events.
        uses_linux: Whether the ports are Linux interfaces, which it sends on through packet sockets.
        connect_timeout: Seconds that it may take to get ready.
        late_end: Seconds after a trial's end within which its traffic must have ended by itself; what is sent later
            than that was sent too slowly.
        largest_frame: Bytes, with FCS, of the largest frame that its buffers are made for.
        log: File that the server writes its log into.
        is_ours: Whether lossratio started the server, so that nobody else can use it. Its ports are then taken from
            their owner, an earlier agent that was killed.
    """

    directory: str
    ports: dict[str, int]
    rpc_port: int
    publisher_port: int
    uses_linux: bool
    connect_timeout: float
    late_end: float
    largest_frame: int
    log: str
    is_ours: bool

    def to_json(self) -> Message:
        """The settings as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Message) -> TrexSettings:
        """Reads the data that `to_json` wrote.

        Raises:
            AgentError: Of kind ``bad_request``.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise AgentError("bad_request", f"The settings of TRex cannot be read: {error}.") from error


@dataclass(frozen=True)
class TrexLibrary:
    """TRex's Python client.

    Attributes:
        api: The module with its names (``STLClient``, ``STLStream`` ...).
        origin: Where it comes from, for people.
    """

    api: Any
    origin: str


def load_library(directory: str) -> TrexLibrary:
    """Imports the client that belongs to an installation; where that has none, the package of its age.

    Args:
        directory: The installation, i.e. the directory with ``_t-rex-64`` in it.

    Raises:
        AgentError: If there is no installation, or no client that this Python can import.
    """
    if not os.path.isdir(directory):
        raise AgentError(
            "no_installation",
            f"There is no TRex on this node: no directory {directory!r}. Unpack TRex there, or correct the generator's "
            "'directory' in the topology file (or TREX_HOME).",
        )
    for place, module in _OWN_CLIENTS:
        path = os.path.join(directory, place)
        if os.path.isdir(path):
            return TrexLibrary(_import_own(directory, path, module), path)
    if not os.path.exists(os.path.join(directory, _SERVER)):
        raise AgentError(
            "wrong_directory",
            f"{directory!r} on this node holds no TRex: neither {_SERVER} nor {_OWN_CLIENTS[0][0]}. The generator's "
            "'directory' in the topology file (or TREX_HOME) is the one with the server's program in it.",
        )
    return TrexLibrary(_import_packaged(directory), "the Python package trex-stl-lib")


def _import_own(directory: str, path: str, module: str) -> Any:
    external = os.path.join(directory, "external_libs")
    if os.path.isdir(external):
        os.environ.setdefault(_EXTERNAL_LIBRARIES, external)
    sys.path.insert(0, path)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == "cgi":
            raise AgentError(
                "python",
                f"TRex's client in {path} needs Python's module cgi, which Python {sys.version.split()[0]} does not "
                "have any more. Set the generator's 'python' in the topology file to a Python 3.8 to 3.12.",
            ) from error
        raise AgentError(
            "missing_module", f"TRex's client in {path} needs a module that is missing: {error}."
        ) from error
    # Importing somebody else's code may raise anything.
    except Exception as error:
        raise AgentError("wrong_directory", f"TRex's client in {path} cannot be used: {error}") from error


def _import_packaged(directory: str) -> Any:
    try:
        return importlib.import_module(_PACKAGED_CLIENT)
    except ImportError as error:
        raise AgentError(
            "missing_module",
            f"{directory} has a TRex server without its Python client, and the package that replaces it cannot be "
            f"imported: {error}. Install it on this node (pip install trex-stl-lib), for a Python 3.8 to 3.11.",
        ) from error
