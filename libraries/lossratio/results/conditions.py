"""The conditions of a measurement: everything but the numbers that RFC 9971 wants stated in a test report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.records import Rate, Ratio, Record, make_rate
from lossratio.results.facts import ControllerFacts, NodeFacts
from lossratio.results.timing import Deviation, TrialTiming
from lossratio.topology import TestbedKind, Topology, TrafficPath


class Testbed(Record):
    """Where it was measured."""

    __test__ = False

    name: str
    """Name of the testbed."""
    file: str | None
    """The topology file, as it was given."""
    topology: dict[str, JsonValue]
    """The topology file's contents, with all defaults."""
    path: tuple[str, ...] = ()
    """The ports that the test traffic goes through, from west to east, e.g. ``TG.port0``; those of parallel links one
    link after the other."""
    links: int = Field(default=1, ge=1)
    """How many parallel links the traffic takes; each is an equal part of ``path``."""

    @property
    def is_simulated(self) -> bool:
        """Whether there is a model in place of devices."""
        return self.topology.get("testbed") == TestbedKind.SIMULATED.value

    @property
    def in_words(self) -> str:
        """The testbed's name; and that it is none, where no frame was ever sent."""
        return f"{self.name} (simulated: no frame was sent)" if self.is_simulated else self.name


def describe_testbed(topology: Topology, file: str | None, paths: Sequence[TrafficPath]) -> Testbed:
    """The testbed that a topology describes.

    Args:
        topology: The topology.
        file: The file that it was read from.
        paths: The parallel ways of the test traffic through it.
    """
    ports = tuple(str(port) for path in paths for port in path.ports)
    described = topology.model_dump(mode="json")
    return Testbed(name=topology.name, file=file, topology=described, path=ports, links=len(paths))


class FrameSizeShare(Record):
    """One of the frame sizes of the traffic."""

    size_bytes: int = Field(gt=0)
    """Size of the frame, with its frame check sequence."""
    share_ratio: Ratio
    """Share of the frames that have this size."""


class Traffic(Record):
    """The traffic profile: what is said about it in words that hold for any generator, and the whole of it as data."""

    name: str
    """Name of the traffic profile."""
    frame_sizes: tuple[FrameSizeShare, ...] = Field(min_length=1)
    """The frame sizes."""
    average_frame_size_bytes: float = Field(gt=0)
    """Average frame size, with the frame check sequence; it turns frame rates into bandwidth."""
    frame_format: str
    """Protocols of the frame from the outside in, e.g. ``Ethernet II, IPv4, UDP``."""
    addresses: str
    """Source and destination addresses."""
    modifiers: str
    """What changes from frame to frame, e.g. ``254 source addresses in turn``; ``none`` if nothing does."""
    ip_versions: dict[str, Ratio]
    """Shares of the frames by IP version (``IPv4``, ``IPv6``); empty if there is no IP in them."""
    pattern: Literal["unidirectional", "bidirectional"]
    """Whether traffic goes one way, or both ways; what each direction sends of a load is in its semantics."""
    meshed: bool = False
    """Whether each transmitting interface sends to more than one other."""
    load_shape: Literal["constant"] = "constant"
    """How the load of a trial develops: it is the same all the time, without bursts."""
    profile: dict[str, JsonValue]
    """The traffic profile in full, with all defaults."""


class LoadSemantics(Record):
    """What a load is. Make it with `load_semantics`."""

    applies_to: str = "each transmitting interface"
    """Which interfaces send what a load says; the others send their share of it."""
    directions: tuple[str, ...] = Field(min_length=1)
    """The directions of the traffic, e.g. ``port0>port1``: one for each transmitting interface."""
    shares_ratio: tuple[Ratio, ...] = ()
    """What each direction sends of the load; left out: all of it, as in files of versions before."""
    aggregate_factor: float = Field(gt=0.0)
    """The aggregate of a load is the load times this: what the shares add up to."""
    encapsulation_overhead_bytes: int = Field(default=0, ge=0)
    """What encapsulation adds to each frame between DUTs; bandwidths are those of the fatter frames."""

    @model_validator(mode="before")
    @classmethod
    def _directions_without_shares_send_all(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("directions"), list | tuple):
            data = {"shares_ratio": (1.0,) * len(data["directions"]), **data}
            # Strict reading takes a list for a tuple only where it reads the JSON itself.
            return {name: tuple(each) if isinstance(each, list) else each for name, each in data.items()}
        return data

    @model_validator(mode="after")
    def _factor_counts_directions(self) -> LoadSemantics:
        if len(self.shares_ratio) != len(self.directions):
            raise ValueError(f"{len(self.directions)} directions have {len(self.shares_ratio)} shares of the load")
        if not math.isclose(self.aggregate_factor, sum(self.shares_ratio)):
            raise ValueError(f"the aggregate factor must be {sum(self.shares_ratio):g}, the sum of the shares")
        return self

    @property
    def directions_in_words(self) -> str:
        """The directions, each with its share of the load where that is not all of it."""
        shares = zip(self.directions, self.shares_ratio, strict=True)
        return ", ".join(name if share == 1.0 else f"{share:g} of it {name}" for name, share in shares)


