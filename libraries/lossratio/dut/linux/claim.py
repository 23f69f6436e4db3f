"""Claims on interfaces: a mark in the node's kernel, so that two runs never share an interface.

The mark is an empty nftables table for each interface. The kernel makes it or refuses it in one step, it costs no frame
any time, and it exists exactly as long as the set-up. The interface's alias shows the owner to users.
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
    """Name of the tables that a DUT makes for an interface, or for the PCI address of a card."""
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
        DutError: If an interface is marked already; names the owner.
    """
    names = [table_name(interface) for interface in interfaces]
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
    """Checks that no run has set up any of the interfaces.

    Raises:
        DutError: If a run has; names the owner, and how to remove a claim.
    """
    taken = claimed(node)
    for interface in interfaces:
        if table_name(interface) in taken:
            owner = read_links(node).get(interface, {}).get("ifalias", "an unknown run's")
            raise DutError(
                f"{node.name}: interface {interface} is already set up, as {owner}. Wait for its tear-down. If that "
                f"run has ended without one, reboot the node, or remove the run's parts: the nftables tables "
                f"'lossratio-*' (nft list tables), the interfaces 'lr-*' (ip link), and the processes with "
                f"'/tmp/lossratio-' in their command line (ps)."
            )


def claimed(node: DutNode) -> frozenset[str]:
    """Names of the tables that mark an interface as set up.

    Raises:
        DutError: If the node's tables cannot be read.
    """
    tables = (entry["table"]["name"] for entry in node.json("nft", "-j", "list", "tables", _FAMILY)["nftables"][1:])
    return frozenset(name for name in tables if name.startswith(table_name("")))
