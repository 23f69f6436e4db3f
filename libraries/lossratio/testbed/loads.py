"""The smallest and the largest load of a measurement, and what limits the load: generator, links, NICs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lossratio.errors import SearchError
from lossratio.results import Conditions, LoadOrigin, MaxLoad, Note, NoteKind, noted
from lossratio.testbed.testbed import Testbed
from lossratio.topology import NicModel, Port
from lossratio.traffic import TrafficDirection, TrafficProfile
from lossratio.trials import sendable
from lossratio.values import L1_OVERHEAD, format_bit_rate, format_frame_rate


@dataclass(frozen=True)
class LoadLimit:
    """A limit of the load."""

    load: float
    """The largest load that the limit allows, in frames per second of the interface that sends most."""
    origin: LoadOrigin
    """What limits the load."""
    reason: str
    """How the limit is computed, for people."""


Overhead = tuple[int, int]
"""Bytes by which frames are longer than when they were sent: eastward, and westward."""


def load_limits(testbed: Testbed, profile: TrafficProfile) -> tuple[LoadLimit, ...]:
    """All known limits of the load, the smallest first.

    On each link, the direction with more bits counts. Between two DUTs, the DUTs' encapsulation makes frames longer.
    The profile's headroom counts as if it made each frame longer.
    """
    topology = testbed.request.topology
    limits = list(_generator_limits(testbed))
    for port in (port for path in testbed.request.paths for port in path.ports):
        limits += _limits_at(
            port, topology.nic_model(port), profile, _overhead(testbed, port, profile)
        )
    # Several ports may have the same limit, for the same reason.
    return tuple(sorted({limit.reason: limit for limit in limits}.values(), key=attrgetter("load")))


def _generator_limits(testbed: Testbed) -> Iterator[LoadLimit]:
    rate = testbed.generator.max_rate
    if rate is not None:
        reason = f"the generator's max_rate, {format_frame_rate(rate)} per interface"
        yield LoadLimit(rate, LoadOrigin.GENERATOR, reason)


def _overhead(testbed: Testbed, port: Port, profile: TrafficProfile) -> Overhead:
    """Bytes by which frames are longer on a port's link than when they were sent."""
    request = testbed.request
    topology = testbed.request.topology
    ends = [
        end
        for end in topology.links()[str(port.interface.link)]
        if end.node_name in topology.tg_names
    ]
    if not ends:
        return request.encapsulation_overhead, request.encapsulation_overhead
    eastward, westward = request.growth_of(profile)
    # The sender's own frames leave the port unchanged.
    if ends[0] in [path.west for path in request.paths]:
        return (0, westward)
    return (eastward, 0)


def _limits_at(
    port: Port, nic: NicModel | None, profile: TrafficProfile, overhead: Overhead
) -> Iterator[LoadLimit]:
    speed = port.interface.speed
    if speed is not None:
        load, computed = _within(speed, profile, overhead)
        yield LoadLimit(load, LoadOrigin.LINK, f"link {port.interface.link}, {computed}")
    if nic is not None and nic.max_frame_rate is not None:
        reason = f"NIC {nic.name}, {format_frame_rate(nic.max_frame_rate)} per interface"
        yield LoadLimit(nic.max_frame_rate, LoadOrigin.NIC, reason)
    if nic is not None and nic.max_bit_rate is not None:
        load, computed = _within(nic.max_bit_rate, profile, overhead)
        yield LoadLimit(load, LoadOrigin.NIC, f"NIC {nic.name}, {computed}")


def _within(bit_rate: float, profile: TrafficProfile, overhead: Overhead) -> tuple[float, str]:
    """The largest load within a bit rate, and its computation in words."""

    def bits_per_load(way: tuple[TrafficDirection, int]) -> float:
        direction, longer = way
        size = direction.average_frame_size + longer + profile.headroom
        return direction.load_share * (size + L1_OVERHEAD) * 8

    fattest, longer = max(zip(profile.directions, overhead, strict=False), key=bits_per_load)
    load = bit_rate / bits_per_load((fattest, longer))
    share = "" if fattest.load_share == 1.0 else f"{fattest.load_share:g} x "
    if longer:
        added = f" {'-' if longer < 0 else '+'} {abs(longer)} of encapsulation"
    else:
        added = ""
    if profile.headroom:
        added += f" + {profile.headroom} of headroom"

    frame = f"{share}({fattest.average_frame_size:.6g} + {L1_OVERHEAD}{added}) bytes x 8"
    return (
        load,
        f"{format_bit_rate(bit_rate)} per interface / ({frame}) = {format_frame_rate(load)} per interface",
    )


