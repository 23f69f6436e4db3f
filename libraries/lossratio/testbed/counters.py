"""Counters that name a cause outside of the device, by the names that kernels, cards and clouds give them."""

import re
from collections.abc import Iterator, Mapping
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
    is_of_machine: bool = False
    """Whether the counter is of a machine, and says nothing about one node if others are on the same machine."""


# Table: `ethtool -S` first, under the names that drivers have; then /sys, cgroups (quota) and /proc/net (backlog).
CAUSES = (
    Cause(
        "held",
        r"(.*_)?rx_.*(pause|xoff|pfc).*|.*(link|priority_[0-7])_xoff_rx|mac_rx_.*(pause|pfc).*",
    ),
    Cause(
        "holds",
        r"(.*_)?tx_.*(pause|xoff|pfc).*|.*(link|priority_[0-7])_xoff_tx|mac_tx_.*(pause|pfc).*",
    ),
    Cause("allowance", r"(bw_in|bw_out|pps|conntrack|linklocal)_allowance_exceeded", unit="packet"),
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
    for cause in CAUSES:
        if cause.is_of_machine and not is_alone:
            continue
        grown: dict[str, int] = {}
        for place, count in now.items():
            interface, _, name = place.rpartition("/")
            if re.fullmatch(cause.names, name) and not (
                cause.change in ("held", "holds") and _NOT_FRAMES.search(name)
            ):
                # Drivers count the same frames under several names.
                grown[interface] = max(grown.get(interface, 0), count - then.get(place, count))
        for interface, frames in grown.items():
            if frames > 0:
                yield cause, interface, frames
