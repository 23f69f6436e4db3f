"""Reads YAML files into pydantic models, with errors that name the file, the line and the field.

A file may be hostile. It is read in bounded time and memory: its size, its depth, the number of its values and the
length of its numbers are limited. An alias counts as many values as it stands for.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent
from yaml.reader import Reader

from lossratio.errors import LossRatioError
from lossratio.input_file import read_input_file, shown_name
from lossratio.shipped import did_you_mean

ModelT = TypeVar("ModelT", bound=BaseModel)
Location = tuple[str | int, ...]
Problem = tuple[Location, str]
"""A place in the file (keys and indices), and the problem there."""
_MOST_BYTES = 1 << 19
_MOST_VALUES = 50_000
_CHARACTERS_PER_VALUE = 100
"""A longer text counts as several values, so that aliases of a long text are limited, too."""
_DEEPEST = 50
_LONGEST_NUMBER = 100
_MOST_PROBLEMS = 20
_LONGEST_SHOWN = 100
_LONGEST_MESSAGE = 1000
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def load_yaml_file(
    path: str | Path,
    model: type[ModelT],
    error: type[LossRatioError],
    check: Callable[[ModelT], Iterable[Problem]] = lambda loaded: (),
    *,
    convert: Callable[[dict[str, Any], Path], dict[str, Any]] = lambda data, path: data,
    rewrite: Callable[[str], str] = lambda text: text,
) -> ModelT:
    """Reads a YAML file and checks it against a model.

    Args:
        path: The file.
        model: What the file describes.
        error: The class of errors.
        check: Yields the problems of a file whose single fields are valid.
        convert: Turns the data of another format into the model's fields; a field of both formats keeps its place.
        rewrite: Turns the text of another format into YAML, line by line.

    Raises:
        LossRatioError: Of the class `error`, if the file cannot be read, is not YAML, or does not fit the model. The
            message has one line per problem: file, line, field, problem.
    """
    path = Path(path)
    loader, node = _compose(path, error, rewrite)
    # Before the data are made: making them replaces merge keys (<<) in the nodes by their targets.
    problems = [] if node is None else list(_duplicates(node))

    try:
        data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as cause:
        raise error(_broken_yaml(path, cause)) from cause

    if not isinstance(data, dict):
        problems.append(((), "the file must hold a mapping (field: value), and holds none"))
    elif not problems:
        try:
            loaded = model.model_validate(convert(data, path))
        except ValidationError as cause:
            places = [item["loc"] for item in cause.errors()]
            # A list that was left without its wrong items is not too short.
            found = [
                item
                for item in cause.errors()
                if item["type"] != "too_short" or not _has_more(item["loc"], places)
            ]
            # A message looks for the field that was meant, so only those that are shown have one.
            problems = [(item["loc"], _message(item, model)) for item in found[:_MOST_PROBLEMS]]
            problems += [(item["loc"], "") for item in found[_MOST_PROBLEMS:]]
        else:
            problems = list(check(loaded))
            if not problems:
                return loaded

    lines = {} if node is None else dict(_lines(node))
    shown = [_describe(path, lines, location, text) for location, text in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    raise error("\n".join([*shown, *([f"{path}: and {more} more problems"] if more else [])]))


def _has_more(place: Location, places: Sequence[Location]) -> bool:
    """Whether some of these places are inside a place."""
    return any(len(each) > len(place) and each[: len(place)] == place for each in places)


def describe_problem(path: str | Path, location: Location, text: str) -> str:
    """Describes a problem of a file that was read before, as `load_yaml_file` does: with file, line and field."""
    path = Path(path)
    try:
        _, node = _compose(path, LossRatioError)
    except LossRatioError:
        # The file could be read before. The problem is reported without its line.
        node = None
    return _describe(path, {} if node is None else dict(_lines(node)), location, text)


def _compose(
    path: Path, error: type[LossRatioError], rewrite: Callable[[str], str] = lambda text: text
) -> "tuple[_BoundedLoader, yaml.Node | None]":
    """Reads a file as far as its structure."""
    data = read_input_file(path, error, _MOST_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        raise error(f"{path}:{line}: not UTF-8 ({cause.reason}); save the file as UTF-8") from cause
    try:
        loader = _BoundedLoader(rewrite(text))
        return loader, loader.get_single_node()
    except yaml.YAMLError as cause:
        raise error(_broken_yaml(path, cause)) from cause
    except (ValueError, OverflowError) as cause:
        # PyYAML's scanner does not check the numbers of escapes (\UFFFFFFFF) and directives.
        raise error(f"{path}:{loader.line + 1}: not YAML: {_shortened(str(cause))}") from cause


class _BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader with limits. All errors that it raises are errors of YAML."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0
        self._values_of: dict[str, int] = {}
        self._unfinished: set[str] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Composes a node. Refuses nodes that are too deep, too many, or part of themselves."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor: str | None = getattr(event, "anchor", None)
        is_alias = isinstance(event, AliasEvent)
        before = self._values

        if is_alias:
            if anchor in self._unfinished:
                raise ComposerError(
                    None, None, f"*{anchor} stands for something that it is in", event.start_mark
                )
            self._values += self._values_of.get(str(anchor), 0)
        else:
            self._values += 1 + len(getattr(event, "value", "")) // _CHARACTERS_PER_VALUE

        self._depth += 1
        if self._depth > _DEEPEST:
            raise ComposerError(
                None, None, f"nested more than {_DEEPEST} levels deep", event.start_mark
            )
        if self._values > _MOST_VALUES:
            what = f"more than {_MOST_VALUES} values (each alias counts as all that it stands for)"
            raise ComposerError(None, None, what, event.start_mark)

        if anchor is not None:
            self._unfinished.add(anchor)
        node = super().compose_node(parent, index)
        if anchor is not None:
            self._unfinished.discard(anchor)
            self._values_of.setdefault(anchor, self._values - before)

        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        """Composes a text or number. Characters that YAML forbids are refused as escapes, too."""
        node = super().compose_scalar_node(anchor)
        bad = Reader.NON_PRINTABLE.search(node.value)
        if bad is not None:
            what = f"the character U+{ord(bad[0]):04X} does not belong into a text"
            raise ComposerError(None, None, what, node.start_mark)
        if node.tag in _NUMBER_TAGS and len(node.value) > _LONGEST_NUMBER:
            what = f"a number of more than {_LONGEST_NUMBER} characters; if it is a text, quote it"
            raise ComposerError(None, None, what, node.start_mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Makes the value of a node. The value may not fit the node's tag, or the type that it looks like."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as cause:
            kind = node.tag.rpartition(":")[2]
            what = f"{_shortened(repr(node.value))} is no value of type {_shortened(kind)}"
            raise ConstructorError(None, None, what, node.start_mark) from cause


def _describe(path: Path, lines: dict[Location, int], location: Location, text: str) -> str:
    known = location
    while known and known not in lines:
        known = known[:-1]
    field = ".".join(_shortened(shown_name(part)) for part in location)
    return f"{path}:{lines.get(known, 1)}: {field + ': ' if field else ''}{text}"


def _message(item: Any, model: type[BaseModel]) -> str:
    if item["type"] == "extra_forbidden":
        meant = did_you_mean(str(item["loc"][-1]), _fields(model, item["loc"]))
        if meant:
            return f"unknown field.{meant}"
        return "unknown field"
    message = _shortened(str(item["msg"]).removeprefix("Value error, "), _LONGEST_MESSAGE)
    shown = item["input"]
    is_said = isinstance(shown, (dict, list)) or item["type"] in ("missing", "value_error")
    # A choice among names, of an enumeration or a union, says which there are.
    names = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    meant = did_you_mean(str(shown), names)
    said = "" if is_said else f", not {_shortened(repr(shown))}"
    return message[0].lower() + message[1:] + said + (f".{meant}" if meant else "")


def _fields(model: type[BaseModel], location: Location) -> set[str]:
    """The fields that a mapping may have, of which a location names one that it may not."""
    schema = model.model_json_schema()

    def whole(nodes: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for node in (node for node in nodes if isinstance(node, dict)):
            yield node
            target = schema.get("$defs", {}).get(str(node.get("$ref")).rpartition("/")[2])
            yield from whole([target, *node.get("anyOf", ()), *node.get("oneOf", ())])

    here = list(whole([schema]))
    for part in location[:-1]:
        named = [
            node.get("properties", {}).get(part, node.get("additionalProperties")) for node in here
        ]
        others = [
            each
            for node in here
            for each in (node.get("items"), *node.get("patternProperties", {}).values())
        ]
        # The name of a kind in a union has no place in the file.
        here = list(whole([*named, *others])) or here
    return {name for node in here for name in node.get("properties", ())}


def _shortened(text: str, longest: int = _LONGEST_SHOWN) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 3]}..."


def _broken_yaml(path: Path, cause: yaml.YAMLError) -> str:
    mark = getattr(cause, "problem_mark", None)
    line = 1 if mark is None else mark.line + 1
    context = getattr(cause, "context", None)
    problem = getattr(cause, "problem", None) or str(cause)
    # PyYAML splits a sentence in two: "expected a single document in the stream", "but found another document".
    if context and problem.startswith("but "):
        text = f"{context}, {problem}"
    else:
        text = problem

    return f"{path}:{line}: not YAML: {_shortened(text)}"


def _lines(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, int]]:
    yield location, node.start_mark.line + 1
    for key, mark, value in _children(node):
        yield (*location, key), mark.start_mark.line + 1
        for place, line in _lines(value, (*location, key)):
            if place != (*location, key):
                yield place, line


def _duplicates(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, str]]:
    seen: dict[Hashable, int] = {}
    for key, mark, value in _children(node):
        if key in seen:
            yield (
                (*location, key),
                f"the name {_shortened(repr(key))} is given twice (first in line {seen[key]})",
            )
        seen.setdefault(key, mark.start_mark.line + 1)
        yield from _duplicates(value, (*location, key))


def _children(node: yaml.Node) -> Sequence[tuple[str | int, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [
            (key.value, key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)
        ]
    if isinstance(node, yaml.SequenceNode):
        return [(index, value, value) for index, value in enumerate(node.value)]
    return []
