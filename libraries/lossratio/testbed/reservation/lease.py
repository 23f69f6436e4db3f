"""A lease of a testbed: taken, kept by a heartbeat over an existing connection, given back, or ended by force."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import NodeSession, Pulse
from lossratio.testbed.reservation.claim import Claim
from lossratio.testbed.reservation.conversation import ANSWER_SECONDS, Conversation, Holder

BEATS = 4
"""Number of renewals within the length of a lease."""

_LOG = logging.getLogger(__name__)


class TestbedReservedError(ReservationError):
    """Another owner has the testbed.

    Attributes:
        holder: The holder; None: the testbed is free, but other owners came earlier and wait for it.
    """

    __test__ = False

    def __init__(self, message: str, holder: Holder | None) -> None:
        super().__init__(message)
        self.holder = holder


class ReservationLostError(ReservationError):
    """The testbed is not reserved for this run any more."""


class Lease:
    """A lease that this process holds; take it with `Lease.take`, and release it in the end.

    Attributes:
        node_name: The TG node.
        token: Identifies the lease.
        is_borrowed: Whether another process took the lease, so that it stays after the release here.
    """

    def __init__(
        self, session: NodeSession, claim: Claim, keeper: Conversation, granted: Mapping[str, Any], restores: bool
    ) -> None:
        self.node_name = session.name
        self.token: str = granted["lease"]["token"]
        self.is_borrowed: bool = granted["adopted"]
        self._session = session
        self._claim = replace(claim, token=self.token)
        self._keeper: Conversation | None = keeper
        self._restores = restores
        self._lock = threading.Lock()
        self._lost: ReservationLostError | None = None
        self._ends = math.inf
        self._is_over = False
        self._pulse = Pulse(claim.seconds / BEATS, self._beat)

    @classmethod
    def take(cls, session: NodeSession, claim: Claim, *, wait: float = 0.0, restores: bool = False) -> Lease:
        """Waits for the testbed in a fair queue, and takes it.

        Args:
            session: The log-in on the TG node; processes that are started over it from now on end with the lease.
            claim: The claim.
            wait: Seconds to wait at most.
            restores: Whether the heartbeat logs in again if the connection is lost: only if it alone uses the session.

        Raises:
            TestbedReservedError: If the testbed did not become free in time; the message names the holder.
            ReservationError: If the TG node cannot keep a reservation.
            NodeError: If the connection is lost.
        """
        keeper, event = _ask(session, claim, wait)
        if event["event"] != "granted":
            holder = Holder.from_json(event["holder"])
            raise TestbedReservedError(_refusal(session.name, holder, wait), holder)
        before = Holder.from_json(event["taken_over"])
        if before is not None:
            _LOG.warning(
                "The reservation of %s has run out and is taken over: it was that of %s.", session.name, before
            )
        lease = cls(session, claim, keeper, event, restores)
        lease._begin()
        return lease

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def check(self) -> None:
        """Checks that the lease is still held, as far as the heartbeat knows; sends nothing to the node.

        Raises:
            ReservationLostError: If the lease is lost, or may have expired.
        """
        keeper = self._keeper
        if self._lost is None and keeper is not None and keeper.ended is not None:
            self._take_in(keeper.ended, 0.0)
        if self._lost is None and time.monotonic() >= self._ends:
            # The TG began to count later than this side, so no other holder can have the testbed yet.
            self._lose("it could not be renewed in time, as the TG node did not answer")
        if self._lost is not None:
            raise self._lost

    def confirm(self) -> None:
        """Asks the TG node whether the lease is still held, over a new channel if the old one is gone.

        Raises:
            ReservationLostError: If the lease is lost.
            NodeError: If the node cannot be asked; the lease may still be held.
        """
        with self._lock:
            self._renew()
        self.check()

    def release(self) -> None:
        """Gives the lease back, unless it is borrowed; a second call changes nothing."""
        self._pulse.stop()
        with self._lock:
            if self._is_over:
                return
            try:
                # A lost lease cannot be given back.
                with suppress(ReservationLostError):
                    self.check()
                    if not self.is_borrowed:
                        self._give_back()
            except (NodeError, ReservationError) as error:
                _LOG.warning("The reservation ends by itself, as it cannot be released: %s", error)
            self._end()

    def leave(self) -> None:
        """Ends the heartbeat, and leaves the lease until it expires."""
        self._pulse.stop()
        with self._lock:
            self._end()

    def _end(self) -> None:
        keeper, self._keeper = self._keeper, None
        self._is_over = True
        self._session.prefix = ()
        if keeper is not None:
            keeper.close()

    def _give_back(self) -> None:
        try:
            self._tell_release()
        except NodeError:
            # Worth another log-in: otherwise the next owner in the queue waits until the lease has expired.
            self._session.restore()
            self._renew()
            self.check()
            self._tell_release()

    def _tell_release(self) -> None:
        if self._keeper is None:
            raise NodeError(f"Node {self.node_name}: nobody keeps its reservation.")
        self._keeper.tell({"op": "release"})
        self._keeper.answer()

    def _begin(self) -> None:
        # The lease began on the TG at an unknown moment of the wait, so the first renewal shows when it ends.
        self.confirm()
        self._pulse.start()

    def _beat(self) -> None:
        with self._lock:
            if self._lost is not None:
                return
            try:
                self._renew(may_restart=self._restores)
            except NodeError:
                # A log-in during a trial would cost frames. The next user of the session logs in.
                if self._restores:
                    self._session.restore()
                    self._renew()

    def _renew(self, *, may_restart: bool = True) -> None:
        asked = time.monotonic()
        try:
            if self._keeper is None:
                raise NodeError(f"Node {self.node_name}: nobody keeps its reservation.")
            self._keeper.tell({"op": "renew"})
            event = self._keeper.answer()
        except NodeError:
            keeper, self._keeper = self._keeper, None
            if keeper is not None and keeper.ended is not None:
                event = keeper.ended
            elif may_restart:
                self._keeper, event = _ask(self._session, self._claim, 0.0)
            else:
                raise
        self._take_in(event, asked)

    def _take_in(self, event: Mapping[str, Any], asked: float) -> None:
        if event["event"] == "renewed" or event.get("adopted"):
            self._ends = asked + self._claim.seconds
            self._session.prefix = tuple(event["prefix"])
            return
        if event["event"] == "granted" and self._keeper is not None:
            # A new lease, as the old one was lost. In between, another holder may have changed the testbed.
            self._keeper.tell({"op": "release"})
        holder = Holder.from_json(event.get("holder"))
        reason = event.get("reason") or "somebody has released it"
        self._lose(reason if holder is None else f"it is now that of {holder}")

    def _lose(self, why: str) -> None:
        self._lost = ReservationLostError(
            f"Node {self.node_name}: the reservation of this testbed was lost: {why}. What runs here has stopped; "
            f"run it again when the testbed is free."
        )


def _ask(session: NodeSession, claim: Claim, wait: float) -> tuple[Conversation, Mapping[str, Any]]:
    """Asks for a lease, and waits for the answer."""
    keeper = Conversation(session, claim.python, claim.take(wait))
    with Pulse(claim.seconds / BEATS, lambda: keeper.tell({"op": "wait"})):
        return keeper, keeper.answer(ANSWER_SECONDS + claim.seconds)


def _refusal(node_name: str, holder: Holder | None, wait: float) -> str:
    whose = "others are waiting for it who came earlier" if holder is None else f"it is reserved for {holder}"
    waited = f" {wait:g} s were not enough." if wait else ""
    return (
        f"Node {node_name}: the testbed is not available: {whose}.{waited} Wait for it (--wait 2h), take another one "
        f"(--any-of), or see 'lossratio status'."
    )


def holder_of(session: NodeSession, claim: Claim) -> Holder | None:
    """The holder of the testbed; None: the testbed is free.

    Args:
        session: The log-in on the TG node.
        claim: A claim to the same testbed.

    Raises:
        NodeError: If the connection is lost.
        ReservationError: If the node cannot keep a reservation.
    """
    return Holder.from_json(_answer(session, claim, claim.status())["holder"])


def clear(session: NodeSession, claim: Claim, *, force: bool) -> Holder | None:
    """Ends the lease of a testbed, and all processes of its holder on the TG node; by force, repairs its record.

    Args:
        session: The log-in on the TG node.
        claim: A claim to the same testbed, with the owner who asks.
        force: Whether to end the lease of another owner, too.

    Returns:
        The holder until now; None: there was no lease.

    Raises:
        TestbedReservedError: If another owner has the lease.
        NodeError: If the connection is lost.
        ReservationError: If the node cannot keep a reservation.
    """
    answer = _answer(session, claim, claim.clear(force=force))
    if answer["damage"] is not None:
        _LOG.warning(
            "Node %s: the record of the reservation was damaged (%s). It is repaired, and what ran under it has ended.",
            session.name,
            answer["damage"],
        )
    holder = Holder.from_json(answer["holder"])
    if answer["event"] == "refused":
        raise TestbedReservedError(
            f"Node {session.name}: the testbed is reserved for {holder}, and not for {claim.owner}. Ask them, or take "
            f"it away: lossratio release --force.",
            holder,
        )
    return holder


def _answer(session: NodeSession, claim: Claim, request: Mapping[str, Any]) -> Mapping[str, Any]:
    conversation = Conversation(session, claim.python, request)
    try:
        return conversation.answer()
    finally:
        conversation.close()
