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
from typing import Callable, Collection, Sequence, TypeVar, cast

from .core.configuration import PARTS, Configuration, Speaker
from .core.generator import Generator, MeetingGenerator, make_generator, open_cards
from .core.links import read_links
from .core.meeting import Meeting
from .core.neighbours import AnsweringWire, Question, Responder, open_wire, resolve
from .core.packets import ETH_P_ALL, PacketWire, Wire, open_packets, probe
from .core.plan import ABILITIES, TWO_NODES, VERDICTS, Exchange, Plan
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

ItemT = TypeVar("ItemT")

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


_OPERATIONS = (*("hello", "configure", "run", "hold", "stop", "late"), *("clock", "resolve", "probe"))
"""Operations of requests: each is a method of `Agent`, with an underscore before its name."""


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
        if request["op"] not in _OPERATIONS:
            there = ", ".join(_OPERATIONS)
            raise AgentError("bad_request", f"There is no operation {request['op']!r}. The operations are {there}.")
        self._request_id = request.get("id")
        answer: Message = getattr(self, f"_{request['op']}")(request)
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

    def _hello(self, request: Message) -> Message:
        if request.get("protocol") != PROTOCOL:
            raise AgentError(
                "protocol",
                f"This agent speaks protocol {PROTOCOL}, but the request is for {request.get('protocol')!r}.",
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

    def _configure(self, request: Message) -> Message:
        self.close()
        configuration = read_record(Configuration, request.get("configuration"), PARTS)
        name = str(request.get("generator"))
        options = request.get("options", {})
        if not isinstance(options, dict):
            raise AgentError("bad_request", f"The options must be an object, not {options!r}.")
        program = request.get("program")

        with ExitStack() as undo:
            undo.callback(self.close)
            if configuration.speakers:
                # This comes first because some generators have threads, and a process with threads should not be
                # forked.
                self._responder = Responder(configuration.speakers, usable_links(configuration))
            self._generator = make_generator(name, configuration, options, program)
            facts = self._generator.facts()
            # It is for plans; results state everything else.
            self._can = facts.pop("can", ())
            if configuration.has_other_end:
                self._join(name, _whole(request, "first_tag"))
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

    def _run(self, request: Message) -> Message:
        generator, plan = self._able_generator(request)
        if plan.is_endless:
            raise AgentError("bad_request", "A plan without an end cannot be run. Hold it, and stop it.")
        request_id = request.get("id")

        def note(sent: int, received: int) -> None:
            self._reply({"id": request_id, "note": {"sent": sent, "received": received}})

        return asdict(generator.run(plan, self._check, note))

    def _hold(self, request: Message) -> Message:
        generator, plan = self._able_generator(request)
        generator.hold(plan)
        self._is_running = True
        return {}

    def _stop(self, request: Message) -> Message:
        if self._generator is None or not self._is_running:
            raise AgentError("not_running", "There is no traffic to stop.")
        late_wait = _seconds(request, "late_wait")
        self._is_running = False
        return asdict(self._generator.stop(late_wait, self._check_open))

    def _late(self, request: Message) -> Message:
        return {"late": self._idle_generator().late(_seconds(request, "wait"), self._check_open)}

    def _clock(self, request: Message) -> Message:
        return {"now": time.monotonic()}

    def _resolve(self, request: Message) -> Message:
        self._check_idle()
        questions = [read_record(Question, question) for question in _records(request, "questions")]
        seconds = _positive(request, "seconds")
        loads_default_route = _flag(request, "loads_default_route")

        def kernel() -> Wire:
            ports = [question.port for question in questions]
            return open_wire(questions, links_in_use(ports, loads_default_route=loads_default_route))

        with closing(self._wire(request, kernel)) as wire:
            return {"macs": resolve(questions, wire, seconds)}

    def _probe(self, request: Message) -> Message:
        self._check_idle()
        ports, networks, listen = (_texts(request, field) for field in ("ports", "networks", "listen"))
        sends = [(str(port), str(frame)) for port, frame in _pairs(request, "sends")]
        speakers = [read_record(Speaker, speaker) for speaker in _records(request, "speakers")]
        seconds = _positive(request, "seconds")
        undo = ExitStack()

        def kernel() -> Wire:
            links = links_in_use(ports, networks, loads_default_route=_flag(request, "loads_default_route"))
            if speakers:
                undo.callback(Responder(speakers, links).close)
            listening = [*ports, *free_ports(listen, links)]
            return PacketWire(links, {port: [open_packets(links[port], ETH_P_ALL)] for port in listening})

        with undo, closing(self._wire(request, kernel, speakers)) as wire:
            if _flag(request, "meet"):
                # By now, the other end of the path also listens.
                Meeting(self._exchange).ready(0)
            return probe(wire, sends, seconds)

    def _wire(self, request: Message, kernel: Callable[[], Wire], speakers: Sequence[Speaker] = ()) -> Wire:
        """The ports for single frames: those of a generator that has taken its cards, or else the kernel's.

        A generator's wire answers for the addresses of the speakers itself.
        """
        through = request.get("through")
        if through is None:
            return kernel()
        if not isinstance(through, dict) or not isinstance(through.get("options"), dict):
            raise AgentError(
                "bad_request", f"Cards can only be reached through a generator with options, not {through!r}."
            )
        # The generator's connection, if there is one, has the ports.
        self.close()
        return AnsweringWire(open_cards(str(through.get("generator")), through["options"]), speakers)

    def _idle_generator(self) -> Generator:
        if self._generator is None:
            raise AgentError("not_configured", "Traffic needs ports and frames first: send 'configure'.")
        self._check_idle()
        return self._generator

    def _check_idle(self) -> None:
        if self._is_running:
            raise AgentError("busy", "Traffic is running. Stop it first.")

    def _able_generator(self, request: Message) -> tuple[Generator, Plan]:
        """The idle generator, and the plan of a request; raises an error that says what the generator cannot do."""
        plan = read_record(Plan, request.get("plan"), {"exchange": Exchange})
        generator = self._idle_generator()
        lacking = [ability for ability in plan.needs if ability not in self._can]
        if lacking:
            way_out = "Measure with early_verdict=off, or use" if lacking == [VERDICTS] else "Use"
            raise unsupported(f"This generator cannot {ABILITIES[lacking[0]]}. {way_out} 'kind: afpacket'.")
        return generator, plan


def _positive(request: Message, field: str) -> float:
    value = request.get(field)
    # A whole number of JSON may be larger than any float.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= sys.float_info.max:
        raise AgentError("bad_request", f"The {field} must be a positive, finite number, not {value!r}.")
    return float(value)


def _seconds(request: Message, field: str) -> float:
    value = request.get(field, 0)
    if value == 0 and not isinstance(value, bool):
        return 0.0
    return _positive(request, field)


def _whole(request: Message, field: str) -> int:
    value = _positive(request, field)
    if not value.is_integer():
        raise AgentError("bad_request", f"The {field} must be a whole number, not {value!r}.")
    return int(value)


def _flag(request: Message, field: str, *, default: bool = False) -> bool:
    value = request.get(field, default)
    if not isinstance(value, bool):
        raise AgentError("bad_request", f"The {field} must be true or false, not {value!r}.")
    return value


def _records(request: Message, field: str) -> list[Message]:
    return _listed(request, field, dict)


def _texts(request: Message, field: str) -> list[str]:
    return _listed(request, field, str)


def _pairs(request: Message, field: str) -> list[list[object]]:
    pairs: list[list[object]] = _listed(request, field, list)
    if any(len(pair) != 2 for pair in pairs):
        raise AgentError("bad_request", f"The {field} must be pairs, not {pairs!r}.")
    return pairs


def _listed(request: Message, field: str, kind: type[ItemT]) -> list[ItemT]:
    values = request.get(field)
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        wanted = f"a list with items of type {kind.__name__}"
        raise AgentError("bad_request", f"The {field} must be {wanted}, not {values!r}.")
    return values
