"""The device that a series of results belongs to: its kind, and the options that count.

A series belongs to one test and one device. An option counts unless it is marked as `Role.TESTED`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from lossratio.values import Record

GIVEN = "given"
"""The text in `Device.options` that replaces the value of an option that names what is tested."""
_BY_OTHERS = "set up by others"
_BETWEEN = ", "
_NOTHING = "none"


class Role(Enum):
    """What an option of a device is for; written at the option: ``build: Annotated[Path | None, Role.TESTED] = None``.

    An option without a role counts: if its value differs from its default, results form a separate series.
    """

    TESTED = "tested"
    """The option names what is tested each night, such as a build, its path, a command or a version. Its value changes
    from night to night, and all nights are one series. If the option has no default, the only thing that counts is
    whether the option is given."""


class Device(Record):
    """The device that a series of results belongs to."""

    kind: str
    """Its kind; empty: others set it up."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Its options that count and differ from their defaults."""


def in_words(device: Device, facts: Mapping[str, JsonValue]) -> str:
    """A device and facts about its testbed, in words that differ whenever the device or the facts differ."""
    named = (f"{name}={_plain(value)}" for name, value in {**device.options, **facts}.items())
    return _BETWEEN.join((device.kind or _BY_OTHERS, *named))


def options_that_count(options: BaseModel) -> dict[str, JsonValue]:
    """The options that distinguish series, sorted by name, in one spelling: ``50kpps`` is 50000."""
    counted: dict[str, JsonValue] = {}
    for name, field in sorted(type(options).model_fields.items()):
        value = _spelled(options, name)
        if _is_default(options, name, field, value):
            continue
        if Role.TESTED not in field.metadata:
            counted[name] = value
        elif field.get_default(call_default_factory=True) is None:
            counted[name] = GIVEN
    return counted


def _is_default(options: BaseModel, name: str, field: FieldInfo, value: JsonValue) -> bool:
    if field.is_required():
        return False
    default = field.get_default(call_default_factory=True)
    if value == _spelled(options.model_copy(update={name: default}), name):
        return True
    # A class may state defaults as users write them, e.g. ``"5 s"``.
    annotated: Any = Annotated[field.annotation, field]
    try:
        default = TypeAdapter(annotated).validate_python(default)
    except ValidationError:
        return False
    return value == _spelled(options.model_copy(update={name: default}), name)


def _spelled(options: BaseModel, name: str) -> JsonValue:
    """An option's value as JSON data, which is the same for equal values."""
    try:
        value: Any = options.model_dump(mode="json", include={name}, warnings=False).get(name)
    except PydanticSerializationError:
        # A type that another package defines.
        return str(getattr(options, name))
    if isinstance(getattr(options, name), set | frozenset):
        return _with_whole_numbers(sorted(value, key=str))
    return _with_whole_numbers(value)


def _with_whole_numbers(value: Any) -> JsonValue:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(value[name]) for name in sorted(value)}
    return value  # type: ignore[no-any-return]


def _plain(value: JsonValue) -> str:
    """A value in a few characters; words without spaces have no quotes."""
    if isinstance(value, str) and value and not set(value) & set(' ,;="'):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def what_differs(before: str, after: str) -> str:
    """The difference between the devices of two series, e.g. ``police 50000 -> 60000``; empty: none.

    Args:
        before: A device in words.
        after: Another device in words.
    """
    old, new = (_parts_of(words) for words in (before, after))
    changed = (name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name))
    return _BETWEEN.join(
        f"{name} {old.get(name, _NOTHING)} -> {new.get(name, _NOTHING)}".strip() for name in changed
    )


def _parts_of(words: str) -> dict[str, str]:
    """The values of a device in words, by their names; the kind has no name."""
    parts = (part.rpartition("=") for part in words.split(_BETWEEN))
    return {name: value for name, _, value in parts}
