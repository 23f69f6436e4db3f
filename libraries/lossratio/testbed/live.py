"""Testbeds of real nodes, in a lab or in network namespaces of this machine."""

import atexit
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from lossratio import traffic
from lossratio.agent import Configuration
from lossratio.errors import NodeError, ReservationError, TrafficError
from lossratio.testbed.changes import Way
from lossratio.testbed.connections import Connections, EstablishingMeasurer, connections_through
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.testbed.inspection import check_mtus
from lossratio.testbed.next_hops import find_next_hops
from lossratio.testbed.path_check import CheckedTraffic, check_hops, look_at_fields
from lossratio.testbed.queues import QueueReader
from lossratio.testbed.repair import RepairingMeasurer
from lossratio.testbed.set_up import LiveSetUp, last_wills
from lossratio.testbed.testbed import USUAL_TRIALS, Ready, Testbed, TestbedRequest, TrialSettings
from lossratio.testbed.undo import ignored_interruption
from lossratio.testbed.watch import Watch, WatchedSource
from lossratio.traffic import AgentClient, TrafficMeasurer, TrafficProfile, check_sends_streams
from lossratio.trials import Integrity, LateFrames, Measurer

LATE_WAIT = 0.2
"""Seconds to wait for late frames of a measurement's last trial. Late frames of other trials are counted during the
next trial."""
LATE_SECONDS = 2.0
"""Seconds to wait after the latest of these frames, if a device has held frames for too long before."""
MOST_LATE_SECONDS = 30.0
"""Seconds to wait at most."""
_LATE_WAITS = round(LATE_SECONDS / LATE_WAIT)
_MOST_LATE_WAITS = round(MOST_LATE_SECONDS / LATE_WAIT)
_LOG = logging.getLogger(__name__)


