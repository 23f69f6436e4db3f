"""A testbed of real nodes, in a lab or in network namespaces of this machine."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lossratio.bench.description import describe_load, describe_traffic
from lossratio.bench.neighbours import address_path
from lossratio.bench.reaching import reachable
from lossratio.bench.testbed import DutRequest, Ready, TestbedRequest
from lossratio.counters import START_TOLERANCE
from lossratio.dut import DestinationMacs, Dut, DutOptions, create_dut
from lossratio.errors import DutError, NodeError, TopologyError, TrafficError
from lossratio.report.conditions import Conditions, TrialTiming, describe_testbed, trial_timing
from lossratio.report.facts import NodeFacts, controller_facts, node_facts
from lossratio.ssh import NodeSession
from lossratio.topology import RealGenerator, SimulatedGenerator, Topology, TrafficPath
from lossratio.traffic import (
    FALTERING,
    REPEATS,
    AgentClient,
    GeneratorAccess,
    PortPair,
    TrafficMeasurer,
    TrafficPort,
    TrafficProfile,
    check_path,
    make_configuration,
    open_generator,
)

UNKNOWN_SETTLE_TIME = 0.5
"""Seconds to wait for frames in flight through a DUT that nothing is known about."""


@dataclass(frozen=True)
class _SetUp:
    """What `LiveTestbed.open` has found and made."""

    path: TrafficPath
    generator: RealGenerator
    access: GeneratorAccess
    sessions: Mapping[str, NodeSession]
    duts: tuple[Dut[DutOptions], ...]
    destinations: DestinationMacs | None
    facts: Mapping[str, NodeFacts]
    descriptions: Mapping[str, dict[str, Any]]


class LiveTestbed:
    """A testbed of real nodes, its DUTs set up; a `lossratio.bench.testbed.Testbed`. Open it with `LiveTestbed.open`.

    Attributes:
        request: What it was opened for.
    """

    def __init__(self, request: TestbedRequest, set_up: _SetUp, agent: AgentClient, undo: ExitStack) -> None:
        self.request = request
        self._set_up = set_up
        self._agent: AgentClient | None = agent
        self._undo = undo
        self._is_in_use = False
        # A program may end without closing it; the DUTs are put back then all the same.
        atexit.register(self.close)

    @classmethod
    def open(cls, request: TestbedRequest) -> LiveTestbed:
        """Logs in on all nodes, checks and sets up the DUTs, and starts the traffic agent.

        Raises:
            LossRatioError: If any of this fails; what was done is undone then.
        """
        with ExitStack() as undo:
            topology = reachable(request.topology, undo)
            path = topology.path(duts=request.duts, nic=request.nic)
            generator = _generator(topology)
            names = (path.tg_name, *(hop.node_name for hop in path.hops))
            sessions = {
                name: undo.enter_context(NodeSession.connect(name, topology.nodes[name], request.credentials))
                for name in names
            }
            duts = _checked_duts(request.dut, path, sessions)
            tg = sessions[path.tg_name]
            agent = undo.enter_context(AgentClient.start(tg, python=generator.python))
            facts = agent.facts
            access = open_generator(generator, tg, facts.interfaces, facts.cpus, (path.west, path.east))
            undo.callback(access.close)
            destinations = _set_up_duts(
                duts, sessions, access.mac_address(path.west), access.mac_address(path.east), undo
            )
            set_up = _SetUp(
                path,
                generator,
                access,
                sessions,
                duts,
                destinations,
                facts={name: node_facts(session) for name, session in sessions.items()},
                descriptions={dut.hop.node_name: dut.describe() for dut in duts},
            )
            return cls(request, set_up, agent, undo.pop_all())

    @property
    def generator_limit(self) -> float | None:
        """The topology's ``max_rate``, in frames per second per interface."""
        return self._set_up.generator.max_rate

    @contextmanager
    def ready_for(self, profile: TrafficProfile) -> Iterator[Ready]:
        """Configures the generator and checks the path, over connections that are restored if they were lost."""
        if self._is_in_use:
            raise TrafficError("Traffic flows on this testbed. Stop it before anything else is measured.")
        for session in self._set_up.sessions.values():
            session.restore()
        for dut in self._set_up.duts:
            dut.verify()
        agent = self._running_agent()
        try:
            self._is_in_use = True
            configuration = make_configuration(profile, [self._port_pair()], settle_time=self._settle_time)
            access = self._set_up.access
            facts = agent.configure(configuration, generator=access.name, options=access.ready())
            check_path(agent)
            conditions = self._conditions(profile, {**asdict(agent.facts), **facts})
            measurer = TrafficMeasurer(agent, idle_time=self._idle_time)
            yield Ready(measurer, measurer, conditions)
        except BaseException as error:
            # An agent that was interrupted, or has failed, may be in any state: the next measurement gets a new one.
            self._agent = None
            agent.close()
            if isinstance(error, TrafficError):
                self._set_up.access.explain(error)
            raise
        finally:
            self._is_in_use = False

    def close(self) -> None:
        """Ends the agent, and with it all traffic, puts the DUTs back and closes the sessions."""
        atexit.unregister(self.close)
        agent, self._agent = self._agent, None
        if agent is not None:
            self._undo.callback(agent.close)
        self._undo.close()

    @property
    def _settle_time(self) -> float:
        """Seconds for which frames may stay in flight on the whole path."""
        duts = self._set_up.duts
        return sum(dut.settle_time for dut in duts) if duts else UNKNOWN_SETTLE_TIME

    @property
    def _idle_time(self) -> float:
        """Seconds that the DUT that needs longest takes to forget a trial."""
        return max((dut.recovery_time for dut in self._set_up.duts), default=0.0)

    def _running_agent(self) -> AgentClient:
        if self._agent is None:
            tg = self._set_up.sessions[self._set_up.path.tg_name]
            self._agent = AgentClient.start(tg, python=self._set_up.generator.python)
        return self._agent

    def _port_pair(self) -> PortPair:
        path, destinations, port_name = self._set_up.path, self._set_up.destinations, self._set_up.access.port_name
        return PortPair(
            TrafficPort(path.west.name, port_name(path.west), None if destinations is None else destinations.from_west),
            TrafficPort(path.east.name, port_name(path.east), None if destinations is None else destinations.from_east),
        )

    def _conditions(self, profile: TrafficProfile, generator_facts: Mapping[str, Any]) -> Conditions:
        path = self._set_up.path
        return Conditions(
            testbed=describe_testbed(self.request.topology, str(self.request.file), path),
            nodes=dict(self._set_up.facts),
            controller=controller_facts(),
            generator={**self._set_up.generator.model_dump(mode="json"), **generator_facts},
            duts={
                hop.node_name: self._set_up.descriptions.get(hop.node_name, {"kind": None, "configured_by": "others"})
                for hop in path.hops
            },
            traffic=describe_traffic(profile),
            load=describe_load(profile, path.west.name, path.east.name),
            timing=self._timing(),
        )

    def _timing(self) -> TrialTiming:
        return trial_timing(
            learning="before the search",
            wait_before=0.0,
            wait_after=self._settle_time,
            recovery=self._idle_time,
            tolerance=START_TOLERANCE,
            negative_loss=f"the trial is measured again, {REPEATS} times at most; then the measurement fails",
            unsent=(
                f"they count as loss; a trial with some, and at most {FALTERING:.0%}, "
                f"is measured again first, {REPEATS} times at most"
            ),
        )


