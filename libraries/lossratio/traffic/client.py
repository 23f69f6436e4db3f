"""The controller's side of the traffic agent: sends it to the TG node, starts it, and asks it."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from lossratio.agent import (
    PROTOCOL,
    AgentFacts,
    Clock,
    Configuration,
    Configure,
    Hello,
    Perform,
    Plan,
    Probe,
    Question,
    Resolve,
    Speaker,
    Stop,
    Through,
    passes_of,
)
from lossratio.errors import NodeError, TrafficError
from lossratio.nodes import NodeProgram, NodeSession, Pulse, pack_program, was_killed
from lossratio.topology import RealGenerator
from lossratio.traffic import answers
from lossratio.traffic.probe import ProbeAnswer
from lossratio.traffic.two_ends import AgentProcess, TwoEnds
from lossratio.trials import DirectionCounters, Timeline

AnswerT = TypeVar("AnswerT")

START_SECONDS = 90.0
"""Additional seconds for the first answer, because a slow node has to start Python and load numpy."""
_USUAL_PATIENCE: float = RealGenerator.model_fields["answer_timeout"].default
_CLOCK_READINGS = 5
RESOLVE_SECONDS = 3.0
"""Seconds in which a next hop must answer ARP or neighbour discovery."""
LIFE_SECONDS = 1.0
"""Seconds between signs of life from the controller while traffic flows."""
_AFTER_THE_END = "It stops all traffic when it ends. The next measurement restarts it."
_IF_IT_NEVER_STARTED = (
    "Does the generator's 'python' in the topology file name a Python 3.8 or later on that node?"
)
_IF_SLOW = "If the node is only slow, give the generator more time in the topology file, e.g. answer_timeout: 2 min."
_IF_KILLED = (
    "Measure again. If it happens again, look into the log of the node, whose kernel ends programs when memory "
    "runs out."
)


def pack_agent() -> NodeProgram:
    """Packs the agent."""
    # This one starts or reaches a server, which takes seconds.
    return pack_program("agent", "lossratio-agent", "server", rooms=("bpf",), seldom=("trex",))


class AgentRefusalError(TrafficError):
    """The agent refused a request; its `kind` is for programs, e.g. ``interface_down``."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Conversation:
    """Requests to an agent and its answers, one at a time; see `AgentClient`."""

    def __init__(self, node_name: str, process: AgentProcess, patience: float) -> None:
        self.node_name = node_name
        self.process = process
        self.patience = patience
        self._last_id = 0
        self._is_open = True
        self._pulse: Pulse | None = None

    def ask(
        self,
        operation: str,
        request: Any,
        busy: float = 0.0,
        advice: str = _AFTER_THE_END,
        see: Callable[[int, int], None] | None = None,
    ) -> Mapping[str, Any]:
        """The answer to a request, one of `lossratio.agent`'s, which may take `busy` seconds and the patience.

        `see` takes the frames sent and received that notes report before the answer.

        Raises:
            AgentRefusalError: If the agent refuses it.
            TrafficError: If the agent has ended, or does not answer as it should; `advice` says what helps.
        """
        if not self._is_open:
            raise TrafficError(
                f"Node {self.node_name}: the traffic agent has ended. The next measurement restarts it."
            )

        self._last_id += 1
        try:
            self.process.write_line(
                json.dumps({"id": self._last_id, "op": operation, **asdict(request)})
            )
            line = self.process.read_line(busy + self.patience, self._show_life)
            while see is not None and (note := _note_in(line)) is not None:
                see(*note)
                # While lines come, reading gives the agent no sign of life.
                self._show_life()
                line = self.process.read_line(busy + self.patience, self._show_life)
        except NodeError as error:
            if operation == "hello" and was_killed(self.process.exit_status):
                advice = _IF_KILLED
            elif operation == "configure" and self.process.exit_status is None:
                advice = _IF_SLOW
            self.close()
            what = str(error).rstrip(" .:")
            raise TrafficError(
                f"{what}, in the traffic agent's operation {operation!r}. {advice}"
            ) from error
        except BaseException:
            # After an interrupt, the answer would be mistaken for the next one, and traffic may still flow.
            self.close()
            raise

        try:
            answer = json.loads(line)
        except ValueError:
            answer = None

        if not isinstance(answer, dict) or answer.get("id") != self._last_id:
            raise self._garbled(line)
        if isinstance(answer.get("error"), dict):
            refusal = answer["error"]
            raise AgentRefusalError(
                f"Node {self.node_name}: {refusal.get('message')}", str(refusal.get("kind"))
            )
        if not isinstance(answer.get("result"), dict):
            raise self._garbled(line)

        result: Mapping[str, Any] = answer["result"]
        return result

    def read(
        self, read: Callable[[Mapping[str, Any]], AnswerT], answer: Mapping[str, Any]
    ) -> AnswerT:
        """What is read of an answer.

        Raises:
            TrafficError: If the answer has something else; the agent is then ended.
        """
        try:
            return read(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise self._garbled(json.dumps(answer), f" ({error!r})") from error

    def begin_pulse(self) -> None:
        """Gives the agent signs of life from now on, until `end_pulse`."""
        self._pulse = Pulse(LIFE_SECONDS, self._show_life)
        self._pulse.start()

    def end_pulse(self) -> None:
        """Ends the signs of life."""
        pulse = self._pulse
        self._pulse = None
        if pulse is not None:
            pulse.stop()

    def close(self) -> None:
        """Ends the agent; a second call changes nothing."""
        self._is_open = False
        self.end_pulse()
        self.process.close()

    def _show_life(self) -> None:
        # An agent that hears nothing while traffic flows stops the traffic.
        self.process.write_line("")

    def _garbled(self, line: str, reason: str = "") -> TrafficError:
        self.close()
        return TrafficError(
            f"Node {self.node_name}: the traffic agent's output was {line[:200]!r} instead of an "
            f"answer{reason}, so it was stopped. If a log-in script wrote this, make it write only in "
            "interactive shells; otherwise, correct the generator's 'python' in the topology file."
        )


class AgentClient(AbstractContextManager["AgentClient"]):
    """A conversation with the agent on the TG node. Start one with `AgentClient.start`, and close it at the end.

    All calls raise `AgentRefusalError` if the agent cannot or must not do something, or there are no useful counters,
    and `TrafficError` if it does not answer as it should.

    Args:
        node_name: The node.
        process: The agent's program on the node.
        patience: Seconds that an answer may take beyond the requested time.

    Attributes:
        node_name: The node.
        facts: What the agent reports about itself and the node.
        flows: Number of flows of each direction that it was configured for.
        has_connections: Whether its trials can only open connections.
        loads_default_route: Whether a port may carry the node's default route, because nobody reaches the node over it.
        settle_time: Seconds after the traffic in which frames come back in time.
        see: Takes the frames that a running trial has sent and received so far, over all directions, two to ten times a
            second if the generator reports them; None: nothing does.
    """

    def __init__(
        self, node_name: str, process: AgentProcess, patience: float = _USUAL_PATIENCE
    ) -> None:
        self.node_name = node_name
        self._conversation = Conversation(node_name, process, patience)
        self._ask = self._conversation.ask
        self._read = self._conversation.read
        self.settle_time = 0.0
        self.see: Callable[[int, int], None] | None = None
        self._directions: tuple[str, ...] = ()
        self.flows: Mapping[str, int] = {}
        self.has_connections = False
        self.loads_default_route = False
        self._held = Plan(())
        self.facts = self._hello()

    @classmethod
    def start(
        cls, *sessions: NodeSession, python: str = "python3", patience: float = _USUAL_PATIENCE
    ) -> "AgentClient":
        """Sends the agent to a node, or to the two nodes of a TG, and starts it there.

        Args:
            sessions: The log-in on the node, or those on both.
            python: Python 3.8 or later on the node.
            patience: Seconds that an answer may take beyond the requested time: the watchdog of every trial.

        Raises:
            NodeError: If the node is lost.
            TrafficError: If the agent does not start or does not answer.
        """
        program = pack_agent()
        with ExitStack() as opened:
            processes: dict[str, AgentProcess] = {}
            for session in sessions:
                processes[session.name] = program.start(session.start, python)
                opened.callback(processes[session.name].close)
            name = " and ".join(processes)
            process = next(iter(processes.values())) if len(processes) == 1 else TwoEnds(processes)
            client = cls(name, process, patience)
            opened.pop_all()
        return client

    def __exit__(self, *exception: object) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Whether the agent, at both ends if there are two, still answers: news of its end may be on the way."""
        try:
            self._ask("hello", Hello(PROTOCOL))
        except TrafficError:
            return False
        return True

    def configure(
        self,
        configuration: Configuration,
        *,
        generator: str = "afpacket",
        options: Mapping[str, Any] | None = None,
        program: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Makes a generator ready for trials, in place of any earlier one; returns what it reports about itself.

        `program` has the sources of its program, by the names of its modules; None: the agent already has it.
        """
        self.settle_time = configuration.settle_time
        self._directions = tuple(direction.name for direction in configuration.directions)
        self.flows = {
            direction.name: direction.frames.flows for direction in configuration.directions
        }
        request = Configure(generator, configuration, dict(options or {}), program)
        facts = self._ask("configure", request)
        has_handshakes = any(each.frames.handshake is not None for each in configuration.directions)
        self.has_connections = has_handshakes or facts.get("connects_only", False)
        return facts

    def run(self, plan: Plan) -> answers.Answer:
        """Performs a plan that has an end, and returns what was counted and observed."""
        if self.see is not None and plan.may_note:
            plan = replace(plan, notes=True)
        # A generator that cannot keep the rate of a burst takes longer.
        busy = plan.wait + plan.ramp + self.settle_time
        busy += 2.0 * plan.duration if plan.is_burst else plan.duration
        if plan.exchange is not None:
            passes = len(passes_of(plan.exchange, is_tcp=True))
            rounds = 1.0 + (passes - 1) / plan.exchange.answer_ratio
            busy = plan.connections / plan.load * rounds + passes * self.settle_time

        return self._observed(self._ask("run", Perform(plan), busy, see=self.see), plan)

    def hold(self, plan: Plan) -> None:
        """Begins the traffic of a plan without an end, until `stop`."""
        self._ask("run", Perform(plan))
        self._held = plan
        self._conversation.begin_pulse()

    def stop(self, late_wait: float = 0.0) -> answers.Answer:
        """Ends the traffic that `hold` began, waits for frames in flight, and returns the counters.

        Args:
            late_wait: Seconds after that in which frames are late; they are counted separately.
        """
        self._conversation.end_pulse()
        answer = self._ask("stop", Stop(), self.settle_time)
        stopped = self._observed(answer, self._held)
        late = self.late_frames(late_wait)
        directions = answers.with_late_of_earlier(stopped.directions, late)
        return replace(stopped, directions=directions, late_by_direction=late)

    def late_frames(self, wait: float) -> Mapping[str, tuple[int, ...]]:
        """Frames that were counted as lost, but came back later, by direction: of the latest traffic, and of earlier.

        Args:
            wait: Seconds to wait for them.
        """
        return self.run(Plan((), wait=wait)).late_by_direction

    def resolve(
        self,
        questions: Sequence[Question],
        seconds: float = RESOLVE_SECONDS,
        *,
        through: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], ...]:
        """Asks for the MAC addresses of next hops, through the TG's own ports: none, one, or several for each.

        `through` are ``generator`` and ``options`` of the generator that took the ports; None: the kernel has them.
        """
        taken = None if through is None else Through(**through)
        request = Resolve(seconds, taken, self.loads_default_route, tuple(questions))
        return self._read(
            lambda answer: tuple(tuple(map(str, macs)) for macs in answer["macs"]),
            self._ask("resolve", request, seconds),
        )

    def probe(
        self,
        ports: Sequence[str],
        sends: Sequence[tuple[str, bytes]],
        seconds: float,
        *,
        networks: Sequence[str],
        speakers: Sequence[Speaker] = (),
        listen: Sequence[str] = (),
        through: Mapping[str, Any] | None = None,
    ) -> ProbeAnswer:
        """Sends frames from interfaces, and notes what arrives on all ports until this many seconds later.

        `networks` contain the frames' addresses, and `speakers` answer for addresses meanwhile. `listen` are other
        interfaces on which frames may arrive; those that do not exist, are down or are in use are left out. Nothing is
        sent from them. `through` is as for `resolve`.
        """
        # Record: what is sent, and what answers.
        request = Probe(
            seconds,
            None if through is None else Through(**through),
            self.loads_default_route,
            ports=tuple(ports),
            sends=tuple((port, frame.hex()) for port, frame in sends),
            networks=tuple(networks),
            listen=tuple(listen),
            speakers=tuple(speakers),
        )
        busy = seconds + 0.01 * len(sends)
        return self._read(answers.read_probe, self._ask("probe", request, busy))

    def close(self) -> None:
        """Ends the agent, and with it all traffic; a second call changes nothing."""
        self._conversation.close()

    def _observed(self, answer: Mapping[str, Any], plan: Plan) -> answers.Answer:
        """What an answer to a plan says."""
        observed = self._read(
            partial(answers.read_answer, names=self._directions, plan=plan), answer
        )
        if plan.locates:
            return replace(observed, timelines=self._timelines(answer, observed.directions))
        return observed

    def _timelines(
        self, answer: Mapping[str, Any], counters: Sequence[DirectionCounters]
    ) -> tuple[Timeline, ...]:
        """Compares the clocks, and reads timelines by them: the quickest answer gives the smallest error."""
        readings = []
        for _ in range(_CLOCK_READINGS):
            before = time.monotonic()
            now = self._read(lambda answer: float(answer["now"]), self._ask("clock", Clock()))
            after = time.monotonic()
            readings.append(answers.AgentClock((before + after) / 2 - now, (after - before) / 2))
        clock = min(readings, key=attrgetter("error"))
        return self._read(lambda answer: answers.read_timelines(answer, counters, clock), answer)

    def _hello(self) -> AgentFacts:
        answer = self._ask("hello", Hello(PROTOCOL), START_SECONDS, _IF_IT_NEVER_STARTED)
        if answer.get("protocol") != PROTOCOL:
            self.close()
            raise TrafficError(
                f"Node {self.node_name}: the traffic agent speaks protocol {answer.get('protocol')!r}, but this "
                f"lossratio speaks protocol {PROTOCOL}. Use the same version of lossratio everywhere."
            )
        return self._read(lambda answer: AgentFacts(**answer), answer)


def _note_in(line: str) -> tuple[int, int] | None:
    """Frames sent and received, if a line is a note of a running trial."""
    if '"note"' not in line:
        return None
    try:
        note = json.loads(line)["note"]
        return int(note["sent"]), int(note["received"])
    except (ValueError, KeyError, TypeError):
        return None