class LiveTestbed(Testbed):
    """A testbed of real nodes with its DUTs set up. Open it with `open_testbed`."""

    def __init__(
        self, request: TestbedRequest, set_up: LiveSetUp, agent: AgentClient, undo: ExitStack
    ) -> None:
        self.request = request
        self.duts = set_up.duts
        self.generator = set_up.generator.settings
        self._set_up = set_up
        self._agent: AgentClient | None = agent
        self._undo = undo
        self._is_in_use = False
        # Others may have sent before the testbed was opened.
        self._quiet_since = time.monotonic()
        way = Way.of(
            [link.path for link in set_up.links], is_local=request.topology.testbed == "local"
        )
        interfaces = {name: way.interfaces(name) for name in set_up.sessions}
        reader = FingerprintReader(set_up.sessions, interfaces, set_up.program_files)
        undo.callback(reader.close)
        self._queues = QueueReader(set_up.duts)
        self._watch = Watch(reader, way, set_up.verify_duts, queues=self._queues)

        # A program may end without closing the testbed. The DUTs are restored nevertheless.
        atexit.register(self._leave)

    @contextmanager
    def ready_for(
        self, profile: TrafficProfile, settings: TrialSettings = USUAL_TRIALS
    ) -> Iterator[Ready]:
        """Configures the generator and checks the path, after restoring lost connections.

        At the end of the block, it checks again that the testbed is ours, and that the DUTs are as they were set up.

        Raises:
            TrafficError: If traffic already flows, the generator refuses the traffic, or frames do not get through.
            DutError: If a DUT is not as it was set up, or changes frames.
            ReservationError: If the testbed is no longer ours.
            NodeError: If a node cannot be reached.
        """
        if self._is_in_use:
            raise TrafficError(
                "Traffic is running on this testbed. Stop it before the next measurement."
            )

        check_sends_streams(self.request.topology, profile)
        self._set_up.restore()
        self._set_up.verify_duts()
        try:
            self._is_in_use = True
            yield self._prepared(profile, settings)
            # The trials give no result if the testbed was no longer ours, or a DUT was not as it was set up.
            with self._watch.allowing_absence():
                _prove(self._set_up, self._watch, self.request.recovery.pauses)
        except BaseException as error:
            # An agent that was interrupted or failed may be in any state. The next measurement gets a new agent.
            self._end_agent()
            # If another run has the testbed now, nobody may log in on its DUTs.
            if not isinstance(error, ReservationError):
                self._watch.save_trials()
            if isinstance(error, TrafficError):
                self._set_up.generator.explain(error)
            raise
        finally:
            self._is_in_use = False
            self._quiet_since = time.monotonic()

    def _prepared(self, profile: TrafficProfile, settings: TrialSettings) -> Ready:
        """The measurer, and the conditions of its trials; the generator is configured, and frames pass the path."""
        set_up = self._set_up
        next_hops = find_next_hops(self.request.topology, set_up, profile, self._running_agent)
        made = traffic.make_configuration(
            profile,
            set_up.port_pairs(next_hops.destinations),
            settle_time=set_up.settle_time,
            sides=next_hops.sides,
            growth=self.request.growth,
        )
        configuration = replace(
            made,
            examines=settings.integrity is not Integrity.OFF and not set_up.translates,
            connects=settings.connects,
            watches=settings.watches,
            loads_default_route=set_up.loads_default_route(self.request.topology),
        )
        set_up.generator.check_growth(self.request.growth)
        check_mtus(set_up.ports, configuration)
        largest = max(direction.frames.max_size for direction in configuration.directions)
        for dut in self.duts:
            dut.check_frames(largest)
        connections = connections_through(
            set_up.duts, configuration, to_nat=profile.directions[-1].to_nat
        )
        self._watch.begin()
        with self._watch.blaming():
            agent, facts = self._passing(configuration, connections)

        if next_hops.answers:
            facts = {**facts, "next_hops": dict(next_hops.answers)}
        if connections is not None:
            facts = {**facts, "connections": connections.facts}
        conditions = set_up.conditions(self.request, profile, {**asdict(agent.facts), **facts})

        late_frames = LateFrames()
        measurer_with = partial(
            self._measurer,
            configuration=configuration,
            connections=connections,
            idle_time=max(set_up.idle_time, settings.rest),
            ramp=settings.ramp,
            late_frames=late_frames,
        )
        measurer = measurer_with(agent)
        repairing = self._repairing(measurer, configuration, measurer_with)
        if connections is not None:
            repairing = EstablishingMeasurer(repairing, connections)
        return Ready(
            repairing,
            WatchedSource(measurer, self._watch, connections),
            conditions.with_ramp(settings.ramp).with_rest(settings.rest),
            late_frames,
            wait_for_late_frames=partial(self._wait_for_late_frames, late_frames),
            is_verified=lambda: self._watch.is_verified,
            verify_within=self._watch.verify_within,
            verify_often=self._watch.verify_often,
        )

    def _passing(
        self, configuration: Configuration, connections: Connections | None
    ) -> tuple[AgentClient, Mapping[str, Any]]:
        """An agent whose traffic gets through as it was sent, and the facts that its generator reports."""
        # A table that others have filled would be mistaken for a dead path.
        _forget(connections)
        agent = self._running_agent()
        facts = _configured(agent, configuration, self._set_up, self._watch)
        if not configuration.examines:
            return agent, facts
        self._set_up.reset_duts()
        checked = traffic.check_at_low_rate(agent, facts, self._set_up.idle_time)
        return agent, {**facts, "integrity": checked}

    def _measurer(
        self,
        agent: AgentClient,
        *,
        configuration: Configuration,
        connections: Connections | None,
        idle_time: float,
        ramp: float,
        late_frames: LateFrames,
    ) -> TrafficMeasurer:
        """Performs trials with an agent; there is another agent after each repair."""
        checked = CheckedTraffic(
            agent, lambda _: None, configuration, reset=self._set_up.reset_duts
        )
        return TrafficMeasurer(
            agent,
            idle_time=idle_time,
            quiet_since=self._quiet_since,
            ramp=ramp,
            reset=self._begin_attempt,
            forget=partial(_forget, connections),
            late_frames=late_frames,
            look=partial(look_at_fields, checked),
        )

    def _begin_attempt(self) -> None:
        self._set_up.reset_duts()
        self._queues.begin_attempt()
        # The reset may have asked DUTs something.
        time.sleep(self._set_up.wakeful_time)

    def exchange(self) -> None:
        """See `Testbed.exchange`; the testbed may look different from then on."""
        super().exchange()
        self._watch.begin()

    def close(self) -> None:
        """Ends all traffic, restores the DUTs and closes the sessions; after an interruption, when the program ends."""
        self._undo.callback(self._end_agent)
        self._undo.close()
        atexit.unregister(self._leave)

    def _leave(self) -> None:
        """Closes the testbed at the end of the program. If Ctrl-C is pressed meanwhile, nodes restore their DUTs."""
        with ignored_interruption():
            for will in last_wills(self._set_up.managed):
                will.execute_at_end()
        with suppress(KeyboardInterrupt):
            self.close()

    def _running_agent(self) -> AgentClient:
        if self._agent is not None and not self._agent.is_alive():
            # It was killed, or its connection was lost, since the last measurement.
            self._end_agent()
        if self._agent is None:
            set_up = self._set_up
            ends = [set_up.sessions[name] for name in set_up.tg_names]
            patience = self.request.recovery.patience
            self._agent = traffic.start_agent(set_up.generator.settings, *ends, patience=patience)
        self._agent.see = self._see
        self._agent.loads_default_route = self._set_up.loads_default_route(self.request.topology)
        return self._agent

    def _repairing(
        self,
        measurer: Measurer,
        configuration: Configuration,
        measurer_with: Callable[[AgentClient], Measurer],
    ) -> Measurer:
        def repair() -> Measurer:
            self._end_agent()
            self._set_up.restore()
            self._set_up.verify_duts()
            agent = self._running_agent()
            _configured(agent, configuration, self._set_up, self._watch)
            return measurer_with(agent)

        return RepairingMeasurer(
            measurer,
            repair=repair,
            check=self._set_up.check_leases,
            watch=self._watch,
            recovery=self.request.recovery,
        )

    def _wait_for_late_frames(self, late_frames: LateFrames) -> None:
        if self._agent is None:
            return
        try:
            wait_for_late_frames(self._agent, late_frames)
        except TrafficError:
            # The earlier trials stand nevertheless. The next measurement gets a new agent.
            self._end_agent()

    def _end_agent(self) -> None:
        agent = self._agent
        self._agent = None
        if agent is not None:
            agent.close()


