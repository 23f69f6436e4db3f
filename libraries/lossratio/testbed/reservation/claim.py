"""The claim to a testbed: who wants it, for what, and where on the TG node its lease is kept."""

import os
import re
import secrets
import socket
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from lossratio.nodes import namespace_key, own_name
from lossratio.topology import Reservation, Topology

TOKEN_VARIABLE = "LOSSRATIO_RESERVATION"  # noqa: S105 (a name)
"""Environment variable with the token of an existing reservation, which is used instead of a new one."""
OWNER_VARIABLE = "LOSSRATIO_OWNER"
"""Environment variable with the owner's name; useful where user and host say little, as in a pipeline."""
_LAB_DIRECTORY = "/var/tmp/lossratio"  # noqa: S108 (shared by all users on purpose; the keeper follows no links there)
_LOCAL_DIRECTORY = "/run/lossratio"


@dataclass(frozen=True)
class Claim:
    """A wish to reserve a testbed. Make it with `make_claim`."""

    name: str
    """Name of the reservation."""
    directory: str
    """The directory of the reservation's file on the TG node."""
    python: str
    """The Python on the TG node."""
    seconds: float
    """Seconds that the lease lasts unless it is renewed."""
    owner: str
    """The owner of the lease."""
    purpose: str = ""
    """Its purpose, in the owner's words."""
    token: str | None = None
    """Token of a lease that the owner has already. If the lease is still valid, the claim continues it."""
    succeeds: str | None = None
    """Token of a lease whose process has ended. If the lease is still valid, the claim ends it and takes over."""

    def take(self, wait: float) -> dict[str, Any]:
        """The request for the lease."""
        lease = {
            "token": secrets.token_hex(16),
            "owner": self.owner,
            "process": os.getpid(),
            "purpose": self.purpose,
            "started": datetime.now(timezone.utc)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z"),
        }
        tokens = {"token": self.token, "succeeds": self.succeeds}
        return {
            **self.request("take"),
            **tokens,
            "seconds": self.seconds,
            "wait": wait,
            "lease": lease,
        }

    def request(self, operation: str, **fields: Any) -> dict[str, Any]:
        """The request for an operation of the keeper."""
        return {"op": operation, "directory": self.directory, "name": self.name, **fields}


def make_claim(
    topology: Topology,
    *,
    purpose: str = "",
    seconds: float | None = None,
    node_name: str | None = None,
) -> Claim | None:
    """The claim to a testbed, with the token from the environment; None: the topology has no reservation.

    The lease lasts this many seconds unless it is renewed; None: as the topology says. It is kept on the given node;
    None: on the TG, or the first of two.
    """
    reservation: Reservation | None = topology.reservation
    if reservation is None or topology.testbed == "simulated":
        return None

    default = _LOCAL_DIRECTORY if topology.testbed == "local" else _LAB_DIRECTORY
    tg = topology.nodes[node_name or topology.tg_name]
    # All namespaces of a machine share its directory of reservations.
    place = tg.container if tg.netns is None else namespace_key(tg.netns)
    name = reservation.name
    if place is not None:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", f"{reservation.name}-{place}")[:100]

    user = own_name() or os.geteuid()
    owner = os.environ.get(OWNER_VARIABLE) or f"{user}@{socket.gethostname()}"
    return Claim(
        name=name,
        directory=reservation.directory or default,
        python=getattr(topology.generator, "python", "python3"),
        seconds=seconds or reservation.lease,
        owner=owner,
        purpose=purpose,
        token=os.environ.get(TOKEN_VARIABLE) or None,
    )
