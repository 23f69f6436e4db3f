"""The traffic generators that a TG may have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lossratio.topology.quantities import Duration, FileModel, FrameRate


class AfPacketGenerator(FileModel):
    """The embedded generator: plain Linux packet sockets."""

    kind: Literal["afpacket"]
    python: str = "python3"
    """Python 3.8 or later on the TG node, with numpy."""
    max_rate: FrameRate | None = None
    """The most frames per second that it is known to send per interface: the default max load of a search."""


class SimulatedGenerator(FileModel):
    """A generator on a virtual clock, for simulated testbeds."""

    kind: Literal["simulated"]
    max_rate: FrameRate | None = None
    """The most frames per second it can send per interface; more are unsent."""
    overhead: Duration | None = None
    """Virtual seconds that a trial takes beyond its own duration."""
    seed: int = 1
    """Seed of all random numbers."""


Generator = Annotated[AfPacketGenerator | SimulatedGenerator, Field(discriminator="kind")]
