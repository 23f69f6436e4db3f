"""Counters that name a cause outside of the device, by the names that kernels, cards and clouds give them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """One row: a cause, and the counters that only it moves."""

    change: str
    """The cause, in a word."""
    names: str
    """The names of the counters, as a regular expression for ``grep -E``."""
    unit: str = "frame"
    """What is counted."""
    explains: str = ""
    """The cause that it explains if only one of its own counters has grown; empty: it says something by itself."""
    is_of_machine: bool = False
    """Whether the counter is of a machine, and says nothing about one node if others are on the same machine."""


# Table: `ethtool -S` first, under the names that drivers have; then /sys, cgroups (quota) and /proc/net (backlog).
CAUSES = (
    Cause(
        "held", r"(.*[._])?rx_.*(pause|xoff|pfc|ppp[0-7]).*|.*(link|priority_[0-7])_xoff_rx(\.nic)?"
    ),
    Cause(
        "holds",
        r"(.*[._])?tx_.*(pause|xoff|pfc|ppp[0-7]).*|.*(link|priority_[0-7])_xoff_tx(\.nic)?",
    ),
    Cause("allowance", r"(bw_in|bw_out|pps|conntrack|linklocal)_allowance_exceeded", unit="packet"),
    Cause("one_cpu", r"interrupts_of_cpu_\d+", unit="time", explains="overrun"),
    Cause(
        "overrun",
        r"rx_(missed|fifo|over)_errors|rx_out_of_buffer|rx_no_(buffer_count|dma_resources)",
    ),
    Cause("quota", "nr_throttled", unit="time"),
    Cause("backlog", "softnet_dropped", is_of_machine=True),
)
_NOT_FRAMES = re.compile("duration|transition|discard|drop|storm|error|xon$|_en$")
"""Parts of names of times and events, and of frames that were not obeyed."""
PATTERN = f"^ *({'|'.join(cause.names for cause in CAUSES)}):"
"""The lines of ``ethtool -S`` that matter."""


def moved(
    then: Mapping[str, int], now: Mapping[str, int], *, is_alone: bool
) -> Iterator[tuple[Cause, str, int]]:
    """The causes whose counters have grown, with the interface (empty: the machine), and by how much.

    Args:
        then: The counters before, by their names, with the interface and a slash in front.
        now: The counters now.
        is_alone: Whether no other node is on the same machine.
    """
    explained: set[tuple[str, str]] = set()
    grown = {cause.change: _grown(cause, then, now) for cause in CAUSES}
    for cause in CAUSES:
        for interface, counts in grown[cause.change].items():
            if (cause.is_of_machine and not is_alone) or (cause.change, interface) in explained:
                continue
            if cause.explains:
                if len(counts) > 1 or interface not in grown[cause.explains]:
                    continue
                explained.add((cause.explains, interface))
            # Drivers count the same frames under several names.
            yield cause, interface, max(counts)


def _grown(
    cause: Cause, then: Mapping[str, int], now: Mapping[str, int]
) -> Mapping[str, Sequence[int]]:
    """By how much each counter of a cause has grown, by interface, if it has."""
    grown: dict[str, list[int]] = {}
    for place, count in now.items():
        interface, _, name = place.rpartition("/")
        if count > then.get(place, count) and _counts(cause, name):
            grown.setdefault(interface, []).append(count - then[place])
    return grown


def _counts(cause: Cause, name: str) -> bool:
    """Whether a counter of this name counts a cause."""
    is_of_link = cause.change in ("held", "holds")
    return bool(re.fullmatch(cause.names, name)) and not (is_of_link and _NOT_FRAMES.search(name))
