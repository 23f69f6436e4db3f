"""The parts of result files: records with strict fields, and rates in all their units.

A field's name ends in its unit: ``_fps`` frames per second, ``_bps`` bits per second, ``_s`` seconds, ``_bytes``,
``_frames``, ``_ratio`` (dimensionless, 0 to 1); other numbers are counts of the things in the field's name.
"""

import ast
import inspect
import linecache
import re
import sys
from collections.abc import Iterator
from datetime import timezone
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from pydantic_core import CoreSchema

from lossratio.values.units import l1_bandwidth


class FileModel(BaseModel):
    """A part of a file: immutable, without unknown fields, described in its schema by the docstrings of its fields.

    It has no numbers that JSON does not have.
    """

    # Validators are built when they are needed, because a run needs only a few parts of the files.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return with_docstrings(handler.resolve_ref_schema(handler(core)), cls)


class ForeignPart(BaseModel):
    """A part of another tool's file; fields that do not matter here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Record(FileModel):
    """A part of a result file."""

    def __dir__(self) -> list[str]:
        """The names that an editor or a notebook completes: what was measured, and not pydantic's tools."""
        return sorted(set(super().__dir__()) - _OF_PYDANTIC)


_OF_PYDANTIC = (
    frozenset(dir(BaseModel)) - frozenset(dir(object)) - {"model_dump", "model_dump_json"}
)
"""The names that every pydantic model has, except the two methods that write it."""


def left_out_if_empty(*names: str) -> Any:
    """Leaves empty fields, which few files have, out of the others.

    A class calls it once, with all such fields.
    """

    # With a type of the return value, pydantic's schema would have no fields.
    def written(self: FileModel, serialize: pydantic.SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        fields: dict[str, Any] = serialize(self)
        for name in names:
            if not fields.get(name):
                fields.pop(name, None)
        return fields

    return pydantic.model_serializer(mode="wrap")(written)


def with_docstrings(schema: dict[str, Any], kind: type) -> dict[str, Any]:
    """The schema of a class, with the docstrings of its fields as their descriptions."""
    for field, text in docstrings_of_fields(kind).items():
        schema.get("properties", {}).get(field, {}).setdefault("description", text)
    return schema


def docstrings_of_fields(kind: type) -> dict[str, str]:
    """Describes each field of a class: by its description, or else by its docstring, also from a base class.

    pydantic would read the docstrings while it makes the class, which takes a quarter of the time of importing the
    library.
    """
    stated = {
        name: one.description
        for name, one in getattr(kind, "model_fields", {}).items()
        if one.description
    }
    # pydantic's own class has no fields, and its source takes longer to read than all of ours.
    bases = [base for base in reversed(kind.__mro__) if base not in pydantic.BaseModel.__mro__]
    found: dict[str, str] = {}
    for base in bases:
        found |= _docstrings(base.__module__, base.__name__)
    return found | stated


@cache
def _docstrings(module: str, name: str) -> dict[str, str]:
    """The docstrings of the fields of a class at the top of a module."""
    loaded = sys.modules[module]
    # There are no lines without source, as for `object`. `inspect.getsource` would first look at every loaded module.
    lines = linecache.getlines(getattr(loaded, "__file__", None) or "", vars(loaded))
    # To parse the class alone takes a tenth of the time that the module takes.
    found = re.search(rf"^class {name}\b.*\n(?:[ \t)].*\n|\n)*", "".join(lines), re.MULTILINE)
    try:
        tree = ast.parse(found.group() if found else "")
    except SyntaxError:
        # A string in it has lines that are not indented.
        tree = ast.parse("".join(lines))
    return {
        field: text
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == name
        for field, text in _documented(node.body)
    }


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The fields with a docstring in the body of a class, including fields that it declares only for type checkers."""
    for field, after in pairwise(body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(text))
            ):
                yield name, inspect.cleandoc(text)

    for block in body:
        if isinstance(block, ast.If):
            yield from _documented(block.body)


UtcTime = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(timezone.utc))]
"""A point in time; it is written as RFC 3339 in UTC."""
Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
"""A share of a whole, 0 to 1; not per cent."""
Seconds = Annotated[float, Field(ge=0.0)]
"""A duration."""
FrameCount = Annotated[int, Field(ge=0)]
"""A number of frames."""


class Rate(Record):
    """A frame rate; the three numbers are the same rate."""

    per_interface_fps: float = Field(ge=0.0)
    """Frames per second of each transmitting interface."""
    aggregate_fps: float = Field(ge=0.0)
    """Frames per second of all transmitting interfaces: per interface times the fixed aggregate factor."""
    aggregate_l1_bps: float = Field(ge=0.0)
    """Bits per second on the wire (layer 1: with preamble, start of frame delimiter and interframe gap), aggregate."""


def make_rate(per_interface: float, *, factor: float, frame_size: float) -> Rate:
    """A rate in all its units, from frames per second of each transmitting interface.

    Args:
        per_interface: Frames per second of each transmitting interface.
        factor: Ratio of the aggregate to the rate per interface.
        frame_size: Average bytes of a frame, with the frame check sequence and the bytes that encapsulation adds.
    """
    aggregate = per_interface * factor
    return Rate(
        per_interface_fps=per_interface,
        aggregate_fps=aggregate,
        aggregate_l1_bps=l1_bandwidth(aggregate, frame_size),
    )
