"""The lease of a testbed: held by a connection to the TG, given back, left for some time, or ended by force."""

import json
import logging
import math
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import NodeProcess, NodeSession, Pulse, namespace_key, own_name, pack_program
from lossratio.topology import Topology
from lossratio.values import format_duration

TOKEN_VARIABLE = "LOSSRATIO_RESERVATION"  # noqa: S105 (a name)
"""Environment variable with the token of an existing reservation, which is used instead of a new one."""
OWNER_VARIABLE = "LOSSRATIO_OWNER"
"""Environment variable with the owner's name; useful where user and host say little, as in a pipeline."""
_LAB_DIRECTORY = "/var/tmp/lossratio"  # noqa: S108 (shared by all users on purpose; the keeper follows no links there)
_LOCAL_DIRECTORY = "/run/lossratio"
BEATS = 4
"""Number of signs of life within the time after which the TG gives a silent holder up."""
ANSWER_SECONDS = 30.0
"""Seconds that an answer may take."""
POLL_SECONDS = 0.5
"""Seconds between two questions of somebody who waits."""
_LONGEST_TEXT = 200
"""Largest number of characters of an owner or a purpose in a record."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Claim:
    """A wish to reserve a testbed. Make it with `make_claim`."""

    file: str
    """The reservation's file on the TG node."""
    python: str
    """The Python on the TG node."""
    seconds: float
    """Seconds after which the TG gives a silent holder up, and for which a lease that is left stays."""
    owner: str
    """The owner of the lease."""
    purpose: str = ""
    """Its purpose, in the owner's words."""
    token: str | None = None
    """Token of a lease that the owner has already. If the lease is still there, the claim continues it."""

    def request(self, operation: str, **fields: Any) -> dict[str, Any]:
        """The request for an operation of the keeper."""
        return {"op": operation, "file": self.file, "seconds": self.seconds, **fields}

    def take(self) -> dict[str, Any]:
        """The request for the lease."""
        return self.request(
            "take",
            token=self.token,
            lease={
                "token": secrets.token_hex(16),
                "owner": self.owner[:_LONGEST_TEXT],
                "process": os.getpid(),
                "purpose": self.purpose[:_LONGEST_TEXT],
                "started": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
            },
        )


def make_claim(
    topology: Topology,
    *,
    purpose: str = "",
    seconds: float | None = None,
    node_name: str | None = None,
) -> Claim | None:
    """The claim to a testbed, with the token from the environment; None: the topology has no reservation.

    `Claim.seconds` are as given; None: as the topology says. The lease is kept on the given node; None: on the TG, or
    the first of two.
    """
    reservation = topology.reservation
    if reservation is None or topology.testbed == "simulated":
        return None

    usual = _LOCAL_DIRECTORY if topology.testbed == "local" else _LAB_DIRECTORY
    directory = reservation.directory or usual
    tg = topology.nodes[node_name or topology.tg_name]
    # All namespaces of a machine share its directory of reservations.
    place = tg.container if tg.netns is None else namespace_key(tg.netns)
    name = reservation.name
    if place is not None:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", f"{reservation.name}-{place}")[:100]

    login = f"{own_name() or os.geteuid()}@{socket.gethostname()}"
    return Claim(
        file=f"{directory}/{name}",
        python=getattr(topology.generator, "python", "python3"),
        seconds=seconds or reservation.lease,
        owner=os.environ.get(OWNER_VARIABLE) or login,
        purpose=purpose,
        token=os.environ.get(TOKEN_VARIABLE) or None,
    )


@dataclass(frozen=True)
class Holder:
    """The holder of a lease."""

    owner: str
    """The owner, e.g. ``alice@ci3``."""
    process: int
    """Process id of the controller on the owner's machine."""
    purpose: str
    """Purpose of the lease."""
    started: str
    """Start of the lease by the clock of the owner's machine, RFC 3339."""
    left: float
    """Seconds until a lease ends that was left for some time; 0: it ends with its holder's connection."""

    @property
    def end(self) -> str:
        """When the lease ends, e.g. ``in 10 min``."""
        if self.left:
            return f"in {format_duration(math.ceil(self.left))}"
        return "with the connection of that process"

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        return f"{self.owner} (process {self.process}){purpose}, since {self.started}"


def _holder(data: Mapping[str, Any] | None) -> Holder | None:
    """The holder in an answer of the keeper; None: nobody has the testbed."""
    return None if data is None else Holder(**data)


