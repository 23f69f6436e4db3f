"""The nftables tables of a DUT: policers, rules that only take time, and claims on interfaces.

A claim is a mark in the node's kernel, so that two runs never share an interface: an empty table for each interface.
The kernel makes or refuses the table in one step. The table does not delay frames, and exists exactly as long as the
set-up. The interface's alias shows the owner to users.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from lossratio.dut.changes import Changes
from lossratio.dut.linux.conntrack import Rule
from lossratio.dut.linux.interfaces import Link, read_links
from lossratio.dut.texts import filled
from lossratio.errors import DutError
from lossratio.nodes import DutNode

NFT = ("nft", "-f", "-")
"""The command that reads nftables commands from its input. Either all of them take effect, or none does."""
WALK = "walk"
"""The chain of rules that only take time."""
_PORTION = 500
"""Rules in one transaction: without root on the machine, 200 kB (net.core.wmem_default) must hold them."""
_RULES = """
% if is_new
create table {{ at }}
add chain {{ at }} forward { type filter hook forward priority 0; policy accept; }
    % if own.walked_rules
add chain {{ at }} walk
    % endif
    % if own.translation
add chain {{ at }} translate { type nat hook postrouting priority 100; }
add rule {{ at }} translate {{ own.translation }}
    % endif
% else
flush chain {{ at }} forward
    % for name in own.counters.values()
delete counter {{ at }} {{ name }}
    % endfor
% endif
% for direction, interface in own.entrances.items()
    % if own.walked_rules
add rule {{ at }} forward iifname "{{ interface }}" jump walk
    % endif
    % if own.policer
        % set name = own.counters["policer " ~ direction]
        % set rate, burst = own.policer
add counter {{ at }} {{ name }}
add rule {{ at }} forward iifname "{{ interface }}" limit rate over {{ rate }}/second burst {{ burst }} packets
{{- ' counter name "%s" drop' % name }}
    % endif
% endfor
% for name, conditions, verdict in own.connection_rules
    % if name
add counter {{ at }} {{ name }}
    % endif
add rule {{ at }} forward {{ conditions }} {{ 'counter name "%s"' % name if name }} {{ verdict }}
% endfor
"""
# Test traffic has no marks. Even a mark would have no effect, because the rules have no verdict.
_WALKED = """
% for mark in marks
add rule {{ at }} walk meta mark {{ mark }}
% endfor
"""


@dataclass(frozen=True)
class Ruleset:
    """A table with all rules for the frames that a DUT forwards."""

    family: Literal["bridge", "inet"]
    """Family of nftables whose forward hook the frames pass."""
    table: str
    """Name of the table; it is unique."""
    entrances: Mapping[str, str]
    """By direction, the interface through which its frames enter the forward hook."""
    policer: tuple[int, int] | None = None
    """The policer of each direction: frames per second, and the frames that its full bucket holds."""
    walked_rules: int = 0
    """Number of rules that each frame passes and that match no frame."""
    connection_rules: Sequence[Rule] = ()
    """Rules of connections."""
    translation: str = ""
    """The rule that translates source addresses; empty: there is none."""

    def __bool__(self) -> bool:
        return bool(self.policer or self.walked_rules or self.connection_rules or self.translation)

    def creation(self) -> str:
        """Input for nft that makes the table, and fails if a table of that name exists."""
        return filled(_RULES, own=self, at=self._at, is_new=True)

    def additions(self) -> Iterator[str]:
        """Inputs that then add the rules that only take time, in portions that the kernel accepts."""
        for first in range(1, self.walked_rules + 1, _PORTION):
            marks = range(first, min(self.walked_rules + 1, first + _PORTION))
            yield filled(_WALKED, at=self._at, marks=marks)

    def renewal(self) -> str:
        """Input that replaces policers and limits in one step, with full buckets and counters at zero."""
        return filled(_RULES, own=self, at=self._at, is_new=False)

    def deletion(self) -> str:
        """Input that removes the table."""
        return f"delete table {self._at}\n"

    @property
    def counters(self) -> dict[str, str]:
        """Names of the counters of dropped frames, by their place."""
        counted = {name.replace("_", " "): name for name, _, _ in self.connection_rules if name}
        if not self.policer:
            return counted
        policers = {
            f"policer {name}": f"policed_{name.replace('>', '_')}" for name in self.entrances
        }
        return policers | counted

    @property
    def _at(self) -> str:
        return f"{self.family} {self.table}"


def table_name(interface: str) -> str:
    """Name of the tables that a DUT makes for an interface, or for the PCI address of a card."""
    # nft reads no other characters in a table's name, but Linux allows nearly all of them in an interface's.
    return "lossratio-" + re.sub(r"[^A-Za-z0-9_.-]", "-", interface)


def take_claim(
    changes: Changes, node: DutNode, kind: str, interfaces: Sequence[str], links: Mapping[str, Link]
) -> None:
    """Marks interfaces as set up by this process."""
    names = [table_name(interface) for interface in interfaces]
    make = "".join(f"create table netdev {name}\n" for name in names)
    remove = "".join(f"delete table netdev {name}\n" for name in names)

    try:
        changes.run(*NFT, stdin=make, undo=NFT, undo_stdin=remove)
    except DutError:
        check_unclaimed(node, interfaces)
        raise

    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    owner = (
        f"{kind} of lossratio, set up by process {os.getpid()} on {socket.gethostname()} at {now}"
    )
    for interface in interfaces:
        if interface in links:
            before = links[interface].get("ifalias", "")
            # The kernel accepts no more characters.
            changes.set_link(interface, "alias", owner[:255], undo=("alias", before))


def check_unclaimed(node: DutNode, interfaces: Sequence[str]) -> None:
    """Checks that no run has set up any of the interfaces.

    Raises:
        DutError: If one has. The message names the run, and says how to remove what a dead run left behind.
    """
    taken = claimed(node)
    for interface in interfaces:
        if table_name(interface) in taken:
            owner = read_links(node).get(interface, {}).get("ifalias", "an unknown run's")
            raise node.error(
                f"interface {interface} is already set up, as {owner}. Wait for its tear-down. If that run ended "
                "without a tear-down, reboot the node, or remove what it left: the nftables tables 'lossratio-*' "
                "(nft list tables), the interfaces 'lr-*' (ip link), and the processes with '/tmp/lossratio-' in "
                "their command line (ps)."
            )


def claimed(node: DutNode) -> frozenset[str]:
    """Names of the tables that mark an interface as set up."""
    tables = (
        entry["table"]["name"]
        for entry in node.json("nft", "-j", "list", "tables", "netdev")["nftables"][1:]
    )
    return frozenset(name for name in tables if name.startswith(table_name("")))
