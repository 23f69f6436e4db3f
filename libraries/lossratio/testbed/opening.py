"""Opens testbeds: from a topology file to DUTs that are set up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossratio.dut import CABLE
from lossratio.nodes import NO_CREDENTIALS, Credentials
from lossratio.testbed.live import LiveTestbed
from lossratio.testbed.testbed import DEFAULT_RECOVERY, Recovery, Testbed, TestbedRequest, dut_request
from lossratio.topology import TestbedKind, load_topology


def open_testbed(
    topology: str | Path,
    *,
    dut: str | None = None,
    options: Mapping[str, Any] | None = None,
    credentials: Credentials = NO_CREDENTIALS,
    duts: int | None = None,
    nic: str | None = None,
    recovery: Recovery = DEFAULT_RECOVERY,
    links: int = 1,
) -> Testbed:
    """Opens a testbed and sets up its DUTs; close it in the end.

    Args:
        topology: The topology file.
        dut: Kind of the DUTs, e.g. ``linux_bridge``; None: the DUTs stay as they are.
        options: The kind's options by name, e.g. ``{"police": "50 kfps"}``.
        credentials: What to log in with on all nodes, where keys are not enough; see `lossratio.nodes.Credentials`.
        duts: How many DUTs are on the path, in the order of the file; None: all.
        nic: NIC model that the DUTs' ports on the path must have, e.g. ``Intel-E810CQ``; None: any.
        recovery: How often and how long faults of the infrastructure are repaired.
        links: Number of parallel paths that the traffic takes at once; each has DUTs of its own, or its own part of
            them.

    Raises:
        LossRatioError: If the file, the kind or an option is wrong (before anything is touched), or the testbed cannot
            be set up (changes made until then are undone).
    """
    if dut == CABLE:
        duts = 0
    file = Path(topology)
    request = TestbedRequest(
        load_topology(file),
        file,
        dut_request(dut, options or {}),
        credentials,
        duts,
        nic,
        recovery=recovery,
        links=links,
    )
    # A path that does not exist is an error before anything is touched.
    _ = request.paths
    if request.topology.testbed is TestbedKind.SIMULATED:
        # The models of SUTs load scipy, which real testbeds need not wait for.
        from lossratio.testbed.simulated import SimulatedTestbed

        return SimulatedTestbed(request)
    return LiveTestbed.open(request)


def check_sut_model(model: dict[str, Any]) -> None:
    """Checks the model of a SUT in a topology file.

    Raises:
        ValueError: If there is no such model, or it has no such parameters.
    """
    # As above: a check of a lab needs no scipy.
    from lossratio.testbed.simulated import sut_of

    sut_of(model)
