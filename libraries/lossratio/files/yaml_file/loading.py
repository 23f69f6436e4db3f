"""Reads YAML files into pydantic models, with errors that name the file, the line and the field."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from yaml.reader import ReaderError

from lossratio.errors import LossRatioError
from lossratio.files.input_file import (
    NO_TEXT,
    PLAIN_TEXT,
    kind_of_contents,
    read_input_file,
    shown_name,
)
from lossratio.files.yaml_file.loader import BoundedLoader
from lossratio.files.yaml_file.nodes import Location, Problem, duplicates, line_numbers
from lossratio.files.yaml_file.words import plain_words
from lossratio.values import counted, did_you_mean, in_words, resolved, shortened

ModelT = TypeVar("ModelT", bound=BaseModel)
_MOST_BYTES = 1 << 21
"""Maximum size of a file."""
_MOST_PROBLEMS = 20
_LONGEST_ABOUT = 200
_OF_PYDANTIC = re.compile(r".*\[|function-|IPv[46](Address|Interface|Network)$")
"""Parts of a place that pydantic adds: names of validators, of keys, and of the kinds in a union of addresses."""
_TEXT_IN_UNION = "str"
"""The last part of a place that pydantic adds if a value might be a text or something else."""
_SUFFIXES = (".yaml", ".yml", ".json")
"""Endings of files that were meant to be YAML, so that the line of a mistake helps."""
_NO_BREAK_SPACE = "\u00a0"


def load_yaml_file(
    path: str | Path,
    model: type[ModelT],
    error: type[LossRatioError],
    check: Callable[[ModelT], Iterable[Problem]] = lambda loaded: (),
    *,
    convert: Callable[[dict[str, Any], Path], dict[str, Any]] = lambda data, path: data,
) -> ModelT:
    """Reads a YAML file and checks it against a model.

    Args:
        path: The file.
        model: What the file describes.
        error: The class of errors.
        check: Yields the problems of a file whose single fields are valid.
        convert: Turns the data of another format into the model's fields. A field that both formats have keeps its
            place.

    Raises:
        LossRatioError: Of the class `error`, if the file cannot be read, is not YAML, or does not fit the model. The
            message has one line per problem: file, line, field, problem.
    """
    path = Path(path)
    loader, node = _compose(path, error)
    _check_format(path, model, node, error)
    # This comes before the data are made, because making them replaces merge keys (<<) in the nodes by their targets.
    problems = [] if node is None else list(duplicates(node))
    lines = line_numbers(node) if problems else {}

    try:
        data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as cause:
        raise error(_broken_yaml(path, cause)) from cause

    if not isinstance(data, dict):
        problems.append(((), _no_fields(path)))
    elif not problems:
        try:
            loaded = model.model_validate(convert(data, path))
        except ValidationError as cause:
            places = [_place(item["loc"]) for item in cause.errors()]
            # If only its wrong items are missing, a list is not too short; and it need not be a text.
            found = [
                item
                for item in cause.errors()
                if item["type"] not in ("too_short", "string_type")
                or not _has_more(_place(item["loc"]), places)
            ]
            # A message includes a search for the field that was meant, so only the problems to show get a message.
            problems = [
                (_place(item["loc"]), _message(item, model)) for item in found[:_MOST_PROBLEMS]
            ]
            # Each kind in a union reports a problem with the same value.
            problems = list(dict.fromkeys(problems))
            problems += [(item["loc"], "") for item in found[_MOST_PROBLEMS:]]
        else:
            problems = list(check(loaded))
            if not problems:
                return loaded

    lines |= line_numbers(node)
    shown = [_describe(path, lines, location, text) for location, text in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(shown)
    if more:
        shown.append(f"{path}: and {counted(more, 'more problem')}")
    raise error("\n".join(shown))


def _check_format(
    path: Path, model: type[BaseModel], node: yaml.Node | None, error: type[LossRatioError]
) -> None:
    """Refuses a file that says that it is of another format, whose fields would all be unknown."""
    if not isinstance(node, yaml.MappingNode):
        return
    known = model.model_fields.get("format")
    wanted = () if known is None else get_args(known.annotation)
    given = [value for key, value in node.value if key.value == "format"]
    if not given or not isinstance(given[0], yaml.ScalarNode) or given[0].value in wanted:
        return

    found = given[0].value
    if found.startswith("lossratio-"):
        line = given[0].start_mark.line + 1
        needed = f"the format {wanted[0]!r}" if wanted else "another kind"
        raise error(
            f"{path}:{line}: format: this file has the format {shortened(found)!r}, but a file of {needed} is "
            "needed here. Is it the right file?"
        )


def _no_fields(path: Path) -> str:
    """The problem of a file without fields."""
    kind = kind_of_contents(read_input_file(path, LossRatioError, _MOST_BYTES))
    if kind in ("JSON", PLAIN_TEXT):
        kind = "a list or a text"
    return f"this file must hold fields (name: value), but it is {kind}. Is it the right file?"


def _has_more(place: Location, places: Sequence[Location]) -> bool:
    """Whether any of the places is inside the given place."""
    return any(len(each) > len(place) and each[: len(place)] == place for each in places)


def describe_problem(path: str | Path, location: Location, text: str) -> str:
    """Describes a problem of a file that was read before, as `load_yaml_file` does: with file, line and field."""
    path = Path(path)
    try:
        _, node = _compose(path, LossRatioError)
    except LossRatioError:
        # The file could be read before. The problem is reported without its line.
        node = None
    return _describe(path, line_numbers(node), location, text)


def _compose(path: Path, error: type[LossRatioError]) -> tuple[BoundedLoader, yaml.Node | None]:
    """Reads the structure of a file, without its values."""
    data = read_input_file(path, error, _MOST_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        raise error(f"{path}:{line}: not UTF-8: {_encoding(data, cause.start)}") from cause
    try:
        loader = BoundedLoader(text)
        return loader, loader.get_single_node()
    except yaml.YAMLError as cause:
        raise error(_broken_yaml(path, cause)) from cause
    except (ValueError, OverflowError) as cause:
        # PyYAML's scanner does not check the numbers of escapes (\UFFFFFFFF) and directives.
        raise error(f"{path}:{loader.line + 1}: not YAML: {shortened(str(cause))}") from cause


def _encoding(data: bytes, wrong: int) -> str:
    """What a file is that is not in UTF-8, and the way out."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "this file is in UTF-16; save it as UTF-8"
    kind = kind_of_contents(data)
    if kind in NO_TEXT:
        return f"this file is {kind}. Is it the right file?"
    return f"the byte 0x{data[wrong]:02X} is not part of a character; save the file as UTF-8"


