"""JSON Schemas of lossratio's files, for editors and for readers in other languages."""

from __future__ import annotations

import json
from typing import Annotated, Any, Union

from pydantic import BaseModel, Field, TypeAdapter

from lossratio.results.kinds import built_in_kinds
from lossratio.results.model import TestResult

_DIGEST = {
    "description": "The first 32 digits of the SHA-256 of all bytes of the file before this field; it is the last one, "
    "and files of format lossratio-result/1 have none.",
    "pattern": "^[0-9a-f]{32}$",
    "title": "Digest",
    "type": "string",
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def built_in_results() -> TypeAdapter[TestResult]:
    """Reads, checks and describes results of the built-in kinds."""
    classes = tuple(kind.result for kind in built_in_kinds())
    any_kind: Any = Annotated[Union[classes], Field(discriminator="kind")]  # noqa: UP007
    return TypeAdapter(any_kind)


def result_schema() -> str:
    """The schema of results of the built-in kinds: every field is required, and is null if it has no value."""
    schema = built_in_results().json_schema(mode="serialization")
    for variant in schema["oneOf"]:
        schema["$defs"][variant["$ref"].rpartition("/")[2]]["properties"]["digest"] = _DIGEST
    return _document("A lossratio result", schema)


def file_schema(title: str, model: type[BaseModel]) -> str:
    """The schema of a kind of files that users write, such as topologies and traffic profiles.

    Args:
        title: Title of the schema.
        model: Pydantic model of the whole file.
    """
    return _document(title, TypeAdapter(model).json_schema(mode="validation"))


def _document(title: str, schema: dict[str, Any]) -> str:
    return json.dumps({"$schema": _DIALECT, **schema, "title": title}, indent=1) + "\n"
