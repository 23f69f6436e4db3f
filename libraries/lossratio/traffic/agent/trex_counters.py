"""From TRex's statistics to the counters of a direction."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping, Sequence

from .configuration import Configuration, Direction
from .pacing import frames_within
from .protocol import AgentError, Message
from .trex_connection import TrexConnection
from .trex_run import Run

_STANDSTILL_SECONDS = 1.0
_LONGEST_HURRY = 0.1
_FRAME_SLACK = 2

Statistics = Mapping[Any, Any]


class TrexCounters:
    """Reads the counters of ports whose traffic has stopped.

    A port counts all frames that arrive, whoever sent them.

    Args:
        connection: The server.
        configuration: The directions.
        ports: TRex's numbers of the ports, by name.
        clock: Tells the time, in seconds.
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
        self._received: Mapping[str, int] | None = None
        self._late: Mapping[str, int] = {}

    def begin(self) -> None:
        """Sets all counters to zero for new traffic; what has come since the last `read` was late."""
        self._late = {} if self._received is None else self.late()
        self._received = None
        self.clear()

    def clear(self) -> None:
        """Sets all counters to zero, and forgets what was counted."""
        self._connection.clear()

    def read(self, load: float, run: Run, duration: float) -> list[Message]:
        """The counters of each direction since they were zero, once they stand still.

        Args:
            load: Frames per second that were asked for.
            run: When traffic flowed.
            duration: Seconds for which it should have been sent at that load.

        Raises:
            AgentError: If they mean nothing.
        """
        statistics = self._standing()
        counters = [self._counters(direction, statistics, load, run, duration) for direction in self._directions]
        self._received = {each["name"]: each["received"] for each in counters}
        return counters

    def late(self) -> dict[str, int]:
        """Frames that each direction has received since the last `read`, or since this was asked before."""
        statistics = self._connection.stats()
        before = self._received or {}
        self._received = {
            each.name: int(statistics[self._ports[each.receive]]["ipackets"]) for each in self._directions
        }
        return {name: max(0, received - before.get(name, 0)) for name, received in self._received.items()}

    def statistics(self) -> Statistics:
        """All that the server has counted since they were zero."""
        return self._connection.stats()

    def _standing(self) -> Statistics:
        # Some NICs update their counters only now and then.
        ports = [self._ports[direction.transmit] for direction in self._directions]
        deadline = self._clock() + _STANDSTILL_SECONDS
        before = self._connection.stats()
        while True:
            statistics = self._connection.stats()
            if _sent(statistics, ports) == _sent(before, ports):
                return statistics
            if self._clock() > deadline:
                raise AgentError(
                    "counters", "TRex goes on counting frames sent although it was stopped. Does another client use it?"
                )
            before = statistics

    def _counters(
        self, direction: Direction, statistics: Statistics, load: float, run: Run, duration: float
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
        in_time = run.is_in_time(all_sent=sent >= frames_within(duration, rate))
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
            "examination": None,
        }


def _sent(statistics: Statistics, ports: Sequence[int]) -> list[int]:
    return [statistics[port]["opackets"] for port in ports]
