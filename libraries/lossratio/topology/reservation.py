"""How a testbed is reserved."""

from __future__ import annotations

from pydantic import Field

from lossratio.topology.quantities import Duration, FileModel, NodePath


class Reservation(FileModel):
    """How a testbed is reserved on its TG node, so that two never measure on it at once."""

    name: str = Field(default="testbed", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=100)
    """What is reserved. Topologies that share a TG, but no interface and no DUT, have a name each."""
    lease: Duration = 60.0
    """Seconds after which the reservation of a job that has died ends by itself; it is renewed four times as often."""
    directory: NodePath | None = None
    """Where it is kept on the TG, writable for everybody who reserves it; where missing, ``/var/tmp/lossratio``."""
