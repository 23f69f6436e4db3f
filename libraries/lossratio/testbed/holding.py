"""Reserves a testbed for as long as it is set up."""

from __future__ import annotations

from contextlib import ExitStack

from lossratio.nodes import NodeSession
from lossratio.testbed.reservation import Lease, make_claim
from lossratio.testbed.testbed import TestbedRequest
from lossratio.topology import Topology


def hold(request: TestbedRequest, topology: Topology, session: NodeSession, undo: ExitStack) -> Lease | None:
    """Takes the lease of a testbed, or borrows the one that there is already for this run.

    Args:
        request: What the testbed is opened for.
        topology: How its nodes are reached.
        session: The log-in on the TG node, over which the lease is kept.
        undo: Releases it in the end.

    Returns:
        The lease; None: the topology says that nobody reserves this testbed.

    Raises:
        TestbedReservedError: If it is somebody else's.
        LossRatioError: If the TG node cannot keep a reservation.
    """
    purpose = "what is set up" if request.dut is None else request.dut.kind
    claim = make_claim(topology, purpose=f"measuring {purpose}")
    return None if claim is None else undo.enter_context(Lease.take(session, claim))
