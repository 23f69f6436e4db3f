# SPDX-License-Identifier: Apache-2.0
"""Answers the controller's requests, one after the other, until it is gone."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from typing import Callable, Collection, Sequence

from .core.arrays import HAS_NUMPY, np
from .core.configuration import Speaker
from .core.generator import Generator, make_generator, open_cards
from .core.links import read_links
from .core.meeting import Meeting
from .core.neighbours import AnsweringWire, Responder, open_wire, resolve
from .core.pacing import pause
from .core.packets import ETH_P_ALL, PacketWire, Wire, open_packets, probe
from .core.plan import ABILITIES, TWO_NODES, VERDICTS, Control, Plan
from .core.ports import free_ports, links_in_use, usable_links
from .core.protocol import PROTOCOL, AgentError, Channel, ControllerGoneError, Message, decode, read_record, unsupported
from .core.requests import (
    PARTS_OF_REQUESTS,
    REQUESTS,
    AgentFacts,
    Clock,
    Configure,
    Hello,
    Perform,
    Probe,
    Resolve,
    SingleFrames,
    Stop,
)


def main() -> None:
    """Serves the controller at the other end of standard input and output; afterwards, all traffic has stopped."""
    # OpenBLAS would start threads, which a forking program should not have.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Ctrl-C on the terminal is for the controller, which then closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    channel = Channel(sys.stdin.fileno(), replies)
    agent = Agent(channel)

    try:
        for line in channel.lines():
            agent.hear(line)
    except ControllerGoneError as error:
        print(f"lossratio agent: the controller is gone: {error}. Stopping all traffic.", file=sys.stderr)
    finally:
        agent.close()


class Agent(Control):
    """Fulfils requests that come through a channel, with one generator."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._request_id: object = None
        self._generator: Generator | None = None
        self._can: Collection[str] = ()
        self._way_out = ""
        self._is_held = False
        self._responder: Responder | None = None

    def hear(self, line: bytes) -> None:
        """Fulfils a request, and replies."""
        self._request_id = None
        try:
            request = decode(line)
            self._request_id = request.get("id")
            self._reply(result=self.answer(request))
        except AgentError as error:
            self._reply(error={"kind": error.kind, "message": error.message})

    def answer(self, request: Message) -> Message:
        """Fulfils a request, and returns the result.

        Raises:
            AgentError: If there is no such operation, or it fails.
        """
        operation = request["op"]
        if operation not in REQUESTS:
            there = ", ".join(REQUESTS)
            raise AgentError("bad_request", f"There is no operation {operation!r}. The operations are {there}.")
        fields = {name: value for name, value in request.items() if name not in ("id", "op")}
        answer: Message = getattr(self, f"_{operation}")(read_record(REQUESTS[operation], fields, PARTS_OF_REQUESTS))
        return answer

    def check(self) -> None:
        """See `Control.check`."""
        self._channel.check()

    def note(self, sent: int, received: int) -> None:
        """See `Control.note`."""
        self._reply(note={"sent": sent, "received": received})

    def has_begun(self) -> None:
        """See `Control.has_begun`."""
        self._is_held = True
        self._reply(result={})

    def wants_end(self) -> bool:
        """See `Control.wants_end`; until then, the agent only says what the node has, and the time of its clock."""
        while self._is_held and self._channel.has_line():
            self._hear_while_held()
        return not self._is_held

    def exchange(self, said: Message) -> Message:
        """See `Control.exchange`: the controller carries the messages.

        Raises:
            AgentError: If the other agent cannot continue.
        """
        self._reply(meet=said)
        answer = decode(self._channel.line())
        if answer["op"] != "met" or not isinstance(answer.get("said"), dict):
            return super().exchange(said)
        return answer

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""
        if self._generator is not None:
            self._generator.close()
        if self._responder is not None:
            self._responder.close()
        self._generator = None
        self._responder = None

    def _hello(self, asked: Hello) -> Message:
        if asked.protocol != PROTOCOL:
            raise AgentError(
                "protocol",
                f"This agent speaks protocol {PROTOCOL}, but the request is for {asked.protocol}. Use the same "
                "version of lossratio everywhere.",
            )
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        # Record: what the node has.
        facts = AgentFacts(
            protocol=PROTOCOL,
            python=platform.python_version(),
            numpy=str(np.__version__) if HAS_NUMPY else None,
            kernel=f"{platform.system()} {platform.release()}",
            machine=platform.machine(),
            cpu=models[0] if models else platform.processor(),
            cpus=len(os.sched_getaffinity(0)),
            interfaces={link.name: link.mac.hex(":") for link in read_links().values()},
        )
        return asdict(facts)

    def _configure(self, asked: Configure) -> Message:
        self.close()
        configuration = asked.configuration
        with ExitStack() as undo:
            undo.callback(self.close)
            if configuration.speakers:
                # This comes first because some generators have threads, and a process with threads should not be
                # forked.
                self._responder = Responder(configuration.speakers, usable_links(configuration))
            self._generator = make_generator(asked.generator, configuration, asked.options, asked.program)
            facts = self._generator.facts()
            # These are for plans; results state everything else.
            self._can = facts.pop("can", ())
            self._way_out = facts.pop("way_out", "Use 'kind: afpacket'.")
            if configuration.has_other_end and TWO_NODES not in self._can:
                raise unsupported(
                    f"The generator {asked.generator} needs both ends of a path on one node, but this TG has its ends "
                    "on two nodes. Use 'kind: afpacket' or 'kind: xdp'."
                )
            undo.pop_all()
        return facts

    def _run(self, asked: Perform) -> Message:
        plan = asked.plan
        generator = self._able_generator(plan)
        # Nothing flows yet.
        pause(plan.wait, self._channel.check_open)
        try:
            answer = asdict(generator.run(plan, self))
        except AgentError:
            # The error is the answer to the request to stop.
            self._wait_for_stop()
            raise
        self._wait_for_stop()
        return answer

    def _wait_for_stop(self) -> None:
        """Waits for the request to stop if traffic without an end has ended before it."""
        while self._is_held:
            self._hear_while_held()

    def _hear_while_held(self) -> None:
        """Waits for a request after traffic without an end has begun, and answers it, unless it is to stop."""
        line = self._channel.line()
        request: Message = {"op": None}
        with suppress(AgentError):
            request = decode(line)
        if request["op"] in ("hello", "clock"):
            self.hear(line)
            return

        self._request_id = request.get("id")
        if request["op"] == "stop":
            self._is_held = False
        else:
            self._reply(error={"kind": "busy", "message": "Traffic is running. Stop it first."})

    def _stop(self, asked: Stop) -> Message:
        raise AgentError("not_running", "There is no traffic to stop.")

    def _clock(self, asked: Clock) -> Message:
        return {"now": time.monotonic()}

    def _resolve(self, asked: Resolve) -> Message:
        def kernel() -> Wire:
            ports = [question.port for question in asked.questions]
            return open_wire(ports, links_in_use(ports, loads_default_route=asked.loads_default_route))

        with closing(self._wire(asked, kernel)) as wire:
            return {"macs": resolve(asked.questions, wire, asked.seconds)}

    def _probe(self, asked: Probe) -> Message:
        undo = ExitStack()

        def kernel() -> Wire:
            links = links_in_use(asked.ports, asked.networks, loads_default_route=asked.loads_default_route)
            if asked.speakers:
                undo.callback(Responder(asked.speakers, links).close)
            listening = [*asked.ports, *free_ports(asked.listen, links)]
            return PacketWire(links, {port: [open_packets(links[port], ETH_P_ALL)] for port in listening})

        with undo, closing(self._wire(asked, kernel, asked.speakers)) as wire:
            if asked.meet:
                # By now, the other end of the path also listens.
                Meeting(self.exchange).ready(0)
            return probe(wire, asked.sends, asked.seconds)

    def _wire(self, asked: SingleFrames, kernel: Callable[[], Wire], speakers: Sequence[Speaker] = ()) -> Wire:
        """The ports for single frames: those of a generator that has taken its cards, or else the kernel's.

        A generator's wire answers for the addresses of the speakers itself.
        """
        through = asked.through
        if through is None:
            return kernel()
        # The generator's connection, if there is one, has the ports.
        self.close()
        return AnsweringWire(open_cards(through.generator, through.options), speakers)

    def _reply(self, **message: object) -> None:
        self._channel.reply({"id": self._request_id, **message})

    def _able_generator(self, plan: Plan) -> Generator:
        """The generator; raises an error that says what it cannot do of a plan."""
        if self._generator is None:
            raise AgentError("not_configured", "Traffic needs ports and frames first: send 'configure'.")
        lacking = [ability for ability in plan.needs if ability not in self._can]
        if lacking == [VERDICTS]:
            raise unsupported(
                f"This generator cannot {ABILITIES[VERDICTS]}. Measure with early_verdict=off, or use 'kind: afpacket'."
            )
        if lacking:
            raise unsupported(f"This generator cannot {ABILITIES[lacking[0]]}. {self._way_out}")
        return self._generator
