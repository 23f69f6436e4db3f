"""The traffic generators that a TG may have."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lossratio.topology.quantities import Duration, FileModel, FileName, FrameRate, NodePath, ProgramName

_LATE_END_OF_SOFTWARE = 0.03
_LATE_END_OF_CARDS = 0.001


class _LimitedGenerator(FileModel):
    """What is known of the most that a generator can send."""

    max_rate: FrameRate | None = None
    """The most frames per second that it is known to send per interface: the default max load of a search. A simulated
    generator leaves more than that unsent."""
    self_test: str | None = None
    """File with what its self-test found, as seen from the topology file: the default max load, too, where it knows
    the frames."""


class AfPacketGenerator(_LimitedGenerator):
    """The embedded generator: plain Linux packet sockets."""

    kind: Literal["afpacket"]
    python: ProgramName = "python3"
    """Python 3.8 or later on the TG node, with numpy."""
    catch_up: Duration | None = None
    """Seconds of traffic that it makes up for, in one burst, after the machine stalled it; what is older stays unsent.
    Where missing, 1 ms. More only suits DUTs whose queues hold such a burst."""


class TrexCores(FileModel):
    """The CPUs of one pair of TRex's ports."""

    socket: int = Field(default=0, ge=0)
    """Their NUMA node: the one that the cards are on."""
    threads: tuple[Annotated[int, Field(ge=0)], ...] = Field(min_length=1)
    """Their numbers; each sends on both ports."""


class TrexGenerator(_LimitedGenerator):
    """TRex in its stateless mode, which is started on the TG where it does not run already."""

    kind: Literal["trex"]
    directory: NodePath | None = None
    """The installation on the TG, the directory with ``_t-rex-64`` in it; where missing, the environment variable
    TREX_HOME of the one who runs the suite."""
    python: ProgramName = "python3"
    """Python 3.8 to 3.12 on the TG node, for TRex's own client."""
    software: bool = False
    """Whether it sends through packet sockets on Linux interfaces, instead of with cards that DPDK drives. Needs no
    hugepages, and is slow."""
    jumbo: bool = False
    """Whether it is to send frames of more than 1518 bytes, up to 9000."""
    master_core: int | None = Field(default=None, ge=0)
    """CPU of TRex's master thread."""
    latency_core: int | None = Field(default=None, ge=0)
    """CPU of its thread for latency and for what is received."""
    cores: tuple[TrexCores, ...] = ()
    """The CPUs of each pair of ports; where missing, TRex chooses one."""
    prefix: FileName | None = None
    """Name that keeps servers apart that run on one TG; they need ports of their own, too."""
    rpc_port: int = Field(default=4501, ge=1, le=65535)
    """TCP port of its requests."""
    publisher_port: int = Field(default=4500, ge=1, le=65535)
    """TCP port of its events."""
    arguments: tuple[str, ...] = ()
    """What else to give to its program, e.g. ``[--mbuf-factor, "2"]``."""
    start_timeout: Duration = 60.0
    """Seconds that it may take to start."""
    late_end: Duration | None = None
    """Seconds after a trial's end within which TRex must have ended its traffic by itself. One that needs longer has
    sent too slowly: what it did not send by then is unsent. Where missing, 30 ms in software mode, where it sends in
    batches, and 1 ms with cards."""

    @property
    def allowed_late_end(self) -> float:
        """`late_end` in seconds, also where it is missing."""
        if self.late_end is not None:
            return self.late_end
        return _LATE_END_OF_SOFTWARE if self.software else _LATE_END_OF_CARDS

    @model_validator(mode="after")
    def _goes_together(self) -> TrexGenerator:
        threads = [thread for pair in self.cores for thread in pair.threads]
        others = [core for core in (self.master_core, self.latency_core) if core is not None]
        if len(others) != (2 if self.cores else 0):
            raise ValueError("'cores', 'master_core' and 'latency_core' go together: give all of them, or none")
        if len({len(pair.threads) for pair in self.cores}) > 1:
            raise ValueError("each pair of ports needs the same number of 'threads'")
        taken = [*threads, *others]
        if self.rpc_port == self.publisher_port:
            raise ValueError("'rpc_port' and 'publisher_port' must differ")
        if len(set(taken)) < len(taken):
            raise ValueError("each CPU can only be used once among 'cores', 'master_core' and 'latency_core'")
        return self


class SimulatedGenerator(_LimitedGenerator):
    """A generator on a virtual clock, for simulated testbeds."""

    kind: Literal["simulated"]
    overhead: Duration | None = None
    """Virtual seconds that a trial takes beyond its own duration."""
    seed: int = 1
    """Seed of all random numbers."""


RealGenerator = AfPacketGenerator | TrexGenerator
"""Generators of real frames."""

Generator = Annotated[AfPacketGenerator | TrexGenerator | SimulatedGenerator, Field(discriminator="kind")]