class TestbedReservedError(ReservationError):
    """Another owner has the testbed; or it is free, but other owners came earlier and wait for it."""

    __test__ = False


class ReservationLostError(ReservationError):
    """The testbed is no longer reserved for this run."""


class _Keeper:
    """The program on the TG node that holds a lease, and knows its holder; it answers requests."""

    def __init__(self, session: NodeSession, claim: Claim) -> None:
        self.session = session
        self.claim = claim
        self._holder: Holder | None = None
        """The holder of the testbed, for which this keeper waits."""
        program = pack_program("testbed/reservation/keeper", "lossratio-keeper", "main")
        self._process: NodeProcess = program.start(
            partial(session.start, plain=True), claim.python, "-I", "-S"
        )

    def take(self, *, waits: bool) -> Mapping[str, Any] | None:
        """What the lease is granted with; None: somebody else has it or came earlier.

        If it waits, it logs for whom, once for each holder.
        """
        event = self.ask(self.claim.take())
        if event["event"] == "waiting":
            holder = _holder(event["holder"])
            if waits and holder is not None and str(holder) != str(self._holder):
                _LOG.warning(
                    "Node %s: waiting for the testbed, which is reserved for %s.",
                    self.session.name,
                    holder,
                )
            self._holder = holder
            return None

        before = _holder(event["before"])
        if before is not None and not event["adopted"]:
            _LOG.warning(
                "Node %s: the last holder of the testbed ended without releasing it: %s.",
                self.session.name,
                before,
            )
        return event

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request.

        Raises:
            ReservationError: If the keeper refuses.
            NodeError: If there is no answer in time; the keeper is ended.
        """
        try:
            self._process.write_line(json.dumps(request))
            line = self._process.read_line(ANSWER_SECONDS)
            event = {**json.loads(line)}
        except NodeError as error:
            self.close()
            raise NodeError(
                f"Node {self.session.name}: its reservation does not answer. {error} If the node has no Python "
                f"{self.claim.python!r}, set the generator's 'python' in the topology file to the path of one."
            ) from error
        except (TypeError, ValueError) as error:
            raise NodeError(
                f"Node {self.session.name}: its reservation answered {line[:200]!r}, which is not JSON. If a log-in "
                "script, such as .bashrc, wrote this, make it write only in interactive shells."
            ) from error

        if event["event"] == "error":
            raise ReservationError(
                f"Node {self.session.name}: the testbed cannot be reserved: {event['message']}."
            )
        return event

    def unavailable(self, waited: float) -> TestbedReservedError:
        """The error after waiting for so many seconds in vain."""
        whose = "others have waited for it longer"
        if self._holder is not None:
            whose = f"it is reserved for {self._holder}. The reservation ends {self._holder.end}"
        enough = f" {waited:g} s were not enough." if waited else ""
        return TestbedReservedError(
            f"Node {self.session.name}: the testbed is not available: {whose}.{enough} 'lossratio run' can wait for "
            "it (--wait 2h), or take the first free one of several (--topology for each). 'lossratio lab status' "
            "shows who uses it. Testbeds that share only the TG need reservations of different names in their "
            "topology files."
        )

    def close(self) -> None:
        """Ends the keeper, which no longer holds the lease."""
        self._process.close()


class Lease(AbstractContextManager["Lease"]):
    """A lease that this process holds; take it with `Lease.take`, and release it at the end."""

    def __init__(self, keeper: _Keeper, granted: Mapping[str, Any], *, restores: bool) -> None:
        self.token: str = granted["token"]
        self.session = keeper.session
        """The log-in on the TG."""
        self._is_borrowed: bool = granted["adopted"]
        """Whether another process took the lease, so that releasing it here has no effect."""
        self._claim = replace(keeper.claim, token=self.token)
        self._keeper: _Keeper | None = keeper
        self._lock = threading.Lock()
        self._lost: ReservationLostError | None = None
        self._pulse = Pulse(self._claim.seconds / BEATS, partial(self._renew, restores=restores))
        self._pulse.start()
        self.session.prefix = tuple(granted["prefix"])

    @classmethod
    def take(
        cls, *wanted: tuple[NodeSession, Claim], wait: float = 0.0, restores: bool = False
    ) -> "Lease":
        """Waits in the fair queues of testbeds, at most this many seconds, and takes the first that becomes free.

        Processes that are started over the TG's session from now on end with the lease. With `restores`, the heartbeat
        logs in again if the connection is lost; only use it if nothing else uses the session.

        Raises:
            TestbedReservedError: If no testbed became free in time; the message names the holder.
            ReservationError: If the TG node cannot keep a reservation.
            NodeError: If the connection to one of them is lost.
        """
        deadline = time.monotonic() + wait
        waiting = [_Keeper(session, claim) for session, claim in wanted]
        try:
            while True:
                for keeper in waiting:
                    granted = keeper.take(waits=wait > 0.0)
                    if granted is not None:
                        waiting.remove(keeper)
                        return cls(keeper, granted, restores=restores)

                left = deadline - time.monotonic()
                if left <= 0:
                    raise waiting[-1].unavailable(wait)
                time.sleep(min(POLL_SECONDS, left))
        finally:
            # Who waits no longer leaves the queue.
            for keeper in waiting:
                keeper.close()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def check(self) -> None:
        """Checks that the lease is still held, as far as the heartbeat knows; sends nothing to the node.

        Raises:
            ReservationError: If it is lost; the message says who now has the testbed, if that is known.
        """
        if self._lost is not None:
            raise self._lost

    def confirm(self) -> None:
        """Asks the TG node whether the lease is still held, over a new channel if the old one is gone.

        Raises:
            ReservationLostError: If the lease is lost.
            NodeError: If the node cannot be asked; the lease may still be held.
        """
        self._renew()
        self.check()

    def release(self) -> None:
        """Gives the lease back, unless it is borrowed; a second call changes nothing."""
        self._end(None if self._is_borrowed else "release")

    def leave(self) -> None:
        """Leaves the lease without a holder, until the claim's seconds are over."""
        self._end("leave")

    def _end(self, operation: str | None) -> None:
        self._pulse.stop()
        with self._lock:
            keeper = self._keeper
            self._keeper = None
            if keeper is None:
                return

            self.session.prefix = ()
            # If it cannot be asked, the lease ends with the connection.
            with suppress(NodeError, ReservationError):
                if operation is not None:
                    keeper.ask(self._claim.request(operation))
            keeper.close()

    def _renew(self, *, restores: bool = False) -> None:
        """Shows the keeper that this process lives, or continues the lease with another keeper."""
        with self._lock:
            # A log-in during a trial would cost frames. Usually, the next user of the session logs in.
            if restores:
                self.session.restore()
            if self._keeper is None or self._lost is not None:
                return

            try:
                event = self._keeper.ask(self._claim.request("renew"))
            except NodeError:
                self._keeper = _Keeper(self.session, self._claim)
                event = self._keeper.ask(self._claim.take())
            if event["event"] == "kept" or event.get("adopted"):
                return

            if event["event"] == "granted":
                # A new lease, because the old one was lost. In between, another holder may have changed the testbed.
                self._keeper.ask(self._claim.request("release"))
            self._keeper.close()
            self._lost = self._loss(_holder(event.get("holder")))

    def _loss(self, holder: Holder | None) -> ReservationLostError:
        """The error for a lost lease, which says who has the testbed now, if that is known."""
        why = "somebody has released it, or removed its file"
        if holder is not None:
            why = f"its holder is now {holder}"
        return ReservationLostError(
            f"Node {self.session.name}: the reservation of this testbed was lost: {why}. This run has stopped. "
            "Start it again when the testbed is free."
        )


def holder_of(session: NodeSession, claim: Claim) -> Holder | None:
    """The holder of the testbed; None: it is free. Errors of node and connection are those of `Lease.take`."""
    with closing(_Keeper(session, claim)) as keeper:
        return _holder(keeper.ask(claim.request("status"))["holder"])


def clear(session: NodeSession, claim: Claim, *, force: bool) -> Holder | None:
    """Ends the lease of a testbed, and all processes of its holder on the TG node, and returns that holder, if any.

    The claim names the owner who asks. With `force`, another owner's lease also ends, and a damaged record is repaired.

    Raises:
        TestbedReservedError: If another owner has the lease; other errors are those of `Lease.take`.
    """
    with closing(_Keeper(session, claim)) as keeper:
        answer = keeper.ask(claim.request("clear", owner=claim.owner, force=force))
    holder = _holder(answer["holder"])
    if answer["event"] == "refused":
        raise TestbedReservedError(
            f"Node {session.name}: the testbed is reserved for {holder}, not for {claim.owner}. Ask them, or end "
            "the reservation: lossratio lab release --force."
        )
    return holder
