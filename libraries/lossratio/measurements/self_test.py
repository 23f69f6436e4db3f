"""Self-test of the tester: the load that it can send and receive over a cable, without any DUT (RFC 9971)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from lossratio.errors import TopologyError, TrafficError
from lossratio.measurements import NOT_IN_FILES, OnProgress, TestPlace
from lossratio.measurements.throughput import (
    SearchRequest,
    ThroughputResult,
    find_conditional_throughput,
)
from lossratio.mlrsearch import SearchGoal
from lossratio.results import LoadOrigin
from lossratio.testbed import Testbed, load_limits
from lossratio.topology import Topology, TrafficPath
from lossratio.traffic import TrafficProfile

TESTER = SearchGoal(0.0, 0.0, 1.0, 5.0, 0.02, 1.0, name="tester")
"""Five trials of one second. In each of them, every frame must be sent in time and come back."""
HIGHEST_LOAD = 20e6
"""The maximum load if no link and no NIC has a known limit; frames per second per interface."""
_DIGITS = 3


class SelfTestRequest(SearchRequest):
    """The settings of a self-test, which is a search. By default, its maximum load is the limit of links and NICs."""

    unused = frozenset(SearchRequest.model_fields) - {"max_load"}

    goals: Annotated[tuple[SearchGoal, ...], BeforeValidator(tuple), NOT_IN_FILES] = (TESTER,)
    """The search goal."""


@dataclass(frozen=True)
class SelfTest:
    """The outcome of a self-test."""

    max_load: float
    """The limit in frames per second per interface, on the safe side of the relevant lower bound."""
    profile: TrafficProfile
    """The traffic."""
    result: ThroughputResult
    """The search, as in its result file."""

    def __str__(self) -> str:
        ways = "both ways" if self.profile.bidirectional else "one way"
        return (
            f"the tester sends and receives all of {self.max_load:,.0f} fps per interface "
            f"(frames of {self.profile.frame_size}, {ways})"
        )


def find_tester_limit(
    testbed: Testbed,
    request: SelfTestRequest,
    place: TestPlace,
    on_progress: OnProgress | None = None,
) -> SelfTest:
    """Finds the largest load at which a tester sends all intended frames in time, and drops no frame that comes back.

    Raises:
        TopologyError: If there is a DUT between the TG's ports, or the testbed is simulated.
        TrafficError: If there is no such load.
        LossRatioError: If the measurement failed.
    """
    check_cable(testbed.request.file, testbed.request.topology, testbed.request.paths[0])
    highest = request.max_load or min(
        (
            one.load
            for one in load_limits(testbed, request.profile)
            if one.origin is not LoadOrigin.GENERATOR
        ),
        default=HIGHEST_LOAD,
    )
    result = find_conditional_throughput(testbed, request.but(max_load=highest), place, on_progress)
    bound, _ = result.goals[0].bounds
    if bound is None:
        raise TrafficError(
            "The tester did not send and receive all frames at any load, not even at "
            f"{result.min_load.per_interface_fps:,.0f} fps. Look for other programs on its node, and "
            "for faults of the cable."
        )

    scale = 10.0 ** (math.floor(math.log10(bound.per_interface_fps)) - _DIGITS + 1)
    # A bound with so few digits stays as it is, although the quotient may be slightly below a whole number.
    steps = math.floor(bound.per_interface_fps / scale * (1.0 + 1e-12))
    return SelfTest(steps * scale, request.profile, result)


def check_cable(file: Path, topology: Topology, path: TrafficPath) -> None:
    """Makes sure that there is only a cable between the TG's ports.

    Raises:
        TopologyError: If there are DUTs, or the testbed is simulated.
    """
    if topology.testbed == "simulated":
        raise TopologyError(
            f"{file}: a simulated tester needs no self-test. Its limit is 'max_rate' in this file."
        )
    if path.hops:
        names = ", ".join(hop.node_name for hop in path.hops)
        raise TopologyError(
            f"{file}: {names} is between the TG's ports, so the test would find the limit of "
            f"{names}. For a self-test, both ports must share one link, as in the topology "
            "local-cable."
        )
