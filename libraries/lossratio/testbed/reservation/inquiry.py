"""Asks for the holder of a testbed, and ends a lease by force."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lossratio.nodes import NodeSession
from lossratio.testbed.reservation.claim import Claim
from lossratio.testbed.reservation.conversation import Conversation
from lossratio.testbed.reservation.holder import Holder
from lossratio.testbed.reservation.lease import TestbedReservedError

_LOG = logging.getLogger(__name__)


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
