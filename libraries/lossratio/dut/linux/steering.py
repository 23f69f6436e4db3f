"""Receive packet steering (RPS): which CPUs frames are handed to when they arrive on an interface."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut.changes import Changes
from lossratio.dut.linux.options import parse_cpus
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_ONLINE = "/sys/devices/system/cpu/online"
_BITS_PER_GROUP = 32


def check_cpus(node: DutNode, cpus: Sequence[int]) -> None:
    """Checks that the node has these CPUs.

    Raises:
        DutError: If it lacks one.
    """
    online = node.read_files(_ONLINE).get(_ONLINE, "0")
    missing = sorted(set(cpus) - set(parse_cpus(online)))
    if missing:
        raise DutError(
            f"{node.name} has no CPU {', '.join(map(str, missing))} for rps_cpus; those online are {online}."
        )


def steer(changes: Changes, node: DutNode, interface: str, cpus: Sequence[int]) -> None:
    """Hands the frames that arrive on an interface, on any of its queues, to these CPUs.

    Raises:
        DutError: If the node refuses it.
    """
    files = node.read_files("rps_cpus", under=f"/sys/class/net/{interface}/queues")
    if not files:
        raise DutError(f"{node.name}: interface {interface} has no queue with rps_cpus; leave the option rps_cpus out.")
    for path in sorted(files):
        try:
            changes.write(path, cpu_mask(cpus))
        except DutError as cause:
            raise DutError(f"{cause} Only root of the machine itself may steer frames; leave rps_cpus out.") from cause


def cpu_mask(cpus: Sequence[int]) -> str:
    """CPU numbers as the kernel reads them: hexadecimal, in groups of 32 bits."""
    mask = sum(1 << cpu for cpu in cpus)
    groups: list[str] = []
    while mask or not groups:
        mask, group = divmod(mask, 1 << _BITS_PER_GROUP)
        groups.append(f"{group:08x}" if mask else f"{group:x}")
    return ",".join(reversed(groups))
