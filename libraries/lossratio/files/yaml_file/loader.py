"""Reads YAML into nodes in bounded time and memory, also if the text is hostile.

Its depth and the number of its values are limited. An alias counts as many values as it
stands for.
"""

from typing import Any, ClassVar

import yaml
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent
from yaml.reader import Reader

from lossratio.values import Plain

_MOST_VALUES = 50_000
_MOST_BY_ALIASES = 5_000
"""A person who writes aliases means fewer values. They are refused before they are made, which takes seconds."""
_CHARACTERS_PER_VALUE = 100
"""A longer text counts as several values, so that aliases of a long text are limited, too."""
_DEEPEST = 50
_READ_BY_LOOK = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
"""What a text without quotes may be beside a text. The fields say what is a number, a truth value or a day."""


def _kept(rules: list[Any]) -> list[Any]:
    return [rule for rule in rules if rule[0] in _READ_BY_LOOK]


_RESOLVERS = {
    first: _kept(rules) for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_CONSTRUCTORS = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "str", "seq", "map")
}
"""What makes the values of a file, by tag. All other tags are refused: None stands for them."""


class RefusedError(MarkedYAMLError):
    """A part of a file that this module refuses. Its problem is in words for users."""

    def __init__(self, problem: str, mark: yaml.Mark) -> None:
        super().__init__(None, None, problem, mark)


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader with limits. All errors that it raises are errors of YAML.

    A text without quotes is `Plain`, unless it is empty.
    """

    yaml_constructors: ClassVar = _CONSTRUCTORS

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.yaml_implicit_resolvers = _RESOLVERS
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
        """Composes a text.

        Raises:
            RefusedError: If it has a character that YAML forbids, even as an escape.
        """
        node = super().compose_scalar_node(anchor)
        bad = Reader.NON_PRINTABLE.search(node.value)
        if bad is not None:
            what = f"the character U+{ord(bad[0]):04X} is not allowed in a text"
            raise RefusedError(what, node.start_mark)
        return node

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """The text of a node."""
        text = super().construct_scalar(node)
        if isinstance(node, yaml.ScalarNode) and node.style is None:
            return Plain(text)
        return text
