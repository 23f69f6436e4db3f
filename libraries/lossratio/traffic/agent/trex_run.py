"""Lets TRex's traffic flow for a time, and says how long it may have taken."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Callable, Sequence

from .trex_connection import TrexConnection

_CHECK_SECONDS = 0.1
_POLL_SECONDS = 1e-3
# What a request takes at most as long as neither the server nor the agent waits for a CPU.
_REQUEST_SECONDS = 0.02
_RAMP_STEPS = 10


@dataclass(frozen=True)
class Run:
    """When traffic flowed, in seconds on the agent's clock.

    The server begins some time after `asked`, which may be long before it answers, and all its traffic lies between
    `asked` and `ended`.

    Attributes:
        asked: Before the server was asked to start it.
        started: When the server had answered.
        stopping: Before the server was asked to stop it; traffic for a duration should have ended by itself.
        ended: When the server had answered that.
        is_stretched: Whether traffic for a duration had not ended by itself in time.
        is_known: Whether the requests were answered and made soon enough to tell that.
    """

    asked: float
    started: float
    stopping: float
    ended: float
    is_stretched: bool = False
    is_known: bool = True

    def is_in_time(self, *, all_sent: bool) -> bool:
        """Whether a port has sent in time what it was to send.

        Args:
            all_sent: Whether it has sent all frames: a server says a little late that it has.
        """
        return self.is_known and (all_sent or not self.is_stretched)


class TrexRunner:
    """Starts and stops the streams of some ports.

    An overloaded TRex drops nothing: it sends every frame, and takes longer. So traffic is stopped soon after it
    should have ended, and whoever asks for counters is told how long it took.

    Args:
        connection: The server.
        ports: TRex's numbers of the ports that transmit.
        late_end: Seconds after a duration within which its traffic must have ended by itself. The duration counts from
            the answer to the request to start, but from 20 ms after that request at most: an answer may come long after
            the traffic's begin.
        settle_time: Seconds for which frames may stay in flight.
        clock: Tells the time, in seconds.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        connection: TrexConnection,
        ports: Sequence[int],
        late_end: float,
        settle_time: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._connection = connection
        self._ports = ports
        self._late_end = late_end
        self._settle_time = settle_time
        self._clock, self._sleep = clock, sleep

    def flow(self, load: float, duration: float, check: Callable[[], None]) -> Run:
        """Sends at a load for a duration.

        Args:
            load: Frames per second, of the direction with the largest share.
            duration: Seconds.
            check: To be called every now and then; what it raises ends the traffic.

        Raises:
            AgentError: If the server cannot do it, or is lost.
        """
        asked = self._clock()
        self._connection.start(self._ports, load, duration)
        started = self._clock()
        end = min(started, asked + _REQUEST_SECONDS) + duration
        transmitting = True
        with ExitStack() as undo:
            undo.callback(self._connection.stop_quietly, self._ports)
            self.wait(end - self._clock(), check)
            while transmitting and self._clock() <= end + self._late_end:
                self._sleep(_POLL_SECONDS)
                check()
                transmitting = self._connection.is_transmitting(self._ports)
            undo.pop_all()
        is_known = self._clock() <= end + self._late_end + _REQUEST_SECONDS
        return self._stopped(asked, started, is_stretched=transmitting, is_known=is_known)

    def start(self, load: float) -> Run:
        """Begins to send at a load, in frames per second, until `stop`."""
        asked = self._clock()
        self._connection.start(self._ports, load, None)
        started = self._clock()
        return Run(asked, started, started, started)

    def stop(self, run: Run) -> Run:
        """Ends what `start` began."""
        return self._stopped(run.asked, run.started)

    def ramp_up(self, load: float, ramp: float, check: Callable[[], None]) -> None:
        """Lets traffic grow in steps from nothing to a load, and stops it.

        Args:
            load: Frames per second.
            ramp: Seconds.
            check: To be called every now and then; what it raises ends the traffic.
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

    def wait(self, seconds: float, check: Callable[[], None]) -> None:
        """Waits, and makes sure that somebody still waits for the answer."""
        end = self._clock() + seconds
        while True:
            left = end - self._clock()
            if left <= 0:
                return
            self._sleep(min(left, _CHECK_SECONDS))
            check()

    def _stopped(self, asked: float, started: float, *, is_stretched: bool = False, is_known: bool = True) -> Run:
        stopping = self._clock()
        self._connection.stop(self._ports, self._settle_time)
        return Run(asked, started, stopping, self._clock(), is_stretched, is_known)
