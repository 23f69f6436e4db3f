"""Writes the JSON Schemas of lossratio's files, beside this program or into the directory that it is given.

The tables of generators' settings in the reference are written, too.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from lossratio.measurements.throughput.goals import GoalFile
from lossratio.results.kinds import built_in_results
from lossratio.runs.job import JobFile
from lossratio.topology import GeneratorSettings, RealGenerator, Topology, generator_settings
from lossratio.traffic.profile import ProfileFile
from lossratio.values.records import with_docstrings
from lossratio_otg.generator import OtgTester

_DIGEST = {
    "description": "The first 32 digits of the SHA-256 of all bytes of the file before this last field.",
    "pattern": "^[0-9a-f]{32}$",
    "title": "Digest",
    "type": "string",
}
_PAGE = Path("reference", "topology.md")
_MODELS: tuple[type[GeneratorSettings], ...] = (
    *(GeneratorSettings, RealGenerator),
    *generator_settings().values(),
    OtgTester,
)
"""The page with tables, and the models whose fields are their rows."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def main() -> None:
    """Writes all schemas."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    schemas = {
        "result": result_schema(),
        "goals": file_schema("A lossratio file of search goals", GoalFile),
        "job": file_schema("A lossratio job", JobFile),
        "topology": file_schema("A lossratio topology", Topology),
        "traffic-profile": file_schema("A lossratio traffic profile", ProfileFile),
    }
    for name, text in schemas.items():
        (directory / f"{name}.schema.json").write_text(text, encoding="utf-8")
    if len(sys.argv) == 1:
        reference = directory.parent / _PAGE
        reference.write_text(page(reference.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """The page with its tables, with the fields as models declare them now."""
    for model in _MODELS:
        begin = f"<!-- {model.__name__}, by docs/schema/export.py -->\n"
        before, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"{_PAGE} has no table of {model.__name__}. Add: {begin.strip()} and <!-- end -->")
        text = before + begin + "\n".join(settings_table(model)) + "\n" + rest[rest.index("<!-- end -->") :]
    return text


def settings_table(model: type[GeneratorSettings]) -> list[str]:
    """The rows of a table of a generator's settings, without those that it shares with others that have a table.

    These are the settings of all generators, and those of its bases that it has not changed.
    """
    shared = {
        name
        for base in _MODELS
        if base is not model and issubclass(model, base)
        for name in base.model_fields
        if base is GeneratorSettings or name not in vars(model).get("__annotations__", {})
    }
    described = with_docstrings({"properties": {name: {} for name in model.model_fields}}, model)["properties"]
    rows = ["| field | default | meaning |", "| --- | --- | --- |"]
    for name, field in model.model_fields.items():
        if name != "kind" and name not in shared:
            default = "required" if field.is_required() else ""
            if field.default not in (None, ()) and not field.is_required():
                default = f"`{json.dumps(field.default)}`"
            rows.append(f"| `{name}` | {default} | {_in_one_line(described[name]['description'])} |")
    return rows


def _in_one_line(description: str) -> str:
    return re.sub("`+", "`", " ".join(description.split())).replace("|", "\\|")


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


if __name__ == "__main__":
    main()
