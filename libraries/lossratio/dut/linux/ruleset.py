"""The nftables rules of a DUT, as JSON for ``nft -j``: policers, and rules that only take time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Command = dict[str, Any]

_FORWARD = "forward"
_WALK = "walk"
_FILTER_PRIORITY = 0
_PORTION = 500
"""Rules in one transaction: without root on the machine, 200 kB (net.core.wmem_default) must hold them."""


@dataclass(frozen=True)
class Policer:
    """A token bucket. Frames that it does not pass are dropped and counted.

    Attributes:
        rate: Tokens per second, one for each frame.
        burst: Tokens that a full bucket holds.
    """

    rate: int
    burst: int


@dataclass(frozen=True)
class Ruleset:
    """A table with all rules for the frames that a DUT forwards.

    Attributes:
        family: Family of nftables whose forward hook the frames pass.
        table: Name of the table; it is unique.
        entrances: By direction, the interface through which its frames enter the forward hook.
        policer: The policer of each direction, which has a bucket of its own.
        walked_rules: Number of rules that each frame passes, and that match no frame.
    """

    family: Literal["bridge", "inet"]
    table: str
    entrances: Mapping[str, str]
    policer: Policer | None = None
    walked_rules: int = 0

    def __bool__(self) -> bool:
        return self.policer is not None or self.walked_rules > 0

    def creation(self) -> str:
        """Input for ``nft -j -f -`` that makes the table, and fails if a table of that name exists."""
        return document([self._table("create"), *self._content()])

    def additions(self) -> Iterable[str]:
        """Inputs that then add the walked rules, in portions that the kernel accepts."""
        for first in range(1, self.walked_rules + 1, _PORTION):
            last = min(self.walked_rules, first + _PORTION - 1)
            yield document(self._walked_rule(mark) for mark in range(first, last + 1))

    def renewal(self) -> str:
        """Input that replaces the policers in one step: buckets are full then, and counters zero."""
        flush: Command = {"flush": self._named("chain", name=_FORWARD)}
        counters: list[Command] = [{"delete": self._named("counter", name=_counter(name))} for name in self.entrances]
        return document([flush, *counters, *self._rules()])

    def deletion(self) -> str:
        """Input that removes the table."""
        return document([self._table("delete")])

    @property
    def counters(self) -> dict[str, str]:
        """Names of the counters of dropped frames, by direction."""
        return {direction: _counter(direction) for direction in self.entrances} if self.policer else {}

    def without_walked_rules(self, listing: Any) -> list[Any]:
        """The output of ``nft -j list ruleset``, without the many walked rules."""
        return [
            entry
            for entry in listing["nftables"]
            if (entry.get("rule", {}).get("table"), entry.get("rule", {}).get("chain")) != (self.table, _WALK)
        ]

    def _content(self) -> Iterable[Command]:
        hook = {"type": "filter", "hook": _FORWARD, "prio": _FILTER_PRIORITY, "policy": "accept"}
        yield self._add("chain", name=_FORWARD, **hook)
        if self.walked_rules:
            yield self._add("chain", name=_WALK)
        yield from self._rules()

    def _rules(self) -> Iterable[Command]:
        for direction, interface in self.entrances.items():
            yield from self._direction(direction, _match({"meta": {"key": "iifname"}}, interface))

    def _direction(self, direction: str, entrance: Command) -> Iterable[Command]:
        if self.walked_rules:
            yield self._rule(_FORWARD, entrance, {"jump": {"target": _WALK}})
        if self.policer:
            over = {"rate": self.policer.rate, "per": "second", "burst": self.policer.burst, "inv": True}
            yield self._add("counter", name=_counter(direction))
            yield self._rule(_FORWARD, entrance, {"limit": over}, {"counter": _counter(direction)}, {"drop": None})

    def _walked_rule(self, mark: int) -> Command:
        # Test traffic has no marks. A mark would have no effect either, as the rule has no verdict.
        return self._rule(_WALK, _match({"meta": {"key": "mark"}}, mark))

    def _rule(self, chain: str, *expressions: Command) -> Command:
        return self._add("rule", chain=chain, expr=list(expressions))

    def _add(self, what: str, **fields: Any) -> Command:
        return {"add": self._named(what, **fields)}

    def _named(self, what: str, **fields: Any) -> Command:
        return {what: {"family": self.family, "table": self.table, **fields}}

    def _table(self, verb: str) -> Command:
        return table(verb, self.family, self.table)


def table(verb: str, family: str, name: str) -> Command:
    """A command on a whole table; the verb is ``create`` or ``delete``."""
    return {verb: {"table": {"family": family, "name": name}}}


def document(commands: Iterable[Command]) -> str:
    """Input for ``nft -j -f -``. Either all of its commands take effect, or none does."""
    return json.dumps({"nftables": list(commands)})


def _match(left: Command, right: str | int) -> Command:
    return {"match": {"op": "==", "left": left, "right": right}}


def _counter(direction: str) -> str:
    return f"policed_{direction.replace('>', '_')}"