DEFAULT_MIN_LOAD = 9001.0
"""Frames per second per interface: the minimum load of FD.io CSIT's searches."""
MIN_LOAD_SHARE = 0.1
"""If the maximum load is below CSIT's minimum load, this share of the maximum load is the default minimum load."""

_NAMES: Mapping[LoadOrigin, str] = {
    LoadOrigin.GENERATOR: "what the generator can send",
    LoadOrigin.LINK: "what a link can carry",
    LoadOrigin.NIC: "what a NIC can do",
}


@dataclass(frozen=True)
class LoadRange:
    """The loads of a measurement."""

    min_load: float
    """The smallest load, in frames per second per interface."""
    max_load: float
    """The largest load, in frames per second per interface."""
    origin: LoadOrigin
    """The source of the largest load."""
    limits: tuple[LoadLimit, ...] = ()
    """The limits of the load, the smallest first."""
    remarks: tuple[Note, ...] = ()
    """Warnings for readers of the numbers."""
    step: float = 0.0
    """The generator sends multiples of this load, in frames per second; 0: any load."""

    def describe(self, conditions: Conditions) -> MaxLoad:
        """The largest load in the words of test reports."""
        links = [limit.load for limit in self.limits if limit.origin is LoadOrigin.LINK]
        reasons = [limit.reason for limit in self.limits]
        return conditions.max_load(
            self.max_load, self.origin, link_limit=min(links, default=None), limits=reasons
        )


def load_range(
    limits: Sequence[LoadLimit],
    *,
    min_load: float | None,
    max_load: float | None,
    step: float = 0.0,
) -> LoadRange:
    """The loads of a measurement: the requested ones, and defaults for the others.

    Args:
        limits: The limits of the load, the smallest first; see `load_limits`.
        min_load: The requested smallest load, in frames per second per interface; None: CSIT's, or a tenth of a maximum
            load below CSIT's.
        max_load: The requested largest load, in frames per second per interface; None: the smallest limit.
        step: The generator sends multiples of this load, in frames per second; 0: any load. The range has the nearest
            multiples.

    Raises:
        SearchError: If no maximum load is known, or it is below the minimum load.
    """
    if max_load is not None:
        origin = LoadOrigin.GIVEN
        highest = max_load
    elif limits:
        origin = limits[0].origin
        highest = limits[0].load
    else:
        raise SearchError(
            "The maximum load is not known. Set max_load= in the measurement. Or add one of "
            "these to the topology file: the max_rate of the TG's generator, or the speed or the "
            "NIC model of its interfaces."
        )

    usual = DEFAULT_MIN_LOAD if highest > DEFAULT_MIN_LOAD else highest * MIN_LOAD_SHARE
    lowest = usual if min_load is None else min_load
    if lowest > highest:
        raise SearchError(
            f"The minimum load ({format_frame_rate(lowest)}) is above the maximum load ({format_frame_rate(highest)}). "
            "Lower min_load, or raise max_load."
        )

    # Only the smallest exceeded limit.
    exceeded = [limit for limit in limits if highest > limit.load][:1]
    above = f"the maximum load ({format_frame_rate(highest)}) is above"
    remarks = tuple(
        noted(f"{above} {_NAMES[limit.origin]} ({limit.reason})", NoteKind.ABOVE_LIMIT)
        for limit in exceeded
    )
    # Not the nearest, because that may be above a limit.
    most = sendable(highest - highest % step, step) if step else highest
    return LoadRange(min(sendable(lowest, step), most), most, origin, tuple(limits), remarks, step)
