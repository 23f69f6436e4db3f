"""The testbeds that a run may use, and the reservation of the first one that is free."""

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    errors: list[LossRatioError] = []
    queues: dict[NodeSession, Candidate] = {}
    for testbed in candidates:
        if testbed.claim is None:
            return testbed, None
        try:
            session = undo.enter_context(log_in(testbed, credentials))
            queues[session] = testbed
            if len(candidates) > 1 or not wait:
                lease = Lease.take((session, testbed.claim), restores=True)
                return testbed, undo.enter_context(lease)
        except (NodeError, TestbedReservedError) as error:
            errors.append(error)
            if len(candidates) > 1:
                _LOG.warning("%s: %s", testbed.file, error)

    if not queues or not wait:
        raise errors[-1]

    wanted = [(session, testbed.claim) for session, testbed in queues.items() if testbed.claim]
    lease = undo.enter_context(Lease.take(*wanted, wait=wait, restores=True))
    return queues[lease.session], lease
