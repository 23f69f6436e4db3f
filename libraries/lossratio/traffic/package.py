"""Packs the traffic agent into the one file that is put on the TG node."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from importlib.resources import files

_AGENT = "traffic/agent"
_PACKAGE = "lossratio_agent"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_START = f"""\
import sys

if sys.version_info < (3, 8):
    sys.exit("The traffic agent needs Python 3.8 or later, and this is Python " + sys.version.split()[0] + ".")
from {_PACKAGE}.server import main

main()
"""


@dataclass(frozen=True)
class AgentPackage:
    """The agent as one file (a zipapp), the same bytes from the same sources.

    Attributes:
        data: The file.
        digest: Its SHA-256, in hexadecimal.
    """

    data: bytes
    digest: str

    @property
    def file_name(self) -> str:
        """Name of the file; other contents have another name."""
        return f"agent-{self.digest[:16]}.pyz"


def pack_agent() -> AgentPackage:
    """Packs the agent."""
    sources = {
        f"{_PACKAGE}/{entry.name}": entry.read_bytes()
        for entry in files("lossratio").joinpath(_AGENT).iterdir()
        if entry.name.endswith(".py")
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, source in sorted({**sources, "__main__.py": _START.encode()}.items()):
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), source)
    data = buffer.getvalue()
    return AgentPackage(data, hashlib.sha256(data).hexdigest())
