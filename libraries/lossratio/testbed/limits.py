"""What keeps a load from being larger: the generator, the speeds of the links, and what NICs can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lossratio.results import LoadOrigin
from lossratio.testbed.testbed import Testbed
from lossratio.testbed.tester_record import recorded_limit
from lossratio.topology import NicModel, Port
from lossratio.traffic import TrafficDirection, TrafficProfile
from lossratio.units import L1_OVERHEAD, format_bit_rate, format_frame_rate


@dataclass(frozen=True)
class LoadLimit:
    """Something that limits the load.

    Attributes:
        load: The largest load that it allows, frames per second of the interface that sends most.
        origin: What it is.
        reason: How the load is computed, for people.
    """

    load: float
    origin: LoadOrigin
    reason: str


def load_limits(testbed: Testbed, profile: TrafficProfile) -> tuple[LoadLimit, ...]:
    """All limits of the load that are known, from the smallest on.

    On each link it is the direction with more bits that counts. Frames between two DUTs are longer by what the
    testbed's encapsulation adds.

    Args:
        testbed: The testbed.
        profile: The traffic.
    """
    limits = [*_generator_limits(testbed), *_tester_limits(testbed, profile), *_port_limits(testbed, profile)]
    return tuple(sorted(limits, key=lambda limit: limit.load))


def _generator_limits(testbed: Testbed) -> Iterator[LoadLimit]:
    rate = testbed.generator_limit
    if rate is not None:
        yield LoadLimit(
            rate, LoadOrigin.GENERATOR, f"the generator's max_rate, {format_frame_rate(rate)} per interface"
        )


def _tester_limits(testbed: Testbed, profile: TrafficProfile) -> Iterator[LoadLimit]:
    limit = recorded_limit(testbed.request, profile)
    if limit is not None:
        rate = format_frame_rate(limit.max_load)
        reason = f"the tester's self-test of {limit.measured}, {rate} per interface"
        yield LoadLimit(limit.max_load, LoadOrigin.GENERATOR, reason)


def _port_limits(testbed: Testbed, profile: TrafficProfile) -> Iterator[LoadLimit]:
    topology = testbed.request.topology
    told: set[str] = set()
    for port in (port for path in testbed.request.paths for port in path.ports):
        is_inner = topology.tg_name not in {end.node_name for end in topology.links()[str(port.interface.link)]}
        overhead = testbed.request.encapsulation_overhead if is_inner else 0
        for limit in (
            *_link_limits(port, profile, overhead),
            *_nic_limits(topology.nic_model(port), profile, overhead),
        ):
            if limit.reason not in told:
                told.add(limit.reason)
                yield limit


def _link_limits(port: Port, profile: TrafficProfile, overhead: int) -> Iterator[LoadLimit]:
    speed = port.interface.speed
    if speed is not None:
        load, computed = _within(speed, profile, overhead)
        yield LoadLimit(load, LoadOrigin.LINK, f"link {port.interface.link}, {computed}")


def _nic_limits(nic: NicModel | None, profile: TrafficProfile, overhead: int) -> Iterator[LoadLimit]:
    if nic is None:
        return
    if nic.max_frame_rate is not None:
        reason = f"NIC {nic.name}, {format_frame_rate(nic.max_frame_rate)} per interface"
        yield LoadLimit(nic.max_frame_rate, LoadOrigin.NIC, reason)
    if nic.max_bit_rate is not None:
        load, computed = _within(nic.max_bit_rate, profile, overhead)
        yield LoadLimit(load, LoadOrigin.NIC, f"NIC {nic.name}, {computed}")


def _within(bit_rate: float, profile: TrafficProfile, overhead: int) -> tuple[float, str]:
    """The largest load within a bit rate, and how it is computed."""

    def bits_per_load(direction: TrafficDirection) -> float:
        return direction.load_share * (direction.average_frame_size + overhead + L1_OVERHEAD) * 8

    fattest = max(profile.directions, key=bits_per_load)
    load = bit_rate / bits_per_load(fattest)
    share = "" if fattest.load_share == 1.0 else f"{fattest.load_share:g} x "
    added = f" + {overhead} of encapsulation" if overhead else ""
    frame = f"{share}({fattest.average_frame_size:.6g} + {L1_OVERHEAD}{added}) bytes x 8"
    return load, f"{format_bit_rate(bit_rate)} per interface / ({frame}) = {format_frame_rate(load)} per interface"
