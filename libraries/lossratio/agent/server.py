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
from typing import Callable, Collection, Sequence, cast

from .core.configuration import Speaker
from .core.generator import Generator, MeetingGenerator, make_generator, open_cards
from .core.links import read_links
from .core.meeting import Meeting
from .core.neighbours import AnsweringWire, Responder, open_wire, resolve
from .core.packets import ETH_P_ALL, PacketWire, Wire, open_packets, probe
from .core.plan import ABILITIES, TWO_NODES, VERDICTS, Plan
from .core.ports import free_ports, links_in_use, usable_links
from .core.protocol import (
    PROTOCOL,
    AgentError,
    Channel,
    Check,
    ControllerGoneError,
    Message,
    decode,
    read_record,
    unsupported,
)
from .core.requests import (
    PARTS_OF_REQUESTS,
    REQUESTS,
    Clock,
    Configure,
    Hello,
    Perform,
    Probe,
    Resolve,
    SingleFrames,
    Wait,
)

_TEND_SECONDS = 0.05


def main() -> None:
    """Serves the controller at the other end of standard input and output; afterwards, all traffic has stopped."""
    # OpenBLAS would start threads, which a forking program should not have.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Ctrl-C on the terminal is for the controller, which then closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    channel = Channel(sys.stdin.fileno(), replies)
    agent = Agent(channel.check, channel.check_open, channel.reply, channel.line)

    try:
        for line in channel.lines(agent.tend):
            request_id = None
            try:
                request = decode(line)
                request_id = request.get("id")
                channel.reply({"id": request_id, "result": agent.answer(request)})
            except AgentError as error:
                channel.reply({"id": request_id, "error": {"kind": error.kind, "message": error.message}})
    except ControllerGoneError as error:
        print(f"lossratio agent: the controller is gone: {error}. Stopping all traffic.", file=sys.stderr)
    finally:
        agent.close()


