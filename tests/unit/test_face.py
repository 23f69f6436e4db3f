"""The face for scripts: `from lossratio import ...`."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import lossratio
from lossratio import keywords

ROOT = Path(__file__).parents[2]


@pytest.mark.whole
def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    _, _, example = lossratio.__doc__.partition("::\n")
    topology = str(ROOT / "topologies" / "simulated.yaml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(textwrap.dedent(example).replace('"local"', repr(topology)), names)  # noqa: S102
    assert names["result"].goals[0].result.regular
    assert lossratio.read_result(tmp_path / "results" / "results" / "mine.my_search.json") == names["result"]


def test_every_name_is_the_one_of_its_room():
    stub = ast.parse(Path(lossratio.__file__).with_suffix(".pyi").read_text())
    rooms = {
        alias.asname: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(rooms) == lossratio.__all__ == dir(lossratio)
    for name, room in rooms.items():
        assert getattr(lossratio, name) is getattr(import_module(f"lossratio.{room}"), name)


def test_a_name_that_the_face_lacks_is_an_error_that_names_it():
    with pytest.raises(AttributeError, match="No lossratio attribute open_the_testbed"):
        lossratio.open_the_testbed  # noqa: B018


def test_the_face_alone_imports_no_library():
    code = "import sys, lossratio; print({'numpy', 'scipy', 'pydantic', 'paramiko'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_an_editor_completes_what_a_result_has_and_not_what_pydantic_has(tmp_path):
    with lossratio.open_testbed("simulated", results=tmp_path) as testbed:
        result = testbed.mrr("64B")
    names = {name for name in dir(result) if not name.startswith("_")}
    assert {"mrr", "max_load", "trials", "plot", "to_frame", "model_dump"} <= names
    assert not {name for name in names if name.startswith("model_")} - {"model_dump", "model_dump_json"}
    assert not names & {"construct", "copy", "dict", "json", "parse_obj", "schema"}


def test_the_face_of_the_keywords_imports_a_name_when_it_is_asked_for():
    code = "import sys, lossratio.keywords as face; print({'numpy', 'paramiko', 'robot'} & sys.modules.keys(), face)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("set()")
    tree = ast.parse(Path(keywords.__file__).read_text())
    named = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module.startswith("lossratio.")
    ]
    modules = {alias.name: node.module.rpartition(".")[2] for node in named for alias in node.names}
    assert modules == keywords._MODULE_OF
    for name in modules:
        assert getattr(keywords, name).__name__ == name
        assert name in dir(keywords)
    with pytest.raises(AttributeError, match="no attribute 'LostRatio'"):
        keywords.LostRatio  # noqa: B018