def _describe(path: Path, lines: dict[Location, int], location: Location, text: str) -> str:
    known = location
    while known and known not in lines:
        known = known[:-1]
    field = ".".join(shortened(shown_name(part)) for part in location)
    return f"{path}:{lines.get(known, 1)}: {field + ': ' if field else ''}{text}"


def _place(location: Location) -> Location:
    """A place without the names that only pydantic knows."""
    if location and location[-1] == _TEXT_IN_UNION:
        location = location[:-1]
    return tuple(part for part in location if isinstance(part, int) or not _OF_PYDANTIC.match(part))


def _message(item: Any, model: type[BaseModel]) -> str:
    value = resolved(item["input"])
    if type(value) in (int, float):
        item = {**item, "input": value}
    message = in_words(item)
    if item["type"] not in ("extra_forbidden", "missing"):
        return message

    fields = _fields(model, item["loc"])
    name = str(item["loc"][-1])
    if item["type"] == "extra_forbidden" and item["input"] is None:
        message += " without a value (a field is 'name: value'; in { }, a comma ends it)"
    if item["type"] == "missing":
        about = " ".join(fields.get(name, "").replace("``", "'").split())
        return f"{message}. {shortened(about, _LONGEST_ABOUT)}".removesuffix(". ")
    if meant := did_you_mean(name, fields):
        return f"{message}.{meant}"
    if fields:
        return f"{message}. The fields here are {', '.join(sorted(fields))}."
    return message


def _fields(model: type[BaseModel], location: Location) -> dict[str, str]:
    """The fields that a mapping may have, each with its description. The location names one of these fields."""
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
        # The name of a kind in a union does not appear in the file.
        here = list(whole([*named, *others])) or here

    fields: dict[str, str] = {}
    for node in here:
        for name, field in node.get("properties", {}).items():
            fields.setdefault(name, field.get("description", ""))
    return fields


def _broken_yaml(path: Path, cause: yaml.YAMLError) -> str:
    data = read_input_file(path, LossRatioError, _MOST_BYTES)
    kind = kind_of_contents(data)
    if kind.startswith("a suite"):
        return f"{path}:1: not YAML: this is a suite of Robot Framework. Is it the right file?"
    is_ours = kind.startswith("of the format ") and not data.lstrip().startswith(b"{")
    if path.suffix not in _SUFFIXES and not is_ours:
        return f"{path}:1: not YAML: it is {kind}. Is it the right file?"

    text = data.decode("utf-8")
    if isinstance(cause, ReaderError):
        line = text.count("\n", 0, text.find(chr(cause.character))) + 1
        return f"{path}:{line}: not YAML: the character U+{cause.character:04X} is not allowed here"

    mark = getattr(cause, "problem_mark", None)
    line = 1 if mark is None else mark.line + 1
    spaces = [number for number, one in enumerate(text.splitlines(), 1) if _NO_BREAK_SPACE in one]
    if spaces and spaces[0] <= line:
        return (
            f"{path}:{spaces[0]}: not YAML: this line has no-break spaces (U+00A0), as web pages have; replace "
            "them with spaces"
        )
    return f"{path}:{line}: not YAML: {shortened(plain_words(cause), _LONGEST_ABOUT)}"
