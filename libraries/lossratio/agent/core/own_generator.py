# SPDX-License-Identifier: Apache-2.0
"""What the agent's own generators share: ports, directions, tags, the other end of a path, watching, late frames."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from functools import partial
from typing import Callable, Generic, Mapping, Protocol, Tuple, TypeVar

from .configuration import Configuration, Direction
from .early_verdict import LOOK_SECONDS, Lookout, ReceivedSoFar, SentSoFar, wait_for_held_frames
from .generator import Tags
from .links import Link
from .meeting import Alone, Meeting, Sight
from .pacing import pause
from .plan import Answer, Control, Plan
from .ports import Ports
from .protocol import Message, unsupported
from .returns import Returns


class SendingEnd(Protocol):
    """The end of a direction that its frames leave from, on this node."""

    name: str
    """The direction."""

    def so_far(self, now: Mapping[str, Link]) -> SentSoFar:
        """What has left of running traffic; `now` are all interfaces."""


class ReceivingEnd:
    """The end of a direction that its frames come back to, on this node. Their counter is made later.

    Attributes:
        name: The direction.
        port: Name of its interface.
        returns: Counts its frames.
    """

    returns: Returns

    def __init__(self, direction: Direction, ports: Ports) -> None:
        self.name, self.port = direction.name, direction.receive
        self._direction, self._ports = direction, ports

    def so_far(self, now: Mapping[str, Link]) -> ReceivedSoFar:
        """What has come back of running traffic; `now` are all interfaces."""
        return ReceivedSoFar(self.returns.arrived(), self.dropped(now))

    def late(self) -> int:
        """Frames of the latest traffic that came back too late, and were not counted before."""
        return self.returns.late()

    def dropped(self, now: Mapping[str, Link]) -> int:
        """Frames that came back, and that the interface dropped."""
        return now[self.port].receive_drops - self._ports.before[self.port].receive_drops


SendingT = TypeVar("SendingT", bound=SendingEnd)
"""A kind of sending end."""
ReceivingT = TypeVar("ReceivingT", bound=ReceivingEnd)
"""A kind of receiving end."""
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


class FlowGenerator(OwnGenerator, Generic[SendingT, ReceivingT]):
    """A generator of flows in one or more directions, with their ends on this node.

    Its kinds differ in how these begin (`_begin`), in what they count (`_counters`), and in what they observe besides
    (`_observed`).
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self._sending: list[SendingT] = []
        self._receiving: list[ReceivingT] = []

    def _late(self) -> dict[str, list[int]]:
        return {end.name: [end.late(), *end.returns.late_of_earlier()[0]] for end in self._receiving}

    def _perform(self, plan: Plan, control: Control) -> Answer:
        if not plan.is_watched:
            return self._observed(plan, self._counters(self._send(plan, control)))

        rates = {one.name: plan.load * one.counted_share for one in self._configuration.directions}
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
        sent = {end.name: end.so_far(now) for end in self._sending}
        received = {end.name: end.so_far(now) for end in self._receiving}
        seen = self._meeting.look(Sight(sent, received, has_ended))
        return seen.has_ended, lookout.sees(seen.sent, seen.received)

    def _need_both_ends(self, purpose: str) -> None:
        """Makes sure that both ends of all directions are here, for a purpose that needs that.

        Raises:
            AgentError: If one of them is elsewhere.
        """
        if self._configuration.has_other_end:
            raise unsupported(
                f"{purpose} needs both ends of a path on one node, but this TG has its ends on two nodes. Give both "
                "ports to the TG's first node, or measure something else."
            )

    def _arrived(self) -> int:
        return sum(end.returns.arrived() for end in self._receiving)
