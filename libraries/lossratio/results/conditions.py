"""The conditions of a measurement: everything that RFC 9971 requires in a test report besides the measured numbers.

They include the facts of the machines, and the timing of trials with its deviations from RFC 2544. A fact that a node
does not report (because a tool is missing, or a file is unreadable) is None, never an error.
"""

import math
import platform
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.records import Rate, Ratio, Record, Seconds, left_out_if_empty, make_rate
from lossratio.results.identity import Device, in_words
from lossratio.topology import Topology, TrafficPath
from lossratio.version import __version__

_RFC2544_WAIT_BEFORE = 2.0
_RFC2544_WAIT_AFTER = 2.0
_RFC2544_RECOVERY = 5.0
_RECOVERY = "wait for the DUT to restabilise"

EXPECTED_FRAMES = (
    "per direction max(sent, ceil((duration - tolerance) x load)); frames that the generator could not send are in "
    "the loss ratio, and are told apart from lost ones by the counters"
)
"""The frames that lossratio's own measurers expect: the formula of `lossratio.trials.counters`."""


class ToolVersions(Record):
    """Versions of the programs that configure and measure a node, as the programs report them; None: missing."""

    ip: str | None = None
    """Version of iproute2."""
    nft: str | None = None
    """Version of nftables."""
    ethtool: str | None = None
    """Version of ethtool."""
    python: str | None = None
    """Version of Python."""


class NodeFacts(Record):
    """Facts of a node of the testbed, from `lossratio.nodes.gather_facts`; None: the node does not report the fact."""

    os: str | None = None
    """Operating system, e.g. ``Debian GNU/Linux 12 (bookworm)``."""
    kernel: str | None = None
    """Kernel release."""
    boot_parameters: tuple[str, ...] | None = None
    """Parameters on the kernel's command line that change its performance, e.g. ``isolcpus=2-3``."""
    architecture: str | None = None
    """Machine architecture, e.g. ``x86_64``."""
    cpu_model: str | None = None
    """CPU model."""
    cpus: int | None = None
    """Number of logical CPUs that are online."""
    threads_per_core: int | None = None
    """Logical CPUs per core; 2 if SMT is on."""
    hypervisor: str | None = None
    """Vendor of the hypervisor under the node."""
    numa_nodes: dict[str, str] | None = None
    """Logical CPUs of each NUMA node, as a list of ranges."""
    governors: tuple[str, ...] | None = None
    """The CPU frequency governors in use."""
    memory_bytes: int | None = None
    """Size of the main memory."""
    tools: ToolVersions = Field(default_factory=ToolVersions)
    """Versions of the node's tools."""


class ControllerFacts(Record):
    """The machine that runs the search and holds the sessions with the nodes."""

    lossratio_version: str
    """Version of lossratio."""
    python_version: str
    """Version of Python."""
    robot_version: str
    """Version of Robot Framework."""
    os: str
    """Operating system."""
    kernel: str
    """Kernel release."""


