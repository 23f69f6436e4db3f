"""The testbeds that a run may use, and the reservation of the first one that is free."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from lossratio.errors import LossRatioError, NodeError
from lossratio.nodes import NO_CREDENTIALS, Credentials, NodeSession
from lossratio.testbed.local import find
from lossratio.testbed.reservation import TOKEN_VARIABLE, Claim, Lease, make_claim
from lossratio.testbed.reservation.lease import TestbedReservedError
from lossratio.topology import Topology

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A testbed that a run may use."""

    file: Path
    """Its topology file."""
    topology: Topology
    """The topology, complete with how the nodes are reached."""
    claim: Claim | None
    """The claim on its lease; None: nobody else can use the testbed."""


def candidate(
    file: Path, topology: Topology, *, purpose: str, seconds: float | None = None
) -> Candidate:
    """A testbed that may be reserved, with these `Claim.seconds`; None: as the topology says.

    A local testbed that is not up needs no reservation, because the run builds its own.
    """
    if topology.testbed == "local":
        running = find(topology.name)
        if running is None:
            return Candidate(file, topology, None)
        topology = running.topology
    return Candidate(file, topology, make_claim(topology, purpose=purpose, seconds=seconds))


@contextmanager
def reserved(
    candidates: list[Candidate], wait: float, credentials: Credentials = NO_CREDENTIALS
) -> Iterator[Candidate]:
    """Reserves the first testbed that becomes free in time, until the block ends.

    In the block, this process and the processes that it starts can set up the testbed: they borrow the reservation. If
    there are several candidates, those that cannot be reached are left out.

    Args:
        candidates: The testbeds, the preferred one first.
        wait: The maximum number of seconds to wait for a free testbed; 0: a testbed must be free at once.
        credentials: How to log in on the nodes.

    Raises:
        TestbedReservedError: If no testbed became free in time.
        NodeError: If no testbed could be reached.
    """
    with ExitStack() as undo:
        chosen, lease = _first_free(candidates, credentials, undo, wait)
        if lease is None:
            yield chosen
            return
        before = os.environ.get(TOKEN_VARIABLE)
        os.environ[TOKEN_VARIABLE] = lease.token
        try:
            yield chosen
        finally:
            os.environ.pop(TOKEN_VARIABLE)
            if before is not None:
                os.environ[TOKEN_VARIABLE] = before


def log_in(candidate: Candidate, credentials: Credentials = NO_CREDENTIALS) -> NodeSession:
    """Logs in on the TG node.

    Raises:
        NodeError: If the TG node cannot be reached.
    """
    name = candidate.topology.tg_name
    return NodeSession.connect(name, candidate.topology.nodes[name], credentials)


def _first_free(
    candidates: list[Candidate], credentials: Credentials, undo: ExitStack, wait: float
) -> tuple[Candidate, Lease | None]:
    """The first testbed that becomes free in time, and its lease; None: nobody else can use it.

    If a single testbed is waited for, its errors are raised; others are left out, with a warning.
    """
    queues: list[tuple[Candidate, Claim, NodeSession]] = []
    errors: list[LossRatioError] = []
    for testbed in candidates:
        if testbed.claim is None:
            return testbed, None
        try:
            session = undo.enter_context(log_in(testbed, credentials))
            queues.append((testbed, testbed.claim, session))
            if len(candidates) > 1 or not wait:
                return testbed, undo.enter_context(
                    Lease.take(session, testbed.claim, restores=True)
                )
        except (NodeError, TestbedReservedError) as error:
            errors.append(error)
            if len(candidates) > 1:
                _LOG.warning("%s: %s", testbed.file, error)

    if not queues or not wait:
        raise errors[-1]

    chosen, lease = _first_granted(queues, wait)
    return chosen, undo.enter_context(lease)


def _first_granted(
    queues: list[tuple[Candidate, Claim, NodeSession]], wait: float
) -> tuple[Candidate, Lease]:
    """Waits in the queues of all testbeds at once. The first lease is used, and all later ones are released."""
    answers: SimpleQueue[tuple[Candidate, Lease] | LossRatioError] = SimpleQueue()
    first = threading.Lock()

    def queue_up(testbed: Candidate, claim: Claim, session: NodeSession) -> None:
        try:
            lease = Lease.take(session, claim, wait=wait, restores=True)
        except LossRatioError as error:
            answers.put(error)
            return
        if first.acquire(blocking=False):
            answers.put((testbed, lease))
        else:
            lease.release()

    for queue in queues:
        threading.Thread(target=queue_up, args=queue, daemon=True).start()
    error: LossRatioError | None = None
    for _ in queues:
        answer = answers.get()
        if not isinstance(answer, LossRatioError):
            for testbed, _, session in queues:
                if testbed is not answer[0]:
                    # A thread that still waits in this testbed's queue leaves the queue.
                    session.close()
            return answer
        error = answer
    raise error or NodeError("There is no testbed to wait for.")
