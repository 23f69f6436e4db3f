"""A testbed of real nodes, in a lab or in network namespaces of this machine."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lossratio.bench.description import describe_load, describe_traffic
from lossratio.bench.dut_set_up import checked_duts, keep_last_wills, set_up_duts
from lossratio.bench.holding import hold
from lossratio.bench.hops import check_hops
from lossratio.bench.interfaces import (
    PortState,
    check_link_speeds,
    check_mtus,
    check_presence,
    read_ports,
    with_names,
)
from lossratio.bench.reaching import reachable
from lossratio.bench.repair import RepairingMeasurer
from lossratio.bench.resetting import resetting
from lossratio.bench.testbed import Ready, TestbedRequest
from lossratio.counters import START_TOLERANCE
from lossratio.dut import DestinationMacs, Dut, DutOptions
from lossratio.errors import TopologyError, TrafficError
from lossratio.report.conditions import Conditions, describe_testbed
from lossratio.report.facts import NodeFacts, controller_facts, node_facts
from lossratio.report.ramp import with_ramp
from lossratio.report.timing import TrialTiming, trial_timing
from lossratio.reservation import Lease
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
    make_configuration,
    open_generator,
)
from lossratio.traffic.agent.configuration import Configuration
from lossratio.traffic.path_check import CHECK_DURATION, CHECK_LOAD
from lossratio.trial import Measurer

UNKNOWN_SETTLE_TIME = 0.5
"""Seconds to wait for frames in flight through a DUT that nothing is known about."""


@dataclass(frozen=True)
class _SetUp:
    """What `LiveTestbed.open` has found and made."""

    path: TrafficPath
    ports: tuple[PortState, ...]
    generator: RealGenerator
    access: GeneratorAccess
    lease: Lease | None
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
            tg = undo.enter_context(_log_in(path.tg_name, topology, request))
            # Before any log-in on a DUT, which would cost frames of whoever measures there.
            lease = hold(request, topology, tg, undo)
            dut_names = [hop.node_name for hop in path.hops]
            sessions = {
                path.tg_name: tg,
                **{name: undo.enter_context(_log_in(name, topology, request)) for name in dut_names},
            }
            ports = read_ports(path.ports, sessions)
            check_presence(request.file, path, ports)
            check_link_speeds(ports)
            path = with_names(path, ports)
            duts = checked_duts(request.dut, path, sessions)
            agent = undo.enter_context(_start_agent(tg, generator, request))
            facts = agent.facts
            access = open_generator(generator, tg, facts.interfaces, facts.cpus, (path.west, path.east))
            undo.callback(access.close)
            destinations = set_up_duts(
                duts, sessions, access.mac_address(path.west), access.mac_address(path.east), undo
            )
            set_up = _SetUp(
                path,
                ports,
                generator,
                access,
                lease,
                sessions,
                duts,
                destinations,
                facts={name: node_facts(session) for name, session in sessions.items()},
                descriptions={dut.hop.node_name: dut.describe() for dut in duts},
            )
            return cls(request, set_up, agent, undo.pop_all())

    @property
    def duts(self) -> tuple[Dut[DutOptions], ...]:
        """The DUTs that were set up, from west to east."""
        return self._set_up.duts

    @property
    def generator_limit(self) -> float | None:
        """The topology's ``max_rate``, in frames per second per interface."""
        return self._set_up.generator.max_rate

    @contextmanager
    def ready_for(self, profile: TrafficProfile, *, ramp: float = 0.0) -> Iterator[Ready]:
        """Configures the generator and checks the path, over connections that are restored if they were lost."""
        if self._is_in_use:
            raise TrafficError("Traffic flows on this testbed. Stop it before anything else is measured.")
        self._restore()
        try:
            self._is_in_use = True
            configuration = make_configuration(profile, [self._port_pair()], settle_time=self._settle_time)
            check_mtus(self._set_up.ports, configuration)
            agent, facts = self._configured(configuration)
            conditions = self._conditions(profile, {**asdict(agent.facts), **facts})
            measurer = TrafficMeasurer(agent, idle_time=self._idle_time, ramp=ramp)
            yield Ready(self._repairing(measurer, configuration, ramp), measurer, with_ramp(conditions, ramp))
        except BaseException as error:
            # An agent that was interrupted, or has failed, may be in any state: the next measurement gets a new one.
            self._end_agent()
            if isinstance(error, TrafficError):
                self._set_up.access.explain(error)
            raise
        finally:
            self._is_in_use = False

    def close(self) -> None:
        """Ends the agent, and with it all traffic, puts the DUTs back and closes the sessions."""
        atexit.unregister(self.close)
        self._undo.callback(self._end_agent)
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

    def _restore(self) -> None:
        """Logs in again where a connection was lost, and makes sure that the testbed is ours and the DUTs are alive."""
        sessions, tg_name = self._set_up.sessions, self._set_up.path.tg_name
        sessions[tg_name].restore()
        if self._set_up.lease is not None:
            self._set_up.lease.confirm()
        for session in sessions.values():
            session.restore()
        keep_last_wills(self._set_up.duts)
        self._verify_duts()

    def _verify_duts(self) -> None:
        for dut in self._set_up.duts:
            dut.verify()

    def _check_lease(self) -> None:
        if self._set_up.lease is not None:
            self._set_up.lease.check()

    def _configured(self, configuration: Configuration) -> tuple[AgentClient, Mapping[str, Any]]:
        """A running agent whose traffic gets through, and what its generator says about itself."""
        access = self._set_up.access
        if self._agent is None:
            tg = self._set_up.sessions[self._set_up.path.tg_name]
            self._agent = _start_agent(tg, self._set_up.generator, self.request)
        facts = self._agent.configure(configuration, generator=access.name, options=access.ready())
        check_hops(self._agent, self._set_up.path, self._set_up.duts)
        return self._agent, facts

    def _repairing(self, measurer: Measurer, configuration: Configuration, ramp: float) -> Measurer:
        def repair() -> Measurer:
            self._end_agent()
            self._restore()
            agent, _ = self._configured(configuration)
            return TrafficMeasurer(agent, idle_time=self._idle_time, ramp=ramp)

        repairing = RepairingMeasurer(
            measurer,
            repair=repair,
            check=self._check_lease,
            doubt=self._verify_duts,
            recovery=self.request.recovery,
        )
        return resetting(repairing, self.duts)

    def _end_agent(self) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            agent.close()

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
            load=describe_load(
                profile,
                [(path.west.name, path.east.name)],
                encapsulation_overhead=self.request.encapsulation_overhead,
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
                if self._set_up.duts
                else "left to whoever set them up"
            ),
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


def _log_in(name: str, topology: Topology, request: TestbedRequest) -> NodeSession:
    return NodeSession.connect(name, topology.nodes[name], request.credentials)


def _start_agent(tg: NodeSession, generator: RealGenerator, request: TestbedRequest) -> AgentClient:
    return AgentClient.start(tg, python=generator.python, patience=request.recovery.patience)


def _generator(topology: Topology) -> RealGenerator:
    generator = topology.nodes[topology.tg_name].generator
    if generator is None or isinstance(generator, SimulatedGenerator):
        raise TopologyError(f"Topology {topology.name}: real nodes need a real generator, such as afpacket.")
    return generator
