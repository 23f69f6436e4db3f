"""The values that a declarative Python file can have, and the allowed operations on them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from lossratio.traffic.foreign.packets import ForeignFieldError, Packet

_MOST_ITEMS = 100_000
_MOST_BITS = 128

# Table: a name a row.
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
# Table: a name a row.
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
# Table: a name a row.
BUILT_IN: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "dict": dict,
    "enumerate": lambda items: list(enumerate(items)),
    "float": float,
    "int": int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": lambda *ends: _short(range(*ends)),
    "round": round,
    "str": str,
    "sum": sum,
    "tuple": tuple,
    "zip": lambda *items: list(zip(*items, strict=False)),
}
SPREAD = "**"
"""The name of all named arguments that come from a mapping whose value is not known."""
SIMPLE = (int, float, str, bytes, bool, type(None), list, tuple, dict, Packet)


@dataclass(frozen=True)
class Unknown:
    """A value that cannot be found. It is only an error if a stream depends on it."""

    what: str
    """The expression."""
    line: int
    """Its line."""

    def error(self) -> ForeignFieldError:
        """The error if its value is needed."""
        problem = "its value is not known, as files are read and not run"
        return ForeignFieldError(self.what, problem, self.line)


@dataclass(frozen=True)
class Made:
    """A call of one of the generator's own classes or functions."""

    kind: str
    """Its name."""
    arguments: tuple[Any, ...]
    """The positional arguments."""
    named: Mapping[str, Any]
    """The named arguments."""
    line: int
    """Its line."""

    def values(self, *names: str) -> dict[str, Any]:
        """The arguments, by name.

        Args:
            names: The names of arguments in their order.

        Raises:
            ForeignFieldError: If it has more arguments, or an argument whose value is not known.
        """
        if len(self.arguments) > len(names):
            raise ForeignFieldError(self.kind, "it has arguments without names", self.line)

        given = {**dict(zip(names, self.arguments, strict=False)), **self.named}
        for value in given.values():
            if isinstance(value, Unknown):
                raise value.error()
        return given


@dataclass
class Recorder:
    """An object of the generator that calls of its methods change; these calls are kept."""

    kind: str
    """Its class."""
    line: int
    """Where it was made."""
    calls: list[Made] = field(default_factory=list)
    """The calls, in their order."""


@dataclass
class CommandLine:
    """The options of a command line, which have their defaults."""

    defaults: dict[str, Any] = field(default_factory=dict)


def unknown_part(value: Any, node: ast.expr) -> Unknown:
    """What is not known if an expression needs a value of another kind: the value itself, or else the expression."""
    if isinstance(value, Unknown):
        return value
    return Unknown(ast.unparse(node), node.lineno)


def _short(items: range) -> list[int]:
    if len(items) > _MOST_ITEMS:
        raise ValueError(f"there are more than {_MOST_ITEMS} items")
    return list(items)


def is_plain(text: str) -> bool:
    """Whether placeholders in a text take plain values, without parts of them or widths."""
    for _, name, how, _ in Formatter().parse(text):
        has_parts = "." in (name or "") or "[" in (name or "")
        if how or has_parts:
            return False
    return True


def is_long(kind: ast.operator, left: Any, right: Any) -> bool:
    """Whether a result would need much memory."""
    if isinstance(kind, ast.Mult):
        texts = [one for one in (left, right) if isinstance(one, (str, bytes, list, tuple))]
        times = [one for one in (left, right) if isinstance(one, int)]
        return bool(texts and times) and len(texts[0]) * times[0] > _MOST_ITEMS
    if isinstance(kind, ast.Mod) and isinstance(left, (str, bytes)):
        return True
    return isinstance(kind, ast.LShift) and isinstance(right, int) and right > _MOST_BITS


def is_huge(value: Any) -> bool:
    """Whether a value is larger than any that describes frames."""
    if isinstance(value, (str, bytes, list, tuple, dict)):
        return len(value) > _MOST_ITEMS
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def with_defaults(
    options: CommandLine, method: str, given: tuple[Any, ...], named: Mapping[str, Any]
) -> CommandLine | None:
    """What ``argparse`` makes of a call if the command line is empty."""
    if method == "add_argument":
        flags = [flag for flag in given if isinstance(flag, str)]
        long = [flag for flag in flags if flag.startswith("--")] or flags
        name = named.get("dest")
        if name is None and long:
            name = long[0].lstrip("-").replace("-", "_")

        usual = False if named.get("action") == "store_true" else None
        # An option without a known name has no value here, which is only an error if a stream depends on it.
        if isinstance(name, str):
            options.defaults[name] = named.get("default", named.get(SPREAD, usual))
        return None
    return options if method == "parse_args" else None
