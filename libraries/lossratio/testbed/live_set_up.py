"""What a live testbed has found and set up, and what a test report states about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lossratio.dut import DestinationMacs, Dut, DutOptions
from lossratio.nodes import NodeSession
from lossratio.results import Conditions, NodeFacts, TrialTiming, controller_facts, describe_testbed, trial_timing
from lossratio.testbed.description import describe_load, describe_traffic
from lossratio.testbed.interfaces import PortState
from lossratio.testbed.reservation import Lease
from lossratio.testbed.testbed import TestbedRequest
from lossratio.topology import RealGenerator, TrafficPath
from lossratio.traffic import (
    CHECK_DURATION,
    CHECK_LOAD,
    FALTERING,
    REPEATS,
    Generator,
    PortPair,
    TrafficPort,
    TrafficProfile,
)
from lossratio.trials import START_TOLERANCE

UNKNOWN_SETTLE_TIME = 0.5
"""Seconds to wait for frames in flight through a DUT that nothing is known about."""


@dataclass(frozen=True)
class LiveLink:
    """One of the parallel paths, its DUTs set up.

    Attributes:
        path: The way of its traffic.
        duts: Its DUTs, from west to east; none if they are none of ours.
        destinations: What frames must carry when they leave the TG; None: not known.
    """

    path: TrafficPath
    duts: tuple[Dut[DutOptions], ...]
    destinations: DestinationMacs | None

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay in flight on the whole path."""
        return sum(dut.settle_time for dut in self.duts) if self.duts else UNKNOWN_SETTLE_TIME

    def port_pair(self, generator: Generator[RealGenerator]) -> PortPair:
        """Its ends, as the generator calls them."""
        path, destinations, port_name = self.path, self.destinations, generator.port_name
        return PortPair(
            TrafficPort(path.west.name, port_name(path.west), None if destinations is None else destinations.from_west),
            TrafficPort(path.east.name, port_name(path.east), None if destinations is None else destinations.from_east),
        )


@dataclass(frozen=True)
class LiveSetUp:
    """What `lossratio.testbed.live.LiveTestbed.open` has found and made.

    Attributes:
        links: The parallel paths; one at least.
        ports: What nodes say about all ports on them.
        generator: The generator.
        lease: The reservation; None: there is none.
        sessions: The log-ins, by node.
        facts: Facts of the nodes, by name.
        descriptions: Whole configuration of each DUT that was set up, by its label.
    """

    links: tuple[LiveLink, ...]
    ports: tuple[PortState, ...]
    generator: Generator[RealGenerator]
    lease: Lease | None
    sessions: Mapping[str, NodeSession]
    facts: Mapping[str, NodeFacts]
    descriptions: Mapping[str, dict[str, Any]]

    @property
    def tg_name(self) -> str:
        """The TG."""
        return self.links[0].path.tg_name

    @property
    def duts(self) -> tuple[Dut[DutOptions], ...]:
        """The DUTs that were set up, link by link, from west to east on each."""
        return tuple(dut for link in self.links for dut in link.duts)

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay in flight on the longest path."""
        return max(link.settle_time for link in self.links)

    @property
    def idle_time(self) -> float:
        """Seconds that the DUT that needs longest takes to forget a trial."""
        return max((dut.recovery_time for dut in self.duts), default=0.0)

    @property
    def port_pairs(self) -> tuple[PortPair, ...]:
        """The ends of each path, as the generator calls them."""
        return tuple(link.port_pair(self.generator) for link in self.links)

    def conditions(
        self, request: TestbedRequest, profile: TrafficProfile, generator_facts: Mapping[str, Any]
    ) -> Conditions:
        """Everything that a test report states.

        Args:
            request: What the testbed was opened for.
            profile: The traffic.
            generator_facts: What the generator says about itself.
        """
        paths = [link.path for link in self.links]
        return Conditions(
            testbed=describe_testbed(request.topology, str(request.file), paths),
            nodes=dict(self.facts),
            controller=controller_facts(),
            generator={**self.generator.settings.model_dump(mode="json"), **generator_facts},
            duts={
                hop.label: self.descriptions.get(hop.label, {"kind": None, "configured_by": "others"})
                for path in paths
                for hop in path.hops
            },
            traffic=describe_traffic(profile),
            load=describe_load(
                profile,
                [(path.west.name, path.east.name) for path in paths],
                encapsulation_overhead=request.encapsulation_overhead,
            ),
            timing=self._timing(),
        )

    def _timing(self) -> TrialTiming:
        return trial_timing(
            learning="before the search",
            learning_time=CHECK_DURATION,
            learning_load=CHECK_LOAD,
            neighbours=(
                "static entries from their set-up, or the learning frames"
                if self.duts
                else "left to whoever set them up"
            ),
            wait_before=0.0,
            wait_after=self.settle_time,
            recovery=self.idle_time,
            tolerance=START_TOLERANCE,
            negative_loss=f"the trial is measured again, {REPEATS} times at most; then the measurement fails",
            unsent=(
                f"they count as loss; a trial with some, and at most {FALTERING:.0%}, "
                f"is measured again first, {REPEATS} times at most; one with more once, unless that was already seen "
                "twice at such a load"
            ),
        )
