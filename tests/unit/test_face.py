"""The face for scripts: `from lossratio import ...`."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import lossratio
from lossratio import keywords, testbed, topology, traffic
from lossratio.report.history import TrendRequest

ROOT = Path(__file__).parents[2]


def names_in(face):
    """The module of a face that each name is imported from, as the face's stub lists them."""
    stub = ast.parse(Path(face.__file__).with_suffix(".pyi").read_text())
    named = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname: node.module for node in named for alias in node.names}


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
    rooms = names_in(lossratio)
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
    for name in names_in(keywords):
        assert getattr(keywords, name).__name__ == name
        assert name in dir(keywords)
    with pytest.raises(AttributeError, match=r"No lossratio\.keywords attribute LostRatio"):
        keywords.LostRatio  # noqa: B018


@pytest.mark.parametrize("room", [keywords, testbed, topology, traffic], ids=lambda room: room.__name__)
def test_a_room_whose_names_are_imported_on_first_use_has_each_name_of_its_stub(room):
    names = names_in(room)
    assert set(names) <= set(dir(room))
    assert all(hasattr(room, name) for name in names)


# Robot Framework's and the library's own imports: with the history, pages or the simulation, there would be more.
MOST_MODULES = 1_000
NOT_TO_LIST_KEYWORDS = ("report", "simulation", "nodes.holder", "testbed.set_up", "topology.containerlab", "runs")


@pytest.mark.whole
def test_the_library_of_keywords_imports_what_keywords_need_to_be_listed():
    code = "import sys; from lossratio.keywords import LossRatio; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {f"lossratio.{name}" for name in NOT_TO_LIST_KEYWORDS} & set(modules)
    assert "jinja2" not in modules
    assert len(modules) < MOST_MODULES


def test_a_regression_in_a_suite_is_judged_as_by_the_command():
    defaults = inspect.signature(keywords.LossRatio.throughput_should_not_have_regressed).parameters
    asked = [float(str(defaults[name].default)) for name in ("fresh", "least_change")]
    assert asked == [TrendRequest.fresh, 100 * TrendRequest.least_change]
