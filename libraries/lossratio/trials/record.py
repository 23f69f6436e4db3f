"""What records of trials have in common: strict fields, whose names in JSON are the names in Python.

A record is a frozen dataclass, because a study makes millions of them. The journal and results are their JSON, and a
traffic agent answers with their fields. A field's name ends in its unit, as in all files (`lossratio.values.records`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema, ErrorDetails


RecordT = TypeVar("RecordT")


class Observed:
    """A record. Reading it refuses unknown fields, values of other types, and numbers that JSON does not have."""

    __pydantic_config__: ClassVar[ConfigDict] = {
        "extra": "forbid",
        "allow_inf_nan": False,
        # Written in this way, such a number is refused when it is read back; null would have another meaning.
        "ser_json_inf_nan": "constants",
    }

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        from lossratio.values import with_docstrings

        return with_docstrings(handler.resolve_ref_schema(handler(core)), cls)


class _NotNegative:
    least = 0.0
    """The smallest number; see `lossratio.values.checked_arguments.checked`."""

    # Searches import this module, and need not wait for pydantic.
    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return {**handler(source), "ge": 0}


Frames = Annotated[int, _NotNegative()]
"""A number of frames."""
Seconds = Annotated[float, _NotNegative()]
"""A duration."""
Microseconds = Annotated[float, _NotNegative()]
"""A short time, such as a latency."""


def read_record(kind: type[RecordT], text: bytes | str) -> RecordT:
    """Reads a record from its JSON.

    Raises:
        ValueError: If fields are unknown, missing, or of other types; the message names them.
    """
    from pydantic import ValidationError

    try:
        record: RecordT = _adapter(kind).validate_json(text, strict=True)
        return record
    except ValidationError as error:
        raise ValueError("; ".join(map(_problem, error.errors()))) from None


def _problem(error: ErrorDetails) -> str:
    from lossratio.values import in_words

    name = ".".join(map(str, error["loc"])) or "the record"
    words = {"missing": "missing", "unexpected_keyword_argument": "unknown"}.get(error["type"])
    return f"{name}: {words or in_words(error)}"


def write_record(record: Observed) -> bytes:
    """Writes a record as JSON, without default values. Read it back if its types are not certain."""
    return _adapter(type(record)).dump_json(record, exclude_defaults=True, warnings=False)


def _made_adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(_made_adapter)
