"""Programs of ours on a node: what comes over the wire runs there, and leaves no file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
from waiting import PATIENCE

import lossratio
from lossratio.errors import NodeError
from lossratio.nodes import NodeProgram, pack_program, program as program_module

MAIN = """
import os, sys
from .words import greeting

def main():
    line = b""
    while not line.endswith(b"\\n"):
        line += os.read(0, 1)
    print(greeting, line.decode().strip(), __package__, sys.path.count(""), flush=True)
    sys.exit(3 if line == b"end\\n" else 0)
"""
PROGRAM = NodeProgram(
    "lossratio-test",
    "test_program.main",
    {"test_program": "", "test_program.words": "greeting = 'hello'", "test_program.main": MAIN},
)


def test_a_program_runs_from_memory_and_reads_its_own_input_only(session):
    process = PROGRAM.start(session.start, sys.executable)
    process.write_line("world")
    assert process.read_line(PATIENCE) == "hello world test_program 0"
    assert process.close() == 0


def test_a_program_that_ends_at_once_says_why_when_it_is_asked(session):
    process = NodeProgram("lossratio-test", "test_program.main", {}).start(session.start, "/no/such/python")
    with pytest.raises(NodeError, match="/no/such/python"):
        process.read_line(PATIENCE)


def test_an_old_python_is_refused_with_the_name_of_the_program():
    start = "import sys; sys.version_info = (3, 7); exec(sys.argv.pop(1))"
    command = (sys.executable, "-c", start, program_module._START, "lossratio-test", "main", "1")
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert refused.stderr.startswith("lossratio-test needs Python 3.8 or later, and this is Python 3.")


@pytest.mark.whole
@pytest.mark.parametrize("room", ["bpf", "dut/xdp/device", "agent"])
def test_what_runs_on_a_node_has_no_annotation_that_an_old_python_cannot_evaluate(room):
    files = list((Path(lossratio.__file__).parent / room).rglob("*.py"))
    assert files
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        if any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body):
            continue
        found = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
        parts = [part for annotation in found if annotation is not None for part in ast.walk(annotation)]
        assert not [part for part in parts if isinstance(part, ast.BinOp)], file
        named = [part.value for part in parts if isinstance(part, ast.Subscript)]
        names = {getattr(name, "id", None) for name in named}
        assert not {"dict", "frozenset", "list", "set", "tuple", "type"}.intersection(names), file


def test_an_error_names_the_program_and_the_line_in_it(session):
    sources = {"test_program": "", "test_program.main": "def main():\n    raise RuntimeError('no luck')\n"}
    process = NodeProgram("lossratio-test", "test_program.main", sources).start(session.start, sys.executable)
    where = r"-c .# lossratio-test\.\.\.. lossratio-test .* \"test_program.main.py\", line 2, .*no luck"
    with pytest.raises(NodeError, match=where):
        process.read_line(PATIENCE)


SAYS_WHAT_RUNS = "def main():\n    print({!r}, main.__code__.co_filename)\n"


@pytest.mark.parametrize(("made_by", "runs"), [("this Python", "code"), ("another Python", "source")])
def test_a_node_with_the_same_python_runs_the_code_and_any_other_the_source(session, monkeypatch, made_by, runs):
    if made_by == "another Python":
        monkeypatch.setattr(program_module, "MAGIC_NUMBER", b"\0\0\r\n")
    sources = {"test_program": "", "test_program.main": SAYS_WHAT_RUNS.format("source")}
    code = compile(SAYS_WHAT_RUNS.format("code"), "test_program.main.py", "exec")
    program = NodeProgram("lossratio-test", "test_program.main", sources, {"test_program.main": code})
    assert program.start(session.start, sys.executable).read_line(PATIENCE) == f"{runs} test_program.main.py"


def file_names(code):
    """The file names that a module's code and the functions in it have."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {code.co_filename}.union(*map(file_names, inner))


@pytest.mark.whole
def test_code_that_goes_with_a_program_is_that_of_its_sources(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    program = pack_program("agent", "lossratio-code", "server", rooms=("bpf",), seldom=("trex",))
    modules = {name for name in program.sources if not name.endswith(".o") and ".trex" not in name}
    assert program.code.keys() == modules - {"lossratio"}

    for name, code in program.code.items():
        compiled = compile(program.sources[name], f"{name}.py", "exec", dont_inherit=True)
        assert (code == compiled, file_names(code)) == (True, {f"{name}.py"}), name


def test_no_code_goes_with_a_program_where_python_keeps_none(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert pack_program("testbed/reservation/keeper", "lossratio-no-code", "main").code == {}


def test_a_room_that_goes_with_a_program_has_its_own_name_there(session):
    packed = pack_program("testbed/reservation/keeper", "lossratio-test", "main", rooms=("bpf",)).sources
    main = "def main():\n    import lossratio.bpf\n    print(lossratio.bpf.ObjectFile.__module__, lossratio.__doc__)\n"
    rooms = {name: source for name, source in packed.items() if name.startswith("lossratio.") or name == "lossratio"}
    program = NodeProgram(
        "lossratio-test", "test_program.main", {**rooms, "test_program": "", "test_program.main": main}
    )
    assert program.start(session.start, sys.executable).read_line(PATIENCE) == "lossratio.bpf.object None"


@pytest.mark.whole
@pytest.mark.parametrize("folder", ["agent", "testbed/reservation/keeper"])
def test_programs_are_packed_whole(folder):
    sources = pack_program(folder, "lossratio-test", "main").sources
    assert {name.partition(".")[0] for name in sources} == {"lossratio_test"}
    modules = {name: source for name, source in sources.items() if not name.endswith(".o")}
    for name, source in {**modules, "the start": program_module._START}.items():
        ast.parse(source, name, feature_version=(3, 8))
