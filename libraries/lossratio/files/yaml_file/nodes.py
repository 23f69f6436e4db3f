"""The places of values in the nodes of a YAML file, and names that appear twice in them."""

from collections.abc import Hashable, Iterator, Sequence

import yaml

from lossratio.values import shortened

Location = tuple[str | int, ...]
"""A place in a file: keys and indices."""
Problem = tuple[Location, str]
"""A place, and the problem there."""


def line_numbers(node: yaml.Node | None) -> dict[Location, int]:
    """The line of each value in a node, by its place; empty if there is no node."""
    return {} if node is None else dict(_lines(node))


def _lines(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, int]]:
    yield location, node.start_mark.line + 1
    for key, mark, value in _children(node):
        yield (*location, key), mark.start_mark.line + 1
        for place, line in _lines(value, (*location, key)):
            if place != (*location, key):
                yield place, line


def duplicates(node: yaml.Node, location: Location = ()) -> Iterator[Problem]:
    """Names of fields that appear twice in one mapping."""
    seen: dict[Hashable, int] = {}
    for key, mark, value in _children(node):
        if key in seen:
            yield (
                (*location, key),
                f"the name {shortened(repr(key))} appears twice (first on line {seen[key]})",
            )
        seen.setdefault(key, mark.start_mark.line + 1)
        yield from duplicates(value, (*location, key))


def _children(node: yaml.Node) -> Sequence[tuple[str | int, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [
            (key.value, key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)
        ]
    if isinstance(node, yaml.SequenceNode):
        return [(index, value, value) for index, value in enumerate(node.value)]
    return []