def _generator(topology: Topology) -> RealGenerator:
    generator = topology.nodes[topology.tg_name].generator
    if generator is None or isinstance(generator, SimulatedGenerator):
        raise TopologyError(f"Topology {topology.name}: real nodes need a real generator, such as afpacket.")
    return generator


def _checked_duts(
    request: DutRequest | None, path: TrafficPath, sessions: Mapping[str, NodeSession]
) -> tuple[Dut[DutOptions], ...]:
    if request is None:
        return ()
    options = request.options.model_dump()
    duts = tuple(create_dut(request.kind, sessions[hop.node_name], hop, options) for hop in path.hops)
    for dut in duts:
        dut.check()
    return duts


def _set_up_duts(
    duts: tuple[Dut[DutOptions], ...],
    sessions: Mapping[str, NodeSession],
    west_mac: str,
    east_mac: str,
    undo: ExitStack,
) -> DestinationMacs | None:
    """Sets up all DUTs.

    Returns:
        What frames must carry when they leave the TG; None if nobody knows, as there are no DUTs of ours.
    """
    if not duts:
        return None
    addressing = address_path(duts, west_mac, east_mac)
    for dut, neighbours in zip(duts, addressing.neighbours, strict=True):
        undo.callback(_put_back, dut, sessions[dut.hop.node_name])
        dut.set_up(neighbours.west, neighbours.east)
    return addressing.from_tg


def _put_back(dut: Dut[DutOptions], session: NodeSession) -> None:
    """Tears a DUT down, also if the connection to it was lost."""
    try:
        session.restore()
    except NodeError as error:
        raise DutError(f"{dut.hop.node_name} cannot be put back to how it was: {error}") from error
    dut.tear_down()
