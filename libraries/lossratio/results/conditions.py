"""The conditions of a measurement: everything that RFC 9971 requires in a test report besides the measured numbers.

They include the facts of the machines, and the timing of trials with its deviations from RFC 2544.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.results.device import Device, in_words
from lossratio.results.machines import ControllerFacts, NodeFacts
from lossratio.results.trial_timing import TrialTiming
from lossratio.topology import Topology, TrafficPath
from lossratio.values import Rate, Ratio, Record, left_out_if_empty, make_rate


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
    """The ports that the test traffic goes through, from west to east, e.g. ``TG.port0``; parallel links follow one
    after the other."""
    links: int = Field(default=1, ge=1)
    """Number of parallel links that carry the traffic; each has an equal part of ``path``."""

    @property
    def is_simulated(self) -> bool:
        """Whether the testbed is simulated: a model replaces the devices."""
        return self.topology.get("testbed") == "simulated"

    def facts_that_count(self) -> dict[str, JsonValue]:
        """The facts, by name, that distinguish testbeds of the same name.

        They are the DUTs and links of the path, NICs and machines. The way to reach nodes does not count, but the names
        of the path's ports do.
        """
        nodes: Any = self.topology.get("nodes") or {}
        ends = [port.partition(".") for port in self.path]
        used = {node: nodes[node] for node, _, _ in ends if node in nodes}
        ports = [
            (nodes[node]["interfaces"] or {}).get(port) or {}
            for node, _, port in ends
            if node in nodes
        ]
        duts = [node for node in used.values() if node.get("type") == "DUT"]
        # Record: facts that do not distinguish testbeds are None.
        facts = {
            "duts": len(duts) if len(duts) != 1 else None,
            "links": self.links if self.links != 1 else None,
            "mtu": self.topology.get("mtu"),
            "nic": _in_short([port.get("model") for port in ports]),
            "speed": _in_short([port.get("speed") for port in ports]),
            "machine": _in_short([node.get("model") for node in used.values()]),
            "arch": _in_short([node.get("arch") for node in used.values()]),
        }

        return {f"testbed {name}": fact for name, fact in facts.items() if fact is not None}

    @property
    def in_words(self) -> str:
        """The testbed's name; if the testbed is simulated, with the remark that no frame was sent."""
        return f"{self.name} (simulated: no frame was sent)" if self.is_simulated else self.name


def _in_short(facts: list[Any]) -> Any:
    """A single fact if all of these facts are equal, which may be None (not known); otherwise all of them."""
    different = list(dict.fromkeys(facts))
    return different[0] if len(different) == 1 else facts


def describe_testbed(topology: Topology, file: str | None, paths: Sequence[TrafficPath]) -> Testbed:
    """Describes the testbed of a topology."""
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
    """The traffic profile: a description in words that hold for any generator, and the complete profile as data."""

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

    @property
    def sizes_in_words(self) -> str:
        """The sizes of the frames, e.g. ``64 B``, or ``64, 570, 1518 B (353.83 B on average)``."""
        sizes = ", ".join(str(size.size_bytes) for size in self.frame_sizes)
        if len(self.frame_sizes) > 1:
            return f"{sizes} B ({self.average_frame_size_bytes:.2f} B on average)"
        return f"{sizes} B"


class LoadSemantics(Record):
    """The meaning of a load. Use `load_semantics` to make one."""

    applies_to: str = "each transmitting interface"
    """The interfaces that send the whole load; the other interfaces send their share of it."""
    directions: tuple[str, ...] = Field(min_length=1)
    """The directions of the traffic, e.g. ``port0>port1``: one for each transmitting interface."""
    shares_ratio: tuple[Ratio, ...]
    """Share of the load that each direction sends."""
    aggregate_factor: float = Field(gt=0.0)
    """The factor between a load and its aggregate: the sum of the shares."""
    encapsulation_overhead_bytes: int = Field(default=0, ge=0)
    """Bytes that encapsulation adds to each frame between DUTs; bandwidths include them."""
    growth_bytes: tuple[int, ...] = ()
    """Bytes by which the frames of each direction come back longer than they were sent, because the TG is at the end of
    a tunnel; below 0: shorter. Empty: all come back with the same length."""

    _leave_out = left_out_if_empty("growth_bytes")

    @model_validator(mode="after")
    def _factor_counts_directions(self) -> "LoadSemantics":
        if len(self.shares_ratio) != len(self.directions):
            raise ValueError(
                f"{len(self.directions)} directions have {len(self.shares_ratio)} shares of the load"
            )
        if not math.isclose(self.aggregate_factor, sum(self.shares_ratio)):
            raise ValueError(
                f"the aggregate factor must be {sum(self.shares_ratio):g}, the sum of the shares"
            )
        return self

    @property
    def growth_in_words(self) -> str:
        """The directions whose frames come back longer or shorter; empty: there are no such directions."""
        return ", ".join(
            f"frames {name} come back {abs(grown)} bytes {'longer' if grown > 0 else 'shorter'}"
            for name, grown in zip(self.directions, self.growth_bytes, strict=False)
        )

    @property
    def directions_in_words(self) -> str:
        """The directions; a direction that sends less than the whole load is shown with its share."""
        shares = zip(self.directions, self.shares_ratio, strict=True)
        return ", ".join(
            name if share == 1.0 else f"{share:g} of it {name}" for name, share in shares
        )