def controller_facts() -> ControllerFacts:
    """Gathers the facts of this machine and this Python."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.platform(terse=True)
    return ControllerFacts(
        lossratio_version=__version__,
        python_version=platform.python_version(),
        robot_version=version("robotframework"),
        os=system,
        kernel=platform.release(),
    )


class Deviation(Record):
    """One deviation from the trial of RFC 2544, section 23."""

    step: str
    """The step of RFC 2544."""
    rfc2544: str
    """The requirement of RFC 2544."""
    instead: str
    """What lossratio does instead."""


class TrialTiming(Record):
    """The steps of a trial around its traffic, and the rules for its counters. Use `trial_timing` to make one."""

    learning: Literal["before every trial", "before the search", "never"]
    """When learning frames or routing updates are sent."""
    learning_s: Seconds = 0.0
    """Seconds for which learning frames (frames of the test traffic) are sent in each direction."""
    learning_fps: float = Field(default=0.0, ge=0.0)
    """Load of learning frames per interface, in frames per second."""
    neighbours: str = ""
    """How DUTs know the MAC addresses of their neighbours; empty: the DUTs have no neighbours."""
    wait_before_s: Seconds
    """Wait after learning frames and routing updates, before the traffic starts."""
    wait_after_s: Seconds
    """Wait after the traffic for frames in flight, which count as received; later frames count as lost."""
    ramp_s: Seconds = 0.0
    """Time before the counted traffic in which the load grows from zero; frames in this time are not counted."""
    recovery_s: Seconds
    """Idle time after the wait, in which the SUT becomes stable for the next trial."""
    effective_duration: str
    """How the effective duration is computed."""
    expected_frames: str
    """The definition of expected frames, which are the denominator of the loss ratio."""
    tolerance_s: Seconds
    """Seconds of traffic that may be missing without a frame counting as unsent."""
    negative_loss: str
    """How a trial is treated if a direction received more frames than it sent."""
    unsent: str
    """How a trial is treated if the generator could not send all frames."""
    deviations: tuple[Deviation, ...]
    """Every deviation from RFC 2544, section 23."""

    @property
    def has_early_verdicts(self) -> bool:
        """Whether trials ended as soon as their verdict was certain."""
        return any(deviation.step == _END_OF_TRAFFIC for deviation in self.deviations)


def trial_timing(**fields: Any) -> TrialTiming:
    """Makes the trial timing from the fields of `TrialTiming`, with its deviations from RFC 2544, section 23."""
    usual = {"effective_duration": "the intended trial duration", "unsent": "they count as loss"}
    timing = TrialTiming(
        **{**usual, "expected_frames": EXPECTED_FRAMES, "deviations": (), **fields}
    )
    deviations = []
    if timing.learning != "before every trial" or timing.wait_before_s < _RFC2544_WAIT_BEFORE:
        sent = (
            f", for {timing.learning_s:g} s at {timing.learning_fps:g} fps"
            if timing.learning_s
            else ""
        )
        waited = (
            ""
            if timing.learning == "never"
            else f"{sent}, {timing.wait_before_s:g} s before the traffic"
        )
        step = "learning frames and routing update"
        rule = "before every trial, 2 s before the traffic"
        deviations.append(Deviation(step=step, rfc2544=rule, instead=f"{timing.learning}{waited}"))

    if timing.wait_after_s < _RFC2544_WAIT_AFTER:
        instead = f"{timing.wait_after_s:g} s"
        deviations.append(
            Deviation(step="wait for residual frames", rfc2544="2 s", instead=instead)
        )

    return timing.model_copy(
        update={"deviations": (*deviations, *_short_recovery(timing.recovery_s))}
    )


def _short_recovery(recovery: float) -> list[Deviation]:
    if recovery >= _RFC2544_RECOVERY:
        return []
    return [Deviation(step=_RECOVERY, rfc2544="at least 5 s", instead=f"{recovery:g} s")]


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
    """The maximum that the generator can send, from its self-test without a SUT or from the topology file."""
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
    """Origin of the load: ``generator`` (its self-test, or the topology file), ``link`` (its speed), ``nic`` (the limit
    of its model) or ``given`` (by the test)."""
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
    device: Device | None = None
    """The device of the series that this result belongs to; None: an earlier version measured it."""

    _leave_out = left_out_if_empty("device")

    @property
    def measured_on(self) -> str | None:
        """The device and the testbed that a series of results belongs to, in words; None: not known."""
        if self.device is None:
            return None
        return in_words(self.device, self.testbed.facts_that_count())

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
        if not ramp:
            return self
        instead = f"a ramp of {ramp:g} s before it, in which the load grows from nothing and no frame is counted"
        deviation = Deviation(
            step="start of the traffic", rfc2544="the trial begins with its load", instead=instead
        )
        return _with_timing(self, (*self.timing.deviations, deviation), ramp_s=ramp)

    def with_rest(self, rest: float) -> "Conditions":
        """Adds a rest before every trial; a longer recovery time of the DUT is kept.

        Args:
            rest: Seconds.
        """
        if rest <= self.timing.recovery_s:
            return self
        others = tuple(
            deviation for deviation in self.timing.deviations if deviation.step != _RECOVERY
        )
        return _with_timing(self, (*others, *_short_recovery(rest)), recovery_s=rest)


_END_OF_TRAFFIC = "end of the traffic"


def with_early_verdicts(conditions: Conditions) -> Conditions:
    """Adds the fact that trials end as soon as their verdict is certain, unless the conditions already have it."""
    if conditions.timing.has_early_verdicts:
        return conditions
    instead = "with early verdicts: a trial ends as soon as it is certain to lose more than every goal allows"
    deviation = Deviation(
        step=_END_OF_TRAFFIC, rfc2544="each trial takes its whole duration", instead=instead
    )
    return _with_timing(conditions, (*conditions.timing.deviations, deviation))


def _with_timing(
    conditions: Conditions, deviations: tuple[Deviation, ...], **changed: float
) -> Conditions:
    timing = conditions.timing.model_copy(update={"deviations": deviations, **changed})
    return conditions.model_copy(update={"timing": timing})
