"""Counters of a Linux DUT: what came in, what went out, and where the rest was dropped."""

from __future__ import annotations

from collections.abc import Mapping

from lossratio.dut.base import DutCounters
from lossratio.dut.linux.interfaces import Link, existing_links
from lossratio.dut.linux.ruleset import Ruleset
from lossratio.dut.linux.softnet import read_softnet
from lossratio.nodes import DutNode

_SOFTNET = ("dropped", "time_squeeze")


def read_linux_counters(
    node: DutNode, west: str, east: str, ruleset: Ruleset, queues: Mapping[str, str]
) -> DutCounters:
    """Reads the counters.

    Args:
        node: The DUT's node.
        west: The west interface.
        east: The east interface.
        ruleset: The DUT's rules, with its policers.
        queues: By direction, the interface that drops what a queue inside the DUT has no room for.
    """
    links = existing_links(node, west, east, *queues.values())
    sides = {"west": links[west], "east": links[east]}
    return DutCounters(
        received={side: _count(link, "rx", "packets") for side, link in sides.items()},
        transmitted={side: _count(link, "tx", "packets") for side, link in sides.items()},
        dropped={
            **{f"policer {direction}": frames for direction, frames in _policed(node, ruleset).items()},
            **{f"queue {direction}": _count(links[name], "tx", "dropped") for direction, name in queues.items()},
            **{f"{side} interface, going out": _count(link, "tx", "dropped") for side, link in sides.items()},
        },
        details={
            **{f"{side} interface, rx dropped": _count(link, "rx", "dropped") for side, link in sides.items()},
            **_softnet(node),
        },
    )


def _policed(node: DutNode, ruleset: Ruleset) -> dict[str, int]:
    """Frames that each direction's policer has dropped."""
    listing = node.json("nft", "-j", "list", "counters")["nftables"]
    counters = (each["counter"] for each in listing if "counter" in each)
    ours = {each["name"]: int(each["packets"]) for each in counters if each["table"] == ruleset.table}
    return {direction: node.find("the counter", name, ours) for direction, name in ruleset.counters.items()}


def _count(link: Link, direction: str, name: str) -> int:
    return int(link["stats64"][direction][name])


def _softnet(node: DutNode) -> dict[str, int]:
    """Sums over the CPUs."""
    by_cpu = read_softnet(node).values()
    return {f"softnet {name}": sum(counts[name] for counts in by_cpu) for name in _SOFTNET}
