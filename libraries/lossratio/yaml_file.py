"""Reads YAML files into pydantic models, with errors that name the file, the line and the field."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lossratio.errors import LossRatioError

ModelT = TypeVar("ModelT", bound=BaseModel)
Location = tuple[str | int, ...]
Problem = tuple[Location, str]
"""Where in the file (keys and indices), and what is wrong there."""


def load_yaml_file(
    path: str | Path,
    model: type[ModelT],
    error: type[LossRatioError],
    check: Callable[[ModelT], Iterable[Problem]] = lambda loaded: (),
    convert: Callable[[dict[str, Any], Path], dict[str, Any]] = lambda data, path: data,
) -> ModelT:
    """Reads a YAML file and checks it against a model.

    Args:
        path: The file.
        model: The pydantic model of the whole file.
        error: What to raise.
        check: Finds what is wrong with a file whose fields are right one by one.
        convert: Turns what another format holds into what the model has; what is in both keeps its place.

    Raises:
        LossRatioError: Of the given class, with one line per problem: file, line, field, what is wrong.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"Cannot read {path}: {getattr(cause, 'strerror', None) or cause}.") from cause
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as cause:
        raise error(_broken_yaml(path, cause)) from cause
    lines = {} if node is None else dict(_lines(node))
    problems = [] if node is None else list(_duplicates(node))
    if not isinstance(data, dict):
        problems.append(((), "the file must hold a mapping (field: value), and holds none"))
    if not problems:
        try:
            loaded = model.model_validate(convert(data, path))
        except ValidationError as cause:
            problems = [(item["loc"], _message(item)) for item in cause.errors()]
        else:
            problems = list(check(loaded))
            if not problems:
                return loaded
    raise error("\n".join(_describe(path, lines, location, text) for location, text in problems))


def describe_problem(path: str | Path, location: Location, text: str) -> str:
    """Says what is wrong with a file that was read before, as `load_yaml_file` does: with file, line and field."""
    path = Path(path)
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        # It was there and right before; what is wrong with it is still worth saying.
        node = None
    return _describe(path, {} if node is None else dict(_lines(node)), location, text)


def _describe(path: Path, lines: dict[Location, int], location: Location, text: str) -> str:
    known = location
    while known and known not in lines:
        known = known[:-1]
    field = ".".join(str(part) for part in location)
    return f"{path}:{lines.get(known, 1)}: {field + ': ' if field else ''}{text}"


def _message(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown field"
    message = str(item["msg"]).removeprefix("Value error, ")
    shown = item["input"]
    given = "" if isinstance(shown, (dict, list)) or item["type"] in ("missing", "value_error") else f", not {shown!r}"
    return message[0].lower() + message[1:] + given


def _broken_yaml(path: Path, cause: yaml.YAMLError) -> str:
    mark = getattr(cause, "problem_mark", None)
    line = 1 if mark is None else mark.line + 1
    return f"{path}:{line}: not YAML: {getattr(cause, 'problem', None) or cause}"


def _lines(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, int]]:
    yield location, node.start_mark.line + 1
    for key, mark, value in _children(node):
        yield (*location, key), mark.start_mark.line + 1
        for place, line in _lines(value, (*location, key)):
            if place != (*location, key):
                yield place, line


def _duplicates(node: yaml.Node, location: Location = ()) -> Iterator[tuple[Location, str]]:
    seen: set[Hashable] = set()
    for key, mark, value in _children(node):
        if key in seen:
            line = mark.start_mark.line + 1
            yield (*location, key), f"the name {key!r} is given twice (again in line {line})"
        seen.add(key)
        yield from _duplicates(value, (*location, key))


def _children(node: yaml.Node) -> Sequence[tuple[str | int, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), key, value) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [(index, value, value) for index, value in enumerate(node.value)]
    return []
