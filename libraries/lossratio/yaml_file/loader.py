"""Reads YAML into nodes in bounded time and memory, also if the text is hostile.

Its depth, the number of its values and the length of its numbers are limited. An alias counts as many values as it
stands for.
"""

from typing import Any

import yaml
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent
from yaml.reader import Reader

from lossratio.checked_arguments import shortened

_MOST_VALUES = 50_000
_MOST_BY_ALIASES = 5_000
"""A person who writes aliases means fewer values. They are refused before they are made, which takes seconds."""
_CHARACTERS_PER_VALUE = 100
"""A longer text counts as several values, so that aliases of a long text are limited, too."""
_DEEPEST = 50
_LONGEST_NUMBER = 100
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class RefusedError(MarkedYAMLError):
    """A part of a file that this module refuses. Its problem is in words for users."""

    def __init__(self, problem: str, mark: yaml.Mark) -> None:
        super().__init__(None, None, problem, mark)


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader with limits. All errors that it raises are errors of YAML."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0
        self._values_by_aliases = 0
        self._values_of: dict[str, int] = {}
        self._unfinished: set[str] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Composes a node.

        Raises:
            RefusedError: If nodes are too deep, too many, or part of themselves.
        """
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor: str | None = getattr(event, "anchor", None)
        is_alias = isinstance(event, AliasEvent)
        before = self._values

        if is_alias:
            if anchor in self._unfinished:
                raise RefusedError(
                    f"*{anchor} refers to a value that contains it; leave it out", event.start_mark
                )
            stands_for = self._values_of.get(str(anchor), 0)
            self._values += stands_for
            self._values_by_aliases += stands_for
        else:
            self._values += 1 + len(getattr(event, "value", "")) // _CHARACTERS_PER_VALUE

        self._depth += 1
        if self._depth > _DEEPEST:
            raise RefusedError(
                f"nested more than {_DEEPEST} levels deep; use fewer levels", event.start_mark
            )
        if self._values_by_aliases > _MOST_BY_ALIASES:
            what = f"aliases (*name) stand for more than {_MOST_BY_ALIASES} values"
            raise RefusedError(what, event.start_mark)
        if self._values > _MOST_VALUES:
            raise RefusedError(f"more than {_MOST_VALUES} values; split the file", event.start_mark)

        if anchor is not None:
            self._unfinished.add(anchor)
        node = super().compose_node(parent, index)
        if anchor is not None:
            self._unfinished.discard(anchor)
            self._values_of.setdefault(anchor, self._values - before)

        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        """Composes a text or number.

        Raises:
            RefusedError: If a text has a character that YAML forbids, even as an escape, or a number is too long.
        """
        node = super().compose_scalar_node(anchor)
        bad = Reader.NON_PRINTABLE.search(node.value)
        if bad is not None:
            what = f"the character U+{ord(bad[0]):04X} is not allowed in a text"
            raise RefusedError(what, node.start_mark)
        if node.tag in _NUMBER_TAGS and len(node.value) > _LONGEST_NUMBER:
            what = f"a number of more than {_LONGEST_NUMBER} characters. If it is a text, quote it"
            raise RefusedError(what, node.start_mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Makes the value of a node.

        Raises:
            RefusedError: If the value does not fit the node's tag, or the type that it looks like.
        """
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as cause:
            kind = node.tag.rpartition(":")[2]
            shown = shortened(repr(node.value))
            if kind == "timestamp":
                what = f"there is no such day or time as {shown}; text in this form needs quotes"
            else:
                what = f"{shown} is not a value of type {shortened(kind)}"
            raise RefusedError(what, node.start_mark) from cause
