"""Flows that are being sent: this machine's generator that sends them, and the thread that waits for them."""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

from lossratio.agent import Configuration, Plan
from lossratio.errors import LossRatioError, NodeError, TrafficError
from lossratio.nodes import NodeSession
from lossratio.topology import AfPacketGenerator, AutoGenerator, RealGenerator, XdpGenerator
from lossratio.traffic import AgentClient, Generator, GeneratorNode, open_generator, start_agent
from lossratio.trials import DirectionCounters, LatencyCounters
from lossratio_otg.flows import Flow

KINDS: Mapping[str, type[RealGenerator]] = {"auto": AutoGenerator, "afpacket": AfPacketGenerator, "xdp": XdpGenerator}
"""The generators of the server, and their settings."""
SILENT_SECONDS = 600.0
"""Seconds without a request after which endless flows are stopped, because their client is gone."""
_END_SECONDS = 0.5
"""Within this many seconds of their end, a request to stop flows waits for the end."""
_COUNT_SECONDS = 30.0

Counted = tuple[DirectionCounters, LatencyCounters | None]
"""What a flow has sent and received since it was started, and the latency of its frames, if that was measured."""


class OwnGenerator:
    """A generator on this machine, with the agent that runs it, and the flows that it is ready for."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.flows: tuple[Flow, ...] = ()
        self._configuration: Configuration | None = None
        self._session = NodeSession.here("otg-serve")
        settings = KINDS[kind].model_validate({"kind": kind, "python": sys.executable})
        self.agent: AgentClient = start_agent(settings, self._session)
        facts = self.agent.facts
        self._generator: Generator[RealGenerator] = open_generator(
            settings, GeneratorNode(self._session, facts.interfaces, facts.cpus), ()
        )

    def configure(self, flows: tuple[Flow, ...], configuration: Configuration) -> None:
        """Prepares it for flows that are sent together."""
        # A new rate or duration alone needs nothing new.
        if configuration != self._configuration:
            self._configuration = None
            self.flows = ()
            self._generator.configure(self.agent, configuration)
            self._configuration = configuration
        self.flows = flows

    def begin(self) -> AgentClient:
        """The agent that sends the flows; each start begins with the first values of their fields."""
        frames = [flow.direction.frames for flow in self.flows]
        if any(each.fields or len(each.sizes) > 1 for each in frames):
            # A reused generator would continue with the next values.
            self._configuration = None
        return self.agent

    def close(self) -> None:
        """Ends all traffic at once. A request that waits for an answer gets an error."""
        self._session.close()


class Run:
    """The flows that a generator is ready for, while they are being sent, in a thread.

    Attributes:
        flows: The flows.
        heard: When a client last asked for metrics, by `time.monotonic`.
        problem: Why there are no counts; None: there are counts.
    """

    def __init__(self, generator: OwnGenerator, ended: "Callable[[Run, Sequence[Counted]], None]") -> None:
        self.generator = generator
        self.flows = generator.flows
        self.heard = time.monotonic()
        self.problem: LossRatioError | None = TrafficError("The flows ended for a reason that is not known.")
        self._started = self.heard
        self._ended = ended
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops them, and waits until their frames are counted."""
        duration = self.flows[0].duration
        if duration is not None:
            is_ending = time.monotonic() > self._started + duration - _END_SECONDS
            self._thread.join(_COUNT_SECONDS if is_ending else 0.0)
        self._stopping.set()
        if duration is not None and self._thread.is_alive():
            # The generator cannot be asked while it sends so many frames.
            self.generator.close()
        self._thread.join()

    def _work(self) -> None:
        counted: list[Counted] = []
        try:
            counted = self._send()
            self.problem = None
        except LossRatioError as error:
            self.problem = error
            if self._stopping.is_set() and self.flows[0].duration is not None:
                self.problem = NodeError(
                    "Flows of fixed_packets or fixed_seconds were stopped before their end; how many frames had left "
                    "is not known. Wait for their end, or use 'continuous'."
                )
        finally:
            self._ended(self, counted)

    def _send(self) -> list[Counted]:
        flow = self.flows[0]
        agent = self.generator.begin()
        load = float(max(each.rate for each in self.flows))
        if flow.duration is None:
            agent.hold(Plan(((load, None),)))
            while not self._stopping.wait(1.0) and time.monotonic() - self.heard < SILENT_SECONDS:
                pass
            return [(counters, None) for counters in agent.stop().directions]

        is_burst = flow.packets is not None and not flow.wants_latency
        plan = Plan(((load, flow.duration),), is_burst=is_burst, locates=is_burst, latency=flow.wants_latency)
        answer = agent.run(plan)
        return list(zip_longest(answer.directions, answer.latency))
