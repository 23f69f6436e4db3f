"""Finds TRex's Python client: the installation's own one, or else the package ``trex-stl-lib``."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any

from .protocol import AgentError

_OWN_CLIENTS = (
    ("automation/trex_control_plane/interactive", "trex.stl.api"),
    ("automation/trex_control_plane/stl", "trex_stl_lib.api"),
)
_PACKAGED_CLIENT = "trex_stl_lib.api"
_SERVER = "_t-rex-64"
_EXTERNAL_LIBRARIES = "TREX_EXT_LIBS"


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
