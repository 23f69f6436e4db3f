"""Says in plain English what is wrong with a value that pydantic refused. Also defines texts of a certain form."""

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import core_schema

from lossratio.errors import LossRatioError
from lossratio.values.checked_arguments import shortened, shown_value
from lossratio.values.names import did_you_mean

ClassT = TypeVar("ClassT", bound=type)

_LONGEST_MESSAGE = 1000

# Table: what the value of a field must be, by the kind of pydantic's error.
_MUST_BE = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "bytes_type": "must be bytes",
    "date_from_datetime_inexact": "must be a day, such as 2026-08-01",
    "date_from_datetime_parsing": "must be a day, such as 2026-08-01",
    "date_parsing": "must be a day, such as 2026-08-01",
    "date_type": "must be a day, such as 2026-08-01",
    "datetime_from_date_parsing": "must be a time, such as 2026-08-01T22:00:00Z",
    "datetime_parsing": "must be a time, such as 2026-08-01T22:00:00Z",
    "datetime_type": "must be a time, such as 2026-08-01T22:00:00Z",
    "dataclass_type": "must hold fields, as in {name: value}",
    "dict_type": "must hold fields, as in {name: value}",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "int_type": "must be a whole number",
    "invalid-json-value": "must be a number, a text, a list or fields",
    "ip_any_address": "must be an IP address, such as 10.1.0.2",
    "ip_any_interface": "must be an IP address with its prefix length, such as 10.1.0.2/30",
    "ip_any_network": "must be an IP network without host bits, such as 10.1.0.0/24",
    "ip_v4_address": "must be an IP address, such as 10.1.0.2 or 2001:db8::2",
    "ip_v6_address": "must be an IP address, such as 10.1.0.2 or 2001:db8::2",
    "ip_v4_interface": "must be an IP address with its prefix length, such as 10.1.0.2/30",
    "ip_v6_interface": "must be an IP address with its prefix length, such as 10.1.0.2/30",
    "ip_v4_network": "must be an IP network without host bits, such as 10.1.0.0/24",
    "ip_v6_network": "must be an IP network without host bits, such as 10.1.0.0/24",
    "list_type": "must be a list, as in [a, b]",
    "mapping_type": "must hold fields, as in {name: value}",
    "model_attributes_type": "must hold fields, as in {name: value}",
    "model_type": "must hold fields, as in {name: value}",
    "path_type": "must be the path of a file",
    "string_type": "must be text",
    "tuple_type": "must be a list, as in [a, b]",
}
_TOO_MANY = "unexpected_positional_argument"
_FIELD = re.compile(r"(?!int$|str$|float$|bool$|tuple$|list$)[a-z_][a-z0-9_]*")
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
"""The words for a bound, by the kind of error: the bound's name in pydantic's context, and the words before it."""


@dataclass(frozen=True)
class Like:
    """A text of a certain form, whose errors say in words what it must be. The schema has the pattern."""

    pattern: str
    """The regular expression that the text matches."""
    words: str
    """A description of such texts, in words that follow ``must be``, with an example."""
    most: int | None = None
    """The largest number of characters; None: the pattern sets it."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        described = {**handler(schema), "pattern": self.pattern}
        if self.most is not None:
            described["maxLength"] = self.most
        return described

    def _checked(self, text: str) -> str:
        if self.most is not None and len(text) > self.most:
            raise ValueError(f"must have at most {self.most} characters, but has {len(text)}")
        if not re.search(self.pattern, text) or text.endswith("\n"):
            raise ValueError(f"must be {self.words}, not {shown_value(text)}")
        return text


def in_words(wrong: Mapping[str, Any]) -> str:
    """What is wrong with a value, in words that follow the name of its field.

    Args:
        wrong: One error of pydantic.
    """
    kind = wrong["type"]
    value = wrong["input"]
    if kind == "missing":
        return "this field is required"
    if kind == "extra_forbidden":
        return "unknown field"
    if kind == "invalid_key":
        return f"the name of a field must be a text, not {shown_value(value)}. Within {{ }}, a comma separates fields"
    if kind in ("value_error", "assertion_error"):
        return _beginning_small(_naming(value, _own_message(wrong)))
    if kind in ("too_short", "string_too_short"):
        return _too_short(wrong)
    if kind in ("too_long", "string_too_long"):
        most = wrong["ctx"]["max_length"]
        what = "characters" if kind == "string_too_long" else "entries"
        return f"must have at most {most} {what}, but has {len(value)}"

    said = f"{_requirement(wrong)}, not {shown_value(value)}"
    if kind in ("float_parsing", "int_parsing") and isinstance(value, str):
        said += _as_a_number(value)
    # The error for a choice among names, in an enumeration or a union, lists the names.
    names = re.findall(r"'([^']+)'", str(wrong.get("ctx", {}).get("expected", "")))
    return said + ("." + meant if (meant := did_you_mean(str(value), names)) else "")


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong in data from a file, with its place, e.g. ``tests.0.name: must be text, not 1``."""
    first, *_ = error.errors()
    where = ".".join(map(str, first["loc"]))
    if not where:
        return in_words(first)
    return f"{where}: {in_words(first)}"


