# SPDX-License-Identifier: Apache-2.0
"""One run of TRex's traffic: how long it may have taken, and the counters of its directions."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Callable, Mapping, Sequence

from ..core.configuration import Direction
from ..core.generator import late_and_copies
from ..core.pacing import frames_within
from ..core.plan import Control
from ..core.protocol import AgentError, Check, Message
from .connection import TrexConnection
from .streams import least_sent

_CHECK_SECONDS = 0.1
_POLL_SECONDS = 1e-3
_TEND_SECONDS = 0.05
# The longest time of a request, in seconds, if neither the server nor the agent waits for a CPU.
_REQUEST_SECONDS = 0.02
_STANDSTILL_SECONDS = 1.0
_LONGEST_HURRY = 0.1
_FRAME_SLACK = 2
_COUNTERS = ("opackets", "ipackets", "ierrors")
Statistics = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True)
class Run:
    """When traffic flowed, in seconds on the agent's clock.

    The server begins some time after `asked`, perhaps long before it answers. All its traffic lies between `asked` and
    `ended`.
    """

    asked: float
    """Before the server was asked to start it, and the lead of its streams later."""
    started: float
    """When the server had answered, and the lead of its streams later."""
    duration: float = math.inf
    """Seconds for which it should be sent at its load."""
    stopping: float = math.inf
    """Before the server was asked to stop it; traffic for a duration should have ended by itself."""
    ended: float = math.inf
    """When the server had answered this request."""
    is_stretched: bool = False
    """Whether traffic for a duration had not ended by itself in time."""
    is_known: bool = True
    """Whether the requests were made and answered soon enough to know this."""
    ended_by_itself: bool = False
    """Whether it ended by itself, and must still be finished."""


class TrexRunner:
    """Starts and stops the streams of some ports.

    An overloaded TRex drops nothing: it sends every frame, and takes longer. So traffic is stopped soon after it
    should have ended, and its counters come with the time that it took.

    The ports are TRex's numbers. `beside` is called about ten times a second while it waits, before the last tenth.
    """

    def __init__(
        self, connection: TrexConnection, ports: Sequence[int], settle_time: float, beside: Callable[[], None]
    ) -> None:
        self._beside = beside
        self._connection = connection
        self._ports = ports
        # The duration counts from the answer to the request to start, but at most from 20 ms after that request,
        # because an answer may come long after the beginning of the traffic.
        self._late_end = connection.settings.late_end
        self._settle_time = settle_time
        self._clock, self._sleep = connection.clock, connection.sleep

    def flow(self, load: float, duration: float, check: Check, all_sent: Callable[[], bool]) -> Run:
        """Sends at a load for a duration. Traffic that ended by itself must still be stopped.

        The load is that of the direction with the largest share. `all_sent` says whether each port has sent all frames
        of the duration.
        """
        run = self.start(load, duration)
        end = min(run.started, run.asked + _REQUEST_SECONDS) + duration
        transmitting = True

        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            self.wait(end - self._clock(), check)
            while transmitting and self._clock() <= end + self._late_end:
                self._sleep(_POLL_SECONDS)
                check()
                transmitting = not all_sent()

            # A server that does not retry frames for which its ring had no room also ends in time, but never sends
            # everything.
            transmitting = transmitting and self._connection.is_transmitting(self._ports)
            undo.pop_all()

        is_known = self._clock() <= end + self._late_end + _REQUEST_SECONDS
        if transmitting:
            return replace(self._stopped(run), is_stretched=True, is_known=is_known)
        return replace(run, stopping=self._clock(), ended=self._clock(), is_known=is_known, ended_by_itself=True)

    def flow_on(self, load: float, control: Control) -> Run:
        """Sends a load until the controller wants an end."""
        run = self.start(load)
        control.has_begun()
        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            while not control.wants_end():
                control.check()
                self._beside()
                self._sleep(_TEND_SECONDS)
            undo.pop_all()
        return self.stop(run)

    def start(self, load: float, duration: float | None = None) -> Run:
        """Begins to send at a load, in frames per second, for a duration or until `stop`."""
        lead = self._connection.settings.lead
        asked = self._clock() + lead
        self._connection.start(self._ports, load, duration)
        return Run(asked, self._clock() + lead, math.inf if duration is None else duration)

    def stop(self, run: Run) -> Run:
        """Ends the traffic that `start` began, whose duration is then known."""
        stopped = self._stopped(run)
        return replace(stopped, duration=stopped.stopping - run.started)

    def ramp_up(self, steps: Sequence[tuple[float, float]], check: Check) -> None:
        """Sends traffic whose load changes from step to step, each with its seconds, and stops it."""
        (load, seconds), *others = steps
        run = self.start(load)
        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            self.wait(seconds, check)
            for load, seconds in others:
                self._connection.change(self._ports, load)
                self.wait(seconds, check)
            undo.pop_all()
        self.stop(run)

    def wait(self, seconds: float, check: Check) -> None:
        """Waits, and makes sure that the controller is still there."""
        end = self._clock() + seconds
        while True:
            left = end - self._clock()
            if left <= 0:
                return
            if left > _CHECK_SECONDS:
                # Never at the end of traffic, which must be noticed in time.
                self._beside()
            self._sleep(min(max(0.0, end - self._clock()), _CHECK_SECONDS))
            check()

    def _stopped(self, run: Run) -> Run:
        stopping = self._clock()
        self._connection.stop(self._ports, self._settle_time)
        return replace(run, stopping=stopping, ended=self._clock())


class TrexCounters:
    """Reads the counters of ports whose traffic has stopped. A port counts all frames that arrive, from any sender."""

    def __init__(self, connection: TrexConnection, directions: Sequence[Direction]) -> None:
        self._connection = connection
        self._directions = directions
        self._clock = connection.clock
        ports = connection.settings.ports
        self._ends = {each.name: (ports[each.transmit], ports[each.receive]) for each in directions}
        self._zero: Mapping[int, Mapping[str, int]] = {}
        self._received: dict[str, int] = {}
        self._missing: dict[str, int | None] = {}
        self._late: Mapping[str, int] = {}

    def begin(self) -> None:
        """Sets all counters to zero for new traffic; frames that came since the last `read` were late."""
        self._late = self.late() if self._received else {}
        self._received = {}
        self.clear()

    def clear(self) -> None:
        """Sets all counters to zero, and forgets all earlier counts."""
        self._zero = self._connection.port_counters()

    def exclude(self, port: int, frames: int) -> None:
        """Leaves out of a port's counters the frames that it has sent besides test traffic since they were zero."""
        if port in self._zero:
            zero = self._zero[port]
            self._zero = {**self._zero, port: {**zero, "opackets": int(zero["opackets"]) + frames}}

    def have_sent(self, frames: Mapping[str, int]) -> bool:
        """Whether each direction, by its name, has sent its number of frames since the counters were zero."""
        counted = self._counted()
        return all(counted[source]["opackets"] >= frames[name] for name, (source, _) in self._ends.items())

    def totals(self) -> tuple[int, int]:
        """Frames that all directions have sent and received since the counters were zero."""
        counted = self._counted()
        sent = sum(counted[source]["opackets"] for source, _ in self._ends.values())
        return sent, sum(counted[sink]["ipackets"] for _, sink in self._ends.values())

    def read(self, load: float, run: Run) -> list[Message]:
        """The counters of each direction since they were zero, once they no longer change."""
        statistics = self._standing()
        counters = [
            self._counters(number, direction, statistics, load, run)
            for number, direction in enumerate(self._directions)
        ]
        self._received = {direction["name"]: direction["received_frames"] for direction in counters}
        self._missing = {each["name"]: max(0, each["sent_frames"] - each["received_frames"]) for each in counters}
        return counters

    def late(self) -> dict[str, int]:
        """Frames that each direction has received since the last `read`, or since the last call of this method.

        No more frames can be late than were missing: the others are copies, or come from other senders.
        """
        statistics = self._counted()
        late: dict[str, int] = {}
        for name, (_, sink) in self._ends.items():
            received = statistics[sink]["ipackets"]
            arrived = max(0, received - self._received.get(name, 0))
            late[name], _, self._missing[name] = late_and_copies(arrived, self._missing.get(name))
            self._received[name] = received
        return late

    def _counted(self) -> Statistics:
        counters = self._connection.port_counters()
        counted = {}
        for port, zero in self._zero.items():
            counted[port] = {name: int(counters[port][name]) - int(zero[name]) for name in _COUNTERS}
        return counted

    def _standing(self) -> Statistics:
        # Some NICs only update their counters now and then.
        ports = [source for source, _ in self._ends.values()]
        deadline = self._clock() + _STANDSTILL_SECONDS
        before = self._counted()
        while True:
            statistics = self._counted()
            if all(statistics[port]["opackets"] == before[port]["opackets"] for port in ports):
                return statistics
            if self._clock() > deadline:
                raise AgentError(
                    "counters",
                    "TRex still counts sent frames after it was stopped. If another client uses it, stop that client.",
                )
            before = statistics

    def _counters(self, number: int, direction: Direction, statistics: Statistics, load: float, run: Run) -> Message:
        duration = run.duration
        source, sink = (statistics[port] for port in self._ends[direction.name])
        sent, received = int(source["opackets"]), int(sink["ipackets"])
        rate = load * direction.load_share
        # Stalls of the server and the agent blur when traffic began and ended; each stream sends one frame more.
        most = rate * (run.ended - run.asked + _LONGEST_HURRY) + len(direction.frames.sizes) + _FRAME_SLACK
        if not (0 <= sent <= most and received >= 0):
            raise AgentError(
                "counters",
                f"TRex reports that {direction.name} sent {sent} frames and received {received}, but at most "
                f"{math.floor(most)} could be sent. Its counters jumped: another client uses this server, or it "
                "was restarted. Stop that client, and measure again.",
            )

        # A server says a little late that it has sent all frames.
        in_time = run.is_known and (sent >= least_sent(duration, rate, number) or not run.is_stretched)
        # All frames that the load requires in the time of the traffic are due; otherwise, slow sending would go
        # unnoticed.
        stretch = (run.ended if run.is_stretched else run.stopping) - run.asked - duration
        longest = run.stopping - run.asked
        due = duration if in_time else longest
        intended = frames_within(due, rate)
        # Record: the counters as the library reads them.
        return {
            "name": direction.name,
            "load_ratio": direction.load_share,
            "intended_frames": intended,
            "sent_frames": sent,
            "received_frames": received,
            "unsent_frames": max(0, intended - sent),
            "generator_drop_frames": int(sink["ierrors"]),
            "late_frames": self._late.get(direction.name, 0),
            "elapsed_s": due,
            "stretch_s": max(0.0, stretch) if in_time else 0.0,
            "examination": None,
        }
