"""The places of values in the nodes of a YAML file, and the mistakes that only nodes show."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence

import yaml

from lossratio.checked_arguments import shortened
from lossratio.yaml_file.loader import BoundedLoader

Location = tuple[str | int, ...]
"""A place in a file: keys and indices."""
Problem = tuple[Location, str]
"""A place, and the problem there."""
# Table: what YAML makes of a name without quotes, where a text was meant.
_NO_NAMES = {
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "empty",
    "tag:yaml.org,2002:timestamp": "a date",
}
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
"""A number that YAML 1.1 reads as octal. YAML 1.2, JSON and engineers read it as decimal."""


def lines_of(text: str) -> Mapping[Location, int]:
    """The line of each field of a text in YAML or JSON; empty if the text cannot be read."""
    try:
        node = BoundedLoader(text).get_single_node()
    except (yaml.YAMLError, ValueError, OverflowError):
        node = None
    return line_numbers(node)


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
                f"the name {shortened(repr(key))} appears twice (first in line {seen[key]})",
            )
        seen.setdefault(key, mark.start_mark.line + 1)
        yield from duplicates(value, (*location, key))


def misread_names(node: yaml.Node, location: Location = ()) -> Iterator[Problem]:
    """Names of fields that YAML does not read as texts."""
    for name, key, value in _children(node):
        if isinstance(node, yaml.MappingNode) and (read_as := _NO_NAMES.get(key.tag)):
            yield (
                (*location, name),
                f"YAML reads this name as {read_as}; put it in quotes, '{name}'",
            )
        yield from misread_names(value, (*location, name))


def misread_numbers(node: yaml.Node, location: Location = ()) -> Iterator[Problem]:
    """Numbers that begin with 0, which YAML reads as octal."""
    for name, _, value in _children(node):
        if value.tag == "tag:yaml.org,2002:int" and _OCTAL.fullmatch(value.value):
            digits = value.value.replace("_", "")
            decimal, octal = int(digits), int(digits, 8)
            if decimal != octal:
                yield (
                    (*location, name),
                    f"YAML reads {value.value} as the octal number {octal}; write {decimal}, or put a text in quotes, "
                    f"'{value.value}'",
                )
        yield from misread_numbers(value, (*location, name))


def written_values(node: yaml.Node | None) -> dict[Location, str]:
    """The texts and numbers of a node as the file has them, by their places; empty if there is no node."""
    return {} if node is None else dict(_written(node))


def _written(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, str]]:
    if isinstance(node, yaml.ScalarNode):
        yield location, node.value
    for name, _, value in _children(node):
        yield from _written(value, (*location, name))


def _children(node: yaml.Node) -> Sequence[tuple[str | int, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [
            (key.value, key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)
        ]
    if isinstance(node, yaml.SequenceNode):
        return [(index, value, value) for index, value in enumerate(node.value)]
    return []