def load_semantics(
    shares: Mapping[str, float], *, encapsulation_overhead: int = 0, growth: Sequence[int] = ()
) -> LoadSemantics:
    """Describes a load by the share of each direction, and the bytes by which frames grow on the way and on return.

    Args:
        shares: The share of the load that each direction sends, by its name.
        encapsulation_overhead: Bytes that encapsulation adds to each frame between DUTs.
        growth: Bytes by which the frames of each direction are longer when they come back.
    """
    full = [name for name, share in shares.items() if share == 1.0]
    if len(full) == len(shares):
        applies_to = "each transmitting interface"
    else:
        applies_to = f"what sends {', '.join(full)}"

    return LoadSemantics(
        applies_to=applies_to,
        directions=tuple(shares),
        shares_ratio=tuple(shares.values()),
        aggregate_factor=sum(shares.values()),
        encapsulation_overhead_bytes=encapsulation_overhead,
        growth_bytes=tuple(growth) if any(growth) else (),
    )


class LoadOrigin(str, Enum):
    """The origin of the maximum load."""

    GENERATOR = "generator"
    """The maximum that the generator can send, from the topology file."""
    LINK = "link"
    """The maximum that the slowest link can carry."""
    NIC = "nic"
    """The maximum that a NIC of this model can handle."""
    GIVEN = "given"
    """The test itself states its maximum load."""


class MaxLoad(Record):
    """The maximum load of a test."""

    rate: Rate
    """The load."""
    origin: LoadOrigin
    """Origin of the load: ``generator`` (its ``max_rate``), ``link`` (its speed), ``nic`` (the limit of its model) or
    ``given`` (by the test)."""
    theoretical_maximum: Rate | None
    """The maximum rate of such frames that the links can carry; None: the speed of the links is not known."""
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
    device: Device
    """The device of the series that this result belongs to."""

    @property
    def measured_on(self) -> str:
        """The device and the testbed that a series of results belongs to, in words."""
        return in_words(self.device, self.testbed.facts_that_count())

    @property
    def has_device(self) -> bool:
        """Whether there was a device between the tester's ports."""
        return bool(self.duts)

    @property
    def generator_kind(self) -> str | None:
        """The kind of the traffic generator; None: not known."""
        kind = self.generator.get("kind")
        return None if kind is None else str(kind)

    @property
    def build(self) -> str | None:
        """Kind and version of the DUTs, e.g. ``vpp 24.06``; for Linux itself, the kernel's version; None: not known."""
        builds = [f"{kind} {version}" for kind, version in self.dut_versions()]
        return ", ".join(dict.fromkeys(builds)) or None

    def dut_versions(self) -> Iterator[tuple[str, str]]:
        """Kind and version of each DUT whose version is known; for Linux itself, the kernel's version."""
        for name, dut in self.duts.items():
            node = self.nodes.get(str(dut.get("node") or name))
            version = dut.get("version") or (None if node is None else node.kernel)
            if version:
                yield str(dut.get("kind") or "DUT"), str(version)

    def rate(self, per_interface: float) -> Rate:
        """Converts a rate per transmitting interface into all its units, under these conditions.

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
            origin: Where the load comes from.
            link_limit: What the link can carry, in frames per second of each transmitting
                interface; None: it is not known.
            limits: The limits of the load, in words.
        """
        maximum = None if link_limit is None else self.rate(link_limit)
        return MaxLoad(
            rate=self.rate(per_interface),
            origin=origin,
            theoretical_maximum=maximum,
            limits=tuple(limits),
        )

    def with_ramp(self, ramp: float) -> "Conditions":
        """Adds a ramp before the counted part of every trial.

        Args:
            ramp: Seconds; 0: the conditions do not change.
        """
        return self._with_timing(self.timing.with_ramp(ramp))

    def with_rest(self, rest: float) -> "Conditions":
        """Adds a rest before every trial; a longer recovery time of the DUT is kept.

        Args:
            rest: Seconds.
        """
        return self._with_timing(self.timing.with_rest(rest))

    def with_early_verdicts(self) -> "Conditions":
        """Adds the fact that trials end as soon as their verdict is certain, unless the conditions already have it."""
        return self._with_timing(self.timing.with_early_verdicts())

    def _with_timing(self, timing: TrialTiming) -> "Conditions":
        return self.model_copy(update={"timing": timing})
