"""How the nodes of a topology are reached: those of a lab are there, those of a local testbed may have to be built."""

from __future__ import annotations

from contextlib import ExitStack

from lossratio.testbed.local.local import LocalTestbed
from lossratio.topology import TestbedKind, Topology


def reachable(topology: Topology, undo: ExitStack) -> Topology:
    """The topology with everything that it takes to reach its nodes; a local testbed that is not up is built.

    Args:
        topology: The topology, as its file has it.
        undo: Takes down in the end what was built.

    Raises:
        LossRatioError: If a local testbed cannot be built.
    """
    if topology.testbed is not TestbedKind.LOCAL:
        return topology
    return undo.enter_context(LocalTestbed.use(topology)).topology
