# SPDX-License-Identifier: Apache-2.0
"""What the agent's own generators share: ports, directions, tags, the other end of a path, watching, late frames."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import partial
from typing import Callable, Generic, Mapping, Tuple, TypeVar

from .configuration import Configuration, Direction
from .early_verdict import LOOK_SECONDS, Lookout, ReceivedSoFar, SentSoFar, wait_for_held_frames
from .generator import Tags
from .links import Link
from .meeting import Alone, Meeting, Sight
from .pacing import pause
from .plan import Answer, Control, Plan
from .ports import Ports
from .protocol import Message
from .returns import Returns


class OwnDirection(ABC):
    """A direction whose frames are sent and counted here, at one end or at both.

    Its counters of arriving frames are made later, or not at all if they come back to another node.
    """

    _returns: Returns

    def __init__(self, direction: Direction, ports: Ports) -> None:
        self.name = direction.name
        self.sends_here, self.receives_here = direction.sends_here, direction.receives_here
        self._direction, self._ports = direction, ports
        # For an end that is elsewhere, the direction states the MAC address.
        macs = {port: ports.before[port].mac for port in direction.local_ports}
        self._macs = direction.macs(macs.get(direction.transmit, b""), macs.get(direction.receive, b""))

    def load(self, load: float) -> float:
        """Its share of a trial's load, without broadcast frames, in frames per second."""
        return load * self._direction.load_share * (1.0 - self._direction.broadcast_share)

    @abstractmethod
    def sent_so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """What has left this node of running traffic; `now` are all interfaces."""

    def received_so_far(self, now: Mapping[str, Link]) -> ReceivedSoFar:
        """What has come back to this node of running traffic; `now` are all interfaces."""
        return ReceivedSoFar(self._returns.arrived(), self._dropped(now))

    @abstractmethod
    def take_in(self, departures: Message) -> None:
        """Notes what left from another node."""

    def arrived(self) -> int:
        """How many of its frames have come back to this node so far."""
        return self._returns.arrived() if self.receives_here else 0

    def late(self) -> int:
        """Frames of the latest traffic that came back too late, and were not counted before."""
        return self._returns.late() if self.receives_here else 0

    def late_of_earlier(self) -> list[int]:
        """Late frames since the last call of this or of the counters, by traffic: the previous one, then earlier."""
        return self._returns.late_of_earlier()[0] if self.receives_here else []

    def _dropped(self, now: Mapping[str, Link]) -> int:
        """Frames that came back, and that the interface dropped."""
        sink = self._direction.receive
        return now[sink].receive_drops - self._ports.before[sink].receive_drops


DirectionT = TypeVar("DirectionT", bound=OwnDirection)
"""A kind of direction."""
Watch = Callable[[Mapping[str, Link], bool], Tuple[bool, bool]]
"""Looks at running traffic: takes all interfaces, and whether everything has left this node. It returns whether
everything has left, and whether the traffic must end."""
CHECK_SECONDS = 0.1
"""Seconds between two looks at the ports while traffic flows."""