def refused_in_words(error: type[LossRatioError]) -> Callable[[ClassT], ClassT]:
    """Makes the constructor of a class of pydantic say in words what is wrong with its arguments.

    Reading data, such as a file, does not call the constructor, and still raises a ValidationError.

    Args:
        error: The class of the error. The message names the class and each wrong argument.
    """

    def mark(kind: ClassT) -> ClassT:
        construct = kind.__init__  # type: ignore[misc]

        @wraps(construct)
        def __init__(self: object, *given: Any, **named: Any) -> None:  # noqa: N807 (it is one)
            try:
                construct(self, *given, **named)
            except ValidationError as cause:
                # Each way to read an argument has an error of its own; the first one is enough.
                first = {
                    wrong["loc"][:1] if wrong["type"] != _TOO_MANY else (): wrong
                    for wrong in reversed(cause.errors())
                }
                problems = [_problem_of_argument(kind, wrong) for wrong in first.values()]
                said = "; ".join(reversed(problems))
                raise error(f"{kind.__name__}: {said}{'' if said[-1] in '.?' else '.'}") from None

        # Pydantic has already asked whether the class has a constructor of its own.
        kind.__init__ = __init__  # type: ignore[misc]
        return kind

    return mark


def _problem_of_argument(kind: type, wrong: Mapping[str, Any]) -> str:
    names = [*inspect.signature(kind).parameters]
    first, *inner = wrong["loc"] or ("",)
    if wrong["type"] == _TOO_MANY:
        return f"there are too many arguments. The arguments are {', '.join(names)}"
    # An argument that was given without its name has its position here.
    name = names[first] if isinstance(first, int) else first
    if wrong["type"] in ("unexpected_keyword_argument", "extra_forbidden") and not inner:
        meant = did_you_mean(name, names) or f" The arguments are {', '.join(names)}"
        return f"there is no argument {name!r}.{meant}"
    if wrong["type"] in ("missing", "missing_argument") and not inner:
        return f"{name} is missing"

    # Pydantic also names the types that it tried, which no user wrote.
    fields = [str(part) for part in inner if isinstance(part, int) or _FIELD.fullmatch(part)]
    where = ".".join([name, *fields])
    return f"{where}: {in_words(wrong)}" if where else in_words(wrong)


def _requirement(wrong: Mapping[str, Any]) -> str:
    """What the value must be."""
    kind = wrong["type"]
    context = wrong.get("ctx", {})
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        return f"must be {words} " + (f"{bound:,}" if isinstance(bound, int) else f"{bound:g}")
    if kind in _MUST_BE:
        return _MUST_BE[kind]
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}"
    if kind == "is_instance_of":
        return f"must be of the type {context['class']}"
    message = _own_message(wrong)
    return re.sub(r"^(input|string|value) should ", "must ", _beginning_small(message))


def _too_short(wrong: Mapping[str, Any]) -> str:
    least = wrong["ctx"].get("min_length", 1)
    if least == 1:
        return "must not be empty"
    return f"must have at least {least} entries, but has {len(wrong['input'])}"


def _naming(value: Any, message: str) -> str:
    """A message that begins with a value, as files show the value instead of Python."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return message
    shown = "an empty value" if value is None else shown_value(value)
    return shown + message.removeprefix(repr(value)) if message.startswith(repr(value)) else message


def _as_a_number(text: str) -> str:
    """How to write a text as a number; empty if the text does not resemble a number."""
    number = re.fullmatch(r"\s*(-?[0-9]*\.?[0-9]+)\s*%\s*", text)
    if number:
        return f": write a share as a number, {float(number[1]) / 100:g}"
    if re.fullmatch(r"\s*-?[0-9]+(,[0-9]+)+\s*", text):
        return ": write numbers with a point for fractions and without commas"
    with suppress(ValueError):
        return f": write {int(text, base=0)}"
    return ""


def _own_message(wrong: Mapping[str, Any]) -> str:
    """The message of a validator of our own, or of pydantic."""
    text = re.sub(r"^(Value|Assertion) error, ", "", str(wrong["msg"]))
    return shortened(text.rstrip("."), _LONGEST_MESSAGE)


def _beginning_small(text: str) -> str:
    # A name or an abbreviation, such as TRex, keeps its capital letters.
    if text[1:2].isupper():
        return text
    return text[:1].lower() + text[1:]
