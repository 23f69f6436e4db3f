# SPDX-License-Identifier: Apache-2.0
"""One run of TRex's traffic: how long it may have taken, and the counters of its directions."""

from __future__ import annotations

import math
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Callable, Mapping, Sequence

from ..core.configuration import Direction
from ..core.early_verdict import LOOK_SECONDS, Lookout, SoFar
from ..core.generator import late_and_copies
from ..core.pacing import frames_within
from ..core.protocol import AgentError, Check, Message
from .connection import TrexConnection
from .pace import EDGE_SECONDS, LOOK_SECONDS as PACE_SECONDS, Pace
from .streams import least_sent

_CHECK_SECONDS = 0.1
_POLL_SECONDS = 1e-3
# The longest time of a request, in seconds, if neither the server nor the agent waits for a CPU.
_REQUEST_SECONDS = 0.02
_RAMP_STEPS = 10
_STANDSTILL_SECONDS = 1.0
_LONGEST_HURRY = 0.1
_FRAME_SLACK = 2
_SLOWER_SECONDS = 5e-3
_AHEAD_LOAD = 2000.0
_AHEAD_RUNS = 5
_AHEAD_LOOKS = 5
_LOOK_SECONDS = 1e-3
# 50 ms, and the time of an answer.
_MOST_AHEAD = 0.07
_AHEAD_MARGIN = 1e-3
_COUNTERS = ("opackets", "ipackets", "ierrors")
Statistics = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True)
class Run:
    """When traffic flowed, in seconds on the agent's clock.

    The server begins some time after `asked`, perhaps long before it answers. All its traffic lies between `asked` and
    `ended`.
    """

    asked: float
    """Before the server was asked to start it; if the traffic's beginning is observed, the last time before that."""
    started: float
    """When the server had answered; if the traffic's beginning is observed, the first time after that."""
    duration: float = math.inf
    """Seconds for which it should be sent at its load."""
    pace: Pace | None = None
    """The observer of its pace."""
    stopping: float = math.inf
    """Before the server was asked to stop it; traffic for a duration should have ended by itself."""
    ended: float = math.inf
    """When the server had answered this request."""
    is_stretched: bool = False
    """Whether traffic for a duration had not ended by itself in time."""
    is_known: bool = True
    """Whether the requests were made and answered soon enough to know this, and the traffic was not seen to take longer
    than its duration."""
    was_cut: bool = False
    """Whether it was ended before its duration was over because its verdict was certain."""
    ended_by_itself: bool = False
    """Whether it ended by itself, and must still be finished."""

    @property
    def latest_begin(self) -> float:
        """The time at which traffic counts as begun."""
        return min(self.started, self.asked + _REQUEST_SECONDS)