def _prove(set_up: LiveSetUp, watch: Watch, pauses: Sequence[float]) -> None:
    """Checks that the testbed is still ours, and that the DUTs are as they were set up.

    A lost connection costs no trials: a node that does not answer now is tried again, as during trials.
    """
    for pause in (*pauses, None):
        try:
            set_up.restore()
            watch.verify()
            return
        except NodeError as error:
            if pause is None:
                raise
            _LOG.warning(
                "The testbed could not be restored and checked. Trying again in %g s: %s",
                pause,
                error,
            )
            time.sleep(pause)


def _configured(
    agent: AgentClient, configuration: Configuration, set_up: LiveSetUp, watch: Watch
) -> Mapping[str, Any]:
    """Gets an agent ready for traffic that gets through. Returns the facts that its generator reports."""
    largest = traffic.with_largest_frames(configuration)
    if largest is not None:
        check_hops(_sending(agent, largest, set_up)[0], set_up.links, watch)
    checked, facts = _sending(agent, configuration, set_up)
    check_hops(checked, set_up.links, watch)

    if checked.is_spread:
        facts = set_up.generator.configure(agent, configuration)
        time.sleep(set_up.idle_time)
    return facts


def _sending(
    agent: AgentClient, configuration: Configuration, set_up: LiveSetUp
) -> tuple[CheckedTraffic, Mapping[str, Any]]:
    """Traffic with which the path can be checked, and the facts that its generator reports."""
    configure = partial(set_up.generator.configure, agent)
    facts = configure(configuration)
    checked = CheckedTraffic(
        agent,
        configure,
        configuration,
        translates=set_up.translates,
        rest=set_up.idle_time,
        reset=set_up.reset_duts,
    )
    return checked, facts


def _forget(connections: Connections | None) -> None:
    """Makes devices forget all connections; None: no device keeps any."""
    if connections is not None:
        connections.forget()


def wait_for_late_frames(agent: AgentClient, late_frames: LateFrames) -> None:
    """Waits for late frames of the last trials: longer if earlier frames came late, and as long as more may come.

    While late frames come, it keeps waiting, because a device may hold the frames of the last trial as long as those of
    earlier trials. If no frame is missing, it does not wait.
    """
    quiet = 0
    for _ in range(_MOST_LATE_WAITS):
        if not late_frames.may_come:
            return
        before = late_frames.total
        late_frames.seen_after(traffic.by_traffic(agent.late_frames(LATE_WAIT).values()))
        if late_frames.total > before:
            quiet = 0
        else:
            quiet += 1
        most_quiet = _LATE_WAITS if late_frames.total else 1
        if quiet >= most_quiet:
            return