def load_semantics(shares: Mapping[str, float], *, encapsulation_overhead: int = 0) -> LoadSemantics:
    """What a load is.

    Args:
        shares: What each direction, by its name, sends of a load.
        encapsulation_overhead: Bytes that encapsulation adds to each frame between DUTs.
    """
    full = [name for name, share in shares.items() if share == 1.0]
    everywhere = len(full) == len(shares)
    return LoadSemantics(
        applies_to="each transmitting interface" if everywhere else f"what sends {', '.join(full)}",
        directions=tuple(shares),
        shares_ratio=tuple(shares.values()),
        aggregate_factor=sum(shares.values()),
        encapsulation_overhead_bytes=encapsulation_overhead,
    )


class LoadOrigin(str, Enum):
    """Where the maximum load came from."""

    GENERATOR = "generator"
    """The most that the generator can send: its self-test without SUT, or what the topology file says."""
    LINK = "link"
    """The most that fits the slowest link."""
    NIC = "nic"
    """The most that a NIC of this model can do."""
    GIVEN = "given"
    """Whoever asked for the test."""


class MaxLoad(Record):
    """The maximum load of a test."""

    rate: Rate
    """The load."""
    origin: LoadOrigin
    """Where it came from: ``generator`` (its self-test, or the topology file), ``link`` (its speed), ``nic`` (what its
    model can do) or ``given``."""
    theoretical_maximum: Rate | None
    """The most frames of this average size that the links can carry; None if they have no known speed."""
    limits: tuple[str, ...] = ()
    """What limits the load, from the smallest limit on, each with how it is computed."""


class Conditions(Record):
    """What was measured, where and how."""

    testbed: Testbed
    """The testbed."""
    nodes: dict[str, NodeFacts]
    """Facts of the nodes, by their names in the topology."""
    controller: ControllerFacts
    """Facts of the machine that ran the search."""
    generator: dict[str, JsonValue]
    """The traffic generator: its kind, version and settings."""
    duts: dict[str, dict[str, JsonValue]]
    """The SUT's whole configuration by DUT: the default one, and what the test changed."""
    traffic: Traffic
    """The traffic profile."""
    load: LoadSemantics
    """What a load is."""
    timing: TrialTiming
    """What happens around a trial's traffic."""

    def rate(self, per_interface: float) -> Rate:
        """A rate in all its units, under these conditions.

        Args:
            per_interface: Frames per second of each transmitting interface.
        """
        size = self.traffic.average_frame_size_bytes + self.load.encapsulation_overhead_bytes
        return make_rate(per_interface, factor=self.load.aggregate_factor, frame_size=size)

    def max_load(
        self,
        per_interface: float,
        origin: LoadOrigin,
        *,
        link_limit: float | None = None,
        limits: Sequence[str] = (),
    ) -> MaxLoad:
        """The maximum load under these conditions.

        Args:
            per_interface: Frames per second of each transmitting interface.
            origin: Where the number came from.
            link_limit: The most frames per second of an interface that the links can carry; None: not known.
            limits: What limits the load, in words.
        """
        maximum = None if link_limit is None else self.rate(link_limit)
        rate = self.rate(per_interface)
        return MaxLoad(rate=rate, origin=origin, theoretical_maximum=maximum, limits=tuple(limits))


def with_ramp(conditions: Conditions, ramp: float) -> Conditions:
    """The same conditions, with a ramp before the counted part of every trial.

    Args:
        conditions: Conditions without one.
        ramp: Its length, in seconds; 0: there is none.
    """
    if not ramp:
        return conditions
    timing = conditions.timing
    deviation = Deviation(
        step="start of the traffic",
        rfc2544="the trial begins with its load",
        instead=f"a ramp of {ramp:g} s before it, in which the load grows from nothing and no frame is counted",
    )
    changed = timing.model_copy(update={"ramp_s": ramp, "deviations": (*timing.deviations, deviation)})
    return conditions.model_copy(update={"timing": changed})