class TrexRunner:
    """Starts and stops the streams of some ports.

    An overloaded TRex drops nothing: it sends every frame, and takes longer. So traffic is stopped soon after it
    should have ended, and its counters come with the time that it took.

    The ports are TRex's numbers, and have `delays`: seconds that their streams wait before their first frames.
    `has_begun` says whether each port has sent a frame since the counters were zero; it is called until each has,
    unless a pace shows this. None: traffic begins with the request to start it. `beside` is called about ten times a
    second while it waits, before the last tenth.
    """

    def __init__(
        self,
        connection: TrexConnection,
        ports: Sequence[int],
        settle_time: float,
        *,
        delays: Mapping[int, float] = MappingProxyType({}),
        has_begun: Callable[[], bool] | None = None,
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        self._beside = beside
        self._connection = connection
        self._ports = ports
        # The duration counts from the answer to the request to start, but at most from 20 ms after that request,
        # because an answer may come long after the beginning of the traffic.
        self._late_end = connection.settings.late_end
        self._settle_time = settle_time
        self._clock, self._sleep = connection.clock, connection.sleep
        self._delays = delays
        self._has_begun = has_begun

    def flow(
        self,
        load: float,
        duration: float,
        check: Check,
        all_sent: Callable[[], bool],
        *,
        must_end: Callable[[Run], bool] | None = None,
        pace: Pace | None = None,
    ) -> Run:
        """Sends at a load for a duration. Traffic that ended by itself must still be stopped, with `finish`.

        The load is that of the direction with the largest share. `all_sent` says whether each port has sent all frames
        of the duration. `must_end` checks the traffic at least every 50 ms, and returns whether to end it at once; the
        pace checks every few milliseconds.
        """
        run = self._begun(load, duration, pace)
        end = run.latest_begin + duration
        transmitting = True
        unfinished = run.started
        sees_end = all_sent if pace is None else pace.has_ended

        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            while must_end is not None and end - self._clock() > LOOK_SECONDS:
                self.wait(LOOK_SECONDS, check, pace)
                if must_end(run):
                    undo.pop_all()
                    return replace(self._stopped(run), was_cut=True)

            near = end if pace is None else min(end, pace.earliest_end)
            self.wait(near - self._clock(), check, pace)
            while transmitting and self._clock() <= end + self._late_end:
                self._sleep(_POLL_SECONDS if pace is None else EDGE_SECONDS)
                check()
                look = self._clock()
                transmitting = not sees_end()
                if transmitting:
                    unfinished = look

            # A server that does not retry frames for which its ring had no room also ends in time, but never sends
            # everything.
            transmitting = transmitting and self._connection.is_transmitting(self._ports)
            undo.pop_all()

        is_known = self._clock() <= end + self._late_end + _REQUEST_SECONDS
        # If its beginning is observed, traffic may be seen to take longer.
        if pace is not None:
            is_known = is_known and pace.is_kept
        elif self._has_begun is not None:
            is_known = is_known and unfinished - run.started <= duration + _SLOWER_SECONDS

        if transmitting:
            return replace(self._stopped(run), is_stretched=True, is_known=is_known)
        return replace(run, stopping=self._clock(), ended=self._clock(), is_known=is_known, ended_by_itself=True)

    def finish(self) -> None:
        """Stops traffic that has ended by itself. Once its events have come, the client does this at once."""
        self._connection.stop(self._ports)

    def start(self, load: float) -> Run:
        """Begins to send at a load, in frames per second, until `stop`."""
        return self._begun(load, None)

    def stop(self, run: Run) -> Run:
        """Ends the traffic that `start` began, whose duration is then known."""
        stopped = self._stopped(run)
        return replace(stopped, duration=stopped.stopping - run.started)

    def ramp_up(self, load: float, ramp: float, check: Check) -> None:
        """Sends traffic that grows in steps from nothing to a load, and stops it."""
        steps = [load * (step + 1) / _RAMP_STEPS for step in range(_RAMP_STEPS)]
        run = self.start(steps[0])
        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            self.wait(ramp / _RAMP_STEPS, check)
            for step in steps[1:]:
                self._connection.change(self._ports, step)
                self.wait(ramp / _RAMP_STEPS, check)
            undo.pop_all()
        self.stop(run)

    def wait(self, seconds: float, check: Check, pace: Pace | None = None) -> None:
        """Waits, checks the pace meanwhile, and makes sure that the controller is still there."""
        end = self._clock() + seconds
        step = _CHECK_SECONDS if pace is None else PACE_SECONDS
        while True:
            left = end - self._clock()
            if left <= 0:
                return
            if left > _CHECK_SECONDS:
                # Never at the end of traffic, which must be noticed in time.
                self._beside()
            self._sleep(min(max(0.0, end - self._clock()), step))
            check()
            if pace is not None:
                pace.look()

    def _begun(self, load: float, duration: float | None, pace: Pace | None = None) -> Run:
        asked = self._clock()
        if self._delays:
            # The first port may begin before the request for the last one is answered.
            with nullcontext() if pace is None else pace.beside():
                self._connection.start_delayed(self._delays, load, duration)
        else:
            self._connection.start(self._ports, load, duration)

        started = self._clock()
        latest = started + max(self._delays.values(), default=0.0) + self._late_end
        sees_begin = self._has_begun if pace is None else pace.has_begun

        while sees_begin is not None and started < latest:
            look = self._clock()
            has_begun = sees_begin()
            started = self._clock()
            if has_begun:
                break
            asked = look
            self._sleep(_POLL_SECONDS if pace is None else EDGE_SECONDS)

        return Run(asked, started, math.inf if duration is None else duration, pace)

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

    def seconds_sent(self, load: float) -> dict[int, float]:
        """Seconds of a load that each port has sent since the counters were zero, by its number."""
        counted = self._counted()
        shares = [direction.load_share for direction in self._directions]
        ports = [source for source, _ in self._ends.values()]
        return {port: counted[port]["opackets"] / (load * share) for port, share in zip(ports, shares)}

    def so_far(self, lookout: Lookout, run: Run) -> dict[str, SoFar]:
        """The counters of each direction of a running trial."""
        elapsed = self._clock() - run.latest_begin
        # Received frames are read after sent ones.
        before, after = self._counted(), self._counted()
        seen = {}
        for name, (source, into) in self._ends.items():
            sent = before[source]["opackets"]
            sink = after[into]
            rate, whole = lookout.rates[name], lookout.whole[name]
            in_flight = lookout.in_flight * rate
            unsent = self.unsent(rate, sent, elapsed)
            seen[name] = SoFar(whole, sent, unsent, sink["ipackets"], in_flight, sink["ierrors"])
        return seen

    def unsent(self, rate: float, sent: int, elapsed: float) -> int:
        """Frames that were due some seconds after the beginning of the traffic, and were not sent by then."""
        return max(0, math.floor((elapsed - self._connection.settings.late_end) * rate) - sent)

    def arrived(self) -> int:
        """Frames that all directions have received since the counters were zero."""
        counted = self._counted()
        return sum(counted[sink]["ipackets"] for _, sink in self._ends.values())

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
                    "TRex continues to count sent frames although it was stopped. Does another client use it?",
                )
            before = statistics

    def _counters(self, number: int, direction: Direction, statistics: Statistics, load: float, run: Run) -> Message:
        duration, pace = run.duration, run.pace
        source, sink = (statistics[port] for port in self._ends[direction.name])
        sent, received = int(source["opackets"]), int(sink["ipackets"])
        rate = load * direction.load_share
        # Stalls of the server and the agent blur when traffic began and ended; each stream sends one frame more.
        most = rate * (run.ended - run.asked + _LONGEST_HURRY) + len(direction.frames.sizes) + _FRAME_SLACK
        if not (0 <= sent <= most and received >= 0):
            raise AgentError(
                "counters",
                f"TRex reports that {direction.name} sent {sent} frames and received {received}, but at most "
                f"{math.floor(most)} could be sent. Its counters jumped: another client uses this server, or it was "
                "restarted.",
            )

        # A server says a little late that it has sent all frames.
        in_time = run.is_known and (sent >= least_sent(duration, rate, number) or not run.is_stretched)
        # All frames that the load requires in the time of the traffic are due; otherwise, slow sending would go
        # unnoticed.
        stretch = (run.ended if run.is_stretched else run.stopping) - run.asked - duration
        longest = run.stopping - run.asked
        if pace is not None and math.isfinite(pace.stretch):
            stretch = pace.stretch
            longest = duration + pace.stretch

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
            "lateness_s": None if pace is None else pace.lateness(direction.transmit),
            "examination": None,
        }


