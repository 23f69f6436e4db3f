# SPDX-License-Identifier: Apache-2.0
"""TRex as a generator, in its stateless mode: one connection, and for each trial clear, start, sleep, stop and read."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any, Callable, Mapping

from ..core.configuration import Configuration, mac_bytes
from ..core.generator import counted_course
from ..core.pacing import COUNTING, raise_priority
from ..core.plan import BURSTS, FRAMES, HOLDS, LATENCY, Answer, Control, Plan
from ..core.ports import Ports
from ..core.protocol import AgentError, Check, Message, unsupported
from .cards import Neighbours
from .connection import TrexConnection, TrexLibrary, TrexSettings
from .flow_statistics import check_arrivals, latency_answer, latency_error, latency_rate, numbered_rate, stream_answer
from .run import Run, TrexCounters, TrexRunner
from .streams import StreamMaker, least_sent

_PORT_FACTS = ("driver", "description", "speed", "numa", "pci_addr", "prom", "mult")
_LEAST_PROOF = 1.0
"""Seconds of a burst that shows whether TRex keeps its rate, because it reports the end of traffic some milliseconds
late."""
_PROOF_REST = 2.0
"""Seconds without traffic after such a burst, in which the device recovers."""
_WITHOUT_FLOW_STATISTICS: Message = {
    "in_trials": False,
    "checked": ["loss, duplicates and order of latency frames, before the first trial"],
    "not_checked": ["anything in trials, which count all frames on a port, including foreign ones"],
}
_WITH_FLOW_STATISTICS: Message = {
    "in_trials": True,
    "checked": ["loss of each stream", "duplicates and order of the latency frames of each trial"],
    "not_checked": ["contents, lengths and addresses", "duplicates and order of frames without numbers"],
}


class TrexGenerator:
    """Sends and counts with a TRex server."""

    def __init__(
        self,
        configuration: Configuration,
        settings: TrexSettings,
        library: TrexLibrary,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        _check(configuration, settings)
        self._directions = configuration.directions
        self._settle_time = configuration.settle_time
        self._settings = settings
        self._links = Ports(configuration) if settings.uses_linux else None
        self._kept_load = 0.0
        # The numbers of the counters of each direction's latency frames.
        self._groups = {direction.name: group for group, direction in enumerate(self._directions, start=1)}
        self._control: Control | None = None
        # A trial must not be judged by looks at counters that had to wait behind other programs.
        raise_priority(COUNTING)
        self._connection = TrexConnection(library, settings, clock, sleep)

        with ExitStack() as undo:
            undo.callback(self._connection.close)
            self._info = self._connection.port_info()
            self._makers: dict[str, StreamMaker] = {}
            for number, direction in enumerate(self._directions):
                macs = direction.macs(self._mac(direction.transmit), self._mac(direction.receive))
                self._makers[direction.name] = StreamMaker(self._connection, direction, *macs, number)
                self._makers[direction.name].add_load()
            self._counters = TrexCounters(self._connection, self._directions)
            self._neighbours = Neighbours(self._connection, self._counters.exclude)
            self._ports = sorted(settings.ports[direction.transmit] for direction in self._directions)
            self._runner = TrexRunner(self._connection, self._ports, configuration.settle_time, self._tend)
            undo.pop_all()

    def facts(self) -> Message:
        """The server's version, what it has logged so far, where the client comes from, and the ports."""
        ports = {}
        for name, number in self._settings.ports.items():
            info = self._info[number]
            ports[name] = {"mac": self._mac(name).hex(":"), **{fact: info.get(fact) for fact in _PORT_FACTS}}

        integrity = _WITH_FLOW_STATISTICS if self._settings.flow_statistics else _WITHOUT_FLOW_STATISTICS
        # Record: the generator as it stands in a result.
        return {
            "generator": "trex",
            "can": [FRAMES, LATENCY, BURSTS, HOLDS],
            "version": self._connection.version(),
            "client": self._connection.origin,
            "server_log": _end_of(self._settings.log),
            "late_end": self._settings.late_end,
            "neighbours": [dict(question) for question in self._settings.neighbours],
            "integrity": integrity,
            "ports": ports,
        }

    def run(self, plan: Plan, control: Control) -> Answer:
        """See `Generator.run`. After a ramp, traffic pauses for the settle time, because TRex counts all frames."""
        check = control.check
        if not plan.steps:
            return Answer([], late={name: [count] for name, count in self._counters.late().items()})
        if plan.is_endless:
            self._prepare()
            return Answer(self._read(plan.load, self._runner.flow_on(plan.load, control), check))
        if plan.is_burst:
            return Answer(self._proven_burst(plan.load, plan.duration, check))
        if plan.latency:
            return self._measure_latency(plan, check)

        self._control = control if plan.notes else None
        try:
            return Answer(self._trial(plan, check))
        finally:
            self._control = None

    def _trial(self, plan: Plan, check: Check) -> list[Message]:
        load = plan.load
        if not self._settings.flow_statistics:
            self._prepare()
            self._ramp_up(plan, load, check)
            return self._measure(load, load, plan.duration, check)
        # Each stream counts its own frames, and some of them are numbered.
        counters, statistics, errors = self._with_latency_streams(plan, numbered_rate(load), check)
        answers = []
        for direction, counted in zip(self._directions, counters):
            maker, group = self._makers[direction.name], self._groups[direction.name]
            numbered = None if direction.name in errors else (group, maker.latency_size)
            into = self._settings.ports[direction.receive]
            answers.append(stream_answer(counted, maker.groups, numbered, into, statistics))
        return answers

    def _proven_burst(self, load: float, duration: float, check: Check) -> list[Message]:
        """Sends a burst.

        TRex reports the end of a burst too late for the rate of a short one to be known. So TRex must already have kept
        the rate in a long burst. If it has not sent any, a long burst comes first, and is not counted.
        """
        if duration < _LEAST_PROOF and load > self._kept_load:
            proof = self._burst(load, _LEAST_PROOF, check)
            if load > self._kept_load:
                return proof
            self._runner.wait(_PROOF_REST, check)
        return self._burst(load, duration, check)

    def _measure_latency(self, plan: Plan, check: Check) -> Answer:
        counters, statistics, errors = self._with_latency_streams(plan, latency_rate(plan.load), check)
        groups = self._groups.items()
        latency = [errors.get(name) or latency_answer(name, statistics, group) for name, group in groups]
        return Answer(counters, latency)

    def close(self) -> None:
        """See `Generator.close`."""
        self._connection.close()

    def _with_latency_streams(
        self, plan: Plan, rate: float, check: Check
    ) -> tuple[list[Message], Mapping[Any, Any], dict[str, Message]]:
        """A trial with latency frames in its load: counters, statistics, and errors of directions without them."""
        load = plan.load
        errors: dict[str, Message] = {}
        with ExitStack() as undo:
            for direction in self._directions:
                maker = self._makers[direction.name]
                try:
                    # A direction gets the same share of the latency frames as of the load, so one factor fits.
                    streams = [maker.latency_stream(self._groups[direction.name], rate * direction.load_share)]
                except AgentError as error:
                    # The factor of the load, which is now lower, also applies to these streams.
                    streams = maker.load_streams(rate / (load - rate))
                    errors[direction.name] = latency_error(direction.name, str(error))

                maker.add_for_now(streams, undo)

            self._prepare()
            self._ramp_up(plan, load - rate, check)
            self._connection.clear()
            counters = self._measure(load, load - rate, plan.duration, check)
            statistics = self._connection.stats()
            check_arrivals(self._directions, statistics, self._groups, self._settings.ports)

        return counters, statistics, errors

    def _burst(self, load: float, duration: float, check: Check) -> list[Message]:
        """Sends a burst in each direction, instead of its load, and returns its counters with their ``course``."""
        with ExitStack() as undo:
            for maker in self._makers.values():
                undo.callback(maker.add_load)
                maker.remove_load()
                maker.add_for_now(maker.burst_streams(load, duration), undo)
            self._prepare()
            run = self._runner.flow(1.0, duration, check, self._all_sent(load, duration))
            counters = self._read(load, run, check)

        if duration >= _LEAST_PROOF and not any(direction["unsent_frames"] for direction in counters):
            self._kept_load = max(self._kept_load, load)
        for counted in counters:
            # The rate of a burst is only known if TRex took too long for it.
            is_slow = counted["unsent_frames"] > 0 and counted["elapsed_s"] > 0
            rate = counted["sent_frames"] / counted["elapsed_s"] if is_slow else None
            course = counted_course(run.started, {**counted, "last": 0.0})
            counted["course"] = {**course, "resolution": self._settings.late_end, "rate": rate}

        return counters

    def _ramp_up(self, plan: Plan, load: float, check: Check) -> None:
        """Sends the ramp of a plan, up to this load."""
        if plan.ramp:
            steps = [(part * load / plan.load, seconds) for part, seconds in plan.ramp_steps]
            self._runner.ramp_up(steps, check)
            self._runner.wait(self._settle_time, check)
            self._counters.clear()

    def _measure(self, load: float, factor: float, duration: float, check: Check) -> list[Message]:
        return self._read(load, self._runner.flow(factor, duration, check, self._all_sent(load, duration)), check)

    def _tend(self) -> None:
        self._neighbours.remind()
        if self._control is not None:
            self._control.note(*self._counters.totals())

    def _all_sent(self, load: float, duration: float) -> Callable[[], bool]:
        """Says whether each direction has sent all frames of traffic that has ended in time."""
        frames = {
            direction.name: least_sent(duration, load * direction.load_share, number)
            for number, direction in enumerate(self._directions)
        }
        return lambda: self._counters.have_sent(frames)

    def _prepare(self) -> None:
        if self._links is not None:
            self._links.mark()
        self._counters.begin()
        if self._neighbours.greet(self._settle_time):
            self._counters.clear()

    def _read(self, load: float, run: Run, check: Check) -> list[Message]:
        self._runner.wait(self._settle_time, check)
        counters = self._counters.read(load, run)
        if run.ended_by_itself:
            # Once the events of its end have come, the client does this at once.
            self._connection.stop(self._ports)
        if self._links is not None:
            self._links.after()
        else:
            self._connection.check_links()
        return counters

    def _mac(self, name: str) -> bytes:
        return mac_bytes(str(self._info[self._settings.ports[name]]["src_mac"]))


def _end_of(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return [line.rstrip() for line in lines if line.strip()][-200:]
    except OSError:
        return []


def _check(configuration: Configuration, settings: TrexSettings) -> None:
    largest = max(direction.frames.max_size for direction in configuration.directions)
    if largest > settings.largest_frame:
        raise unsupported(
            f"Frames of {largest} bytes are too large: this TRex server was set up for {settings.largest_frame}. "
            "Use smaller frames."
        )
