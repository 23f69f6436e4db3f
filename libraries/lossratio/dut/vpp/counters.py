"""Counters of a running VPP, and of the kernel where VPP has its frames from packet sockets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lossratio.dut.base import SIDES, DutCounters
from lossratio.dut.vpp import reports
from lossratio.dut.vpp.control import VppControl
from lossratio.dut.vpp.features.feature import Ports


def read_counters(
    control: VppControl,
    names: Sequence[str],
    pairs: Sequence[Ports],
    packets_of_kernel: Callable[[], Mapping[str, Any]] | None,
) -> DutCounters:
    """Reads the counters of VPP and of the kernel.

    Args:
        control: The running VPP.
        names: VPP's names of its interfaces, west and east.
        pairs: The pairs of interfaces between which VPP forwards.
        packets_of_kernel: Reads the kernel's counters by side; None: the kernel does not have the interfaces.

    Raises:
        DutError: If VPP does not answer, or lacks an interface.
    """
    inner = (port.link for pair in pairs for port in pair)
    counts = _counts(control, (*names, *inner))
    sides = {side: counts[name] for side, name in zip(SIDES, names, strict=True)}
    received = {
        side: count.get("rx packets", 0) + count.get("rx-miss", 0) for side, count in sides.items()
    }
    transmitted = {side: count.get("tx packets", 0) for side, count in sides.items()}
    dropped = {
        f"VPP, frames from the {side}": count.get("drops", 0) for side, count in sides.items()
    }

    if packets_of_kernel is None:
        dropped |= {
            f"{side} card, rx-miss": count.get("rx-miss", 0) for side, count in sides.items()
        }
    else:
        for side, kernel in packets_of_kernel().items():
            dropped[f"ring in front of VPP, {side}"] = kernel["rx"]["packets"] - received[side]
            dropped[f"ring behind VPP, {side}"] = transmitted[side] - kernel["tx"]["packets"]
            received[side], transmitted[side] = kernel["rx"]["packets"], kernel["tx"]["packets"]

    before, *behind = pairs
    if behind:
        ends = {"west": before[1].link, "east": behind[0][0].link}
        dropped |= reports.dropped_around_process(counts, ends)
    details = reports.parse_errors(control.ask("show errors"))
    return DutCounters(received, transmitted, dropped, details=details)


def _counts(control: VppControl, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """VPP's counters of interfaces that it must have."""
    wanted = list(dict.fromkeys(names))
    counts = reports.parse_interfaces(control.ask(f"show interface {' '.join(wanted)}"))
    return {name: control.node.find("VPP's interface", name, counts) for name in wanted}
