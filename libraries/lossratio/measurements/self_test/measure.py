"""Self-test of the tester: what its generator can send and receive over a cable, without any DUT (RFC 9971)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from lossratio.errors import TopologyError, TrafficError
from lossratio.measurements import OnProgress, TestPlace
from lossratio.measurements.throughput import SearchRequest, ThroughputResult, find_conditional_throughput
from lossratio.mlrsearch import SearchGoal
from lossratio.results import LoadOrigin
from lossratio.testbed import Testbed, TesterLimit, load_limits, write_limit
from lossratio.topology import TestbedKind, Topology, TrafficPath
from lossratio.traffic import TrafficProfile

TESTER = SearchGoal(0.0, 0.0, 1.0, 5.0, 0.02, 1.0, name="tester")
"""Five trials of a second, in which every frame must be sent in time and come back: not one may miss a frame."""

HIGHEST_LOAD = 20e6
"""Frames per second per interface that are tried first where no link and no NIC has a known limit."""

_DIGITS = 3


@dataclass(frozen=True)
class SelfTestRequest:
    """What to test.

    Attributes:
        profile: What the traffic is.
        max_load: Largest load per interface to try; None: what links and NICs can do.
        record: File that the limit is written into, for topologies to name; None: none.
        goal: The search goal.
    """

    profile: TrafficProfile
    max_load: float | None = None
    record: Path | None = None
    goal: SearchGoal = TESTER


@dataclass(frozen=True)
class SelfTest:
    """What a self-test found.

    Attributes:
        limit: The limit, on the safe side of what was found.
        result: The search, as its result file has it.
    """

    limit: TesterLimit
    result: ThroughputResult

    def __str__(self) -> str:
        ways = "both ways" if self.limit.bidirectional else "one way"
        return (
            f"the tester sends and receives all of {self.limit.max_load:,.0f} fps per interface "
            f"(frames of {self.limit.frame_size}, {ways})"
        )


def find_tester_limit(
    testbed: Testbed, request: SelfTestRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> SelfTest:
    """Finds the largest load at which a tester sends what is intended, and drops nothing of what comes back.

    Raises:
        TopologyError: If there is a DUT between the TG's ports, or nothing real.
        TrafficError: If there is no such load.
        LossRatioError: If the measurement failed.
    """
    check_cable(testbed.request.file, testbed.request.topology, testbed.request.paths[0])
    highest = request.max_load or _highest(testbed, request.profile)
    search = SearchRequest((request.goal,), request.profile, max_load=highest)
    result = find_conditional_throughput(testbed, search, place, on_progress)
    outcome = result.goals[0].result
    bound = None if outcome is None else outcome.relevant_lower_bound
    if bound is None:
        raise TrafficError(
            f"The tester sends and receives all frames at no load, from {result.min_load.per_interface_fps:,.0f} fps "
            "on. Look for other work on its node, and for faults of the cable."
        )
    limit = TesterLimit(
        frame_size=request.profile.frame_size,
        bidirectional=request.profile.bidirectional,
        links=testbed.request.links,
        max_load=_rounded_down(bound.per_interface_fps),
        profile=request.profile.name,
        measured=result.started.isoformat(timespec="seconds"),
    )
    if request.record is not None:
        write_limit(request.record, str(result.conditions.generator["kind"]), limit)
    return SelfTest(limit, result)


def check_cable(file: Path, topology: Topology, path: TrafficPath) -> None:
    """Makes sure that a self-test is one.

    Args:
        file: The topology file.
        topology: What is in it.
        path: The way of the test traffic.

    Raises:
        TopologyError: If there is a DUT on the path, or nothing is real.
    """
    if topology.testbed is TestbedKind.SIMULATED:
        raise TopologyError(f"{file}: a simulated tester needs no test: its limit is the 'max_rate' there.")
    if path.hops:
        names = ", ".join(hop.node_name for hop in path.hops)
        raise TopologyError(
            f"{file}: between the TG's ports there is {names}, and what is found would be its limit. "
            "For a self-test, the link of both ports must be the same; see topologies/local-cable.yaml."
        )


def _highest(testbed: Testbed, profile: TrafficProfile) -> float:
    limits = load_limits(testbed, profile)
    return min((limit.load for limit in limits if limit.origin is not LoadOrigin.GENERATOR), default=HIGHEST_LOAD)


def _rounded_down(load: float) -> float:
    scale = 10.0 ** (math.floor(math.log10(load)) - _DIGITS + 1)
    return math.floor(load / scale * (1.0 + 1e-12)) * scale
