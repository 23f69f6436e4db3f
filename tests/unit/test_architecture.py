"""Holds the house as `docs/architecture.md` shows it: the arrows between rooms, and that rooms have faces."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from syntax_trees import READS_ALL_MODULES, parsed

from lossratio.results.kinds import built_in_kinds

pytestmark = [READS_ALL_MODULES, pytest.mark.whole]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "libraries" / "lossratio"
OTHERS = {name: ROOT / name / "libraries" / f"lossratio_{name}" for name in ("study", "otg")}
"""The folders of the other packages, by name: the laboratory and the server of the Open Traffic Generator."""
ON_NODES = ("agent", "testbed/reservation/keeper", "dut/xdp/device")
"""Folders of programs that are sent to nodes: their modules import each other only, and rooms that go with them."""

WITH_THEM = "lossratio.bpf"
"""The room that goes with programs for nodes."""

BEGIN, END = "<!-- rooms -->", "<!-- end of rooms -->"
MOST_STATEMENTS = 300
"""In one module. Imports and documentation are free."""


def levels() -> list[list[str]]:
    """The rooms of each line of the table."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = text.partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    return [[name.strip(" `") for name in row.split("|")[1].split(",")] for row in rows]


def rooms() -> dict[str, set[str]]:
    """What each room may import besides itself: all rooms below it in the table of `docs/architecture.md`."""
    storeys = levels()
    return {
        name: {lower for level in storeys[number + 1 :] for lower in level}
        for number, level in enumerate(storeys)
        for name in level
    }


@cache
def sources() -> dict[Path, ast.Module]:
    """Every module of the library, parsed once."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if "resources" not in path.parts]
    return {path: parsed(path) for path in paths}


def on_nodes(path: Path) -> bool:
    return any(path.is_relative_to(PACKAGE / folder) for folder in ON_NODES)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imports(tree: ast.Module) -> tuple[tuple[int, str, str | None], ...]:
    """Line, module and name of everything that a module imports; the name is None where it is the module itself."""
    found: list[tuple[int, str, str | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [(node.lineno, node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, None) for alias in node.names]
    return tuple(found)


@cache
def offered(module: str) -> frozenset[str] | None:
    """What a face offers; None: the module is no face."""
    path = PACKAGE.parent.joinpath(*module.split("."), "__init__.py")
    if path not in sources():
        return defined(path.parent.with_suffix(".py"))
    stub = path.with_suffix(".pyi")
    # A face that imports on first use lists its names in a stub.
    face = parsed(stub) if stub.exists() else sources()[path]
    names = [alias for node in ast.walk(face) if isinstance(node, ast.ImportFrom) for alias in node.names]
    exported = [alias for alias in names if alias.asname is not None]
    return frozenset(alias.name for alias in exported or names)


def defined(path: Path) -> frozenset[str] | None:
    """What a kind of measurement offers that is one module: all of its own; None: the module is none."""
    room = PACKAGE / "measurements"
    of_face = {module for _, module, _ in imports(sources()[room / "__init__.py"])}
    if path.parent != room or f"lossratio.measurements.{path.stem}" in of_face or path not in sources():
        return None
    nodes = sources()[path].body
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    names |= {ast.unparse(node.targets[0]) for node in nodes if isinstance(node, ast.Assign)}
    return frozenset(name for name in names if not name.startswith("_"))


def modules_within(room: str) -> dict[str, set[str]]:
    """What each module of a room imports of the same room, imports for types included."""
    paths = {path.relative_to(PACKAGE.parent): tree for path, tree in sources().items()}
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): tree for path, tree in paths.items()}
    own = {name: tree for name, tree in names.items() if f"{name}.".startswith(f"lossratio.{room}.")}
    found: dict[str, set[str]] = {name: set() for name in own}
    for name, tree in own.items():
        for _, module, imported in imports(tree):
            whole = f"{module}.{imported}"
            target = whole if whole in own else module
            if target in own and target != name:
                found[name].add(target)
    return found


def in_a_circle(graph: dict[str, set[str]]) -> set[str]:
    """The modules from which imports lead back to themselves."""
    left = dict(graph)
    while True:
        ends = {name for name, targets in left.items() if not targets & left.keys()}
        imported = set().union(*left.values()) if left else set()
        ends |= left.keys() - imported
        if not ends:
            return set(left)
        left = {name: targets for name, targets in left.items() if name not in ends}


def is_past_a_face(module: str, name: str | None) -> bool:
    """Whether an import takes what the face of a room does not offer."""
    names = offered(module)
    if names is None:
        return module.count(".") > 1
    return name is not None and name not in names


def across() -> Iterator[tuple[str, str, str, str | None]]:
    """Place, own room, module and name of every import of another room's; the name is None for a face as a whole."""
    known = rooms()
    for path, tree in sources().items():
        for line, module, name in imports(tree):
            if (module == "lossratio" and name in known) or (name and offered(f"{module}.{name}") is not None):
                module, name = f"{module}.{name}", None
            parts = module.split(".")
            if parts[0] == "lossratio" and len(parts) > 1 and room(path) in known and parts[1] != room(path):
                yield f"{path.relative_to(PACKAGE)}:{line}", room(path), module, name


def test_the_table_has_all_rooms():
    there = {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()}
    beside = {"resources", "suites", "topologies", "py", "trial", *(name for name in there if name.startswith("__"))}
    assert there - beside == set(rooms())


def test_the_way_of_a_trial_names_modules_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text().partition(END)[2]
    modules = re.findall(r"`([a-z_/]+\.py)`", text)
    assert len(modules) > 8
    assert not [module for module in modules if not (PACKAGE / module).exists() and not (ROOT / module).exists()]


@pytest.mark.smoke
def test_imports_point_one_way():
    allowed = rooms()
    assert not [(place, module) for place, own, module, _ in across() if module.split(".")[1] not in allowed[own]]


def test_no_room_has_a_circle_of_modules():
    within = {room: modules_within(room) for room in rooms()}
    assert any(imported for modules in within.values() for imported in modules.values())
    assert {room: circle for room, modules in within.items() if (circle := in_a_circle(modules))} == {}


def test_a_circle_is_found():
    assert in_a_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {"b", "c"}


def test_rooms_are_entered_through_their_faces():
    past = []
    for place, _, module, name in across():
        if is_past_a_face(module, name):
            past.append(f"{place}: {module} {name}")
    assert not past


@pytest.mark.whole
def test_no_room_imports_another_package():
    rooms_that_do = []
    for path, tree in sources().items():
        modules = {module.split(".")[0] for _, module, _ in imports(tree)}
        if not modules.isdisjoint(folder.name for folder in OTHERS.values()):
            rooms_that_do.append(path)
    assert not rooms_that_do


@pytest.mark.parametrize(("name", "least"), [("study", 21), ("otg", 14)])
def test_another_package_enters_rooms_through_their_faces(name, least):
    past = []
    paths = sorted(OTHERS[name].rglob("*.py"))
    for path in paths:
        for line, module, name in imports(parsed(path)):
            if module.startswith("lossratio.") and is_past_a_face(module, name):
                past.append(f"{path.name}:{line}: {module} {name}")
    assert len(paths) >= least
    assert not past


def test_programs_for_nodes_import_nothing_of_the_library():
    paths = list(filter(on_nodes, sources()))
    assert all(any(path.is_relative_to(PACKAGE / folder) for path in paths) for folder in ON_NODES)
    for path in paths:
        names = [module for _, module, _ in imports(sources()[path]) if module.startswith("lossratio")]
        names = [module for module in names if module != WITH_THEM]
        assert not names, f"{path.name} runs on a node and must not import {names}"


def test_a_program_of_another_package_imports_the_agent_and_the_standard_library():
    tree = parsed(OTHERS["otg"] / "program.py")
    names = {(module, name) for _, module, name in imports(tree)}
    # Only type checkers read the name that the agent has here.
    names.remove(("lossratio", "agent"))
    assert {module.split(".")[0] for module, _ in names} - sys.stdlib_module_names == {"lossratio_agent"}


def test_the_room_that_goes_with_them_needs_nothing_but_the_standard_library():
    paths = list(PACKAGE.joinpath(*WITH_THEM.split(".")[1:]).glob("*.py"))
    assert paths
    for path in paths:
        names = [module for _, module, _ in imports(sources()[path])]
        foreign = {name.split(".")[0] for name in names if not name.startswith(WITH_THEM)}
        assert foreign <= sys.stdlib_module_names


def test_the_keeper_of_reservations_needs_nothing_but_the_standard_library():
    folder = PACKAGE / "testbed" / "reservation" / "keeper"
    paths = list(folder.glob("*.py"))
    assert paths
    for path in paths:
        names = {module.split(".")[0] for _, module, _ in imports(sources()[path])}
        assert names <= sys.stdlib_module_names | {path.stem for path in paths}


def test_ssh_is_loaded_where_a_node_is_reached_by_it_and_nowhere_else():
    """It takes a tenth of the time in which keywords are imported, and testbeds of one machine do without it."""
    way_in = "lossratio.nodes.connection"
    at_once = []
    for path, tree in sources().items():
        modules = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
        modules += [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
        if path != PACKAGE / "nodes" / "connection.py":
            at_once += [(path, name) for name in modules if name == way_in or name.split(".")[0] == "paramiko"]
    assert not at_once


def results_of_kinds() -> dict[str, str]:
    """The classes of results, and the room in `measurements` that each is of."""
    folder = PACKAGE / "measurements"
    return {
        node.name: path.relative_to(folder).with_suffix("").parts[0]
        for path, tree in sources().items()
        if path.is_relative_to(folder)
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Result")
    }


def asked_for_its_class(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and class of each question whether something is a result of a class."""
    for node in ast.walk(tree):
        asks = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")
        names = ast.walk(node.args[1]) if asks else ()
        for name in names:
            if isinstance(name, ast.Name | ast.Attribute):
                yield node.lineno, ast.unparse(name).rpartition(".")[2]
        if isinstance(node, ast.MatchClass):
            yield node.cls.lineno, ast.unparse(node.cls).rpartition(".")[2]


def test_a_kind_answers_for_itself_and_nobody_asks_a_result_for_its_class():
    homes = results_of_kinds()
    assert {"ThroughputResult", "MrrResult", "LatencyResult", "FoundResult"} <= homes.keys()
    found = []
    for path, tree in sources().items():
        inside = path.relative_to(PACKAGE).with_suffix("").parts
        own = inside[1] if inside[0] == "measurements" else None
        found += [f"{path}:{line}: {name}" for line, name in asked_for_its_class(tree) if homes.get(name, own) != own]
    assert not found


def test_no_room_above_the_kinds_has_a_list_of_them():
    """Whoever lists kinds imports the classes of several of them; the face for scripts names requests."""
    kinds = {type(kind).__name__: type(kind).__module__.split(".")[2] for kind in built_in_kinds()}
    assert kinds
    assert sources()
    for path, tree in sources().items():
        inside = path.relative_to(PACKAGE).with_suffix("").parts
        named = {name for _, _, name in imports(tree) if kinds.get(name) not in (None, *inside)}
        assert len(named) < 2, f"{path} imports {sorted(named)}: take them from lossratio.results.installed_kinds"


def test_no_module_keeps_state():
    assert sources()
    for path, tree in sources().items():
        lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)]
        assert not lines, f"{path} changes a module's variable in lines {lines}"


def is_free(node: ast.AST) -> bool:
    """Whether a node is an import, or documentation."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom)


def statements(tree: ast.Module) -> int:
    """Number of statements in a module that a reader has to follow."""
    return sum(isinstance(node, ast.stmt) and not is_free(node) for node in ast.walk(tree))


def test_no_module_is_too_long_to_read():
    assert not [path for path, tree in sources().items() if statements(tree) > MOST_STATEMENTS]
