"""Sets up the DUTs of parallel paths, and keeps what was set up, for the reports too."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from lossratio.dut import DestinationMacs, Dut, DutOptions, create_dut
from lossratio.dut.linux import NodeDut, ProgramDut
from lossratio.errors import DutError, NodeError
from lossratio.nodes import NodeSession
from lossratio.results import Conditions, NodeFacts, TrialTiming, controller_facts, describe_testbed, trial_timing
from lossratio.testbed.description import describe_load, describe_traffic
from lossratio.testbed.interfaces import PortState
from lossratio.testbed.interruptions import put_off_interruption
from lossratio.testbed.last_will import LastWill, execute_last_wills
from lossratio.testbed.reservation import Lease
from lossratio.testbed.testbed import DutRequest, TestbedRequest
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


@dataclass(frozen=True)
class Neighbours:
    """MAC addresses that frames carry when they leave a DUT.

    Attributes:
        west: Destination of frames that leave it on its west side.
        east: Destination of frames that leave it on its east side.
    """

    west: str
    east: str


@dataclass(frozen=True)
class Addressing:
    """Whom frames are addressed to, all along the path.

    Attributes:
        from_tg: What frames must carry when they leave the TG's west port, and its east port.
        neighbours: The neighbours of each DUT, from west to east.
    """

    from_tg: DestinationMacs
    neighbours: tuple[Neighbours, ...]


def address_path(duts: Sequence[Dut[DutOptions]], west_mac: str, east_mac: str) -> Addressing:
    """Works out from each end of the path what frames to that end must carry on every link.

    A bridge leaves frames as they are, so before it they are addressed as beyond it; a router readdresses them.

    Args:
        duts: The DUTs, from west to east.
        west_mac: MAC address of the TG's west port.
        east_mac: MAC address of the TG's east port.
    """
    eastward = [east_mac]
    for dut in reversed(duts):
        eastward.insert(0, dut.destination_macs(west_mac, eastward[0]).from_west)
    westward = [west_mac]
    for dut in duts:
        westward.append(dut.destination_macs(westward[-1], east_mac).from_east)
    neighbours = tuple(Neighbours(west, east) for west, east in zip(westward, eastward[1:], strict=False))
    return Addressing(DestinationMacs(from_west=eastward[0], from_east=westward[-1]), neighbours)


def checked_duts(
    request: DutRequest | None, paths: Sequence[TrafficPath], sessions: Mapping[str, NodeSession]
) -> tuple[tuple[Dut[DutOptions], ...], ...]:
    """Makes the DUTs of parallel paths, and checks that they can be set up.

    It touches nothing but what dead controllers left.

    Args:
        request: What they are to be; None: they stay as they are, and are none of ours.
        paths: The paths.
        sessions: The log-ins, by node.

    Returns:
        The DUTs of each path, from west to east.

    Raises:
        DutError: If one cannot be set up.
    """
    if request is None:
        return ((),) * len(paths)
    options = request.options.model_dump()
    duts = tuple(
        tuple(create_dut(request.kind, sessions[hop.node_name], hop, options) for hop in path.hops) for path in paths
    )
    _check_cores(duts)
    for dut in itertools.chain(*duts):
        if isinstance(dut, NodeDut):
            execute_last_wills(sessions[dut.hop.node_name])
        dut.check()
    return duts


def _check_cores(duts: Sequence[Sequence[Dut[DutOptions]]]) -> None:
    """Refuses programs that would forward on the same cores, and so halve each other's throughput."""
    for dut in itertools.chain(*duts[1:]):
        if isinstance(dut, ProgramDut):
            raise DutError(
                f"{dut.hop.node_name}: a {dut.kind} for each of {len(duts)} parallel links would forward on the same "
                "cores, and measure how they share them. Take one link, or a DUT in the kernel."
            )


def set_up_duts(
    duts: tuple[Dut[DutOptions], ...],
    sessions: Mapping[str, NodeSession],
    west_mac: str,
    east_mac: str,
    undo: ExitStack,
) -> DestinationMacs | None:
    """Sets up all DUTs of one path.

    Args:
        duts: The DUTs, from west to east.
        sessions: The log-ins, by node.
        west_mac: MAC address of the TG's west port.
        east_mac: MAC address of its east port.
        undo: Puts them back in the end.

    Returns:
        What frames must carry when they leave the TG; None if nobody knows, as there are no DUTs of ours.

    Raises:
        DutError: If one cannot be set up.
    """
    if not duts:
        return None
    addressing = address_path(duts, west_mac, east_mac)
    for dut, neighbours in zip(duts, addressing.neighbours, strict=True):
        session = sessions[dut.hop.node_name]
        if isinstance(dut, NodeDut):
            dut.node.will = LastWill(session)
        undo.callback(_put_back, dut, session)
        dut.set_up(neighbours.west, neighbours.east)
    return addressing.from_tg


def keep_last_wills(duts: tuple[Dut[DutOptions], ...]) -> None:
    """Makes sure that the DUTs would be put back if this process died, after a connection may have been lost."""
    for dut in duts:
        if isinstance(dut, NodeDut) and isinstance(dut.node.will, LastWill):
            dut.node.will.keep()


def leave_to_last_wills(duts: tuple[Dut[DutOptions], ...]) -> None:
    """Has the DUTs put back when this process ends, if it does not come to that itself."""
    for dut in duts:
        if isinstance(dut, NodeDut) and isinstance(dut.node.will, LastWill):
            dut.node.will.execute_at_end()


def _put_back(dut: Dut[DutOptions], session: NodeSession) -> None:
    """Tears a DUT down, also if the connection to it was lost, or Ctrl-C is pressed a second time meanwhile."""
    with put_off_interruption():
        leave_to_last_wills((dut,))
        try:
            session.restore()
        except NodeError as error:
            # A connection that is lost says nothing about the DUT.
            raise NodeError(f"{dut.hop.node_name} cannot be put back to how it was: {error}") from error
        dut.tear_down()


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
