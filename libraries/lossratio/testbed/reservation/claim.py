"""The claim to a testbed: what is reserved, for whom, and for how long."""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from lossratio.topology import Reservation, TestbedKind, Topology

TOKEN_VARIABLE = "LOSSRATIO_RESERVATION"  # noqa: S105 (a name)
"""Environment variable with the token of a reservation that is there already, and is used instead of a new one."""

OWNER_VARIABLE = "LOSSRATIO_OWNER"
"""Environment variable with the owner's name, where user and host say little, as in a pipeline."""

_LAB_DIRECTORY = "/var/tmp/lossratio"  # noqa: S108 (shared by all users on purpose; the keeper follows no links there)
_LOCAL_DIRECTORY = "/run/lossratio"


@dataclass(frozen=True)
class Claim:
    """A wish to reserve a testbed. Make it with `make_claim`.

    Attributes:
        name: What is to be reserved.
        directory: Where that is kept on the TG node.
        python: The Python on the TG node.
        seconds: How long the lease lasts without being renewed.
        owner: The owner of the lease.
        purpose: Its purpose, in the owner's words.
        token: Token of a lease that the owner has already. If it still holds, the claim continues it.
        succeeds: Token of a lease whose process has ended. If it still holds, the claim ends it and takes it over.
    """

    name: str
    directory: str
    python: str
    seconds: float
    owner: str
    purpose: str = ""
    token: str | None = None
    succeeds: str | None = None

    def take(self, wait: float) -> dict[str, Any]:
        """The request for the lease.

        Args:
            wait: Seconds to wait for it at most.
        """
        lease = {
            "token": secrets.token_hex(16),
            "owner": self.owner,
            "process": os.getpid(),
            "purpose": self.purpose,
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        tokens = {"token": self.token, "succeeds": self.succeeds}
        return {**self._place("take"), **tokens, "seconds": self.seconds, "wait": wait, "lease": lease}

    def status(self) -> dict[str, Any]:
        """The request that asks for the holder."""
        return self._place("status")

    def clear(self, *, force: bool) -> dict[str, Any]:
        """The request to take the lease away from its holder.

        Args:
            force: Also if the holder is another owner.
        """
        return {**self._place("clear"), "owner": self.owner, "force": force}

    def _place(self, operation: str) -> dict[str, Any]:
        return {"op": operation, "directory": self.directory, "name": self.name}


def make_claim(topology: Topology, *, purpose: str = "", seconds: float | None = None) -> Claim | None:
    """The claim to a testbed, with the token in the environment; None: its topology has no reservation.

    Args:
        topology: The testbed.
        purpose: What it is for.
        seconds: How long the lease lasts without being renewed; None: as the topology says.
    """
    reservation: Reservation | None = topology.reservation
    if reservation is None or topology.testbed is TestbedKind.SIMULATED:
        return None
    default = _LOCAL_DIRECTORY if topology.testbed is TestbedKind.LOCAL else _LAB_DIRECTORY
    return Claim(
        name=reservation.name,
        directory=reservation.directory or default,
        python=getattr(topology.nodes[topology.tg_name].generator, "python", "python3"),
        seconds=seconds or reservation.lease,
        owner=os.environ.get(OWNER_VARIABLE) or f"{getpass.getuser()}@{socket.gethostname()}",
        purpose=purpose,
        token=os.environ.get(TOKEN_VARIABLE) or None,
    )
