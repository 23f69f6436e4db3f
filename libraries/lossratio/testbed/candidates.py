"""Takes a testbed for a run: the one there is, or the first one of several that is free."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from lossratio.errors import LossRatioError, NodeError
from lossratio.nodes import NO_CREDENTIALS, Credentials, NodeSession
from lossratio.testbed.local import find
from lossratio.testbed.reservation import TOKEN_VARIABLE, Claim, Lease, TestbedReservedError, make_claim
from lossratio.topology import TestbedKind, Topology

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A testbed that a run may use.

    Attributes:
        file: Its topology file.
        topology: What is in it, with all that it takes to reach the nodes.
        claim: What is asked for; None: nobody else can use it anyway. Once the testbed is reserved, with the token of
            the lease, unless that belongs to somebody else.
    """

    file: Path
    topology: Topology
    claim: Claim | None

    @property
    def token(self) -> str | None:
        """Token of the lease; None: there is none, or it is somebody else's."""
        return None if self.claim is None else self.claim.token

    def succeeding(self, token: str | None) -> Candidate:
        """The same testbed, where a lease with this token, of a process that is known to be gone, is taken over."""
        return replace(self, claim=self.claim and replace(self.claim, succeeds=token))


def candidate(file: Path, topology: Topology, *, purpose: str, seconds: float | None = None) -> Candidate:
    """A testbed that may be reserved. A local one that is not up will be built by the run, which has it for itself.

    Args:
        file: Its topology file.
        topology: What is in it.
        purpose: What it is for.
        seconds: How long the lease lasts without being renewed; None: as the topology says.
    """
    if topology.testbed is TestbedKind.LOCAL:
        running = find(topology.name)
        if running is None:
            return Candidate(file, topology, None)
        topology = running.topology
    return Candidate(file, topology, make_claim(topology, purpose=purpose, seconds=seconds))


@contextmanager
def reserved(
    candidates: list[Candidate], wait: float, credentials: Credentials = NO_CREDENTIALS
) -> Iterator[Candidate]:
    """Has the first testbed that is free, for as long as the block lasts.

    Whatever sets up that testbed meanwhile in this process, or in one that it starts, finds it reserved for itself.

    Args:
        candidates: The testbeds; with several, those that cannot be reached are left out.
        wait: Seconds to wait at most.
        credentials: What to log in with, where keys and the environment are not enough.

    Raises:
        TestbedReservedError: If none became free in time.
        NodeError: If none could be reached.
    """
    with ExitStack() as undo:
        chosen, lease = _first_free(candidates, credentials, undo, wait)
        if lease is None:
            yield chosen
            return
        before = os.environ.get(TOKEN_VARIABLE)
        os.environ[TOKEN_VARIABLE] = lease.token
        token = None if lease.is_borrowed else lease.token
        try:
            yield replace(chosen, claim=chosen.claim and replace(chosen.claim, token=token))
        finally:
            os.environ.pop(TOKEN_VARIABLE)
            if before is not None:
                os.environ[TOKEN_VARIABLE] = before


def log_in(candidate: Candidate, credentials: Credentials = NO_CREDENTIALS) -> NodeSession:
    """Logs in on the TG node.

    Raises:
        NodeError: If that fails.
    """
    name = candidate.topology.tg_name
    return NodeSession.connect(name, candidate.topology.nodes[name], credentials)


def _first_free(
    candidates: list[Candidate], credentials: Credentials, undo: ExitStack, wait: float
) -> tuple[Candidate, Lease | None]:
    queues: list[tuple[Candidate, Claim, NodeSession]] = []
    errors: list[LossRatioError] = []
    for each in candidates:
        if each.claim is None:
            return each, None
        try:
            queues.append((each, each.claim, undo.enter_context(log_in(each, credentials))))
            if len(candidates) > 1 or not wait:
                return each, undo.enter_context(Lease.take(queues[-1][2], each.claim, restores=True))
        except (NodeError, TestbedReservedError) as error:
            errors.append(error)
            if len(candidates) > 1:
                _LOG.warning("%s: %s", each.file, error)
    if not queues or not wait:
        raise errors[-1]
    chosen, lease = _first_granted(queues, wait)
    return chosen, undo.enter_context(lease)


def _first_granted(queues: list[tuple[Candidate, Claim, NodeSession]], wait: float) -> tuple[Candidate, Lease]:
    """Queues up for all testbeds at once; whatever comes after the first one is given back."""
    answers: SimpleQueue[tuple[Candidate, Lease] | LossRatioError] = SimpleQueue()
    first = threading.Lock()

    def queue_up(each: Candidate, claim: Claim, session: NodeSession) -> None:
        try:
            lease = Lease.take(session, claim, wait=wait, restores=True)
        except LossRatioError as error:
            answers.put(error)
            return
        if first.acquire(blocking=False):
            answers.put((each, lease))
        else:
            lease.release()

    for queue in queues:
        threading.Thread(target=queue_up, args=queue, daemon=True).start()
    error: LossRatioError | None = None
    for _ in queues:
        answer = answers.get()
        if not isinstance(answer, LossRatioError):
            for each, _, session in queues:
                if each is not answer[0]:
                    # Whoever still waits there loses his place by it.
                    session.close()
            return answer
        error = answer
    raise error or NodeError("There is no testbed to wait for.")
