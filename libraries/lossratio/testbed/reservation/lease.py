"""The lease of a testbed: taken, kept by a heartbeat over a connection, given back, or ended by force."""

import logging
import math
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import NodeSession, Pulse
from lossratio.testbed.reservation.claim import Claim
from lossratio.testbed.reservation.conversation import ANSWER_SECONDS, Conversation, Holder
from lossratio.units import format_duration

BEATS = 4
"""Number of renewals within the length of a lease."""
_LOG = logging.getLogger(__name__)


class TestbedReservedError(ReservationError):
    """Another owner, the `holder`, has the testbed; None: it is free, but other owners came earlier and wait for it."""

    __test__ = False

    def __init__(self, message: str, holder: Holder | None) -> None:
        super().__init__(message)
        self.holder = holder


class ReservationLostError(ReservationError):
    """The testbed is no longer reserved for this run."""


class Lease(AbstractContextManager["Lease"]):
    """A lease that this process holds; take it with `Lease.take`, and release it at the end."""

    def __init__(
        self,
        session: NodeSession,
        claim: Claim,
        keeper: Conversation,
        granted: Mapping[str, Any],
        restores: bool,
    ) -> None:
        self.node_name = session.name
        self.token: str = granted["lease"]["token"]
        self.is_borrowed: bool = granted["adopted"]
        """Whether another process took the lease, so that releasing it here has no effect."""
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
    def take(
        cls, session: NodeSession, claim: Claim, *, wait: float = 0.0, restores: bool = False
    ) -> "Lease":
        """Waits for the testbed in a fair queue, at most this many seconds, and takes it.

        Processes that are started over the TG's session from now on end with the lease. With `restores`, the heartbeat
        logs in again if the connection is lost; only use it if nothing else uses the session.

        Raises:
            TestbedReservedError: If the testbed did not become free in time; the message names the holder.
            ReservationError: If the TG node cannot keep a reservation.
            NodeError: If the connection is lost.
        """
        keeper, event = _ask(session, claim, wait)
        if event["event"] != "granted":
            holder = Holder.from_json(event["holder"])
            if holder is None:
                whose = "others have waited for it longer"
            else:
                ends = f"Unless it is renewed, it ends in {format_duration(math.ceil(holder.left))}"
                whose = f"it is reserved for {holder}. {ends}"

            waited = f" {wait:g} s were not enough." if wait else ""
            raise TestbedReservedError(
                f"Node {session.name}: the testbed is not available: {whose}.{waited} 'lossratio run' can wait for "
                "it (--wait 2h), or take another one (--any-of). 'lossratio lab status' shows who uses it. Testbeds "
                "that share only the TG need reservations of different names in their topology files.",
                holder,
            )

        before = Holder.from_json(event["taken_over"])
        if before is not None:
            _LOG.warning(
                "The reservation of %s has run out and is taken over. Its holder: %s.",
                session.name,
                before,
            )
        lease = cls(session, claim, keeper, event, restores)
        # The lease began on the TG at an unknown moment of the wait, so the first renewal shows when it ends.
        lease.confirm()
        lease._pulse.start()

        return lease

    def __exit__(self, *exception: object) -> None:
        self.release()

    def check(self) -> None:
        """Checks that the lease is still held, as far as the heartbeat knows; sends nothing to the node.

        Raises:
            ReservationError: If it is lost; the message says who now has the testbed, if that is known.
        """
        keeper = self._keeper
        if self._lost is None and keeper is not None and keeper.ended is not None:
            self._take_in(keeper.ended, 0.0)
        if self._lost is None and time.monotonic() >= self._ends:
            # The TG began to count later than this side, so no other holder can have the testbed yet.
            self._lose("it could not be renewed in time because the TG node did not answer")
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
                _LOG.warning("The reservation cannot be released, and will expire: %s", error)
            self._end()

    def leave(self) -> None:
        """Ends the heartbeat, and leaves the lease until it expires."""
        self._pulse.stop()
        with self._lock:
            self._end()

    def _end(self) -> None:
        keeper = self._keeper
        self._keeper = None
        self._is_over = True
        self._session.prefix = ()
        if keeper is not None:
            keeper.close()

    def _give_back(self) -> None:
        try:
            self._request("release")
        except NodeError:
            # This is worth another log-in: otherwise, the next owner in the queue waits until the lease has expired.
            self._session.restore()
            self._renew()
            self.check()
            self._request("release")

    def _request(self, operation: str) -> Mapping[str, Any]:
        if self._keeper is None:
            raise NodeError(f"Node {self.node_name}: its reservation is not held.")
        self._keeper.send({"op": operation})
        return self._keeper.answer()

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
            event = self._request("renew")
        except NodeError:
            keeper = self._keeper
            self._keeper = None
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
            # A new lease, because the old one was lost. In between, another holder may have changed the testbed.
            self._keeper.send({"op": "release"})
        holder = Holder.from_json(event.get("holder"))
        reason = event.get("reason") or "somebody has released it"
        self._lose(reason if holder is None else f"its holder is now {holder}")

    def _lose(self, why: str) -> None:
        self._lost = ReservationLostError(
            f"Node {self.node_name}: the reservation of this testbed was lost: {why}. This run has stopped. Start "
            "it again when the testbed is free."
        )


def _ask(session: NodeSession, claim: Claim, wait: float) -> tuple[Conversation, Mapping[str, Any]]:
    keeper = Conversation(session, claim.python, claim.take(wait))
    with Pulse(claim.seconds / BEATS, lambda: keeper.send({"op": "wait"})):
        return keeper, keeper.answer(ANSWER_SECONDS + claim.seconds)


def holder_of(session: NodeSession, claim: Claim) -> Holder | None:
    """The holder of the testbed; None: it is free. Errors of node and connection are those of `Lease.take`."""
    return Holder.from_json(_answer(session, claim, claim.request("status"))["holder"])


def clear(session: NodeSession, claim: Claim, *, force: bool) -> Holder | None:
    """Ends the lease of a testbed, and all processes of its holder on the TG node, and returns that holder, if any.

    The claim names the owner who asks. With `force`, another owner's lease also ends, and a damaged record is repaired.

    Raises:
        TestbedReservedError: If another owner has the lease; other errors are those of `Lease.take`.
    """
    answer = _answer(session, claim, claim.request("clear", owner=claim.owner, force=force))
    if answer["damage"] is not None:
        _LOG.warning(
            "Node %s: the record of the reservation was damaged (%s). It was repaired, and programs that ran under "
            "it were ended.",
            session.name,
            answer["damage"],
        )

    holder = Holder.from_json(answer["holder"])
    if answer["event"] == "refused":
        raise TestbedReservedError(
            f"Node {session.name}: the testbed is reserved for {holder}, not for {claim.owner}. Ask them, or end "
            "the reservation: lossratio lab release --force.",
            holder,
        )
    return holder


def _answer(session: NodeSession, claim: Claim, request: Mapping[str, Any]) -> Mapping[str, Any]:
    with closing(Conversation(session, claim.python, request)) as conversation:
        return conversation.answer()
