"""Holds the arrows of the design: which room may import which."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "libraries" / "lossratio"

FOUNDATION = {"errors", "units", "input_file", "yaml_file", "addressing", "parameters"}
SEARCH = {"trial", "journal", "journal_lines", "digest", "counters", "integrity", "latency"}
TESTBED = FOUNDATION | SEARCH | {"topology", "ssh"}
BENCH = TESTBED | {"mlrsearch", "plrsearch", "simulation", "dut", "traffic", "testbed", "report", "reservation"}

ALLOWED = {
    "errors": set(),
    "units": {"errors"},
    "addressing": set(),
    "parameters": {"units"},
    "input_file": {"errors"},
    "yaml_file": {"errors", "input_file"},
    "trial": {"errors"},
    "counters": {"errors", "trial"},
    "integrity": {"errors", "trial"},
    "latency": {"trial"},
    "digest": set(),
    "journal_lines": {"errors", "input_file", "trial", "counters", "digest"},
    "journal": {"errors", "input_file", "trial", "counters", "digest", "journal_lines"},
    "mlrsearch": {"errors", "trial"},
    "plrsearch": {"errors", "trial"},
    "baselines": {"errors", "trial", "mlrsearch"},
    "builds": {"errors"},
    "study": {"errors", "units", "trial", "counters", "mlrsearch", "plrsearch", "baselines", "simulation"},
    "replay": {"parameters", "errors", "units", "trial", "journal", "plrsearch"},
    "simulation": {"errors", "units", "trial", "counters", "integrity", "latency"},
    "topology": FOUNDATION,
    "ssh": FOUNDATION | {"topology"},
    "reservation": FOUNDATION | {"topology", "ssh"},
    "traffic": TESTBED,
    "dut": TESTBED,
    "testbed": TESTBED,
    "report": TESTBED | {"mlrsearch", "plrsearch"},
    "object_store": {"errors"},
    "history": FOUNDATION | {"report", "object_store"},
    "archive": FOUNDATION | {"report", "history", "object_store"},
    "bench": BENCH,
    "keywords": BENCH | {"bench", "history"},
    "nightly": BENCH | {"bench", "history", "keywords"},
}
"""Room: the rooms it may import, besides itself. Rooms that are not named (runner, patches, cli) may import all."""


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def sources() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "resources" not in path.parts]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = room(path)
    allowed = ALLOWED.get(here)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "lossratio" or len(parts) == 1 or parts[1].startswith("__"):
            continue
        assert allowed is None or parts[1] in allowed | {here}, f"{here} must not import {name}"


def test_the_agent_needs_nothing_but_the_standard_library_numpy_and_trex():
    for path in (PACKAGE / "traffic" / "agent").rglob("*.py"):
        for name in imports(path):
            assert not name.startswith("lossratio"), f"{path.name} runs on the TG and must not import {name}"


def test_the_keeper_of_reservations_needs_nothing_but_the_standard_library():
    folder = PACKAGE / "reservation" / "keeper"
    for path in folder.glob("*.py"):
        names = {name.split(".")[0] for name in imports(path)}
        assert names <= sys.stdlib_module_names | {each.stem for each in folder.glob("*.py")}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_keeps_state(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Global), f"{path.name}:{node.lineno} changes a module's variable"
