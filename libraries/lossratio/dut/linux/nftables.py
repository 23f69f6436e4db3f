"""The nftables tables of a DUT, as JSON for ``nft -j``: policers, rules that only take time, and claims on interfaces.

A claim is a mark in the node's kernel, so that two runs never share an interface: an empty table for each interface.
The kernel makes or refuses the table in one step. The table does not delay frames, and exists exactly as long as the
set-up. The interface's alias shows the owner to users.
"""

import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from lossratio.dut.changes import Changes
from lossratio.dut.linux.conntrack import match
from lossratio.dut.linux.interfaces import Link, read_links
from lossratio.errors import DutError
from lossratio.nodes import DutNode

Command = dict[str, Any]
NFT = ("nft", "-j", "-f", "-")
"""The command that reads nftables commands from its input."""
_FORWARD = "forward"
_TRANSLATE = "translate"
WALK = "walk"
"""The chain of rules that only take time."""
_PORTION = 500
"""Rules in one transaction: without root on the machine, 200 kB (net.core.wmem_default) must hold them."""


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
    connection_rules: Sequence[tuple[str, Sequence[Command]]] = ()
    """Rules of connections: name of a counter (empty: none) and expressions."""
    translation: Sequence[Command] = ()
    """Expressions of the rule that translates source addresses; empty: there is none."""

    def __bool__(self) -> bool:
        return bool(self.policer or self.walked_rules or self.connection_rules or self.translation)

    def creation(self) -> str:
        """Input for ``nft -j -f -`` that makes the table, and fails if a table of that name exists."""
        hook = {"type": "filter", "hook": _FORWARD, "prio": 0, "policy": "accept"}
        content = [self._add("chain", name=_FORWARD, **hook)]
        if self.walked_rules:
            content.append(self._add("chain", name=WALK))
        if self.translation:
            content.append(
                self._add("chain", name=_TRANSLATE, type="nat", hook="postrouting", prio=100)
            )
            content.append(self._rule(_TRANSLATE, *self.translation))
        return document([table("create", self.family, self.table), *content, *self._rules()])

    def additions(self) -> Iterable[str]:
        """Inputs that then add the rules that only take time, in portions that the kernel accepts."""
        for first in range(1, self.walked_rules + 1, _PORTION):
            last = min(self.walked_rules, first + _PORTION - 1)
            # Test traffic has no marks. Even a mark would have no effect, because the rules have no verdict.
            marks = (match({"meta": {"key": "mark"}}, mark) for mark in range(first, last + 1))
            yield document(self._rule(WALK, mark) for mark in marks)

    def renewal(self) -> str:
        """Input that replaces policers and limits in one step, with full buckets and counters at zero."""
        flush: Command = {"flush": self._named("chain", name=_FORWARD)}
        counters: list[Command] = [
            {"delete": self._named("counter", name=name)} for name in self.counters.values()
        ]
        return document([flush, *counters, *self._rules()])

    def deletion(self) -> str:
        """Input that removes the table."""
        return document([table("delete", self.family, self.table)])

    @property
    def counters(self) -> dict[str, str]:
        """Names of the counters of dropped frames, by their place."""
        if self.policer:
            policers = {f"policer {name}": _counter(name) for name in self.entrances}
        else:
            policers = {}

        return policers | {
            name.replace("_", " "): name for name, _ in self.connection_rules if name
        }

    def _rules(self) -> Iterable[Command]:
        for direction, interface in self.entrances.items():
            entrance = match({"meta": {"key": "iifname"}}, interface)
            if self.walked_rules:
                yield self._rule(_FORWARD, entrance, {"jump": {"target": WALK}})
            if self.policer:
                rate, burst = self.policer
                over = {"rate": rate, "per": "second", "burst": burst, "inv": True}
                counter = _counter(direction)
                yield self._add("counter", name=counter)
                yield self._rule(
                    _FORWARD, entrance, {"limit": over}, {"counter": counter}, {"drop": None}
                )

        for name, expressions in self.connection_rules:
            *conditions, verdict = expressions
            if name:
                yield self._add("counter", name=name)
                conditions.append({"counter": name})
            yield self._rule(_FORWARD, *conditions, verdict)

    def _rule(self, chain: str, *expressions: Command) -> Command:
        return self._add("rule", chain=chain, expr=list(expressions))

    def _add(self, what: str, **fields: Any) -> Command:
        return {"add": self._named(what, **fields)}

    def _named(self, what: str, **fields: Any) -> Command:
        return {what: {"family": self.family, "table": self.table, **fields}}


def table(verb: str, family: str, name: str) -> Command:
    """A command on a whole table; the verb is ``create`` or ``delete``."""
    return {verb: {"table": {"family": family, "name": name}}}


def document(commands: Iterable[Command]) -> str:
    """Input for ``nft -j -f -``. Either all its commands take effect, or none does."""
    return json.dumps({"nftables": list(commands)})


def _counter(direction: str) -> str:
    return f"policed_{direction.replace('>', '_')}"


_FAMILY = "netdev"


def table_name(interface: str) -> str:
    """Name of the tables that a DUT makes for an interface, or for the PCI address of a card."""
    return f"lossratio-{interface.replace(':', '-')}"


def take_claim(
    changes: Changes, node: DutNode, kind: str, interfaces: Sequence[str], links: Mapping[str, Link]
) -> None:
    """Marks interfaces as set up by this process."""
    names = [table_name(interface) for interface in interfaces]
    make = document(table("create", _FAMILY, name) for name in names)
    remove = document(table("delete", _FAMILY, name) for name in names)

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
        for entry in node.json("nft", "-j", "list", "tables", _FAMILY)["nftables"][1:]
    )
    return frozenset(name for name in tables if name.startswith(table_name("")))
