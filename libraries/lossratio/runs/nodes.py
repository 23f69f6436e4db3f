"""Looks at the nodes of a testbed before a run."""

from __future__ import annotations

from lossratio.errors import NodeError
from lossratio.testbed import Candidate, inspect_nodes
from lossratio.topology import TestbedKind


def check_nodes(chosen: Candidate) -> dict[str, str | None]:
    """Makes sure that the nodes of a lab can be used; only call it for a testbed that is reserved.

    A log-in on a DUT during somebody else's trial would cost frames.

    Returns:
        The kernel of each node; nothing where the nodes are this machine, or not real.

    Raises:
        NodeError: If a node cannot be reached, or lacks something.
    """
    if chosen.topology.testbed is not TestbedKind.LAB:
        return {}
    reports = inspect_nodes(chosen.topology)
    problems = [problem for report in reports for problem in report.problems]
    if problems:
        raise NodeError("\n".join([f"{chosen.file}: the testbed is not usable.", *problems]))
    return {report.name: None if report.facts is None else report.facts.kernel for report in reports}
