"""The claim to a testbed, and its lease: taken, kept by a heartbeat over a connection, given back, or ended by force.

The keeper is the program on the TG node that waits for the lease, keeps it, and reports its holder.
"""

import getpass
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
from queue import Empty, SimpleQueue
from typing import Any

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import (
    NodeProcess,
    NodeProgram,
    NodeSession,
    Pulse,
    namespace_key,
    pack_program,
)
from lossratio.topology import Reservation, Topology
from lossratio.units import format_duration

TOKEN_VARIABLE = "LOSSRATIO_RESERVATION"  # noqa: S105 (a name)
"""Environment variable with the token of an existing reservation, which is used instead of a new one."""
OWNER_VARIABLE = "LOSSRATIO_OWNER"
"""Environment variable with the owner's name; useful where user and host say little, as in a pipeline."""
_LAB_DIRECTORY = "/var/tmp/lossratio"  # noqa: S108 (shared by all users on purpose; the keeper follows no links there)
_LOCAL_DIRECTORY = "/run/lossratio"


@dataclass(frozen=True)
class Claim:
    """A wish to reserve a testbed. Make it with `make_claim`."""

    name: str
    """Name of the reservation."""
    directory: str
    """The directory of the reservation's file on the TG node."""
    python: str
    """The Python on the TG node."""
    seconds: float
    """Seconds that the lease lasts unless it is renewed."""
    owner: str
    """The owner of the lease."""
    purpose: str = ""
    """Its purpose, in the owner's words."""
    token: str | None = None
    """Token of a lease that the owner has already. If the lease is still valid, the claim continues it."""
    succeeds: str | None = None
    """Token of a lease whose process has ended. If the lease is still valid, the claim ends it and takes over."""

    def take(self, wait: float) -> dict[str, Any]:
        """The request for the lease."""
        lease = {
            "token": secrets.token_hex(16),
            "owner": self.owner,
            "process": os.getpid(),
            "purpose": self.purpose,
            "started": datetime.now(timezone.utc)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z"),
        }
        tokens = {"token": self.token, "succeeds": self.succeeds}
        return {
            **self.request("take"),
            **tokens,
            "seconds": self.seconds,
            "wait": wait,
            "lease": lease,
        }

    def request(self, operation: str, **fields: Any) -> dict[str, Any]:
        """The request for an operation of the keeper."""
        return {"op": operation, "directory": self.directory, "name": self.name, **fields}


def make_claim(
    topology: Topology,
    *,
    purpose: str = "",
    seconds: float | None = None,
    node_name: str | None = None,
) -> Claim | None:
    """The claim to a testbed, with the token from the environment; None: the topology has no reservation.

    The lease lasts this many seconds unless it is renewed; None: as the topology says. It is kept on the given node;
    None: on the TG, or the first of two.
    """
    reservation: Reservation | None = topology.reservation
    if reservation is None or topology.testbed == "simulated":
        return None

    default = _LOCAL_DIRECTORY if topology.testbed == "local" else _LAB_DIRECTORY
    tg = topology.nodes[node_name or topology.tg_name]
    # All namespaces of a machine share its directory of reservations.
    place = tg.container if tg.netns is None else namespace_key(tg.netns)
    name = reservation.name
    if place is not None:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", f"{reservation.name}-{place}")[:100]

    owner = os.environ.get(OWNER_VARIABLE) or f"{getpass.getuser()}@{socket.gethostname()}"
    return Claim(
        name=name,
        directory=reservation.directory or default,
        python=getattr(topology.generator, "python", "python3"),
        seconds=seconds or reservation.lease,
        owner=owner,
        purpose=purpose,
        token=os.environ.get(TOKEN_VARIABLE) or None,
    )


BEATS = 4
"""Number of renewals within the length of a lease."""
_ANSWER_SECONDS = 30.0
"""Seconds that an answer may take."""
_NOT_STARTED = (126, 127)
"""Exit statuses of a shell for a program that it cannot start or find."""
_PROGRAM = "lossratio-keeper"
_LOG = logging.getLogger(__name__)


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
    held: float | None
    """Seconds since its start by the TG's clock; None: the TG has been rebooted since."""
    left: float
    """Seconds until the lease expires unless it is renewed; 0: it has expired."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "Holder | None":
        """Reads the keeper's report."""
        if data is None:
            return None
        return cls(**data)

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        if self.held is None:
            held = ", before the TG was booted"
        else:
            held = f", for {format_duration(self.held)}"

        return f"{self.owner} (process {self.process}){purpose}, since {self.started}{held}"


def pack_keeper() -> NodeProgram:
    """Packs the keeper of leases."""
    return pack_program("testbed/reservation/keeper", _PROGRAM, "main")


class Conversation:
    """A keeper on the TG node, and one request to it."""

    def __init__(self, session: NodeSession, python: str, request: Mapping[str, Any]) -> None:
        self._node_name = session.name
        self._python = python
        self.ended: Mapping[str, Any] | None = None
        """The event in which the keeper reported that the lease is lost, with the reason; None: no such event."""
        self._answers: SimpleQueue[Mapping[str, Any] | NodeError] = SimpleQueue()
        program = pack_keeper()
        self._process: NodeProcess = program.start(
            partial(session.start, plain=True), python, "-I", "-S"
        )
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.send(request)
        except NodeError as error:
            raise self._explained(error) from error

    def send(self, message: Mapping[str, Any]) -> None:
        """Sends a line."""
        self._process.write_line(json.dumps(message))

    def answer(self, seconds: float = _ANSWER_SECONDS) -> Mapping[str, Any]:
        """Waits this many seconds for an answer. The keeper's reports that it still waits for its turn do not count.

        Raises:
            ReservationError: If the keeper refuses.
            NodeError: If there is no answer in time.
        """
        while (event := self._next(seconds))["event"] == "waiting":
            pass
        if event["event"] == "error":
            raise ReservationError(f"Node {self._node_name}: no reservation: {event['message']}.")
        return event

    def close(self) -> None:
        """Ends the keeper; the lease stays until it expires or is released."""
        self._process.close()

    def _next(self, seconds: float) -> Mapping[str, Any]:
        try:
            answer = self._answers.get(timeout=seconds)
        except Empty:
            answer = NodeError(f"There was no answer within {seconds:g} s.")
        if isinstance(answer, NodeError):
            raise self._explained(answer) from answer
        return answer

    def _explained(self, error: NodeError) -> NodeError:
        """The explanation for the keeper's end or silence: often there is no such Python."""
        words = self._process.stderr_tail().strip().splitlines()
        if self._process.exit_status in _NOT_STARTED or (
            words and words[-1].endswith("command not found")
        ):
            said = f" ({words[-1]})" if words else ""
            return NodeError(
                f"Node {self._node_name}: there is no Python {self._python!r} to keep the reservation{said}. Set the "
                "generator's 'python' in the topology file to the path of a Python of that node."
            )
        return NodeError(f"Node {self._node_name}: its reservation does not answer. {error}")

    def _listen(self) -> None:
        try:
            while True:
                event = self._read()
                if event["event"] == "ended":
                    self.ended = event
                else:
                    self._answers.put(event)
        except NodeError as error:
            self._answers.put(error)

    def _read(self) -> Mapping[str, Any]:
        line = self._process.read_line(None)
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise NodeError(f"It wrote {line[:200]!r}. Does a log-in script write this?")
        return event


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
        return keeper, keeper.answer(_ANSWER_SECONDS + claim.seconds)


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
