"""One run of TRex's traffic: how long it may have taken, and the counters of its directions."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Callable, Mapping, Sequence

from ..core.configuration import Configuration, Direction
from ..core.early_verdict import LOOK_SECONDS, NOTE_SECONDS, SoFar, Watch, is_certain
from ..core.pacing import frames_within
from ..core.protocol import AgentError, Message
from .connection import TrexConnection
from .delays import start_delayed
from .pace import LOOK_SECONDS as PACE_SECONDS
from .pace import Pace
from .streams import GAP

_CHECK_SECONDS = 0.1
_POLL_SECONDS = 1e-3
# What a request takes at most as long as neither the server nor the agent waits for a CPU.
_REQUEST_SECONDS = 0.02
_RAMP_STEPS = 10
_STANDSTILL_SECONDS = 1.0
_LONGEST_HURRY = 0.1
_FRAME_SLACK = 2
_SLOWER_SECONDS = 5e-3
_COUNTERS = ("opackets", "ipackets", "ierrors")
Statistics = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True)
class Run:
    """When traffic flowed, in seconds on the agent's clock.

    The server begins some time after `asked`, which may be long before it answers, and all its traffic lies between
    `asked` and `ended`.

    Attributes:
        asked: Before the server was asked to start it; where its begin is observed, the last time before it.
        started: When the server had answered; where its begin is observed, the first time after it.
        stopping: Before the server was asked to stop it; traffic for a duration should have ended by itself.
        ended: When the server had answered that.
        is_stretched: Whether traffic for a duration had not ended by itself in time.
        is_known: Whether the requests were answered and made soon enough to know that, and it was not seen to take
            longer than its duration.
        was_cut: Whether it was ended before its duration was over, as its verdict was certain.
        ended_by_itself: Whether it ended by itself, and is yet to be finished.
    """

    asked: float
    started: float
    stopping: float
    ended: float
    is_stretched: bool = False
    is_known: bool = True
    was_cut: bool = False
    ended_by_itself: bool = False

    @property
    def latest_begin(self) -> float:
        """The time at which traffic counts as begun."""
        return min(self.started, self.asked + _REQUEST_SECONDS)

    def is_in_time(self, *, all_sent: bool) -> bool:
        """Whether a port has sent all its frames in time.

        Args:
            all_sent: Whether it has sent all frames: a server says a little late that it has.
        """
        return self.is_known and (all_sent or not self.is_stretched)


class TrexRunner:
    """Starts and stops the streams of some ports.

    An overloaded TRex drops nothing: it sends every frame, and takes longer. So traffic is stopped soon after it
    should have ended, and its counters come with the time that it took.

    Args:
        connection: The server.
        ports: TRex's numbers of the ports that transmit.
        late_end: Seconds after a duration within which its traffic must have ended by itself. The duration counts from
            the answer to the request to start, but from 20 ms after that request at most: an answer may come long after
            the traffic's begin.
        settle_time: Seconds for which frames may stay in flight.
        clock: Returns the time, in seconds.
        sleep: Waits for so many seconds.
        delays: Seconds that the streams of each port wait before their first frames, by the port's number; empty: none
            waits.
        has_begun: Whether each port has sent a frame since the counters were zero; asked until it is so. None: traffic
            begins with the request to start it.
        beside: Called about ten times a second while it waits, before the last tenth.
    """

    def __init__(
        self,
        connection: TrexConnection,
        ports: Sequence[int],
        late_end: float,
        settle_time: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        delays: Mapping[int, float] = MappingProxyType({}),
        has_begun: Callable[[], bool] | None = None,
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        self._beside = beside
        self._connection = connection
        self._ports = ports
        self._late_end = late_end
        self._settle_time = settle_time
        self._clock, self._sleep = clock, sleep
        self._delays = delays
        self._has_begun = has_begun

    def flow(
        self,
        load: float,
        duration: float,
        check: Callable[[], None],
        all_sent: Callable[[], bool],
        must_end: Callable[[Run], bool] | None = None,
        pace: Pace | None = None,
    ) -> Run:
        """Sends at a load for a duration. Traffic that ended by itself is yet to be stopped, with `finish`.

        Args:
            load: Frames per second, of the direction with the largest share.
            duration: Seconds.
            check: To be called several times a second; an exception from it ends the traffic.
            all_sent: Whether each port has sent all frames of that duration.
            must_end: Looks at the traffic, every 50 ms at least; whether to end it at once. None: nobody looks.
            pace: Looks at the traffic, every few milliseconds.

        Raises:
            AgentError: If the server cannot do it, or is lost.
        """
        run = self._begun(load, duration, pace)
        end = run.latest_begin + duration
        transmitting, unfinished = True, run.started
        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            while must_end is not None and end - self._clock() > LOOK_SECONDS:
                self.wait(LOOK_SECONDS, check, pace)
                if must_end(run):
                    undo.pop_all()
                    return replace(self._stopped(run.asked, run.started), was_cut=True)
            self.wait(end - self._clock(), check, pace)
            while transmitting and self._clock() <= end + self._late_end:
                self._sleep(_POLL_SECONDS)
                check()
                look = self._clock()
                transmitting = not all_sent()
                if transmitting:
                    unfinished = look
            # One that does not retry what its ring had no room for ends in time, too, and never sends all.
            transmitting = transmitting and self._connection.is_transmitting(self._ports)
            undo.pop_all()
        is_known = self._clock() <= end + self._late_end + _REQUEST_SECONDS
        # Where its begin is observed, traffic may be seen to take longer.
        is_known = is_known and (self._has_begun is None or unfinished - run.started <= duration + _SLOWER_SECONDS)
        if transmitting:
            return self._stopped(run.asked, run.started, is_stretched=True, is_known=is_known)
        return replace(run, stopping=self._clock(), ended=self._clock(), is_known=is_known, ended_by_itself=True)

    def finish(self) -> None:
        """Stops traffic that has ended by itself. When its events have come, the client does it at once."""
        self._connection.stop(self._ports)

    def start(self, load: float) -> Run:
        """Begins to send at a load, in frames per second, until `stop`."""
        run = self._begun(load, None)
        return replace(run, stopping=run.started, ended=run.started)

    def stop(self, run: Run) -> Run:
        """Ends the traffic that `start` began."""
        return self._stopped(run.asked, run.started)

    def ramp_up(self, load: float, ramp: float, check: Callable[[], None]) -> None:
        """Sends traffic that grows in steps from nothing to a load, and stops it.

        Args:
            load: Frames per second.
            ramp: Seconds.
            check: To be called several times a second; an exception from it ends the traffic.
        """
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

    def wait(self, seconds: float, check: Callable[[], None], pace: Pace | None = None) -> None:
        """Waits, looks at the pace meanwhile, and makes sure that the controller is still there."""
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
        self._start(load, duration)
        started = self._clock()
        latest = started + max(self._delays.values(), default=0.0) + self._late_end
        while self._has_begun is not None and started < latest:
            if pace is not None:
                pace.look()
            look = self._clock()
            has_begun = self._has_begun()
            started = self._clock()
            if has_begun:
                break
            asked = look
            self._sleep(_POLL_SECONDS)
        return Run(asked, started, math.inf, math.inf)

    def _start(self, load: float, duration: float | None) -> None:
        if self._delays:
            start_delayed(self._connection, self._delays, load, duration)
        else:
            self._connection.start(self._ports, load, duration)

    def _stopped(self, asked: float, started: float, *, is_stretched: bool = False, is_known: bool = True) -> Run:
        stopping = self._clock()
        self._connection.stop(self._ports, self._settle_time)
        return Run(asked, started, stopping, self._clock(), is_stretched, is_known)


class TrexCounters:
    """Reads the counters of ports whose traffic has stopped.

    A port counts all frames that arrive, from any sender.

    Args:
        connection: The server.
        configuration: The directions.
        ports: TRex's numbers of the ports, by name.
        clock: Returns the time, in seconds.
    """

    def __init__(
        self,
        connection: TrexConnection,
        configuration: Configuration,
        ports: Mapping[str, int],
        clock: Callable[[], float],
    ) -> None:
        self._connection = connection
        self._directions = configuration.directions
        self._ports = ports
        self._clock = clock
        self._zero: Mapping[int, Mapping[str, int]] = {}
        self._received: Mapping[str, int] | None = None
        self._late: Mapping[str, int] = {}

    def begin(self) -> None:
        """Sets all counters to zero for new traffic; frames that came since the last `read` were late."""
        self._late = {} if self._received is None else self.late()
        self._received = None
        self.clear()

    def clear(self) -> None:
        """Sets all counters to zero, and forgets all earlier counts."""
        self._zero = self._connection.port_counters()

    def exclude(self, port: int, frames: int) -> None:
        """Leaves frames that a port has sent besides test traffic out of its counters since they were zero."""
        if port in self._zero:
            zero = self._zero[port]
            self._zero = {**self._zero, port: {**zero, "opackets": int(zero["opackets"]) + frames}}

    def have_sent(self, frames: Mapping[str, int]) -> bool:
        """Whether each direction has sent so many frames, by its name, since the counters were zero."""
        counted = self._counted()
        return all(
            counted[self._ports[direction.transmit]]["opackets"] >= frames[direction.name]
            for direction in self._directions
        )

    def seconds_sent(self, load: float) -> dict[int, float]:
        """Seconds of a load that each port has sent since the counters were zero, by its number."""
        counted, ports = self._counted(), [self._ports[direction.transmit] for direction in self._directions]
        shares = [direction.load_share for direction in self._directions]
        return {port: counted[port]["opackets"] / (load * share) for port, share in zip(ports, shares)}

    def so_far(self) -> dict[str, tuple[int, int, int]]:
        """Frames that each direction has sent, received and dropped in its ring while traffic flows.

        What is received is asked for after what is sent.
        """
        before, after = self._counted(), self._counted()
        return {
            direction.name: (
                before[self._ports[direction.transmit]]["opackets"],
                after[self._ports[direction.receive]]["ipackets"],
                after[self._ports[direction.receive]]["ierrors"],
            )
            for direction in self._directions
        }

    def read(self, load: float, run: Run, duration: float, pace: Pace | None = None) -> list[Message]:
        """The counters of each direction since they were zero, once they stand still.

        Args:
            load: Frames per second that were asked for.
            run: When traffic flowed.
            duration: Seconds for which it should have been sent at that load.
            pace: What looked at the traffic.

        Raises:
            AgentError: If they mean nothing.
        """
        statistics = self._standing()
        counters = [
            self._counters(number, direction, statistics, load, run, duration, pace)
            for number, direction in enumerate(self._directions)
        ]
        self._received = {direction["name"]: direction["received"] for direction in counters}
        return counters

    def late(self) -> dict[str, int]:
        """Frames that each direction has received since the last `read`, or since this was asked before."""
        statistics = self._counted()
        before = self._received or {}
        self._received = {
            direction.name: int(statistics[self._ports[direction.receive]]["ipackets"])
            for direction in self._directions
        }
        return {name: max(0, received - before.get(name, 0)) for name, received in self._received.items()}

    def _counted(self) -> Statistics:
        counters = self._connection.port_counters()
        return {
            port: {name: int(counters[port][name]) - int(zero[name]) for name in _COUNTERS}
            for port, zero in self._zero.items()
        }

    def _standing(self) -> Statistics:
        # Some NICs update their counters only now and then.
        ports = [self._ports[direction.transmit] for direction in self._directions]
        deadline = self._clock() + _STANDSTILL_SECONDS
        before = self._counted()
        while True:
            statistics = self._counted()
            if _sent(statistics, ports) == _sent(before, ports):
                return statistics
            if self._clock() > deadline:
                raise AgentError(
                    "counters", "TRex goes on counting frames sent although it was stopped. Does another client use it?"
                )
            before = statistics

    def _counters(
        self,
        number: int,
        direction: Direction,
        statistics: Statistics,
        load: float,
        run: Run,
        duration: float,
        pace: Pace | None,
    ) -> Message:
        source, sink = statistics[self._ports[direction.transmit]], statistics[self._ports[direction.receive]]
        sent, received = int(source["opackets"]), int(sink["ipackets"])
        rate = load * direction.load_share
        # Stalls of the server and of the agent blur when traffic began and ended; each stream sends one frame more.
        most = rate * (run.ended - run.asked + _LONGEST_HURRY) + len(direction.frames.sizes) + _FRAME_SLACK
        if not (0 <= sent <= most and received >= 0):
            raise AgentError(
                "counters",
                f"TRex says that {direction.name} sent {sent} frames and received {received}, where at most "
                f"{math.floor(most)} could be sent. Its counters jumped: another client uses this server, or it was "
                "started anew.",
            )
        in_time = run.is_in_time(all_sent=sent >= least_sent(duration, rate, number))
        # All that the load asks for in the time that the traffic took is due: else sending slowly would go unnoticed.
        due = duration if in_time else run.stopping - run.asked
        intended = frames_within(due, rate)
        end = run.ended if run.is_stretched else run.stopping
        return {
            "name": direction.name,
            "load_share": direction.load_share,
            "intended": intended,
            "sent": sent,
            "received": received,
            "unsent": max(0, intended - sent),
            "generator_drops": int(sink["ierrors"]),
            "late_of_trial_before": self._late.get(direction.name, 0),
            "elapsed": due,
            "stretch": max(0.0, end - run.asked - duration) if in_time else 0.0,
            "worst_lateness": None if pace is None else pace.lateness(direction.transmit),
            "examination": None,
        }


def least_sent(duration: float, rate: float, number: int) -> int:
    """Frames that a direction has sent when its traffic has ended in time.

    A frame that is due in the last microseconds stays unsent where the direction began so much later.

    Args:
        duration: Seconds.
        rate: Frames per second.
        number: How many directions come before it.
    """
    return frames_within(max(0.0, duration - (number + 1) * GAP), rate)


class TrexLookout:
    """Looks at the counters of a running trial, for its early verdict.

    Args:
        counters: The counters.
        directions: Its directions.
        load: Frames per second.
        duration: Seconds.
        watch: What to look for.
        late_end: Seconds by which the server may be behind without a frame being unsent.
        clock: Returns the time, in seconds.

    Attributes:
        whole: Frames that the whole trial asks for in each direction.
        most_missing: The most frames of each direction that were on their way, or lost, at one of the looks.
        certain_after: Seconds of traffic until the verdict was certain; None: it is not.
    """

    def __init__(
        self,
        counters: TrexCounters,
        directions: Sequence[Direction],
        load: float,
        duration: float,
        watch: Watch,
        late_end: float,
        clock: Callable[[], float],
    ) -> None:
        self._counters = counters
        self._rates = {direction.name: load * direction.load_share for direction in directions}
        self._watch = watch
        self._late_end = late_end
        self._clock = clock
        self.whole = {name: frames_within(duration, rate) for name, rate in self._rates.items()}
        self.most_missing = dict.fromkeys(self.whole, 0)
        self.certain_after: float | None = None
        self._next_note = clock() + NOTE_SECONDS

    def must_end(self, run: Run) -> bool:
        """Looks, and returns whether the traffic must end."""
        now = self._clock()
        seen = []
        counted = self._counters.so_far()
        if self._watch.note is not None and now >= self._next_note:
            self._next_note = now + NOTE_SECONDS
            self._watch.note(*(sum(counts[place] for counts in counted.values()) for place in (0, 1)))
        for name, (sent, received, dropped) in counted.items():
            rate = self._rates[name]
            self.most_missing[name] = max(self.most_missing[name], sent - received)
            unsent = self.unsent(name, sent, now - run.latest_begin)
            seen.append(SoFar(self.whole[name], sent, unsent, received, self._watch.in_flight * rate, dropped))
        if self.certain_after is None and is_certain(seen, self._watch.above):
            self.certain_after = max(each.sent / rate for each, rate in zip(seen, self._rates.values()))
        return self._watch.ends and self.certain_after is not None

    def unsent(self, name: str, sent: int, elapsed: float) -> int:
        """Frames of a direction that were due some seconds after its begin, and were not sent by then."""
        return max(0, math.floor((elapsed - self._late_end) * self._rates[name]) - sent)


def _sent(statistics: Statistics, ports: Sequence[int]) -> list[int]:
    return [statistics[port]["opackets"] for port in ports]
