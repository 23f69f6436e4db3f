"""The conditions of a measurement: all that RFC 9971 requires in a test report besides the measured numbers."""

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
    """The testbed of a measurement."""

    __test__ = False

    name: str
    """Name of the testbed."""
    file: str | None
    """Path of the topology file, as the user wrote it."""
    topology: dict[str, JsonValue]
    """The topology file's contents, with all defaults."""
    path: tuple[str, ...] = ()
    """The ports that the test traffic goes through, from west to east, e.g. ``TG.port0``; the ports of
    parallel links follow link by link."""
    links: int = Field(default=1, ge=1)
    """Number of parallel links that carry the traffic; each has an equal part of ``path``."""

    @property
    def is_simulated(self) -> bool:
        """Whether the testbed is simulated: a model replaces the devices."""
        return self.topology.get("testbed") == TestbedKind.SIMULATED.value

    @property
    def in_words(self) -> str:
        """The testbed's name; if the testbed is simulated, with the remark that no frame was sent."""
        return f"{self.name} (simulated: no frame was sent)" if self.is_simulated else self.name


def describe_testbed(topology: Topology, file: str | None, paths: Sequence[TrafficPath]) -> Testbed:
    """Describes the testbed of a topology.

    Args:
        topology: The topology.
        file: The file from which the topology was read.
        paths: The parallel paths of the test traffic through the topology.
    """
    ports = tuple(str(port) for path in paths for port in path.ports)
    described = topology.model_dump(mode="json")
    return Testbed(name=topology.name, file=file, topology=described, path=ports, links=len(paths))


class FrameSizeShare(Record):
    """One frame size of the traffic."""

    size_bytes: int = Field(gt=0)
    """Size of the frame in bytes, with its frame check sequence."""
    share_ratio: Ratio
    """Share of the frames that have this size."""


class Traffic(Record):
    """The traffic profile: a description in words that hold for any generator, and the whole profile as data."""

    name: str
    """Name of the traffic profile."""
    frame_sizes: tuple[FrameSizeShare, ...] = Field(min_length=1)
    """The frame sizes."""
    average_frame_size_bytes: float = Field(gt=0)
    """Average frame size in bytes, with the frame check sequence; it converts frame rates into bandwidths."""
    frame_format: str
    """Protocols of the frame from the outside in, e.g. ``Ethernet II, IPv4, UDP``."""
    addresses: str
    """Source and destination addresses."""
    modifiers: str
    """The fields that change from frame to frame, e.g. ``254 source addresses in turn``; ``none`` if all frames are
    equal."""
    ip_versions: dict[str, Ratio]
    """Share of the frames by IP version (``IPv4``, ``IPv6``); empty if the frames have no IP header."""
    pattern: Literal["unidirectional", "bidirectional"]
    """Whether traffic goes one way or both ways. The share of each direction is in the load semantics."""
    meshed: bool = False
    """Whether each transmitting interface sends to more than one other interface."""
    load_shape: Literal["constant"] = "constant"
    """The load over the time of a trial: constant, without bursts."""
    profile: dict[str, JsonValue]
    """The traffic profile in full, with all defaults."""


class LoadSemantics(Record):
    """The meaning of a load. Use `load_semantics` to make one."""

    applies_to: str = "each transmitting interface"
    """The interfaces that send the whole load; the other interfaces send their share of it."""
    directions: tuple[str, ...] = Field(min_length=1)
    """The directions of the traffic, e.g. ``port0>port1``: one for each transmitting interface."""
    shares_ratio: tuple[Ratio, ...] = ()
    """Share of the load that each direction sends; if missing, all of it, as in files of earlier versions."""
    aggregate_factor: float = Field(gt=0.0)
    """The factor between a load and its aggregate: the sum of the shares."""
    encapsulation_overhead_bytes: int = Field(default=0, ge=0)
    """Bytes that encapsulation adds to each frame between DUTs; bandwidths include them."""

    @model_validator(mode="before")
    @classmethod
    def _directions_without_shares_send_all(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("directions"), list | tuple):
            data = {"shares_ratio": (1.0,) * len(data["directions"]), **data}
            # In strict mode, pydantic accepts a list as a tuple only if pydantic parses the JSON text itself.
            return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
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
        """The directions; one that sends less than the whole load is shown with its share."""
        shares = zip(self.directions, self.shares_ratio, strict=True)
        return ", ".join(name if share == 1.0 else f"{share:g} of it {name}" for name, share in shares)


def load_semantics(shares: Mapping[str, float], *, encapsulation_overhead: int = 0) -> LoadSemantics:
    """Makes the description of a load.

    Args:
        shares: Share of the load that each direction sends, by the direction's name.
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
    """The origin of the maximum load."""

    GENERATOR = "generator"
    """The most that the generator can send, from its self-test without SUT or from the topology file."""
    LINK = "link"
    """The most that the slowest link can carry."""
    NIC = "nic"
    """The most that a NIC of this model can handle."""
    GIVEN = "given"
    """The test itself names its maximum load."""


class MaxLoad(Record):
    """The maximum load of a test."""

    rate: Rate
    """The load."""
    origin: LoadOrigin
    """Origin of the load: ``generator`` (its self-test, or the topology file), ``link`` (its speed), ``nic`` (the limit
    of its model) or ``given`` (by the test)."""
    theoretical_maximum: Rate | None
    """The most frames of this average size that the links can carry; None: the speed of the links is not known."""
    limits: tuple[str, ...] = ()
    """The limits of the load, from the smallest, each with its computation."""


class Conditions(Record):
    """The conditions of a measurement: testbed, nodes, SUT, traffic, load and timing."""

    testbed: Testbed
    """The testbed of the measurement."""
    nodes: dict[str, NodeFacts]
    """Facts of the nodes, by the node's name in the topology."""
    controller: ControllerFacts
    """Facts of the machine that ran the search."""
    generator: dict[str, JsonValue]
    """The traffic generator: its kind, version and settings."""
    duts: dict[str, dict[str, JsonValue]]
    """The whole configuration of the SUT, by DUT: the defaults, with the changes of the test."""
    traffic: Traffic
    """The traffic profile."""
    load: LoadSemantics
    """The meaning of a load."""
    timing: TrialTiming
    """The steps of a trial before and after its traffic."""

    def rate(self, per_interface: float) -> Rate:
        """Converts a rate into all its units, under these conditions.

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
        """Describes the maximum load under these conditions.

        Args:
            per_interface: Frames per second of each transmitting interface.
            origin: Origin of the number.
            link_limit: The most frames per second and interface that the links can carry; None: not known.
            limits: The limits of the load, in words.
        """
        maximum = None if link_limit is None else self.rate(link_limit)
        rate = self.rate(per_interface)
        return MaxLoad(rate=rate, origin=origin, theoretical_maximum=maximum, limits=tuple(limits))


def with_ramp(conditions: Conditions, ramp: float) -> Conditions:
    """Adds a ramp before the counted part of every trial.

    Args:
        conditions: Conditions without a ramp.
        ramp: Length of the ramp in seconds; 0: no ramp, and the conditions stay as they are.
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