def find_delays(connection: TrexConnection, counters: TrexCounters, ports: Sequence[int]) -> dict[int, float]:
    """Finds how long streams must wait before their first frames, so that a sleeping server sends none at once.

    TRex shortens each sleep by its own measurement of what a sleep costs. But that number depends on when the server
    was started (up to version 3.08): it is up to 50 ms. A server without traffic is ahead of its clock by that
    time: when traffic begins on its first port, the frames of that time leave at once, and the last ones leave that
    much earlier. Ports that begin while another one has traffic are in time. The time is computed from the frames that
    each port has sent soon after the start. This is done more than once, because the server may be stalled then.

    The ports are in the order of their starts. With the delays that are found, by the port's number, all ports begin
    right after the answer to the request to start.
    """
    found = []
    for _ in range(_AHEAD_RUNS):
        counters.clear()
        connection.start_delayed(dict.fromkeys(ports, 0.0), _AHEAD_LOAD, None)
        answered = connection.clock()
        looks = []
        for _ in range(_AHEAD_LOOKS):
            looked = connection.clock()
            sent = counters.seconds_sent(_AHEAD_LOAD)
            looks.append({port: sent[port] - (looked - answered) for port in ports})
            connection.sleep(_LOOK_SECONDS)
        connection.stop(ports)
        longest = {}
        for port in ports:
            longest[port] = max(look[port] for look in looks)
        found.append(longest)

    ahead = {}
    for port in ports:
        # The found delay is too long by the time that the answer took, or too short in a run that was stalled. So the
        # shortest delay is left out.
        _, second_shortest, *_ = sorted(run[port] for run in found)
        ahead[port] = min(_MOST_AHEAD, max(0.0, second_shortest)) + _AHEAD_MARGIN
    return ahead
