"""Who has set up an interface: a mark in the node's kernel, so that two suites never share one.

The mark is an empty nftables table for each interface: the kernel makes it or refuses it in one step, it costs no frame
anything, it lives as long as what was set up does, and no longer. The interface's alias says whose it is, for people.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from lossratio.dut.changes import Changes
from lossratio.dut.linux.interfaces import Link, read_links
from lossratio.dut.linux.ruleset import document, table
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_FAMILY = "netdev"
_LONGEST_ALIAS = 255


def table_name(interface: str) -> str:
    """Name of the tables that a DUT makes for an interface, which may also be given by its PCI address."""
    return f"lossratio-{interface.replace(':', '-')}"


def take_claim(
    changes: Changes, node: DutNode, kind: str, interfaces: Sequence[str], links: Mapping[str, Link]
) -> None:
    """Marks interfaces as set up by this process.

    Args:
        changes: Makes changes that can be undone.
        node: The node.
        kind: Kind of the DUT.
        interfaces: Names of the interfaces, or their PCI addresses.
        links: The interfaces that the kernel knows, by name.

    Raises:
        DutError: If one is marked already; says by whom.
    """
    names = [table_name(each) for each in interfaces]
    make, remove = (document(table(verb, _FAMILY, name) for name in names) for verb in ("create", "delete"))
    nft = ("nft", "-j", "-f", "-")
    try:
        changes.run(*nft, stdin=make, undo=nft, undo_stdin=remove)
    except DutError:
        check_unclaimed(node, interfaces)
        raise
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    owner = f"{kind} of lossratio, set up by process {os.getpid()} on {socket.gethostname()} at {now}"
    for interface in interfaces:
        if interface in links:
            set_alias = ("ip", "link", "set", "dev", interface, "alias")
            changes.run(*set_alias, owner[:_LONGEST_ALIAS], undo=(*set_alias, links[interface].get("ifalias", "")))


def check_unclaimed(node: DutNode, interfaces: Sequence[str]) -> None:
    """Checks that nobody has set up any of the interfaces.

    Raises:
        DutError: If somebody has; says who, and how to take it away from them.
    """
    taken = claimed(node)
    for interface in interfaces:
        if table_name(interface) in taken:
            owner = read_links(node).get(interface, {}).get("ifalias", "somebody's")
            raise DutError(
                f"{node.name}: interface {interface} is already set up, as {owner}. Wait for its tear-down. If that "
                f"run is gone without one, reboot the node, or remove what it made: the nftables tables "
                f"'lossratio-*' (nft list tables), the interfaces 'lr-*' (ip link), and the processes with "
                f"'/tmp/lossratio-' in their command line (ps)."
            )


def claimed(node: DutNode) -> frozenset[str]:
    """Names of the tables that mark an interface as set up.

    Raises:
        DutError: If the node's tables cannot be read.
    """
    tables = (each["table"]["name"] for each in node.json("nft", "-j", "list", "tables", _FAMILY)["nftables"][1:])
    return frozenset(name for name in tables if name.startswith(table_name("")))