class Agent:
    """Fulfils requests with one generator.

    `check` is called while traffic flows, and raises an exception if the controller is gone. `check_open` is called
    when no traffic flows: then the controller may be silent, because its machine may be busy. While a request is being
    fulfilled, `reply` sends the controller a message, and `line` waits for the controller's next line.
    """

    def __init__(
        self, check: Check, check_open: Check, reply: Callable[[Message], None], line: Callable[[], bytes]
    ) -> None:
        self._reply = reply
        self._line = line
        self._request_id: object = None
        self._check, self._check_open = check, check_open
        self._generator: Generator | None = None
        self._can: Collection[str] = ()
        self._is_running = False
        self._responder: Responder | None = None

    def answer(self, request: Message) -> Message:
        """Fulfils a request, and returns the result.

        Raises:
            AgentError: If there is no such operation, or it fails.
        """
        operation = request["op"]
        if operation not in REQUESTS:
            there = ", ".join(REQUESTS)
            raise AgentError("bad_request", f"There is no operation {operation!r}. The operations are {there}.")
        self._request_id = request.get("id")
        fields = {name: value for name, value in request.items() if name not in ("id", "op")}
        answer: Message = getattr(self, f"_{operation}")(read_record(REQUESTS[operation], fields, PARTS_OF_REQUESTS))
        return answer

    def tend(self) -> float | None:
        """Renews running traffic; returns the seconds until that is due again, or None if there is none."""
        if self._generator is None or not self._is_running:
            return None
        self._check()
        self._generator.renew()
        return _TEND_SECONDS

    def close(self) -> None:
        """Stops all traffic at once, and releases the ports."""
        if self._generator is not None:
            self._generator.close()
        if self._responder is not None:
            self._responder.close()
        self._generator = None
        self._responder = None
        self._is_running = False

    def _hello(self, asked: Hello) -> Message:
        if asked.protocol != PROTOCOL:
            raise AgentError(
                "protocol", f"This agent speaks protocol {PROTOCOL}, but the request is for {asked.protocol}."
            )
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        numpy_version = None
        with suppress(ImportError):
            import numpy

            numpy_version = str(numpy.__version__)
        # Record: what the node has.
        return {
            "protocol": PROTOCOL,
            "python": platform.python_version(),
            "numpy": numpy_version,
            "kernel": f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "cpu": models[0] if models else platform.processor(),
            "cpus": len(os.sched_getaffinity(0)),
            "interfaces": {link.name: link.mac.hex(":") for link in read_links().values()},
        }

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
            # It is for plans; results state everything else.
            self._can = facts.pop("can", ())
            if configuration.has_other_end:
                self._join(asked.generator, asked.first_tag)
            undo.pop_all()
        return facts

    def _join(self, name: str, first_tag: int) -> None:
        if TWO_NODES not in self._can:
            raise unsupported(
                f"The generator {name} needs both ends of a path on one node, but this TG has its ends on two "
                "nodes. Use 'kind: afpacket' or 'kind: xdp'."
            )
        cast(MeetingGenerator, self._generator).join(Meeting(self._exchange), first_tag)

    def _exchange(self, said: Message) -> Message:
        """Sends a message to the agent at the other end, through the controller; returns that agent's message."""
        self._reply({"id": self._request_id, "meet": said})
        answer = decode(self._line())
        if answer["op"] != "met" or not isinstance(answer.get("said"), dict):
            raise AgentError("other_end", "The other end of the path cannot continue.")
        return answer

    def _run(self, asked: Perform) -> Message:
        plan = asked.plan
        generator = self._able_generator(plan)
        if plan.is_endless:
            raise AgentError(
                "bad_request", "A plan without an end cannot be run. Start it with 'hold', and end it with 'stop'."
            )
        request_id = self._request_id

        def note(sent: int, received: int) -> None:
            self._reply({"id": request_id, "note": {"sent": sent, "received": received}})

        return asdict(generator.run(plan, self._check, note))

    def _hold(self, asked: Perform) -> Message:
        self._able_generator(asked.plan).hold(asked.plan)
        self._is_running = True
        return {}

    def _stop(self, asked: Wait) -> Message:
        if self._generator is None or not self._is_running:
            raise AgentError("not_running", "There is no traffic to stop.")
        self._is_running = False
        return asdict(self._generator.stop(asked.wait, self._check_open))

    def _late(self, asked: Wait) -> Message:
        return {"late": self._idle_generator().late(asked.wait, self._check_open)}

    def _clock(self, asked: Clock) -> Message:
        return {"now": time.monotonic()}

    def _resolve(self, asked: Resolve) -> Message:
        self._check_idle()

        def kernel() -> Wire:
            ports = [question.port for question in asked.questions]
            return open_wire(asked.questions, links_in_use(ports, loads_default_route=asked.loads_default_route))

        with closing(self._wire(asked, kernel)) as wire:
            return {"macs": resolve(asked.questions, wire, asked.seconds)}

    def _probe(self, asked: Probe) -> Message:
        self._check_idle()
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
                Meeting(self._exchange).ready(0)
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

    def _idle_generator(self) -> Generator:
        if self._generator is None:
            raise AgentError("not_configured", "Traffic needs ports and frames first: send 'configure'.")
        self._check_idle()
        return self._generator

    def _check_idle(self) -> None:
        if self._is_running:
            raise AgentError("busy", "Traffic is running. Stop it first.")

    def _able_generator(self, plan: Plan) -> Generator:
        """The idle generator; raises an error that says what it cannot do of a plan."""
        generator = self._idle_generator()
        lacking = [ability for ability in plan.needs if ability not in self._can]
        if lacking:
            way_out = "Measure with early_verdict=off, or use" if lacking == [VERDICTS] else "Use"
            raise unsupported(f"This generator cannot {ABILITIES[lacking[0]]}. {way_out} 'kind: afpacket'.")
        return generator