class OwnGenerator(ABC):
    """A generator that sends and counts by itself, at one end of a path or at both.

    Its kinds differ in what they do for a plan (`_perform`), and in how frames leave (`_wait`, `_renew`, `_stop`,
    `_rest`).
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._settle_time = configuration.settle_time
        self._ports = Ports(configuration)
        self._meeting = Alone()
        self._tags = Tags(configuration.first_tag)
        # The link to a port may go down when a device is reset.
        self._links_may_change = False
        self._stopped = 0.0

    def run(self, plan: Plan, control: Control) -> Answer:
        """See `Generator.run`."""
        if not plan.steps:
            return Answer([], late=self._late())
        if self._configuration.has_other_end:
            self._meeting = Meeting(control.exchange)
        return self._perform(plan, control)

    @abstractmethod
    def _late(self) -> dict[str, list[int]]:
        """See `Answer.late`."""

    @abstractmethod
    def _perform(self, plan: Plan, control: Control) -> Answer:
        """Performs a plan that has steps."""

    def _flow(
        self, begin: Callable[[], None], control: Control, sees: Watch | None = None, *, is_endless: bool = False
    ) -> None:
        """Begins traffic, and waits until everything has left, or something ends it.

        Args:
            begin: Starts the traffic.
            control: The controller's wishes.
            sees: Looks at running traffic.
            is_endless: Whether it ends only when the controller wants an end.
        """
        looked = 0.0
        must_end = not is_endless

        try:
            begin()
            if is_endless:
                control.has_begun()
            is_over = self._wait(0.0) and must_end and sees is None
            while not is_over:
                has_left = self._wait(LOOK_SECONDS)
                # This comes first because reading the links may wait for a lock of the kernel.
                self._renew()
                control.check()
                must_end = must_end or control.wants_end()
                is_over = has_left and must_end
                if is_over or sees is not None or time.monotonic() > looked + CHECK_SECONDS:
                    looked = time.monotonic()
                    links = self._ports.after(may_go_down=self._links_may_change)
                    if sees is not None:
                        is_over, is_certain = sees(links, has_left)
                        if is_certain:
                            self._stop()
                if is_endless and must_end:
                    self._stop()
        finally:
            # Even an interrupt ends the traffic.
            self._rest()

    def _settle(self, control: Control) -> None:
        """Waits for frames in flight."""
        pause(max(0.0, self._stopped + self._settle_time - time.monotonic()), control.check)

    @abstractmethod
    def _wait(self, seconds: float) -> bool:
        """Waits at most this long until everything has left, and returns whether it has."""

    @abstractmethod
    def _renew(self) -> None:
        """Lets the senders continue, and takes what has arrived; called several times a second while traffic flows."""

    @abstractmethod
    def _stop(self) -> None:
        """Ends the traffic before its end."""

    @abstractmethod
    def _rest(self) -> None:
        """Makes sure that nothing is sent any more."""


class FlowGenerator(OwnGenerator, Generic[DirectionT]):
    """A generator of flows in one or more directions.

    Its kinds differ in how these begin (`_begin`), in what they count (`_counters`), and in what they observe besides
    (`_observed`).
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._directions: list[DirectionT] = []

    def _late(self) -> dict[str, list[int]]:
        return {direction.name: [direction.late(), *direction.late_of_earlier()] for direction in self._directions}

    def _perform(self, plan: Plan, control: Control) -> Answer:
        if not plan.is_watched:
            return self._observed(plan, self._counters(self._send(plan, control)))

        rates = {direction.name: direction.load(plan.load) for direction in self._directions}
        lookout = Lookout(plan, rates, control.note)
        ended_after = self._send(plan, control, lookout)
        if ended_after is not None:
            wait_for_held_frames(self._arrived, plan.duration - ended_after, self._settle_time, control.check)
        return lookout.answer(self._counters(ended_after), ended_after)

    def _send(self, plan: Plan, control: Control, lookout: Lookout | None = None) -> float | None:
        """Sends what a plan says, and waits for frames in flight.

        Returns:
            The seconds of traffic if it ended before the plan's end; None: everything was sent.
        """
        sees = None if lookout is None else partial(self._sees_end, lookout)
        self._flow(partial(self._begin, plan), control, sees, is_endless=plan.is_endless)
        ended_after = self._ended_after(plan, lookout)
        self._settle(control)
        return ended_after

    @abstractmethod
    def _begin(self, plan: Plan) -> None:
        """Starts the traffic of a plan."""

    @abstractmethod
    def _ended_after(self, plan: Plan, lookout: Lookout | None) -> float | None:
        """Tells the other end that everything has left; see `_send` for the answer."""

    @abstractmethod
    def _counters(self, ended_after: float | None) -> list[Message]:
        """The counters of all directions after `_send`."""

    @abstractmethod
    def _observed(self, plan: Plan, counters: list[Message]) -> Answer:
        """The counters of a plan, with what else it observes."""

    def _sees_end(self, lookout: Lookout, now: Mapping[str, Link], has_ended: bool) -> tuple[bool, bool]:
        """Looks at running traffic, together with the other end; see `Watch`."""
        sent = {way.name: way.sent_so_far(now) for way in self._directions if way.sends_here}
        received = {way.name: way.received_so_far(now) for way in self._directions if way.receives_here}
        seen = self._meeting.look(Sight(sent, received, has_ended))
        return seen.has_ended, lookout.sees(seen.sent, seen.received)

    def _exchange(self, point: str, own: Mapping[str, Message]) -> None:
        """Tells the other end at a point what left this node by direction, and notes what left the other one."""
        theirs = self._meeting.tell(point, own)
        for direction in self._directions:
            if direction.name in theirs:
                direction.take_in(theirs[direction.name])

    def _arrived(self) -> int:
        return sum(direction.arrived() for direction in self._directions)
