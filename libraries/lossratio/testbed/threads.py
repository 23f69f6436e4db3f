"""How many threads on how many cores DUTs forward with, as FD.io CSIT's tags say it."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut import Dut, DutOptions
from lossratio.dut.linux import ProgramOptions


def threads_and_cores(duts: Sequence[Dut[DutOptions]]) -> tuple[str, ...]:
    """Tags such as ``2t1c``: two worker threads on one physical core.

    Args:
        duts: The DUTs, set up.

    Returns:
        One tag for each combination there is; none for DUTs that have no cores of their own.
    """
    tags = (
        f"{len(dut.describe()['cores']['workers'])}t{dut.options.cores}c"
        for dut in duts
        if isinstance(dut.options, ProgramOptions)
    )
    return tuple(dict.fromkeys(tags))
